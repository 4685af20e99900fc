//! Policies that a program registers: values of a key beside its built-in ones, each with a name, a version and code.
//!
//! Layer: spec. Names and versions are part of an experiment's identity. The code is opaque here; the crate that calls it knows its trait.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::key_id::KeyId;

/// Keys whose values a program may register.
pub const REGISTRABLE: [KeyId; 4] =
    [KeyId::SchedulerPolicy, KeyId::SchedulerPlacement, KeyId::FailuresModel, KeyId::Policy];
/// Maximum size of a name or a version in bytes.
const MAX_BYTES: usize = 64;

/// A policy that a program registered. Two are equal if key, name and version are.
#[derive(Clone)]
pub struct RegisteredPolicy(Arc<Registration>);

struct Registration {
    key: KeyId,
    name: Box<str>,
    version: Box<str>,
    code: Box<dyn Any + Send + Sync>,
}

impl RegisteredPolicy {
    /// Returns the name, as sweeps write it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the version that its author gave.
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// Returns the code as the type with which it was registered.
    pub fn code<T: 'static>(&self) -> Option<&T> {
        self.0.code.downcast_ref()
    }

    /// Returns key, name and version for messages: `scheduler.policy = "largest" (registered, version 1)`.
    pub fn in_words(&self) -> String {
        format!("{} = \"{}\" (registered, version {})", self.0.key.name(), self.0.name, self.0.version)
    }

    /// Returns key, name and version as a line of a resolved sweep: `scheduler.policy.largest = registered, version 1`.
    pub(crate) fn identity_line(&self) -> String {
        format!("{}.{} = registered, version {}", self.0.key.name(), self.0.name, self.0.version)
    }
}

impl PartialEq for RegisteredPolicy {
    fn eq(&self, other: &RegisteredPolicy) -> bool {
        let parts = |policy: &RegisteredPolicy| (policy.0.key, policy.0.name.clone(), policy.0.version.clone());
        Arc::ptr_eq(&self.0, &other.0) || parts(self) == parts(other)
    }
}

impl Eq for RegisteredPolicy {}

impl fmt::Debug for RegisteredPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words())
    }
}

/// The policies that a program has registered.
#[derive(Clone, Debug, Default)]
pub struct PolicyRegistry(Vec<RegisteredPolicy>);

impl PolicyRegistry {
    /// A registry without policies: that of the command line.
    pub const EMPTY: &'static PolicyRegistry = &PolicyRegistry(Vec::new());

    /// Adds a policy as a value of a key, whose built-in values are given too.
    ///
    /// # Errors
    /// The name or the version is not allowed, or the name is taken. The text says what would be right.
    pub(super) fn add(
        &mut self,
        key: KeyId,
        built_in: impl IntoIterator<Item = &'static str>,
        (name, version): (&str, &str),
        code: Box<dyn Any + Send + Sync>,
    ) -> Result<(), String> {
        let fail = |why: String| Err(format!("{} \"{}\": {why}", key.name(), name.escape_debug()));
        let in_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(in_name);
        if !is_name || name.len() > MAX_BYTES {
            return fail(format!(
                "a name begins with a lower-case letter and has letters a-z, digits, -, _ and ., at most {MAX_BYTES}"
            ));
        }
        let is_version = !version.is_empty() && version.chars().all(|c| c.is_ascii_graphic());
        if !is_version || version.len() > MAX_BYTES {
            return fail(format!(
                "its version is \"{}\"; it must have 1 to {MAX_BYTES} visible ASCII characters without spaces",
                version.escape_debug()
            ));
        }
        if built_in.into_iter().any(|own| own == name) {
            return fail("this is a name of Hyperfold's own; choose another".into());
        }
        if self.find(key, name).is_some() {
            return fail("this name is registered already; choose another".into());
        }
        self.0.push(RegisteredPolicy(Arc::new(Registration { key, name: name.into(), version: version.into(), code })));
        Ok(())
    }

    /// Returns the policy with this name, as a value of a key.
    pub(super) fn find(&self, key: KeyId, name: &str) -> Option<&RegisteredPolicy> {
        self.0.iter().find(|policy| policy.0.key == key && *policy.0.name == *name)
    }

    /// Returns the names that are registered for a key, in the order in which they were added.
    pub(super) fn names(&self, key: KeyId) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |policy| policy.0.key == key).map(RegisteredPolicy::name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::lookup::key;
    use super::*;
    use toml::de::DeValue;

    fn add(registry: &mut PolicyRegistry, name: &str, version: &str) -> Result<(), String> {
        key(KeyId::SchedulerPolicy).register(registry, (name, version), Box::new(()))
    }

    #[test]
    fn names_are_new_and_plain() {
        let mut registry = PolicyRegistry::default();
        assert_eq!(add(&mut registry, "largest", "1"), Ok(()));
        for (name, version, part) in [
            ("backfill", "1", "Hyperfold's own"),
            ("largest", "2", "registered already"),
            ("", "1", "lower-case letter"),
            ("Largest", "1", "lower-case letter"),
            ("a b", "1", "lower-case letter"),
            ("mine", "", "its version"),
            ("mine", "1 2", "its version"),
            ("mine", "1\n", "its version"),
        ] {
            let why = add(&mut registry, name, version).expect_err(name);
            assert!(why.contains(part) && why.starts_with("scheduler.policy"), "{name} {version}: {why}");
        }
        // Another key has names of its own.
        assert_eq!(key(KeyId::FailuresModel).register(&mut registry, ("largest", "1"), Box::new(())), Ok(()));
    }

    #[test]
    fn a_wrong_name_leads_to_the_registered_ones() {
        let mut registry = PolicyRegistry::default();
        add(&mut registry, "largest", "1").unwrap();
        let read = |registry: &PolicyRegistry, name: &'static str| {
            key(KeyId::SchedulerPolicy).read_with(&DeValue::String(name.into()), registry)
        };
        let value = read(&registry, "largest").unwrap();
        assert_eq!((value.to_string(), value.to_toml()), ("largest".into(), "\"largest\"".into()));
        let why = read(&registry, "largset").unwrap_err();
        assert!(why.contains("did you mean \"largest\"") && why.contains("\"priority\", \"largest\""), "{why}");
        let why = read(PolicyRegistry::EMPTY, "largest").unwrap_err();
        assert!(why.contains("a program that registers it"), "{why}");
    }
}
