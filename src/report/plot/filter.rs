//! Filters the experiments of a figure by conditions over columns.
//!
//! Layer: plot.

use hyperfold_base::nearest::nearest_column;
use hyperfold_base::units::counted;
use hyperfold_config::sweep::conditions::condition::{Condition, ConditionNames};
use hyperfold_results::{Cell, RunColumns};

use super::PlotError;
use super::columns::axes_ending;

/// Removes the rows for which one of `conditions` does not hold, and rows that lack a value that a condition needs.
///
/// # Errors
/// A text is no condition or names no column, or no experiment meets all conditions.
pub fn keep_rows(run: &mut RunColumns, conditions: &[String]) -> Result<(), PlotError> {
    let wrong = |condition: &str, why: String| PlotError::Where { condition: condition.into(), why };
    let mut keep = vec![true; run.rows.len()];
    let mut without_value = 0;
    for condition in conditions {
        let parsed = Condition::parse(condition, &Columns(run)).map_err(|why| wrong(condition, why))?;
        let columns: Vec<usize> = parsed.names().iter().filter_map(|name| place(run, name)).collect();
        for (row, keep) in run.rows.iter().zip(&mut keep) {
            let holds = parsed.holds(|name| row[columns[name]].condition_value());
            let is_missing = columns.iter().any(|&c| row[c] == Cell::Empty);
            *keep &= match holds {
                Ok(holds) => holds,
                Err(_) if is_missing => {
                    without_value += u64::from(*keep);
                    false
                }
                Err(why) => return Err(wrong(condition, why)),
            };
        }
    }
    if !conditions.is_empty() && !keep.contains(&true) {
        let missing = match without_value {
            0 => String::new(),
            n => format!("; of {} a value is missing", counted(n, "experiment")),
        };
        let all = conditions.join("' --where '");
        return Err(wrong(
            &all,
            format!("no experiment meets {}{missing}", if conditions.len() > 1 { "all of them" } else { "it" }),
        ));
    }
    let mut kept = keep.into_iter();
    run.rows.retain(|_| kept.next().expect("there is one for each row"));
    Ok(())
}

/// The column with this name, or the only axis that ends in `.name`.
fn place(run: &RunColumns, name: &str) -> Option<usize> {
    let ends = axes_ending(run, name);
    run.column(name).or_else(|| ends.first().filter(|_| ends.len() == 1).copied())
}

/// Names that a condition may use: the columns of a folder.
struct Columns<'a>(&'a RunColumns);

impl ConditionNames for Columns<'_> {
    fn knows(&self, name: &str) -> bool {
        place(self.0, name).is_some()
    }

    fn unknown(&self, name: &str) -> String {
        let all = || self.0.columns.iter().map(|c| c.name.as_str());
        match nearest_column(name, all()) {
            Some(near) => {
                format!("there is no column `{name}` (a text stands in double quotes); did you mean `{near}`?")
            }
            None => {
                let axes = self.0.axes().map(|c| self.0.columns[c].name.as_str()).collect::<Vec<_>>();
                format!(
                    "there is no column `{name}` (a text stands in double quotes); it takes those of results.csv, such as the axes {}",
                    axes.join(", ")
                )
            }
        }
    }

    fn example(&self) -> &'static str {
        "transport.cc == \"hpcc\" && drops == 0"
    }
}
