//! Reads the entries of `topology.outages` that give links a rate below their own, for the whole run.
//!
//! Layer: spec. Names and rates of links are not known here, because the network is not made yet.

use super::failing_part::{FailingPart, part};
use super::scale::scaled;
use hyperfold_base::units::{BPS_PER_MBPS, parse_rate_bps};

/// A rate that links have for the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReducedRate {
    /// Share of a link's own rate, in millionths: from 1 to 1,000,000.
    Share(u32),
    /// Bits per second, a whole number of Mb/s.
    Bps(u64),
}

/// A rate for links, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowLinkText {
    /// The text, for messages.
    pub text: String,
    /// What has the rate.
    pub part: FailingPart,
    /// Whether only the direction from the first to the second node has it.
    pub one_way: bool,
    /// The rate.
    pub rate: ReducedRate,
}

/// Stands between two nodes, if only the direction from the first to the second is meant.
pub(super) const ARROW: &str = "->";
/// The word before a rate.
const RATE: &str = "rate";

/// Whether an entry is about a rate.
pub(super) fn is_rate(text: &str) -> bool {
    text.split_whitespace().any(|word| word == RATE)
}

/// Reads an entry that has a rate. The error says what is wrong with it.
pub(super) fn slow_link(text: &str) -> Result<SlowLinkText, String> {
    let spaced = text.replace(ARROW, " -> ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    if words.iter().any(|word| matches!(*word, "down" | "up")) {
        return Err(
            "a rate lasts for the whole run, and `down` and `up` stop a link; give each an entry of its own".into()
        );
    }
    let place = words.iter().position(|word| *word == RATE).unwrap_or(words.len());
    let (names, rate) = words.split_at(place);
    let rate = match rate {
        [_, rate] => reduced_rate(rate)?,
        _ => return Err("after `rate` comes one rate, as `25%` or `100Gbps`".to_string()),
    };
    let one_way = names.contains(&ARROW);
    let part = match names {
        [a, ARROW, b] => part(&[a, b])?,
        _ if one_way => return Err(format!("`{ARROW}` stands between two nodes, as in `spine1 -> leaf0 rate 25%`")),
        names => part(names)?,
    };
    if one_way && !matches!(part, FailingPart::Links { .. }) {
        return Err(format!("`{ARROW}` stands between two nodes, as in `spine1 -> leaf0 rate 25%`"));
    }
    Ok(SlowLinkText { text: text.to_string(), part, one_way, rate })
}

/// Reads a share of a link's own rate, or a rate.
fn reduced_rate(text: &str) -> Result<ReducedRate, String> {
    let Some(percent) = text.strip_suffix('%') else {
        let bps = parse_rate_bps(text).map_err(|why| format!("{why}, or a share of the link's own rate: `25%`"))?;
        return match bps.is_multiple_of(BPS_PER_MBPS) {
            true => Ok(ReducedRate::Bps(bps)),
            false => Err(format!("`{text}` is no whole number of Mb/s")),
        };
    };
    let share = percent.parse::<f64>().ok().filter(|share| share.is_finite());
    match share.ok_or_else(|| format!("`{text}` is no share of the link's own rate, as `25%`"))? {
        share if share > 100.0 => Err(format!("`{text}` is above the link's own rate")),
        share if scaled(share.max(0.0), 1e4) == 0 => {
            Err(format!("`{text}` of the rate carries nothing; without a rate the link fails, as with `leaf0 spine1`"))
        }
        share => Ok(ReducedRate::Share(scaled(share, 1e4) as u32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        let links = |a: &str, b: &str, number| FailingPart::Links { a: a.into(), b: b.into(), number };
        for (text, part, one_way, rate) in [
            ("leaf0 spine1 rate 25%", links("leaf0", "spine1", None), false, ReducedRate::Share(250_000)),
            ("spine1 -> leaf0 rate 12.5%", links("spine1", "leaf0", None), true, ReducedRate::Share(125_000)),
            ("spine1->leaf0#2 rate 100%", links("spine1", "leaf0", Some(2)), true, ReducedRate::Share(1_000_000)),
            ("spine1 rate 0.0001%", FailingPart::Node("spine1".into()), false, ReducedRate::Share(1)),
            ("random 3 rate 50%", FailingPart::Random(3), false, ReducedRate::Share(500_000)),
            (
                "leaf0 spine1#2 rate 100Gbps",
                links("leaf0", "spine1", Some(2)),
                false,
                ReducedRate::Bps(100_000_000_000),
            ),
        ] {
            assert!(is_rate(text));
            assert_eq!(slow_link(text), Ok(SlowLinkText { text: text.into(), part, one_way, rate }), "{text}");
        }
        assert!(!is_rate("leaf0 spine1 down 5us"));
    }

    #[test]
    fn wrong_rates_say_why() {
        for (text, why) in [
            ("rate 25%", "names no link"),
            ("a b c rate 25%", "more than two"),
            ("a b rate", "after `rate` comes one rate"),
            ("a b rate 25% 50%", "after `rate` comes one rate"),
            ("a b rate 25", "is not a rate"),
            ("a b rate x%", "no share"),
            ("a b rate 0%", "carries nothing"),
            ("a b rate -5%", "carries nothing"),
            ("a b rate 101%", "above the link's own rate"),
            ("a b rate 0Gbps", "not a rate between"),
            ("a b rate 1500bps", "no whole number of Mb/s"),
            ("a b rate 25% down 5us", "an entry of its own"),
            ("a b down 5us rate 25%", "an entry of its own"),
            ("a -> rate 25%", "stands between two nodes"),
            ("random 3 -> b rate 25%", "stands between two nodes"),
            ("-> a rate 25%", "stands between two nodes"),
            ("a -> b c rate 25%", "stands between two nodes"),
        ] {
            let found = slow_link(text).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
    }
}
