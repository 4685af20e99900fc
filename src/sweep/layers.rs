//! The layers of an experiment's values: defaults, a configuration file, `[base]`, a point of the axes.
//!
//! Layer: sweep. Resolves a point when asked for; checks nothing.

use std::collections::HashMap;
use std::sync::Arc;

use super::sample::SamplingDesign;
use crate::spec::{KeyId, Value, Values, key};

/// What all experiments share, and how one point is laid over it.
#[derive(Clone)]
pub(super) struct Layers {
    pub axes: Vec<KeyId>,
    pub design: Arc<SamplingDesign>,
    pub base: Vec<(KeyId, Value)>,
    /// Defaults, configuration file and `[base]` together, for each configuration file ("" for none).
    pub flats: HashMap<Arc<str>, Values>,
}

impl Layers {
    /// The configuration file of a point; empty for none.
    pub(super) fn config_file<'a>(&'a self, overlay: &'a [(KeyId, Value)]) -> &'a str {
        let last = |list: &'a [(KeyId, Value)]| list.iter().rev().find(|(k, _)| *k == KeyId::TransportConfig);
        match last(overlay).or_else(|| last(&self.base)) {
            Some((_, Value::Text(path))) => path,
            _ => "",
        }
    }

    /// The axis values of a point that are set there.
    pub(super) fn overlay(&self, point: u64, out: &mut Vec<(KeyId, Value)>) {
        out.clear();
        for (i, k) in self.axes.iter().enumerate() {
            match self.design.value(point, i) {
                Value::Unset => {}
                value => out.push((*k, value.clone())),
            }
        }
    }

    /// All keys of a point, resolved.
    /// PRECONDITION: the point's configuration file was read, which expansion did for every point.
    pub(super) fn values(&self, point: u64) -> Values {
        self.values_with(point, &[])
    }

    /// The same with changes laid over them.
    pub(super) fn values_with(&self, point: u64, changes: &[(KeyId, Value)]) -> Values {
        let mut overlay = Vec::with_capacity(self.axes.len() + changes.len());
        self.overlay(point, &mut overlay);
        let flat =
            self.flats.get(self.config_file(&overlay)).expect("expansion read the configuration file of every point");
        let mut values = flat.clone();
        for (k, v) in overlay.into_iter().chain(changes.iter().cloned()) {
            values.set(k, v);
        }
        values.derive();
        values
    }

    /// The axis values of a point, as `key = value, ...`.
    pub(super) fn axes_text(&self, point: u64) -> String {
        let cell = |(i, k): (usize, &KeyId)| match self.design.value(point, i) {
            Value::Unset => None,
            v => Some(format!("{} = {}", key(*k).name, v.to_toml())),
        };
        self.axes.iter().enumerate().filter_map(cell).collect::<Vec<_>>().join(", ")
    }
}
