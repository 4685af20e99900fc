//! Connects the command line to the sweep loader, the batch runner and the benchmarks.
//!
//! Layer: cli. The only module of it that knows them.

use anyhow::{anyhow, bail};

use crate::engine::gpu::GpuDevice;
use crate::results::{Axis, Cell, InputFile, Outputs};
use crate::spec::{self, Value};
use crate::sweep::{self, SetOverrides, Sweep};

use super::engine_choice;
use super::exit::CliError;
use super::simulator::{BenchInfo, BenchRow, EngineUsed, Planned, RunSettings, Simulator, SweepRequest, UpdateSink};

/// The real simulator.
pub struct Connected;

/// An axis value as a result cell; what a listed experiment leaves open is empty.
pub fn cell(value: &Value) -> Cell {
    match value {
        Value::Unset => Cell::Empty,
        Value::Int(v) => Cell::Int(*v),
        Value::Float(v) => Cell::Real(*v),
        Value::Bool(v) => Cell::Flag(*v),
        Value::Choice(v) => Cell::from(*v),
        Value::Text(v) => Cell::from(v.as_ref()),
    }
}

/// Types of the axis columns, from all values of the sweep, selected or not, so that shards agree on them.
fn axes(sweep: &Sweep) -> Vec<Axis> {
    let mut columns: Vec<Vec<Cell>> = vec![Vec::new(); sweep.axes.len()];
    for experiment in &sweep.experiments {
        for (column, value) in columns.iter_mut().zip(sweep.axis_values(experiment)) {
            // Only a change of type can matter, and a run of one type is the rule.
            let value = cell(&value);
            if column.last().is_none_or(|last| std::mem::discriminant(last) != std::mem::discriminant(&value)) {
                column.push(value);
            }
        }
    }
    sweep.axes.iter().zip(&columns).map(|(key, values)| Axis::infer(key.as_str(), values)).collect()
}

/// The files the sweep asks for: those that any of its experiments asks for.
fn outputs(sweep: &Sweep) -> Outputs {
    let varies = sweep.axes.iter().any(|key| key.starts_with("output."));
    let asked = if varies { sweep.experiments.len() } else { 1 };
    let mut outputs = Outputs::default();
    for experiment in sweep.experiments.iter().take(asked) {
        let output = sweep.config(experiment).expect("loading has checked every experiment's configuration").output;
        outputs.flows |= output.flows;
        outputs.links |= output.links;
        outputs.rtt |= output.rtt;
    }
    outputs
}

impl Simulator for Connected {
    type Sweep = Sweep;
    type Engine = Vec<GpuDevice>;

    fn load(&self, request: &SweepRequest) -> anyhow::Result<(Planned, Sweep)> {
        let mut sweep = sweep::load(&request.path, &SetOverrides(request.set.clone()))?;
        let (axes, outputs) = (axes(&sweep), outputs(&sweep));
        sweep.select(&request.selection)?;
        let input = |f: &sweep::InputFile| InputFile { path: f.path.display().to_string(), sha256: f.sha256.clone() };
        let planned = Planned {
            name: sweep.name.clone(),
            experiments: sweep.n_experiments,
            selected: sweep.experiments.iter().map(|e| e.exp_id).collect(),
            axes,
            outputs,
            resolved: sweep.resolved_toml.clone(),
            inputs: sweep.inputs.iter().map(input).collect(),
            warnings: sweep.notes.clone(),
            ..Planned::default()
        };
        Ok((planned, sweep))
    }

    fn engine(&self, _sweep: &Sweep, settings: &RunSettings) -> anyhow::Result<(EngineUsed, Vec<GpuDevice>)> {
        engine_choice::choose(settings, || false)
    }

    fn run(
        &self,
        _sweep: Sweep,
        _engine: Vec<GpuDevice>,
        _settings: &RunSettings,
        _sink: &mut UpdateSink<'_>,
    ) -> Result<Vec<String>, CliError> {
        Err(CliError::broken(anyhow!("this build has no batch runner")))
    }

    fn template(&self) -> String {
        spec::template()
    }

    fn benches(&self) -> Vec<BenchInfo> {
        Vec::new()
    }

    fn bench(&self, name: &str, _sink: &mut dyn FnMut(BenchRow)) -> anyhow::Result<()> {
        bail!("no benchmark `{name}`")
    }
}
