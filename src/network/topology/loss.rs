//! Shares of packets that a link loses, as integers and as files have them.
//!
//! Layer: topology. Which packets get lost, the engine decides.

/// One share: all packets, in units of 2^-32.
const ALL: f64 = 4_294_967_296.0;

/// A share of packets in units of 2^-32; `None`: it is less than the least that is simulated, or all packets.
pub fn loss_q32(share: f64) -> Option<u32> {
    if !(0.0..1.0).contains(&share) {
        return None;
    }
    match (share * ALL).round() as u64 {
        0 => None,
        units => Some(units.min(u64::from(u32::MAX)) as u32),
    }
}

/// The shortest decimal number that [`loss_q32`] reads as this share. PRECONDITION: it is not 0.
pub(crate) fn loss_text(share_q32: u32) -> String {
    let share = f64::from(share_q32) / ALL;
    let shorter = (0..17).map(|digits| format!("{share:.digits$e}"));
    let reads = |text: &String| text.parse().ok().and_then(loss_q32) == Some(share_q32);
    let found = shorter.into_iter().find(reads).and_then(|text| text.parse::<f64>().ok());
    found.unwrap_or(share).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_written_as_they_were_read() {
        for text in ["0.001", "0.01", "0.25", "0.5", "0.000001", "0.123456", "0.00000001"] {
            let share = loss_q32(text.parse().expect("a number")).expect("within range");
            assert_eq!(loss_text(share), text);
        }
        for share in [1, 2, 12_345_678, u32::MAX] {
            assert_eq!(loss_q32(loss_text(share).parse().expect("a number")), Some(share));
        }
        assert_eq!(loss_q32(0.25), Some(1 << 30));
        for none in [0.0, 1e-10, 1.0, 2.0, -0.5, f64::NAN] {
            assert_eq!(loss_q32(none), None, "{none}");
        }
    }
}
