//! A value of somebody else's JSON whose type differs between versions: a number, a text, or a list that is kept as text.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Most characters of a list that are kept.
const MAX_LIST_CHARS: usize = 1 << 16;

/// A number, a text, or a list as text, such as `[0,1]`. Any other JSON value becomes `Nothing`, so that a value in memory is not larger than its text.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum JsonScalar {
    /// No value, or one that is neither a number nor a text nor a list.
    #[default]
    Nothing,
    /// A number of at least 0 without fraction.
    Whole(u64),
    /// Any other number.
    Number(f64),
    /// A text, or a list as text.
    Text(Box<str>),
}

impl JsonScalar {
    /// The text; `None`: it is none.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            JsonScalar::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number of at least 0 without fraction that is written as a number.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            JsonScalar::Whole(n) => Some(*n),
            _ => None,
        }
    }

    /// A number of at least 0 without fraction, written as a number or as text.
    pub fn whole(&self) -> Option<u64> {
        match self {
            JsonScalar::Whole(n) => Some(*n),
            JsonScalar::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// A finite number, written as a number or as text.
    pub fn number(&self) -> Option<f64> {
        let found = match self {
            JsonScalar::Whole(n) => Some(*n as f64),
            JsonScalar::Number(x) => Some(*x),
            JsonScalar::Text(text) => text.trim().parse().ok(),
            JsonScalar::Nothing => None,
        };
        found.filter(|x: &f64| x.is_finite())
    }

    /// The text or the whole number as text; empty for anything else.
    pub fn text(&self) -> String {
        match self {
            JsonScalar::Text(text) => text.to_string(),
            JsonScalar::Whole(n) => n.to_string(),
            _ => String::new(),
        }
    }
}

impl<'de> Deserialize<'de> for JsonScalar {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<JsonScalar, D::Error> {
        d.deserialize_any(JsonScalarVisitor)
    }
}

struct JsonScalarVisitor;

impl<'de> Visitor<'de> for JsonScalarVisitor {
    type Value = JsonScalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<JsonScalar, E> {
        Ok(JsonScalar::Nothing)
    }

    fn visit_u64<E>(self, value: u64) -> Result<JsonScalar, E> {
        Ok(JsonScalar::Whole(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<JsonScalar, E> {
        Ok(JsonScalar::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<JsonScalar, E> {
        Ok(JsonScalar::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<JsonScalar, E> {
        Ok(JsonScalar::Text(value.into()))
    }

    fn visit_unit<E>(self) -> Result<JsonScalar, E> {
        Ok(JsonScalar::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<JsonScalar, A::Error> {
        let mut text = String::from("[");
        while let Some(item) = seq.next_element::<JsonScalar>()? {
            if text.len() < MAX_LIST_CHARS {
                text.push_str(&item.text());
                text.push(',');
            }
        }
        if text.len() > 1 {
            text.pop();
        }
        text.push(']');
        Ok(JsonScalar::Text(text.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonScalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(JsonScalar::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_type_are_read() {
        let read = |json: &str| serde_json::from_str::<JsonScalar>(json).expect("it is JSON");
        assert_eq!(read("7"), JsonScalar::Whole(7));
        assert_eq!((read("7").whole(), read("\" 7 \"").whole(), read("\"7\"").as_u64()), (Some(7), Some(7), None));
        assert_eq!(
            (read("-7").number(), read("\"1.5\"").number(), read("\"inf\"").number()),
            (Some(-7.0), Some(1.5), None)
        );
        assert_eq!(read("[0, 1, [2]]").as_str(), Some("[0,1,[2]]"));
        assert_eq!(read("[]").text(), "[]");
        for nothing in ["null", "true", "{\"a\": [1]}"] {
            assert_eq!(read(nothing), JsonScalar::Nothing);
        }
        let long = format!("[{}0]", "1000000,".repeat(20_000));
        assert!(read(&long).text().len() < MAX_LIST_CHARS + 10, "a list is cut");
    }
}
