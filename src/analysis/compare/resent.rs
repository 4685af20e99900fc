//! Explains why data was sent again: losses, or packets that overtook each other.
//!
//! Layer: compare. It makes a sentence; the counts are columns of results.

use super::fidelity::sprays;
use super::pick::Pick;
use super::{Section, Study};
use hyperfold_config::spec::{KeyId, Value};

/// Adds a note about resent data for each of the experiments `picks` to `section`. Each pick has a prefix for its note.
pub(super) fn add_notes(section: &mut Section, study: &Study, picks: &[(&str, Pick)]) {
    section.notes.extend(picks.iter().filter_map(|(name, pick)| note(study, name, *pick)));
}

fn note(study: &Study, name: &str, pick: Pick) -> Option<String> {
    let again = pick.number(study, "retransmissions").filter(|n| *n > 0.0)?;
    let drops = pick.number(study, "drops").unwrap_or(0.0);
    let configuration = study.configurations.iter().position(|c| c.run == pick.run && c.rows.contains(&pick.row));
    let reorders = configuration.is_some_and(|index| sprays(study, index));
    let any_order = study.key_value(pick.run, pick.row, KeyId::LossRecovery) == Value::Choice("selective");
    let why = match (reorders, drops > 0.0) {
        (_, true) if any_order => format!("{drops} were dropped"),
        (true, false) if any_order => {
            "none was dropped: packets took so long that others, transport.packet_threshold after them, arrived first, or \
             acknowledgements came after transport.rto_us"
                .to_string()
        }
        (true, false) => {
            "none was dropped: reordering. Packets of a flow take several paths (routing.policy), and go-back-N receivers take \
             one that is overtaken for lost"
                .to_string()
        }
        (true, true) => {
            format!("{drops} were dropped. The rest is reordering, which go-back-N receivers take for loss (routing.policy)")
        }
        (false, true) => format!("{drops} were dropped: go-back-N sends everything after a lost packet again"),
        (false, false) => "none was dropped: acknowledgements came after transport.rto_us".to_string(),
    };
    let waited = waited(study, pick).map_or(String::new(), |text| format!("; {text}"));
    Some(format!("{name}{again} data packets were sent again, and {why}{waited}"))
}

/// Whether flows can have waited for a retransmission timeout, by how long they took. `None`: there are no timeouts, or no times of flows.
fn waited(study: &Study, pick: Pick) -> Option<String> {
    let Value::Float(rto_us) = study.key_value(pick.run, pick.row, KeyId::RtoUs) else { return None };
    let longest_us = pick.number(study, "fct_max_ns")? / 1e3;
    let timeout = format!("a retransmission timeout (transport.rto_us = {rto_us})");
    if rto_us <= 0.0 {
        return None;
    }
    if longest_us < rto_us {
        return Some(format!("no flow took as long as {timeout}, so none waited for one"));
    }
    // The timeout's share says how much a shorter one could gain at most.
    let share = (rto_us / longest_us * 100.0).round();
    Some(format!(
        "senders that lose the last packets of a message wait for {timeout}, each time {share} % of the slowest flow's time"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::explain_one::explain_one;
    use crate::compare::fixture::{Folder, ok};
    use hyperfold_results::Ps;

    #[test]
    fn reordering_is_named_where_nothing_was_dropped() {
        let row = |id: u64, policy: &str, again: u64, drops: u64, longest_us: u64| {
            let mut experiment = ok(id, &format!("{policy}{id}"), &[policy], 1_000_000);
            (experiment.record.retransmissions, experiment.record.drops) = (Some(again), Some(drops));
            experiment.record.fct_max = Some(Ps(longest_us * 1_000_000));
            experiment
        };
        let rows = vec![row(0, "ecmp", 0, 0, 50), row(1, "spray", 70, 0, 50), row(2, "ecmp", 9, 3, 16_776)];
        let folder = Folder::with_sweep(&["routing.policy"], rows, "[base.transport]\npfc = false\n");
        let study = Study::open(&[folder.path()]).unwrap();
        let notes = |id: &str| {
            let sections = explain_one(&study, Pick::parse(&study, id, 0).unwrap(), 1).unwrap();
            sections.into_iter().flat_map(|s| s.notes).collect::<Vec<_>>().join("; ")
        };
        assert!(!notes("0").contains("sent again"), "{}", notes("0"));
        assert!(
            notes("1").contains("70 data packets were sent again, and none was dropped: reordering"),
            "{}",
            notes("1")
        );
        let waited =
            "; no flow took as long as a retransmission timeout (transport.rto_us = 4194), so none waited for one";
        assert!(notes("1").contains(waited), "{}", notes("1"));
        let wait =
            "wait for a retransmission timeout (transport.rto_us = 4194), each time 25 % of the slowest flow's time";
        assert!(notes("2").contains(wait), "{}", notes("2"));
        assert!(notes("2").contains("9 data packets were sent again, and 3 were dropped: go-back-N"), "{}", notes("2"));
    }
}
