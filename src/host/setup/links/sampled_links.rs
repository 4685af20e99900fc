//! Finds the directions of links that `output.series_links` names.
//!
//! Layer: host.

use hyperfold_base::nearest::nearest;
use hyperfold_config::spec::{Config, Conflict, KeyId};

use crate::setup::links::names::nodes_of_link;

/// Returns for each link end whether it is sampled; empty: all are. `names` are the names of the links that they transmit on.
///
/// # Errors
/// A name is neither that of a link nor that of a node.
pub(crate) fn sampled_ends(config: &Config, names: &[String]) -> Result<Vec<bool>, Conflict> {
    let text = config.values.text(KeyId::SeriesLinks);
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut is_sampled = vec![false; names.len()];
    for entry in text.split(',').map(str::trim) {
        let mut found = false;
        for (name, sampled) in names.iter().zip(&mut is_sampled) {
            let (source, target) = nodes_of_link(name);
            if [name.as_str(), source, target].contains(&entry) {
                (*sampled, found) = (true, true);
            }
        }
        if !found {
            let nodes = names.iter().map(|name| nodes_of_link(name).0);
            let near = nearest(entry, names.iter().map(String::as_str)).or_else(|| nearest(entry, nodes));
            let example = near.or(names.first().map(String::as_str)).unwrap_or("leaf0->host0");
            return Err(Conflict {
                job: None,
                key: KeyId::SeriesLinks,
                why: format!(
                    "`{entry}`: no link and no node is called so; links.csv has their names, such as `{example}`"
                ),
            });
        }
    }
    Ok(is_sampled)
}
