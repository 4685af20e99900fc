//! The experiments that a figure is of: those that meet a condition over columns.
//!
//! Layer: plot.

use crate::results::{Cell, ColumnRole, RunResults};
use crate::spec::nearest_column;
use crate::sweep::condition::{Condition, ConditionNames};

use super::PlotError;

/// Leaves out the experiments for which `condition` does not hold, and those without a value that it needs.
///
/// # Errors
/// It is no condition, names no column, or holds for no experiment.
pub fn keep_rows(run: &mut RunResults, condition: &str) -> Result<(), PlotError> {
    let wrong = |why: String| PlotError::Where { condition: condition.into(), why };
    let parsed = Condition::parse(condition, &Columns(run)).map_err(wrong)?;
    let columns: Vec<usize> = parsed.names().iter().filter_map(|name| place(run, name)).collect();
    let mut keep = Vec::with_capacity(run.rows.len());
    // Why nothing can be said, first of the experiments that have all values.
    let (mut without_value, mut undecided) = (0, None);
    for row in &run.rows {
        match parsed.holds(|name| row[columns[name]].condition_value()) {
            Ok(holds) => keep.push(holds),
            Err(why) => {
                match columns.iter().any(|&c| row[c] == Cell::Empty) {
                    true => without_value += 1,
                    false => undecided = undecided.or(Some(why)),
                }
                keep.push(false);
            }
        }
    }
    if let Some(why) = undecided {
        return Err(wrong(why));
    }
    if !keep.contains(&true) {
        return Err(wrong(match without_value {
            0 => "it holds for no experiment".into(),
            n => {
                format!("it holds for no experiment; of {} a value is missing", crate::units::counted(n, "experiment"))
            }
        }));
    }
    let mut kept = keep.into_iter();
    run.rows.retain(|_| kept.next().expect("there is one for each row"));
    Ok(())
}

/// The column of this name, or the axis whose last part alone it is.
fn place(run: &RunResults, name: &str) -> Option<usize> {
    let axes = || (0..run.columns.len()).filter(|&c| run.columns[c].role == ColumnRole::Axis);
    let mut ends = axes().filter(|&c| run.columns[c].name.rsplit('.').next() == Some(name));
    run.column(name).or_else(|| ends.next().filter(|_| ends.next().is_none()))
}

/// Names of a condition: the columns of a folder.
struct Columns<'a>(&'a RunResults);

impl ConditionNames for Columns<'_> {
    fn knows(&self, name: &str) -> bool {
        place(self.0, name).is_some()
    }

    fn unknown(&self, name: &str) -> String {
        let all = || self.0.columns.iter().map(|c| c.name.as_str());
        match nearest_column(name, all()) {
            Some(near) => format!("there is no column `{name}`; did you mean `{near}`? A text stands in double quotes"),
            None => {
                let axes = self.0.axes().map(|c| self.0.columns[c].name.as_str()).collect::<Vec<_>>();
                format!(
                    "there is no column `{name}`; it takes those of results.csv, such as the axes {}",
                    axes.join(", ")
                )
            }
        }
    }

    fn example(&self) -> &'static str {
        "transport.cc == \"hpcc\" && drops == 0"
    }
}
