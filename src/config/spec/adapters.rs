//! Network adapters by name: what `cluster.nic` may be, with the defaults of `assets/nics.toml`.
//!
//! Layer: spec.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use toml::de::DeValue;

use super::adapter_names::NICS;
use super::applies_when::ultra_ethernet;
use super::key_id::KeyId;
use super::lookup::key;
use super::value::{Value, Values};

/// What a network adapter does unless the sweep file says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    /// Name, as `cluster.nic` has it.
    #[serde(skip)]
    pub name: &'static str,
    /// Default of `transport.loss_recovery`.
    pub loss_recovery: String,
    /// Default of `routing.policy`.
    pub policy: String,
    /// Default of `transport.cc`.
    pub cc: String,
    /// The publication that says so.
    pub source: String,
}

/// All adapters, in the order of [`NICS`].
pub fn adapters() -> &'static [Adapter] {
    static ADAPTERS: OnceLock<Vec<Adapter>> = OnceLock::new();
    ADAPTERS.get_or_init(|| {
        let mut asset: BTreeMap<String, Adapter> = toml::from_str(include_str!("../../../assets/nics.toml"))
            .expect("the asset is part of the program and a test reads it");
        NICS[1..].iter().filter_map(|name| Some(Adapter { name, ..asset.remove(*name)? })).collect()
    })
}

/// Defaults of the adapter that is named, of keys that are not written. PRECONDITION: before derived defaults.
pub(super) fn adapter_defaults(v: &Values) -> Vec<(KeyId, Value)> {
    let name = v.text(KeyId::Nic);
    let Some(adapter) = adapters().iter().find(|adapter| adapter.name == name) else { return Vec::new() };
    let own =
        [(KeyId::Policy, &adapter.policy), (KeyId::Cc, &adapter.cc), (KeyId::LossRecovery, &adapter.loss_recovery)];
    // Controls of Ultra Ethernet bring their own receivers.
    let brings_receivers = v.given(KeyId::Cc) && ultra_ethernet(v);
    let counts = |id: KeyId| !v.given(id) && (id != KeyId::LossRecovery || !brings_receivers);
    let typed = |text: &str, id: KeyId| key(id).read(&DeValue::String(text.into())).expect("a test reads the asset");
    own.into_iter().filter(|(id, _)| counts(*id)).map(|(id, text)| (id, typed(text, id))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_asset_has_every_choice_and_no_more() {
        let names: Vec<&str> = adapters().iter().map(|adapter| adapter.name).collect();
        assert_eq!(names, NICS[1..]);
        let asset: toml::Table = include_str!("../../../assets/nics.toml").parse().unwrap();
        assert_eq!(asset.len(), names.len());
        let is_value = |id: KeyId, value: &str| key(id).read(&DeValue::String(value.into())).is_ok();
        for adapter in adapters() {
            assert!(is_value(KeyId::LossRecovery, &adapter.loss_recovery), "{adapter:?}");
            assert!(is_value(KeyId::Policy, &adapter.policy), "{adapter:?}");
            assert!(is_value(KeyId::Cc, &adapter.cc), "{adapter:?}");
            assert!(!adapter.source.is_empty());
        }
    }

    #[test]
    fn an_adapter_decides_what_is_not_written() {
        let decided = |written: &[(KeyId, Value)]| {
            let mut v = Values::layered(&[written]);
            v.derive();
            [KeyId::Policy, KeyId::Cc, KeyId::LossRecovery].map(|id| v.text(id).to_string())
        };
        let nic = |name: &'static str| (KeyId::Nic, Value::Choice(name));
        assert_eq!(decided(&[]), ["ecmp", "hpcc", "adapter"]);
        assert_eq!(decided(&[nic("connectx")]), ["ecmp", "dcqcn", "adapter"]);
        assert_eq!(decided(&[nic("efa")]), ["spray", "swift", "selective"]);
        let written = [nic("efa"), (KeyId::Policy, Value::Choice("ecmp")), (KeyId::Cc, Value::Choice("nscc"))];
        assert_eq!(decided(&written), ["ecmp", "nscc", "uec"], "what is written wins");
    }
}
