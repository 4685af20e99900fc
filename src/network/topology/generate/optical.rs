//! Leaves that optical circuit switches join: each circuit is a link between two leaves, and a schedule says when it is there.
//!
//! Layer: topology. Circuits that stay are those of Jupiter (Poutievski et al., "Jupiter Evolving", SIGCOMM 2022), those that rotate are RotorNet's (Mellette et
//! al., SIGCOMM 2017), and a list of patterns is what TopoOpt computes for a job (Wang et al., NSDI 2023). A circuit switch delays nothing and has no queue.

use std::collections::BTreeMap;

use super::builder::FabricBuilder;
use super::clos::power_of_two_root;
use super::fabric::{Fabric, OversubscriptionMilli, bad};
use crate::topology::network::{DarkSpan, Network};
use crate::topology::validate::TopologyError;

/// Parameters of a network of circuits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Optical {
    /// Hosts of a leaf. 0: chosen, as in a Clos network of two tiers.
    pub hosts_per_leaf: u32,
    /// Ports of a leaf to circuit switches. 0: derived from the oversubscription.
    pub ports: u32,
    /// Host capacity over capacity to circuit switches at a leaf, in thousandths, where `ports` is 0.
    pub oversubscription: OversubscriptionMilli,
    /// Which circuits there are, and when.
    pub plan: CircuitPlan,
}

/// Which circuits there are, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CircuitPlan {
    /// Circuits that stay, spread over all pairs of leaves. All ports are in use, but for one where leaves and ports are odd.
    Mesh,
    /// Port j of all leaves is at circuit switch j, which joins them in pairs; of an odd number of leaves one rests. Each circuit switch goes on to its next pairs
    /// again and again, one circuit switch after the other.
    Rotate(Rotation),
    /// One layer that joins any two ports of different leaves, in patterns that follow each other. The first one is there from the beginning on.
    Patterns(Vec<CircuitPattern>),
}

/// Times of circuits that rotate, in ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// How long a circuit switch keeps its pairs, the dark time before them included.
    pub every_ps: u64,
    /// How long its ports are dark while it changes.
    pub dark_ps: u64,
    /// How long before that paths avoid its circuits.
    pub drain_ps: u64,
    /// No change begins at or after this time.
    pub until_ps: u64,
}

/// Circuits that are there together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CircuitPattern {
    /// Time in ps at which the circuits of the pattern before that are not in this one go dark; 0 for the first pattern.
    pub since_ps: u64,
    /// Time in ps from then until the new circuits carry data.
    pub dark_ps: u64,
    /// Time in ps before `since_ps` from which paths avoid those that go dark.
    pub drain_ps: u64,
    /// Pairs of leaves by number, and how many circuits each has.
    pub circuits: Vec<(u32, u32, u32)>,
}

impl CircuitPlan {
    /// Whether circuits change while an experiment runs.
    pub fn changes(&self) -> bool {
        match self {
            CircuitPlan::Mesh => false,
            CircuitPlan::Rotate(_) => true,
            CircuitPlan::Patterns(patterns) => patterns.len() > 1,
        }
    }
}

/// Most times that the circuits of one network are dark (our choice).
const MAX_DARK_SPANS: usize = 1 << 16;

/// Times at which circuits are there, of one pair of leaves: from a time in ps, until another one if it ever goes dark, with the drain before that.
#[derive(Clone, Debug, Default)]
struct Circuit {
    lit: Vec<LitSpan>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LitSpan {
    from_ps: u64,
    /// Time of the end and of the drain before it; `None`: it stays.
    end: Option<(u64, u64)>,
}

/// Identity of a circuit: the circuit switch, or the number among those of the same pair, and the leaves. The order is that of links.
type CircuitName = (u32, u32, u32);

impl Circuit {
    /// The times at which link `link` is dark: before, between and after those at which it is there.
    fn dark(&self, link: u32) -> Vec<DarkSpan> {
        let first_ps = self.lit[0].from_ps;
        let before = (first_ps > 0).then_some(DarkSpan { link, down_ps: None, up_ps: Some(first_ps), drain_ps: 0 });
        let next = self.lit.iter().skip(1).map(|lit| Some(lit.from_ps)).chain([None]);
        let after = self.lit.iter().zip(next).filter_map(|(lit, up_ps)| {
            let (down_ps, drain_ps) = lit.end?;
            Some(DarkSpan { link, down_ps: Some(down_ps), up_ps, drain_ps })
        });
        before.into_iter().chain(after).collect()
    }
}

/// Pairs number `m` of a tournament in which each leaf meets each other one once: `n` or, if it is even, `n - 1` rounds. With an odd number one leaf rests.
pub(super) fn pairs(n: u32, m: u32) -> Vec<(u32, u32)> {
    let rounds = n_rounds(n);
    // One leaf stays where it is, the others move around it. With an odd number nobody is in the middle.
    let around = |place: u32| (m + place) % rounds;
    let middle = n.is_multiple_of(2).then(|| (around(0), n - 1));
    let across = (1..=(rounds - 1) / 2).map(|k| (around(k), around(rounds - k)));
    let mut pairs: Vec<(u32, u32)> = middle.into_iter().chain(across).map(|(a, b)| (a.min(b), a.max(b))).collect();
    pairs.sort_unstable();
    pairs
}

/// Number of rounds of that tournament.
pub(super) fn n_rounds(n: u32) -> u32 {
    if n.is_multiple_of(2) { n - 1 } else { n }
}

impl Optical {
    /// Builds the network: every circuit that is ever there is a link, and [`Network::dark`] says when it is not.
    ///
    /// # Errors
    /// A parameter is out of range or contradicts another.
    pub fn build(&self, fabric: &Fabric) -> Result<Network, TopologyError> {
        fabric.check()?;
        let hosts = fabric.n_hosts();
        let per_leaf = match self.hosts_per_leaf {
            0 => power_of_two_root(hosts, 2),
            n => n.min(hosts),
        };
        let n_leaves = hosts.div_ceil(per_leaf);
        let ports = match n_leaves {
            1 => 0,
            _ => fabric.uplinks(per_leaf, 1, self.ports, self.oversubscription)?,
        };
        let circuits = match &self.plan {
            _ if n_leaves == 1 => BTreeMap::new(),
            CircuitPlan::Mesh => mesh(n_leaves, ports)?,
            CircuitPlan::Rotate(rotation) => rotating(n_leaves, ports, rotation)?,
            CircuitPlan::Patterns(patterns) => patterned(n_leaves, ports, patterns)?,
        };
        let n_host_links = fabric.n_host_links();
        let mut b = FabricBuilder::new(fabric, u64::from(n_leaves), n_host_links + circuits.len() as u64)?;
        (0..hosts).for_each(|host| b.host_link(host, hosts + host / per_leaf));
        let mut dark = Vec::new();
        for (link, (&(_, low, high), circuit)) in (n_host_links as u32..).zip(&circuits) {
            b.uplink(hosts + low, hosts + high);
            dark.extend(circuit.dark(link));
        }
        if dark.len() > MAX_DARK_SPANS {
            let problem = format!(
                "circuits are dark {} times in all, at most {MAX_DARK_SPANS} are supported; change them less often or end earlier",
                dark.len()
            );
            return Err(bad("topology.circuits", "this schedule", problem));
        }
        Ok(Network { dark, ..b.build()? })
    }
}

/// Number of the pairs that circuit switch `j` of `ports` has at first. The switches are spread over all pairs by a stride that has no divisor in common with the
/// number of them: then the pairs of two neighbouring switches together join all leaves.
pub(super) fn first_pairs(n_leaves: u32, ports: u32, j: u32) -> u32 {
    let rounds = n_rounds(n_leaves);
    let widest = rounds / ports.clamp(1, rounds);
    let stride = (1..=widest).rev().find(|&stride| divisor(stride, rounds) == 1).unwrap_or(1);
    (u64::from(j) * u64::from(stride) % u64::from(rounds)) as u32
}

/// Greatest common divisor.
fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

fn mesh(n_leaves: u32, ports: u32) -> Result<BTreeMap<CircuitName, Circuit>, TopologyError> {
    if ports == 1 && n_leaves > 2 {
        let problem = format!("with one port the circuits of a mesh do not join {n_leaves} leaves; take 2 or more");
        return Err(bad("topology.spines", ports, problem));
    }
    let stays = Circuit { lit: vec![LitSpan { from_ps: 0, end: None }] };
    let names: Vec<CircuitName> = match n_leaves.is_multiple_of(2) {
        true => (0..ports)
            .flat_map(|j| pairs(n_leaves, first_pairs(n_leaves, ports, j)).into_iter().map(move |(a, b)| (j, a, b)))
            .collect(),
        false => odd_mesh(n_leaves, ports),
    };
    Ok(names.into_iter().map(|name| (name, stays.clone())).collect())
}

/// Circuits of a mesh of an odd number of leaves, where no pairs have all of them. With each leaf the one that comes some places after it has a circuit: that takes
/// two ports of every leaf. All such steps together join each leaf to each other one. A last port has every other circuit of step 2, and one leaf rests.
fn odd_mesh(n_leaves: u32, ports: u32) -> Vec<CircuitName> {
    let steps = (n_leaves - 1) / 2;
    let (rounds, left) = (ports / 2 / steps, ports / 2 % steps);
    let rests = !ports.is_multiple_of(2);
    // The first step is 1, which alone joins all leaves; the others are far apart.
    let free: Vec<u32> = (1..=steps).filter(|&step| step != 2 || !rests).collect();
    let some = (0..left as usize).map(|i| free[i * free.len() / left as usize]);
    let whole = (0..rounds).flat_map(|round| (1..=steps).map(move |step| (round, step)));
    let circuit = |round: u32, a: u32, b: u32| (round, a.min(b), a.max(b));
    let around =
        |(round, step): (u32, u32)| (0..n_leaves).map(move |leaf| circuit(round, leaf, (leaf + step) % n_leaves));
    let mut names: Vec<CircuitName> = whole.chain(some.map(|step| (rounds, step))).flat_map(around).collect();
    if rests {
        let place = |i: u32| 2 * i % n_leaves;
        names.extend((0..steps).map(|i| circuit(rounds + 1, place(2 * i), place(2 * i + 1))));
    }
    names
}

fn rotating(n_leaves: u32, ports: u32, r: &Rotation) -> Result<BTreeMap<CircuitName, Circuit>, TopologyError> {
    let rounds = n_rounds(n_leaves);
    if rounds < 2 {
        return Err(bad(
            "topology.circuits",
            "rotate",
            "two leaves have one circuit, which cannot rotate; write \"mesh\"",
        ));
    }
    let first_ps = r.every_ps / u64::from(ports);
    if first_ps >= r.until_ps {
        let problem = format!(
            "nothing rotates: {ports} circuit switches change one after the other, the first after {} us, and `until` comes before; make it later",
            first_ps as f64 / 1e6
        );
        return Err(bad("topology.circuits", "rotate", problem));
    }
    let turns_of_one = r.until_ps.div_ceil(r.every_ps);
    let spans = turns_of_one.saturating_mul(u64::from(ports)).saturating_mul(u64::from(n_leaves / 2));
    if spans > MAX_DARK_SPANS as u64 {
        let problem = format!(
            "about {spans} circuits change in all, at most {MAX_DARK_SPANS} are supported; rotate less often or end earlier"
        );
        return Err(bad("topology.circuits", "rotate", problem));
    }
    let mut circuits: BTreeMap<CircuitName, Circuit> = BTreeMap::new();
    for j in 0..ports {
        // Changes of the circuit switches are spread over the time that each keeps its pairs.
        let offset_ps = r.first_change_ps(ports, j);
        let mut from_ps = 0;
        for turn in 0.. {
            let next_ps = offset_ps + turn * r.every_ps;
            let end = (next_ps < r.until_ps).then_some((next_ps, r.drain_ps));
            let number = (u64::from(first_pairs(n_leaves, ports, j)) + turn) % u64::from(rounds);
            for (a, b) in pairs(n_leaves, number as u32) {
                circuits.entry((j, a, b)).or_default().lit.push(LitSpan { from_ps, end });
            }
            if end.is_none() {
                break;
            }
            from_ps = next_ps + r.dark_ps;
        }
    }
    Ok(circuits)
}

fn patterned(
    n_leaves: u32,
    ports: u32,
    patterns: &[CircuitPattern],
) -> Result<BTreeMap<CircuitName, Circuit>, TopologyError> {
    let mut circuits: BTreeMap<CircuitName, Circuit> = BTreeMap::new();
    let mut before: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for pattern in patterns {
        let counts = counts(n_leaves, ports, pattern)?;
        let up_ps = pattern.since_ps + pattern.dark_ps;
        for (&(a, b), &n) in &before {
            let stay = counts.get(&(a, b)).copied().unwrap_or(0);
            for i in stay.min(n)..n {
                let circuit = circuits.get_mut(&(i, a, b)).expect("it was there in the pattern before");
                let last = circuit.lit.last_mut().expect("it has been lit");
                last.end = Some((pattern.since_ps, pattern.drain_ps));
            }
        }
        for (&(a, b), &n) in &counts {
            let had = before.get(&(a, b)).copied().unwrap_or(0);
            for i in had.min(n)..n {
                circuits.entry((i, a, b)).or_default().lit.push(LitSpan { from_ps: up_ps, end: None });
            }
        }
        before = counts;
    }
    Ok(circuits)
}

/// How many circuits each pair of leaves has in a pattern.
fn counts(n_leaves: u32, ports: u32, pattern: &CircuitPattern) -> Result<BTreeMap<(u32, u32), u32>, TopologyError> {
    let mut counts: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut used = vec![0u64; n_leaves as usize];
    for &(a, b, n) in &pattern.circuits {
        let shown = format!("leaf{a} leaf{b}");
        if a.max(b) >= n_leaves {
            let last = n_leaves - 1;
            return Err(bad("topology.circuits", shown, format!("there are leaves leaf0 to leaf{last}")));
        }
        if a == b {
            return Err(bad("topology.circuits", shown, "a circuit joins two different leaves"));
        }
        *counts.entry((a.min(b), a.max(b))).or_default() += n;
        for leaf in [a, b] {
            used[leaf as usize] += u64::from(n);
        }
    }
    match used.iter().position(|&used| used > u64::from(ports)) {
        None => Ok(counts),
        Some(leaf) => {
            let when = if pattern.since_ps == 0 { "" } else { " from some time on" };
            let problem = format!("it has {} circuits{when}, and {ports} ports (topology.spines)", used[leaf]);
            Err(bad("topology.circuits", format!("leaf{leaf}"), problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn fabric(hosts: u32) -> Fabric {
        Fabric::uniform(hosts, 1, 1)
    }

    fn optical(ports: u32, plan: CircuitPlan) -> Optical {
        Optical { hosts_per_leaf: 2, ports, oversubscription: 1000, plan }
    }

    /// Leaves at the ends of the circuits that are up at a time.
    fn lit(net: &Network, hosts: u32, time_ps: u64) -> Vec<(u32, u32)> {
        let is_dark = |link: u32| {
            net.dark.iter().any(|d| {
                d.link == link && d.down_ps.is_none_or(|t| t <= time_ps) && d.up_ps.is_none_or(|t| time_ps < t)
            })
        };
        let circuits = (0u32..).zip(&net.links).skip(hosts as usize).filter(|(link, _)| !is_dark(*link));
        circuits.map(|(_, link)| (link.a - hosts, link.b - hosts)).collect()
    }

    fn most_of_a_leaf(lit: &[(u32, u32)], n_leaves: u32) -> usize {
        (0..n_leaves).map(|leaf| lit.iter().filter(|&&(a, b)| a == leaf || b == leaf).count()).max().unwrap()
    }

    #[test]
    fn each_leaf_meets_each_other_one_once() {
        for n in 2..20 {
            let all: Vec<(u32, u32)> = (0..n_rounds(n)).flat_map(|m| pairs(n, m)).collect();
            assert_eq!(all.len() as u32, n * (n - 1) / 2);
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
            for m in 0..n_rounds(n) {
                assert_eq!(most_of_a_leaf(&pairs(n, m), n), 1, "{n} leaves, pairs {m}");
                assert_eq!(pairs(n, m).len() as u32, n / 2);
            }
        }
    }

    #[test]
    fn a_mesh_has_all_ports_in_use_and_joins_all() {
        let shapes =
            [(4, 3), (8, 7), (8, 3), (16, 5), (8, 14), (7, 3), (3, 2), (5, 4), (5, 8), (5, 9), (7, 6), (9, 4), (25, 8)];
        for (leaves, ports) in shapes {
            let net = optical(ports, CircuitPlan::Mesh).build(&fabric(2 * leaves)).unwrap();
            let lit = lit(&net, 2 * leaves, 0);
            net.check_connected().unwrap();
            assert!(net.dark.is_empty() && lit.len() as u32 == ports * leaves / 2, "{leaves} {ports}: {lit:?}");
            assert_eq!(most_of_a_leaf(&lit, leaves), ports as usize);
            // No pair has two circuits more than another.
            let count = |a, b| lit.iter().filter(|&&pair| pair == (a, b)).count();
            let counts: BTreeSet<usize> = (0..leaves).flat_map(|b| (0..b).map(move |a| count(a, b))).collect();
            assert!(counts.last().unwrap() - counts.first().unwrap() <= 1, "{leaves} {ports}: {counts:?}");
        }
        // Full meshes have each pair as often.
        let net = optical(14, CircuitPlan::Mesh).build(&fabric(16)).unwrap();
        let mut twice = lit(&net, 16, 0);
        twice.sort_unstable();
        assert!(twice.chunks(2).all(|two| two[0] == two[1]) && twice.len() == 2 * 28, "{twice:?}");
        let why = optical(1, CircuitPlan::Mesh).build(&fabric(16)).unwrap_err().to_string();
        assert!(why.contains("topology.spines = 1") && why.contains("do not join 8 leaves"), "{why}");
        assert_eq!(optical(2, CircuitPlan::Mesh).build(&fabric(2)).unwrap().links.len(), 2, "one leaf");
    }

    #[test]
    fn circuits_rotate_through_all_pairs_one_switch_after_the_other() {
        let rotation = Rotation { every_ps: 90, dark_ps: 10, drain_ps: 5, until_ps: 630 };
        let net = optical(3, CircuitPlan::Rotate(rotation)).build(&fabric(16)).unwrap();
        let mut met = BTreeSet::new();
        for time_ps in 0..700 {
            let lit = lit(&net, 16, time_ps);
            assert!(most_of_a_leaf(&lit, 8) <= 3);
            // One of the three is dark in 10 of 30 ps.
            let changing = (30..630 + 10).contains(&time_ps) && time_ps % 30 < 10;
            assert_eq!(lit.len(), if changing && time_ps < 630 { 8 } else { 12 }, "{time_ps}");
            met.extend(lit);
        }
        assert_eq!(met.len(), 28);
        assert!(net.dark.iter().all(|d| d.down_ps.is_none() || d.drain_ps == 5));
        let why = optical(3, CircuitPlan::Rotate(rotation)).build(&fabric(4)).unwrap_err().to_string();
        assert!(why.contains("cannot rotate"), "{why}");
        let short = Rotation { until_ps: 30, ..rotation };
        let why = optical(3, CircuitPlan::Rotate(short)).build(&fabric(16)).unwrap_err().to_string();
        assert!(why.contains("nothing rotates"), "{why}");
        let long = Rotation { until_ps: 1_000_000_000, ..rotation };
        let why = optical(3, CircuitPlan::Rotate(long)).build(&fabric(16)).unwrap_err().to_string();
        assert!(why.contains("at most 65536"), "{why}");
    }

    #[test]
    fn patterns_follow_each_other_and_keep_what_they_share() {
        let patterns = vec![
            CircuitPattern { circuits: vec![(0, 1, 2), (2, 3, 2)], ..CircuitPattern::default() },
            CircuitPattern { since_ps: 100, dark_ps: 20, drain_ps: 7, circuits: vec![(1, 0, 1), (0, 2, 1), (3, 2, 1)] },
            CircuitPattern { since_ps: 200, dark_ps: 0, drain_ps: 0, circuits: vec![(0, 1, 2)] },
        ];
        let net = optical(2, CircuitPlan::Patterns(patterns)).build(&fabric(8)).unwrap();
        let sorted = |time_ps: u64| {
            let mut lit = lit(&net, 8, time_ps);
            lit.sort_unstable();
            lit
        };
        assert_eq!(sorted(0), [(0, 1), (0, 1), (2, 3), (2, 3)]);
        assert_eq!(sorted(100), [(0, 1), (2, 3)], "what both have stays");
        assert_eq!(sorted(120), [(0, 1), (0, 2), (2, 3)]);
        assert_eq!(sorted(200), [(0, 1), (0, 1)]);
        let drains: BTreeSet<(Option<u64>, u64)> = net.dark.iter().map(|d| (d.down_ps, d.drain_ps)).collect();
        assert_eq!(drains, BTreeSet::from([(None, 0), (Some(100), 7), (Some(200), 0)]));
    }

    #[test]
    fn patterns_that_cannot_be_say_why() {
        let plan = |circuits| CircuitPlan::Patterns(vec![CircuitPattern { circuits, ..CircuitPattern::default() }]);
        for (circuits, why) in [
            (vec![(0, 1, 3)], "leaf0: it has 3 circuits, and 2 ports"),
            (vec![(0, 1, 1), (1, 2, 1), (1, 3, 1)], "leaf1: it has 3 circuits, and 2 ports"),
            (vec![(0, 4, 1)], "there are leaves leaf0 to leaf3"),
            (vec![(2, 2, 1)], "two different leaves"),
        ] {
            let found = optical(2, plan(circuits)).build(&fabric(8)).unwrap_err().to_string();
            assert!(found.contains(why), "{found}");
        }
    }
}
