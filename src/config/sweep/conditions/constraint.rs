//! Constraints: conditions over dotted keys that experiments must meet.
//!
//! Layer: sweep. [`super::condition`] parses and evaluates conditions; here their names are keys.

use std::sync::Arc;

use super::condition::{Condition, ConditionNames, Val};
use crate::spec::{KeyPath, Value, Values};
use crate::sweep::file::key_names::{UnknownName, declared};

impl<'a> From<&'a Value> for Val<'a> {
    fn from(v: &'a Value) -> Val<'a> {
        match v {
            Value::Unset => Val::Nothing,
            Value::Int(i) => Val::Int(*i),
            Value::Float(x) => Val::Float(*x),
            Value::Bool(b) => Val::Bool(*b),
            Value::Choice(s) => Val::Text(s),
            Value::Text(s) => Val::Text(s),
            Value::Registered(policy) => Val::Text(policy.name()),
        }
    }
}

/// The names that a constraint may use: all keys, including those of these jobs.
struct Keys<'a>(&'a [Arc<str>]);

impl ConditionNames for Keys<'_> {
    fn knows(&self, name: &str) -> bool {
        declared(name, self.0).is_ok()
    }

    fn unknown(&self, name: &str) -> String {
        match declared(name, self.0) {
            Err(UnknownName::Later(instead)) => format!("`{name}` is not available in this version; {instead}"),
            Err(UnknownName::Hint(hint)) => format!("unknown key `{name}`; {hint}"),
            Ok(_) => String::new(),
        }
    }

    fn example(&self) -> &'static str {
        "cluster.gpus >= 16 && transport.cc == \"hpcc\""
    }
}

/// A condition over keys.
pub(in crate::sweep) struct Constraint {
    condition: Condition,
    /// The keys that the names of the condition stand for.
    keys: Vec<KeyPath>,
}

impl Constraint {
    /// Parses a condition. The error says what is wrong with it.
    pub(in crate::sweep) fn parse(text: &str, jobs: &[Arc<str>]) -> Result<Constraint, String> {
        let condition = Condition::parse(text, &Keys(jobs))?;
        let path = |n: &String| declared(n, jobs).ok().map(|known| known.path);
        let keys =
            condition.names().iter().map(path).collect::<Option<_>>().expect("a parsed condition knows its names");
        Ok(Constraint { condition, keys })
    }

    /// Whether the experiment meets the condition.
    pub(in crate::sweep) fn holds<'v>(&'v self, values: &'v Values) -> Result<bool, String> {
        self.condition.holds(|name| Val::from(values.at(self.keys[name])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::KeyId;

    fn holds(text: &str) -> Result<bool, String> {
        let mut v =
            Values::layered(&[&[(KeyId::WorkloadKind, Value::Choice("traffic")), (KeyId::Gpus, Value::Int(64))]]);
        v.derive();
        Constraint::parse(text, &[])?.holds(&v)
    }

    #[test]
    fn precedence_is_rusts() {
        assert_eq!(holds("1 + 2 * 3 == 7 && 8 / 2 * 2 == 8 && 7 - 3 - 2 == 2"), Ok(true));
        assert_eq!(holds("false && false || true"), Ok(true));
        assert_eq!(holds("2 * 3 % 4 == 2 && -1 < 0 && !(1 > 2)"), Ok(true));
        assert_eq!(holds("7 / 2 == 3.5 && 1e3 == 1_000"), Ok(true));
    }

    #[test]
    fn what_is_compiled_once_is_evaluated_without_allocating() {
        let mut v = Values::layered(&[&[(KeyId::WorkloadKind, Value::Choice("traffic"))]]);
        v.derive();
        let text = "topology.kind == \"clos\" || transport.cc == transport.cc && cluster.gpus * 2 + 1 > -3 && !(1 > 2)";
        let constraint = Constraint::parse(text, &[]).unwrap();
        let (holds, took) = hyperfold_base::budget::measured(|| constraint.holds(&v));
        assert_eq!((holds, took.peak), (Ok(true), 0));
    }

    #[test]
    fn keys_and_texts_compare() {
        assert_eq!(holds("topology.kind == \"rail-optimized\" && transport.cc != \"none\""), Ok(true));
        assert_eq!(holds("cluster.gpus-1 == 63 && cluster.gpus % cluster.gpus_per_server == 0"), Ok(true));
        assert_eq!(holds("transport.pfc"), Ok(true));
        assert_eq!(holds("topology.link_gbps >= 400.0"), Ok(true));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("topology.knid == 1", "did you mean `topology.kind`"),
            ("cluster.gpus", "true or false"),
            ("topology.kind < 3", "does not go with a text and a number"),
            ("cluster.gpus == ", "not a condition"),
            ("cluster.gpus 3", "operator is missing"),
            ("(cluster.gpus == 3", "no `)`"),
            ("topology.path == \"a\"", "a key without"),
            ("9223372036854775807 + 1 > 0", "64 bits"),
            ("1 / 0 == 1", "no value"),
            ("routing.flowlet == 1", "not available in this version"),
            ("transport.cc = \"hpcc\"", "not understood"),
            ("topology.path == \"\"", "a key without a value"),
        ] {
            let e = holds(text).expect_err(text);
            assert!(e.contains(part), "{text}: {e}");
        }
    }
}
