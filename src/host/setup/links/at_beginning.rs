//! Links that a network lacks when an experiment begins, for callers that simulate nothing.
//!
//! Layer: host. Builds no tables.

use std::collections::BTreeSet;

use hyperfold_config::spec::Config;
use hyperfold_network::changes::failed_before;
use hyperfold_network::topology::Network;

use crate::setup::error::PrepareError;
use crate::setup::links::impairments::impairments;
use crate::setup::links::outages::outages;

/// Links that `topology.outages` takes down before an experiment begins, and circuits that come later.
///
/// # Errors
/// An outage or an impaired link names what the network does not have.
pub fn failed_before_run(config: &Config, net: &Network) -> Result<BTreeSet<u32>, PrepareError> {
    impairments(config, net)?;
    Ok(failed_before(&outages(config, net)?))
}
