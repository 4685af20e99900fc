//! Connects the command line to the sweep loader, the batch runner and the benchmarks.
//!
//! Layer: cli. The only module of it that knows them.

use anyhow::bail;

use crate::engine::gpu::GpuDevice;

use super::engine_choice;
use super::exit::CliError;
use super::simulator::{BenchInfo, BenchRow, EngineUsed, Planned, RunSettings, Simulator, SweepRequest, UpdateSink};

/// The real simulator.
pub struct Connected;

impl Simulator for Connected {
    type Sweep = ();
    type Engine = Vec<GpuDevice>;

    fn load(&self, request: &SweepRequest) -> anyhow::Result<(Planned, ())> {
        bail!("{}: this build reads no sweep files", request.path.display())
    }

    fn engine(&self, _sweep: &(), settings: &RunSettings) -> anyhow::Result<(EngineUsed, Vec<GpuDevice>)> {
        engine_choice::choose(settings, || false)
    }

    fn run(
        &self,
        _sweep: (),
        _engine: Vec<GpuDevice>,
        _settings: &RunSettings,
        _sink: &mut UpdateSink<'_>,
    ) -> Result<Vec<String>, CliError> {
        Ok(Vec::new())
    }

    fn template(&self) -> String {
        String::new()
    }

    fn benches(&self) -> Vec<BenchInfo> {
        Vec::new()
    }

    fn bench(&self, name: &str, _sink: &mut dyn FnMut(BenchRow)) -> anyhow::Result<()> {
        bail!("no benchmark `{name}`")
    }
}
