//! Simulations against formulas: what `hyperfold validate closed-forms` prints, each row within its bound.

use hyperfold_host::estimates::closed_forms::{ClosedFormRow, rows};

#[test]
fn formulas_hold() {
    let rows = rows().unwrap_or_else(|e| panic!("{e}"));
    for r in &rows {
        println!(
            "{:12} {:70} {:14} {:>16.4} {:>16.4} {:+8.3} %",
            r.table,
            r.name,
            r.unit,
            r.formula,
            r.simulated,
            r.rel_error() * 100.0
        );
    }
    // Bytes are exact; times within half a per cent.
    let bound = |r: &ClosedFormRow| if r.unit == "bytes" { 0.0 } else { 0.005 };
    let wrong: Vec<String> = rows
        .iter()
        .filter(|r| r.rel_error().is_nan() || r.rel_error().abs() > bound(r))
        .map(|r| format!("{r:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for table in ["collectives", "pipelines", "traffic"] {
        assert!(rows.iter().filter(|r| r.table == table).count() >= 7, "{table}");
    }
}
