//! Reads times in entries of `topology.outages`.
//!
//! Layer: spec.

use super::mix::{exponential, mix};
use super::scale::scaled;
use hyperfold_base::units::{PS_PER_NS, PS_PER_S};

/// Most times that links of one experiment fail or are impaired (our choice).
pub const MAX_OUTAGES: usize = 4096;
/// Latest time of an outage in ps, 100 days: simulated time ends soon after.
const LATEST_PS: f64 = 8.64e18;

/// Reads a time with its unit, in ps.
pub(super) fn time(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "ns" => PS_PER_NS as f64,
        "us" => 1e3 * PS_PER_NS as f64,
        "ms" => 1e6 * PS_PER_NS as f64,
        "s" => PS_PER_S as f64,
        _ => return Err(format!("`{text}` is no time with a unit: ns, us, ms or s")),
    };
    let number = digits.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    let number = number.ok_or_else(|| format!("`{text}` is no time"))?;
    if number * scale > LATEST_PS {
        return Err(format!("`{text}` is later than the 100 days that can be simulated"));
    }
    Ok(scaled(number, scale))
}

/// Times of failures that are drawn: what fails is up for a time, then down for a time, again and again, each with an exponential distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnTimes {
    /// Mean time for which it is up before it fails, in ps.
    pub mtbf_ps: u64,
    /// Mean time until it is back, in ps.
    pub mttr_ps: u64,
    /// No failure begins at or after this time, in ps.
    pub until_ps: u64,
}

impl DrawnTimes {
    /// Reads `mtbf`, a time, `mttr`, a time, `until`, a time.
    pub(super) fn read(words: &[&str]) -> Result<DrawnTimes, String> {
        let ["mtbf", mtbf, "mttr", mttr, "until", until] = *words else {
            let missing: Vec<&str> =
                ["mtbf", "mttr", "until"].into_iter().filter(|word| !words.contains(word)).collect();
            let wrong = match missing[..] {
                [] => "`mtbf`, `mttr` and `until` come in this order, each with a time without a blank, and nothing after them".to_string(),
                _ => format!("failures at random times need `{}` too, with a time", missing.join("` and `")),
            };
            return Err(format!("{wrong}, as in `random 8 mtbf 50ms mttr 5ms until 1s`"));
        };
        let above_zero = |name: &str, text: &str| match time(text)? {
            0 => Err(format!("`{name}` must be above 0")),
            ps => Ok(ps),
        };
        Ok(DrawnTimes {
            mtbf_ps: above_zero("mtbf", mtbf)?,
            mttr_ps: above_zero("mttr", mttr)?,
            until_ps: above_zero("until", until)?,
        })
    }

    /// Times in ps at which it fails and is back. `draws`: words that name what fails, so that each part has times of its own. Returns at most `limit` of them.
    pub fn spans(&self, (seed, entry, part): (u64, u64, u64), limit: usize) -> Vec<(u64, u64)> {
        let of_part = mix(seed, entry, part);
        let draw = |n: u64, mean_ps: u64| scaled(exponential(mix(of_part, n, 27)), mean_ps as f64).max(1);
        let mut spans = Vec::new();
        let mut up_ps = 0u64;
        while spans.len() < limit {
            let n = 2 * spans.len() as u64;
            let down_ps = up_ps.saturating_add(draw(n, self.mtbf_ps));
            if down_ps >= self.until_ps {
                break;
            }
            up_ps = down_ps.saturating_add(draw(n + 1, self.mttr_ps));
            spans.push((down_ps, up_ps));
        }
        spans
    }
}

/// Splits the words of an entry before those that say how often it repeats.
pub(super) fn split_repeats<'a, 'w>(words: &'a [&'w str]) -> (&'a [&'w str], &'a [&'w str]) {
    let is_repeat = |word: &&str| matches!(*word, "every" | "until");
    words.split_at(words.iter().position(is_repeat).unwrap_or(words.len()))
}

/// Reads how often an entry repeats that begins at `first_ps` for the first time, and lasts `length_ps` each time. Returns the time in ps from its first
/// beginning to each of its beginnings; without words that is 0 alone.
pub(super) fn beginnings(words: &[&str], first_ps: u64, length_ps: u64) -> Result<Vec<u64>, String> {
    let (every, until) = match *words {
        [] => return Ok(vec![0]),
        ["every", every, "until", until] => (every, until),
        _ => return Err("what repeats ends with `every` and a time, then `until` and a time, as in `leaf0 spine1 loss 1% from 0us to 50us every 1ms until 1s`".to_string()),
    };
    let (every_ps, until_ps) = (time(every)?, time(until)?);
    if every_ps <= length_ps {
        return Err(format!("it is not over before it begins again, {every} later"));
    }
    let n = until_ps.saturating_sub(first_ps).div_ceil(every_ps);
    match n {
        0 => Err(format!("it begins for the first time after {until}")),
        n if n > MAX_OUTAGES as u64 => Err(format!("it begins {n} times; at most {MAX_OUTAGES}")),
        n => Ok((0..n).map(|k| k * every_ps).collect()),
    }
}
