//! Schedulers, placements and failure models that a program registers, guarded.
//!
//! Layer: cluster. A panic or an impossible answer of such a policy ends its experiment with [`ClusterError::Policy`]. It unwinds to [`guarded`], as `budget`
//! unwinds, so that the functions in between need no error for it. Built-in policies are called directly.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::error::ClusterError;
use super::failure::FailureModel;
use super::jobs::job::ClusterJob;
use super::placement::{Placement, Request};
use super::queue_order::{Behind, QueueKey, Scheduler};
use super::servers::{GpuShare, ServerUse, Servers};
use hyperfold_base::isolation::message_of_panic;
use hyperfold_config::spec::{KeyId, PolicyRegistry, RegisteredPolicy, key};

/// Adds a scheduler to a registry, by name and version.
///
/// # Errors
/// The name or the version is not allowed, or the name is taken.
pub fn register_scheduler(
    registry: &mut PolicyRegistry,
    name_and_version: (&str, &str),
    scheduler: Box<dyn Scheduler>,
) -> Result<(), String> {
    key(KeyId::SchedulerPolicy).register(registry, name_and_version, Box::new(scheduler))
}

/// Adds a placement to a registry, by name and version.
///
/// # Errors
/// The name or the version is not allowed, or the name is taken.
pub fn register_placement(
    registry: &mut PolicyRegistry,
    name_and_version: (&str, &str),
    placement: Box<dyn Placement>,
) -> Result<(), String> {
    key(KeyId::SchedulerPlacement).register(registry, name_and_version, Box::new(placement))
}

/// Adds a failure model to a registry, by name and version.
///
/// # Errors
/// The name or the version is not allowed, or the name is taken.
pub fn register_failure_model(
    registry: &mut PolicyRegistry,
    name_and_version: (&str, &str),
    model: Box<dyn FailureModel>,
) -> Result<(), String> {
    key(KeyId::FailuresModel).register(registry, name_and_version, Box::new(model))
}

/// The payload with which a fault of a registered policy unwinds.
struct PolicyFault {
    policy: RegisteredPolicy,
    why: String,
}

/// Unwinds to [`guarded`].
fn fail(policy: &RegisteredPolicy, why: String) -> ! {
    resume_unwind(Box::new(PolicyFault { policy: policy.clone(), why }))
}

/// Calls a policy's code.
fn call<T>(policy: &RegisteredPolicy, code: impl FnOnce() -> T) -> T {
    // The experiment ends here, so nobody sees what the code left half changed.
    catch_unwind(AssertUnwindSafe(code))
        .unwrap_or_else(|payload| fail(policy, format!("it panicked: {}", message_of_panic(&*payload))))
}

/// The code of a policy, as the trait object with which it was registered.
fn code<T: 'static>(policy: &RegisteredPolicy) -> &T {
    policy.code().expect("the functions above register policies of a key with its trait")
}

/// Runs a simulation, and turns a fault of a registered policy into an error.
///
/// # Errors
/// Errors of the simulation, or [`ClusterError::Policy`].
pub(super) fn guarded<T>(simulation: impl FnOnce() -> Result<T, ClusterError>) -> Result<T, ClusterError> {
    catch_unwind(AssertUnwindSafe(simulation)).unwrap_or_else(|payload| match payload.downcast::<PolicyFault>() {
        Ok(fault) => Err(ClusterError::Policy { policy: fault.policy.in_words(), why: fault.why }),
        Err(payload) => resume_unwind(payload),
    })
}

/// A registered scheduler, called so that a panic ends one experiment only.
pub(super) struct GuardedScheduler<'a> {
    policy: &'a RegisteredPolicy,
    code: &'a dyn Scheduler,
    behind: Behind,
}

impl<'a> GuardedScheduler<'a> {
    pub(super) fn new(policy: &'a RegisteredPolicy) -> GuardedScheduler<'a> {
        let code = &**code::<Box<dyn Scheduler>>(policy);
        GuardedScheduler { policy, code, behind: call(policy, || code.behind()) }
    }
}

impl Scheduler for GuardedScheduler<'_> {
    fn key(&self, job: &ClusterJob) -> QueueKey {
        call(self.policy, || self.code.key(job))
    }

    fn behind(&self) -> Behind {
        self.behind
    }
}

/// A registered placement. It returns only GPUs that a job may have.
pub(super) struct GuardedPlacement<'a> {
    policy: &'a RegisteredPolicy,
    code: &'a dyn Placement,
    whole_servers: bool,
}

impl<'a> GuardedPlacement<'a> {
    pub(super) fn new(policy: &'a RegisteredPolicy) -> GuardedPlacement<'a> {
        let code = &**code::<Box<dyn Placement>>(policy);
        GuardedPlacement { policy, code, whole_servers: call(policy, || code.whole_servers()) }
    }
}

impl Placement for GuardedPlacement<'_> {
    fn whole_servers(&self) -> bool {
        self.whole_servers
    }

    fn place(&self, servers: &Servers, request: &mut Request<'_>) -> Option<Vec<GpuShare>> {
        let (gpus, kept) = (request.gpus, request.kept);
        let shares = call(self.policy, || self.code.place(servers, request))?;
        match wrong_share(servers, &shares, gpus, kept) {
            Some(why) => fail(self.policy, why),
            None => Some(shares),
        }
    }
}

/// Says why a job may not have these shares; `None` if it may.
fn wrong_share(servers: &Servers, shares: &[GpuShare], gpus: u32, kept: Option<&[bool]>) -> Option<String> {
    for (i, share) in shares.iter().enumerate() {
        let server = share.server;
        let wrong = match server < servers.len() {
            false => Some(format!("there are {} servers, counted from 0", servers.len())),
            true if share.gpus == 0 => Some("the share has no GPUs".to_string()),
            true if shares[..i].iter().any(|other| other.server == server) => {
                Some("the server has two shares; join them".to_string())
            }
            true if servers.use_of(server) != ServerUse::InService => Some("the server is not in service".to_string()),
            true if kept.is_some_and(|kept| kept[server as usize]) => {
                Some("the server is reserved for another job (Request::may_use says so)".to_string())
            }
            true if share.gpus & !servers.free_of(server) != 0 => {
                Some(format!("GPUs {:#x} are not free", share.gpus & !servers.free_of(server)))
            }
            true => None,
        };
        if let Some(why) = wrong {
            return Some(format!("it placed a job on GPUs {:#x} of server {server}: {why}", share.gpus));
        }
    }
    let given: u64 = shares.iter().map(|share| u64::from(share.count())).sum();
    (given != u64::from(gpus)).then(|| format!("it gave {given} GPUs to a request for {gpus}"))
}

/// A registered failure model, called so that a panic ends one experiment only.
pub(super) struct GuardedFailureModel(pub RegisteredPolicy);

impl FailureModel for GuardedFailureModel {
    fn gap(&self, draw: &mut dyn FnMut() -> f64) -> f64 {
        let gap = call(&self.0, || code::<Box<dyn FailureModel>>(&self.0).gap(draw));
        if !gap.is_finite() || gap < 0.0 {
            fail(&self.0, format!("it returned a gap of {gap}; a gap over the mean gap is a number from 0 on"));
        }
        gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_shares_are_named() {
        let mut servers = Servers::new(3, 4);
        servers.take(&[GpuShare { server: 0, gpus: 0b0001 }]);
        servers.set_use(2, ServerUse::Down);
        let share = |server: u32, gpus: u64| GpuShare { server, gpus };
        let why = |shares: &[GpuShare], gpus: u32| wrong_share(&servers, shares, gpus, Some(&[false, true, false]));
        assert_eq!(why(&[share(0, 0b0110)], 2), None);
        for (shares, gpus, part) in [
            (vec![share(3, 1)], 1, "there are 3 servers"),
            (vec![share(0, 0)], 0, "has no GPUs"),
            (vec![share(0, 0b0010), share(0, 0b0010)], 2, "two shares"),
            (vec![share(2, 1)], 1, "not in service"),
            (vec![share(1, 1)], 1, "reserved for another job"),
            (vec![share(0, 0b0011)], 2, "GPUs 0x1 are not free"),
            (vec![share(0, 0b10010)], 2, "GPUs 0x10 are not free"),
            (vec![share(0, 0b0010)], 2, "gave 1 GPUs to a request for 2"),
            (Vec::new(), 2, "gave 0 GPUs to a request for 2"),
        ] {
            let text = why(&shares, gpus).unwrap_or_default();
            assert!(text.contains(part), "{shares:?}: {text}");
        }
    }
}
