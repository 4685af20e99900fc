//! A cache of collective schedules with their software costs, which jobs of a sweep share. Fitting these costs is most of the work of planning.
//!
//! Layer: host. `planner` uses it. The cache changes no result, only the time that a sweep takes.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use hyperfold_llm::collective::{
    Algorithm, CollectiveOp, IdleMachine, InsideLink, Overheads, Protocol, ReducingSwitches, Schedule, ScheduleOptions,
    Shape, SwitchDelays,
};

/// Maximum number of bytes of cached schedules (our choice): the collectives of some hundred layouts.
const MAX_BYTES: usize = 64 << 20;

/// Everything that decides a schedule and its costs.
#[derive(Debug, PartialEq)]
pub(crate) struct PlanKey {
    pub op: CollectiveOp,
    pub algorithm: Algorithm,
    pub bytes: u64,
    pub shape: Shape,
    pub channels: u16,
    pub chunk_bytes: u64,
    pub root: u32,
    pub shares: Option<Vec<u64>>,
    pub own_links: bool,
    pub cross_nic: bool,
    pub switches: Option<ReducingSwitches>,
    /// The measured machine that the fitted costs depend on, if software costs are measured ones.
    pub fit: Option<FitKey>,
}

/// Everything that decides the costs that are fitted to a schedule.
#[derive(Debug, PartialEq)]
pub(crate) struct FitKey {
    protocol: Protocol,
    nics: Vec<u32>,
    inside: Option<InsideLink>,
    /// Rate, ports, network latency, rendezvous, cost of a message.
    machine: [u64; 5],
    delays: SwitchDelays,
    latencies: Overheads,
    target_ps: u64,
}

impl FitKey {
    pub(crate) fn new(machine: &IdleMachine, protocol: Protocol, latencies: Overheads, target_ps: u64) -> FitKey {
        let &IdleMachine {
            shape: _,
            switches,
            nics,
            inside,
            net_bps,
            ports,
            net_latency_ps,
            rendezvous_ps,
            message_ps,
        } = machine;
        FitKey {
            protocol,
            nics: nics.to_vec(),
            inside,
            machine: [net_bps, u64::from(ports), net_latency_ps, rendezvous_ps, message_ps],
            delays: switches.map_or(SwitchDelays::default(), |(_, delays)| delays),
            latencies,
            target_ps,
        }
    }
}

impl PlanKey {
    /// Creates the key of a schedule without fitted costs.
    pub(crate) fn new(
        op: CollectiveOp,
        algorithm: Algorithm,
        bytes: u64,
        shape: &Shape,
        options: &ScheduleOptions,
    ) -> PlanKey {
        let &ScheduleOptions { channels, chunk_bytes, root, shares, own_links, cross_nic, switches } = options;
        let (shape, shares, switches) = (shape.clone(), shares.map(<[u64]>::to_vec), switches.cloned());
        PlanKey {
            op,
            algorithm,
            bytes,
            shape,
            channels,
            chunk_bytes,
            root,
            shares,
            own_links,
            cross_nic,
            switches,
            fit: None,
        }
    }

    fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.op, self.algorithm, self.bytes, &self.shape.members, self.channels, self.chunk_bytes).hash(&mut hasher);
        self.fit.as_ref().map(|fit| (fit.machine, fit.target_ps)).hash(&mut hasher);
        hasher.finish()
    }

    fn bytes(&self) -> usize {
        let fit = self.fit.as_ref().map_or(0, |fit| size_of_val(&*fit.nics));
        size_of::<PlanKey>()
            + size_of_val(&*self.shape.members)
            + fit
            + self.shares.as_ref().map_or(0, |s| size_of_val(&**s))
    }
}

/// A schedule with the costs that were fitted to it.
pub(crate) type FittedSchedule = (Arc<Schedule>, Overheads);

#[derive(Default)]
struct PlanCache {
    plans: HashMap<u64, (PlanKey, FittedSchedule)>,
    /// Numbers of the plans, the oldest first.
    order: VecDeque<u64>,
    bytes: usize,
}

static CACHE: LazyLock<Mutex<PlanCache>> = LazyLock::new(Mutex::default);

fn cache() -> MutexGuard<'static, PlanCache> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bytes((key, (schedule, _)): &(PlanKey, FittedSchedule)) -> usize {
    key.bytes() + size_of_val(&*schedule.transfers) + size_of_val(&*schedule.after)
}

impl PlanCache {
    fn find(&self, number: u64, key: &PlanKey) -> Option<FittedSchedule> {
        self.plans.get(&number).filter(|(known, _)| known == key).map(|(_, plan)| plan.clone())
    }

    fn keep(&mut self, number: u64, plan: (PlanKey, FittedSchedule)) {
        let more = bytes(&plan);
        if more > MAX_BYTES / 4 || self.plans.contains_key(&number) {
            return;
        }
        while self.bytes + more > MAX_BYTES {
            let Some(evicted) = self.order.pop_front().and_then(|oldest| self.plans.remove(&oldest)) else { break };
            self.bytes -= bytes(&evicted);
        }
        self.bytes += more;
        self.order.push_back(number);
        self.plans.insert(number, plan);
    }
}

/// Returns the schedule with this key and its costs, from the cache or else from `make`.
///
/// # Errors
/// Fails as `make` does.
pub(crate) fn fitted<E>(
    key: PlanKey,
    make: impl FnOnce() -> Result<(Schedule, Overheads), E>,
) -> Result<FittedSchedule, E> {
    let number = key.number();
    if let Some(known) = cache().find(number, &key) {
        return Ok(known);
    }
    // The lock is not held: other threads plan meanwhile, at worst the same.
    let (schedule, overheads) = make()?;
    let plan = (Arc::new(schedule), overheads);
    cache().keep(number, (key, plan.clone()));
    Ok(plan)
}

/// Forgets all schedules, so that measured jobs share nothing.
pub fn forget_plans() {
    *cache() = PlanCache::default();
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_llm::collective::build;

    fn key(bytes: u64) -> PlanKey {
        PlanKey::new(
            CollectiveOp::AllReduce,
            Algorithm::Ring,
            bytes,
            &Shape::servers(2, 2),
            &ScheduleOptions::default(),
        )
    }

    fn made(bytes: u64) -> (PlanKey, FittedSchedule) {
        let options = ScheduleOptions::default();
        let ring =
            build(CollectiveOp::AllReduce, Algorithm::Ring, bytes, &Shape::servers(2, 2), &options).expect("a ring");
        (key(bytes), (Arc::new(ring), Overheads::each(bytes)))
    }

    #[test]
    fn what_was_made_is_found_by_all_that_decides_it() {
        let mut cache = PlanCache::default();
        (1..=50).for_each(|k| cache.keep(key(k << 20).number(), made(k << 20)));
        for k in 1..=50 {
            let (schedule, overheads) = cache.find(key(k << 20).number(), &key(k << 20)).expect("it is there");
            assert_eq!((&*schedule, overheads), (&*made(k << 20).1.0, Overheads::each(k << 20)));
            let other = PlanKey { root: 1, ..key(k << 20) };
            assert!(cache.find(other.number(), &other).is_none(), "another root");
        }
        assert_eq!(cache.bytes, cache.plans.values().map(bytes).sum::<usize>());
    }

    #[test]
    fn the_oldest_go_where_there_is_no_room() {
        let mut cache = PlanCache::default();
        let each = bytes(&made(1));
        cache.bytes = MAX_BYTES - 10 * each;
        (1..=30).for_each(|k| cache.keep(key(k).number(), made(k)));
        assert!(cache.bytes <= MAX_BYTES && (1..30).contains(&cache.plans.len()), "{} plans", cache.plans.len());
        assert!(cache.find(key(1).number(), &key(1)).is_none() && cache.find(key(30).number(), &key(30)).is_some());
    }
}
