//! The exchange of tokens with experts by kernels that send without NCCL: how many bytes go to each server, to each GPU, and what that takes.
//!
//! Layer: collective. It knows how many experts a token visits and how its choice is bounded; which tokens a rank has, it does not know.
//!
//! # How many servers a token goes to
//!
//! A token visits `top_k` different experts, each set of them as likely as another. A server that holds `m` of `E` experts has none of them with the probability
//! of the hypergeometric distribution, `(1 - m / E) (1 - m / (E - 1)) ... (1 - m / (E - top_k + 1))`. So does a GPU. A router may first choose `top_groups`
//! of `groups` equal groups of experts (node-limited routing, arXiv 2412.19437, Section 2.1.2). Then the experts are drawn from those groups alone.

/// Kernels that carry tokens to experts and results back, in place of NCCL's all-to-all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExpertDispatcher {
    /// DeepEP's normal kernels, version 1: a token crosses the network once for each server, by rail, and NVLink spreads it there
    /// (`csrc/kernels/internode.cu`).
    DeepEp,
    /// The kernels of DeepEP's version 2: the same messages, without the first version's bound.
    DeepEpV2,
    /// DeepEP's low-latency kernels: a message for each token and expert, straight to the GPU that holds it. Nothing is forwarded
    /// (`csrc/kernels/internode_ll.cu`).
    DeepEpLowLatency,
}

/// Which way tokens go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExpertDirection {
    /// Tokens go to experts, or gradients of the sums back to them.
    Dispatch,
    /// Results of experts go back and are summed, first in the experts' server.
    Combine,
}

/// One exchange of tokens with experts. Its bytes are counted as those of an all-to-all: what a member has to send if each token is counted once for each of
/// its experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExpertExchange {
    /// Kernels that carry it out.
    pub dispatcher: ExpertDispatcher,
    /// Which way tokens go.
    pub direction: ExpertDirection,
    /// Number of routed experts, spread evenly over the members in their order.
    pub experts: u32,
    /// Number of experts that a token visits.
    pub top_k: u32,
    /// Number of groups of experts from which a token's are chosen; 1 if there are none.
    pub groups: u32,
    /// Number of these groups that a token's experts may be in.
    pub top_groups: u32,
}

/// Probability that a token that visits `top_k` of `experts` experts visits at least one of `held` experts. A fraction of an expert stands for one that is
/// loaded less.
fn any_of(held: f64, experts: f64, top_k: u32) -> f64 {
    let none = (0..top_k).fold(1.0, |none, i| none * (1.0 - held / (experts - f64::from(i))).max(0.0));
    1.0 - none
}

/// Number of ways to choose `k` of `n`.
fn ways(n: u32, k: u32) -> f64 {
    if k > n { 0.0 } else { (0..k).fold(1.0, |ways, i| ways * f64::from(n - i) / f64::from(i + 1)) }
}

impl ExpertExchange {
    /// Whether a token crosses the network once for each server, however many of its experts are there.
    pub fn is_once_a_server(&self) -> bool {
        self.dispatcher != ExpertDispatcher::DeepEpLowLatency
    }

    /// Probability that a token goes to a set of neighbouring members. They are `span` of all members, from 0 to 1, and hold as many experts as `held` evenly
    /// loaded ones.
    pub fn probability(&self, held: f64, span: f64) -> f64 {
        if span >= 1.0 {
            return 1.0;
        }
        let chosen = f64::from(self.top_groups) / f64::from(self.groups.max(1));
        let candidates = f64::from(self.experts) * chosen;
        // Number of groups that the set holds. Below one it is a part of a group.
        let groups = span * f64::from(self.groups);
        if groups <= 1.0 {
            return chosen * any_of(held, candidates, self.top_k);
        }
        // A set of whole groups: some of them are among the chosen ones.
        let of_whole = |whole: u32| -> f64 {
            let several = |n: u32| {
                let draws = ways(whole, n) * ways(self.groups - whole, self.top_groups - n)
                    / ways(self.groups, self.top_groups);
                draws * any_of(held * f64::from(n) / f64::from(whole), candidates, self.top_k)
            };
            (1..=whole.min(self.top_groups)).map(several).sum()
        };
        let fewer = (libm::floor(groups) as u32).clamp(1, self.groups);
        let part = groups - f64::from(fewer);
        let low = of_whole(fewer);
        if part <= 0.0 || fewer == self.groups { low } else { low + part * (of_whole(fewer + 1) - low) }
    }

    /// Bytes of the copies of `bytes` that count once: tokens, each counted once for a set that it goes to with a probability.
    pub fn once_bytes(&self, bytes: u64, probability: f64) -> u64 {
        (bytes as f64 / f64::from(self.top_k.max(1)) * probability) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(groups: u32, top_groups: u32) -> ExpertExchange {
        ExpertExchange {
            dispatcher: ExpertDispatcher::DeepEp,
            direction: ExpertDirection::Dispatch,
            experts: 256,
            top_k: 8,
            groups,
            top_groups,
        }
    }

    /// The share of draws that meet `span` of the experts, over many draws of a small generator.
    fn drawn(e: &ExpertExchange, span: f64) -> f64 {
        let mut state = 1u64;
        let mut below = |n: u32| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) % u64::from(n)) as u32
        };
        let mut draw = |n: u32, k: u32| -> Vec<u32> {
            let mut all: Vec<u32> = (0..n).collect();
            (0..k).map(|_| all.swap_remove(below(all.len() as u32) as usize)).collect()
        };
        let draws = 20_000;
        let (per_group, limit) = (e.experts / e.groups, (span * f64::from(e.experts)) as u32);
        let met = (0..draws).filter(|_| {
            let groups = draw(e.groups, e.top_groups);
            draw(per_group * e.top_groups, e.top_k)
                .iter()
                .any(|i| groups[(i / per_group) as usize] * per_group + i % per_group < limit)
        });
        met.count() as f64 / f64::from(draws)
    }

    #[test]
    fn probabilities_are_those_of_draws() {
        for (groups, top_groups) in [(1, 1), (8, 4), (8, 8), (4, 3)] {
            let e = exchange(groups, top_groups);
            for span in [1.0 / 64.0, 1.0 / 16.0, 0.125, 0.25, 0.5] {
                let told = e.probability(span * 256.0, span);
                let seen = drawn(&e, span);
                assert!((told - seen).abs() < 0.012, "{groups} {top_groups} {span}: {told} {seen}");
            }
            assert_eq!(e.probability(256.0, 1.0), 1.0);
        }
    }

    #[test]
    fn one_expert_for_each_token_leaves_nothing_to_join() {
        let e = ExpertExchange { top_k: 1, ..exchange(1, 1) };
        assert!((e.probability(32.0, 0.125) - 0.125).abs() < 1e-12);
        assert_eq!(e.once_bytes(8_000, 0.125), 1_000);
    }
}
