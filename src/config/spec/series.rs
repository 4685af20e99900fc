//! Samples over time: `output.series` and the keys beside it.
//!
//! Layer: spec.

use super::scale::scaled;
use super::{Conflict, KeyId, Values};

/// Picoseconds in a microsecond.
const PS_PER_US: f64 = 1e6;

/// What is sampled over time, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesKeys {
    /// Whether directions of links are sampled.
    pub links: bool,
    /// Whether flows are sampled.
    pub flows: bool,
    /// Time between two samples at first, ps.
    pub interval_ps: u64,
    /// Maximum number of samples.
    pub cap: u32,
}

/// Reads `output.series`; `None`: nothing is sampled.
///
/// # Errors
/// It names something else, or something twice, or packets are not simulated.
pub(super) fn series_keys(v: &Values) -> Result<Option<SeriesKeys>, Conflict> {
    let text = v.text(KeyId::OutSeries);
    if text.trim().is_empty() {
        return Ok(None);
    }
    let fail = |why: String| Err(Conflict { job: None, key: KeyId::OutSeries, why });
    if !v.is(KeyId::Mode, "packet") {
        return fail(format!(
            "samples are of queues and packets, and fidelity.mode is \"{}\"; write fidelity.mode = \"packet\", or leave output.series out",
            v.text(KeyId::Mode)
        ));
    }
    let (mut links, mut flows) = (false, false);
    for name in text.split(',').map(str::trim) {
        let seen = match name {
            "links" => &mut links,
            "flows" => &mut flows,
            _ => return fail(format!("`{name}`: it must be \"links\", \"flows\" or [\"links\", \"flows\"]")),
        };
        if std::mem::replace(seen, true) {
            return fail(format!("`{name}` is there twice"));
        }
    }
    let interval_ps = scaled(v.float(KeyId::SeriesIntervalUs), PS_PER_US);
    Ok(Some(SeriesKeys { links, flows, interval_ps, cap: v.int(KeyId::SeriesCap) as u32 }))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::sweep::{self, SetOverrides};

    fn read(output: &str) -> Result<Option<SeriesKeys>, String> {
        let text = format!(
            "name = \"t\"\n[base]\ncluster = {{ gpus = 4, gpus_per_server = 1 }}\n\
             workload = {{ kind = \"traffic\", pattern = \"ring\" }}\n{output}\n"
        );
        let sweep =
            sweep::parse(&text, Path::new("sweep.toml"), &SetOverrides::default()).map_err(|e| e.to_string())?;
        let config = sweep.config(&sweep.experiments[0]).map_err(|e| e.to_string())?;
        Ok(config.output.series)
    }

    #[test]
    fn samples_are_of_links_and_flows() {
        let keys = SeriesKeys { links: true, flows: false, interval_ps: 1_000_000, cap: 1000 };
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("output.series = \"links\""), Ok(Some(keys)));
        let both = "output = { series = [\"flows\", \"links\"], series_interval_us = 0.25, series_cap = 20 }";
        assert_eq!(read(both), Ok(Some(SeriesKeys { flows: true, interval_ps: 250_000, cap: 20, ..keys })));
    }

    #[test]
    fn what_cannot_be_sampled_is_refused() {
        for (output, why) in [
            ("output.series = \"queues\"", "`queues`: it must be \"links\", \"flows\" or [\"links\", \"flows\"]"),
            ("output.series = [\"links\", \"links\"]", "`links` is there twice"),
            (
                "output.series = \"links\"\nfidelity.mode = \"flow\"",
                "fidelity.mode is \"flow\"; write fidelity.mode = \"packet\"",
            ),
        ] {
            let said = read(output).unwrap_err();
            assert!(said.contains(why), "{output}: {said}");
        }
    }
}
