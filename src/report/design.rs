//! Experiments as a design: axes with their levels, configurations with their replicas, and which configurations answer one question.
//!
//! Layer: report. Configurations that differ in what is to be done (another model, another traffic) are never ranked against each
//! other: they belong to different groups. Knows no metrics.

use std::collections::{BTreeMap, HashMap};

use crate::compare::is_question;

use super::sheet::{Column, Holds, Sheet};

/// Values of a numeric axis beyond which they are put together in bins (sampled axes have as many values as experiments).
const LEVELS_UP_TO: usize = 16;
/// Bins of such an axis.
const BINS: usize = 8;

/// An axis and its levels.
#[derive(Clone, Debug)]
pub struct AxisLevels {
    /// The dotted key.
    pub key: String,
    /// Whether it asks another question rather than tries another answer.
    pub question: bool,
    /// In order of value, or of first appearance for words.
    pub levels: Vec<String>,
    /// Whether levels are ranges of values.
    pub binned: bool,
}

/// Replicas of one configuration.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Rows of the sheet.
    pub rows: Vec<usize>,
    /// Its level on each axis.
    pub levels: Vec<u32>,
    /// Its value on each axis, counted among the values that occur; the level where values are not put in bins.
    pub values: Vec<u32>,
    pub group: usize,
}

/// The design of a sheet.
#[derive(Clone, Debug, Default)]
pub struct Design {
    pub axes: Vec<AxisLevels>,
    /// In the order of their first experiment.
    pub configurations: Vec<Configuration>,
    /// The questions' levels of each group, in words; one empty text if the sweep asks one question.
    pub groups: Vec<String>,
}

impl Design {
    /// Takes a sheet apart.
    pub fn of(sheet: &Sheet) -> Design {
        let (axes, stands): (Vec<_>, Vec<_>) = sheet.axes().iter().map(levels).unzip();
        let mut design = Design { axes, ..Design::default() };
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut groups: HashMap<Vec<&str>, usize> = HashMap::new();
        let keys = sheet.column("config_key");
        for row in 0..sheet.rows() {
            let at = design.configurations.len();
            // A table without keys has no replicas.
            let place = keys.map_or(at, |k| *places.entry(&k.text[row]).or_insert(at));
            if place < at {
                design.configurations[place].rows.push(row);
                continue;
            }
            // By their own values, not by bins of them: two loads are two questions, however close.
            let asks = |c: &&Column| is_question(&c.name);
            let asked: Vec<&str> = sheet.axes().iter().filter(asks).map(|c| c.text[row].as_str()).collect();
            let fresh = groups.len();
            let group = *groups.entry(asked.clone()).or_insert(fresh);
            if group == fresh {
                design.groups.push(asked.join(", "));
            }
            let levels = stands.iter().map(|s| s.level[row]).collect();
            let values = stands.iter().map(|s| s.value[row]).collect();
            design.configurations.push(Configuration { rows: vec![row], levels, values, group });
        }
        design
    }

    /// The axes that try answers, by their numbers.
    pub fn answers(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.axes.len()).filter(|&a| !self.axes[a].question)
    }

    /// A configuration's answers in words: `kind clos, cc hpcc`.
    pub fn describe(&self, configuration: usize) -> Vec<(String, String)> {
        let c = &self.configurations[configuration];
        self.answers().map(|a| (self.axes[a].key.clone(), self.axes[a].levels[c.levels[a] as usize].clone())).collect()
    }
}

/// Where each row stands on an axis.
struct Places {
    level: Vec<u32>,
    value: Vec<u32>,
}

/// An axis's levels, and where each row stands.
fn levels(column: &Column) -> (AxisLevels, Places) {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for (row, text) in column.text.iter().enumerate() {
        first.entry(text).or_insert(row);
    }
    let mut distinct: Vec<(&str, usize)> = first.into_iter().collect();
    if column.holds == Holds::Text {
        distinct.sort_by_key(|&(_, row)| row);
    } else {
        // What a listed experiment leaves open comes first.
        let value = |row: usize| column.number(row).unwrap_or(f64::NEG_INFINITY);
        distinct.sort_by(|a, b| value(a.1).total_cmp(&value(b.1)));
    }
    let n = distinct.len();
    let place: HashMap<&str, usize> = distinct.iter().enumerate().map(|(at, d)| (d.0, at)).collect();
    let value: Vec<u32> = column.text.iter().map(|t| place[t.as_str()] as u32).collect();
    let binned = column.holds == Holds::Number && n > LEVELS_UP_TO && distinct.iter().all(|d| !d.0.is_empty());
    let axis = |levels| AxisLevels { key: column.name.clone(), question: is_question(&column.name), levels, binned };
    if !binned {
        return (axis(distinct.iter().map(|d| d.0.to_string()).collect()), Places { level: value.clone(), value });
    }
    // Ranges that hold about as many distinct values each.
    let start = |bin: usize| n * bin / BINS;
    let names = (0..BINS).map(|bin| format!("{} to {}", distinct[start(bin)].0, distinct[start(bin + 1) - 1].0)).collect();
    let bin = |value: &u32| (0..BINS).rev().find(|&bin| start(bin) <= *value as usize).unwrap_or(0) as u32;
    (axis(names), Places { level: value.iter().map(bin).collect(), value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sheet::tests::sheet;

    #[test]
    fn replicas_are_one_configuration_and_questions_are_groups() {
        let s = sheet(
            "exp_id,config_key,seed,transport.cc,workload.pattern,status,makespan_ns
             0,k0,1,hpcc,ring,ok,5
             1,k0,2,hpcc,ring,ok,6
             2,k1,1,dcqcn,ring,ok,7
             3,k2,1,hpcc,incast,ok,8",
        );
        let d = Design::of(&s);
        let rows: Vec<&[usize]> = d.configurations.iter().map(|c| c.rows.as_slice()).collect();
        assert_eq!(rows, [&[0, 1][..], &[2], &[3]]);
        assert_eq!(d.groups, ["ring", "incast"]);
        assert_eq!(d.configurations.iter().map(|c| c.group).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(d.axes[0].levels, ["hpcc", "dcqcn"]);
        assert_eq!(d.describe(1), [("transport.cc".to_string(), "dcqcn".to_string())]);
    }

    #[test]
    fn numbers_are_ordered_by_value_and_many_are_binned() {
        let column = Column::infer("topology.link_gbps", ["400", "100", "50", "400"].map(String::from).to_vec());
        let (axis, of) = levels(&column);
        assert_eq!((axis.levels, of.level), (["50", "100", "400"].map(String::from).to_vec(), vec![2, 1, 0, 2]));
        let many = Column::infer("transport.hpcc.eta", (0..100).rev().map(|n| format!("0.{n:02}")).collect());
        let (axis, of) = levels(&many);
        assert!(axis.binned);
        assert_eq!((axis.levels.len(), axis.levels[0].as_str()), (BINS, "0.00 to 0.11"));
        assert_eq!((of.level[0], of.level[99], of.value[0], of.value[99]), (7, 0, 99, 0));
    }
}
