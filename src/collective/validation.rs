//! Costs held against measured collectives: the rows of `hyperfold validate collectives`.
//!
//! Layer: collective. A row of a run that is in the database is predicted without that row; single points are never in it, and the few that a link's efficiency
//! was taken from say so.

use super::communicator::Communicator;
use super::curves::Curves;
use super::nccl::{Env, Protocol};
use super::reference::{self, ReferencePoint, ReferenceRow, ReferenceRun};
use super::system::{CollectiveSystem, MemberPlacement};
use super::{CollectiveOp, cost};

/// A measured figure and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectiveValidationRow {
    pub name: String,
    /// "us" or "GB/s" (bus bandwidth).
    pub unit: &'static str,
    pub measured: f64,
    pub simulated: f64,
    /// How independent the row is, and why it is off where it is.
    pub note: String,
    pub bytes: u64,
    /// Its own source says that it is not a healthy idle machine's time.
    pub doubtful: bool,
}

impl CollectiveValidationRow {
    /// (simulated - measured) / measured.
    pub fn rel_error(&self) -> f64 {
        (self.simulated - self.measured) / self.measured
    }
}

/// All rows: sweeps by run and size, then single points.
pub fn rows() -> Vec<CollectiveValidationRow> {
    let mut rows: Vec<CollectiveValidationRow> = reference::runs().iter().flat_map(sweep_rows).collect();
    rows.extend(reference::points().iter().map(point_row));
    rows
}

/// Mean absolute relative error of the rows above 1 MiB (what is at or below is launch latency, which differs more between set-ups than between machines).
pub fn mean_error(rows: &[CollectiveValidationRow]) -> f64 {
    let errors: Vec<f64> = rows.iter().filter(|r| r.bytes > 1 << 20).map(|r| r.rel_error().abs()).collect();
    errors.iter().sum::<f64>() / errors.len().max(1) as f64
}

fn sweep_rows(run: &ReferenceRun) -> Vec<CollectiveValidationRow> {
    run.rows
        .iter()
        .enumerate()
        .map(|(i, row)| {
            let curves = Curves::new(reference::runs(), Some((&run.id, row.bytes)));
            let simulated = predicted_us(run, &curves, row);
            // A run outside the database may hold a size more than once.
            let nth = if run.curve { String::new() } else { format!("#{i}") };
            let name = format!("{}/{:?}/{}{nth}", run.id, row.op, row.bytes);
            let how = match run.curve {
                _ if reference::is_calibration(&name) => "a link's efficiency is taken from this row",
                true => "predicted from the run's other sizes",
                false => "predicted, run not in the database",
            };
            let note = [Some(how), reference::doubt(&name), Some(run.note.as_str()).filter(|n| !n.is_empty())]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("; ");
            CollectiveValidationRow {
                doubtful: reference::doubt(&name).is_some(),
                name,
                unit: "us",
                measured: row.time_us,
                simulated,
                note,
                bytes: row.bytes,
            }
        })
        .collect()
}

/// What is predicted of a row by given curves, us: as it would be carried out.
fn predicted_us(run: &ReferenceRun, curves: &Curves, row: &ReferenceRow) -> f64 {
    let env = Env::default();
    let communicator = Communicator::new(&row.at, &run.system, &env);
    let (algorithm, protocol) = match run.algorithm {
        Some(algorithm) => (algorithm, Protocol::Simple),
        None => {
            let choice = communicator.choose(row.op, row.bytes);
            (choice.algorithm, choice.protocol)
        }
    };
    communicator.corrected_us(curves, row.op, algorithm, protocol, row.bytes)
}

/// "8GiB", "1GiB" or plain bytes; words ("large", "max") are nccl-tests' usual largest size.
fn size(text: &str) -> u64 {
    match text.strip_suffix("GiB") {
        Some(n) => n.parse::<u64>().map_or(16 << 30, |n| n << 30),
        None => text.parse().unwrap_or(16 << 30),
    }
}

/// Bus bandwidth over algorithm bandwidth.
fn bus_factor(op: CollectiveOp, n: f64) -> f64 {
    match op {
        CollectiveOp::AllReduce => 2.0 * (n - 1.0) / n,
        CollectiveOp::AllGather | CollectiveOp::ReduceScatter | CollectiveOp::AllToAll => (n - 1.0) / n,
        _ => 1.0,
    }
}

fn point_row(point: &ReferencePoint) -> CollectiveValidationRow {
    let server = reference::point_server(point);
    let shared = point.note.contains("SHARP") || point.algo.contains("SHARP");
    let system = server.system(shared);
    let per_node =
        if system.gpus_per_server > point.ranks { point.ranks } else { point.ranks.min(system.gpus_per_server) };
    let per_node = if point.nodes > 1 && system.gpus_per_server <= 8 { point.ranks / point.nodes } else { per_node };
    let at = MemberPlacement::alone(point.ranks, per_node);
    let bytes = size(&point.size);
    let simulated = simulated(point, &at, &system, bytes);
    let name = format!("{}/{} nodes/{}/{}", point.system, point.nodes, point.collective, point.algo);
    let how = if reference::is_calibration(&name) { "a link's efficiency is taken from this row" } else { "predicted" };
    let note = [Some(how), reference::doubt(&name), Some(point.note.as_str()).filter(|n| !n.is_empty())]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; ");
    CollectiveValidationRow {
        doubtful: reference::doubt(&name).is_some(),
        name,
        unit: "GB/s",
        measured: point.busbw_gbps,
        simulated,
        note,
        bytes,
    }
}

fn simulated(point: &ReferencePoint, at: &MemberPlacement, system: &CollectiveSystem, bytes: u64) -> f64 {
    let gb = bytes as f64 / 1e9;
    let Some(op) = reference::op_named(&point.collective) else {
        // nccl-tests' sendrecv: everybody to the next; the slowest pair decides, between servers if there are several.
        let ps = cost::send_ps(bytes, point.nodes == 1, 1, system, &Env::default());
        return gb / (ps as f64 / 1e12);
    };
    let algorithm = match point.algo.as_str() {
        "Ring" => "Ring",
        "NVLS" | "NVLSTree" => "NVLS",
        _ => "",
    };
    let mut variables = std::collections::BTreeMap::new();
    if point.collective.contains("NVLS off") {
        variables.insert("NCCL_NVLS_ENABLE".to_string(), "0".to_string());
    }
    if !algorithm.is_empty() {
        variables.insert("NCCL_ALGO".to_string(), algorithm.to_string());
    }
    let env = Env::parse(&variables).expect("these are valid");
    let ps = cost::cost_ps(op, bytes, at, system, &env);
    gb / (ps as f64 / 1e12) * bus_factor(op, at.ranks as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo test collective::validation -- --nocapture` prints the table.
    #[test]
    fn above_a_mebibyte_within_eight_per_cent_on_average() {
        let rows = rows();
        for r in &rows {
            println!(
                "{:75} {:>12.2} {:>12.2} {:4} {:+7.1} %  {}",
                r.name,
                r.measured,
                r.simulated,
                r.unit,
                r.rel_error() * 100.0,
                r.note
            );
        }
        let (sweeps, points): (Vec<CollectiveValidationRow>, Vec<CollectiveValidationRow>) =
            rows.into_iter().partition(|r| r.unit == "us");
        println!("sweeps {:.2} %, points {:.2} %", mean_error(&sweeps) * 100.0, mean_error(&points) * 100.0);
        let mut runs: Vec<String> =
            sweeps.iter().map(|r| r.name.split('/').take(2).collect::<Vec<_>>().join("/")).collect();
        runs.dedup();
        for run in &runs {
            let of: Vec<CollectiveValidationRow> =
                sweeps.iter().filter(|r| r.name.starts_with(run.as_str())).cloned().collect();
            println!("{run:40} {:.2} %", mean_error(&of) * 100.0);
        }
        assert_eq!(sweeps.len() + points.len(), 189 + 44);
        let all = [sweeps.clone(), points.clone()].concat();
        let sound: Vec<CollectiveValidationRow> = all.iter().filter(|r| !r.doubtful).cloned().collect();
        println!(
            "all {:.2} %, without the {} doubtful {:.2} %",
            mean_error(&all) * 100.0,
            all.len() - sound.len(),
            mean_error(&sound) * 100.0
        );
        assert!(mean_error(&sweeps) < 0.09);
        assert!(mean_error(&all) < 0.10);
        assert!(mean_error(&sound) < 0.06);
    }
}
