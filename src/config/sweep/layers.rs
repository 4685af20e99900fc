//! The layers of an experiment's values: defaults, a configuration file, `[base]`, and a point of the axes.
//!
//! Layer: sweep. Resolves a point when it is needed, and checks nothing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::sample::SamplingDesign;
use crate::spec::{KeyId, KeyPath, Value, Values};

/// The values that all experiments share, and how one point is laid over them.
#[derive(Clone)]
pub(super) struct Layers {
    pub axes: Vec<KeyPath>,
    pub design: Arc<SamplingDesign>,
    pub base: Vec<(KeyId, Value)>,
    /// Names of the jobs. `job_keys` holds the keys in their tables.
    pub jobs: Vec<Arc<str>>,
    pub job_keys: Vec<Vec<(KeyId, Value)>>,
    /// Defaults, configuration file and `[base]` combined, for each configuration file ("" for none).
    pub flats: HashMap<Arc<str>, Values>,
}

impl Layers {
    /// Returns the configuration file of a point. It is empty if there is none.
    pub(super) fn config_file<'a>(&'a self, overlay: &'a [(KeyPath, Value)]) -> &'a str {
        let axis_value = overlay.iter().rev().find(|(k, _)| *k == KeyId::TransportConfig.into()).map(|(_, v)| v);
        let base_value = || self.base.iter().rev().find(|(k, _)| *k == KeyId::TransportConfig).map(|(_, v)| v);
        match axis_value.or_else(base_value) {
            Some(Value::Text(path)) => path,
            _ => "",
        }
    }

    /// Whether `[base]` or an axis gives a key.
    pub(super) fn names_key(&self, key: KeyId) -> bool {
        self.base.iter().any(|(given, _)| *given == key) || self.axes.contains(&key.into())
    }

    /// Combines the defaults, the values of a configuration file, `[base]` and the tables of jobs.
    pub(super) fn flat(&self, file_values: &[(KeyId, Value)]) -> Values {
        let mut flat = Values::layered(&[file_values, &self.base]);
        for (name, keys) in self.jobs.iter().zip(&self.job_keys) {
            flat.add_job(Arc::clone(name), keys.clone());
        }
        flat
    }

    /// Returns the dotted name of an axis, given its number.
    pub(super) fn name(&self, axis: usize) -> Cow<'static, str> {
        self.axes[axis].name(&self.jobs)
    }

    /// Collects the axis values that are set at a point.
    pub(super) fn overlay(&self, point: u64, out: &mut Vec<(KeyPath, Value)>) {
        out.clear();
        for (i, k) in self.axes.iter().enumerate() {
            match self.design.value(point, i) {
                Value::Unset => {}
                value => out.push((*k, value.clone())),
            }
        }
    }

    /// Returns the resolved values of all keys at a point.
    /// PRECONDITION: expansion has read the point's configuration file, as it does for every point.
    pub(super) fn values(&self, point: u64) -> Values {
        self.values_with(point, &[])
    }

    /// Returns the same, with changes laid over it.
    pub(super) fn values_with(&self, point: u64, changes: &[(KeyId, Value)]) -> Values {
        let mut overlay = Vec::with_capacity(self.axes.len() + changes.len());
        self.overlay(point, &mut overlay);
        let flat =
            self.flats.get(self.config_file(&overlay)).expect("expansion read the configuration file of every point");
        let mut values = flat.clone();
        let changes = changes.iter().map(|(k, v)| ((*k).into(), v.clone()));
        for (k, v) in overlay.into_iter().chain(changes) {
            values.set_at(k, v);
        }
        values.derive();
        values
    }

    /// Returns the axis values of a point, as `key = value, ...`.
    pub(super) fn axes_text(&self, point: u64) -> String {
        let cell = |i: usize| match self.design.value(point, i) {
            Value::Unset => None,
            v => Some(format!("{} = {}", self.name(i), v.to_toml())),
        };
        (0..self.axes.len()).filter_map(cell).collect::<Vec<_>>().join(", ")
    }
}
