//! Reads the entries of `topology.outages` that give links a rate below their own, or make them lose packets.
//!
//! Layer: spec. Names and rates of links are not known here, because the network is not made yet.

use super::failing_part::{FailingPart, part};
use super::outage_times::{beginnings, split_repeats, time};
use super::scale::scaled;
use hyperfold_base::units::{BPS_PER_MBPS, parse_rate_bps};
use hyperfold_network::topology::loss_q32;

/// A rate below a link's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReducedRate {
    /// Share of a link's own rate, in millionths: from 1 to 1,000,000.
    Share(u32),
    /// Bits per second, a whole number of Mb/s.
    Bps(u64),
}

/// What is wrong with a link that still carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impairment {
    /// It has a rate below its own.
    Rate(ReducedRate),
    /// It loses this share of packets, in units of 2^-32; not 0.
    Loss(u32),
}

impl Impairment {
    /// What the entry calls it.
    pub fn word(self) -> &'static str {
        match self {
            Impairment::Rate(_) => RATE,
            Impairment::Loss(_) => LOSS,
        }
    }
}

/// A time during which a link is impaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImpairedSpan {
    /// Time in ps from which it is.
    pub from_ps: u64,
    /// Time in ps at which it is no longer; `None`: it is to the end.
    pub to_ps: Option<u64>,
}

impl ImpairedSpan {
    /// The whole run.
    pub const WHOLE_RUN: ImpairedSpan = ImpairedSpan { from_ps: 0, to_ps: None };

    /// Whether both have a time in common.
    pub fn overlaps(self, other: ImpairedSpan) -> bool {
        self.to_ps.is_none_or(|to| other.from_ps < to) && other.to_ps.is_none_or(|to| self.from_ps < to)
    }
}

/// Impaired links, as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImpairmentText {
    /// The text, for messages.
    pub text: String,
    /// What is impaired.
    pub part: FailingPart,
    /// Whether only the direction from the first to the second node is.
    pub one_way: bool,
    /// How it is impaired.
    pub what: Impairment,
    /// When it is, in ascending order. The spans neither overlap nor touch.
    pub spans: Vec<ImpairedSpan>,
}

impl ImpairmentText {
    /// Whether it lasts for the whole run.
    pub fn is_lasting(&self) -> bool {
        self.spans == [ImpairedSpan::WHOLE_RUN]
    }
}

/// Stands between two nodes, if only the direction from the first to the second is meant.
pub(super) const ARROW: &str = "->";
/// The word before a rate.
const RATE: &str = "rate";
/// The word before a share of packets.
const LOSS: &str = "loss";

/// Whether an entry is about links that are impaired, not about links that fail.
pub(super) fn is_impairment(text: &str) -> bool {
    text.split_whitespace().any(|word| matches!(word, RATE | LOSS))
}

/// Reads an entry about impaired links. The error says what is wrong with it.
pub(super) fn impairment(text: &str) -> Result<ImpairmentText, String> {
    let spaced = text.replace(ARROW, " -> ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    if words.iter().any(|word| matches!(*word, "mtbf" | "mttr")) {
        return Err("rates and losses have no random times; a rate or a loss lasts `from` one time `to` another".into());
    }
    if words.iter().any(|word| matches!(*word, "down" | "up")) {
        return Err("`down` and `up` stop a link; give them an entry of their own. A rate or a loss lasts `from` one time `to` another".into());
    }
    if [RATE, LOSS].iter().all(|word| words.contains(word)) {
        return Err("a rate and a loss need an entry each".into());
    }
    let place = words.iter().position(|word| matches!(*word, RATE | LOSS)).unwrap_or(words.len());
    let (names, rest) = words.split_at(place);
    let (what, times) = match *rest {
        [RATE, rate, ref times @ ..] => (Impairment::Rate(reduced_rate(rate)?), times),
        [LOSS, share, ref times @ ..] => (Impairment::Loss(lost_share(share)?), times),
        [LOSS] => return Err("after `loss` comes the share of packets that are lost, as `0.01%` or `1e-4`".to_string()),
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
    Ok(ImpairmentText { text: text.to_string(), part, one_way, what, spans: spans(times)? })
}

/// Reads when links are impaired: `from` a time `to` a time, or one of them, and again `every` so often `until` a time.
fn spans(words: &[&str]) -> Result<Vec<ImpairedSpan>, String> {
    let (once, repeats) = split_repeats(words);
    let (from_ps, to_ps) = match *once {
        [] => (None, None),
        ["from", from] => (Some(time(from)?), None),
        ["to", to] => (None, Some(time(to)?)),
        ["from", from, "to", to] => (Some(time(from)?), Some(time(to)?)),
        _ => {
            return Err(
                "after a rate or a loss come `from` with a time and `to` with a time, or one of them, or nothing"
                    .into(),
            );
        }
    };
    let first = ImpairedSpan { from_ps: from_ps.unwrap_or(0), to_ps };
    if to_ps.is_some_and(|to| to <= first.from_ps) {
        return Err("it is over before it begins".to_string());
    }
    if repeats.is_empty() {
        return Ok(vec![first]);
    }
    let (Some(from_ps), Some(to_ps)) = (from_ps, to_ps) else {
        return Err("what repeats needs `from` and `to`, each with a time".to_string());
    };
    let later = beginnings(repeats, from_ps, to_ps - from_ps)?;
    Ok(later.into_iter().map(|later| ImpairedSpan { from_ps: from_ps + later, to_ps: Some(to_ps + later) }).collect())
}

/// Reads a share of packets, in units of 2^-32.
fn lost_share(text: &str) -> Result<u32, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent, 0.01),
        None => (text, 1.0),
    };
    let share =
        number.parse::<f64>().ok().filter(|share| share.is_finite() && *share >= 0.0).map(|share| share * scale);
    let share = share.ok_or_else(|| format!("`{text}` is no share of packets, as `0.01%` or `1e-4`"))?;
    if share >= 1.0 {
        return Err(format!(
            "`{text}` loses every packet; a link that carries nothing fails, as with `leaf0 spine1 down 100us up 2ms`"
        ));
    }
    loss_q32(share)
        .ok_or_else(|| format!("`{text}` of packets is less than one in four billion, the least that is simulated"))
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
            ("all rate 0.0001%", FailingPart::All, false, ReducedRate::Share(1)),
            ("spine1 rate 0.0001%", FailingPart::Node("spine1".into()), false, ReducedRate::Share(1)),
            ("random 3 rate 50%", FailingPart::Random(3), false, ReducedRate::Share(500_000)),
            (
                "leaf0 spine1#2 rate 100Gbps",
                links("leaf0", "spine1", Some(2)),
                false,
                ReducedRate::Bps(100_000_000_000),
            ),
        ] {
            assert!(is_impairment(text));
            let (what, spans) = (Impairment::Rate(rate), vec![ImpairedSpan::WHOLE_RUN]);
            assert_eq!(
                impairment(text),
                Ok(ImpairmentText { text: text.into(), part, one_way, what, spans }),
                "{text}"
            );
        }
        assert!(!is_impairment("leaf0 spine1 down 5us"));
    }

    #[test]
    fn wrong_rates_say_why() {
        for (text, why) in [
            ("rate 25%", "names no link"),
            ("a b c rate 25%", "more than two"),
            ("a b rate", "after `rate` comes one rate"),
            ("a b rate 25% 50%", "come `from` with a time"),
            ("a b rate 25% from 5us to", "come `from` with a time"),
            ("a b rate 25% to 5us from 1us", "come `from` with a time"),
            ("a b rate 25% from 5us to 5us", "over before it begins"),
            ("a b rate 25% to 0us", "over before it begins"),
            ("a b rate 25% from 5", "no time with a unit"),
            ("a b rate 25% from 1us to 2us every 1us until 1ms", "not over before it begins again"),
            ("a b rate 25% from 1us to 2us every 3us", "ends with `every`"),
            ("a b rate 25% from 1us every 3us until 1ms", "needs `from` and `to`"),
            ("a b rate 25% from 9us to 10us every 3us until 9us", "for the first time"),
            ("a b rate 25% from 1us to 2us every 3us until 1s", "at most 4096"),
            ("a b loss", "after `loss` comes"),
            ("a b loss x", "no share of packets"),
            ("a b loss -1%", "no share of packets"),
            ("a b loss 100%", "loses every packet"),
            ("a b loss 1", "loses every packet"),
            ("a b loss 0", "less than one in four billion"),
            ("a b loss 1e-12", "less than one in four billion"),
            ("a b rate 25% loss 1%", "need an entry each"),
            ("a b rate 25", "is not a rate"),
            ("a b rate x%", "no share"),
            ("a b rate 0%", "carries nothing"),
            ("a b rate -5%", "carries nothing"),
            ("a b rate 101%", "above the link's own rate"),
            ("a b rate 0Gbps", "not a rate between"),
            ("a b rate 1500bps", "no whole number of Mb/s"),
            ("a b rate 25% down 5us", "an entry of their own"),
            ("a b down 5us rate 25%", "an entry of their own"),
            ("a -> rate 25%", "stands between two nodes"),
            ("random 3 -> b rate 25%", "stands between two nodes"),
            ("-> a rate 25%", "stands between two nodes"),
            ("a -> b c rate 25%", "stands between two nodes"),
        ] {
            let found = impairment(text).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
    }

    #[test]
    fn times_and_losses_are_read() {
        const US: u64 = 1_000_000;
        let span = |from: u64, to: Option<u64>| ImpairedSpan { from_ps: from * US, to_ps: to.map(|to| to * US) };
        for (text, what, spans) in [
            ("a b loss 25%", Impairment::Loss(1 << 30), vec![ImpairedSpan::WHOLE_RUN]),
            ("a b loss 0.25 to 2ms", Impairment::Loss(1 << 30), vec![span(0, Some(2000))]),
            ("a b rate 50% from 3us", Impairment::Rate(ReducedRate::Share(500_000)), vec![span(3, None)]),
            (
                "a -> b loss 1e-9 from 1us to 2us every 4us until 9us",
                Impairment::Loss(4),
                vec![span(1, Some(2)), span(5, Some(6))],
            ),
        ] {
            let read = impairment(text).expect(text);
            assert_eq!((read.what, read.spans), (what, spans), "{text}");
        }
    }

    #[test]
    fn spans_overlap_if_they_have_a_time_in_common() {
        let span = |from_ps, to_ps| ImpairedSpan { from_ps, to_ps };
        for (a, b, overlaps) in [
            (span(0, None), span(5, Some(6)), true),
            (span(5, Some(7)), span(6, None), true),
            (span(5, Some(7)), span(7, None), false),
            (span(5, Some(7)), span(0, Some(5)), false),
        ] {
            assert_eq!((a.overlaps(b), b.overlaps(a)), (overlaps, overlaps), "{a:?} {b:?}");
        }
    }
}
