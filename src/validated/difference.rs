//! What distinguishes an experiment from a measured class.
//!
//! Layer: validated. It compares two classes.

use super::class::ExperimentClass;
use super::error::{ClassError, Use};
use super::parts::{SizeClass, WorkloadClass, word};

/// The feature that says that constants were fitted to the rows of the nearest class.
pub(super) const FITTED: &str = "fitted rows";

/// Names of the features that differ, in a fixed order. A feature occurs once for each step that it is apart: a generation of GPUs, or eight times as many GPUs.
/// `None`: the two cannot be compared. GPUs are two generations apart, collectives are of small and large messages, or one machine alone was measured.
pub(super) fn differences(class: &ExperimentClass, gpu_name: &str, measured: &ClassError) -> Option<Vec<&'static str>> {
    let other = &measured.class;
    let generations = (class.gpu as i32 - other.gpu as i32).unsigned_abs() as usize;
    if class.workload != other.workload
        || generations > 1
        || is_small(class.size) != is_small(other.size)
        || class.machine != other.machine
    {
        return None;
    }
    let gpu_steps = generations.max(usize::from(gpu_name != measured.gpu_name));
    let scale_steps = (class.scale as i32 - other.scale as i32).unsigned_abs() as usize;
    let is_fitted = measured.used == Use::Fitted && class.workload == WorkloadClass::Training;
    // Engines that serve differ by how they admit requests.
    let framework = if class.workload == WorkloadClass::Serving { "admission" } else { "framework" };
    let steps = [
        ("gpu", gpu_steps),
        ("precision", usize::from(class.precision != other.precision)),
        (framework, usize::from(class.framework != other.framework)),
        ("parallelism", usize::from(class.parallelism != other.parallelism)),
        ("size", usize::from(class.size != other.size)),
        ("scale", scale_steps),
        ("network", usize::from(class.network != other.network)),
        (FITTED, usize::from(is_fitted)),
    ];
    Some(steps.into_iter().flat_map(|(name, n)| std::iter::repeat_n(name, n)).collect())
}

fn is_small(size: SizeClass) -> bool {
    matches!(size, SizeClass::ServerSmall | SizeClass::ClusterSmall)
}

/// Words for a difference: the feature, and what the experiment has. Settings that differ from the machine are their own words.
pub(super) fn words(difference: &str, class: &ExperimentClass, gpu_name: &str) -> String {
    let value = match difference {
        "gpu" => gpu_name.to_string(),
        "precision" => word(&class.precision),
        "framework" | "admission" => class.framework.clone(),
        "parallelism" => word(&class.parallelism),
        "size" => word(&class.size),
        "scale" => word(&class.scale),
        "network" => word(&class.network),
        setting => return setting.to_string(),
    };
    format!("{difference} {value}")
}
