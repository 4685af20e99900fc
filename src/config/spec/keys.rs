//! The declarations of all keys of `[base]`: the rows of `key_table` with the kinds, ranges and conditions that they name.
//!
//! Layer: spec. `LATER` has names that people look for and this version lacks, so that they are refused with that reason instead of as typing errors.

use super::adapter_names::NICS;
use super::applies_when::*;
use super::derive;
use super::key::{Default as D, Key, KeyKind};
use super::key_id::{KeyId, N_KEYS};
use super::key_table::for_each_key;
use super::recipe_names::RECIPES;
use super::servers::SERVERS;
use super::switches::SWITCHES;
use hyperfold_base::{
    for_each_failure_model, for_each_placement, for_each_routing_policy, for_each_scheduler, listed, names,
    names_and_file, names_and_trace, words,
};

const fn int(min: i64, max: i64) -> KeyKind {
    KeyKind::Int { min, max }
}
const fn num(min: f64, max: f64) -> KeyKind {
    KeyKind::Float { min, max, quantum: 0.0 }
}
const fn stepped(min: f64, max: f64, quantum: f64) -> KeyKind {
    KeyKind::Float { min, max, quantum }
}
const fn one_of(now: &'static [&'static str], later: &'static [&'static str]) -> KeyKind {
    KeyKind::Choice { now, later }
}

/// Link rates are whole Mb/s, up to 2^43 bps.
const LINK_GBPS: KeyKind = stepped(0.001, 8796.0, 0.001);
/// Sizes of buffers are whole thousandths of a MiB.
const BUFFER_MIB: KeyKind = stepped(0.001, 65536.0, 0.001);
/// Rates of congestion control are whole bps.
const RATE_MBPS: KeyKind = stepped(0.000_001, 8_796_000.0, 0.000_001);
const DELAY_US: KeyKind = stepped(0.000_001, 1_000_000.0, 0.000_001);
const DELAY_US_OR_0: KeyKind = stepped(0.0, 1_000_000.0, 0.000_001);
/// Most GPUs, ranks, switches, or parts.
pub(super) const COUNT: i64 = 1 << 20;
const BYTES_MAX: i64 = 1 << 40;
/// Largest credit of a sender, in packets.
const CREDIT_MAX: i64 = hyperfold_network::transport::LARGEST_CREDIT as i64;
/// Dollars or watts of one part.
const PRICE: KeyKind = stepped(0.0, 1e9, 0.001);

/// Whether a key is part of an experiment's identity, by its mark in the table.
macro_rules! in_identity {
    () => {
        true
    };
    (outside_identity) => {
        false
    };
}

macro_rules! declare_keys {
    ($($(#[$mark:ident])? $id:ident $name:literal $kind:expr, $default:expr, $applies_when:expr, $doc:expr;)*) => {
        /// All declarations, in the order of [`KeyId`].
        pub static KEYS: [Key; N_KEYS] = [
            $(Key {
                id: KeyId::$id,
                name: $name,
                kind: $kind,
                default: $default,
                applies_when: $applies_when,
                in_identity: in_identity!($($mark)?),
                doc: $doc,
            }),*
        ];
    };
}
for_each_key!(declare_keys);

/// The sections of `[base]` with their descriptions, in the order in which they are printed.
pub const SECTIONS: &[(&str, &str)] = &[
    ("cluster", "the machines"),
    ("topology", "the network between them"),
    ("routing", "paths"),
    ("transport", "sending, marking, pausing; each congestion control has its own table below"),
    ("workload", "what is sent"),
    (
        "job",
        "keys of a `[[job]]` table beside those of `[base.workload]`; see [several jobs](../how-to/several-jobs.md)",
    ),
    ("fidelity", "how exactly it is simulated"),
    (
        "jobs",
        "what arrives at a cluster with `fidelity.mode = \"job\"`; see [simulate a cluster](../how-to/simulate-a-cluster.md)",
    ),
    ("scheduler", "which job runs when and where, with `fidelity.mode = \"job\"`"),
    ("checkpoint", "saving the state of jobs, with `fidelity.mode = \"job\"`"),
    ("failures", "what breaks, is mended and replaced, with `fidelity.mode = \"job\"`"),
    ("limits", "reaching one fails that experiment with \"limit: ...\""),
    ("output", "files beside results.csv"),
    ("cost", "prices and powers of your own, for cost_usd, power_kw and usd_per_mtoken"),
];

/// Flow-size distributions that come with the program; any other `workload.cdf` is a file.
pub const BUILT_IN_CDFS: [&str; 4] = ["WebSearch", "FbHdp", "AliStorage2019", "GoogleRPC2008"];

/// Returns the built-in distribution with this name, in upper or lower case.
pub fn built_in_cdf(name: &str) -> Option<&'static str> {
    BUILT_IN_CDFS.into_iter().find(|b| b.eq_ignore_ascii_case(name))
}

/// Known names (and everything below them) that later versions will have, with what to use now.
pub const LATER: &[(&str, &str)] = {
    const P: &str = concat!("available policies: ", for_each_routing_policy!(listed), ", file");
    &[("routing.flowlet", P)]
};
