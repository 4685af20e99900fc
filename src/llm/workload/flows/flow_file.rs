//! Flow files in the ns-3 form: a count, then one line `src dst priority dport bytes start` per flow.
//!
//! Layer: workload. Node ids of the topology become ranks here, and all start times become picoseconds.

use std::collections::HashMap;
use std::path::Path;

use super::decimal::scaled;
use super::flow::Flow;
use crate::workload::error::WorkloadError;
use hyperfold_base::units::PS_PER_S;
use hyperfold_network::topology::text::{Line, Lines, load_head, load_text, shown};
use hyperfold_network::topology::{FileError, Network, NodeKind};

/// The fields of a flow line.
const SHAPE: &str = "src dst priority dport bytes start";
/// Maximum number of bytes of one flow: a petabyte. It is far beyond any message, and sums stay far within 64 bits.
pub const MAX_FLOW_BYTES: u64 = 1_000_000_000_000_000;
/// The latest start of a flow: a million seconds.
const MAX_START_PS: u64 = 1_000_000 * PS_PER_S;
/// Maximum number of flows of one experiment.
pub const MAX_FLOWS: u32 = 1 << 26;
/// Source port of the first flow of a pair of ranks.
pub const FIRST_SPORT: u16 = 10_000;

/// Unit of the start times in a flow file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StartUnit {
    /// Start times are in nanoseconds.
    Ns,
    /// Start times are in seconds.
    S,
}

/// A flow file as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowFile {
    /// Flows in the order of the file.
    pub flows: Vec<Flow>,
    /// Number of flow lines after the announced count. The reference leaves them out too (HPCC's example counts 2 of its 250), so they cause a notice.
    pub left_out: u32,
}

/// Reads a flow file from disk.
pub fn read_flows(path: &Path, net: &Network, unit: Option<StartUnit>) -> Result<FlowFile, WorkloadError> {
    let shown = path.display().to_string();
    // Checks the first lines before reading the rest, so that a file of gigabytes in another format is rejected early.
    let Some(head) = load_head(path)? else {
        let problem = "this line is far too long for the number of flows; is this the right file?".to_string();
        return Err(FileError::Line { path: shown, line: 1, problem }.into());
    };
    let mut lines = Lines::new(&shown, &head);
    if let Some(first) = lines.next_line() {
        count(&first)?;
        if let Some(flow) = lines.next_line() {
            flow.exactly::<6>(SHAPE)?;
        }
    }
    parse_flows(&shown, &load_text(path)?, net, unit)
}

/// Parses the first line, which is the number of flows.
fn count(header: &Line) -> Result<u32, FileError> {
    let [count] = header.exactly("number of flows")?;
    header.number("the number of flows", count, 1, MAX_FLOWS)
}

/// Parses a flow file; `path` is for messages. If `unit` is `None`, starts are seconds if any of them has a `.` or an exponent. If all are whole numbers, the
/// unit is ambiguous and the result is an error, unless all are 0.
pub fn parse_flows(path: &str, text: &str, net: &Network, unit: Option<StartUnit>) -> Result<FlowFile, WorkloadError> {
    let mut lines = Lines::new(path, text);
    let header = lines.expect(|| "it should begin with the number of flows".to_string())?;
    let count = count(&header)?;
    let mut raw: Vec<(Line, Flow, &str)> = Vec::new();
    let mut ports = SportCounter::default();
    let rank_of = ranks_by_node(net);
    while raw.len() < count as usize {
        let line =
            lines.expect(|| format!("line {} announces {count} flows, the file has {}", header.number, raw.len()))?;
        let (mut flow, start) = parse_line(&line, net, &rank_of)?;
        flow.id = raw.len() as u32;
        flow.sport = ports.next(flow.src_rank, flow.dst_rank);
        raw.push((line, flow, start));
    }
    let left_out = read_rest(&mut lines, count)?;
    let unit = match unit {
        Some(u) => u,
        None if raw.iter().any(|(_, _, s)| s.contains(['.', 'e', 'E'])) => StartUnit::S,
        None if raw.iter().all(|(_, _, s)| scaled(s, 0) == Some(0)) => StartUnit::Ns,
        None => {
            if let Some((line, _, start)) = raw.iter().find(|(_, _, s)| scaled(s, 0).is_none()) {
                let start = shown(start);
                let right = "seconds or nanoseconds, at least 0 and at most a million seconds";
                return Err(line.error(format!("start `{start}` is not a time in {right}")).into());
            }
            return Err(WorkloadError::AmbiguousStart { path: path.to_string() });
        }
    };
    let mut flows = Vec::with_capacity(raw.len());
    for (line, mut flow, start) in raw {
        let shift = if unit == StartUnit::Ns { 3 } else { 12 };
        flow.start_ps = match scaled(start, shift) {
            Some(ps) if ps <= MAX_START_PS => ps,
            _ => {
                let unit = if unit == StartUnit::Ns { "nanoseconds" } else { "seconds" };
                return Err(line
                    .error(format!(
                        "start `{}` is not a time in {unit}, at least 0 and at most a million seconds",
                        shown(start)
                    ))
                    .into());
            }
        };
        flows.push(flow);
    }
    Ok(FlowFile { flows, left_out })
}

/// Rank of every host node. If several ranks share a node, it is the first of them.
fn ranks_by_node(net: &Network) -> Vec<u32> {
    let mut rank_of = vec![u32::MAX; net.nodes.len()];
    for (rank, &node) in net.ranks.iter().enumerate().rev() {
        rank_of[node as usize] = rank as u32;
    }
    rank_of
}

/// Parses a flow line. Returns the flow, without id, source port and start, and the text of its start.
fn parse_line<'a>(line: &Line<'a>, net: &Network, rank_of: &[u32]) -> Result<(Flow, &'a str), FileError> {
    let [src, dst, priority, dport, bytes, start] = line.exactly(SHAPE)?;
    let rank = |field_name: &str, field: &str| {
        let id = field.parse::<u32>().ok();
        let Some(node) = id.and_then(|id| net.nodes.binary_search_by_key(&id, |n| n.id).ok()) else {
            return Err(line.error(format!("{field_name} `{}` is not a node of the topology", shown(field))));
        };
        if net.nodes[node].kind != NodeKind::Host || rank_of[node] == u32::MAX {
            return Err(line.error(format!("{field_name} {field} is a switch; flows run between hosts")));
        }
        Ok(rank_of[node])
    };
    let (src_rank, dst_rank) = (rank("source", src)?, rank("destination", dst)?);
    if src_rank == dst_rank {
        return Err(line.error(format!("source and destination are both {src}; a flow needs two hosts")));
    }
    let priority = line.number("priority", priority, 0u8, 7)?;
    let dport = line.number("destination port", dport, 1u16, u16::MAX)?;
    let bytes = line.number("size in bytes", bytes, 1, MAX_FLOW_BYTES)?;
    let flow = Flow { id: 0, src_rank, dst_rank, bytes, start_ps: 0, sport: 0, dport, class: priority };
    Ok((flow, start))
}

/// Reads the lines after the announced flows: more flows, and after a blank line, notes. Returns the number of such flows.
fn read_rest(lines: &mut Lines, count: u32) -> Result<u32, FileError> {
    let mut left_out = 0;
    let mut notes = false;
    while let Some(line) = lines.next_line() {
        notes |= lines.after_blank;
        let is_flow = line.exactly::<6>(SHAPE).is_ok_and(|f| f[..5].iter().all(|x| x.parse::<u64>().is_ok()));
        if is_flow {
            left_out += 1;
        } else if !notes {
            return Err(line.error(format!(
                "`{}` follows the last of the {count} flows; put notes after a blank line or a `#`",
                shown(line.text)
            )));
        }
    }
    Ok(left_out)
}

/// Assigns source ports per pair of ranks: the k-th flow of a pair gets 10000 + k, starting over after 65535.
#[derive(Default)]
pub(crate) struct SportCounter(HashMap<(u32, u32), u16>);

impl SportCounter {
    pub(crate) fn next(&mut self, src: u32, dst: u32) -> u16 {
        let port = self.0.entry((src, dst)).or_insert(FIRST_SPORT);
        let this = *port;
        *port = if this == u16::MAX { FIRST_SPORT } else { this + 1 };
        this
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use super::*;

    /// A file of four gigabytes that begins with these bytes. The rest is a hole that takes no disk space; reading it would take long and four gigabytes of
    /// memory.
    fn large(folder: &tempfile::TempDir, begin: &[u8]) -> PathBuf {
        let path = folder.path().join("f.txt");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(begin).unwrap();
        file.set_len(4 << 30).unwrap();
        path
    }

    #[test]
    fn what_is_something_else_is_refused_by_its_first_lines() {
        let folder = tempfile::tempdir().unwrap();
        let net = Network::default();
        for (begin, told) in [
            (&b"exp_id,config_key\n0,a\n"[..], "f.txt:1: the number of flows `exp_id,config_key`"),
            (b"2\n0 1 3\n", "f.txt:2: 3 fields, expected 6"),
            (b"# notes\n\n7 7\n", "f.txt:3: 2 fields, expected 1"),
            (b"\xff\xfe\n", "f.txt:1: byte 0 is not UTF-8"),
            (b"", "f.txt:1: this line is far too long"),
        ] {
            let error = read_flows(&large(&folder, begin), &net, None).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
