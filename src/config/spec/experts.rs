//! What carries tokens to experts, and the experts of a dispatch or combine alone.
//!
//! Layer: spec. Knows no model.

use super::applies_when::expert_op;
use super::error::Conflict;
use super::key_id::KeyId;
use super::value::Values;

/// Kernels that exchange tokens with experts in place of NCCL's all-to-all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatcherChoice {
    /// DeepEP's normal kernels, version 1.
    DeepEp,
    /// DeepEP's kernels, version 2.
    DeepEpV2,
    /// DeepEP's low-latency kernels.
    DeepEpLowLatency,
}

impl DispatcherChoice {
    /// Reads `workload.ep_dispatcher`. `None`: NCCL's all-to-all.
    pub(super) fn new(v: &Values) -> Option<DispatcherChoice> {
        match v.text(KeyId::EpDispatcher) {
            "deepep" => Some(DispatcherChoice::DeepEp),
            "deepep-v2" => Some(DispatcherChoice::DeepEpV2),
            "deepep-low-latency" => Some(DispatcherChoice::DeepEpLowLatency),
            _ => None,
        }
    }
}

/// Experts of a dispatch or combine alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertsSpec {
    /// Kernels that carry it out.
    pub dispatcher: DispatcherChoice,
    /// Value of `workload.ep_experts`.
    pub experts: u32,
    /// Value of `workload.ep_top_k`.
    pub top_k: u32,
    /// Value of `workload.ep_groups`.
    pub groups: u32,
    /// Groups that a token's experts may be in.
    pub top_groups: u32,
}

impl ExpertsSpec {
    /// Reads the keys of a dispatch or combine. `None`: it is another operation, or NCCL carries it out.
    pub(super) fn new(v: &Values) -> Option<ExpertsSpec> {
        let dispatcher = DispatcherChoice::new(v).filter(|_| expert_op(v))?;
        let [experts, top_k, groups, top_groups] =
            [KeyId::EpExperts, KeyId::EpTopK, KeyId::EpGroups, KeyId::EpTopGroups].map(|key| v.int(key) as u32);
        let top_groups = if groups == 1 || top_groups == 0 { groups } else { top_groups };
        Some(ExpertsSpec { dispatcher, experts, top_k, groups, top_groups })
    }

    /// Checks experts against ranks and groups. Low-latency kernels send a copy for each expert, so experts and groups do not matter there.
    pub(super) fn check(&self, v: &Values, ranks: Option<u32>) -> Result<(), Conflict> {
        let fail = |key: KeyId, why: String| Err(Conflict { job: None, key, why });
        if !v.is(KeyId::Algorithm, "auto") {
            let why = format!(
                "it must be \"auto\" with workload.ep_dispatcher = \"{}\", whose kernels have their own way",
                v.text(KeyId::EpDispatcher)
            );
            return fail(KeyId::Algorithm, why);
        }
        if self.dispatcher == DispatcherChoice::DeepEpLowLatency {
            return Ok(());
        }
        if let Some(ranks) = ranks.filter(|n| !self.experts.is_multiple_of(*n)) {
            let near = self.experts.div_ceil(ranks) * ranks;
            return fail(KeyId::EpExperts, format!("it must be a multiple of the {ranks} ranks, for example {near}"));
        }
        if !self.experts.is_multiple_of(self.groups) {
            return fail(KeyId::EpGroups, format!("it must be a divisor of workload.ep_experts = {}", self.experts));
        }
        if self.top_groups > self.groups {
            return fail(KeyId::EpTopGroups, format!("it must be at most workload.ep_groups = {}", self.groups));
        }
        let candidates = self.experts / self.groups * self.top_groups;
        if self.top_k > candidates {
            let why = format!("it must be at most {candidates}, the experts that a token can choose from");
            return fail(KeyId::EpTopK, why);
        }
        Ok(())
    }
}
