//! Changes of a network while an experiment runs: links that fail and come back, the paths that flows get after that, rates, and losses.
//!
//! What they do to packets is in `docs/explanation/model-semantics.md`, from "Links that fail" on. Here they are worked out before the experiment begins, as
//! everything about them is known by then.

use std::collections::{BTreeMap, BTreeSet};

use super::port_moves::{DownLinks, MovedPorts, PortMoves};
pub use super::routed_flow::{PortFailover, RoutedFlow, crosses};
use crate::routing::{FlowPaths, Router, RoutingPolicy};
use crate::topology::{ArcIdx, Network};

/// What changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NetworkChange {
    /// The link with this index fails, in both directions.
    LinkDown(u32),
    /// The link with this index comes back.
    LinkUp(u32),
    /// From now on packets of a flow take other paths.
    NewPaths {
        /// Index of the flow among those that cross the network.
        flow: usize,
        /// Paths that run between the same two NICs as before, or between other ports of the same hosts if ports stand in for each other.
        paths: FlowPaths,
    },
    /// All tasks that began at a port are at another one of the same host from now on. Their queue pairs have paths from there at the same time.
    MovePort {
        /// The direction on which the port sends at which they began.
        home: ArcIdx,
        /// The direction on which the port sends where they are from now on.
        place: ArcIdx,
    },
    /// A direction of a link has another rate from now on, never above the link's own.
    Rate {
        /// The direction.
        arc: ArcIdx,
        /// Its rate, in bps.
        rate_bps: u64,
    },
    /// From now on a direction of a link loses packets at random.
    Loss {
        /// The direction.
        arc: ArcIdx,
        /// Share of packets that are lost, in units of 2^-32; 0: none.
        share_q32: u32,
    },
}

/// A change and its time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TimedChange {
    /// Time of the change, in ps.
    pub time_ps: u64,
    /// What changes then.
    pub change: NetworkChange,
}

/// A time during which links carry nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outage {
    /// Indices of the links that fail together.
    pub links: Vec<u32>,
    /// Time at which they fail, in ps; `None`: before the experiment begins, and paths avoid them already.
    pub down_ps: Option<u64>,
    /// Time at which they come back, in ps; `None`: they do not.
    pub up_ps: Option<u64>,
    /// For what is planned: how long before it fails paths avoid it, in ps. They return as soon as it is back. `None`: routing notices both by itself, later.
    pub drain_ps: Option<u64>,
}

/// A time during which paths avoid a link.
#[derive(Clone, Copy, Debug)]
struct AvoidedSpan {
    link: u32,
    since_ps: u64,
    /// `None`: for ever.
    until_ps: Option<u64>,
    /// Whether that is planned, so that nobody counts on the link while it is still up.
    planned: bool,
}

impl AvoidedSpan {
    fn lasts_at(&self, time_ps: u64) -> bool {
        self.since_ps <= time_ps && self.until_ps.is_none_or(|until| time_ps < until)
    }
}

impl Outage {
    /// Times during which paths avoid its links, where routing notices by itself after `reroute_ps`.
    fn avoided(&self, reroute_ps: u64) -> impl Iterator<Item = AvoidedSpan> {
        let since_ps = match (self.down_ps, self.drain_ps) {
            (None, _) => 0,
            (Some(down), Some(drain)) => down.saturating_sub(drain),
            (Some(down), None) => down.saturating_add(reroute_ps),
        };
        let late_ps = if self.drain_ps.is_some() { 0 } else { reroute_ps };
        let until_ps = self.up_ps.map(|up| up.saturating_add(late_ps));
        let planned = self.drain_ps.is_some();
        self.links.iter().map(move |&link| AvoidedSpan { link, since_ps, until_ps, planned })
    }

    /// Whether it lasts from before the beginning to after the end, so that nothing changes meanwhile.
    pub fn is_lasting(&self) -> bool {
        self.down_ps.is_none() && self.up_ps.is_none()
    }
}

/// Links that have failed before the experiment begins.
pub fn failed_before(outages: &[Outage]) -> BTreeSet<u32> {
    outages.iter().filter(|o| o.down_ps.is_none()).flat_map(|o| o.links.iter().copied()).collect()
}

/// All changes of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeList {
    /// The changes in the order in which they happen.
    pub changes: Vec<TimedChange>,
    /// Indices of flows that had, at some time, no path around links that are down. They keep the one that they have, and wait.
    pub without_way: Vec<usize>,
    /// Indices of those of them that would have had one over another port of their hosts.
    pub other_ports: Vec<usize>,
}

/// Works out the changes that `outages` bring. Paths avoid a link from `reroute_ps` after it failed until `reroute_ps` after it came back, or as
/// [`Outage::drain_ps`] says.
///
/// A flow whose own paths cross no link that is known to be down takes these. Any other takes what `policy` chooses on the network without those links, if
/// that runs between the same two NICs, or if its `failover` is on. Ports that work again by then are not left. Links that fail before the beginning and do not
/// come back change nothing.
pub fn changes_of(
    net: &Network,
    outages: &[Outage],
    reroute_ps: u64,
    flows: &[RoutedFlow<'_>],
    policy: &dyn RoutingPolicy,
) -> ChangeList {
    let mut list = ChangeList::default();
    // Times at which a link fails or comes back, and those at which paths change.
    let mut times: BTreeSet<u64> = BTreeSet::new();
    let spans = down_spans(net.links.len(), outages);
    for span in spans.iter().filter(|span| span.is_change()) {
        times.extend(std::iter::once(span.down_ps).chain(span.up_ps));
    }
    let avoided: Vec<AvoidedSpan> = outages.iter().flat_map(|outage| outage.avoided(reroute_ps)).collect();
    for outage in outages.iter().filter(|outage| !outage.is_lasting()) {
        times.extend(outage.avoided(reroute_ps).flat_map(|span| std::iter::once(span.since_ps).chain(span.until_ps)));
    }
    let mut current: Vec<Option<FlowPaths>> =
        flows.iter().map(|flow| (flow.first != flow.paths).then(|| flow.first.clone())).collect();
    let mut known = failed_before(outages);
    let mut waits: Vec<bool> = flows.iter().map(|flow| crosses(flow.first, &known)).collect();
    let mut could_move = vec![false; flows.len()];
    let turns = turns(flows);
    let move_together = flows.iter().any(|flow| flow.failover == PortFailover::Together);
    let whole = Router::new(net);
    let moves = PortMoves { flows, whole: &whole, policy };
    let mut moved = MovedPorts::default();
    for time_ps in times {
        for span in spans.iter().filter(|span| span.is_change()) {
            if span.down_ps == time_ps {
                list.changes.push(TimedChange { time_ps, change: NetworkChange::LinkDown(span.link) });
            }
            if span.up_ps == Some(time_ps) {
                list.changes.push(TimedChange { time_ps, change: NetworkChange::LinkUp(span.link) });
            }
        }
        let now_known: BTreeSet<u32> =
            avoided.iter().filter(|span| span.lasts_at(time_ps)).map(|span| span.link).collect();
        if now_known == known {
            continue;
        }
        known = now_known;
        let router = Router::avoiding(net, &|link| known.contains(&link));
        let is_down = |span: &&DownSpan| span.down_ps <= time_ps && span.up_ps.is_none_or(|up| time_ps < up);
        let leave = avoided.iter().filter(|span| span.planned && span.lasts_at(time_ps));
        let down: BTreeSet<u32> =
            spans.iter().filter(is_down).map(|span| span.link).chain(leave.map(|span| span.link)).collect();
        let before = std::mem::take(&mut moved);
        if move_together {
            moved = moves.places(&DownLinks { known: &known, now: &down, around: &router }, &before);
        }
        for (flow, routed) in flows.iter().enumerate() {
            if routed.failover == PortFailover::Together {
                let (wanted, has_way) = at_places(&router, &moves, routed, &known, &moved);
                let now = current[flow].as_ref().unwrap_or(routed.paths).ports();
                let keeps = !has_way && wanted.as_ref().unwrap_or(routed.paths).ports() == now;
                waits[flow] |= !has_way;
                if wanted != current[flow] && !keeps {
                    let paths = wanted.clone().unwrap_or_else(|| routed.paths.clone());
                    list.changes.push(TimedChange { time_ps, change: NetworkChange::NewPaths { flow, paths } });
                    current[flow] = wanted;
                }
                continue;
            }
            let stays = current[flow].as_ref().is_none_or(|now| now.ports() == routed.paths.ports());
            let wanted = match around(&router, policy, (routed, turns[flow]), (&known, &down), stays) {
                Ok(paths) => paths,
                Err(NoWay { has_other_ports }) => {
                    waits[flow] = true;
                    could_move[flow] |= has_other_ports;
                    continue;
                }
            };
            if wanted != current[flow] {
                let paths = wanted.clone().unwrap_or_else(|| routed.paths.clone());
                list.changes.push(TimedChange { time_ps, change: NetworkChange::NewPaths { flow, paths } });
                current[flow] = wanted;
            }
        }
        let places = moved.differences(&before).into_iter();
        list.changes.extend(
            places.map(|(home, place)| TimedChange { time_ps, change: NetworkChange::MovePort { home, place } }),
        );
    }
    list.without_way = (0..flows.len()).filter(|&flow| waits[flow]).collect();
    list.other_ports = (0..flows.len()).filter(|&flow| could_move[flow]).collect();
    list
}

/// Paths of a flow whose ends are where `moved` says, around the links `known`; `None`: its own. The flag says whether there are any: if not, the paths cross a
/// link that is down.
fn at_places(
    router: &Router,
    moves: &PortMoves<'_>,
    flow: &RoutedFlow<'_>,
    known: &BTreeSet<u32>,
    moved: &MovedPorts,
) -> (Option<FlowPaths>, bool) {
    let home = flow.first.ports();
    let (sends, answers) = (moved.place_of(home.0), moved.place_of(home.1));
    if (sends, answers) == flow.paths.ports() && !crosses(flow.paths, known) {
        return (None, true);
    }
    let between = |router: &Router| moves.way(router, flow, (sends, answers));
    let are_linked = [sends, answers].iter().all(|port| !known.contains(&(port / 2)));
    if are_linked && let Some(found) = between(router).filter(|found| !crosses(found, known)) {
        return (Some(found), true);
    }
    let anyway = if (sends, answers) == home { Some(flow.first.clone()) } else { between(moves.whole) };
    (anyway.filter(|paths| paths != flow.paths), false)
}

/// Gives each flow that begins after it has moved to other ports the paths that it has then, and takes the changes before from the list: such a flow has nothing
/// to move. `starts_ps`: times in ps at which the flows begin; those that are missing at the end are queue pairs of tasks, which begin with the experiment.
pub fn begin_where_moved(starts_ps: &[u64], paths: &mut [FlowPaths], changes: &mut Vec<TimedChange>) {
    let mut moved: BTreeMap<usize, FlowPaths> = BTreeMap::new();
    for timed in changes.iter() {
        if let NetworkChange::NewPaths { flow, paths } = &timed.change
            && starts_ps.get(*flow).is_some_and(|&start_ps| timed.time_ps <= start_ps)
        {
            moved.insert(*flow, paths.clone());
        }
    }
    moved.retain(|flow, later| later.ports() != paths[*flow].ports());
    changes.retain(|timed| match &timed.change {
        NetworkChange::NewPaths { flow, .. } => !moved.contains_key(flow) || timed.time_ps > starts_ps[*flow],
        _ => true,
    });
    moved.into_iter().for_each(|(flow, later)| paths[flow] = later);
}

/// No path is left that a flow may take.
struct NoWay {
    /// Whether there is one over other ports of its hosts.
    has_other_ports: bool,
}

/// For each flow its number among those that leave their host by the same port.
fn turns(flows: &[RoutedFlow<'_>]) -> Vec<usize> {
    let mut n: BTreeMap<ArcIdx, usize> = BTreeMap::new();
    let turn = |flow: &RoutedFlow<'_>| {
        let count = n.entry(flow.paths.ports().0).or_default();
        *count += 1;
        *count - 1
    };
    flows.iter().map(turn).collect()
}

/// Paths of a flow where routing knows that the links `known` are down; `None`: its own. Links of `down` are down now. `stays`: it is on its own ports.
fn around(
    router: &Router,
    policy: &dyn RoutingPolicy,
    (flow, turn): (&RoutedFlow<'_>, usize),
    (known, down): (&BTreeSet<u32>, &BTreeSet<u32>),
    stays: bool,
) -> Result<Option<FlowPaths>, NoWay> {
    let moves = flow.failover == PortFailover::On;
    if !crosses(flow.paths, known) && (moves || flow.paths.ports() == flow.first.ports()) {
        return Ok(None);
    }
    let found = policy.paths(router, &flow.key, flow.lane).ok().filter(|found| !crosses(found, known));
    if let Some(found) = found.filter(|found| found.ports() == flow.first.ports()) {
        return Ok(Some(found));
    }
    // Its own ports are back before routing has noticed that they were gone.
    if moves && stays && !crosses(flow.paths, down) {
        return Ok(None);
    }
    match over_other_ports(router, policy, (flow, turn), known) {
        Some(found) if moves => Ok(Some(found)),
        other => Err(NoWay { has_other_ports: other.is_some() }),
    }
}

/// Paths of a flow over whichever ports of its hosts have one. The sender keeps its port if a path leads on from there; else its flows take the others in turn.
/// Of all ports of the receiver, that with the shortest path is taken: its own one if that is among them, else in turn.
fn over_other_ports(
    router: &Router,
    policy: &dyn RoutingPolicy,
    (flow, turn): (&RoutedFlow<'_>, usize),
    known: &BTreeSet<u32>,
) -> Option<FlowPaths> {
    let own = flow.paths.ports();
    let (leaving, arriving) = router.ports_of_hosts(&flow.key);
    let from = |first: ArcIdx| -> Option<FlowPaths> {
        let between = |&last: &ArcIdx| {
            let found = policy.paths(&router.between(first, last), &flow.key, flow.lane).ok()?;
            (!crosses(&found, known) && found.ports() == (first, last ^ 1)).then_some(found)
        };
        let found: Vec<FlowPaths> = arriving.iter().filter_map(between).collect();
        let shortest = found.iter().map(|paths| paths.data[0].len()).min()?;
        let mut shortest: Vec<FlowPaths> = found.into_iter().filter(|paths| paths.data[0].len() == shortest).collect();
        let place = shortest.iter().position(|paths| paths.ports().1 == own.1).unwrap_or(turn % shortest.len());
        Some(shortest.swap_remove(place))
    };
    if leaving.contains(&own.0)
        && let Some(found) = from(own.0)
    {
        return Some(found);
    }
    let mut others: Vec<FlowPaths> = leaving.into_iter().filter(|&first| first != own.0).filter_map(from).collect();
    match others.len() {
        0 => None,
        n => Some(others.swap_remove(turn % n)),
    }
}

/// A time during which a link is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DownSpan {
    link: u32,
    /// Whether it has failed before the experiment begins; then `down_ps` is 0.
    before: bool,
    down_ps: u64,
    up_ps: Option<u64>,
}

impl DownSpan {
    /// Whether it begins or ends while the experiment runs.
    fn is_change(&self) -> bool {
        !self.before || self.up_ps.is_some()
    }
}

/// Times during which links are down, ordered by link. Outages of one link that overlap or touch are joined.
fn down_spans(n_links: usize, outages: &[Outage]) -> Vec<DownSpan> {
    let mut by_link: Vec<Vec<DownSpan>> = vec![Vec::new(); n_links];
    for outage in outages {
        for &link in &outage.links {
            by_link[link as usize].push(DownSpan {
                link,
                before: outage.down_ps.is_none(),
                down_ps: outage.down_ps.unwrap_or(0),
                up_ps: outage.up_ps,
            });
        }
    }
    let mut spans: Vec<DownSpan> = Vec::new();
    for mut own in by_link {
        own.sort_unstable_by_key(|span| (span.down_ps, !span.before));
        for span in own {
            match spans.last_mut() {
                Some(last) if last.link == span.link && last.up_ps.is_none_or(|up| span.down_ps <= up) => {
                    last.up_ps = last.up_ps.and_then(|last_up| span.up_ps.map(|up| up.max(last_up)));
                }
                _ => spans.push(span),
            }
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::{Ecmp, FlowKey};
    use crate::topology::parse_ns3;

    /// Hosts 0 and 1 at leaves 2 and 3, which spines 4 and 5 join.
    fn two_spines() -> Network {
        let links = ["0 2", "1 3", "2 4", "2 5", "3 4", "3 5"].map(|ends| format!("{ends} 100Gbps 1us 0\n")).concat();
        parse_ns3("test", &format!("6 4 6\n2 3 4 5\n{links}")).unwrap().network
    }

    fn list_of(outages: &[Outage], reroute_ps: u64) -> (ChangeList, FlowPaths) {
        let net = two_spines();
        let key = FlowKey { id: 0, src_rank: 0, dst_rank: 1, sport: 10, dport: 100 };
        let policy = Ecmp { seed: 1 };
        let own = Router::new(&net).paths(key, &policy).unwrap();
        let before = failed_before(outages);
        let first = match crosses(&own, &before) {
            true => Router::avoiding(&net, &|link| before.contains(&link)).paths(key, &policy).unwrap(),
            false => own.clone(),
        };
        let flow = RoutedFlow { key, lane: None, paths: &own, first: &first, failover: PortFailover::Off };
        (changes_of(&net, outages, reroute_ps, &[flow], &policy), own)
    }

    fn outage(link: u32, down_ps: u64, up_ps: Option<u64>) -> Outage {
        Outage { links: vec![link], down_ps: Some(down_ps), up_ps, drain_ps: None }
    }

    #[test]
    fn paths_avoid_a_link_after_the_delay_and_return_after_the_delay() {
        let (_, own) = list_of(&[], 5);
        let used = own.data[0][1] / 2;
        let (list, _) = list_of(&[outage(used, 100, Some(200))], 5);
        let times: Vec<u64> = list.changes.iter().map(|c| c.time_ps).collect();
        assert_eq!(times, [100, 105, 200, 205]);
        assert_eq!(list.changes[0].change, NetworkChange::LinkDown(used));
        assert_eq!(list.changes[2].change, NetworkChange::LinkUp(used));
        let NetworkChange::NewPaths { flow: 0, paths } = &list.changes[1].change else { panic!("{list:?}") };
        assert!(!paths.data[0].iter().any(|arc| arc / 2 == used));
        assert_eq!(paths.data[0].len(), own.data[0].len());
        assert_eq!(list.changes[3].change, NetworkChange::NewPaths { flow: 0, paths: own });
        assert!(list.without_way.is_empty());
    }

    #[test]
    fn flows_without_another_path_wait() {
        // The link of host 0.
        let (list, _) = list_of(&[outage(0, 100, Some(200))], 5);
        assert_eq!(list.without_way, [0]);
        assert_eq!(list.changes.len(), 2);
        // Both links of leaf 2, one after the other.
        let (list, _) = list_of(&[outage(2, 100, None), outage(3, 150, None)], 5);
        assert_eq!(list.without_way, [0]);
    }

    /// Hosts 0 and 1 with two ports each: leaves 2 and 3 of one pair of leaves, or of two planes. Spine 4 joins leaves of one plane.
    fn moved(links: &[&str], failed: u32) -> Option<FlowPaths> {
        let lines: String = links.iter().map(|ends| format!("{ends} 100Gbps 1us 0\n")).collect();
        let net = parse_ns3("test", &format!("7 5 {}\n2 3 4 5 6\n{lines}", links.len())).unwrap().network;
        let key = FlowKey { id: 0, src_rank: 0, dst_rank: 1, sport: 10, dport: 100 };
        let policy = Ecmp { seed: 1 };
        let router = Router::new(&net);
        // Its own paths are those over the first port of each host.
        let own = policy.paths(&router.between(0, 5), &key, None).unwrap();
        let flow = RoutedFlow { key, lane: None, paths: &own, first: &own, failover: PortFailover::On };
        let list = changes_of(&net, &[outage(failed, 100, None)], 5, &[flow], &policy);
        let waits = RoutedFlow { failover: PortFailover::Off, ..flow };
        let stays = changes_of(&net, &[outage(failed, 100, None)], 5, &[waits], &policy);
        // What is over when routing notices it moves nothing.
        let short = changes_of(&net, &[outage(failed, 100, Some(104))], 5, &[flow], &policy);
        assert!(short.changes.iter().all(|timed| !matches!(timed.change, NetworkChange::NewPaths { .. })), "{short:?}");
        assert!(stays.without_way.len() == 1 && stays.changes.len() == 1);
        assert_eq!(stays.other_ports.len(), usize::from(list.without_way.is_empty()));
        match &list.changes[..] {
            [_, TimedChange { time_ps: 105, change: NetworkChange::NewPaths { flow: 0, paths } }] => {
                Some(paths.clone())
            }
            _ => None,
        }
    }

    #[test]
    fn a_flow_moves_to_the_port_that_works() {
        // Links 0 and 1 are of host 0, 2 and 3 of host 1. Both have port 0 at leaf 2.
        let one_plane = ["0 2", "0 3", "1 2", "1 3", "2 4", "3 4"];
        // The sender's port: its leaf is another one then, and host 1 is at that leaf too.
        assert_eq!(moved(&one_plane, 0).unwrap().data, [[2, 7]]);
        // The receiver's port: the sender keeps its own, and the leaf goes over the spine.
        assert_eq!(moved(&one_plane, 2).unwrap().data, [[0, 8, 11, 7]]);
        // Planes that meet at the hosts only: both ends move, whichever failed.
        let two_planes = ["0 2", "0 3", "1 4", "1 5", "2 4", "3 5"];
        let own_plane_fails = |failed| {
            let moved = moved(&["0 2", "0 3", "1 2", "1 3"], failed).unwrap();
            (moved.data, moved.ack)
        };
        for failed in [0, 2] {
            assert_eq!(own_plane_fails(failed), (vec![vec![2, 7]], vec![vec![6, 3]]));
        }
        assert_eq!(moved(&two_planes, 4).unwrap().data, [[2, 10, 7]]);
        // No port is left.
        assert_eq!(moved(&["0 2", "0 3", "1 2"], 2), None);
    }

    #[test]
    fn outages_that_touch_are_one() {
        let spans = |n_links, outages: &[Outage]| {
            down_spans(n_links, outages).into_iter().map(|s| (s.link, s.down_ps, s.up_ps)).collect::<Vec<_>>()
        };
        let four = [outage(1, 10, Some(20)), outage(1, 20, Some(30)), outage(1, 15, Some(18)), outage(1, 40, None)];
        assert_eq!(spans(2, &four), [(1, 10, Some(30)), (1, 40, None)]);
        assert_eq!(spans(1, &[outage(0, 10, None), outage(0, 20, Some(30))]), [(0, 10, None)]);
    }

    #[test]
    fn what_failed_before_is_avoided_from_the_start() {
        let (_, own) = list_of(&[], 5);
        let used = own.data[0][1] / 2;
        let before = |up_ps| Outage { links: vec![used], down_ps: None, up_ps, drain_ps: None };
        assert_eq!(list_of(&[before(None)], 5).0, ChangeList::default());
        let (list, _) = list_of(&[before(Some(200))], 5);
        let [down, up, back] = &list.changes[..] else { panic!("{list:?}") };
        assert_eq!((down.time_ps, &down.change), (0, &NetworkChange::LinkDown(used)));
        assert_eq!((up.time_ps, &up.change), (200, &NetworkChange::LinkUp(used)));
        assert_eq!((back.time_ps, &back.change), (205, &NetworkChange::NewPaths { flow: 0, paths: own }));
        assert!(before(None).is_lasting() && !before(Some(200)).is_lasting());
    }

    #[test]
    fn paths_avoid_what_is_planned_before_it_fails() {
        let (_, own) = list_of(&[], 50);
        let used = own.data[0][1] / 2;
        let planned = Outage { drain_ps: Some(30), ..outage(used, 100, Some(200)) };
        let (list, _) = list_of(std::slice::from_ref(&planned), 50);
        let times: Vec<u64> = list.changes.iter().map(|c| c.time_ps).collect();
        assert_eq!(times, [70, 100, 200, 200], "new paths, down, up, old paths");
        assert!(matches!(&list.changes[0].change, NetworkChange::NewPaths { flow: 0, paths } if *paths != own));
        assert_eq!(list.changes[3].change, NetworkChange::NewPaths { flow: 0, paths: own.clone() });
        // The other spine is avoided as long as routing has not noticed that it is back, so there is no path then.
        let other = if used == 2 { 3 } else { 2 };
        let (list, _) = list_of(&[outage(other, 10, Some(40)), planned], 50);
        assert_eq!(list.without_way, [0]);
        // A planned outage from the beginning on, which ends.
        let before = Outage { links: vec![used], down_ps: None, up_ps: Some(100), drain_ps: Some(0) };
        let times: Vec<u64> = list_of(&[before], 50).0.changes.iter().map(|c| c.time_ps).collect();
        assert_eq!(times, [0, 100, 100]);
    }

    #[test]
    fn a_short_outage_is_noticed_after_it_is_over() {
        let (_, own) = list_of(&[], 50);
        let used = own.data[0][1] / 2;
        let (list, _) = list_of(&[outage(used, 100, Some(110))], 50);
        let times: Vec<u64> = list.changes.iter().map(|c| c.time_ps).collect();
        assert_eq!(times, [100, 110, 150, 160]);
    }
}
