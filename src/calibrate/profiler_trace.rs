//! The Chrome trace that PyTorch's profiler writes: steps, GPU kernels, and the operations that launched them.
//!
//! Layer: calibrate. Keeps what is asked for of each event and drops the rest while it reads, because traces have gigabytes.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// An event that took time, us.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TraceEvent {
    pub ph: Value,
    pub cat: Value,
    pub name: Value,
    pub ts: Value,
    pub dur: Value,
    pub args: Option<EventArgs>,
}

/// What the profiler notes of kernels and operations. Versions differ in types, so they are looked at when they are needed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventArgs {
    #[serde(rename = "External id")]
    pub external_id: Value,
    #[serde(rename = "Input Dims")]
    pub input_dims: Value,
    #[serde(rename = "Input type")]
    pub input_type: Value,
    #[serde(rename = "Collective name")]
    pub collective: Value,
    #[serde(rename = "In msg nelems")]
    pub in_elements: Value,
    #[serde(rename = "Out msg nelems")]
    pub out_elements: Value,
    #[serde(rename = "Group size")]
    pub group_size: Value,
    pub dtype: Value,
}

impl TraceEvent {
    /// Whether it is complete and took time.
    fn counts(&self) -> bool {
        self.ph.as_str() == Some("X") && self.duration_us() > 0.0
    }

    pub(super) fn category(&self) -> &str {
        self.cat.as_str().unwrap_or("")
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_str().unwrap_or("")
    }

    pub(super) fn start_us(&self) -> f64 {
        number(&self.ts).unwrap_or(0.0)
    }

    pub(super) fn duration_us(&self) -> f64 {
        number(&self.dur).unwrap_or(0.0)
    }

    pub(super) fn is_kernel(&self) -> bool {
        self.category().eq_ignore_ascii_case("kernel")
    }

    pub(super) fn is_operation(&self) -> bool {
        matches!(self.category(), "cpu_op" | "Operator")
    }
}

/// A number, as such or as text.
pub(super) fn number(value: &Value) -> Option<f64> {
    let found = match value {
        Value::String(s) => s.trim().parse().ok(),
        other => other.as_f64(),
    };
    found.filter(|x: &f64| x.is_finite())
}

/// The events of a trace: an object with `traceEvents`, or a list of them.
///
/// # Errors
/// What is no JSON, or has no events; with line and column.
pub(super) fn events(text: &str) -> Result<Vec<TraceEvent>, serde_json::Error> {
    let text = text.trim_start_matches('\u{feff}');
    serde_json::from_str::<Trace>(text).map(|t| t.0)
}

struct Trace(Vec<TraceEvent>);

impl<'de> Deserialize<'de> for Trace {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Trace, D::Error> {
        d.deserialize_any(TraceVisitor)
    }
}

struct TraceVisitor;

impl<'de> Visitor<'de> for TraceVisitor {
    type Value = Trace;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Chrome trace: an object with traceEvents, or a list of events")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Trace, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "traceEvents" => found = Some(map.next_value::<Events>()?.0),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        found.map(Trace).ok_or_else(|| {
            serde::de::Error::custom("there is no `traceEvents`; save the trace with export_chrome_trace")
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Trace, A::Error> {
        EventsVisitor.visit_seq(seq).map(|e| Trace(e.0))
    }
}

struct Events(Vec<TraceEvent>);

impl<'de> Deserialize<'de> for Events {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Events, D::Error> {
        d.deserialize_seq(EventsVisitor)
    }
}

struct EventsVisitor;

impl<'de> Visitor<'de> for EventsVisitor {
    type Value = Events;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Events, A::Error> {
        let mut kept = Vec::new();
        while let Some(event) = seq.next_element::<TraceEvent>()? {
            if event.counts() {
                kept.push(event);
            }
        }
        Ok(Events(kept))
    }
}
