//! Output of `run --json`: the rows of `results.csv`, as one JSON object per line.
//!
//! Layer: cli. Names and values are those of the columns; an empty cell is `null`.

use serde_json::{Map, Value};

use hyperfold_results::record::{IDENTITY, outcome_columns};
use hyperfold_results::{Axis, ClusterColumns, ColumnSets, ExperimentRecord};

use super::compare_render::value;

/// One object for each record, in their order.
pub(super) fn lines(axes: &[Axis], records: &[ExperimentRecord]) -> Vec<String> {
    let sets = column_sets(records);
    records.iter().map(|record| Value::Object(object(axes, record, sets)).to_string()).collect()
}

/// Sets of columns of the output. As in `results.csv`, columns of clusters and of inference appear only if an experiment has them.
fn column_sets(records: &[ExperimentRecord]) -> ColumnSets {
    let has_cluster = records.iter().any(|r| r.cluster.is_some());
    let cluster = if has_cluster { ClusterColumns::WithIterations } else { ClusterColumns::Absent };
    ColumnSets { cluster, serving: records.iter().any(|r| r.serving.is_some()) }
}

fn object(axes: &[Axis], record: &ExperimentRecord, sets: ColumnSets) -> Map<String, Value> {
    let identity = IDENTITY.iter().map(|c| (c.name.to_string(), (c.cell)(record)));
    let axes = axes.iter().map(|axis| axis.key.clone()).zip(record.axis_values.iter().cloned());
    let outcome = outcome_columns(sets).map(|c| (c.name.to_string(), (c.cell)(record)));
    identity.chain(axes).chain(outcome).map(|(name, cell)| (name, value(&cell))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfold_results::{ColumnKind, Ps};

    #[test]
    fn a_record_is_an_object_with_the_names_of_columns() {
        let axes = [Axis { key: "transport.cc".into(), kind: ColumnKind::Text }];
        let mut record = ExperimentRecord::new(3, "c".into(), "e".into(), 0, 1, vec!["hpcc".into()]);
        record.makespan = Some(Ps(1_500));
        let lines = lines(&axes, &[record]);
        let object: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!((lines.len(), &object["exp_id"], &object["transport.cc"]), (1, &3.into(), &"hpcc".into()));
        assert_eq!((&object["makespan_ns"], &object["drops"]), (&1.5.into(), &Value::Null));
        assert_eq!(object.get("goodput"), None, "there is no cluster");
    }
}
