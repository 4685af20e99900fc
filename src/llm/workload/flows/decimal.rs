//! Decimal numbers read exactly, so that a start time is the same picosecond on every machine.
//!
//! Layer: workload. No floats.

/// `text * 10^shift` as a whole number, rounded half up, for text like `2`, `0.25`, `1.5e-3`. The result is `None` if the text is
/// not a number, is negative, or needs more than 64 bits.
pub(in crate::workload) fn scaled(text: &str, shift: i32) -> Option<u64> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(e_idx) => (&text[..e_idx], text[e_idx + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let mantissa = mantissa.strip_prefix('+').unwrap_or(mantissa);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || whole.len() + fraction.len() > 36 {
        return None;
    }
    let mut value: u128 = 0;
    for b in whole.bytes().chain(fraction.bytes()) {
        if !b.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u128::from(b - b'0');
    }
    if value == 0 {
        return Some(0);
    }
    let power = exponent.checked_add(shift)?.checked_sub(fraction.len() as i32)?;
    if power >= 0 {
        value = value.checked_mul(10u128.checked_pow(power as u32)?)?;
    } else {
        match 10u128.checked_pow(power.unsigned_abs()) {
            Some(d) => value = value / d + u128::from(value % d >= d - d / 2),
            None => value = 0,
        }
    }
    u64::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(scaled("2", 12), Some(2_000_000_000_000));
        assert_eq!(scaled("2.000000001", 12), Some(2_000_000_001_000));
        assert_eq!(scaled("1.5e-3", 12), Some(1_500_000_000));
        assert_eq!(scaled("0.5", 0), Some(1));
        assert_eq!(scaled(".49", 0), Some(0));
        assert_eq!(scaled("1e-400", 12), Some(0));
        assert_eq!(scaled("0e99999", 12), Some(0));
        for bad in ["", ".", "-1", "1.2.3", "nan", "inf", "1e", "1e99", "0x10", "99999999999999999999"] {
            assert_eq!(scaled(bad, 12), None, "{bad}");
        }
    }
}
