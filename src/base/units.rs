//! Units: integer picoseconds, bits per second and bytes, and a few conversions that everything shares.
//!
//! Layer: the first. Knows nothing about networks. Floats appear only where a number that a person wrote is read.

use std::str::FromStr;

/// Picoseconds in a nanosecond.
pub const PS_PER_NS: u64 = 1_000;
/// Picoseconds in a microsecond.
pub const PS_PER_US: u64 = 1_000_000;
/// Picoseconds in a second.
pub const PS_PER_S: u64 = 1_000_000_000_000;
/// Bits per second in one Mb/s.
pub const BPS_PER_MBPS: u64 = 1_000_000;
/// Bits per second in one Gb/s.
pub const BPS_PER_GBPS: u64 = 1_000_000_000;
/// The largest link rate that is accepted: 2^43 bps, so that `tx_ps` stays within 64 bits.
pub const MAX_RATE_BPS: u64 = 1 << 43;

/// Writes a whole number with commas between the thousands.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).expect("digits are ASCII")).collect();
    groups.join(",")
}

/// Returns the time in picoseconds that it takes to put `bytes` on a link of `rate_bps`, rounded half up to a multiple of `clock_ps`.
///
/// PRECONDITION: `bytes < 65_536`, `1 <= rate_bps <= MAX_RATE_BPS`, `clock_ps` is 1 or 1000.
#[inline]
pub fn tx_ps(bytes: u32, rate_bps: u64, clock_ps: u64) -> u64 {
    let den = rate_bps * clock_ps;
    clock_ps * ((2 * bytes as u64 * 8 * PS_PER_S + den) / (2 * den))
}

/// Parses a rate as people write it (`100Gbps`, `2.4Tbps`, `40Mb/s`, `1000000bps`) and returns it in bps.
pub fn parse_rate_bps(text: &str) -> Result<u64, String> {
    let t = text.trim();
    let split = t.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(t.len());
    let (num, unit) = t.split_at(split);
    let scale: f64 = match unit {
        "bps" | "b/s" => 1.0,
        "Kbps" | "kbps" | "Kb/s" | "kb/s" => 1e3,
        "Mbps" | "Mb/s" => 1e6,
        "Gbps" | "Gb/s" => 1e9,
        "Tbps" | "Tb/s" => 1e12,
        _ => return Err(format!("`{text}` is not a rate; write for example `100Gbps` or `40Mb/s`")),
    };
    scaled(num, scale, MAX_RATE_BPS)
        .ok_or_else(|| format!("`{text}` is not a rate between 1 bps and 8 Tbps; write for example `100Gbps`"))
}

/// Parses a delay as people write it (`1us`, `1000ns`, `0.005ms`, `1ps`, `2s`) and returns it in picoseconds.
pub fn parse_delay_ps(text: &str) -> Result<u64, String> {
    let t = text.trim();
    let split = t.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(t.len());
    let (num, unit) = t.split_at(split);
    let scale: f64 = match unit {
        "ps" => 1.0,
        "ns" => 1e3,
        "us" => 1e6,
        "ms" => 1e9,
        "s" => 1e12,
        _ => return Err(format!("`{text}` is not a delay; write for example `1us` or `500ns`")),
    };
    scaled(num, scale, PS_PER_S)
        .ok_or_else(|| format!("`{text}` is not a delay between 1 ps and 1 s; write for example `1us`"))
}

/// Returns `num * scale`, rounded, if it is a finite number from 1 to `max`.
fn scaled(num: &str, scale: f64, max: u64) -> Option<u64> {
    let v = f64::from_str(num).ok()? * scale;
    (v.is_finite() && v >= 0.5 && v <= max as f64).then(|| v.round() as u64)
}

/// Writes a number and its noun, which is in the plural unless the number is one: `1 experiment`, `2 axes`.
pub fn counted(n: impl TryInto<u64>, noun: &str) -> String {
    // A count that does not fit in 64 bits is not one, so its noun is in the plural.
    match n.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        n => format!("{n} {}", plural(noun)),
    }
}

/// Returns the plural of a noun in this program's messages.
pub fn plural(noun: &str) -> String {
    match noun {
        _ if noun.ends_with("axis") => format!("{}es", &noun[..noun.len() - 2]),
        _ if noun.ends_with("entry") => format!("{}ies", &noun[..noun.len() - 1]),
        _ if noun.ends_with('x') || noun.ends_with("ch") || noun.ends_with("sh") || noun.ends_with("ss") => {
            format!("{noun}es")
        }
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmission_times_round_as_the_reference_does() {
        let g100 = 100 * BPS_PER_GBPS;
        assert_eq!(tx_ps(1048, g100, 1000), 84_000);
        assert_eq!(tx_ps(1090, g100, 1000), 87_000);
        assert_eq!(tx_ps(1048, g100, 1), 83_840);
        assert_eq!(tx_ps(1048, 4 * g100, 1000), 21_000);
        assert_eq!(tx_ps(43, g100, 1000), 3_000);
    }

    #[test]
    fn rates_and_delays_read_as_written() {
        assert_eq!(parse_rate_bps("100Gbps"), Ok(100 * BPS_PER_GBPS));
        assert_eq!(parse_rate_bps("40Mb/s"), Ok(40 * BPS_PER_MBPS));
        assert_eq!(parse_delay_ps("0.005ms"), Ok(5 * PS_PER_US));
        assert_eq!(parse_delay_ps("0.000025ms"), Ok(25_000));
        assert!(parse_rate_bps("-1Gbps").is_err());
        assert!(parse_rate_bps("100Gbit").is_err());
        assert!(parse_delay_ps("nanus").is_err());
        assert!(parse_delay_ps("1e300s").is_err());
    }
}
