//! Rows of collective tables: as packets, by closed form, and again without the corrections from their own measured run.
//!
//! Layer: validation.

use super::measured::MeasuredRow;
use super::row::ValidationRow;
use super::run::{Records, class, gpu, records, row};
use super::tables::MeasuredTable;
use hyperfold_llm::collective::measured_run;
use hyperfold_session::SessionError;
use hyperfold_validated::{ExperimentClass, NetworkClass, SizeClass, Use};

const PACKETS: &str = "packets";
const CLOSED_FORM: &str = "closed form";
/// Part of the group of predictions that use nothing of their own measured run.
const WITHOUT: &str = "without its run";
const SMALL: &str = "up to 1 MiB";
const LARGE: &str = "above 1 MiB";

/// Bound of the mean absolute error of a group. `None`: it has no bound.
pub(super) fn bound(group: &str) -> Option<f64> {
    let is = |word: &str| group.contains(word);
    match (is(WITHOUT), is(PACKETS), is(SMALL)) {
        (true, ..) => None,
        (false, true, true) => Some(0.25),
        (false, true, false) => Some(0.10),
        (false, false, true) => Some(0.15),
        (false, false, false) => Some(0.08),
    }
}

/// One run of a table's sweep, from which rows are made.
struct TableRun<'a> {
    suite: &'static str,
    table: &'a MeasuredTable,
    /// Class of each measured row's experiment, as the sweep has it.
    classes: &'a [Option<ExperimentClass>],
    /// The measured run whose corrections are left out.
    left_out_run: Option<&'a str>,
}

/// Rows of a table. An experiment whose messages cross the network as packets has two rows, one of them by closed form. If costs are corrected by the table's
/// own run, both are repeated without it.
///
/// # Errors
/// A run of the sweep would be refused.
pub(super) fn rows(
    suite: &'static str,
    table: &MeasuredTable,
    closed_forms: bool,
) -> Result<Vec<ValidationRow>, SessionError> {
    let classes: Vec<Option<ExperimentClass>> = table.rows.iter().map(|r| class(table, r)).collect();
    let own = table.rows.iter().find(|r| r.used == Use::Fitted && measured_run(&r.source).is_some());
    let mut rows = Vec::new();
    for left_out_run in std::iter::once(None).chain(own.map(|r| Some(r.source.as_str()))) {
        TableRun { suite, table, classes: &classes, left_out_run }.rows(closed_forms, &mut rows)?;
    }
    Ok(rows)
}

impl TableRun<'_> {
    fn rows(&self, closed_forms: bool, rows: &mut Vec<ValidationRow>) -> Result<(), SessionError> {
        let left_out: Vec<String> =
            self.left_out_run.iter().map(|run| format!("workload.leave_out_run={run}")).collect();
        let closed = records(self.table, &[left_out.clone(), vec!["workload.analytic=all".to_string()]].concat())?;
        let crosses =
            |class: &Option<ExperimentClass>| class.as_ref().is_some_and(|c| c.network == NetworkClass::Packets);
        if !closed_forms && self.classes.iter().any(crosses) {
            let packets = records(self.table, &left_out)?;
            for (r, class) in self.table.rows.iter().zip(self.classes).filter(|(_, class)| crosses(class)) {
                let closed_form = r.unit.of(&closed[&r.experiment]);
                let row = self.row(r, class, NetworkClass::Packets, &packets);
                rows.push(ValidationRow { closed_form, ..row });
            }
        }
        let of_closed = |(r, class)| self.row(r, class, NetworkClass::ClosedForm, &closed);
        rows.extend(self.table.rows.iter().zip(self.classes).map(of_closed));
        Ok(())
    }

    fn row(
        &self,
        r: &MeasuredRow,
        class: &Option<ExperimentClass>,
        network: NetworkClass,
        records: &Records,
    ) -> ValidationRow {
        let size = class.as_ref().map(|c| match c.size {
            SizeClass::ServerSmall | SizeClass::ClusterSmall => SMALL,
            _ => LARGE,
        });
        let carried = if network == NetworkClass::Packets { PACKETS } else { CLOSED_FORM };
        let words = [Some(carried), self.left_out_run.map(|_| WITHOUT), size];
        // The error of a class is meant for other machines, so predictions corrected by their own run do not count.
        let predicted = self.left_out_run.is_some() || r.used != Use::Fitted || measured_run(&r.source).is_none();
        ValidationRow {
            group: words.into_iter().flatten().collect::<Vec<_>>().join(", "),
            class: class.clone().filter(|_| predicted).map(|class| ExperimentClass { network, ..class }),
            gpu: gpu(self.table, r),
            ..row(self.suite, &self.table.name, r, records)
        }
    }
}
