//! Chips of switches: which one the switches of each tier have, whether it holds their ports, and how much buffer they get by it.
//!
//! Layer: host. The configuration names a chip or asks for the smallest that fits; only the network knows how many ports a switch has.

use hyperfold_base::units::{BPS_PER_GBPS, counted};
use hyperfold_config::spec::{Config, Conflict, DEFAULT_BUFFER_MIB, KeyId, SwitchChip, SwitchChoice, switch_chips};
use hyperfold_network::topology::{Network, NodeKind};
use hyperfold_network::transport::TierBuffers;

use crate::setup::error::PrepareError;

/// A tier as the keys of buffers know it: `topology.leaf_buffer_mib`, `agg_buffer_mib` and `spine_buffer_mib`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferTier {
    /// Switches that have hosts.
    Leaf,
    /// Switches between leaves and the highest tier.
    Middle,
    /// Switches of the highest tier above the leaves.
    Highest,
}

impl BufferTier {
    /// The tier of a switch that is `tier` links from the hosts, in a network whose highest switch is `top` links from them.
    fn of(tier: u32, top: u32) -> BufferTier {
        match tier {
            0 | 1 => BufferTier::Leaf,
            _ if tier == top => BufferTier::Highest,
            _ => BufferTier::Middle,
        }
    }

    fn buffer_of(self, buffers: &mut TierBuffers) -> &mut u64 {
        match self {
            BufferTier::Leaf => &mut buffers.leaf,
            BufferTier::Middle => &mut buffers.agg,
            BufferTier::Highest => &mut buffers.spine,
        }
    }
}

/// The chip of all switches of one tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierChip {
    /// The tier.
    pub tier: BufferTier,
    /// The chip.
    pub chip: &'static SwitchChip,
    /// Number of switches in the tier.
    pub n_switches: usize,
    /// Name of its first switch.
    pub first_switch: String,
    /// Shared buffer of each switch, which a key may set otherwise than the chip has it.
    pub buffer_bytes: u64,
}

impl TierChip {
    /// Whether its buffer is the default one, since neither a key nor a published figure says otherwise.
    pub fn has_default_buffer(&self) -> bool {
        !self.chip.has_known_buffer() && self.buffer_bytes == self.chip.buffer_bytes()
    }
}

/// Ports of a switch that packets cross.
#[derive(Clone, Copy, Debug, Default)]
struct SwitchPorts {
    n: u64,
    sum_bps: u64,
    fastest_bps: u64,
}

impl SwitchPorts {
    fn fit(self, chip: &SwitchChip) -> bool {
        chip.holds(self.n, self.sum_bps, self.fastest_bps)
    }

    fn smallest_chip(self) -> Option<&'static SwitchChip> {
        switch_chips().iter().find(|chip| self.fit(chip))
    }
}

/// Ports of every node. Those of hosts, and of switches inside servers, are left at 0.
fn ports_of(net: &Network) -> Vec<SwitchPorts> {
    let mut ports = vec![SwitchPorts::default(); net.nodes.len()];
    for link in net.links.iter().filter(|link| net.is_packet_link(link)) {
        for end in [link.a, link.b] {
            let node = &net.nodes[end as usize];
            if node.kind == NodeKind::Switch && node.server == u32::MAX {
                let own = &mut ports[end as usize];
                own.n += 1;
                own.sum_bps += link.rate_bps;
                own.fastest_bps = own.fastest_bps.max(link.rate_bps);
            }
        }
    }
    ports
}

/// The chip of the switches of each tier that has any, from the hosts upward; none where the configuration leaves chips open.
///
/// # Errors
/// A switch has more ports or a higher rate than the named chip, or than every chip.
pub fn tier_chips(config: &Config, net: &Network) -> Result<Vec<TierChip>, PrepareError> {
    let Some(choice) = config.topology.switch else { return Ok(Vec::new()) };
    let (ports, tiers, names) = (ports_of(net), net.tiers(), net.names());
    let top = tiers.iter().copied().max().unwrap_or(0);
    let mut chips = Vec::new();
    for tier in [BufferTier::Leaf, BufferTier::Middle, BufferTier::Highest] {
        let is_of_tier = |&v: &usize| ports[v].n > 0 && BufferTier::of(tiers[v], top) == tier;
        let switches: Vec<usize> = (0..ports.len()).filter(is_of_tier).collect();
        let Some(&first) = switches.first() else { continue };
        let all_fit = |chip: &SwitchChip| switches.iter().all(|&v| ports[v].fit(chip));
        let chip = match choice {
            SwitchChoice::Chip(chip) => Some(chip).filter(|chip| all_fit(chip)),
            SwitchChoice::ByRate => switch_chips().iter().find(|chip| all_fit(chip)),
        };
        let Some(chip) = chip else {
            let fits = |v: usize| match choice {
                SwitchChoice::Chip(chip) => ports[v].fit(chip),
                SwitchChoice::ByRate => ports[v].smallest_chip().is_some(),
            };
            let misfit = switches.iter().copied().find(|&v| !fits(v)).unwrap_or(first);
            return Err(too_large(&names[misfit], ports[misfit], choice));
        };
        let mut given = config.topology.tier_buffers.unwrap_or(same_buffers(config.topology.buffer_bytes));
        let given_bytes = *tier.buffer_of(&mut given);
        let buffer_bytes = if given_bytes > 0 { given_bytes } else { chip.buffer_bytes() };
        let first_switch = names[first].clone();
        chips.push(TierChip { tier, chip, n_switches: switches.len(), first_switch, buffer_bytes });
    }
    Ok(chips)
}

fn same_buffers(bytes: u64) -> TierBuffers {
    TierBuffers { leaf: bytes, agg: bytes, spine: bytes }
}

/// Buffers of all tiers where the ports of their switches decide which chip they have; `None`: the configuration says how large buffers are.
pub(in crate::setup) fn chosen_buffers(config: &Config, chips: &[TierChip]) -> Option<TierBuffers> {
    if config.topology.switch != Some(SwitchChoice::ByRate) {
        return None;
    }
    // A tier without switches of its own may have some inside servers, which are no chips of the table: they get what the lowest tier has.
    let mut buffers = same_buffers(chips.first().map_or(NO_SWITCH_BYTES, |lowest| lowest.buffer_bytes));
    chips.iter().for_each(|chip| *chip.tier.buffer_of(&mut buffers) = chip.buffer_bytes);
    Some(buffers)
}

/// Buffer in a network without switches outside servers: the default of `topology.buffer_mib`.
const NO_SWITCH_BYTES: u64 = (DEFAULT_BUFFER_MIB as u64) << 20;

/// A note on chips whose buffer nobody has published, where no key gives one.
pub(in crate::setup) fn unpublished_buffers(chips: &[TierChip]) -> Option<String> {
    let unknown: Vec<&TierChip> = chips.iter().filter(|tier| tier.has_default_buffer()).collect();
    let first = unknown.first()?;
    Some(format!(
        "the buffer of {} is not published: {} and others like it have {DEFAULT_BUFFER_MIB} MiB, the default of topology.buffer_mib, which says otherwise",
        first.chip.name, first.first_switch
    ))
}

/// A note on the chips of a network whose ports have decided them.
pub(in crate::setup) fn chosen_chips(config: &Config, chips: &[TierChip]) -> Option<String> {
    let is_chosen = config.topology.switch == Some(SwitchChoice::ByRate) && !chips.is_empty();
    let shown = |tier: &TierChip| {
        let others = match tier.n_switches - 1 {
            0 => String::new(),
            n => format!(" and {n} more of its tier"),
        };
        let mib = tier.buffer_bytes as f64 / f64::from(1 << 20);
        format!("{}{others}: {}, {mib:.3} MiB", tier.first_switch, tier.chip.name)
    };
    let shown: Vec<String> = chips.iter().map(shown).collect();
    is_chosen.then(|| format!("topology.switch = \"by-rate\" chose {}", shown.join("; ")))
}

/// The error that a switch has more than its chip, or than any chip.
fn too_large(name: &str, ports: SwitchPorts, choice: SwitchChoice) -> PrepareError {
    let gbps = |bps: u64| bps as f64 / BPS_PER_GBPS as f64;
    let has = format!(
        "{name} has {} of up to {} Gb/s, {} Tb/s in all",
        counted(ports.n as usize, "port"),
        gbps(ports.fastest_bps),
        gbps(ports.sum_bps) / 1e3
    );
    let limits = match choice {
        SwitchChoice::Chip(chip) => format!(
            "{} has at most {} ports, of {} Gb/s, and {} Tb/s in all; ",
            chip.name,
            chip.max_ports,
            chip.max_port_gbps,
            chip.capacity_gbps as f64 / 1e3
        ),
        SwitchChoice::ByRate => String::new(),
    };
    let fix = match ports.smallest_chip() {
        Some(chip) => format!("{} would hold it", chip.name),
        None => "no chip of the table holds that: give switches fewer ports, or the network another tier; \"none\" is a switch of any size"
            .to_string(),
    };
    PrepareError::Config(Conflict { job: None, key: KeyId::Switch, why: format!("{has}; {limits}{fix}") })
}
