//! Where an axis has its ticks, what stands at them, and how values become places between 0 and 1.
//!
//! Layer: plot. Logarithms are libm's, the same on every machine.

use super::figure::{AxisScale, FigureAxis};
use super::quantity::{Quantity, digits};

/// Ticks that an axis has at least room for.
const WANTED: f64 = 6.0;
/// Most distinct values of an axis that all get a tick of their own.
const ALL_UP_TO: usize = 9;

/// An axis with its range.
#[derive(Clone, Debug)]
pub(super) struct Ruler {
    /// Places between 0 and 1, with their texts.
    pub(super) ticks: Vec<(f64, String)>,
    /// The axis' label with the unit that its numbers are in.
    pub(super) label: String,
    low: f64,
    high: f64,
    log: bool,
}

impl Ruler {
    /// An axis over these values, which are finite, and above 0 where the scale is logarithmic.
    /// With `at_values`, few distinct values get a tick each.
    pub(super) fn new(axis: &FigureAxis, values: &[f64], at_values: bool) -> Ruler {
        if let AxisScale::Categories(names) = &axis.scale {
            let n = names.len().max(1) as f64;
            let ticks = names.iter().enumerate().map(|(i, name)| ((i as f64 + 0.5) / n, name.clone())).collect();
            return Ruler { ticks, label: axis.label.clone(), low: -0.5, high: n - 0.5, log: false };
        }
        let log = axis.scale == AxisScale::Log;
        let (mut low, mut high) =
            values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
        if low > high {
            (low, high) = (1.0, 1.0);
        }
        let mut distinct: Vec<f64> = values.to_vec();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        let (at, texts, unit): (Vec<f64>, Vec<String>, &str) = if at_values && distinct.len() <= ALL_UP_TO {
            let texts = distinct.iter().map(|v| axis.quantity.text(*v)).collect();
            // Marks at the ends do not stand on the frame.
            if log {
                let pad = libm::pow(high / low, 0.06).max(1.1);
                (low, high) = (low / pad, high * pad);
            } else {
                let pad = if high > low { (high - low) * 0.06 } else { 0.5 * high.abs().max(1.0) };
                (low, high) = (low - pad, high + pad);
            }
            (distinct, texts, "")
        } else if log {
            let at = log_ticks(&mut low, &mut high, axis.quantity);
            let texts = at.iter().map(|v| axis.quantity.text(*v)).collect();
            (at, texts, "")
        } else {
            linear_ticks(&mut low, &mut high, axis.quantity)
        };
        let label = if unit.is_empty() { axis.label.clone() } else { format!("{} ({unit})", axis.label) };
        let mut ruler = Ruler { ticks: Vec::new(), label, low, high, log };
        ruler.ticks = at.iter().zip(texts).map(|(v, text)| (ruler.place(*v), text)).collect();
        ruler
    }

    /// Where a value stands: 0 at the beginning of the axis, 1 at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        if self.log {
            (libm::log10(value) - libm::log10(self.low)) / (libm::log10(self.high) - libm::log10(self.low))
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

/// Multiples of 1, 2 or 5 times a power of ten; of bytes, of a power of two. The range grows to the ticks around it.
fn linear_ticks(low: &mut f64, high: &mut f64, quantity: Quantity) -> (Vec<f64>, Vec<String>, &'static str) {
    // A range that is far from zero for its width is better looked at closely.
    if *low >= 0.0 && *low < 0.5 * *high {
        *low = 0.0;
    }
    if *low == *high {
        let by = if *low == 0.0 { 1.0 } else { 0.1 * low.abs() };
        (*low, *high) = (*low - by, *high + by);
    }
    let (unit, name) = quantity.unit(high.abs().max(low.abs()));
    let step = match quantity {
        Quantity::Bytes => libm::exp2(libm::ceil(libm::log2(((*high - *low) / WANTED).max(1.0)))),
        _ => unit * nice((*high - *low) / unit / WANTED),
    };
    let (first, last) = (libm::floor(*low / step + 1e-9), libm::ceil(*high / step - 1e-9));
    (*low, *high) = (first * step, last * step);
    let at: Vec<f64> = (0..=(last - first) as u64).map(|i| (first + i as f64) * step).collect();
    let texts = match quantity {
        Quantity::Bytes => at.iter().map(|v| quantity.text(*v)).collect(),
        Quantity::Plain if high.abs().max(low.abs()) >= 1e4 => at.iter().map(|v| quantity.text(*v)).collect(),
        _ => at.iter().map(|v| decimal(*v / unit, step / unit)).collect(),
    };
    (at, texts, name)
}

/// A multiple of a step, with the decimals that the step needs.
fn decimal(value: f64, step: f64) -> String {
    if step < 1e-6 {
        return digits(value);
    }
    let decimals = libm::ceil(-libm::log10(step) - 1e-9).max(0.0) as usize;
    let text = format!("{:.decimals$}", value + 0.0);
    if text.trim_start_matches('-').chars().all(|c| matches!(c, '0' | '.')) {
        text.trim_start_matches('-').to_string()
    } else {
        text
    }
}

/// The least of 1, 2 and 5 times a power of ten that is no less than `x`.
fn nice(x: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(x)));
    let lead = x / power;
    power * [1.0, 2.0, 5.0].into_iter().find(|n| lead <= n + 1e-9).unwrap_or(10.0)
}

/// Powers of ten, or of two for bytes; with 2 and 5 between them where there are few. The range grows to the ticks around it.
fn log_ticks(low: &mut f64, high: &mut f64, quantity: Quantity) -> Vec<f64> {
    let (base, log): (f64, fn(f64) -> f64) =
        if quantity == Quantity::Bytes { (2.0, libm::log2) } else { (10.0, libm::log10) };
    let decades = log(*high / *low);
    let (mut at, between): (Vec<f64>, &[f64]) =
        (Vec::new(), if base == 10.0 && decades < 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] });
    let (first, last) = (libm::floor(log(*low)) as i64, libm::ceil(log(*high)) as i64);
    let every = ((last - first) as f64 / (WANTED + 2.0)).ceil().max(1.0) as i64;
    let mut power = first;
    loop {
        at.extend(between.iter().map(|m| m * libm::pow(base, power as f64)));
        if power >= last {
            break;
        }
        power += every;
    }
    let from = at.iter().rposition(|v| *v <= *low * (1.0 + 1e-12)).unwrap_or(0);
    let to =
        at.iter().position(|v| *v >= *high * (1.0 - 1e-12)).unwrap_or(at.len() - 1).max((from + 1).min(at.len() - 1));
    at = at[from..=to].to_vec();
    if at.len() < 2 {
        at.push(at[0] * base);
    }
    (*low, *high) = (at[0], at[at.len() - 1]);
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ruler(scale: AxisScale, quantity: Quantity, values: &[f64], at_values: bool) -> (String, Vec<String>) {
        let ruler = Ruler::new(&FigureAxis { label: "a".into(), quantity, scale }, values, at_values);
        for (place, _) in &ruler.ticks {
            assert!((-1e-9..=1.0 + 1e-9).contains(place), "{ruler:?}");
        }
        for value in values {
            assert!((-1e-9..=1.0 + 1e-9).contains(&ruler.place(*value)), "{value}: {ruler:?}");
        }
        (ruler.label, ruler.ticks.into_iter().map(|(_, text)| text).collect())
    }

    #[test]
    fn ticks_are_round() {
        let linear = |quantity, values: &[f64]| ruler(AxisScale::Linear, quantity, values, false);
        assert_eq!(
            linear(Quantity::Time, &[2e5, 1.9e6]),
            ("a (ms)".into(), ["0.0", "0.5", "1.0", "1.5", "2.0"].map(String::from).to_vec())
        );
        assert_eq!(
            linear(Quantity::Bytes, &[0.0, 300_000.0]).1,
            ["0 B", "64 KiB", "128 KiB", "192 KiB", "256 KiB", "320 KiB"]
        );
        assert_eq!(linear(Quantity::Plain, &[97.0, 103.0]).1, ["97", "98", "99", "100", "101", "102", "103"]);
        assert_eq!(
            linear(Quantity::Share, &[0.1, 0.93]),
            ("a (%)".into(), ["0", "20", "40", "60", "80", "100"].map(String::from).to_vec())
        );
        assert_eq!(linear(Quantity::Plain, &[-1.0, 1.0]).1, ["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
        // One value, and none.
        assert!(
            linear(Quantity::Time, &[5.0]).1.len() > 1
                && linear(Quantity::Plain, &[0.0]).1.len() > 1
                && linear(Quantity::Plain, &[]).1.len() > 1
        );
    }

    #[test]
    fn logarithmic_ticks_tell_their_units() {
        let log = |quantity, values: &[f64]| ruler(AxisScale::Log, quantity, values, false).1;
        assert_eq!(
            log(Quantity::Time, &[700.0, 60_000.0]),
            ["500 ns", "1 us", "2 us", "5 us", "10 us", "20 us", "50 us", "100 us"]
        );
        assert_eq!(log(Quantity::Bytes, &[1024.0, 8192.0]), ["1 KiB", "2 KiB", "4 KiB", "8 KiB"]);
        assert_eq!(log(Quantity::Plain, &[1.0, 1e5]), ["1", "10", "100", "1000", "10 k", "100 k"]);
        assert!(log(Quantity::Plain, &[1.0, 1e30]).len() <= 10 && log(Quantity::Bytes, &[1.0, 1e12]).len() <= 10);
        assert!(log(Quantity::Plain, &[3.0]).len() >= 2);
    }

    #[test]
    fn few_values_have_a_tick_each() {
        assert_eq!(
            ruler(AxisScale::Linear, Quantity::Plain, &[100.0, 400.0, 400.0, 200.0], true).1,
            ["100", "200", "400"]
        );
        assert_eq!(ruler(AxisScale::Log, Quantity::Bytes, &[65_536.0, 1e6], true).1, ["64 KiB", "1 MB"]);
        let names = ["hpcc", "dcqcn"].map(String::from).to_vec();
        assert_eq!(ruler(AxisScale::Categories(names.clone()), Quantity::Plain, &[0.0, 1.0], true).1, names);
    }

    #[test]
    fn any_range_has_a_handful_of_ticks() {
        for low in [-1e12, -3.0, 0.0, 1e-9, 0.07, 3.0, 999.5, 1e9] {
            for width in [1e-6, 0.3, 1.0, 17.0, 1e4, 1e13] {
                for quantity in [Quantity::Time, Quantity::Bytes, Quantity::Share, Quantity::Plain] {
                    let n = ruler(AxisScale::Linear, quantity, &[low, low + width], false).1.len();
                    assert!((2..=14).contains(&n), "{low} {width} {quantity:?}: {n}");
                }
            }
        }
    }
}
