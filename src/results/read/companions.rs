//! Reads the companion files on demand: flows, links, round-trip times, statistics.
//!
//! Layer: results. Files may be larger than memory, so they are read row by row. Exact decimals become exact integers again. `failed.csv` is not read: the rows
//! hold all of it.

use std::path::PathBuf;

use super::super::job_record::{JobRecord, SharedLinkRecord};
use super::super::network_record::{
    FlowMeasures, FlowRecord, LinkEnds, LinkPackets, LinkPauses, LinkRecord, MeanRttRecord, RttRecord,
};
use super::super::record_macro::{BadField, Declared, TextRow};
use super::super::series_record::{FlowSampleRecord, LinkSampleRecord};
use super::super::stats_record::{FoldingRecord, StatsRecord};
use super::{ReadError, RunColumns};
use crate::meter::memory_meter;
use hyperfold_base::input;

/// Whether [`RunColumns::each`] continues after a row.
enum Go {
    On,
    Enough,
}

impl RunColumns {
    /// Calls `each` with every row of `flows.csv`, in order. Returns false if the run wrote no such file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn each_flow(&self, mut each: impl FnMut(u64, FlowRecord)) -> Result<bool, ReadError> {
        self.each("flows.csv", |exp_id, row| {
            each(exp_id, flow(row)?);
            Ok(Go::On)
        })
    }

    /// Calls `each` with every row of `links.csv`, in order. Returns false if the run wrote no such file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn each_link(&self, mut each: impl FnMut(u64, LinkRecord)) -> Result<bool, ReadError> {
        self.each("links.csv", |exp_id, row| {
            each(exp_id, link(row)?);
            Ok(Go::On)
        })
    }

    /// Calls `each` with every row of `rtt.csv`, in order. Returns false if the run wrote no such file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn each_rtt(&self, mut each: impl FnMut(u64, RttRecord)) -> Result<bool, ReadError> {
        self.each("rtt.csv", |exp_id, row| {
            each(exp_id, RttRecord::read(row)?);
            Ok(Go::On)
        })
    }

    /// Calls `each` with every row of `rtt_means.csv`, in order. Returns false if the run wrote no such file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn each_rtt_mean(&self, mut each: impl FnMut(u64, MeanRttRecord)) -> Result<bool, ReadError> {
        self.each("rtt_means.csv", |exp_id, row| {
            each(exp_id, MeanRttRecord::read(row)?);
            Ok(Go::On)
        })
    }

    /// Calls `each` with every row of `series_links.csv`, in order. Returns false if the run wrote no such file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn each_link_sample(&self, mut each: impl FnMut(u64, LinkSampleRecord)) -> Result<bool, ReadError> {
        self.each("series_links.csv", |exp_id, row| {
            each(exp_id, LinkSampleRecord::read(row)?);
            Ok(Go::On)
        })
    }

    /// Calls `each` with every row of `series_flows.csv`, in order. Returns false if the run wrote no such file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn each_flow_sample(&self, mut each: impl FnMut(u64, FlowSampleRecord)) -> Result<bool, ReadError> {
        self.each("series_flows.csv", |exp_id, row| {
            each(exp_id, FlowSampleRecord::read(row)?);
            Ok(Go::On)
        })
    }

    /// Calls `each` with every row of `stats.csv`, in order. Returns false if there is no such file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn each_stats(&self, mut each: impl FnMut(u64, StatsRecord)) -> Result<bool, ReadError> {
        self.each("stats.csv", |exp_id, row| {
            each(exp_id, stats(row)?);
            Ok(Go::On)
        })
    }

    /// Returns one experiment's flows; `None` if the run wrote no `flows.csv`.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn flows_of(&self, exp_id: u64) -> Result<Option<Vec<FlowRecord>>, ReadError> {
        self.of("flows.csv", exp_id, flow)
    }

    /// Returns one experiment's links; `None` if the run wrote no `links.csv`.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn links_of(&self, exp_id: u64) -> Result<Option<Vec<LinkRecord>>, ReadError> {
        self.of("links.csv", exp_id, link)
    }

    /// Returns one experiment's round-trip times; `None` if the run wrote no `rtt.csv`.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn rtt_of(&self, exp_id: u64) -> Result<Option<Vec<RttRecord>>, ReadError> {
        self.of("rtt.csv", exp_id, RttRecord::read)
    }

    /// Returns the links that jobs of one experiment share; `None` if the run wrote no `shared_links.csv`.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn shared_links_of(&self, exp_id: u64) -> Result<Option<Vec<SharedLinkRecord>>, ReadError> {
        self.of("shared_links.csv", exp_id, SharedLinkRecord::read)
    }

    /// Returns the jobs of one experiment; `None` if the run wrote no `jobs.csv`.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn jobs_of(&self, exp_id: u64) -> Result<Option<Vec<JobRecord>>, ReadError> {
        self.of("jobs.csv", exp_id, JobRecord::read)
    }

    /// Returns the rows of one experiment. The search ends at rows of later experiments: companion files ascend by `exp_id`.
    fn of<T>(
        &self,
        name: &str,
        wanted: u64,
        read: fn(&TextRow) -> Result<T, BadField>,
    ) -> Result<Option<Vec<T>>, ReadError> {
        let mut found = Vec::new();
        let meter = memory_meter();
        let mut over_budget = None;
        let exists = self.each(name, |exp_id, row| {
            if exp_id == wanted {
                over_budget = meter.check("rows of an experiment", 0).err();
                found.push(read(row)?);
            }
            Ok(if exp_id > wanted || over_budget.is_some() { Go::Enough } else { Go::On })
        })?;
        if let Some(excess) = over_budget {
            return Err(ReadError::memory(&self.path.join(name))(excess));
        }
        Ok(exists.then_some(found))
    }

    fn each(&self, name: &str, mut each: impl FnMut(u64, &TextRow) -> Result<Go, BadField>) -> Result<bool, ReadError> {
        let path: PathBuf = self.path.join(name);
        if !path.is_file() {
            return Ok(false);
        }
        let file = input::open_table_anywhere(&path).map_err(ReadError::io(&path))?;
        let mut reader = csv::ReaderBuilder::new().buffer_capacity(1 << 16).from_reader(file);
        let wrong = |source| ReadError::Csv { path: path.clone(), source };
        let names = reader.headers().map_err(wrong)?.clone();
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).map_err(wrong)? {
            let row = TextRow { names: &names, fields: &record };
            let bad = |BadField { column, want }| ReadError::Value {
                path: path.clone(),
                line: record.position().map_or(0, csv::Position::line),
                column: column.into(),
                value: row.text(column).into(),
                want,
            };
            if let Go::Enough = row.value("exp_id").and_then(|exp_id| each(exp_id, &row)).map_err(bad)? {
                break;
            }
        }
        Ok(true)
    }
}

/// Reads a row of `flows.csv`.
fn flow(row: &TextRow) -> Result<FlowRecord, BadField> {
    Ok(FlowRecord { measures: FlowMeasures::read(row)?, ..FlowRecord::read(row)? })
}

/// Reads a row of `links.csv`. Without packets, columns about them are empty; files of earlier builds lack those of its ends.
fn link(row: &TextRow) -> Result<LinkRecord, BadField> {
    let packets = if row.text("max_queue_bytes").is_empty() { None } else { Some(LinkPackets::read(row)?) };
    let ends = if row.text("capacity_gbps").is_empty() { None } else { Some(LinkEnds::read(row)?) };
    Ok(LinkRecord { packets, ends, pauses: LinkPauses::read(row)?, ..LinkRecord::read(row)? })
}

/// Reads a row of `stats.csv`.
fn stats(row: &TextRow) -> Result<StatsRecord, BadField> {
    Ok(StatsRecord { folding: FoldingRecord::read(row)?, ..StatsRecord::read(row)? })
}
