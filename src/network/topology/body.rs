//! Reads what the ns-3 and the SimAI form have in common: switch ids, then one line per link.
//!
//! Layer: topology. The headers differ; `ns3` and `simai` read them.

use super::loss::loss_q32;
use super::network::Link;
use super::text::{FileError, Line, Lines, shown};
use super::validate::{check_delay, check_rate};
use hyperfold_base::units::{parse_delay_ps, parse_rate_bps};

/// The fields of a link line.
const LINK_SHAPE: &str = "node node rate delay error_rate";

/// The counts that a header announces. Node ids run from 0 to `n_nodes - 1`.
pub(crate) struct Counts<'a> {
    pub(crate) header: Line<'a>,
    pub(crate) n_nodes: u32,
    pub(crate) n_switches: u32,
    pub(crate) n_links: u32,
}

/// Switch ids in file order, links in file order, and the number of link lines that the header leaves out.
pub(crate) struct TopologyBody {
    pub(crate) switch_ids: Vec<u32>,
    pub(crate) links: Vec<Link>,
    /// Links that lose packets, and their shares in units of 2^-32.
    pub(crate) lossy_links: Vec<(u32, u32)>,
    /// Line of each link, for later errors.
    pub(crate) link_lines: Vec<usize>,
    pub(crate) left_out: u32,
}

/// Reads everything after the header.
pub(crate) fn read(lines: &mut Lines, counts: &Counts) -> Result<TopologyBody, FileError> {
    let switch_ids = read_switch_ids(lines, counts)?;
    let mut links = Vec::new();
    let mut link_lines = Vec::new();
    let mut lossy_links = Vec::new();
    while links.len() < counts.n_links as usize {
        let line = lines.expect(|| {
            format!("line {} announces {} links, the file has {}", counts.header.number, counts.n_links, links.len())
        })?;
        let (link, share_q32) = read_link(&line, counts.n_nodes)?;
        lossy_links.extend((share_q32 > 0).then_some((links.len() as u32, share_q32)));
        links.push(link);
        link_lines.push(line.number);
    }
    let left_out = read_rest(lines, counts)?;
    Ok(TopologyBody { switch_ids, links, lossy_links, link_lines, left_out })
}

fn read_switch_ids(lines: &mut Lines, counts: &Counts) -> Result<Vec<u32>, FileError> {
    let mut ids: Vec<u32> = Vec::new();
    let mut seen = vec![false; counts.n_nodes as usize];
    while ids.len() < counts.n_switches as usize {
        let line = lines.expect(|| {
            format!(
                "line {} announces {} switches, the file names {}",
                counts.header.number,
                counts.n_switches,
                ids.len()
            )
        })?;
        for field in line.fields() {
            if ids.len() == counts.n_switches as usize {
                return Err(line.error(format!(
                    "`{}` is one switch id more than the {} that line {} announces",
                    shown(field),
                    counts.n_switches,
                    counts.header.number
                )));
            }
            let id = node_id(&line, "switch id", field, counts.n_nodes)?;
            if std::mem::replace(&mut seen[id as usize], true) {
                return Err(line.error(format!("switch id {id} is named twice")));
            }
            ids.push(id);
        }
    }
    Ok(ids)
}

fn node_id(line: &Line, role: &str, field: &str, n_nodes: u32) -> Result<u32, FileError> {
    match field.parse::<u32>() {
        Ok(id) if id < n_nodes => Ok(id),
        _ => Err(line.error(format!(
            "{role} `{}` is not a node; with {n_nodes} nodes the ids run from 0 to {}",
            shown(field),
            n_nodes - 1
        ))),
    }
}

/// Reads a link, and the share of packets that it loses in units of 2^-32.
fn read_link(line: &Line, n_nodes: u32) -> Result<(Link, u32), FileError> {
    let [a, b, rate, delay, error_rate] = line.exactly(LINK_SHAPE)?;
    let a = node_id(line, "link end", a, n_nodes)?;
    let b = node_id(line, "link end", b, n_nodes)?;
    if a == b {
        return Err(line.error(format!("the link joins node {a} to itself")));
    }
    let rate_bps = parse_rate_bps(rate).map_err(|e| line.error(e))?;
    check_rate(rate_bps).map_err(|e| line.error(e))?;
    let delay_ps = parse_delay_ps(delay).map_err(|e| line.error(e))?;
    check_delay(delay_ps).map_err(|e| line.error(e))?;
    let share_q32 =
        error_share(error_rate).map_err(|why| line.error(format!("error rate `{}` {why}", shown(error_rate))))?;
    Ok((Link { a, b, rate_bps, delay_ps }, share_q32))
}

/// Reads an error rate: the share of packets that a link loses, here in units of 2^-32. The error goes on after the rate.
fn error_share(text: &str) -> Result<u32, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share >= 0.0);
    match share.ok_or("is no share of packets, such as 0.001; write 0 for none")? {
        0.0 => Ok(0),
        share if share >= 1.0 => Err("loses every packet; write a share below 1, or leave the link out".into()),
        share => loss_q32(share)
            .ok_or_else(|| "is less than one packet in four billion, the least that is simulated; write 0".into()),
    }
}

/// Reads the lines after the announced links, and returns the number of link lines among them. The reference ignores them, and files in use rely on that: the
/// header of HPCC's example leaves out links to nodes beyond its count, and a blank line precedes notes. But a link between announced nodes shows that the
/// count is wrong.
fn read_rest(lines: &mut Lines, counts: &Counts) -> Result<u32, FileError> {
    let mut left_out = 0;
    let mut notes = false;
    while let Some(line) = lines.next_line() {
        notes |= lines.after_blank;
        if let Some((a, b)) = looks_like_link(&line) {
            if a < counts.n_nodes && b < counts.n_nodes {
                return Err(line.error(format!(
                    "one link more than the {} that line {} announces",
                    counts.n_links, counts.header.number
                )));
            }
            left_out += 1;
        } else if !notes {
            return Err(line.error(format!(
                "`{}` follows the last of the {} links; put notes after a blank line or a `#`",
                shown(line.text),
                counts.n_links
            )));
        }
    }
    Ok(left_out)
}

fn looks_like_link(line: &Line) -> Option<(u32, u32)> {
    let [a, b, rate, delay, _] = line.exactly(LINK_SHAPE).ok()?;
    parse_rate_bps(rate).ok()?;
    parse_delay_ps(delay).ok()?;
    Some((a.parse().ok()?, b.parse().ok()?))
}
