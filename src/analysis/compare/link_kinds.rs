//! Sums of links by kind: how evenly the load is spread over the links of a kind.
//!
//! Layer: compare. The kind of a link is the names of both ends without their numbers: `leaf->spine` for `leaf3->spine0`.

use std::collections::BTreeMap;

use super::Section;
use hyperfold_results::{Cell, LinkRecord, Micro, Ps};

/// Ratio of the busiest link to the mean of its kind above which a note is added.
const UNEVEN_FROM: f64 = 1.5;
/// Utilisation below which no traffic waits for a link, however uneven the load is.
const BUSY_FROM: f64 = 0.2;
/// Names of link ends that belong to one machine.
const HOSTS: [&str; 4] = ["host", "nic", "gpu", "server"];

struct Kind<'a> {
    links: u64,
    utilisation: u64,
    bytes: u64,
    max_queue_bytes: Option<u64>,
    pfc_pauses: Option<u64>,
    /// Time for which they were paused, of all together. `None`: unknown of all.
    paused: Option<Ps>,
    busiest: &'a LinkRecord,
}

impl Kind<'_> {
    fn mean(&self) -> f64 {
        self.utilisation as f64 / self.links as f64 / 1e6
    }

    fn highest(&self) -> f64 {
        self.busiest.utilisation.0 as f64 / 1e6
    }

    /// Utilisation of the busiest link over the mean. `None`: all links are idle.
    fn unevenness(&self) -> Option<f64> {
        (self.utilisation > 0).then(|| self.highest() / self.mean())
    }
}

/// Table with one row for each kind of link and experiment. `experiments` are names (`a` and `b`, or empty if there is only one) and links. Notes name the
/// kinds over which the load is uneven.
pub(super) fn section(experiments: &[(&str, &[LinkRecord])]) -> Section {
    let columns = [
        "links from -> to",
        "experiment",
        "links",
        "mean utilisation",
        "highest utilisation",
        "highest to mean",
        "max_queue_bytes",
        "pfc_pauses",
        "pfc_paused_ns",
        "busiest link",
    ];
    let mut section = Section::new("explain_link_kinds", "links by what they join", columns);
    let of_each: Vec<BTreeMap<String, Kind>> = experiments.iter().map(|(_, links)| kinds(links)).collect();
    let mut names: Vec<&String> = of_each.iter().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        for ((experiment, _), kinds_of_one) in experiments.iter().zip(&of_each) {
            let Some(kind) = kinds_of_one.get(name) else { continue };
            section.rows.push(vec![
                name.as_str().into(),
                if experiment.is_empty() { Cell::Empty } else { (*experiment).into() },
                kind.links.into(),
                kind.mean().into(),
                kind.highest().into(),
                kind.unevenness().into(),
                kind.max_queue_bytes.into(),
                kind.pfc_pauses.into(),
                kind.paused.into(),
                kind.busiest.link.as_str().into(),
            ]);
            section.notes.extend(unevenness(name, experiment, kind));
        }
    }
    section
}

/// A sentence about an uneven load and its likely cause. `None`: the load is even, or the links are hardly used.
fn unevenness(name: &str, experiment: &str, kind: &Kind) -> Option<String> {
    let times = kind.unevenness().filter(|t| *t >= UNEVEN_FROM && kind.highest() >= BUSY_FROM)?;
    let (from_end, to_end) = name.split_once("->").unwrap_or((name, ""));
    let host = |end: &str| HOSTS.contains(&end);
    // If links differ in their rate, one may be busy without carrying more bytes.
    let carries = kind.busiest.bytes as f64 * kind.links as f64 / (kind.bytes as f64).max(1.0);
    let why = match (host(from_end), host(to_end)) {
        _ if carries < UNEVEN_FROM => "its rate is lower than that of the others",
        (false, true) => "traffic of many ends at few machines (an incast, or machines with more to receive)",
        (true, false) => "few machines send most",
        _ => "flows collide there, or their paths leave no choice",
    };
    let whose = if experiment.is_empty() { String::new() } else { format!("{experiment}: ") };
    Some(format!(
        "{whose}{} is used {times:.1} times as much as the mean of the {} links {from_end} -> {to_end}, and carries {carries:.1} times the bytes: {why}",
        kind.busiest.link, kind.links
    ))
}

fn kinds(links: &[LinkRecord]) -> BTreeMap<String, Kind<'_>> {
    let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
    for link in links {
        let kind = kinds.entry(name_of_kind(&link.link)).or_insert(Kind {
            links: 0,
            utilisation: 0,
            bytes: 0,
            max_queue_bytes: None,
            pfc_pauses: None,
            paused: None,
            busiest: link,
        });
        kind.links += 1;
        let Micro(utilisation) = link.utilisation;
        kind.utilisation += utilisation;
        kind.bytes += link.bytes;
        kind.max_queue_bytes = kind.max_queue_bytes.max(link.packets.map(|p| p.max_queue_bytes));
        if let Some(packets) = link.packets {
            kind.pfc_pauses = Some(kind.pfc_pauses.unwrap_or(0) + packets.pfc_pauses);
        }
        if let Some(Ps(paused)) = link.pauses.paused {
            kind.paused = Some(Ps(kind.paused.map_or(0, |sum| sum.0) + paused));
        }
        if utilisation > kind.busiest.utilisation.0 {
            kind.busiest = link;
        }
    }
    kinds
}

/// `leaf->spine` for `leaf3->spine0#2`. An end whose name is only numbers is called `node`.
fn name_of_kind(link: &str) -> String {
    let end = |name: &str| {
        let letters: String = name.chars().take_while(|c| c.is_alphabetic()).collect();
        if letters.is_empty() { "node".into() } else { letters }
    };
    let (from_end, to_end) = link.split_once("->").unwrap_or((link, ""));
    format!("{}->{}", end(from_end), end(to_end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::link;

    #[test]
    fn pauses_of_a_kind_add_up() {
        let mut links = [link("host0->leaf0", 1, 0), link("host1->leaf0", 1, 0), link("leaf0->host0", 1, 0)];
        for (link, paused) in links.iter_mut().zip([Some(1_500), Some(2_000), None]) {
            link.packets.as_mut().expect("the fixture has packets").pfc_pauses = 3;
            link.pauses.paused = paused.map(Ps);
        }
        let section = section(&[("", &links)]);
        let cells: Vec<[String; 2]> = section.rows.iter().map(|r| [r[7].to_string(), r[8].to_string()]).collect();
        assert_eq!(cells, [["6", "3.5"], ["3", ""]]);
    }

    #[test]
    fn an_uneven_load_is_named() {
        // All carry as many bytes, so what is busier is slower.
        let even = [link("leaf0->spine0", 400_000, 5), link("leaf1->spine0", 400_000, 9)];
        let uneven = [
            link("leaf0->spine0", 900_000, 5),
            link("leaf1->spine0", 100_000, 90),
            link("leaf1->host2", 1, 0),
            link("3->4", 0, 0),
        ];
        let section = section(&[("a", &even), ("b", &uneven)]);
        let names: Vec<String> = section.rows.iter().map(|r| format!("{} {}", r[0], r[1])).collect();
        assert_eq!(names, ["leaf->host b", "leaf->spine a", "leaf->spine b", "node->node b"]);
        let b = &section.rows[2];
        assert_eq!((b[2].clone(), b[6].clone(), b[9].to_string()), (2u64.into(), 90u64.into(), "leaf0->spine0".into()));
        assert_eq!([b[3].clone(), b[4].clone(), b[5].clone()], [0.5, 0.9, 1.8].map(Cell::Real));
        assert_eq!(section.rows[3][5], Cell::Empty, "an idle kind has no ratio");
        assert_eq!(section.notes.len(), 1, "{:?}", section.notes);
        assert!(
            section.notes[0]
                .starts_with("b: leaf0->spine0 is used 1.8 times as much as the mean of the 2 links leaf -> spine")
        );
        assert!(section.notes[0].ends_with("its rate is lower than that of the others"), "{:?}", section.notes);
    }
}
