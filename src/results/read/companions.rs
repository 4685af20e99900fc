//! Reads the companion files on demand: flows, links, round-trip times, statistics.
//!
//! Layer: results. Files may be larger than memory, so they are read row by row. Exact decimals become exact integers again. `failed.csv` is not read: the rows
//! hold all of it.

use std::path::{Path, PathBuf};

use super::super::job_record::{JobRecord, SharedLinkRecord};
use super::super::record::{FlowRecord, FoldingRecord, LinkPackets, LinkRecord, RttRecord, StatsRecord};
use super::super::value::{Micro, Ps};
use super::{ReadError, RunColumns};
use crate::meter::memory_meter;
use hyperfold_base::input;

/// The current row, with the context for messages.
struct Fields<'a> {
    path: &'a Path,
    names: &'a csv::StringRecord,
    record: &'a csv::StringRecord,
}

impl Fields<'_> {
    /// Returns a field's text; empty if the file has no such column.
    fn text(&self, name: &str) -> &str {
        self.names.iter().position(|n| n == name).and_then(|i| self.record.get(i)).unwrap_or("")
    }

    fn parse<T>(&self, name: &str, want: &'static str, parse: impl Fn(&str) -> Option<T>) -> Result<T, ReadError> {
        let text = self.text(name);
        parse(text).ok_or_else(|| ReadError::Value {
            path: self.path.into(),
            line: self.record.position().map_or(0, csv::Position::line),
            column: name.into(),
            value: text.into(),
            want,
        })
    }

    fn whole<T: std::str::FromStr>(&self, name: &str) -> Result<T, ReadError> {
        self.parse(name, "a whole number of 0 or more", |t| t.parse().ok())
    }

    fn ps(&self, name: &str) -> Result<Ps, ReadError> {
        self.parse(name, "nanoseconds with up to three decimals", |t| scaled(t, 3)).map(Ps)
    }

    fn micro(&self, name: &str) -> Result<Micro, ReadError> {
        self.parse(name, "a number with up to six decimals", |t| scaled(t, 6)).map(Micro)
    }

    fn optional<T>(
        &self,
        name: &str,
        read: impl Fn(&Self, &str) -> Result<T, ReadError>,
    ) -> Result<Option<T>, ReadError> {
        if self.text(name).is_empty() { Ok(None) } else { read(self, name).map(Some) }
    }

    fn real(&self, name: &str) -> Result<f64, ReadError> {
        self.parse(name, "a number", |t| t.parse().ok().filter(|v: &f64| v.is_finite()))
    }
}

/// Parses a decimal in units of `10^-digits`; `None` if it is no decimal, has more digits or does not fit.
fn scaled(text: &str, digits: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > digits || whole.is_empty() || !whole.bytes().chain(part.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    format!("{whole}{part:0<digits$}").parse().ok()
}

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
        self.each("flows.csv", |exp_id, f| {
            flow(f).map(|r| {
                each(exp_id, r);
                Go::On
            })
        })
    }

    /// Calls `each` with every row of `links.csv`, in order. Returns false if the run wrote no such file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn each_link(&self, mut each: impl FnMut(u64, LinkRecord)) -> Result<bool, ReadError> {
        self.each("links.csv", |exp_id, f| {
            link(f).map(|r| {
                each(exp_id, r);
                Go::On
            })
        })
    }

    /// Calls `each` with every row of `rtt.csv`, in order. Returns false if the run wrote no such file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn each_rtt(&self, mut each: impl FnMut(u64, RttRecord)) -> Result<bool, ReadError> {
        self.each("rtt.csv", |exp_id, f| {
            rtt(f).map(|r| {
                each(exp_id, r);
                Go::On
            })
        })
    }

    /// Calls `each` with every row of `stats.csv`, in order. Returns false if there is no such file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn each_stats(&self, mut each: impl FnMut(u64, StatsRecord)) -> Result<bool, ReadError> {
        self.each("stats.csv", |exp_id, f| {
            stats(f).map(|r| {
                each(exp_id, r);
                Go::On
            })
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
        self.of("rtt.csv", exp_id, rtt)
    }

    /// Returns the links that jobs of one experiment share; `None` if the run wrote no `shared_links.csv`.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn shared_links_of(&self, exp_id: u64) -> Result<Option<Vec<SharedLinkRecord>>, ReadError> {
        self.of("shared_links.csv", exp_id, shared_link)
    }

    /// Returns what jobs of one experiment share, from `jobs.csv`. Other columns have their defaults. `None` if the run wrote no such file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn sharing_of(&self, exp_id: u64) -> Result<Option<Vec<JobRecord>>, ReadError> {
        self.of("jobs.csv", exp_id, sharing)
    }

    /// Returns the rows of one experiment. The search ends at rows of later experiments: companion files ascend by `exp_id`.
    fn of<T>(
        &self,
        name: &str,
        wanted: u64,
        read: fn(&Fields) -> Result<T, ReadError>,
    ) -> Result<Option<Vec<T>>, ReadError> {
        let mut found = Vec::new();
        let meter = memory_meter();
        let exists = self.each(name, |exp_id, fields| {
            if exp_id == wanted {
                meter.check("rows of an experiment", 0).map_err(ReadError::memory(fields.path))?;
                found.push(read(fields)?);
            }
            Ok(if exp_id > wanted { Go::Enough } else { Go::On })
        })?;
        Ok(exists.then_some(found))
    }

    fn each(&self, name: &str, mut each: impl FnMut(u64, &Fields) -> Result<Go, ReadError>) -> Result<bool, ReadError> {
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
            let fields = Fields { path: &path, names: &names, record: &record };
            let exp_id = fields.whole("exp_id")?;
            if let Go::Enough = each(exp_id, &fields)? {
                break;
            }
        }
        Ok(true)
    }
}

fn flow(f: &Fields) -> Result<FlowRecord, ReadError> {
    Ok(FlowRecord {
        flow_id: f.whole("flow_id")?,
        src: f.whole("src")?,
        dst: f.whole("dst")?,
        bytes: f.whole("bytes")?,
        start: f.ps("start_ns")?,
        fct: f.optional("fct_ns", Fields::ps)?,
    })
}

fn link(f: &Fields) -> Result<LinkRecord, ReadError> {
    Ok(LinkRecord {
        link: f.text("link").to_string(),
        bytes: f.whole("bytes")?,
        utilisation: f.micro("utilisation")?,
        packets: match f.optional("max_queue_bytes", Fields::whole)? {
            None => None,
            Some(max_queue_bytes) => Some(LinkPackets {
                max_queue_bytes,
                mean_queue_bytes: f.micro("mean_queue_bytes")?,
                ecn_marks: f.whole("ecn_marks")?,
                pfc_pauses: f.whole("pfc_pauses")?,
                drops: f.whole("drops")?,
            }),
        },
    })
}

fn shared_link(f: &Fields) -> Result<SharedLinkRecord, ReadError> {
    Ok(SharedLinkRecord {
        link: f.text("link").to_string(),
        job: f.text("job").to_string(),
        job_bytes: f.whole("job_bytes")?,
        other_bytes: f.whole("other_bytes")?,
        shared_with: f.text("shared_with").to_string(),
    })
}

fn sharing(f: &Fields) -> Result<JobRecord, ReadError> {
    Ok(JobRecord {
        job: f.text("job").to_string(),
        shares_with: f.text("shares_with").to_string(),
        shared_links: f.whole("shared_links")?,
        shared_bytes: f.whole("shared_bytes")?,
        busiest_shared_link: Some(f.text("busiest_shared_link").to_string()).filter(|link| !link.is_empty()),
        ..JobRecord::default()
    })
}

fn rtt(f: &Fields) -> Result<RttRecord, ReadError> {
    Ok(RttRecord { flow_id: f.whole("flow_id")?, sample: f.ps("sample_ns")?, rtt: f.ps("rtt_ns")? })
}

fn stats(f: &Fields) -> Result<StatsRecord, ReadError> {
    Ok(StatsRecord {
        packet_hops_simulated: f.whole("packet_hops_simulated")?,
        packet_hops_skipped: f.whole("packet_hops_skipped")?,
        memo_hits: f.whole("memo_hits")?,
        memo_misses: f.whole("memo_misses")?,
        steady_skips: f.whole("steady_skips")?,
        batches: f.whole("batches")?,
        wall_s: f.real("wall_s")?,
        audit_fct_error: f.optional("audit_fct_error", Fields::real)?,
        steady_error: f.optional("steady_error", Fields::real)?,
        folding: FoldingRecord {
            episodes: f.whole("episodes")?,
            episodes_known: f.whole("episodes_known")?,
            snapshots: f.whole("snapshots")?,
            snapshots_known: f.whole("snapshots_known")?,
            partitions: f.whole("partitions")?,
            partitions_max: f.whole("partitions_max")?,
            partitions_mean: f.real("partitions_mean")?,
            memo_bytes: f.whole("memo_bytes")?,
            hops_steady: f.whole("hops_steady")?,
            skipped_mean: f.real("skipped_mean")?,
            // Results of earlier versions have no such columns.
            rounded: f.optional("rounded", Fields::whole)?.unwrap_or(0),
            switches_coupled: f.optional("switches_coupled", Fields::whole)?.unwrap_or(0),
            couplings: f.optional("couplings", Fields::whole)?.unwrap_or(0),
            carried_skips: f.optional("carried_skips", Fields::whole)?.unwrap_or(0),
            carried_drift: f.optional("carried_drift", Fields::real)?.unwrap_or(0.0),
            carried_audits: f.optional("carried_audits", Fields::whole)?.unwrap_or(0),
            carried_messages_error: f.optional("carried_messages_error", Fields::real)?.unwrap_or(0.0),
            pauses_left_out: f.optional("pauses_left_out", Fields::whole)?.unwrap_or(0),
            exact_instead: f.optional("exact_instead", Fields::whole)?.unwrap_or(0),
            audited: f.whole("audited")?,
            audit_hops: f.whole("audit_hops")?,
            audit_messages: f.whole("audit_messages")?,
            audit_fct_error_max: f.real("audit_fct_error_max")?,
            audit_above_1pct: f.real("audit_above_1pct")?,
            theorem2_violations: f.whole("theorem2_violations")?,
            theorem3_violations: f.whole("theorem3_violations")?,
            simulating_s: f.real("simulating_s")?,
            looking_up_s: f.real("looking_up_s")?,
            checkpointing_s: f.real("checkpointing_s")?,
            auditing_s: f.real("auditing_s")?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn decimals_read_back_exactly() {
        let three = |t| scaled(t, 3);
        assert_eq!(
            [three("0"), three("1.5"), three("0.001"), three("18446744073709551.615")],
            [Some(0), Some(1_500), Some(1), Some(u64::MAX)]
        );
        assert_eq!(
            [three(""), three("."), three("1.2345"), three("-1"), three("1e3"), three("18446744073709551.616")],
            [None; 6]
        );
    }
}
