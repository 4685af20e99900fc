//! Reads `topology.outages`: links and nodes that fail while packets cross the network, and links that are slow or lose packets.
//!
//! Layer: spec. Names are not looked up here, because the network is not made yet.

use super::error::Conflict;
use super::failing_part::{FailingPart, part};
use super::impairments::{ARROW, Impairment, ImpairmentText, impairment, is_impairment};
use super::key_id::KeyId;
use super::outage_times::{DrawnTimes, MAX_OUTAGES, beginnings, split_repeats, time};
use super::value::Values;

/// An outage as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutageText {
    /// The text, for messages.
    pub text: String,
    /// Number of its entry. A link that fails again and again has several outages of one entry, which draw the same random links.
    pub entry: u64,
    /// What fails.
    pub part: FailingPart,
    /// When it fails.
    pub times: OutageTimes,
    /// For what is planned: how long before it fails paths avoid it, in ps; `None`: routing notices when it has failed.
    pub drain_ps: Option<u64>,
}

/// When something fails and comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageTimes {
    /// It fails at most once, at given times.
    Given {
        /// Time at which it fails, in ps; `None`: before the experiment begins.
        down_ps: Option<u64>,
        /// Time at which it comes back, in ps; `None`: it does not.
        up_ps: Option<u64>,
    },
    /// Again and again. Each link has times of its own; a node fails as a whole.
    Drawn(DrawnTimes),
}

impl OutageTimes {
    /// Whether something fails or comes back while the experiment runs.
    pub fn changes_network(&self) -> bool {
        !matches!(self, OutageTimes::Given { down_ps: None, up_ps: None })
    }

    /// Whether something fails while the experiment runs.
    pub fn fails_during_run(&self) -> bool {
        !matches!(self, OutageTimes::Given { down_ps: None, .. })
    }
}

/// The entries of `topology.outages`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkTexts {
    /// What fails.
    pub outages: Vec<OutageText>,
    /// What is slow or loses packets.
    pub impairments: Vec<ImpairmentText>,
}

/// An example for messages.
const EXAMPLE: &str = "write for example \"leaf0 spine1 down 100us up 2ms\", \"spine1 down 1ms\", \"leaf0 spine1 down 100us up 2ms drain 20us\", \"leaf0 spine1 down 100us up 150us every 1ms until 5ms\", \"random 3\", \"random 8 mtbf 50ms mttr 5ms until 1s\", \"leaf0 spine1 rate 25%\", \"all loss 0.001%\" or \"leaf0 spine1 loss 0.01% from 100us to 2ms\"";

/// Reads the outages and the impaired links of an experiment: texts that are separated by commas.
pub(super) fn link_texts(v: &Values) -> Result<LinkTexts, Conflict> {
    let text = v.text(KeyId::Outages);
    let fail = |why: String| Conflict { job: None, key: KeyId::Outages, why };
    let mut texts = LinkTexts::default();
    if text.trim().is_empty() {
        return Ok(texts);
    }
    for entry in text.split(',').map(str::trim) {
        let wrong = |why: String| fail(format!("`{entry}`: {why}; {EXAMPLE}"));
        match is_impairment(entry) {
            true => texts.impairments.push(impairment(entry).map_err(wrong)?),
            false => {
                let number = texts.outages.last().map_or(0, |last| last.entry + 1);
                texts.outages.extend(all_of(entry, number).map_err(wrong)?);
            }
        }
    }
    let n = texts.outages.len() + texts.impairments.iter().map(|text| text.spans.len()).sum::<usize>();
    if n > MAX_OUTAGES {
        return Err(fail(format!("{n} outages are too many; at most {MAX_OUTAGES}")));
    }
    let loses = |text: &&ImpairmentText| matches!(text.what, Impairment::Loss(_));
    match (v.text(KeyId::Mode), texts.impairments.iter().find(loses)) {
        ("packet", _) | ("flow", None) => Ok(texts),
        ("flow", Some(lossy)) => Err(fail(format!(
            "`{}`: at flow level there are no packets to lose; leave it out, or write fidelity.mode = \"packet\"{}",
            lossy.text,
            if v.has(KeyId::TransportConfig) {
                ". Where the sweep file does not give topology.outages, ERROR_RATE_PER_LINK of transport.config says so; topology.outages = \"\" undoes it"
            } else {
                ""
            }
        ))),
        (mode, _) => Err(fail(format!(
            "links of the fabric fail, are slow or lose packets in simulations of packets or flows, and fidelity.mode is \"{mode}\"; section failures says what fails there"
        ))),
    }
}

/// Reads an entry, number `entry` of those that fail: one outage, or several if it repeats. The error says what is wrong with it.
fn all_of(text: &str, entry: u64) -> Result<Vec<OutageText>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let Some(place) = words.iter().position(|word| matches!(*word, "mtbf" | "mttr")) {
        both_directions(text)?;
        let (names, times) = words.split_at(place);
        let times = OutageTimes::Drawn(DrawnTimes::read(times)?);
        return Ok(vec![OutageText { text: text.to_string(), entry, part: part(names)?, times, drain_ps: None }]);
    }
    let (once, repeats) = split_repeats(&words);
    if repeats.is_empty() {
        return Ok(vec![one(text, entry)?]);
    }
    let first = one(&once.join(" "), entry)?;
    let OutageTimes::Given { down_ps: Some(down_ps), up_ps: Some(up_ps) } = first.times else {
        return Err("what repeats needs `down` and `up`, each with a time".to_string());
    };
    let later = beginnings(repeats, down_ps, up_ps - down_ps)?;
    let nth = |later: u64| OutageText {
        text: text.to_string(),
        times: OutageTimes::Given { down_ps: Some(down_ps + later), up_ps: Some(up_ps + later) },
        ..first.clone()
    };
    Ok(later.into_iter().map(nth).collect())
}

/// Checks that an entry of what fails names no direction.
fn both_directions(text: &str) -> Result<(), String> {
    match text.contains(ARROW) {
        true => Err(format!("a link fails in both directions; `{ARROW}` needs a rate or a loss")),
        false => Ok(()),
    }
}

/// Reads one outage of entry number `entry`. The error says what is wrong with it.
fn one(text: &str, entry: u64) -> Result<OutageText, String> {
    both_directions(text)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_keyword = |word: &&str| matches!(*word, "down" | "up" | "drain");
    let (names, times) = words.split_at(words.iter().position(is_keyword).unwrap_or(words.len()));
    let (times, drain_ps) = match times {
        ["down", .., "drain", drain] => (&times[..times.len() - 2], Some(time(drain)?)),
        [.., "drain", _] => return Err("`drain` needs `down` with a time".to_string()),
        _ => (times, None),
    };
    let (down_ps, up_ps) = match times {
        [] => (None, None),
        ["down", down] => (Some(time(down)?), None),
        ["up", up] => (None, Some(time(up)?)),
        ["down", down, "up", up] => (Some(time(down)?), Some(time(up)?)),
        _ => {
            let wanted = "after the names come `down` with a time and `up` with a time, or one of them, then `drain` with a time where it is planned";
            return Err(wanted.to_string());
        }
    };
    if up_ps.is_some_and(|up| up <= down_ps.unwrap_or(0)) {
        return Err("it must come back after it fails".to_string());
    }
    let times = OutageTimes::Given { down_ps, up_ps };
    Ok(OutageText { text: text.to_string(), entry, part: part(names)?, times, drain_ps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_are_read() {
        let links = |a: &str, b: &str, number| FailingPart::Links { a: a.into(), b: b.into(), number };
        for (text, part, down_ps, up_ps) in [
            ("leaf0 spine1 down 100us up 2ms", links("leaf0", "spine1", None), Some(100_000_000), Some(2_000_000_000)),
            ("leaf0 spine1#2", links("leaf0", "spine1", Some(2)), None, None),
            ("spine1 down 1.5ns", FailingPart::Node("spine1".into()), Some(1500), None),
            ("random 3 up 1s", FailingPart::Random(3), None, Some(1_000_000_000_000)),
        ] {
            let times = OutageTimes::Given { down_ps, up_ps };
            let wanted = OutageText { text: text.into(), entry: 3, part, times, drain_ps: None };
            assert_eq!(one(text, 3), Ok(wanted.clone()), "{text}");
            if down_ps.is_some() {
                let planned = format!("{text} drain 20us");
                let wanted = OutageText { text: planned.clone(), drain_ps: Some(20_000_000), ..wanted };
                assert_eq!(one(&planned, 3), Ok(wanted));
            }
        }
    }

    #[test]
    fn what_flaps_fails_again_and_again() {
        let outages = all_of("random 2 down 10us up 12us every 5us until 25us", 7).expect("it is right");
        let times: Vec<_> = outages.iter().map(|o| o.times).collect();
        let wanted = [(10, 12), (15, 17), (20, 22)]
            .map(|(down, up)| OutageTimes::Given { down_ps: Some(down * 1_000_000), up_ps: Some(up * 1_000_000) });
        assert_eq!(times, wanted);
        assert!(outages.iter().all(|o| o.entry == 7 && o.part == FailingPart::Random(2)), "{outages:?}");
    }

    #[test]
    fn drawn_times_have_their_means() {
        let outages = all_of("spine1 mtbf 40us mttr 10us until 100ms", 0).expect("it is right");
        let [OutageText { times: OutageTimes::Drawn(drawn), .. }] = outages[..] else { panic!("{outages:?}") };
        let spans = drawn.spans((1, 0, 5), usize::MAX);
        let n = spans.len() as f64;
        let down_us = spans.iter().map(|(down, up)| up - down).sum::<u64>() as f64 / 1e6 / n;
        let up_us = spans.windows(2).map(|w| w[1].0 - w[0].1).sum::<u64>() as f64 / 1e6 / (n - 1.0);
        // About 2,000 of each; the mean of so many is off by 2 % one time in three.
        assert!(
            (1800.0..2200.0).contains(&n) && (9.3..10.7).contains(&down_us) && (37.0..43.0).contains(&up_us),
            "{n} {down_us} {up_us}"
        );
        assert!(
            spans.windows(2).all(|w| w[0].1 < w[1].0)
                && spans.iter().all(|&(down, up)| down < up && down < 100_000_000_000)
        );
        assert_ne!(drawn.spans((1, 0, 6), 3), spans[..3], "another link has times of its own");
        assert_ne!(drawn.spans((2, 0, 5), 3), spans[..3], "another seed draws others");
        assert_eq!(drawn.spans((1, 0, 5), 3), spans[..3]);
    }

    #[test]
    fn wrong_outages_say_why() {
        for (text, why) in [
            ("down 1us", "names no link"),
            ("a b c", "more than two"),
            ("a b down 5", "no time with a unit"),
            ("a b down xus", "no time"),
            ("a b down -1us", "no time"),
            ("a b down 5us up 5us", "after it fails"),
            ("a b up 5us drain 1us", "`drain` needs `down`"),
            ("a b drain 1us", "`drain` needs `down`"),
            ("a b down 5us drain", "after the names"),
            ("a b down 5us drain 1us up 6us", "after the names"),
            ("a b up 0us", "after it fails"),
            ("a b up 5us down 6us", "after the names"),
            ("a -> b down 5us", "fails in both directions"),
            ("a->b", "`->` needs a rate or a loss"),
            ("a b#0", "no number of a link"),
            ("random 0", "no number of links"),
            ("a b down 1us up 2us every 1us until 1ms", "not over before it begins again"),
            ("a b down 1us up 2us every 1us", "ends with `every`"),
            ("a b down 1us every 3us until 1ms", "needs `down` and `up`"),
            ("a b down 5us up 6us every 3us until 5us", "for the first time after"),
            ("a b down 1us up 2us every 3us until 1s", "at most 4096"),
            ("a down 101000000s", "later than"),
            ("a mtbf 5ms", "need `mttr` and `until` too"),
            ("a mtbf 5ms mttr 1ms until 1s every 2ms", "come in this order"),
            ("a mttr 5ms mtbf 1ms until 1s", "come in this order"),
            ("a -> b mtbf 5ms mttr 1ms until 1s", "fails in both directions"),
            ("random mtbf 5ms mttr 1ms until 1s", "needs a number of links"),
            ("a mtbf 0us mttr 1us until 1ms", "`mtbf` must be above 0"),
            ("a mtbf 1us mttr 1 until 1ms", "no time with a unit"),
            ("mtbf 1us mttr 1us until 1ms", "names no link"),
        ] {
            let found = all_of(text, 0).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
    }
}
