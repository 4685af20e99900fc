//! Failures and out-of-memory results, grouped by reason.
//!
//! Layer: report. Messages that differ only in numbers count as one reason.

use std::collections::BTreeMap;

use hyperfold_analysis::recommendation::sheet::Sheet;

/// Number of experiments that are listed for a reason.
const NAMED: usize = 5;

/// A reason, and the experiments that failed for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Status: `oom` or `failed`.
    pub status: String,
    /// Number of experiments that failed for it.
    pub count: usize,
    /// The first message, in full.
    pub message: String,
    /// Whether all messages are exactly the same.
    pub same_message: bool,
    /// Ids of the first experiments.
    pub named: Vec<String>,
}

/// All reasons, the most frequent first.
pub fn reasons(sheet: &Sheet) -> Vec<Reason> {
    let mut found: BTreeMap<(&str, String), Reason> = BTreeMap::new();
    for row in (0..sheet.rows()).filter(|&row| !sheet.ok(row)) {
        let (status, message) = (sheet.text("status", row), sheet.text("error", row));
        let fresh = || Reason {
            status: status.into(),
            count: 0,
            message: message.into(),
            same_message: true,
            named: Vec::new(),
        };
        let reason = found.entry((status, without_numbers(message))).or_insert_with(fresh);
        reason.count += 1;
        reason.same_message &= reason.message == message;
        if reason.named.len() < NAMED {
            reason.named.push(sheet.text("exp_id", row).into());
        }
    }
    let mut all: Vec<Reason> = found.into_values().collect();
    all.sort_by_key(|r| std::cmp::Reverse(r.count));
    all
}

fn without_numbers(message: &str) -> String {
    let mut kept = String::new();
    for c in message.chars() {
        if !c.is_ascii_digit() {
            kept.push(c);
        } else if !kept.ends_with('#') {
            kept.push('#');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_differ_in_numbers_are_one_reason() {
        let r = reasons(&Sheet::from_lines(
            "exp_id,seed,a.b,status,error
             0,1,x,ok,
             1,1,x,oom,needs 90 GiB
             2,1,x,failed,flow 3 waits
             3,1,x,failed,flow 12 waits",
        ));
        assert_eq!(r.len(), 2);
        assert_eq!(
            (r[0].count, r[0].message.as_str(), r[0].named.clone()),
            (2, "flow 3 waits", vec!["2".to_string(), "3".into()])
        );
        assert_eq!((r[1].status.as_str(), r[1].count), ("oom", 1));
        assert!(!r[0].same_message && r[1].same_message, "whose numbers the message has is said where they differ");
    }
}
