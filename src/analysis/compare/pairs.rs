//! Pairs each configuration of a later folder with one of the first folder.
//!
//! Layer: compare. Configurations with the same `config_key` are paired first. The key covers every setting, every input file and the model's version, so
//! after a change to any of them no key is the same. The remaining ones are paired by coordinates: the values of all axes that any folder varies, and of
//! those that change the work. So experiments that do different work are never paired. It judges nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::Study;
use hyperfold_base::units::counted;

/// The configuration of the first folder that another one is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partner {
    /// Its index in [`Study::configurations`].
    pub of_base: usize,
    /// Whether both have the same `config_key`. If not, they have only the same coordinates.
    pub same: bool,
}

/// Partner of each configuration. `None`: it is in the first folder, or has no partner.
pub fn partners(study: &Study) -> Vec<Option<Partner>> {
    let n = study.configurations.len();
    let mut found: Vec<Option<Partner>> = vec![None; n];
    let in_base = || (0..n).filter(|&c| study.configurations[c].run == 0);
    // There can be several, if an axis makes no difference.
    let mut by_key: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    in_base().for_each(|c| by_key.entry(&study.configurations[c].config_key).or_default().push(c));
    let places = places(study);
    let coordinates = |c: usize| -> Vec<String> { places.iter().map(|&a| text(study, c, a)).collect() };
    // Pairs of a later folder and a base configuration that already has a partner there.
    let mut taken: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (c, configuration) in study.configurations.iter().enumerate().filter(|(_, c)| c.run > 0) {
        if let Some(same) = by_key.get(configuration.config_key.as_str()) {
            let equal = same.iter().copied().find(|&b| same.len() == 1 || coordinates(b) == coordinates(c));
            let of_base = equal.unwrap_or(same[0]);
            found[c] = Some(Partner { of_base, same: true });
            taken.insert((configuration.run, of_base));
        }
    }
    let by_place: BTreeMap<Vec<String>, usize> = in_base().map(|c| (coordinates(c), c)).collect();
    for (c, configuration) in study.configurations.iter().enumerate().filter(|(_, c)| c.run > 0) {
        if found[c].is_none()
            && let Some(&of_base) = by_place.get(&coordinates(c))
            && taken.insert((configuration.run, of_base))
        {
            found[c] = Some(Partner { of_base, same: false });
        }
    }
    found
}

/// Indices of the axes that are coordinates.
fn places(study: &Study) -> Vec<usize> {
    (0..study.axes.len()).filter(|&a| study.varied(&study.axes[a]) || study.asks(&study.axes[a])).collect()
}

/// A value as text for comparison. Numbers are equal whatever kind of column they are in.
fn text(study: &Study, configuration: usize, axis: usize) -> String {
    let cell = &study.configurations[configuration].values[axis];
    cell.number().map_or_else(|| cell.to_string(), |v| v.to_string())
}

/// How the settings of partners with different `config_key`s differ, in words. `None`: all partners have the same key.
pub fn differences(study: &Study, partners: &[Option<Partner>]) -> Option<String> {
    let others: Vec<(usize, usize)> = partners
        .iter()
        .enumerate()
        .filter_map(|(c, p)| p.as_ref().filter(|p| !p.same).map(|p| (c, p.of_base)))
        .collect();
    if others.is_empty() {
        return None;
    }
    let mut said: Vec<String> = Vec::new();
    for (c, of_base) in &others {
        for (a, axis) in study.axes.iter().enumerate() {
            let (then, now) = (text(study, *of_base, a), text(study, *c, a));
            let words = format!("{axis} {then} -> {now}");
            if then != now && !said.contains(&words) {
                said.push(words);
            }
        }
        let (then, now) = (&study.runs[0].manifest, &study.runs[study.configurations[*c].run].manifest);
        for input in &now.inputs {
            let changed = then.inputs.iter().any(|i| i.path == input.path && i.sha256 != input.sha256);
            let words = format!("the contents of {}", input.path);
            if changed && !said.contains(&words) {
                said.push(words);
            }
        }
        let words = format!("hyperfold {} -> {}", then.version, now.version);
        if then.version != now.version && !said.contains(&words) {
            said.push(words);
        }
    }
    if said.is_empty() {
        said.push("the model's version, or an input file".into());
    }
    Some(format!(
        "{} held against the base by the same axes' values, though not by the same settings: {}",
        counted(others.len(), "configuration"),
        said.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};

    fn found(base: &Folder, new: &Folder) -> (Vec<Option<Partner>>, Option<String>) {
        let study = Study::open(&[base.path(), new.path()]).unwrap();
        let partners = partners(&study);
        let differences = differences(&study, &partners);
        (partners.into_iter().filter(|p| p.is_some()).collect(), differences)
    }

    #[test]
    fn what_was_changed_meets_by_its_axes() {
        let rows = |keys: [&str; 2]| vec![ok(0, keys[0], &["dcqcn"], 1_000), ok(1, keys[1], &["hpcc"], 2_000)];
        let base = Folder::new(&["transport.cc"], rows(["a", "b"]));
        let new = Folder::with_sweep(&["transport.cc"], rows(["a", "c"]), "[base.transport.hpcc]\neta = 0.05\n");
        let (partners, words) = found(&base, &new);
        assert_eq!(partners, [Some(Partner { of_base: 0, same: true }), Some(Partner { of_base: 1, same: false })]);
        let words = words.unwrap();
        assert!(
            words.starts_with("1 configuration held") && words.ends_with("transport.hpcc.eta 0.95 -> 0.05"),
            "{words}"
        );
        let again = Folder::new(&["transport.cc"], rows(["a", "b"]));
        assert_eq!(found(&base, &again).1, None);
    }

    #[test]
    fn points_of_one_configuration_meet_by_their_axes() {
        let rows = || vec![ok(0, "a", &["clos", "100"], 1_000), ok(1, "a", &["clos", "400"], 1_000)];
        let axes = ["topology.kind", "topology.uplink_gbps"];
        let (base, new) = (Folder::new(&axes, rows()), Folder::new(&axes, rows()));
        assert_eq!(found(&base, &new).0, [0, 1].map(|of_base| Some(Partner { of_base, same: true })));
    }

    #[test]
    fn other_work_and_other_values_do_not_meet() {
        let one = |key: &str, cc: &str, sweep: &str| {
            Folder::with_sweep(&["transport.cc"], vec![ok(0, key, &[cc], 1_000)], sweep)
        };
        let base = one("a", "dcqcn", "");
        assert!(found(&base, &one("b", "hpcc", "")).0.is_empty());
        assert!(found(&base, &one("b", "dcqcn", "[base.workload]\nbytes = 77\n")).0.is_empty(), "a question");
        assert!(found(&base, &one("b", "dcqcn", "")).1.unwrap().ends_with("the model's version, or an input file"));
    }

    #[test]
    fn an_axis_that_one_folder_adds_meets_the_other_at_its_value() {
        let base = Folder::new(&["transport.cc"], vec![ok(0, "a", &["dcqcn"], 1_000)]);
        let rows = vec![ok(0, "b", &["dcqcn", "200"], 1_000), ok(1, "c", &["dcqcn", "400"], 1_000)];
        let new = Folder::new(&["transport.cc", "topology.link_gbps"], rows);
        assert_eq!(found(&base, &new).0, [Some(Partner { of_base: 0, same: false })], "400 is the default");
    }
}
