//! The coordinates of ranks, and the groups that follow from them.
//!
//! Layer: workload. Ranks are numbered by `Layout::order`, fastest dimension first. As in Megatron, experts are spread over the data- and context-parallel
//! ranks. Within a pipeline stage and tensor-parallel index, the `dp * cp` ranks in the order's sequence form runs of `ep` ranks that share out the experts.
//! The runs hold copies of each other. If experts are folded over tensor-parallel ranks (`Layout::folded_experts`), these are `tp * dp * cp` ranks,
//! tensor-parallel ones first.

use super::error::TrainingError;
use crate::model::Layout;
use crate::workload::program::{Dim, Group};

/// The position of a rank in each dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Coords {
    /// Index among the tensor-parallel ranks.
    pub tp: u32,
    /// Index among the context-parallel ranks.
    pub cp: u32,
    /// Index among the data-parallel ranks.
    pub dp: u32,
    /// Pipeline stage that it belongs to.
    pub pp: u32,
    /// Position among the `dp * cp` ranks of its stage and tensor-parallel index.
    pub data: u32,
}

/// The numbering of a layout's ranks.
#[derive(Clone, Debug)]
pub struct RankPlacement {
    /// (dimension, degree), fastest first, without `ep`.
    order: Vec<(Dim, u32)>,
    degrees: [u32; 4],
    /// Degree of expert parallelism: ranks that share experts.
    pub ep: u32,
    /// Whether experts are also spread over tensor-parallel ranks.
    folded: bool,
    /// Number of ranks that share one copy under hybrid sharding; 1 if sharding is not hybrid.
    shards: u32,
    /// Whether each pipeline rank holds the same layers as the mirrored one, so that both sum their gradients.
    mirrored: bool,
    /// Degrees of the ranks that agree on FP8's scaling factors: tensor-, context- and data-parallel ones; 1 if none do.
    scaling: [u32; 3],
}

/// The purpose of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// Communication of tensor-parallel ranks.
    Tensor,
    /// Communication of context-parallel ranks.
    Context,
    /// Gradients of parameters that all `dp * cp` ranks copy.
    Data,
    /// Hybrid sharding: ranks that share one copy.
    Shard,
    /// Hybrid sharding: ranks that hold the same shard.
    Replica,
    /// Ranks among which experts are spread.
    Expert,
    /// Gradients of experts.
    ExpertData,
    /// Stages of a pipeline.
    Pipeline,
    /// First and last stage, which share the embedding's weights.
    Embedding,
    /// All tensor- and pipeline-parallel ranks that hold one copy of the model.
    Model,
    /// All ranks.
    World,
    /// Ranks of a pipeline stage that agree on FP8's scaling factors.
    Scaling,
}

impl Purpose {
    /// All purposes. Only the last has ranks without a group, so the others have the same slots on all ranks.
    pub const ALL: [Purpose; 12] = [
        Purpose::Tensor,
        Purpose::Context,
        Purpose::Data,
        Purpose::Expert,
        Purpose::ExpertData,
        Purpose::Pipeline,
        Purpose::Model,
        Purpose::World,
        Purpose::Shard,
        Purpose::Replica,
        Purpose::Scaling,
        Purpose::Embedding,
    ];

    /// The dimension that the communication's time is counted in.
    pub const fn dim(self) -> Dim {
        match self {
            Purpose::Tensor => Dim::Tp,
            Purpose::Context => Dim::Cp,
            Purpose::Data | Purpose::Shard | Purpose::Replica | Purpose::ExpertData | Purpose::Embedding => Dim::Dp,
            Purpose::Expert => Dim::Ep,
            Purpose::Pipeline => Dim::Pp,
            Purpose::Model | Purpose::World | Purpose::Scaling => Dim::Other,
        }
    }
}

impl RankPlacement {
    /// Reads the layout's order. It has "tp", "cp", "dp" and "pp" once each and may have "ep" (experts follow from the data-parallel ranks).
    pub fn new(layout: &Layout) -> Result<RankPlacement, TrainingError> {
        let wrong = |problem: String| TrainingError::Order { order: layout.order.clone(), problem };
        let mut order = Vec::new();
        let mut words = Vec::new();
        for word in layout.order.split('-') {
            if words.contains(&word) {
                return Err(wrong(format!("`{word}` stands twice")));
            }
            words.push(word);
            match word {
                "tp" => order.push((Dim::Tp, layout.tp)),
                "cp" => order.push((Dim::Cp, layout.cp)),
                "dp" => order.push((Dim::Dp, layout.dp)),
                "pp" => order.push((Dim::Pp, layout.pp)),
                "ep" => {}
                _ => return Err(wrong(format!("`{word}` is no dimension; there are tp, cp, ep, dp, pp"))),
            }
        }
        let all = [(Dim::Tp, layout.tp), (Dim::Cp, layout.cp), (Dim::Dp, layout.dp), (Dim::Pp, layout.pp)];
        for (dim, degree) in all {
            if order.iter().all(|o| o.0 != dim) {
                if degree > 1 {
                    return Err(wrong(format!(
                        "lacks `{}`, whose degree is {degree}",
                        format!("{dim:?}").to_lowercase()
                    )));
                }
                order.push((dim, 1));
            }
        }
        Ok(RankPlacement {
            order,
            degrees: [layout.tp, layout.cp, layout.dp, layout.pp],
            ep: layout.ep.max(1),
            folded: layout.folded_experts(),
            shards: if layout.hybrid() { layout.shards() } else { 1 },
            mirrored: layout.schedule.is_fed_twice(),
            scaling: layout.scaling_ranks().unwrap_or([1; 3]),
        })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.degrees.iter().product()
    }

    /// Coordinates of a rank.
    pub fn coords(&self, rank: u32) -> Coords {
        let mut left = rank;
        let mut c = Coords { tp: 0, cp: 0, dp: 0, pp: 0, data: 0 };
        let (mut data, mut data_stride) = (0, 1);
        for &(dim, degree) in &self.order {
            let i = left % degree;
            left /= degree;
            match dim {
                Dim::Tp => c.tp = i,
                Dim::Pp => c.pp = i,
                Dim::Cp => c.cp = i,
                _ => c.dp = i,
            }
            if matches!(dim, Dim::Cp | Dim::Dp) {
                data += i * data_stride;
                data_stride *= degree;
            }
        }
        c.data = data;
        c
    }

    /// Members of every group of a purpose, ascending in the dimension that it spans. Groups are ordered by their first rank.
    pub fn groups(&self, purpose: Purpose) -> Vec<Vec<u32>> {
        let pp = self.degrees[3];
        let mut by_key: std::collections::BTreeMap<(u32, u32, u32), Vec<(u32, u32)>> =
            std::collections::BTreeMap::new();
        for rank in 0..self.ranks() {
            let c = self.coords(rank);
            let (key, position) = match purpose {
                Purpose::Tensor => ((c.cp, c.dp, c.pp), c.tp),
                Purpose::Context => ((c.tp, c.dp, c.pp), c.cp),
                Purpose::Data => {
                    let (pp, copy) = self.copy_of(&c);
                    ((c.tp, pp, 0), c.data + copy * self.degrees[1] * self.degrees[2])
                }
                Purpose::Shard => ((c.tp, c.pp, c.data / self.shards), c.data % self.shards),
                Purpose::Replica => ((c.tp, c.pp, c.data % self.copied()), c.data / self.copied()),
                Purpose::Expert => {
                    let (slice, position) = self.among_experts(&c);
                    ((slice, c.pp, position / self.ep), position % self.ep)
                }
                Purpose::ExpertData => {
                    let ((slice, position), (pp, copy)) = (self.among_experts(&c), self.copy_of(&c));
                    ((slice, pp, position % self.ep), position / self.ep + copy * self.expert_ranks() / self.ep)
                }
                Purpose::Pipeline => ((c.tp, c.cp, c.dp), c.pp),
                Purpose::Model => ((c.data, 0, 0), c.tp + c.pp * self.degrees[0]),
                Purpose::World => ((0, 0, 0), rank),
                Purpose::Scaling => {
                    let apart = |degree: u32, i: u32| if degree > 1 { 0 } else { i };
                    let [tp, cp, dp] = self.scaling;
                    let key = (c.pp, apart(tp, c.tp) + self.degrees[0] * apart(cp, c.cp), apart(dp, c.dp));
                    (key, self.scaling_position(&c))
                }
                Purpose::Embedding if c.pp == 0 || c.pp + 1 == pp => ((c.tp, c.cp, c.dp), c.pp),
                Purpose::Embedding => continue,
            };
            by_key.entry(key).or_default().push((position, rank));
        }
        let sorted = |mut members: Vec<(u32, u32)>| {
            members.sort_unstable();
            members.into_iter().map(|m| m.1).collect::<Vec<u32>>()
        };
        let mut groups: Vec<Vec<u32>> = by_key.into_values().map(sorted).collect();
        groups.sort_unstable_by_key(|g| g[0]);
        groups
    }

    /// Position of a rank among those that agree on scaling factors: tensor-parallel ones first.
    fn scaling_position(&self, c: &Coords) -> u32 {
        let [tp, cp, _] = self.scaling;
        c.tp % tp + tp * (c.cp % cp + cp * (c.dp % self.scaling[2]))
    }

    /// (slice of each expert that a rank has, its position among the ranks that experts are spread over and copied on).
    fn among_experts(&self, c: &Coords) -> (u32, u32) {
        if self.folded { (0, c.tp + self.degrees[0] * c.data) } else { (c.tp, c.data) }
    }

    /// (the first pipeline rank with a rank's layers, number of the rank's copy of them).
    fn copy_of(&self, c: &Coords) -> (u32, u32) {
        let mirror = self.degrees[3] - 1 - c.pp;
        if self.mirrored && mirror < c.pp { (mirror, 1) } else { (c.pp, 0) }
    }

    /// Number of copies of the parameters in one pipeline.
    fn copies(&self) -> u32 {
        if self.mirrored { 2 } else { 1 }
    }

    /// Number of ranks that experts are spread over and copied on.
    fn expert_ranks(&self) -> u32 {
        let [tp, cp, dp, _] = self.degrees;
        cp * dp * if self.folded { tp } else { 1 }
    }

    /// Distance from a rank that holds a shard to the next one that holds the same. If sharding is not hybrid, it is the number of all ranks, so that no rank
    /// has a copy.
    fn copied(&self) -> u32 {
        if self.shards > 1 { self.shards } else { self.degrees[1] * self.degrees[2] }
    }

    /// Size of a purpose's groups.
    pub fn size(&self, purpose: Purpose) -> u32 {
        let [tp, cp, dp, pp] = self.degrees;
        match purpose {
            Purpose::Tensor => tp,
            Purpose::Context => cp,
            Purpose::Data => cp * dp * self.copies(),
            Purpose::Shard => self.shards,
            Purpose::Replica => cp * dp / self.copied(),
            Purpose::Expert => self.ep,
            Purpose::ExpertData => self.expert_ranks() / self.ep * self.copies(),
            Purpose::Pipeline => pp,
            Purpose::Embedding => pp.min(2),
            Purpose::Model => tp * pp,
            Purpose::World => self.ranks(),
            Purpose::Scaling => self.scaling.iter().product(),
        }
    }

    /// How the first group of a purpose is spread over servers: its members, and how many of them share a server of `gpus` consecutive ranks.
    pub fn span(&self, purpose: Purpose, gpus: u32) -> ServerSpan {
        let members = self.size(purpose);
        if members <= 1 {
            return ServerSpan { members, per_server: 1 };
        }
        let first = self.members_of_rank_0(purpose);
        let per_server = first.iter().filter(|&&r| r / gpus == first[0] / gpus).count() as u32;
        ServerSpan { members, per_server }
    }

    /// The group of rank 0, computed without listing the others.
    fn members_of_rank_0(&self, purpose: Purpose) -> Vec<u32> {
        let [tp, cp, dp, pp] = self.degrees;
        let stride = |dim: Dim| -> u32 {
            let dim_idx = self.order.iter().position(|o| o.0 == dim).unwrap_or(0);
            self.order[..dim_idx].iter().map(|o| o.1).product()
        };
        let run = |dim: Dim, n: u32| -> Vec<u32> { (0..n).map(|i| i * stride(dim)).collect() };
        // Data positions count in the order's sequence of cp and dp.
        let data_rank = |data: u32| -> u32 {
            let (mut left, mut rank) = (data, 0);
            for &(dim, degree) in self.order.iter().filter(|o| matches!(o.0, Dim::Cp | Dim::Dp)) {
                rank += (left % degree) * stride(dim);
                left /= degree;
            }
            rank
        };
        let expert_rank = |position: u32| match self.folded {
            true => position % tp * stride(Dim::Tp) + data_rank(position / tp),
            false => data_rank(position),
        };
        // The last pipeline rank has copies of the first one's layers.
        let with_copies = |members: Vec<u32>| -> Vec<u32> {
            let copies = members.iter().map(|r| r + (pp - 1) * stride(Dim::Pp)).collect::<Vec<u32>>();
            if self.mirrored { [members, copies].concat() } else { members }
        };
        match purpose {
            Purpose::Tensor => run(Dim::Tp, tp),
            Purpose::Context => run(Dim::Cp, cp),
            Purpose::Pipeline => run(Dim::Pp, pp),
            Purpose::Embedding => vec![0, (pp - 1) * stride(Dim::Pp)],
            Purpose::Data => with_copies((0..cp * dp).map(data_rank).collect()),
            Purpose::Shard => (0..self.shards).map(data_rank).collect(),
            Purpose::Replica => (0..cp * dp / self.copied()).map(|i| data_rank(i * self.copied())).collect(),
            Purpose::Expert => (0..self.ep).map(expert_rank).collect(),
            Purpose::ExpertData => {
                with_copies((0..self.expert_ranks() / self.ep).map(|i| expert_rank(i * self.ep)).collect())
            }
            Purpose::World => (0..self.ranks()).collect(),
            Purpose::Scaling => {
                let [tp, cp, dp] = self.scaling;
                let across = |ranks: Vec<u32>, dim: Dim, degree: u32| -> Vec<u32> {
                    let more = run(dim, degree);
                    more.iter().flat_map(|m| ranks.iter().map(move |r| r + m)).collect()
                };
                across(across(run(Dim::Tp, tp), Dim::Cp, cp), Dim::Dp, dp)
            }
            Purpose::Model => {
                (0..pp).flat_map(|p| run(Dim::Tp, tp).into_iter().map(move |t| t + p * stride(Dim::Pp))).collect()
            }
        }
    }

    /// All groups of the purposes, and each rank's groups by slot, as a workload stores them.
    pub fn all(&self, purposes: &[Purpose]) -> (Vec<Group>, Vec<Vec<u32>>) {
        let mut groups = Vec::new();
        let mut slots: Vec<Vec<u32>> = vec![Vec::new(); self.ranks() as usize];
        for &purpose in purposes {
            for members in self.groups(purpose) {
                members.iter().for_each(|&m| slots[m as usize].push(groups.len() as u32));
                groups.push(Group { members, dim: purpose.dim() });
            }
        }
        (groups, slots)
    }
}

/// How a communicator is spread over servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ServerSpan {
    /// Number of members.
    pub members: u32,
    /// Members in one server.
    pub per_server: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::training::tests::layout;

    fn placed(order: &str) -> RankPlacement {
        let l = Layout { tp: 2, cp: 2, dp: 4, pp: 2, ep: 4, order: order.to_string(), ..layout() };
        RankPlacement::new(&l).unwrap()
    }

    #[test]
    fn every_purpose_parts_the_ranks() {
        for order in ["tp-cp-ep-dp-pp", "tp-pp-dp-cp", "pp-dp-cp-tp"] {
            let p = placed(order);
            for purpose in Purpose::ALL {
                let groups = p.groups(purpose);
                let mut all: Vec<u32> = groups.iter().flatten().copied().collect();
                all.sort_unstable();
                assert_eq!(all, (0..32).collect::<Vec<u32>>(), "{order} {purpose:?}");
                assert!(groups.iter().all(|g| g.len() as u32 == p.size(purpose)));
                assert_eq!(groups[0], p.members_of_rank_0(purpose), "{order} {purpose:?}");
            }
        }
    }

    #[test]
    fn folded_experts_are_on_tensor_parallel_ranks_first() {
        for order in ["tp-cp-ep-dp-pp", "tp-pp-dp-cp", "pp-dp-cp-tp"] {
            let l = Layout { tp: 2, cp: 2, dp: 4, pp: 2, ep: 8, etp: 1, order: order.to_string(), ..layout() };
            let p = RankPlacement::new(&l).unwrap();
            for purpose in [Purpose::Expert, Purpose::ExpertData] {
                let groups = p.groups(purpose);
                let mut all: Vec<u32> = groups.iter().flatten().copied().collect();
                all.sort_unstable();
                assert_eq!(all, (0..32).collect::<Vec<u32>>(), "{order} {purpose:?}");
                assert_eq!(groups[0], p.members_of_rank_0(purpose), "{order} {purpose:?}");
                assert_eq!(groups[0].len() as u32, p.size(purpose));
            }
        }
        let l = Layout { tp: 2, dp: 8, ep: 4, etp: 1, order: "tp-cp-ep-dp-pp".to_string(), ..layout() };
        let p = RankPlacement::new(&l).unwrap();
        assert_eq!(p.groups(Purpose::Expert)[1], [4, 5, 6, 7]);
        assert_eq!(p.groups(Purpose::ExpertData)[1], [1, 5, 9, 13]);
    }

    #[test]
    fn megatrons_order() {
        let p = placed("tp-cp-ep-dp-pp");
        assert_eq!(p.groups(Purpose::Tensor)[1], [2, 3]);
        assert_eq!(p.groups(Purpose::Context)[0], [0, 2]);
        assert_eq!(p.groups(Purpose::Pipeline)[0], [0, 16]);
        assert_eq!(p.groups(Purpose::Expert)[0], [0, 2, 4, 6]);
        assert_eq!(p.groups(Purpose::ExpertData)[0], [0, 8]);
        assert_eq!(p.span(Purpose::Data, 8), ServerSpan { members: 8, per_server: 4 });
    }

    #[test]
    fn hybrid_shards_are_neighbours_and_copies_are_apart() {
        let framework = crate::model::Framework::Fsdp;
        let l = Layout { tp: 2, dp: 8, shard_ranks: 4, framework, order: "tp-cp-ep-dp-pp".to_string(), ..layout() };
        let p = RankPlacement::new(&l).unwrap();
        assert_eq!(p.groups(Purpose::Shard)[0], [0, 2, 4, 6]);
        assert_eq!(p.groups(Purpose::Replica)[0], [0, 8]);
        for purpose in [Purpose::Shard, Purpose::Replica] {
            assert_eq!(p.groups(purpose)[0], p.members_of_rank_0(purpose));
            assert_eq!(p.groups(purpose)[0].len() as u32, p.size(purpose));
        }
    }

    #[test]
    fn ranks_of_a_stage_agree_on_scaling_factors() {
        use crate::model::{Fp8Scaling, Precision};
        let placed = |fp8_scaling| {
            let l = Layout { tp: 2, cp: 2, dp: 2, pp: 2, precision: Precision::Fp8, fp8_scaling, ..layout() };
            RankPlacement::new(&Layout { order: "tp-cp-ep-dp-pp".to_string(), ..l }).unwrap()
        };
        let all = placed(Fp8Scaling::Delayed);
        assert_eq!(all.groups(Purpose::Scaling), [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]);
        let tensor = placed(Fp8Scaling::DelayedTensor);
        assert_eq!(tensor.groups(Purpose::Scaling)[..2], [[0, 1, 2, 3], [4, 5, 6, 7]]);
        for p in [all, tensor] {
            assert_eq!(p.groups(Purpose::Scaling)[0], p.members_of_rank_0(Purpose::Scaling));
            assert_eq!(p.groups(Purpose::Scaling)[0].len() as u32, p.size(Purpose::Scaling));
        }
        assert_eq!(placed(Fp8Scaling::Current).size(Purpose::Scaling), 1);
    }

    #[test]
    fn a_bad_order_is_told() {
        let bad = |order: &str| {
            RankPlacement::new(&Layout { tp: 2, order: order.to_string(), ..layout() }).unwrap_err().to_string()
        };
        assert!(bad("tp-xp").contains("`xp` is no dimension"));
        assert!(bad("tp-tp").contains("twice"));
        assert!(bad("dp-pp").contains("lacks `tp`"));
    }
}
