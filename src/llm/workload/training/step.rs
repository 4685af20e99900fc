//! The steps of a pass through a layer: kernels, communication between them, and pairs of both that overlap.
//!
//! Layer: workload. The same steps are written into a rank's program, and evaluated without a program by their times alone.

use super::machine::Machine;
use super::placement::{Purpose, RankPlacement, ServerSpan};
use crate::collective::CollectiveOp;
use crate::compute::Kernel;
use crate::workload::program::Dim;

/// A collective of one of the rank's groups. `bytes` is counted as in [`OpKind::Collective`](crate::workload::program::OpKind).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Comm {
    pub name: &'static str,
    pub op: CollectiveOp,
    pub purpose: Purpose,
    pub bytes: u64,
}

impl Comm {
    /// The dimension that its time is counted in. The exchange of rows of embedding tables spread over data-parallel ranks counts like the exchange of tokens
    /// with experts.
    pub(super) fn dim(&self) -> Dim {
        if self.op.is_all_to_all() { Dim::Ep } else { self.purpose.dim() }
    }
}

/// How a kernel and a communication overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlap {
    /// Both begin at once; the next step waits for both.
    Beside,
    /// Piece i of the kernel follows piece i of the communication.
    Feeds(u32),
    /// Piece i of the communication follows piece i of the kernel.
    Drains(u32),
    /// The kernel has n pieces, the communication n - 1, and both begin at once. The kernel's first piece waits for nothing; each other piece waits for one
    /// piece of the communication.
    Ring(u32),
}

/// One step of a pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PassStep {
    Kernel {
        name: &'static str,
        ps: u64,
    },
    Comm(Comm),
    /// A kernel and a communication. `ps` is the kernel's time, already stretched by the overlap.
    Both {
        name: &'static str,
        ps: u64,
        comm: Comm,
        overlap: Overlap,
    },
}

/// Time of some steps in ps, by its use. Communication counts as far as nothing overlaps with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub compute: u64,
    pub tp: u64,
    pub ep: u64,
    pub cp: u64,
    pub dp: u64,
}

impl Spent {
    pub(super) fn total(&self) -> u64 {
        self.compute + self.tp + self.ep + self.cp + self.dp
    }

    /// Adds `times` times `other`.
    pub(super) fn add(&mut self, other: &Spent, times: u64) {
        self.compute += times * other.compute;
        self.tp += times * other.tp;
        self.ep += times * other.ep;
        self.cp += times * other.cp;
        self.dp += times * other.dp;
    }

    /// Adds exposed communication time to its dimension.
    fn expose(&mut self, dim: Dim, ps: u64) {
        match dim {
            Dim::Tp => self.tp += ps,
            Dim::Ep => self.ep += ps,
            Dim::Cp => self.cp += ps,
            _ => self.dp += ps,
        }
    }
}

/// Computes the times of communication on a machine for one placement of ranks.
#[derive(Clone, Copy)]
pub(super) struct Price<'a> {
    pub machine: &'a Machine<'a>,
    spans: [ServerSpan; Purpose::ALL.len()],
}

impl<'a> Price<'a> {
    pub(super) fn new(machine: &'a Machine<'a>, placement: &RankPlacement) -> Price<'a> {
        Price { machine, spans: Purpose::ALL.map(|p| placement.span(p, machine.gpus_per_server)) }
    }

    /// How the groups of a purpose are spread over servers.
    pub(super) fn span(&self, purpose: Purpose) -> ServerSpan {
        let purpose_idx = Purpose::ALL.iter().position(|&p| p == purpose).expect("ALL lists every purpose");
        self.spans[purpose_idx]
    }

    /// Whether neighbouring pipeline stages share a server.
    pub(super) fn pipeline_in_server(&self) -> bool {
        self.span(Purpose::Pipeline).per_server > 1
    }

    /// Time in ps of a communication alone.
    pub(super) fn comm(&self, comm: &Comm) -> u64 {
        let span = self.span(comm.purpose);
        if span.members <= 1 || comm.bytes == 0 {
            0
        } else {
            self.machine.comm.collective_ps(comm.op, comm.bytes, span)
        }
    }

    /// A step of kernels and a communication that overlap. The machine's slowdown stretches the overlapped part of the kernels.
    pub(super) fn both(&self, name: &'static str, kernels: &[Kernel], comm: Comm, overlap: Overlap) -> PassStep {
        let times: Vec<u64> = kernels.iter().map(|k| self.in_pieces(k, overlap)).collect();
        let ps: u64 = times.iter().sum();
        let comm_ps = self.comm(&comm);
        if comm_ps == 0 || ps == 0 {
            // A communication without cost hides nothing, but it is still sent.
            return PassStep::Both { name, ps, comm, overlap };
        }
        let covered = match overlap {
            Overlap::Beside => comm_ps.min(ps),
            Overlap::Feeds(n) | Overlap::Drains(n) | Overlap::Ring(n) => comm_ps.min(ps) / n as u64 * (n as u64 - 1),
        };
        let ratio = covered as f64 / ps as f64;
        let stretched = |(k, &t): (&Kernel, &u64)| self.machine.kernels.stretched_ps(k, t, comm.op, comm.bytes, ratio);
        PassStep::Both { name, ps: kernels.iter().zip(&times).map(stretched).sum(), comm, overlap }
    }

    /// Time in ps of a kernel that is cut into the pieces of its overlap. Products of fewer rows use the GPU less well; other kernels lose nothing.
    fn in_pieces(&self, kernel: &Kernel, overlap: Overlap) -> u64 {
        match (*kernel, overlap) {
            (Kernel::Gemm { m, n, k, batch, kept, apart, dtype }, Overlap::Feeds(pieces) | Overlap::Drains(pieces)) => {
                let one_piece = Kernel::Gemm { m: m.div_ceil(pieces as u64), n, k, batch, kept, apart, dtype };
                self.machine.kernels.kernel_ps(&one_piece) * pieces as u64
            }
            _ => self.machine.kernels.kernel_ps(kernel),
        }
    }

    /// Time of a step.
    pub(super) fn step(&self, step: &PassStep) -> Spent {
        let mut spent = Spent::default();
        match step {
            PassStep::Kernel { ps, .. } => spent.compute += ps,
            PassStep::Comm(comm) => spent.expose(comm.dim(), self.comm(comm)),
            PassStep::Both { ps, comm, overlap, .. } => {
                let total = match *overlap {
                    Overlap::Beside => (*ps).max(self.comm(comm)),
                    Overlap::Feeds(n) | Overlap::Drains(n) => {
                        let (k, c) = (ps / n as u64, self.comm(&piece(comm, n, 0)));
                        (k + c + (n as u64 - 1) * k.max(c)).max(*ps)
                    }
                    Overlap::Ring(n) => {
                        let (k, c) = (ps / n as u64, self.comm(&piece(comm, n - 1, 0)));
                        (k + (n as u64 - 1) * k.max(c)).max(*ps)
                    }
                };
                spent.compute += ps;
                spent.expose(comm.dim(), total - ps);
            }
        }
        spent
    }

    /// Time of steps one after another.
    pub(super) fn steps(&self, steps: &[PassStep]) -> Spent {
        let mut spent = Spent::default();
        steps.iter().for_each(|s| spent.add(&self.step(s), 1));
        spent
    }
}

/// Piece `i` of `n` of a communication. The bytes of the pieces sum to its bytes.
pub(super) fn piece(comm: &Comm, n: u32, i: u32) -> Comm {
    Comm { bytes: share(comm.bytes, n, i), ..*comm }
}

/// Part `i` of `total` in `n` parts that differ by at most 1; larger parts come first.
pub(super) fn share(total: u64, n: u32, i: u32) -> u64 {
    total / n as u64 + u64::from((i as u64) < total % n as u64)
}
