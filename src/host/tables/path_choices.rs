//! The paths of data as a graph of choices, from which switches of adaptive routing read where a packet may go.
//!
//! A choice is a number `n` in the column `paths`, followed by `n` pairs: an egress port of the switch that chooses, and the place of the choice at the next
//! switch. At the end of a path is a choice of `n = 0`. Flows with the same way ahead of them share its choices. Where ports are weighed and their weights differ,
//! `n` has the bit [`WEIGHED_CHOICE`], and `n` weights follow the pairs: numbers of paths that begin with the ports, or sums of their rates. With flowlets the number
//! of the flow's flowlet at the switch comes last, and flows share no choices.

use std::collections::HashMap;

use hyperfold_columns::{FLOWLET_WORDS, FlowIdx, OwnedTables, PortIdx, SwitchIdx, WEIGHED_CHOICE};
use hyperfold_network::transport::PortWeights;

/// What a choice is written as: its pairs, and its weights, if these differ.
type WrittenChoice = (Vec<(PortIdx, u32)>, Vec<u32>);

/// The choices that an experiment's tables have so far, by their pairs and by their weights, if these differ.
pub(super) struct PathChoices {
    weights: PortWeights,
    places: HashMap<WrittenChoice, u32>,
    flowlets: Option<Flowlets>,
}

/// The flowlets that an experiment's switches keep apart.
#[derive(Default)]
struct Flowlets {
    /// The flow whose paths are added.
    flow: Option<FlowIdx>,
    /// The number of each flow's flowlet at each switch that chooses.
    numbers: HashMap<(FlowIdx, SwitchIdx), u32>,
}

impl PathChoices {
    /// No choices yet. `weights`: what ports weigh. `has_flowlets`: whether switches route by flowlets.
    pub(super) fn new(weights: PortWeights, has_flowlets: bool) -> Self {
        PathChoices { weights, places: HashMap::new(), flowlets: has_flowlets.then(Flowlets::default) }
    }

    /// Number of shared words for flowlets.
    pub(super) fn flowlet_words(&self) -> usize {
        self.flowlets.as_ref().map_or(0, |flowlets| flowlets.numbers.len() * FLOWLET_WORDS as usize)
    }

    /// Adds the paths of `flow`, each the egress ports of the switches that it crosses; all have the same length. Returns the place of the first choice.
    pub(super) fn add(&mut self, t: &mut OwnedTables, flow: FlowIdx, paths: &[Vec<PortIdx>]) -> u32 {
        if let Some(flowlets) = &mut self.flowlets
            && flowlets.flow.replace(flow) != Some(flow)
        {
            self.places.clear();
        }
        let all: Vec<&[PortIdx]> = paths.iter().map(Vec::as_slice).collect();
        self.choice(t, &all)
    }

    /// Returns the place of the choice among the first ports of `paths`.
    fn choice(&mut self, t: &mut OwnedTables, paths: &[&[PortIdx]]) -> u32 {
        let mut ways: Vec<(PortIdx, Vec<&[PortIdx]>)> = Vec::new();
        for &path in paths {
            let Some((&port, rest)) = path.split_first() else { continue };
            match ways.iter_mut().find(|(known, _)| *known == port) {
                Some((_, rests)) => rests.push(rest),
                None => ways.push((port, vec![rest])),
            }
        }
        let pairs: Vec<(PortIdx, u32)> = ways.iter().map(|(port, rests)| (*port, self.choice(t, rests))).collect();
        let mut weights: Vec<u32> = match self.weights {
            PortWeights::None => Vec::new(),
            PortWeights::Paths => ways.iter().map(|(_, rests)| rests.len() as u32).collect(),
            PortWeights::Rates => weights_by_rate(t, &ways),
        };
        if weights.iter().all(|&weight| weight == weights[0]) {
            weights.clear();
        }
        let key = (pairs, weights);
        if let Some(&place) = self.places.get(&key) {
            return place;
        }
        let (pairs, weights) = &key;
        let place = t.paths.len() as u32;
        t.paths.push(PortIdx(pairs.len() as u32 | if weights.is_empty() { 0 } else { WEIGHED_CHOICE }));
        t.paths.extend(pairs.iter().flat_map(|&(port, next)| [port, PortIdx(next)]));
        t.paths.extend(weights.iter().map(|&weight| PortIdx(weight)));
        if let [(port, _), _, ..] = pairs[..] {
            let switch = t.ports[port].switch_idx;
            t.switches[switch].chooses = 1;
            if let Some(Flowlets { flow: Some(flow), numbers }) = &mut self.flowlets {
                let next = numbers.len() as u32;
                t.paths.push(PortIdx(*numbers.entry((*flow, switch)).or_insert(next)));
            }
        }
        if pairs.is_empty() {
            // Whoever looks at the end of a path may read what would be the first port.
            t.paths.push(PortIdx::NONE);
        }
        self.places.insert(key, place);
        place
    }
}

/// Weights of ports by the rates of the paths that begin with them, each that of its slowest port. They have no common divisor, but where their sum would not fit
/// they are rounded down, to 1 at least.
fn weights_by_rate(t: &OwnedTables, ways: &[(PortIdx, Vec<&[PortIdx]>)]) -> Vec<u32> {
    let rate = |port: PortIdx| t.ports[port].rate;
    let slowest = |first: PortIdx, rest: &[PortIdx]| rest.iter().map(|&port| rate(port)).fold(rate(first), u64::min);
    let sum_bps = |(port, rests): &(PortIdx, Vec<&[PortIdx]>)| rests.iter().map(|rest| slowest(*port, rest)).sum();
    let sums: Vec<u64> = ways.iter().map(sum_bps).collect();
    let divisor = sums.iter().copied().fold(0, greatest_divisor).max(1);
    let sums: Vec<u64> = sums.iter().map(|sum| sum / divisor).collect();
    let excess = sums.iter().sum::<u64>() >> LARGEST_SUM_BITS;
    let shift = u64::BITS - excess.leading_zeros();
    sums.iter().map(|sum| (sum >> shift).max(1) as u32).collect()
}

/// The weights of a choice add up to less than 2 to this power, so that a draw of 32 bits is fair enough among them.
const LARGEST_SUM_BITS: u32 = 20;

/// The greatest common divisor; with 0 the other number.
fn greatest_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;
    use hyperfold_columns::{Port, Switch, SwitchIdx};

    const FLOW: FlowIdx = FlowIdx(0);

    /// Tables with `n` ports, two at each switch.
    fn tables(n: u32) -> OwnedTables {
        OwnedTables {
            switches: vec![Switch::zeroed(); n as usize / 2],
            ports: (0..n).map(|port| Port { switch_idx: SwitchIdx(port / 2), ..Port::zeroed() }).collect(),
            ..OwnedTables::default()
        }
    }

    /// The paths that lead on from the choice at `place`.
    fn paths_from(t: &OwnedTables, place: u32) -> Vec<Vec<u32>> {
        let word = |k: u32| t.paths[k as usize].0;
        if word(place) == 0 {
            return vec![Vec::new()];
        }
        let pairs = (0..word(place)).map(|k| (word(place + 1 + 2 * k), word(place + 2 + 2 * k)));
        pairs
            .flat_map(|(port, next)| {
                paths_from(t, next).into_iter().map(move |rest| [vec![port], rest].concat()).collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn flows_with_the_same_way_ahead_share_its_choices() {
        let mut t = tables(12);
        let mut choices = PathChoices::new(PortWeights::None, false);
        let path = |ports: [u32; 3]| ports.map(PortIdx).to_vec();
        let first = choices.add(&mut t, FLOW, &[path([0, 4, 8]), path([1, 6, 8])]);
        assert_eq!(paths_from(&t, first), [[0, 4, 8], [1, 6, 8]]);
        let words = t.paths.len();
        // Another flow to the same host, from another switch.
        let second = choices.add(&mut t, FLOW, &[path([2, 4, 8]), path([3, 6, 8])]);
        assert_eq!(paths_from(&t, second), [[2, 4, 8], [3, 6, 8]]);
        assert_eq!(t.paths.len() - words, 5, "one choice of two ports");
        assert_eq!(choices.add(&mut t, FLOW, &[path([0, 4, 8]), path([1, 6, 8])]), first);
        let chooses: Vec<u32> = t.switches.iter().map(|s| s.chooses).collect();
        assert_eq!(chooses, [1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn ports_that_lead_to_more_paths_weigh_more() {
        let ways = [[0, 2, 8], [0, 3, 8], [1, 4, 8]].map(|ports| ports.map(PortIdx).to_vec());
        let equal_ways = [[0, 2, 8], [1, 4, 8]].map(|ports| ports.map(PortIdx).to_vec());
        let mut t = tables(12);
        let mut choices = PathChoices::new(PortWeights::Paths, false);
        let word = |t: &OwnedTables, k: u32| t.paths[k as usize].0;
        let first = choices.add(&mut t, FLOW, &ways);
        assert_eq!([word(&t, first), word(&t, first + 5), word(&t, first + 6)], [2 | WEIGHED_CHOICE, 2, 1]);
        let words = t.paths.len();
        let equal = choices.add(&mut t, FLOW, &equal_ways);
        assert_eq!(word(&t, equal), 2, "no weights where they are alike");
        assert_eq!(t.paths.len() - words, 5 + 3, "a choice of two ports, and of one at the next switch");
        let mut t = tables(12);
        let first = PathChoices::new(PortWeights::None, false).add(&mut t, FLOW, &ways);
        assert_eq!(word(&t, first), 2);
    }

    #[test]
    fn ports_that_lead_to_faster_paths_weigh_more() {
        let ways = [[0, 2, 8], [0, 3, 8], [1, 4, 8]].map(|ports| ports.map(PortIdx).to_vec());
        let weights = |rates: [u64; 12]| {
            let mut t = tables(12);
            t.ports.iter_mut().zip(rates).for_each(|(port, rate)| port.rate = rate * 1_000_000);
            let first = PathChoices::new(PortWeights::Rates, false).add(&mut t, FLOW, &ways);
            let word = |k: u32| t.paths[k as usize].0;
            (word(first) & WEIGHED_CHOICE != 0).then(|| [word(first + 5), word(first + 6)])
        };
        let even = [100; 12];
        assert_eq!(weights(even), Some([2, 1]), "as many as paths where rates are alike");
        let slow = |ports: &[usize], rate: u64| {
            let mut rates = even;
            ports.iter().for_each(|&port| rates[port] = rate);
            rates
        };
        assert_eq!(weights(slow(&[3], 25)), Some([5, 4]), "125 and 100");
        assert_eq!(weights(slow(&[0], 50)), None, "two paths of 50 and one of 100");
        assert_eq!(weights(slow(&[8], 10)), Some([2, 1]), "all paths are slow further on");
        let primes = [999_983, 999_979, 999_961, 999_959, 999_953, 999_931, 1, 1, 1_000_003, 1, 1, 1];
        let [first, second] = weights(primes).expect("they differ");
        assert!(first.abs_diff(2 * second) < 20 && first > 1 << 18, "{first} {second}");
    }

    #[test]
    fn sampled_paths_lead_on_as_they_were_sampled() {
        let mut t = tables(12);
        let sampled = [[0, 2, 8], [1, 4, 8], [0, 3, 8]].map(|ports| ports.map(PortIdx).to_vec());
        let first = PathChoices::new(PortWeights::None, false).add(&mut t, FLOW, &sampled);
        assert_eq!(paths_from(&t, first), [[0, 2, 8], [0, 3, 8], [1, 4, 8]]);
    }

    #[test]
    fn each_flow_has_a_flowlet_at_each_switch_that_chooses() {
        let mut t = tables(12);
        let mut choices = PathChoices::new(PortWeights::None, true);
        let ways = [[0, 2, 8], [0, 3, 8], [1, 4, 8]].map(|ports| ports.map(PortIdx).to_vec());
        let first = choices.add(&mut t, FLOW, &ways);
        let word = |t: &OwnedTables, k: u32| t.paths[k as usize].0;
        // Two ports at switch 0, and behind the first of them two at switch 1, which was numbered first.
        assert_eq!([word(&t, first), word(&t, first + 5)], [2, 1]);
        assert_eq!(word(&t, word(&t, first + 2) + 5), 0);
        let second = choices.add(&mut t, FlowIdx(1), &ways);
        assert_eq!([second > first, word(&t, second + 5) == 3], [true; 2], "flows share nothing");
        assert_eq!(choices.flowlet_words(), 4 * FLOWLET_WORDS as usize);
        // Other paths of a flow go on with its flowlets.
        let again = choices.add(&mut t, FLOW, &ways[1..]);
        assert_eq!(word(&t, again + 5), 1);
    }
}
