//! How far times like those of two experiments were off measured machines, and how their longest collectives were carried out.
//!
//! Layer: compare. It reads columns of results and judges nothing.

use super::pick::Pick;
use super::{Section, Study};
use hyperfold_results::Cell;

/// For each section: its kind, its title, and the columns that it shows.
const SECTIONS: [(&str, &str, &[&str]); 2] = [
    ("explain_collective", "how the longest collective is carried out", &["algorithm", "protocol", "channels"]),
    (
        "explain_worth",
        "how far such times are off measured machines",
        &["validated_error", "validated_class", "validated_latency_error"],
    ),
];

/// The [`SECTIONS`] in which at least one of the two experiments has a value.
pub(super) fn sections(study: &Study, a: Pick, b: Pick) -> Vec<Section> {
    let section = |(kind, title, columns): &(&'static str, &str, &[&'static str])| {
        let mut section = Section::new(kind, title.to_string(), ["column", "a", "b"]);
        for &column in *columns {
            let (x, y) = (a.cell(study, column), b.cell(study, column));
            if x != Cell::Empty || y != Cell::Empty {
                section.rows.push(vec![column.into(), x, y]);
            }
        }
        section
    };
    SECTIONS.iter().map(section).filter(|s| !s.rows.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture::{Folder, ok};

    #[test]
    fn the_class_of_both_is_named() {
        let mut two = ok(1, "b", &["y"], 1_200);
        two.record.validated_error = Some(
            "9 of 10 within 5.0 %, mean 3.0 %; measured in 9 tables, nearest 2 of a100-80g-sxm in bf16".to_string(),
        );
        two.record.validated_class = Some("training/ampere/bf16/megatron/model/closed-form/fitted".to_string());
        let mut one = ok(0, "a", &["x"], 1_000);
        one.record.validated_error = Some("not validated".to_string());
        let folder = Folder::new(&["transport.cc"], vec![one, two]);
        let study = Study::open(&[folder.path()]).unwrap();
        let picks = ["0", "1"].map(|p| Pick::parse(&study, p, 0).unwrap());
        let found = sections(&study, picks[0], picks[1]);
        assert_eq!(found.iter().map(|s| s.kind).collect::<Vec<_>>(), ["explain_worth"]);
        let text = |row: &[Cell]| row.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            text(&found[0].rows[0]),
            [
                "validated_error",
                "not validated",
                "9 of 10 within 5.0 %, mean 3.0 %; measured in 9 tables, nearest 2 of a100-80g-sxm in bf16"
            ]
        );
        assert_eq!(
            text(&found[0].rows[1]),
            ["validated_class", "", "training/ampere/bf16/megatron/model/closed-form/fitted"]
        );
    }
}
