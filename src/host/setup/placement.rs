//! Chooses the GPUs of a network for several jobs.
//!
//! Layer: host. Knows servers and rails of the network, not what jobs do.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hyperfold_base::index_list::ranges;
use hyperfold_config::spec::{JobSection, PlacementChoice, mix};
use hyperfold_network::topology::Network;

/// Most GPUs that a message names one by one.
const NAMED_UP_TO: usize = 8;

/// A reason why jobs do not find the GPUs that they ask for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// A list names a GPU that there is not.
    #[error("`job.{job}.placement`: there is no GPU {gpu}; the network has {has}, counted from 0")]
    NoGpu {
        /// Name of the job.
        job: String,
        /// GPU that the list names.
        gpu: u32,
        /// GPUs of the network.
        has: u32,
    },
    /// Two jobs want the same GPUs.
    #[error(
        "jobs `{a}` and `{b}` share GPUs: {gpus}; {free} of {has} GPUs are free; a GPU has one job, and traffic beside it with background = true"
    )]
    Taken {
        /// Name of one job.
        a: String,
        /// Name of the other job.
        b: String,
        /// The GPUs, as text.
        gpus: String,
        /// GPUs that are free.
        free: usize,
        /// GPUs of the network.
        has: usize,
    },
    /// Too few GPUs are free for a job.
    #[error(
        "job `{job}` needs {needs} GPUs, but {free} of {has} are free; make jobs smaller, or the network larger with cluster.gpus"
    )]
    TooFew {
        /// Name of the job.
        job: String,
        /// GPUs that it needs.
        needs: u32,
        /// GPUs that are free.
        free: usize,
        /// GPUs of the network.
        has: usize,
    },
}

/// A job that waits for its GPUs, and their number.
pub(crate) struct Wanted<'a> {
    pub job: &'a JobSection,
    pub gpus: u32,
}

/// Returns the GPUs of each job, in the order of its ranks. Jobs that list their GPUs choose first, then the others in their order; background jobs choose
/// last.
///
/// # Errors
/// Too few GPUs are free, or a list names a GPU that does not exist or is taken.
pub(crate) fn place(jobs: &[Wanted], net: &Network) -> Result<Vec<Vec<u32>>, PlacementError> {
    let all = Gpus::of(net);
    let mut free = vec![true; net.ranks.len()];
    let mut owner: Vec<Option<usize>> = vec![None; net.ranks.len()];
    let mut placed: Vec<Vec<u32>> = vec![Vec::new(); jobs.len()];
    let by_list = |j: &usize| matches!(jobs[*j].job.placement, PlacementChoice::List(_));
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|j| (jobs[*j].job.background, !by_list(j)));
    for j in order {
        let Wanted { job, gpus } = &jobs[j];
        // A background job shares GPUs and takes none.
        let open = if job.background { vec![true; free.len()] } else { free.clone() };
        let chosen = match &job.placement {
            PlacementChoice::List(list) => {
                if let Some(&gpu) = list.iter().find(|gpu| **gpu as usize >= free.len()) {
                    return Err(PlacementError::NoGpu { job: job.name.to_string(), gpu, has: free.len() as u32 });
                }
                if let Some(&gpu) = list.iter().find(|gpu| !open[**gpu as usize]) {
                    let other = owner[gpu as usize].expect("what is taken has an owner");
                    let both: Vec<u32> =
                        list.iter().copied().filter(|gpu| owner[*gpu as usize] == Some(other)).collect();
                    return Err(PlacementError::Taken {
                        a: jobs[other].job.name.to_string(),
                        b: job.name.to_string(),
                        gpus: named(&both),
                        free: free.iter().filter(|f| **f).count(),
                        has: free.len(),
                    });
                }
                list.clone()
            }
            choice => {
                let n_free = open.iter().filter(|f| **f).count();
                if n_free < *gpus as usize {
                    let (job, has) = (job.name.to_string(), free.len());
                    return Err(PlacementError::TooFew { job, needs: *gpus, free: n_free, has });
                }
                let mut chosen = all.choose(choice, *gpus as usize, &open, job.placement_seed());
                // Ranks are numbered by server, as launchers do.
                chosen.sort_unstable();
                chosen
            }
        };
        if !job.background {
            for &gpu in &chosen {
                (free[gpu as usize], owner[gpu as usize]) = (false, Some(j));
            }
        }
        placed[j] = chosen;
    }
    Ok(placed)
}

/// GPUs by their positions in the network.
struct Gpus {
    /// GPUs of each server, ascending.
    servers: Vec<Vec<u32>>,
    /// GPUs of each rail, by server: those at the same index within their servers.
    rails: Vec<Vec<u32>>,
}

impl Gpus {
    fn of(net: &Network) -> Gpus {
        let mut by_server: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (gpu, &host) in (0u32..).zip(&net.ranks) {
            by_server.entry(net.nodes[host as usize].server).or_default().push(gpu);
        }
        let servers: Vec<Vec<u32>> = by_server.into_values().collect();
        let n_rails = servers.iter().map(Vec::len).max().unwrap_or(0);
        let rail = |place: usize| servers.iter().filter_map(|gpus| gpus.get(place).copied()).collect();
        Gpus { rails: (0..n_rails).map(rail).collect(), servers }
    }

    /// Returns `n` of the open GPUs. PRECONDITION: `n` GPUs are open.
    fn choose(&self, choice: &PlacementChoice, n: usize, open: &[bool], seed: u64) -> Vec<u32> {
        let open_of = |gpus: &[u32]| gpus.iter().copied().filter(|gpu| open[*gpu as usize]).collect::<Vec<u32>>();
        let mut chosen = Vec::with_capacity(n);
        match choice {
            PlacementChoice::Packed => return self.packed(n, open),
            PlacementChoice::Spread => {
                let servers: Vec<Vec<u32>> = self.servers.iter().map(|gpus| open_of(gpus)).collect();
                for turn in 0.. {
                    chosen.extend(servers.iter().filter_map(|gpus| gpus.get(turn)));
                    if chosen.len() >= n {
                        break;
                    }
                }
            }
            PlacementChoice::Rail => {
                let mut rails: Vec<Vec<u32>> = self.rails.iter().map(|gpus| open_of(gpus)).collect();
                rails.sort_by_key(|gpus| Reverse(gpus.len()));
                chosen.extend(rails.into_iter().flatten());
            }
            PlacementChoice::Random => {
                chosen = (0..open.len() as u32).filter(|gpu| open[*gpu as usize]).collect();
                chosen.sort_by_key(|gpu| (mix(seed, u64::from(*gpu), 0), *gpu));
            }
            PlacementChoice::List(list) => chosen.extend(list),
        }
        chosen.truncate(n);
        chosen
    }

    /// Chooses as few servers as possible: whole servers first, the rest where it fits best.
    fn packed(&self, n: usize, open: &[bool]) -> Vec<u32> {
        let mut servers: Vec<(usize, Vec<u32>)> = Vec::with_capacity(self.servers.len());
        for gpus in &self.servers {
            servers.push((gpus.len(), gpus.iter().copied().filter(|gpu| open[*gpu as usize]).collect()));
        }
        let mut chosen: Vec<u32> = Vec::with_capacity(n);
        for (size, gpus) in &mut servers {
            if gpus.len() == *size && *size <= n - chosen.len() {
                chosen.append(gpus);
            }
        }
        while chosen.len() < n {
            let rest = n - chosen.len();
            let fits = servers.iter_mut().filter(|(_, gpus)| gpus.len() >= rest).min_by_key(|(_, gpus)| gpus.len());
            let (_, gpus) = match fits {
                Some(server) => server,
                // No server fits: the first of those with most open GPUs.
                None => servers.iter_mut().rev().max_by_key(|(_, gpus)| gpus.len()).expect("so many GPUs are open"),
            };
            let take = rest.min(gpus.len());
            chosen.extend(gpus.drain(..take));
        }
        chosen
    }
}

/// Formats GPUs in the order of ranks, with ranges as `0-7`.
pub(crate) fn gpu_list(gpus: &[u32]) -> String {
    ranges(gpus.iter().map(|&gpu| gpu.into())).join(",")
}

/// Formats the first of some GPUs, for a message.
fn named(gpus: &[u32]) -> String {
    let more = gpus.len().saturating_sub(NAMED_UP_TO);
    let first = gpu_list(&gpus[..gpus.len() - more]);
    if more > 0 { format!("{first} and {more} more") } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_network::topology::{Node, NodeKind};

    /// Returns four servers of four GPUs.
    fn net() -> Network {
        let host = |id: u32| Node { kind: NodeKind::Host, id, server: id / 4 };
        Network { nodes: (0..16).map(host).collect(), ranks: (0..16).collect(), ..Network::default() }
    }

    /// Chooses among all GPUs but `taken`.
    fn chosen(choice: &PlacementChoice, n: usize, taken: &[u32]) -> String {
        let open: Vec<bool> = (0..16).map(|gpu| !taken.contains(&gpu)).collect();
        let mut gpus = Gpus::of(&net()).choose(choice, n, &open, 7);
        gpus.sort_unstable();
        gpu_list(&gpus)
    }

    #[test]
    fn packed_takes_as_few_servers_as_possible() {
        assert_eq!(chosen(&PlacementChoice::Packed, 4, &[0]), "4-7");
        assert_eq!(chosen(&PlacementChoice::Packed, 6, &[0]), "1-2,4-7");
        assert_eq!(chosen(&PlacementChoice::Packed, 2, &[0, 4, 5]), "6-7");
        assert_eq!(chosen(&PlacementChoice::Packed, 5, &[0, 4, 5, 8, 12]), "1-3,6-7");
    }

    #[test]
    fn spread_and_rails_go_across_servers() {
        assert_eq!(chosen(&PlacementChoice::Spread, 4, &[]), "0,4,8,12");
        assert_eq!(chosen(&PlacementChoice::Spread, 6, &[0]), "1-2,4-5,8,12");
        assert_eq!(chosen(&PlacementChoice::Rail, 4, &[0]), "1,5,9,13");
        assert_eq!(chosen(&PlacementChoice::Rail, 6, &[]), "0-1,4-5,8,12");
    }

    #[test]
    fn chance_is_the_seeds() {
        let one = chosen(&PlacementChoice::Random, 8, &[0, 1]);
        assert_eq!(one, chosen(&PlacementChoice::Random, 8, &[0, 1]));
        assert!(one != "2-9" && !one.starts_with("0"), "{one}");
    }

    #[test]
    fn lists_keep_the_order_of_ranks() {
        assert_eq!(gpu_list(&[8, 9, 10, 0, 2]), "8-10,0,2");
        assert_eq!(named(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), "0-7 and 2 more");
    }
}
