//! Explains why data was sent again: losses, or packets that overtook each other.
//!
//! Layer: compare. It makes a sentence; the counts are columns of results.

use super::fidelity::sprays;
use super::pick::Pick;
use super::{Section, Study};

/// Adds a note about resent data for each of the experiments `picks` to `section`. Each pick has a prefix for its note.
pub(super) fn add_notes(section: &mut Section, study: &Study, picks: &[(&str, Pick)]) {
    section.notes.extend(picks.iter().filter_map(|(name, pick)| note(study, name, *pick)));
}

fn note(study: &Study, name: &str, pick: Pick) -> Option<String> {
    let again = pick.number(study, "retransmissions").filter(|n| *n > 0.0)?;
    let drops = pick.number(study, "drops").unwrap_or(0.0);
    let configuration = study.configurations.iter().position(|c| c.run == pick.run && c.rows.contains(&pick.row));
    let reorders = configuration.is_some_and(|index| sprays(study, index));
    let why = match (reorders, drops > 0.0) {
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
    Some(format!("{name}{again} data packets were sent again, and {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::explain_one::explain_one;
    use crate::compare::fixture::{Folder, ok};

    #[test]
    fn reordering_is_named_where_nothing_was_dropped() {
        let row = |id: u64, policy: &str, again: u64, drops: u64| {
            let mut experiment = ok(id, &format!("{policy}{id}"), &[policy], 1_000_000);
            (experiment.record.retransmissions, experiment.record.drops) = (Some(again), Some(drops));
            experiment
        };
        let rows = vec![row(0, "ecmp", 0, 0), row(1, "spray", 70, 0), row(2, "ecmp", 9, 3)];
        let folder = Folder::new(&["routing.policy"], rows);
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
        assert!(notes("2").contains("9 data packets were sent again, and 3 were dropped: go-back-N"), "{}", notes("2"));
    }
}
