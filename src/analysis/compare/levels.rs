//! Levels of an axis: its values, or ranges of values if there are many.
//!
//! Layer: compare. It works on values as results show them, and knows nothing of experiments or metrics.

use std::collections::{BTreeMap, HashMap};

/// Largest number of values of a numeric axis without bins. Sampled axes have as many values as experiments.
const VALUES_UP_TO: usize = 16;
/// Number of bins of an axis with more values.
pub const BINS: usize = 8;

/// Levels of an axis, and the level of each given value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Names of the levels, in order of value, or of first appearance for words.
    pub names: Vec<String>,
    /// Whether levels are ranges of values.
    pub binned: bool,
    /// Level of each given value.
    pub level: Vec<u32>,
    /// Index of each given value among the distinct values. Equal to `level` if values are not binned.
    pub value: Vec<u32>,
}

impl Levels {
    /// Makes levels from the values of an axis, one value per row. Values count as numbers if all that are not empty are numbers.
    pub fn of<T: AsRef<str>>(texts: &[T]) -> Levels {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (row, text) in texts.iter().enumerate() {
            first.entry(text.as_ref()).or_insert(row);
        }
        let mut distinct: Vec<(&str, usize)> = first.into_iter().collect();
        let mut shown = distinct.iter().filter(|d| !d.0.is_empty()).peekable();
        let numeric = shown.peek().is_some() && shown.all(|d| number(d.0).is_some());
        if numeric {
            // A value that an experiment list leaves empty comes first.
            let value = |text: &str| number(text).unwrap_or(f64::NEG_INFINITY);
            distinct.sort_by(|a, b| value(a.0).total_cmp(&value(b.0)));
        } else {
            distinct.sort_by_key(|&(_, row)| row);
        }
        let n = distinct.len();
        let place: HashMap<&str, u32> = distinct.iter().zip(0..).map(|(d, index)| (d.0, index)).collect();
        let value: Vec<u32> = texts.iter().map(|t| place[t.as_ref()]).collect();
        let binned = numeric && n > VALUES_UP_TO && distinct.iter().all(|d| !d.0.is_empty());
        if !binned {
            return Levels {
                names: distinct.iter().map(|d| d.0.to_string()).collect(),
                binned,
                level: value.clone(),
                value,
            };
        }
        // Each range holds about the same number of distinct values.
        let start = |bin: usize| n * bin / BINS;
        let names =
            (0..BINS).map(|bin| format!("{} to {}", distinct[start(bin)].0, distinct[start(bin + 1) - 1].0)).collect();
        let bin = |value: &u32| (0..BINS).rev().find(|&bin| start(bin) <= *value as usize).unwrap_or(0) as u32;
        Levels { names, binned, level: value.iter().map(bin).collect(), value }
    }
}

/// The value of a text, if it is a finite number.
pub fn number(text: &str) -> Option<f64> {
    // `inf` and `nan` count as words.
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        text.parse().ok().filter(|v: &f64| v.is_finite())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ordered_by_value_and_many_are_binned() {
        let levels = Levels::of(&["400", "100", "50", "400"]);
        assert_eq!((levels.names, levels.level), (["50", "100", "400"].map(String::from).to_vec(), vec![2, 1, 0, 2]));
        let many: Vec<String> = (0..100).rev().map(|n| format!("0.{n:02}")).collect();
        let levels = Levels::of(&many);
        assert!(levels.binned);
        assert_eq!((levels.names.len(), levels.names[0].as_str()), (BINS, "0.00 to 0.11"));
        assert_eq!((levels.level[0], levels.level[99], levels.value[0], levels.value[99]), (7, 0, 99, 0));
    }

    #[test]
    fn words_keep_their_order_and_what_is_left_open_comes_first_among_numbers() {
        assert_eq!(Levels::of(&["hpcc", "dcqcn", "hpcc"]).names, ["hpcc", "dcqcn"]);
        assert_eq!(Levels::of(&["2", "", "1"]).names, ["", "1", "2"]);
        assert_eq!(Levels::of(&["2", "inf", "1"]).names, ["2", "inf", "1"]);
    }
}
