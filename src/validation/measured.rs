//! Reads measured values beside a sweep file, as CSV.
//!
//! Layer: validation. It parses text and runs nothing.

use serde::Deserialize;

use hyperfold_results::record::{OUTCOME, SERVING};
use hyperfold_results::{Cell, ExperimentRecord};
use hyperfold_validated::{ErrorQuantity, Use};

/// One measured value of an experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRow {
    /// `exp_id` of its experiment in the sweep.
    pub experiment: u64,
    /// Name of the value in its table.
    pub name: String,
    /// The value, in `unit`.
    pub value: f64,
    /// Unit of the value.
    pub unit: Unit,
    /// How the value was used: fitted, checked or doubtful.
    #[serde(rename = "use")]
    pub used: Use,
    /// Place of the value in the table's source.
    pub source: String,
    /// Remark of its source, or the reason of its error.
    pub note: String,
}

/// Unit of a value, which also decides the column of `results.csv` that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Unit {
    /// Time in seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Time in microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Tokens a second and GPU.
    #[serde(rename = "tokens/s/GPU")]
    TokensPerSecondPerGpu,
    /// Bus bandwidth of a collective as nccl-tests defines it, in 10^9 bytes a second.
    #[serde(rename = "GB/s")]
    BusGigabytesPerSecond,
    /// Peak of a GPU's memory, in GiB.
    #[serde(rename = "GiB")]
    PeakGibibytes,
    /// Tokens of answers a second, of all GPUs together.
    #[serde(rename = "output tokens/s")]
    OutputTokensPerSecond,
    /// Mean time from a request's arrival to its first token, in ms.
    #[serde(rename = "ms to the first token")]
    FirstToken,
    /// Median of that time.
    #[serde(rename = "ms to the first token (median)")]
    FirstTokenMedian,
    /// Its 99th percentile.
    #[serde(rename = "ms to the first token (p99)")]
    FirstTokenP99,
    /// Mean over requests of the time per token after the first, in ms.
    #[serde(rename = "ms per output token")]
    PerToken,
    /// Median of that time.
    #[serde(rename = "ms per output token (median)")]
    PerTokenMedian,
    /// Its 99th percentile.
    #[serde(rename = "ms per output token (p99)")]
    PerTokenP99,
    /// Mean time from a request's arrival to its last token, in ms.
    #[serde(rename = "ms to the last token")]
    LastToken,
}

impl Unit {
    /// All units.
    pub const ALL: [Unit; 13] = [
        Unit::Seconds,
        Unit::Microseconds,
        Unit::TokensPerSecondPerGpu,
        Unit::BusGigabytesPerSecond,
        Unit::PeakGibibytes,
        Unit::OutputTokensPerSecond,
        Unit::FirstToken,
        Unit::FirstTokenMedian,
        Unit::FirstTokenP99,
        Unit::PerToken,
        Unit::PerTokenMedian,
        Unit::PerTokenP99,
        Unit::LastToken,
    ];

    /// Name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Microseconds => "us",
            Unit::TokensPerSecondPerGpu => "tokens/s/GPU",
            Unit::BusGigabytesPerSecond => "GB/s",
            Unit::PeakGibibytes => "GiB",
            Unit::OutputTokensPerSecond => "output tokens/s",
            Unit::FirstToken => "ms to the first token",
            Unit::FirstTokenMedian => "ms to the first token (median)",
            Unit::FirstTokenP99 => "ms to the first token (p99)",
            Unit::PerToken => "ms per output token",
            Unit::PerTokenMedian => "ms per output token (median)",
            Unit::PerTokenP99 => "ms per output token (p99)",
            Unit::LastToken => "ms to the last token",
        }
    }

    /// Column of `results.csv`, and the factor from this unit to the column's unit.
    pub fn column(self) -> (&'static str, f64) {
        match self {
            Unit::Seconds => ("iteration_time_ns", 1e9),
            Unit::Microseconds => ("iteration_time_ns", 1e3),
            Unit::TokensPerSecondPerGpu => ("tokens_per_s_per_gpu", 1.0),
            Unit::BusGigabytesPerSecond => ("busbw_gbps", 8.0),
            Unit::PeakGibibytes => ("peak_memory_bytes", (1u64 << 30) as f64),
            Unit::OutputTokensPerSecond => ("output_tokens_per_s", 1.0),
            Unit::FirstToken => ("ttft_mean_ns", 1e6),
            Unit::FirstTokenMedian => ("ttft_p50_ns", 1e6),
            Unit::FirstTokenP99 => ("ttft_p99_ns", 1e6),
            Unit::PerToken => ("tpot_mean_ns", 1e6),
            Unit::PerTokenMedian => ("tpot_p50_ns", 1e6),
            Unit::PerTokenP99 => ("tpot_p99_ns", 1e6),
            Unit::LastToken => ("e2e_mean_ns", 1e6),
        }
    }

    /// Relative error of a time, from a measured and a simulated value in this unit. Above 0: the simulated time is too long. `None`: the unit is no measure
    /// of time.
    pub fn time_error(self, measured: f64, simulated: f64) -> Option<f64> {
        match self {
            Unit::Seconds
            | Unit::Microseconds
            | Unit::FirstToken
            | Unit::FirstTokenMedian
            | Unit::FirstTokenP99
            | Unit::PerToken
            | Unit::PerTokenMedian
            | Unit::PerTokenP99
            | Unit::LastToken => Some(simulated / measured - 1.0),
            Unit::TokensPerSecondPerGpu | Unit::BusGigabytesPerSecond | Unit::OutputTokensPerSecond => {
                Some(measured / simulated - 1.0)
            }
            Unit::PeakGibibytes => None,
        }
    }

    /// What a value in this unit measures.
    pub fn quantity(self) -> ErrorQuantity {
        match self {
            Unit::FirstToken
            | Unit::FirstTokenMedian
            | Unit::FirstTokenP99
            | Unit::PerToken
            | Unit::PerTokenMedian
            | Unit::PerTokenP99
            | Unit::LastToken => ErrorQuantity::Latency,
            Unit::OutputTokensPerSecond => ErrorQuantity::Throughput,
            Unit::Seconds
            | Unit::Microseconds
            | Unit::TokensPerSecondPerGpu
            | Unit::BusGigabytesPerSecond
            | Unit::PeakGibibytes => ErrorQuantity::Time,
        }
    }

    /// The unit with this name.
    pub fn named(name: &str) -> Option<Unit> {
        Unit::ALL.into_iter().find(|u| u.as_str() == name)
    }

    /// Value of a row of results in this unit.
    pub(super) fn of(self, record: &ExperimentRecord) -> Option<f64> {
        let (name, per_unit) = self.column();
        let column = OUTCOME.iter().chain(SERVING).find(|c| c.name == name).expect("a test reads every unit's column");
        let cell: Cell = (column.cell)(record);
        cell.number().map(|n| n / per_unit)
    }
}

/// Parses `experiment,name,value,unit,use,source,note` with a header. Lines that begin with # are comments. The error names the line.
pub(super) fn parse(text: &str) -> Result<Vec<MeasuredRow>, String> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for row in reader.deserialize::<MeasuredRow>() {
        let row = row.map_err(|e| e.to_string())?;
        if !(row.value.is_finite() && row.value > 0.0) {
            return Err(format!(
                "experiment {}: value = {}; a number above 0 would be right",
                row.experiment, row.value
            ));
        }
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_has_its_column() {
        for unit in Unit::ALL {
            assert!(OUTCOME.iter().chain(SERVING).any(|c| c.name == unit.column().0), "{unit:?}");
        }
    }

    #[test]
    fn faults_are_told() {
        let header = "experiment,name,value,unit,use,source,note\n";
        for (line, word) in [
            ("0,a,1,h,fitted,x,", "GiB"),
            ("0,a,1,s,guessed,x,", "checked"),
            ("0,a,-1,s,fitted,x,", "above 0"),
            ("0,a,1,s,fitted,x", "line: 2"),
        ] {
            let error = parse(&format!("{header}{line}\n")).unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
        assert_eq!(parse(&format!("# where from\n{header}0,a,1.5,s,fitted,x,\n")).unwrap().len(), 1);
    }
}
