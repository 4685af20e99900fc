//! One axis: a list of values, or a range to sample.
//!
//! Layer: sweep.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key_names::KnownKey;
use super::sweep_text::{SweepText, WrittenKey, known};
use crate::spec::{Key, KeyKind, KeyPath, Place, SpecError, Value};
use crate::sweep::experiment::MAX_EXPERIMENTS;
use crate::sweep::method::Method;
use hyperfold_base::nearest::nearest;

/// The values that an axis can take.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::sweep) enum Points {
    List(Vec<Value>),
    /// A range that `random`, `lhs` and `optimize` sample; samples are rounded to values of the key.
    Range {
        min: f64,
        max: f64,
        log: bool,
    },
}

/// An axis as declared.
#[derive(Clone, Debug)]
pub(in crate::sweep) struct DeclaredAxis {
    pub path: KeyPath,
    /// Dotted name.
    pub name: String,
    pub points: Points,
    pub place: Place,
    /// The right-hand side as written, for the resolved sweep.
    pub written: String,
}

/// Reads one entry of `[axes]`.
pub(in crate::sweep) fn read_axis(
    source: &SweepText<'_>,
    method: Method,
    (name, offset, value): &WrittenKey<'_>,
) -> Result<DeclaredAxis, SpecError> {
    let KnownKey { path, key } = known(source, name, *offset)?;
    let place = source.place(*offset);
    let points = match value.get_ref() {
        DeValue::Array(list) if list.is_empty() => {
            return Err(source.bad(
                name,
                value,
                "an axis without values gives an empty sweep; list at least one value".into(),
            ));
        }
        DeValue::Array(list) => {
            let mut values: Vec<Value> = Vec::with_capacity(list.len());
            let mut wrong: Vec<(&Spanned<DeValue<'_>>, String)> = Vec::new();
            for v in list.iter() {
                match key.read_with(v.get_ref(), source.registry) {
                    Ok(value) => values.push(value),
                    Err(why) => wrong.push((v, why)),
                }
            }
            if let Some((first, why)) = wrong.first() {
                return Err(source.bad(name, first, with_others(source, why, &wrong[1..])));
            }
            Points::List(values)
        }
        DeValue::Table(t) => range(source, method, key, value, t)?,
        _ => {
            let why = "an axis is a list of values or { start = .., stop = .., step = .. }; for a single value use [base] or a list of one";
            return Err(source.bad(name, value, why.into()));
        }
    };
    let text = source.text.get(value.span()).unwrap_or("").to_string();
    // A table spread over dotted lines has no text of its own.
    let written = match value.get_ref() {
        DeValue::Array(_) => text,
        _ if text.starts_with('{') => text,
        _ => spelled(&points),
    };
    Ok(DeclaredAxis { path, name: name.clone(), points, place, written })
}

/// Says why a value of a list is wrong, and which other values are.
fn with_others(source: &SweepText<'_>, why: &str, others: &[(&Spanned<DeValue<'_>>, String)]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<String> = others.iter().take(SHOWN).map(|(v, _)| source.shown(v.span())).collect();
    let more = if others.len() > SHOWN { format!(" and {} more", others.len() - SHOWN) } else { String::new() };
    match others.len() {
        0 => why.to_string(),
        1 => format!("{why}; {} is wrong, too", shown[0]),
        _ => format!("{why}; {}{more} are wrong, too", shown.join(", ")),
    }
}

/// Returns the TOML of a range that was not written inline.
fn spelled(points: &Points) -> String {
    match points {
        Points::List(values) => format!("[{}]", values.iter().map(Value::to_toml).collect::<Vec<_>>().join(", ")),
        Points::Range { min, max, log } => {
            format!("{{ min = {min}, max = {max}, scale = \"{}\" }}", if *log { "log" } else { "linear" })
        }
    }
}

fn range(
    source: &SweepText<'_>,
    method: Method,
    key: &Key,
    value: &Spanned<DeValue<'_>>,
    table: &DeTable<'_>,
) -> Result<Points, SpecError> {
    const KNOWN: [&str; 6] = ["start", "stop", "step", "min", "max", "scale"];
    for (k, _) in table {
        if !KNOWN.contains(&k.get_ref().as_ref()) {
            let hint = nearest(k.get_ref(), KNOWN.into_iter()).map_or_else(
                || "a range is { start, stop, step } or { min, max, scale }".to_string(),
                |n| format!("did you mean `{n}`?"),
            );
            return Err(SpecError::UnknownKey {
                place: source.place(k.span().start),
                key: format!("{}.{}", key.name, k.get_ref()),
                hint,
            });
        }
    }
    if !matches!(key.kind, KeyKind::Int { .. } | KeyKind::Float { .. }) {
        return Err(source.bad(
            key.name,
            value,
            format!("a range needs a key with numbers; list values, each {}", key.accepts()),
        ));
    }
    let has = |k: &str| table.contains_key(k);
    if has("min") || has("max") || has("scale") {
        if has("start") || has("stop") || has("step") {
            return Err(source.bad(key.name, value, "use either start, stop, step or min, max, scale".into()));
        }
        if !matches!(method, Method::Random | Method::Lhs | Method::Optimize) {
            let why = format!(
                "min and max need method = \"random\", \"lhs\" or \"optimize\"; with \"{}\" use {{ start, stop, step }} or a list",
                method.name()
            );
            return Err(source.bad(key.name, value, why));
        }
        return sampled(source, key, value, table);
    }
    let (start, stop, step) = (
        endpoint(source, key, value, table, "start")?,
        endpoint(source, key, value, table, "stop")?,
        number(source, key, value, table, "step")?,
    );
    if step == 0.0 || (stop - start) * step < 0.0 {
        return Err(source.bad(
            key.name,
            value,
            format!("a step of {step} never gets from {start} to {stop}; change its sign or size"),
        ));
    }
    // The tolerance lets 0.1 steps reach a stop of 0.3.
    let count = ((stop - start) / step + 1e-9).floor() + 1.0;
    if count > MAX_EXPERIMENTS as f64 {
        return Err(source.bad(
            key.name,
            value,
            format!(
                "{count} values are more than the {MAX_EXPERIMENTS} experiments a sweep may have; use larger steps"
            ),
        ));
    }
    let mut values = Vec::with_capacity(count as usize);
    for i in 0..count as u64 {
        let x = tidy(start + i as f64 * step);
        values.push(
            key.check_number(x, None)
                .map_err(|why| source.bad(key.name, value, format!("it steps on {x}, but {why}")))?,
        );
    }
    Ok(Points::List(values))
}

fn sampled(
    source: &SweepText<'_>,
    key: &Key,
    value: &Spanned<DeValue<'_>>,
    table: &DeTable<'_>,
) -> Result<Points, SpecError> {
    let (min, max) = (endpoint(source, key, value, table, "min")?, endpoint(source, key, value, table, "max")?);
    let log = match table.get("scale").map(|v| (v, v.get_ref().as_str())) {
        None | Some((_, Some("linear"))) => false,
        Some((_, Some("log"))) => true,
        Some((v, _)) => {
            return Err(source.bad(&format!("{}.scale", key.name), v, "it must be \"linear\" or \"log\"".into()));
        }
    };
    if min >= max {
        return Err(source.bad(key.name, value, "min must be below max".into()));
    }
    if log && min <= 0.0 {
        return Err(source.bad(key.name, value, "a log scale needs min above 0".into()));
    }
    Ok(Points::Range { min, max, log })
}

/// Reads a number of a range that must itself be a value of the key.
fn endpoint(
    source: &SweepText<'_>,
    key: &Key,
    value: &Spanned<DeValue<'_>>,
    table: &DeTable<'_>,
    name: &str,
) -> Result<f64, SpecError> {
    let x = number(source, key, value, table, name)?;
    match key.check_number(x, None) {
        Ok(_) => Ok(x),
        Err(why) => {
            let v = table.get(name).expect("`number` found it");
            Err(source.bad(&format!("{}.{name}", key.name), v, why))
        }
    }
}

fn number(
    source: &SweepText<'_>,
    key: &Key,
    value: &Spanned<DeValue<'_>>,
    table: &DeTable<'_>,
    name: &str,
) -> Result<f64, SpecError> {
    let Some(v) = table.get(name) else {
        return Err(source.bad(
            key.name,
            value,
            format!("`{name}` is missing; write {{ start, stop, step }} or, with random, lhs and optimize, {{ min, max, scale }}"),
        ));
    };
    let x = match v.get_ref() {
        DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix()).ok().map(|i| i as f64),
        DeValue::Float(x) => x.as_str().parse().ok(),
        _ => None,
    };
    x.filter(|x: &f64| x.is_finite())
        .ok_or_else(|| source.bad(&format!("{}.{name}", key.name), v, "it must be a number".into()))
}

/// Rounds to the nearest number with 12 significant digits: 3 * 0.1 is meant to be 0.3.
fn tidy(x: f64) -> f64 {
    format!("{x:.11e}").parse().expect("a printed float reads back")
}

impl Points {
    /// Returns the value at a fraction `u` in [0, 1) of the axis.
    pub(in crate::sweep) fn at(&self, key: &Key, u: f64) -> Value {
        match self {
            Points::List(values) => values[((u * values.len() as f64) as usize).min(values.len() - 1)].clone(),
            Points::Range { min, max, log } => {
                // libm, because the machine's own logarithm may differ in the last bit from another machine's.
                let interpolate = |lo: f64, hi: f64| {
                    if *log {
                        libm::exp(libm::log(lo) + u * (libm::log(hi) - libm::log(lo)))
                    } else {
                        lo + u * (hi - lo)
                    }
                };
                let x = match key.kind {
                    // Each whole number gets an equal share of a linear range.
                    KeyKind::Int { .. } if !*log => interpolate(*min, *max + 1.0).floor(),
                    KeyKind::Int { .. } => interpolate(*min, *max).round(),
                    KeyKind::Float { quantum, .. } if quantum > 0.0 => {
                        tidy((interpolate(*min, *max) / quantum).round() * quantum)
                    }
                    _ => interpolate(*min, *max),
                };
                key.check_number(x.clamp(*min, *max), None)
                    .expect("both ends of the range are values of the key, and so is all between")
            }
        }
    }
}
