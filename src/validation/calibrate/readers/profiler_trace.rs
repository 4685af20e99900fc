//! Reads the Chrome trace that PyTorch's profiler writes: steps, GPU kernels, and the operations that launched them.
//!
//! Layer: calibrate. It keeps only the needed fields of each event while it reads, because traces can have gigabytes.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use hyperfold_base::budget::{self, MemoryMeter};
use hyperfold_base::json_scalar::JsonScalar;

/// An event with a duration, in us.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TraceEvent {
    pub ph: JsonScalar,
    pub cat: JsonScalar,
    pub name: JsonScalar,
    pub ts: JsonScalar,
    pub dur: JsonScalar,
    pub args: Option<Box<EventArgs>>,
}

/// Arguments that the profiler records for kernels and operations. Their types differ between versions, so they are checked when they are used.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventArgs {
    #[serde(rename = "External id")]
    pub external_id: JsonScalar,
    #[serde(rename = "Input Dims")]
    pub input_dims: Inputs<Inputs<JsonScalar>>,
    #[serde(rename = "Input type")]
    pub input_type: Inputs<JsonScalar>,
    #[serde(rename = "Collective name")]
    pub collective: JsonScalar,
    #[serde(rename = "In msg nelems")]
    pub in_elements: JsonScalar,
    #[serde(rename = "Out msg nelems")]
    pub out_elements: JsonScalar,
    #[serde(rename = "Group size")]
    pub group_size: JsonScalar,
    pub dtype: JsonScalar,
}

/// Number of inputs of an operation, and of dimensions of an input, that are kept. A product has three of each.
const MAX_INPUTS: usize = 4;

/// First values of a list, and whether there are more. Any other JSON value counts as an empty list.
#[derive(Clone, Debug)]
pub(super) struct Inputs<T> {
    first: Vec<T>,
    is_cut: bool,
}

impl<T> Default for Inputs<T> {
    fn default() -> Inputs<T> {
        Inputs { first: Vec::new(), is_cut: false }
    }
}

impl<T> Inputs<T> {
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        self.first.get(index)
    }

    /// All values. `None`: some were not kept.
    pub(super) fn whole(&self) -> Option<&[T]> {
        (!self.is_cut).then_some(&self.first)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Inputs<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Inputs<T>, D::Error> {
        d.deserialize_any(InputsVisitor(PhantomData))
    }
}

struct InputsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for InputsVisitor<T> {
    type Value = Inputs<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Inputs<T>, E> {
        Ok(Inputs::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Inputs<T>, E> {
        Ok(Inputs::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Inputs<T>, E> {
        Ok(Inputs::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Inputs<T>, E> {
        Ok(Inputs::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Inputs<T>, E> {
        Ok(Inputs::default())
    }

    fn visit_unit<E>(self) -> Result<Inputs<T>, E> {
        Ok(Inputs::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Inputs<T>, A::Error> {
        let mut inputs = Inputs::default();
        while inputs.first.len() < MAX_INPUTS {
            match seq.next_element::<T>()? {
                Some(value) => inputs.first.push(value),
                None => return Ok(inputs),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {
            inputs.is_cut = true;
        }
        Ok(inputs)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Inputs<T>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Inputs::default())
    }
}

impl TraceEvent {
    /// Whether the event is complete and has a duration.
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
        self.ts.number().unwrap_or(0.0)
    }

    pub(super) fn duration_us(&self) -> f64 {
        self.dur.number().unwrap_or(0.0)
    }

    pub(super) fn is_kernel(&self) -> bool {
        self.category().eq_ignore_ascii_case("kernel")
    }

    pub(super) fn is_operation(&self) -> bool {
        matches!(self.category(), "cpu_op" | "Operator")
    }
}

/// Events of a trace, which is an object with `traceEvents` or a list of events.
///
/// # Errors
/// The text is not JSON, or has no events. The error has line and column.
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
        let meter = MemoryMeter::new(budget::total() / 2);
        while let Some(event) = seq.next_element::<TraceEvent>()? {
            let growth = if kept.len() == kept.capacity() { 2 * kept.len() } else { 0 };
            meter.check("events", (growth * size_of::<TraceEvent>()) as u64).map_err(|exceeded| {
                let max_mib = exceeded.allowance >> 20;
                serde::de::Error::custom(format!(
                    "the events up to here take more than {max_mib} MiB, half of the memory that may be used; profile fewer steps"
                ))
            })?;
            if event.counts() {
                kept.push(event);
            }
        }
        Ok(Events(kept))
    }
}
