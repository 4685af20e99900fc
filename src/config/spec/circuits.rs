//! Reads `topology.circuits`: which leaves optical circuits join, and when.
//!
//! Layer: spec.

use super::error::Conflict;
use super::key_id::KeyId;
use super::outage_times::time;
use super::value::Values;
use hyperfold_network::topology::{CircuitPattern, CircuitPlan, Rotation};

const EXAMPLE: &str = "write \"mesh\", \"rotate every 1ms dark 20us drain 30us until 20ms\", or a list such as [\"leaf0 leaf1 x2\", \"leaf2 leaf3 x2\", \"at 5ms dark 10ms drain 50us\", \"leaf0 leaf2 x2\", \"leaf1 leaf3 x2\"]";

/// The circuits of an optical network.
pub(super) fn circuits(v: &Values) -> Result<CircuitPlan, Conflict> {
    let text = v.text(KeyId::Circuits).trim();
    let fail = |why: String| Conflict { job: None, key: KeyId::Circuits, why };
    let plan = read(text).map_err(|why| fail(format!("{why}; {EXAMPLE}")))?;
    match v.text(KeyId::Mode) {
        mode if plan.changes() && mode != "packet" && mode != "flow" => Err(fail(format!(
            "circuits change in simulations of packets or flows, and fidelity.mode is \"{mode}\"; write \"mesh\" or one pattern"
        ))),
        _ => Ok(plan),
    }
}

/// Reads the plan. The error says what is wrong.
fn read(text: &str) -> Result<CircuitPlan, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [] | ["mesh"] => Ok(CircuitPlan::Mesh),
        ["rotate", ref times @ ..] => rotation(times).map_err(|why| format!("`{text}`: {why}")),
        _ => patterns(text),
    }
}

fn rotation(words: &[&str]) -> Result<CircuitPlan, String> {
    let (every, dark, drain, until) = match *words {
        ["every", every, "dark", dark, "until", until] => (every, dark, "0ns", until),
        ["every", every, "dark", dark, "drain", drain, "until", until] => (every, dark, drain, until),
        _ => {
            return Err(
                "after `rotate` come `every`, `dark`, `drain` if wanted, and `until`, each with a time".to_string()
            );
        }
    };
    let rotation =
        Rotation { every_ps: time(every)?, dark_ps: time(dark)?, drain_ps: time(drain)?, until_ps: time(until)? };
    if rotation.dark_ps.saturating_add(rotation.drain_ps) >= rotation.every_ps {
        return Err(format!(
            "circuits carry nothing where {dark} dark and {drain} of drain fill the {every} between changes"
        ));
    }
    if rotation.until_ps == 0 {
        return Err("`until` must be above 0".to_string());
    }
    Ok(CircuitPlan::Rotate(rotation))
}

fn patterns(text: &str) -> Result<CircuitPlan, String> {
    let mut patterns = vec![CircuitPattern::default()];
    for entry in text.split(',').map(str::trim) {
        let wrong = |why: String| format!("`{entry}`: {why}");
        let words: Vec<&str> = entry.split_whitespace().collect();
        let last = patterns.last_mut().expect("there is a first one");
        if words.first() == Some(&"at") {
            if last.circuits.is_empty() {
                return Err(wrong("no circuit is named before it".to_string()));
            }
            let lit_ps = last.since_ps.saturating_add(last.dark_ps);
            let next = change(&words).map_err(wrong)?;
            if next.since_ps <= lit_ps {
                return Err(wrong("it comes before the circuits named before it carry data".to_string()));
            }
            patterns.push(next);
        } else {
            last.circuits.push(pair(&words).map_err(wrong)?);
        }
    }
    match patterns.last().is_some_and(|last| last.circuits.is_empty()) {
        true => Err(format!("`{text}`: no circuit is named after the last `at`")),
        false => Ok(CircuitPlan::Patterns(patterns)),
    }
}

/// Reads when the circuits that follow take over.
fn change(words: &[&str]) -> Result<CircuitPattern, String> {
    let (since, dark, drain) = match *words {
        ["at", since, "dark", dark] => (since, dark, "0ns"),
        ["at", since, "dark", dark, "drain", drain] => (since, dark, drain),
        _ => return Err("`at` has a time, then `dark` with a time, and `drain` with a time if wanted".to_string()),
    };
    Ok(CircuitPattern { since_ps: time(since)?, dark_ps: time(dark)?, drain_ps: time(drain)?, circuits: Vec::new() })
}

/// Reads two leaves, and how many circuits they have.
fn pair(words: &[&str]) -> Result<(u32, u32, u32), String> {
    let (a, b, count) = match *words {
        [a, b] => (a, b, "x1"),
        [a, b, count] => (a, b, count),
        _ => return Err("a circuit has two leaves, and a number such as `x2` if there are several".to_string()),
    };
    let leaf = |name: &str| {
        let number = name.strip_prefix("leaf").and_then(|number| number.parse().ok());
        number.ok_or_else(|| format!("`{name}` is no leaf, such as `leaf3`"))
    };
    let count =
        count.strip_prefix('x').and_then(|count| count.parse().ok()).filter(|count| (1..=65536).contains(count));
    let count = count.ok_or("the number of circuits is from `x1` to `x65536`")?;
    Ok((leaf(a)?, leaf(b)?, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circuits_are_read() {
        assert_eq!(read(""), Ok(CircuitPlan::Mesh));
        assert_eq!(read("mesh"), Ok(CircuitPlan::Mesh));
        let rotation = Rotation { every_ps: 1_000_000_000, dark_ps: 20_000_000, drain_ps: 0, until_ps: 20_000_000_000 };
        assert_eq!(read("rotate every 1ms dark 20us until 20ms"), Ok(CircuitPlan::Rotate(rotation)));
        let drained = Rotation { drain_ps: 30_000_000, ..rotation };
        assert_eq!(read("rotate every 1ms dark 20us drain 30us until 20ms"), Ok(CircuitPlan::Rotate(drained)));
        let first = CircuitPattern { circuits: vec![(0, 1, 2), (2, 3, 1)], ..CircuitPattern::default() };
        let second =
            CircuitPattern { since_ps: 5_000_000, dark_ps: 1_000_000, drain_ps: 2_000_000, circuits: vec![(0, 2, 1)] };
        assert_eq!(
            read("leaf0 leaf1 x2, leaf2 leaf3, at 5us dark 1us drain 2us, leaf0 leaf2"),
            Ok(CircuitPlan::Patterns(vec![first, second]))
        );
    }

    #[test]
    fn wrong_circuits_say_why() {
        for (text, why) in [
            ("rotate", "after `rotate` come"),
            ("rotate every 1ms until 2ms", "after `rotate` come"),
            ("rotate every 1ms dark 600us drain 400us until 2ms", "fill the 1ms between changes"),
            ("rotate every 1 dark 0us until 2ms", "no time with a unit"),
            ("rotate every 1ms dark 0us until 0us", "`until` must be above 0"),
            ("leaf0", "has two leaves"),
            ("leaf0 spine1", "`spine1` is no leaf"),
            ("leaf0 leaf1 2", "from `x1`"),
            ("leaf0 leaf1 x0", "from `x1`"),
            ("at 5us dark 1us, leaf0 leaf1", "no circuit is named before it"),
            ("leaf0 leaf1, at 5us dark 1us", "after the last `at`"),
            ("leaf0 leaf1, at 5us, leaf0 leaf2", "then `dark`"),
            ("leaf0 leaf1, at 5us dark 9us, leaf0 leaf2, at 14us dark 0us, leaf0 leaf1", "carry data"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
    }
}
