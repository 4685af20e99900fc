//! Ports that move as wholes: all queue pairs of a port go to one other port of the same host, with the tasks that use them. They go where the port's link has
//! failed, and where its leaf has lost the way to a peer.
//!
//! A task and the queue pairs that it posts to must be on one NIC, so the queue pairs of tasks cannot choose ports one by one as flows do.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use super::routed_flow::{PortFailover, RoutedFlow, crosses};
use crate::routing::{FlowPaths, Router, RoutingPolicy};
use crate::topology::ArcIdx;

/// Ports that have moved, each with the port where its queue pairs are now. Ports are named by the direction on which they send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MovedPorts(BTreeMap<ArcIdx, ArcIdx>);

impl MovedPorts {
    /// Where the queue pairs are that began at port `home`.
    pub(super) fn place_of(&self, home: ArcIdx) -> ArcIdx {
        self.0.get(&home).copied().unwrap_or(home)
    }

    /// The ports whose place differs from what it was before, each with its new place.
    pub(super) fn differences(&self, before: &MovedPorts) -> Vec<(ArcIdx, ArcIdx)> {
        let homes: BTreeSet<ArcIdx> = self.0.keys().chain(before.0.keys()).copied().collect();
        let moved = homes.into_iter().map(|home| (home, self.place_of(home)));
        moved.filter(|&(home, place)| before.place_of(home) != place).collect()
    }
}

/// Links that are down at one time.
pub(super) struct DownLinks<'a> {
    /// Indices of those that routing knows to be down. A link that is back is among them until routing has noticed that.
    pub known: &'a BTreeSet<u32>,
    /// Indices of those that are down now, or about to go down as planned.
    pub now: &'a BTreeSet<u32>,
    /// Knows the network without the links `known`.
    pub around: &'a Router<'a>,
}

/// What decides where ports move.
pub(super) struct PortMoves<'a> {
    /// All flows; those that move together count.
    pub flows: &'a [RoutedFlow<'a>],
    /// Knows all links, also those that are down.
    pub whole: &'a Router<'a>,
    /// Chooses paths.
    pub policy: &'a dyn RoutingPolicy,
}

impl PortMoves<'_> {
    /// Where each port's queue pairs are, once routing knows which links are down. `before`: where they were.
    ///
    /// A port whose link is known to be down goes to the next port of its host whose link is not. It stays where there is none, or where its link is back before
    /// routing has noticed. If that parts a queue pair's ends, because planes meet at hosts only, the other end goes to the plane of the first. Where even that
    /// does not join all, no port moves. Then ports leave those leaves that have lost the way to a peer.
    pub(super) fn places(&self, down: &DownLinks<'_>, before: &MovedPorts) -> MovedPorts {
        let moved = self.off_failed_links(down, before);
        self.off_stranded_leaves(down, before, &moved).unwrap_or(moved)
    }

    /// Places of ports that leave links which are known to be down, and of the peers that follow them.
    fn off_failed_links(&self, down: &DownLinks<'_>, before: &MovedPorts) -> MovedPorts {
        let mut moved = MovedPorts::default();
        let works = |port: ArcIdx| !down.known.contains(&(port / 2));
        for (home, others) in self.ports() {
            let back_in_time = before.place_of(home) == home && !down.now.contains(&(home / 2));
            if !works(home) && !back_in_time {
                moved.0.extend(others.into_iter().find(|&other| works(other)).map(|other| (home, other)));
            }
        }
        while let Some(flow) = self.together().find(|flow| !self.is_joined(flow, &moved)) {
            let (sends, answers) = flow.first.ports();
            let follows = [(sends, answers), (answers, sends)].into_iter().find_map(|(home, peer)| {
                let may_follow = moved.place_of(home) == home && works(home);
                let others = if may_follow { self.others(flow, home) } else { Vec::new() };
                let joins = |other: &ArcIdx| {
                    let (a, b) =
                        if home == sends { (*other, moved.place_of(peer)) } else { (moved.place_of(peer), *other) };
                    works(*other) && self.joins(flow, a, b)
                };
                others.into_iter().find(joins).map(|other| (home, other))
            });
            match follows {
                Some((home, other)) => moved.0.insert(home, other),
                None => return MovedPorts::default(),
            };
        }
        moved
    }

    /// Places in which every queue pair has a path around the links that are known to be down, if it has one over any ports of its two hosts. Ports of `moved`
    /// stay where they are; of the others no more leave than must: the sender's alone, else the receiver's alone, else both. `None`: some ports cannot be joined so.
    fn off_stranded_leaves(&self, down: &DownLinks<'_>, before: &MovedPorts, moved: &MovedPorts) -> Option<MovedPorts> {
        let mut moved = moved.clone();
        let now = LazyCell::new(|| Router::avoiding(self.whole.network(), &|link| down.now.contains(&link)));
        let works = |(a, b): (ArcIdx, ArcIdx)| [a, b].iter().all(|port| !down.known.contains(&(port / 2)));
        let is_up = |(a, b): (ArcIdx, ArcIdx)| [a, b].iter().all(|port| !down.now.contains(&(port / 2)));
        let has_way = |flow: &RoutedFlow<'_>, ports| {
            works(ports) && self.way(down.around, flow, ports).is_some_and(|paths| !crosses(&paths, down.known))
        };
        loop {
            let mut changed = false;
            for flow in self.together() {
                let home = flow.first.ports();
                let places = (moved.place_of(home.0), moved.place_of(home.1));
                if (places == home && !crosses(flow.first, down.known)) || has_way(flow, places) {
                    continue;
                }
                // Its paths are back before routing has noticed that they were gone.
                let stayed = (before.place_of(home.0), before.place_of(home.1)) == home;
                if places == home && stayed && is_up(home) && self.way(&now, flow, home).is_some() {
                    continue;
                }
                let ports_of = |home| std::iter::once(home).chain(self.others(flow, home)).collect::<Vec<_>>();
                let (senders, receivers) = (ports_of(home.0), ports_of(home.1));
                let pairs = || senders.iter().flat_map(|&a| receivers.iter().map(move |&b| (a, b)));
                // A port that has left its own place does not move on.
                let reachable = |&(a, b): &(ArcIdx, ArcIdx)| {
                    (a == places.0 || places.0 == home.0) && (b == places.1 || places.1 == home.1)
                };
                let ends_that_move = |&(a, b): &(ArcIdx, ArcIdx)| match (a == places.0, b == places.1) {
                    (false, true) => 0,
                    (true, false) => 1,
                    _ => 2,
                };
                let mut candidates: Vec<(ArcIdx, ArcIdx)> = pairs().filter(reachable).collect();
                candidates.sort_by_key(ends_that_move);
                match candidates.into_iter().find(|&pair| has_way(flow, pair)) {
                    Some((sends, answers)) => {
                        let goes = [(home.0, places.0, sends), (home.1, places.1, answers)];
                        let goes = goes.into_iter().filter(|(_, from, to)| from != to);
                        moved.0.extend(goes.map(|(home, _, to)| (home, to)));
                        changed = true;
                    }
                    None if pairs().any(|pair| has_way(flow, pair)) => return None,
                    // No ports of its hosts are joined, so it waits wherever they are.
                    None => {}
                }
            }
            if !changed {
                return Some(moved);
            }
        }
    }

    /// Paths of a flow between two ports, where it sends and where it answers, among those that `router` knows. `None`: there are none. PRECONDITION: `router`
    /// knows the links of both ports.
    pub(super) fn way(
        &self,
        router: &Router<'_>,
        flow: &RoutedFlow<'_>,
        (sends, answers): (ArcIdx, ArcIdx),
    ) -> Option<FlowPaths> {
        let over = |router: &Router<'_>| {
            let found = self.policy.paths(router, &flow.key, flow.lane);
            found.ok().filter(|found| found.ports() == (sends, answers))
        };
        // Where it began, a policy may choose the ports by itself.
        let chosen = if (sends, answers) == flow.first.ports() { over(router) } else { None };
        chosen.or_else(|| over(&router.between(sends, answers ^ 1)))
    }

    fn together(&self) -> impl Iterator<Item = &RoutedFlow<'_>> {
        self.flows.iter().filter(|flow| flow.failover == PortFailover::Together)
    }

    /// Every port at which a queue pair begins that moves with it, and the other ports of its host in the order in which they are tried.
    fn ports(&self) -> BTreeMap<ArcIdx, Vec<ArcIdx>> {
        let mut ports = BTreeMap::new();
        for flow in self.together() {
            let (sends, answers) = flow.first.ports();
            for home in [sends, answers] {
                ports.entry(home).or_insert_with(|| self.others(flow, home));
            }
        }
        ports
    }

    /// The other ports of the host of `home`, an end of `flow`: those after it first.
    fn others(&self, flow: &RoutedFlow<'_>, home: ArcIdx) -> Vec<ArcIdx> {
        let (leaving, arriving) = self.whole.ports_of_hosts(&flow.key);
        let mut ports =
            if flow.first.ports().0 == home { leaving } else { arriving.iter().map(|arc| arc ^ 1).collect() };
        let place = ports.iter().position(|&port| port == home).map_or(0, |place| place + 1);
        ports.rotate_left(place);
        ports.retain(|&port| port != home);
        ports
    }

    /// Whether the network joins the places of a flow's ends, whatever is down.
    fn is_joined(&self, flow: &RoutedFlow<'_>, moved: &MovedPorts) -> bool {
        let (sends, answers) = flow.first.ports();
        let places = (moved.place_of(sends), moved.place_of(answers));
        places == (sends, answers) || self.joins(flow, places.0, places.1)
    }

    fn joins(&self, flow: &RoutedFlow<'_>, sends: ArcIdx, answers: ArcIdx) -> bool {
        self.way(self.whole, flow, (sends, answers)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::changes::{ChangeList, NetworkChange, Outage, changes_of};
    use super::*;
    use crate::routing::{Ecmp, FlowKey, FlowPaths};
    use crate::topology::parse_ns3;

    /// Changes that one failed link brings to a ring of queue pairs over three hosts with two ports each. All begin at the first port of their hosts.
    fn changes(links: &[&str], outage: Outage) -> ChangeList {
        let lines: String = links.iter().map(|ends| format!("{ends} 100Gbps 1us 0\n")).collect();
        let net = parse_ns3("test", &format!("8 5 {}\n3 4 5 6 7\n{lines}", links.len())).unwrap().network;
        let policy = Ecmp { seed: 1 };
        let router = Router::new(&net);
        let key = |id: u32| FlowKey { id, src_rank: id, dst_rank: (id + 1) % 3, sport: 10, dport: 100 };
        // Links 2h and 2h + 1 are of host h.
        let paths = |id: u32| policy.paths(&router.between(4 * id, (4 * ((id + 1) % 3)) ^ 1), &key(id), None).unwrap();
        let paths: Vec<FlowPaths> = (0..3).map(paths).collect();
        let flow = |(id, own)| RoutedFlow {
            key: key(id),
            lane: None,
            paths: own,
            first: own,
            failover: PortFailover::Together,
        };
        let flows: Vec<RoutedFlow> = (0..).zip(&paths).map(flow).collect();
        changes_of(&net, &[outage], 5, &flows, &policy)
    }

    fn ports(list: &ChangeList) -> Vec<(u64, ArcIdx, ArcIdx)> {
        let ports = |timed: &super::super::changes::TimedChange| match timed.change {
            NetworkChange::MovePort { home, place } => Some((timed.time_ps, home, place)),
            _ => None,
        };
        list.changes.iter().filter_map(ports).collect()
    }

    fn moving_flows(list: &ChangeList, time_ps: u64) -> Vec<(usize, (ArcIdx, ArcIdx))> {
        let at_the_time = list.changes.iter().filter(|timed| timed.time_ps == time_ps);
        at_the_time
            .filter_map(|timed| match &timed.change {
                NetworkChange::NewPaths { flow, paths } => Some((*flow, paths.ports())),
                _ => None,
            })
            .collect()
    }

    const ONE_PLANE: [&str; 6] = ["0 3", "0 4", "1 3", "1 4", "2 3", "2 4"];

    fn failed(link: u32, up_ps: Option<u64>) -> Outage {
        Outage { links: vec![link], down_ps: Some(100), up_ps, drain_ps: None }
    }

    #[test]
    fn a_port_moves_with_all_its_queue_pairs_and_comes_back() {
        let links: Vec<&str> = ONE_PLANE.into_iter().chain(["3 5", "4 5"]).collect();
        let list = changes(&links, failed(2, Some(200)));
        assert_eq!(ports(&list), [(105, 4, 6), (205, 4, 4)]);
        // Flow 0 ends there and flow 1 begins there. The others stay.
        assert_eq!(moving_flows(&list, 105), [(0, (0, 6)), (1, (6, 8))]);
        assert_eq!(moving_flows(&list, 205), [(0, (0, 4)), (1, (4, 8))]);
        assert!(list.without_way.is_empty() && list.other_ports.is_empty());
        // What is over when routing notices it moves nothing.
        assert_eq!(ports(&changes(&links, failed(2, Some(104)))), []);
    }

    #[test]
    fn in_planes_that_meet_at_hosts_only_the_peers_follow() {
        // Ports of one plane are at leaf 3, those of the other at leaf 4.
        let list = changes(&ONE_PLANE, failed(2, None));
        assert_eq!(ports(&list), [(105, 0, 2), (105, 4, 6), (105, 8, 10)]);
        assert_eq!(moving_flows(&list, 105), [(0, (2, 6)), (1, (6, 10)), (2, (10, 2))]);
    }

    /// Hosts 0 and 1 have a port at leaf 3 and one at leaf 4, host 2 at leaves 5 and 6.
    const TWO_PAIRS: [&str; 6] = ["0 3", "0 4", "1 3", "1 4", "2 5", "2 6"];

    #[test]
    fn ports_leave_a_leaf_that_has_lost_its_links_upward() {
        let links: Vec<&str> = TWO_PAIRS.into_iter().chain(["3 7", "4 7", "5 7", "6 7"]).collect();
        // Hosts 0 and 1 reached each other over leaf 3 all the time; they still do, over leaf 4.
        let list = changes(&links, failed(6, Some(200)));
        assert_eq!(ports(&list), [(105, 0, 2), (105, 4, 6), (205, 0, 0), (205, 4, 4)]);
        assert_eq!(moving_flows(&list, 105), [(0, (2, 6)), (1, (6, 8)), (2, (8, 2))]);
        assert!(list.without_way.is_empty());
        assert_eq!(ports(&changes(&links, failed(6, Some(104)))), []);
        // The leaf of host 2 alone: one port moves.
        assert_eq!(ports(&changes(&links, failed(8, None))), [(105, 8, 10)]);
        // In planes that meet at hosts only, all leave the plane.
        let planes: Vec<&str> = TWO_PAIRS.into_iter().chain(["3 5", "4 6"]).collect();
        assert_eq!(ports(&changes(&planes, failed(6, None))), [(105, 0, 2), (105, 4, 6), (105, 8, 10)]);
        // Without a second plane nothing helps, and the two hosts of one leaf go on there.
        let alone: Vec<&str> = TWO_PAIRS.into_iter().chain(["3 5", "4 7"]).collect();
        let list = changes(&alone, failed(6, None));
        assert_eq!((ports(&list).len(), list.without_way), (0, vec![1, 2]));
    }

    #[test]
    fn a_host_whose_other_port_is_missing_waits() {
        let list = changes(&["0 3", "0 4", "1 3", "6 7", "2 3", "2 4"], failed(2, None));
        assert_eq!((ports(&list).len(), list.without_way), (0, vec![0, 1]));
        // Host 2 has no port in the other plane, so nobody goes there.
        let list = changes(&["0 3", "0 4", "1 3", "1 4", "2 3", "6 7"], failed(2, None));
        assert_eq!((ports(&list).len(), list.without_way), (0, vec![0, 1]));
    }
}
