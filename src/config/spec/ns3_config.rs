//! Reads configuration files of the ns-3 RoCE simulators (HPCC, SimAI): `KEY value` lines, `#` comments.
//!
//! Layer: spec. Every known key either sets keys of the sweep file, or is noted as without effect here, or must have the one value that this model implements.
//! Written from the format's description and from published files.

use std::path::Path;

use hyperfold_base::nearest::nearest;

use super::error::{Place, SpecError};
use super::key_id::KeyId;
use super::lookup::key;
use super::value::Value;
use hyperfold_base::units::parse_rate_bps;
use hyperfold_network::topology::loss_q32;

/// A line that changes nothing here, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Number of the line, from 1.
    pub line: usize,
    /// Name that it begins with.
    pub key: String,
    /// Why it changes nothing.
    pub why: &'static str,
}

/// The content of a configuration file.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FileConfig {
    /// Values that it sets, at most one for each key.
    pub values: Vec<(KeyId, Value)>,
    /// Lines that have no effect here.
    pub notes: Vec<Note>,
    /// Lines about links that fail or lose packets. Together they are the value of `topology.outages`.
    pub outages: Vec<LinkLine>,
}

/// A line about links that fail or lose packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkLine {
    /// Number of the line, from 1.
    pub line: usize,
    /// Name that it begins with.
    pub key: &'static str,
    /// What it says, as an entry of `topology.outages`.
    pub entry: String,
    /// What a user should know of it; empty: nothing.
    pub remark: String,
}

/// How a key of the file is used.
enum Use {
    /// A number, times a factor, for each of these keys.
    Number(&'static [KeyId], f64),
    /// 0 or 1.
    Switch(KeyId),
    /// A rate with its unit, converted to Mb/s.
    Rate(&'static [KeyId]),
    /// `CC_MODE`.
    CcMode,
    /// `RNG_SEED` (true) and `RNG_RUN` (false).
    Rng(bool),
    /// The share of packets that every link loses.
    ErrorRate,
    /// A time in us, and the ids of two nodes: the link between them goes down.
    LinkDown,
    /// One of the three threshold maps: `n rate value rate value ...`.
    Map(usize),
    /// Only this value is modelled (compared as numbers); for another, the text says what is.
    Must(&'static [f64], &'static str),
    /// Has no effect here, for this reason.
    Inert(&'static str),
}

const MONITOR: &str = "monitoring output; see [base.output]";
const ELSEWHERE: &str = "input files are named in the sweep file";
const PINT: &str = "used by CC_MODE 10 alone, which is not available";

/// Every key of the format.
static FILE_KEYS: &[(&str, Use)] = &[
    ("ENABLE_QCN", Use::Switch(KeyId::Ecn)),
    ("USE_DYNAMIC_PFC_THRESHOLD", Use::Must(&[1.0], "only dynamic thresholds are modelled: write 1")),
    ("PFC_ENABLED", Use::Switch(KeyId::Pfc)),
    ("PACKET_PAYLOAD_SIZE", Use::Number(&[KeyId::PayloadBytes], 1.0)),
    ("TOPOLOGY_FILE", Use::Inert(ELSEWHERE)),
    ("FLOW_FILE", Use::Inert(ELSEWHERE)),
    ("TRACE_FILE", Use::Inert(MONITOR)),
    ("TRACE_OUTPUT_FILE", Use::Inert(MONITOR)),
    ("FCT_OUTPUT_FILE", Use::Inert(MONITOR)),
    ("PFC_OUTPUT_FILE", Use::Inert(MONITOR)),
    ("SEND_OUTPUT_FILE", Use::Inert(MONITOR)),
    ("QLEN_MON_FILE", Use::Inert(MONITOR)),
    ("QLEN_MON_INTERVAL", Use::Inert(MONITOR)),
    ("QLEN_MON_START", Use::Inert(MONITOR)),
    ("QLEN_MON_END", Use::Inert(MONITOR)),
    ("QP_TRACE_FILE", Use::Inert(MONITOR)),
    ("QP_MON_INTERVAL", Use::Inert(MONITOR)),
    ("BW_MON_FILE", Use::Inert(MONITOR)),
    ("BW_MON_INTERVAL", Use::Inert(MONITOR)),
    ("RATE_MON_FILE", Use::Inert(MONITOR)),
    ("CNP_MON_FILE", Use::Inert(MONITOR)),
    ("MON_START", Use::Inert(MONITOR)),
    ("MON_END", Use::Inert(MONITOR)),
    ("ENABLE_TRACE", Use::Inert(MONITOR)),
    ("NIC_TOTAL_PAUSE_TIME", Use::Inert(MONITOR)),
    ("SIMULATOR_STOP_TIME", Use::Inert("a run ends when its flows do; limits.sim_ns bounds it")),
    ("PAUSE_TIME", Use::Inert("a pause holds until it is lifted, as in the reference")),
    ("CC_MODE", Use::CcMode),
    ("ALPHA_RESUME_INTERVAL", Use::Number(&[KeyId::DcqcnAlphaUs], 1.0)),
    ("RATE_DECREASE_INTERVAL", Use::Number(&[KeyId::DcqcnDecreaseUs], 1.0)),
    ("CLAMP_TARGET_RATE", Use::Switch(KeyId::DcqcnClamp)),
    ("RP_TIMER", Use::Number(&[KeyId::DcqcnIncreaseUs], 1.0)),
    ("EWMA_GAIN", Use::Number(&[KeyId::DcqcnG, KeyId::DctcpG], 1.0)),
    ("FAST_RECOVERY_TIMES", Use::Number(&[KeyId::DcqcnFastRecovery], 1.0)),
    ("RATE_AI", Use::Rate(&[KeyId::DcqcnRaiMbps, KeyId::HpccRaiMbps, KeyId::TimelyRaiMbps])),
    ("RATE_HAI", Use::Rate(&[KeyId::DcqcnRhaiMbps, KeyId::TimelyRhaiMbps])),
    ("MIN_RATE", Use::Rate(&[KeyId::MinRateMbps])),
    ("DCTCP_RATE_AI", Use::Rate(&[KeyId::DctcpRaiMbps])),
    ("ERROR_RATE_PER_LINK", Use::ErrorRate),
    ("L2_CHUNK_SIZE", Use::Number(&[KeyId::AckChunkBytes], 1.0)),
    ("L2_ACK_INTERVAL", Use::Number(&[KeyId::AckIntervalBytes], 1.0)),
    ("L2_BACK_TO_ZERO", Use::Must(&[0.0], "only go-back-N is modelled: write 0")),
    ("HAS_WIN", Use::Switch(KeyId::Window)),
    ("GLOBAL_T", Use::Switch(KeyId::GlobalRtt)),
    ("VAR_WIN", Use::Switch(KeyId::VarWindow)),
    ("FAST_REACT", Use::Switch(KeyId::HpccFastReact)),
    ("U_TARGET", Use::Number(&[KeyId::HpccEta], 1.0)),
    ("MI_THRESH", Use::Number(&[KeyId::HpccMiThresh], 1.0)),
    ("INT_MULTI", Use::Number(&[KeyId::HpccIntMulti], 1.0)),
    ("MULTI_RATE", Use::Must(&[0.0], "one rate a flow is modelled, not one a hop: write 0")),
    ("SAMPLE_FEEDBACK", Use::Must(&[0.0], "every ACK carries telemetry: write 0")),
    ("PINT_LOG_BASE", Use::Inert(PINT)),
    ("PINT_PROB", Use::Inert(PINT)),
    ("RATE_BOUND", Use::Switch(KeyId::RateBound)),
    ("ACK_HIGH_PRIO", Use::Switch(KeyId::AckHighPrio)),
    ("TIMELY_ALPHA", Use::Number(&[KeyId::TimelyAlpha], 1.0)),
    ("TIMELY_BETA", Use::Number(&[KeyId::TimelyBeta], 1.0)),
    ("TIMELY_TLOW", Use::Number(&[KeyId::TimelyTLowUs], 1e-3)),
    ("TIMELY_THIGH", Use::Number(&[KeyId::TimelyTHighUs], 1e-3)),
    ("TIMELY_MINRTT", Use::Number(&[KeyId::TimelyMinRttUs], 1e-3)),
    ("LINK_DOWN", Use::LinkDown),
    ("KMIN_MAP", Use::Map(0)),
    ("KMAX_MAP", Use::Map(1)),
    ("PMAX_MAP", Use::Map(2)),
    ("PFC_ALPHA_SHIFT", Use::Number(&[KeyId::PfcAlphaShift], 1.0)),
    ("BUFFER_SIZE", Use::Number(&[KeyId::BufferMib], 1.0)),
    ("RNG_SEED", Use::Rng(true)),
    ("RNG_RUN", Use::Rng(false)),
];

/// The line of a threshold map and its `(rate in bps, value)` pairs.
type RateMap = (usize, Vec<(u64, f64)>);

/// Values gathered over several lines.
#[derive(Default)]
struct Gathered {
    values: Vec<(KeyId, Value)>,
    outages: Vec<LinkLine>,
    /// KMIN, KMAX, PMAX.
    maps: [Option<RateMap>; 3],
    rng: [Option<u64>; 2],
}

/// Reads the text of a configuration file. `path` is only named in messages.
pub fn read_ns3_config(text: &str, path: &Path) -> Result<FileConfig, SpecError> {
    let mut got = Gathered::default();
    let mut notes = Vec::new();
    let mut seen: Vec<(&'static str, usize)> = Vec::new();
    for (i, raw) in text.lines().enumerate() {
        let line = i + 1;
        let content = raw.split('#').next().unwrap_or("").trim_start_matches('\u{feff}');
        let mut words = content.split_whitespace();
        let Some(name) = words.next() else { continue };
        let words: Vec<&str> = words.collect();
        let Some((name, usage)) = FILE_KEYS.iter().find(|(n, _)| *n == name) else {
            let hint = match nearest(name, FILE_KEYS.iter().map(|(n, _)| *n)) {
                Some(n) => format!("did you mean `{n}`?"),
                None => "it is not a key of HPCC's or SimAI's configuration files; remove the line".to_string(),
            };
            return Err(SpecError::UnknownKey { place: Place::line(path, line), key: shown(name), hint });
        };
        if let Some((_, first)) = seen.iter().find(|(n, _)| n == name) {
            let why = format!("line {first} gives it already; keep one of them");
            return Err(bad(path, line, name, &words, why));
        }
        seen.push((name, line));
        if let Use::Inert(why) = usage {
            notes.push(Note { line, key: (*name).to_string(), why });
            continue;
        }
        take(&mut got, (name, usage), line, &words).map_err(|why| bad(path, line, name, &words, why))?;
    }
    let mut values = got.values;
    if let Some(text) = by_rate(&got.maps, path)? {
        values.push((KeyId::EcnByRate, Value::Text(text.into())));
    }
    if got.rng.iter().any(Option::is_some) {
        // Seed 1 and run 1, everybody's default, are the default here too.
        let (seed, run) = (got.rng[0].unwrap_or(1), got.rng[1].unwrap_or(1));
        values.push((KeyId::TransportSeed, Value::Int(((seed.wrapping_sub(1) & 0x7fff_ffff) << 32 | run) as i64)));
    }
    // These simulators have one way to recover from loss.
    values.push((KeyId::LossRecovery, Value::Choice("ns3")));
    if !got.outages.is_empty() {
        let entries: Vec<&str> = got.outages.iter().map(|line| line.entry.as_str()).collect();
        values.push((KeyId::Outages, Value::Text(entries.join(", ").into())));
        // These simulators find new paths at the moment in which a link goes down.
        values.push((KeyId::RerouteUs, Value::Float(0.0)));
    }
    Ok(FileConfig { values, notes, outages: got.outages })
}

fn bad(path: &Path, line: usize, name: &str, words: &[&str], why: String) -> SpecError {
    SpecError::BadValue { place: Place::line(path, line), key: name.to_string(), value: shown(&words.join(" ")), why }
}

/// Shortens text from a file for a message.
fn shown(text: &str) -> String {
    let clean: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
    if clean.is_empty() { "(nothing)".to_string() } else { clean }
}

/// Applies one line's words. The error says what would be right.
fn take(got: &mut Gathered, (name, usage): (&'static str, &Use), line: usize, words: &[&str]) -> Result<(), String> {
    match usage {
        Use::Number(keys, factor) => {
            let x = number(single(words)?)?;
            for k in *keys {
                let value = if *factor == 1.0 { x } else { (x * factor * 1e9).round() / 1e9 };
                let value = key(*k).check_number(value, None).map_err(|why| format!("{why}, as {}", key(*k).name))?;
                got.values.push((*k, value));
            }
        }
        Use::Switch(k) => match single(words)? {
            "0" => got.values.push((*k, Value::Bool(false))),
            "1" => got.values.push((*k, Value::Bool(true))),
            _ => return Err("it must be 0 or 1".to_string()),
        },
        Use::Rate(keys) => {
            let mbps = parse_rate_bps(single(words)?)? as f64 / 1e6;
            for k in *keys {
                let value = key(*k).check_number(mbps, None).map_err(|why| format!("{why}, as {}", key(*k).name))?;
                got.values.push((*k, value));
            }
        }
        Use::CcMode => {
            let cc = match single(words)? {
                "0" => "none",
                "1" => "dcqcn",
                "3" => "hpcc",
                "7" => "timely",
                "8" => "dctcp",
                "10" => {
                    return Err("HPCC-PINT is not available in this version; available: 0 (none), 1 (dcqcn), 3 (hpcc), 7 (timely), 8 (dctcp)".into());
                }
                _ => return Err("it must be 0 (none), 1 (dcqcn), 3 (hpcc), 7 (timely) or 8 (dctcp)".into()),
            };
            got.values.push((KeyId::Cc, Value::Choice(cc)));
        }
        Use::Rng(is_seed) => {
            let n: u32 =
                single(words)?.parse().map_err(|_| format!("it must be a whole number from 0 to {}", u32::MAX))?;
            got.rng[usize::from(!is_seed)] = Some(u64::from(n));
        }
        Use::ErrorRate => {
            let entry = lost_everywhere(single(words)?)?;
            got.outages.extend(entry.map(|entry| LinkLine { line, key: name, entry, remark: String::new() }));
        }
        Use::LinkDown => {
            if let Some((entry, remark)) = link_down(words)? {
                got.outages.push(LinkLine { line, key: name, entry, remark });
            }
        }
        Use::Map(slot) => got.maps[*slot] = Some((line, map(words, *slot)?)),
        Use::Must(want, why) => {
            let same = words.len() == want.len() && words.iter().zip(*want).all(|(w, x)| w.parse::<f64>() == Ok(*x));
            if !same {
                return Err((*why).to_string());
            }
        }
        Use::Inert(_) => {}
    }
    Ok(())
}

/// Reads the share of packets that every link loses, as an entry of `topology.outages`; `None`: links lose nothing.
fn lost_everywhere(word: &str) -> Result<Option<String>, String> {
    let share = number(word)?;
    if share == 0.0 {
        return Ok(None);
    }
    match loss_q32(share) {
        Some(_) => Ok(Some(format!("all loss {share}"))),
        None if share > 0.0 && share < 1.0 => {
            Err("less than one packet in four billion, which is the least that is simulated: write 0".to_string())
        }
        None => Err("it must be a share of packets from 0 to below 1".to_string()),
    }
}

/// Time in us from which HPCC's and SimAI's simulators count when a link goes down: that at which HPCC's flows begin.
const LINK_DOWN_FROM_US: u64 = 2_000_000;
/// Most us that are accepted: a million seconds, the latest start of a flow.
const LATEST_LINK_DOWN_US: u64 = 1_000_000_000_000;

/// Reads when a link goes down, as an entry of `topology.outages` with a remark; `None`: no link does, since the time is 0.
fn link_down(words: &[&str]) -> Result<Option<(String, String)>, String> {
    let form = "write a time in whole us, then the ids of the two nodes that the link joins; 0 0 0 is none";
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    let Some([us, a, b]) = numbers.as_deref() else { return Err(form.to_string()) };
    if *us == 0 {
        return Ok(None);
    }
    if *us > LATEST_LINK_DOWN_US {
        return Err(format!("the time is beyond a million seconds; {form}"));
    }
    if [a, b].into_iter().any(|id| *id > u64::from(u32::MAX)) {
        return Err(format!("a node's id has at most ten digits; {form}"));
    }
    let down_us = LINK_DOWN_FROM_US + us;
    let remark = format!(
        "takes the link between nodes {a} and {b} down at {} s: {us} us count from 2 s, where HPCC's flows begin; for flows from 0 on write topology.outages = \"{a} {b} down {us}us\" in the sweep file",
        down_us as f64 / 1e6
    );
    Ok(Some((format!("{a} {b} down {down_us}us"), remark)))
}

fn single<'a>(words: &[&'a str]) -> Result<&'a str, String> {
    match words {
        [w] => Ok(w),
        [] => Err("its value is missing; write `KEY value`".to_string()),
        _ => Err("it takes one value".to_string()),
    }
}

fn number(word: &str) -> Result<f64, String> {
    word.parse::<f64>().ok().filter(|x| x.is_finite()).ok_or_else(|| "it must be a number".to_string())
}

/// Parses `n rate value rate value ...`.
fn map(words: &[&str], slot: usize) -> Result<Vec<(u64, f64)>, String> {
    let form = "write the number of pairs, then pairs of a rate in bps and a value, for example `1 100000000000 1600`";
    let n: usize = words
        .first()
        .and_then(|w| w.parse().ok())
        .filter(|n| (1..=1024).contains(n))
        .ok_or(format!("the number of pairs is missing; {form}"))?;
    if words.len() != 1 + 2 * n {
        return Err(format!("{n} pairs are announced, {} values follow; {form}", words.len() - 1));
    }
    let mut out: Vec<(u64, f64)> = Vec::with_capacity(n);
    for pair in words[1..].chunks_exact(2) {
        let rate: u64 = pair[0]
            .parse()
            .ok()
            .filter(|r| (1_000_000..=hyperfold_base::units::MAX_RATE_BPS).contains(r) && r % 1_000_000 == 0)
            .ok_or_else(|| format!("`{}` is not a rate in whole Mb/s, written in bps; {form}", shown(pair[0])))?;
        let max = if slot == 2 { 1.0 } else { 1e7 };
        let value = number(pair[1])
            .ok()
            .filter(|v| (0.0..=max).contains(v))
            .ok_or_else(|| format!("`{}` is not a number from 0 to {max}; {form}", shown(pair[1])))?;
        if out.iter().any(|(r, _)| *r == rate) {
            return Err(format!("the rate {rate} is given twice; keep one of them"));
        }
        out.push((rate, value));
    }
    Ok(out)
}

/// Returns the three maps as the text of `transport.ecn_by_rate`.
fn by_rate(maps: &[Option<RateMap>; 3], path: &Path) -> Result<Option<String>, SpecError> {
    const NAMES: [&str; 3] = ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"];
    if maps.iter().all(Option::is_none) {
        return Ok(None);
    }
    let (line, rates) = maps.iter().flatten().next().expect("one of them is there");
    let mut groups = Vec::new();
    for (rate, _) in rates {
        let mut numbers = [0.0; 3];
        for (slot, map) in maps.iter().enumerate() {
            let found = map
                .as_ref()
                .and_then(|(_, m)| (m.len() == rates.len()).then(|| m.iter().find(|(r, _)| r == rate)).flatten());
            let Some((_, value)) = found else {
                let place = Place::line(path, map.as_ref().map_or(*line, |(l, _)| *l));
                let hint = format!("KMIN_MAP, KMAX_MAP and PMAX_MAP must list the same rates (line {line} has {rate})");
                return Err(SpecError::Missing { place, key: NAMES[slot].to_string(), hint });
            };
            numbers[slot] = *value;
        }
        let [kmin, kmax, pmax] = numbers;
        if kmin > kmax {
            let place = Place::line(path, *line);
            let why = format!("at rate {rate} it is above KMAX_MAP's {kmax}");
            return Err(SpecError::BadValue { place, key: "KMIN_MAP".into(), value: kmin.to_string(), why });
        }
        groups.push(format!("{} {kmin} {kmax} {pmax}", *rate as f64 / 1e9));
    }
    Ok(Some(groups.join("; ")))
}
