//! The keys of sweep files as constants, each with the type of its values, for sweeps made in code.
//!
//! Layer: above `spec`, whose table declares each key once. A value of a wrong type does not compile; its range is checked when the sweep is built. Numbers are
//! in the unit that ends the key's name: `topology.link_gbps` in Gb/s.
//!
//! ```
//! use hyperfold_config::keys::{self, Cc, SweepKey};
//!
//! assert_eq!(keys::TRANSPORT_CC.name(), "transport.cc");
//! assert_eq!(SweepKey::value(&keys::TRANSPORT_CC, Cc::Dcqcn).as_str(), Some("dcqcn"));
//! assert_eq!(SweepKey::value(&keys::TOPOLOGY_LINK_GBPS, 400).as_float(), Some(400.0));
//! ```
//!
//! A text is no value of a key with fixed words:
//!
//! ```compile_fail,E0277
//! use hyperfold_config::keys::{self, SweepKey};
//!
//! SweepKey::value(&keys::TRANSPORT_CC, "dcqcn");
//! ```
//!
//! Words of one key are no values of another, and a fraction is no whole number:
//!
//! ```compile_fail,E0277
//! use hyperfold_config::keys::{self, Cc, SweepKey};
//!
//! SweepKey::value(&keys::TOPOLOGY_KIND, Cc::Dcqcn);
//! ```
//!
//! ```compile_fail,E0277
//! use hyperfold_config::keys::{self, SweepKey};
//!
//! SweepKey::value(&keys::CLUSTER_GPUS, 1.5);
//! ```

use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use hyperfold_base::{for_each_failure_model, for_each_placement, for_each_routing_policy, for_each_scheduler, words};
use hyperfold_key_macro::typed_keys;

use crate::spec::for_each_key;

/// A key of sweep files whose values have the type `T`.
pub struct TypedKey<T> {
    name: &'static str,
    values: PhantomData<fn() -> T>,
}

impl<T> TypedKey<T> {
    const fn new(name: &'static str) -> TypedKey<T> {
        TypedKey { name, values: PhantomData }
    }

    /// Returns the dotted name, as sweep files write it.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl<T> Clone for TypedKey<T> {
    fn clone(&self) -> TypedKey<T> {
        *self
    }
}

impl<T> Copy for TypedKey<T> {}

impl<T> fmt::Debug for TypedKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The type of keys with whole numbers.
#[derive(Debug)]
pub enum WholeNumber {}

/// The type of keys with numbers, in the unit that ends the key's name.
#[derive(Debug)]
pub enum Number {}

/// The type of keys that are true or false.
#[derive(Debug)]
pub enum TrueOrFalse {}

/// The type of keys with a text, or with a name that assets or registered policies add to.
#[derive(Debug)]
pub enum Text {}

/// The type of keys with the path of a file, relative to the sweep's folder.
#[derive(Debug)]
pub enum FilePath {}

/// The type of keys with a name, the path of a `.toml` file, or a table.
#[derive(Debug)]
pub enum NameOrTable {}

/// A value that a key of type `T` takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no value of a key of type `{T}`",
    note = "the constants in `hyperfold::keys` say which type each key has"
)]
pub trait KeyValue<T> {
    /// Returns the value as a sweep file writes it.
    fn into_toml(self) -> toml::Value;
}

macro_rules! values {
    ($key:ident: $($value:ty => |$x:ident| $made:expr),* $(,)?) => {
        $(impl KeyValue<$key> for $value {
            fn into_toml(self) -> toml::Value {
                let $x = self;
                $made
            }
        })*
    };
}

values!(WholeNumber: i32 => |x| x.into(), u8 => |x| x.into(), u32 => |x| x.into(), i64 => |x| x.into(), u64 => |x| whole(x), usize => |x| whole(x as u64));
values!(Number: f64 => |x| x.into(), f32 => |x| f64::from(x).into(), i32 => |x| f64::from(x).into(), u32 => |x| f64::from(x).into());
values!(TrueOrFalse: bool => |x| x.into());
values!(Text: &str => |x| x.into(), String => |x| x.into(), &String => |x| x.as_str().into());
values!(FilePath: &str => |x| x.into(), String => |x| x.into(), &String => |x| x.as_str().into(), &Path => |x| path(x), PathBuf => |x| path(&x), &PathBuf => |x| path(x));
values!(NameOrTable: &str => |x| x.into(), String => |x| x.into(), &String => |x| x.as_str().into(), toml::Table => |x| x.into());

/// A whole number as TOML. One that TOML does not have becomes a text, which every key with whole numbers refuses.
fn whole(x: u64) -> toml::Value {
    i64::try_from(x).map_or_else(|_| x.to_string().into(), toml::Value::from)
}

fn path(path: &Path) -> toml::Value {
    path.to_string_lossy().into_owned().into()
}

/// What names a key of a sweep made in code, for values of type `V`: a constant of this module, or a dotted name as text.
pub trait SweepKey<V> {
    /// Returns the dotted name.
    fn name(&self) -> String;

    /// Returns a value of the key as a sweep file writes it.
    fn value(&self, value: V) -> toml::Value;
}

impl<T, V: KeyValue<T>> SweepKey<V> for TypedKey<T> {
    fn name(&self) -> String {
        self.name.to_string()
    }

    fn value(&self, value: V) -> toml::Value {
        value.into_toml()
    }
}

macro_rules! text_keys {
    ($($name:ty),*) => {
        $(impl<V: Into<toml::Value>> SweepKey<V> for $name {
            fn name(&self) -> String {
                self.to_string()
            }

            fn value(&self, value: V) -> toml::Value {
                value.into()
            }
        })*
    };
}
text_keys!(&str, String, &String);

for_each_key!(typed_keys);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{KEYS, KeyKind};

    #[test]
    fn every_key_of_base_has_a_constant_of_its_type() {
        let base: Vec<_> = KEYS.iter().filter(|key| !key.name.starts_with("job.")).collect();
        assert_eq!(base.len(), TYPES.len());
        for (key, (name, typed)) in base.into_iter().zip(TYPES) {
            assert_eq!(key.name, *name);
            let words = format!("{:?}", key.id);
            let expected: &[&str] = match key.kind {
                KeyKind::Int { .. } => &["WholeNumber"],
                KeyKind::Float { .. } => &["Number"],
                KeyKind::Bool => &["TrueOrFalse"],
                KeyKind::Text | KeyKind::TextOrList => &["Text"],
                KeyKind::Path | KeyKind::Files => &["FilePath"],
                KeyKind::Named => &["NameOrTable"],
                KeyKind::Choice { .. } => &["Text", &words],
            };
            assert!(expected.contains(typed), "{name} has values of type {typed}");
        }
    }

    #[test]
    fn words_are_those_of_the_table() {
        fn check(name: &str, all: &[&str]) {
            let KeyKind::Choice { now, .. } = crate::spec::find(name).unwrap().kind else { panic!("{name}") };
            assert_eq!(all, now, "{name}");
        }
        check("transport.cc", &Cc::ALL.iter().map(|word| word.word()).collect::<Vec<_>>());
        check("workload.schedule", &Schedule::ALL.iter().map(|word| word.word()).collect::<Vec<_>>());
        check("jobs.grow", &[JobsGrow::Never.word(), JobsGrow::Checkpoint.word(), JobsGrow::AtOnce.word()]);
    }

    #[test]
    fn a_number_that_toml_lacks_is_refused() {
        let key = crate::spec::find("workload.bytes").unwrap();
        let read = |x: u64| {
            let text = SweepKey::value(&WORKLOAD_BYTES, x).to_string();
            key.read(toml::de::DeValue::parse(&text).unwrap().get_ref())
        };
        assert!(read(1 << 20).is_ok());
        assert!(read(u64::MAX).unwrap_err().contains("whole number"));
    }
}
