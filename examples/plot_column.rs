//! A folder of results read back: one column as a bar chart in SVG, and every flow as a typed record.
//!
//!     cargo run --release --example plot_column

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt::Write;

use hyperfold::{EngineChoice, RunColumns, RunRecords, Session, SweepBuilder};

/// A bar a row: its label is the first axis, its length the column.
fn bars(run: &RunColumns, column: &str) -> Result<String, Box<dyn Error>> {
    let of = run.column(column).ok_or("no such column")?;
    let label = run.axes().next().ok_or("the sweep has no axis")?;
    let values: Vec<f64> = (0..run.rows.len()).filter_map(|row| run.number(row, of)).collect();
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = format!(r#"<svg xmlns="http://www.w3.org/2000/svg" width="600" height="{}">"#, 30 * values.len());
    for (row, value) in values.iter().enumerate() {
        let (y, width, name) = (30 * row, 400.0 * value / most, &run.rows[row][label]);
        write!(svg, r##"<rect x="0" y="{y}" width="{width:.1}" height="24" fill="#4477aa"/>"##)?;
        write!(svg, r#"<text x="{:.1}" y="{}">{name}: {value}</text>"#, width + 5.0, y + 17)?;
    }
    Ok(svg + "</svg>")
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("hyperfold-plot-column-{}", std::process::id()));
    let sweep = SweepBuilder::new("incast")
        .set("cluster.gpus", 16)
        .set("cluster.gpus_per_server", 1)
        .set("workload.kind", "traffic")
        .set("workload.pattern", "incast")
        .set("workload.bytes", 20_000)
        .set("output.flows", true)
        .axis("workload.fan_in", [2, 4, 8])
        .build()?;
    let summary = Session::new(EngineChoice::Cpu).run_into(&sweep, &folder)?;
    println!("{} experiments, {:?}", summary.records.len(), summary.outcome);

    println!("{}", bars(&RunColumns::open(&folder)?, "fct_p99_ns")?);
    for finished in RunRecords::open(&folder)? {
        let finished = finished?;
        let slowest = finished.flows.iter().max_by_key(|flow| flow.fct).ok_or("no flow")?;
        println!("experiment {}: flow {} from {} ends last", finished.record.exp_id, slowest.flow_id, slowest.src);
    }
    Ok(std::fs::remove_dir_all(&folder)?)
}
