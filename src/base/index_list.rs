//! Lists of numbers as people write and read them: `0-3,8` for GPUs, ranks and experiments.
//!
//! Layer: the lowest. It does not know what the numbers count.

use std::ops::RangeInclusive;

/// A fault in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadIndexList<'a> {
    /// This part is neither a number nor a range of numbers below the limit.
    Part(&'a str),
    /// This number is listed twice.
    Twice(u32),
}

/// Parses one part of a list: a number such as `8`, or a range such as `0-3`. All numbers are below `limit`. `None`: it is neither.
pub fn parse_part(part: &str, limit: u32) -> Option<RangeInclusive<u32>> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse::<u32>().ok()?);
    (first <= last && last < limit).then_some(first..=last)
}

/// Parses a list, given as its parts, in the order written. No number may stand in it twice.
///
/// # Errors
/// A part is no part of a list, or a number stands twice.
pub fn parse_once_each<'a>(parts: impl IntoIterator<Item = &'a str>, limit: u32) -> Result<Vec<u32>, BadIndexList<'a>> {
    let mut list: Vec<u32> = Vec::new();
    for part in parts {
        list.extend(parse_part(part, limit).ok_or(BadIndexList::Part(part))?);
        // So many numbers below the limit have a repeat, which is found below: memory stays bounded.
        if list.len() > limit as usize {
            break;
        }
    }
    let mut sorted = list.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(BadIndexList::Twice(pair[0])),
        None => Ok(list),
    }
}

/// Numbers in the order given, as the parts of a list: each run of consecutive ones is a range.
pub fn ranges(numbers: impl IntoIterator<Item = u64>) -> Vec<String> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    runs.iter().map(|&(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_order_and_written_in_ranges() {
        let list = parse_once_each("8-10, 0,2".split(',').map(str::trim), 20).unwrap();
        assert_eq!(list, [8, 9, 10, 0, 2]);
        assert_eq!(ranges(list.into_iter().map(u64::from)), ["8-10", "0", "2"]);
        assert!(ranges([]).is_empty());
    }

    #[test]
    fn what_is_no_list_is_told() {
        for part in ["3-1", "20", "0-20", "x", "", "1-2-3", "-1"] {
            assert_eq!(parse_once_each([part], 20), Err(BadIndexList::Part(part)), "{part}");
        }
        assert_eq!(parse_once_each(["0-3", "2"], 20), Err(BadIndexList::Twice(2)));
        let endless = std::iter::repeat("0-19");
        assert_eq!(parse_once_each(endless, 20), Err(BadIndexList::Twice(0)), "it ends, however long the list is");
    }
}
