//! Ticks of an axis with their texts, and the mapping from values to positions between 0 and 1.
//!
//! Layer: plot. Logarithms are those of libm, the same on every machine.

use super::figure::{AxisScale, FigureAxis};
use super::quantity::{Quantity, digits};

/// Wanted number of ticks of an axis.
const WANTED: f64 = 6.0;
/// Largest number of distinct values that all get a tick of their own.
const ALL_UP_TO: usize = 9;

/// An axis with its range and its ticks.
#[derive(Clone, Debug)]
pub(super) struct Ruler {
    /// Positions between 0 and 1, with their texts.
    pub(super) ticks: Vec<(f64, String)>,
    /// Label of the axis, with the unit of its numbers.
    pub(super) label: String,
    low: f64,
    high: f64,
    log: bool,
}

impl Ruler {
    /// Makes the axis for these values, which are finite, and above 0 if the scale is logarithmic. With `at_values`, each value gets a tick if there are few
    /// distinct ones.
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
        let (positions, texts, unit): (Vec<f64>, Vec<String>, &str) = if at_values && distinct.len() <= ALL_UP_TO {
            let texts = distinct.iter().map(|v| axis.quantity.text(*v)).collect();
            // The range is widened so that marks at the ends are not on the frame.
            if log {
                let pad = libm::pow(high / low, 0.06).max(1.1);
                (low, high) = (low / pad, high * pad);
            } else {
                let pad = if high > low { (high - low) * 0.06 } else { 0.5 * high.abs().max(1.0) };
                (low, high) = (low - pad, high + pad);
            }
            (distinct, texts, "")
        } else if log {
            let positions = log_ticks(&mut low, &mut high, axis.quantity);
            let texts = positions.iter().map(|v| axis.quantity.text(*v)).collect();
            (positions, texts, "")
        } else {
            linear_ticks(&mut low, &mut high, axis.quantity)
        };
        let label = if unit.is_empty() { axis.label.clone() } else { format!("{} ({unit})", axis.label) };
        let mut ruler = Ruler { ticks: Vec::new(), label, low, high, log };
        ruler.ticks = positions.iter().zip(texts).map(|(v, text)| (ruler.place(*v), text)).collect();
        ruler
    }

    /// Position of a value: 0 at the beginning of the axis, 1 at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        if self.log {
            (libm::log10(value) - libm::log10(self.low)) / (libm::log10(self.high) - libm::log10(self.low))
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

/// Ticks at multiples of 1, 2 or 5 times a power of ten; for bytes, of a power of two. The range grows to the ticks around it.
fn linear_ticks(low: &mut f64, high: &mut f64, quantity: Quantity) -> (Vec<f64>, Vec<String>, &'static str) {
    // The axis begins at 0, unless the range is narrow compared with its distance from 0.
    if *low >= 0.0 && *low < 0.5 * *high {
        *low = 0.0;
    }
    if *low == *high {
        let half_width = if *low == 0.0 { 1.0 } else { 0.1 * low.abs() };
        (*low, *high) = (*low - half_width, *high + half_width);
    }
    let (unit, name) = quantity.unit(high.abs().max(low.abs()));
    let step = match quantity {
        Quantity::Bytes => libm::exp2(libm::ceil(libm::log2(((*high - *low) / WANTED).max(1.0)))),
        _ => unit * nice((*high - *low) / unit / WANTED),
    };
    let (first, last) = (libm::floor(*low / step + 1e-9), libm::ceil(*high / step - 1e-9));
    (*low, *high) = (first * step, last * step);
    let values: Vec<f64> = (0..=(last - first) as u64).map(|i| (first + i as f64) * step).collect();
    let texts = match quantity {
        Quantity::Bytes => values.iter().map(|v| quantity.text(*v)).collect(),
        Quantity::Plain if high.abs().max(low.abs()) >= 1e4 => values.iter().map(|v| quantity.text(*v)).collect(),
        _ => values.iter().map(|v| decimal(*v / unit, step / unit)).collect(),
    };
    (values, texts, name)
}

/// A multiple of a step, with as many decimals as the step needs.
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

/// The smallest number that is 1, 2 or 5 times a power of ten and at least `x`.
fn nice(x: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(x)));
    let lead = x / power;
    power * [1.0, 2.0, 5.0].into_iter().find(|n| lead <= n + 1e-9).unwrap_or(10.0)
}

/// Ticks at powers of ten, or of two for bytes. If there are few, 2 and 5 times a power of ten are added. The range grows to the ticks around it.
fn log_ticks(low: &mut f64, high: &mut f64, quantity: Quantity) -> Vec<f64> {
    let (base, log): (f64, fn(f64) -> f64) =
        if quantity == Quantity::Bytes { (2.0, libm::log2) } else { (10.0, libm::log10) };
    let decades = log(*high / *low);
    let (mut values, between): (Vec<f64>, &[f64]) =
        (Vec::new(), if base == 10.0 && decades < 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] });
    let (first, last) = (libm::floor(log(*low)) as i64, libm::ceil(log(*high)) as i64);
    let every = ((last - first) as f64 / (WANTED + 2.0)).ceil().max(1.0) as i64;
    let mut power = first;
    loop {
        values.extend(between.iter().map(|m| m * libm::pow(base, power as f64)));
        if power >= last {
            break;
        }
        power += every;
    }
    let first_idx = values.iter().rposition(|v| *v <= *low * (1.0 + 1e-12)).unwrap_or(0);
    let last_idx = values
        .iter()
        .position(|v| *v >= *high * (1.0 - 1e-12))
        .unwrap_or(values.len() - 1)
        .max((first_idx + 1).min(values.len() - 1));
    values = values[first_idx..=last_idx].to_vec();
    if values.len() < 2 {
        values.push(values[0] * base);
    }
    (*low, *high) = (values[0], values[values.len() - 1]);
    values
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
