//! Rows of collective tables: as packets, by closed form, and again without the corrections from their own measured run.
//!
//! Layer: validation.

use super::measured::{MeasuredRow, Unit};
use super::row::ValidationRow;
use super::run::{Records, class, gpu, records, row};
use super::tables::MeasuredTable;
use hyperfold_llm::collective::measured_run;
use hyperfold_session::SessionError;
use hyperfold_validated::{ExperimentClass, MachineClass, NetworkClass, SizeClass, Use};

const PACKETS: &str = "packets";
const CLOSED_FORM: &str = "closed form";
/// Part of the group of predictions that use nothing of their own measured run.
const WITHOUT: &str = "without its run";
/// Part of the group of predictions that know only the time of the table's smallest size.
const WITH_BASE: &str = "with its base time";
/// Keys of base times: within one server, and across servers.
const BASE_KEYS: [&str; 2] = ["cluster.base_time_ns", "cluster.base_time_across_ns"];
/// Range in which a base time is sought, in ns, and the number of halvings of its logarithm: to 0.1 %. Our choice: all measured ones are inside.
const BASE_RANGE_NS: (f64, f64) = (1e3, 1e7);
const BASE_HALVINGS: u32 = 14;
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
    /// The measured run whose corrections are left out, and with them the server's base times.
    left_out_run: Option<&'a str>,
    /// The base time that the row of the smallest size says, as a setting of its key.
    base_time: Option<BaseTime>,
}

/// A base time, and the row that it is taken from.
#[derive(Clone)]
struct BaseTime {
    setting: String,
    experiment: u64,
}

/// Rows of a table. An experiment whose messages cross the network as packets has two rows, one of them by closed form. If costs are corrected by the table's
/// own run, both are repeated without it. Tables of machines without a run are repeated with one base time.
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
    let own = own.map(|r| r.source.as_str());
    let is_held_out = table.rows.iter().all(|r| r.used == Use::Checked);
    let mut rows = Vec::new();
    TableRun { suite, table, classes: &classes, left_out_run: None, base_time: None }.rows(closed_forms, &mut rows)?;
    if own.is_some() {
        TableRun { suite, table, classes: &classes, left_out_run: own, base_time: None }
            .rows(closed_forms, &mut rows)?;
    }
    if own.is_some() || is_held_out {
        let without = TableRun { suite, table, classes: &classes, left_out_run: own, base_time: None };
        if let Some(base_time) = without.base_time()? {
            TableRun { base_time: Some(base_time), ..without }.rows(closed_forms, &mut rows)?;
        }
    }
    Ok(rows)
}

impl TableRun<'_> {
    fn rows(&self, closed_forms: bool, rows: &mut Vec<ValidationRow>) -> Result<(), SessionError> {
        let left_out = self.settings();
        let closed = records(self.table, &[left_out.clone(), vec!["workload.analytic=all".to_string()]].concat())?;
        let crosses =
            |class: &Option<ExperimentClass>| class.as_ref().is_some_and(|c| c.network == NetworkClass::Packets);
        // The row that says the base time is no prediction.
        let known = self.base_time.as_ref().map(|base| base.experiment);
        let rows_of_table = || self.table.rows.iter().zip(self.classes).filter(|(r, _)| Some(r.experiment) != known);
        if !closed_forms && self.classes.iter().any(crosses) {
            let packets = records(self.table, &left_out)?;
            for (r, class) in rows_of_table().filter(|(_, class)| crosses(class)) {
                let closed_form = r.unit.of(&closed[&r.experiment]);
                let row = self.row(r, class, NetworkClass::Packets, &packets);
                rows.push(ValidationRow { closed_form, ..row });
            }
        }
        let of_closed = |(r, class)| self.row(r, class, NetworkClass::ClosedForm, &closed);
        rows.extend(rows_of_table().map(of_closed));
        Ok(())
    }

    /// Settings with which the table's sweep runs.
    fn settings(&self) -> Vec<String> {
        let unset = BASE_KEYS.map(|key| format!("{key}=0"));
        let left_out = self.left_out_run.map(|run| format!("workload.leave_out_run={run}"));
        let without = left_out.into_iter().flat_map(|run| [run].into_iter().chain(unset.clone()));
        without.chain(self.base_time.iter().map(|base| base.setting.clone())).collect()
    }

    /// The base time with which the closed form takes as long as the row of the smallest size. `None`: the smallest size is above 1 MiB or no time, or no base time
    /// does that.
    fn base_time(&self) -> Result<Option<BaseTime>, SessionError> {
        // Rows of a sweep over sizes are in their order.
        let first = self.table.rows.iter().zip(self.classes).next();
        let Some((smallest, Some(class))) = first.filter(|(r, _)| r.unit == Unit::Microseconds) else {
            return Ok(None);
        };
        let key = match class.size {
            SizeClass::ServerSmall => BASE_KEYS[0],
            SizeClass::ClusterSmall => BASE_KEYS[1],
            _ => return Ok(None),
        };
        let mut one = self.table.clone();
        one.sweep.experiments.retain(|e| e.exp_id == smallest.experiment);
        let base_of_ns =
            |base_ns: f64| BaseTime { setting: format!("{key}={base_ns:.0}"), experiment: smallest.experiment };
        let (mut low_ns, mut high_ns) = BASE_RANGE_NS;
        for _ in 0..BASE_HALVINGS {
            let middle_ns = libm::sqrt(low_ns * high_ns);
            let base_time = Some(base_of_ns(middle_ns));
            let run = TableRun { base_time, table: &one, classes: self.classes, suite: self.suite, ..*self };
            let closed = records(&one, &[run.settings(), vec!["workload.analytic=all".to_string()]].concat())?;
            let simulated = smallest.unit.of(&closed[&smallest.experiment]).unwrap_or(f64::INFINITY);
            if simulated < smallest.value {
                low_ns = middle_ns;
            } else {
                high_ns = middle_ns;
            }
        }
        Ok(Some(base_of_ns(high_ns)))
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
        let words =
            [Some(carried), self.left_out_run.map(|_| WITHOUT), self.base_time.as_ref().map(|_| WITH_BASE), size];
        // The error of a class is meant for other machines, so predictions corrected by their own run do not count.
        let predicted = self.base_time.is_some()
            || self.left_out_run.is_some()
            || r.used != Use::Fitted
            || measured_run(&r.source).is_none();
        let machine = |class: &ExperimentClass| match (&self.base_time, self.left_out_run) {
            (Some(_), _) => MachineClass::Measured,
            (None, Some(_)) => MachineClass::Unmeasured,
            (None, None) => class.machine,
        };
        ValidationRow {
            group: words.into_iter().flatten().collect::<Vec<_>>().join(", "),
            class: class.clone().filter(|_| predicted).map(|c| ExperimentClass { network, machine: machine(&c), ..c }),
            gpu: gpu(self.table, r),
            ..row(self.suite, &self.table.name, r, records)
        }
    }
}
