//! Sizes of experiments that were prepared, and estimates of others from them.
//!
//! Layer: session.

use std::collections::HashMap;

use hyperfold_config::spec::{self, Config, WorkloadSection};

use crate::planning::forecast::ExperimentSize;

/// Sizes of the experiments that were prepared, by traffic and by network. Those of others are estimated from them.
#[derive(Default)]
pub(super) struct KnownSizes {
    all: Vec<(SizeKeys, ExperimentSize)>,
    /// Numbers of texts in keys.
    numbers: HashMap<String, u32>,
    /// Estimates by traffic and network, until more is known.
    estimates: HashMap<(u32, u32), Option<ExperimentSize>>,
}

/// What the size of an experiment is looked up by: numbers of texts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SizeKeys {
    traffic: u32,
    network: u32,
    kind: u32,
}

/// What the workload of an experiment sends, as text.
fn traffic_text(config: &Config) -> String {
    let traffic = match &config.workload {
        // Times of software depend on the network. They decide no size.
        WorkloadSection::Program(p) => {
            let c = &p.communication;
            format!("{:?}", (&p.source, &c.algorithm, &c.analytic, c.channels, c.chunk_bytes))
        }
        other => format!("{other:?}{:?}", config.jobs),
    };
    format!("{traffic}{}{:?}", config.is_flow_level(), config.joining())
}

impl KnownSizes {
    /// The keys of an experiment whose network has this [`network_text`].
    fn keys(&mut self, config: &Config, network: String) -> SizeKeys {
        let mut number = |text: String| {
            let next = self.numbers.len() as u32;
            *self.numbers.entry(text).or_insert(next)
        };
        SizeKeys {
            traffic: number(traffic_text(config)),
            network: number(network),
            kind: number(config.values.text(spec::KeyId::TopologyKind).to_string()),
        }
    }

    pub(super) fn add(&mut self, config: &Config, network: String, size: ExperimentSize) {
        let keys = self.keys(config, network);
        self.all.push((keys, size));
        self.estimates.clear();
    }

    /// Whether an experiment on this kind of network was prepared. Queue pairs and paths differ most between kinds.
    pub(super) fn has_kind(&self, config: &Config) -> bool {
        let kind = self.numbers.get(config.values.text(spec::KeyId::TopologyKind));
        kind.is_some_and(|&kind| self.all.iter().any(|(keys, _)| keys.kind == kind))
    }

    /// Returns the size of a prepared experiment, each in turn.
    pub(super) fn in_turn(&self, n: usize) -> Option<ExperimentSize> {
        self.all.get(n % self.all.len().max(1)).map(|(_, size)| *size)
    }

    /// Estimates the size of an experiment by one with the same traffic on another network: it has about as many packet-hops. How much more its own network
    /// takes is taken from other traffic that was prepared on both.
    pub(super) fn on_another_network(&mut self, config: &Config, network: String) -> Option<ExperimentSize> {
        let keys = self.keys(config, network);
        if let Some(&estimate) = self.estimates.get(&(keys.traffic, keys.network)) {
            return estimate;
        }
        let estimate = self.estimated(keys);
        self.estimates.insert((keys.traffic, keys.network), estimate);
        estimate
    }

    fn estimated(&self, keys: SizeKeys) -> Option<ExperimentSize> {
        let of_traffic = || self.all.iter().filter(|(k, _)| k.traffic == keys.traffic).rev();
        let scaled_by = |same: fn(&SizeKeys, &SizeKeys) -> bool| {
            // Listed once, because a sweep may have thousands of networks, each with many prepared experiments before it.
            let here: Vec<&(SizeKeys, ExperimentSize)> = self.all.iter().filter(|(k, _)| same(k, &keys)).collect();
            of_traffic().find_map(|(k, size)| {
                here.iter().find_map(|(here, there_size)| {
                    let both = |(other, _): &&(SizeKeys, ExperimentSize)| {
                        other.network == k.network && other.traffic == here.traffic
                    };
                    let (_, other_size) = self.all.iter().find(both)?;
                    let ratio =
                        |bytes: fn(&ExperimentSize) -> u64| bytes(there_size) as f64 / bytes(other_size).max(1) as f64;
                    let beside_nodes = |s: &ExperimentSize| s.memory.held.saturating_sub(s.memory.nodes);
                    Some(size.on_network(there_size.memory.nodes, ratio(|s| s.memory.flows), ratio(beside_nodes)))
                })
            })
        };
        scaled_by(|a, b| a.network == b.network)
            .or_else(|| scaled_by(|a, b| a.kind == b.kind))
            .or_else(|| of_traffic().next().map(|(_, size)| *size))
    }
}

/// What an experiment's packets cross, as text.
pub(super) fn network_text(config: &Config) -> String {
    format!("{:?}", (&config.cluster, &config.topology, &config.routing))
}
