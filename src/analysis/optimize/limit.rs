//! Limits of a search: conditions over columns of results, such as `cost_usd <= 3e6`, that its chosen candidates must meet.
//!
//! Layer: optimize. [`hyperfold_config::sweep::conditions::condition`] defines conditions. Columns that are not objectives are evaluated in addition to them.

use hyperfold_config::sweep::conditions::condition::{Condition, ConditionNames, Val};
use hyperfold_results::Cell;
use hyperfold_results::ExperimentRecord;

use super::objective::{Objective, ObjectiveError};

/// Names that a limit may use: columns of results.csv with numbers.
struct NumberColumns;

impl ConditionNames for NumberColumns {
    fn knows(&self, name: &str) -> bool {
        Objective::named(name).is_ok()
    }

    fn unknown(&self, name: &str) -> String {
        Objective::named(name).err().map_or_else(String::new, |e: ObjectiveError| e.to_string())
    }

    fn example(&self) -> &'static str {
        "cost_usd <= 3e6"
    }
}

/// A condition that candidates must meet.
#[derive(Debug)]
pub struct SearchLimit {
    text: String,
    condition: Condition,
}

/// Whether a candidate meets all limits.
#[derive(Clone, Debug, PartialEq)]
pub enum WithinLimits {
    /// The candidate meets all limits.
    Yes,
    /// A value that decides it is not known.
    Unknown,
    /// The candidate exceeds a limit. The text has the limit and the candidate's values.
    No(String),
}

impl SearchLimit {
    /// Parses a limit.
    ///
    /// # Errors
    /// The text says what is wrong.
    pub fn parse(text: &str) -> Result<SearchLimit, String> {
        let condition = Condition::parse(text, &NumberColumns)?;
        if condition.names().is_empty() {
            return Err("it names no column of results.csv; write for example cost_usd <= 3e6".into());
        }
        // A condition that fails with any number is wrong for all candidates.
        condition.holds(|_| Val::Float(1.0))?;
        Ok(SearchLimit { text: text.into(), condition })
    }

    /// The limit as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The columns that it uses.
    pub fn columns(&self) -> Vec<Objective> {
        self.condition.names().iter().filter_map(|name| Objective::named(name).ok()).collect()
    }

    /// Whether these values of its columns, as they are in results, meet the limit.
    fn check(&self, value: impl Fn(&str) -> Option<f64>) -> WithinLimits {
        let values: Vec<Option<f64>> = self.condition.names().iter().map(|name| value(name)).collect();
        let holds = self.condition.holds(|index| values[index].map_or(Val::Nothing, Val::Float));
        match holds {
            Ok(true) => WithinLimits::Yes,
            Ok(false) => {
                let name =
                    |(name, v): (&String, &Option<f64>)| Some(format!("{name} = {}", Cell::Real(v.as_ref().copied()?)));
                let values: Vec<String> = self.condition.names().iter().zip(&values).filter_map(name).collect();
                WithinLimits::No(format!("beyond the limit {}: {}", self.text, values.join(", ")))
            }
            Err(_) => WithinLimits::Unknown,
        }
    }
}

/// Whether a candidate meets all limits. `values` are those of `columns`, with signs such that less is better, as in a search.
pub fn within(limits: &[SearchLimit], columns: &[Objective], values: &[Option<f64>]) -> WithinLimits {
    let value = |name: &str| {
        let index = columns.iter().position(|c| c.name() == name)?;
        values.get(index).copied().flatten().map(|v| columns[index].shown(v))
    };
    all(limits.iter().map(|limit| limit.check(value)))
}

/// Whether a result meets all limits.
pub fn record_within(limits: &[SearchLimit], record: &ExperimentRecord) -> WithinLimits {
    let value = |name: &str| {
        let column = Objective::named(name).ok()?;
        column.value(record).map(|v| column.shown(v))
    };
    all(limits.iter().map(|limit| limit.check(value)))
}

fn all(verdicts: impl Iterator<Item = WithinLimits>) -> WithinLimits {
    let mut sum = WithinLimits::Yes;
    for verdict in verdicts {
        match verdict {
            WithinLimits::No(why) => return WithinLimits::No(why),
            WithinLimits::Unknown => sum = WithinLimits::Unknown,
            WithinLimits::Yes => {}
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_results::Ps;

    #[test]
    fn limits_are_conditions_over_columns_of_numbers() {
        assert!(SearchLimit::parse("cost_usd <= 3e6 && power_kw < 100").is_ok());
        for (text, part) in [
            ("cost_us <= 3", "did you mean `cost_usd`"),
            ("cost_usd", "true or false"),
            ("3 < 4", "names no column"),
            ("status == \"ok\"", "no column of results.csv with numbers"),
            ("cost_usd <=", "not a condition; write for example cost_usd <= 3e6"),
        ] {
            let why = SearchLimit::parse(text).expect_err(text);
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    #[test]
    fn what_is_not_known_neither_meets_nor_breaks_a_limit() {
        let limits = ["makespan_ns <= 2", "mfu >= 0.5"].map(|text| SearchLimit::parse(text).unwrap());
        let mut r = ExperimentRecord::new(0, String::new(), String::new(), 0, 0, Vec::new());
        r.makespan = Some(Ps(1_500));
        assert_eq!(record_within(&limits, &r), WithinLimits::Unknown);
        r.mfu = Some(0.5);
        assert_eq!(record_within(&limits, &r), WithinLimits::Yes);
        r.mfu = Some(0.25);
        assert_eq!(record_within(&limits, &r), WithinLimits::No("beyond the limit mfu >= 0.5: mfu = 0.25".into()));
        // A search has rates with their sign turned.
        let columns = [Objective::named("mfu").unwrap()];
        assert!(matches!(within(&limits[1..], &columns, &[Some(-0.4)]), WithinLimits::No(_)));
        assert_eq!(within(&limits[1..], &columns, &[Some(-0.6)]), WithinLimits::Yes);
    }
}
