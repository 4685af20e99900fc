//! Experiments on the device: they come with all their tables, stay from slice to slice, and go home when they have ended or need packets.
//!
//! Layer: engine. Decides what is on the device and when it moves. Results do not depend on its decisions.

use std::time::{Duration, Instant};

use super::batch_runner::{DispatchProgress, ExperimentError, GpuEngine, Mode, Report, kernels_of};
use super::faults::RunError;
use super::pack;
use super::slab::{Slab, fitting, pick};
use crate::is_final;
use hyperfold_columns::{Exp, N_TABLES, TABLES, Tables, status};

/// Tables that only steps read. Those of an experiment that has ended stay on the device.
const ONLY_FOR_STEPS: [&str; 5] = ["clocks", "details", "ints", "order", "plans"];

impl GpuEngine {
    /// Whether all tables of an experiment that has ended come home, also those that only steps read; at first they do not. [`GpuEngine::run`] always brings
    /// all of them.
    pub fn bring_all_home(&mut self, all: bool) {
        self.whole_tables = all;
    }

    /// Drops what is on the device: the next batch has other experiments.
    pub fn forget(&mut self) {
        self.slabs.clear();
        self.kernels.expect_new_batch();
        let [there, back] = std::mem::take(&mut self.copied);
        if there > 0 {
            log::debug!("device: {there} bytes of tables copied there, {back} back");
        }
    }

    /// Goes on with every experiment of a batch until all have ended, or `go_on` returns false after a dispatch. Tables stay on the device from the first
    /// call to the end of their experiment. So those of an experiment that runs are out of date on the host.
    ///
    /// # Errors
    /// The device failed. The tables of the experiments that were on it are then useless.
    pub(super) fn go_on(
        &mut self,
        experiments: &mut [Tables],
        mode: Mode,
        packet_limit: u64,
        go_on: &mut dyn FnMut(&DispatchProgress) -> bool,
    ) -> Result<Report, RunError> {
        self.choose_kernels(experiments)?;
        let mut report = Report::default();
        loop {
            self.drop_ended(experiments);
            self.admit(experiments, packet_limit, &mut report)?;
            if self.slabs.is_empty() {
                return Ok(report);
            }
            let (dispatch_steps, dispatch_wall) = self.dispatch_slabs(mode)?;
            report.dispatches += 1;
            report.device_wall += dispatch_wall;
            self.bring_home_those_that_wait(experiments)?;
            let progress = self.progress(experiments, dispatch_steps, dispatch_wall);
            if !go_on(&progress) {
                report.stopped = true;
                return Ok(report);
            }
        }
    }

    /// Takes no further step with experiments that the host has ended.
    fn drop_ended(&mut self, experiments: &[Tables]) {
        for slab in &mut self.slabs {
            for place in &mut slab.places {
                if place.is_some_and(|p| is_final(&experiments[p])) {
                    *place = None;
                }
            }
        }
        self.slabs.retain(|slab| slab.places.iter().any(Option::is_some));
    }

    /// Copies experiments to the device that are not there, as many as there is room for. Those that wait for packets, or have stopped
    /// for the host, go on first.
    fn admit(&mut self, experiments: &mut [Tables], packet_limit: u64, report: &mut Report) -> Result<(), RunError> {
        let mut is_there = vec![false; experiments.len()];
        self.slabs.iter().flat_map(|slab| slab.places.iter().flatten()).for_each(|&p| is_there[p] = true);
        report.failures.iter().for_each(|&(p, _)| is_there[p] = true);
        let limits = self.batch_limits;
        let mut used: u64 = self.slabs.iter().map(|slab| slab.resident.memory()).sum();
        let mut grown = 0;
        let mut next: Vec<usize> = Vec::new();
        for (p, t) in experiments.iter_mut().enumerate().filter(|(p, t)| !is_there[*p] && !is_final(t)) {
            if used + t.bytes() > self.room() && !(next.is_empty() && self.slabs.is_empty()) {
                break;
            }
            grown |= u32::from(t.exps[0].status == status::NEEDS_PACKETS);
            if let Err(error) = crate::go_on(t, packet_limit) {
                report.failures.push((p, error.into()));
                continue;
            }
            if is_final(t) {
                continue;
            }
            if let Some((table, bytes, limit)) = pack::too_large(t, &limits) {
                report.failures.push((p, ExperimentError::TooLarge { table, bytes, limit }));
                continue;
            }
            if used + t.bytes() > self.room() && !(next.is_empty() && self.slabs.is_empty()) {
                break;
            }
            used += t.bytes();
            next.push(p);
        }
        report.growths += grown;
        let mut first = 0;
        let mut max_experiments = usize::MAX;
        while first < next.len() {
            let n = fitting(experiments, &next[first..], &limits).min(max_experiments);
            let places = &next[first..first + n];
            let on_device: Vec<&Tables> = places.iter().map(|&p| &experiments[p]).collect();
            match self.upload(&on_device) {
                Ok(resident) => {
                    self.copied[0] += resident.copied;
                    let exps = resident.exps().to_vec();
                    self.slabs.push(Slab { resident, places: places.iter().copied().map(Some).collect(), exps });
                    report.batches += 1;
                    first += n;
                }
                Err(RunError::OutOfMemory(_)) if n > 1 => max_experiments = n / 2,
                // The device holds no more than these; the others follow when it has room.
                Err(RunError::OutOfMemory(why)) if !self.slabs.is_empty() => {
                    let held = self.slabs.iter().map(|slab| slab.resident.memory()).sum();
                    log::debug!("device: no more than {held} bytes of tables at once: {why}");
                    self.found_room = held;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        if !next.is_empty() {
            log::debug!("device: {} experiments in {} sets of buffers, {used} bytes", next.len(), self.slabs.len());
        }
        Ok(())
    }

    /// Bytes of tables that may be on the device at once.
    fn room(&self) -> u64 {
        self.batch_limits.total_bytes.min(self.found_room)
    }

    /// Dispatches steps of all experiments that run, in one submission. Returns the number of steps and the wall time until the headers are back.
    fn dispatch_slabs(&mut self, mode: Mode) -> Result<(u32, Duration), RunError> {
        let running: Vec<Vec<u32>> = self.slabs.iter().map(Slab::running).collect();
        let rows_of =
            |slab: &Slab, rows: &[u32]| -> u64 { rows.iter().map(|&r| u64::from(slab.exps[r as usize].end_len)).sum() };
        let rows = self.slabs.iter().zip(&running).map(|(slab, rows)| rows_of(slab, rows)).sum();
        let steps = self.steps_for(mode, rows);
        // Without gates the gate systems have nothing to do.
        let gates = self.slabs.iter().flat_map(|slab| &slab.exps).any(|e| e.gate_len > 0);
        let kernels = kernels_of(mode, gates);
        for &kernel in &kernels {
            self.prepare(kernel)?;
        }
        for (slab, rows) in self.slabs.iter().zip(&running) {
            slab.resident.set_control(&self.queue, steps, rows);
        }
        let mut encoder = self.encoder("steps");
        {
            let mut pass =
                encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes: None });
            let repeats = if mode == Mode::Fused { 1 } else { steps };
            for _ in 0..repeats {
                for &kernel in &kernels {
                    for (slab, rows) in self.slabs.iter().zip(&running).filter(|(_, rows)| !rows.is_empty()) {
                        pass.set_bind_group(0, slab.resident.group(), &[]);
                        self.dispatch_system(&mut pass, kernel, slab.resident.exps(), rows);
                    }
                }
            }
        }
        self.slabs.iter().for_each(|slab| slab.resident.copy_exps(&mut encoder));
        let clock = Instant::now();
        self.faults.expect_compilation(self.kernels.in_use().are_cold(kernels.iter().copied()));
        self.queue.submit([encoder.finish()]);
        let mut taken = 0;
        for slab in &mut self.slabs {
            let exps = slab.resident.read_exps(&self.device, &self.faults)?;
            taken += slab.exps.iter().zip(&exps).map(|(b, e)| (e.steps - b.steps) * u64::from(e.end_len)).sum::<u64>();
            slab.exps = exps;
        }
        self.faults.expect_compilation(false);
        self.kernels.in_use_mut().have_run(kernels.iter().copied());
        let wall = clock.elapsed();
        log::trace!(
            "dispatch: up to {steps} steps of {} experiments in {:.6} s",
            running.iter().map(Vec::len).sum::<usize>(),
            wall.as_secs_f64()
        );
        self.adapt(mode, wall, taken);
        Ok((steps, wall))
    }

    /// Brings home the experiments that have ended. Growing moves tables twice, so a small number of experiments that wait for packets is left to wait.
    fn bring_home_those_that_wait(&mut self, experiments: &mut [Tables]) -> Result<(), RunError> {
        let count = |which: u32| -> usize {
            let there = self.slabs.iter().flat_map(|slab| slab.places.iter().zip(&slab.exps));
            there.filter(|(place, exp)| place.is_some() && exp.status == which).count()
        };
        let (running, waiting) = (count(status::RUNNING), count(status::NEEDS_PACKETS));
        let with_waiting = waiting > 0 && 4 * waiting >= running;
        self.bring_home(experiments, |exp| match exp.status {
            status::RUNNING => false,
            status::NEEDS_PACKETS => with_waiting,
            _ => true,
        })
    }

    /// Brings home the experiments that `which` chooses by their headers.
    pub(super) fn bring_home(
        &mut self,
        experiments: &mut [Tables],
        which: impl Fn(&Exp) -> bool,
    ) -> Result<(), RunError> {
        for slab in &mut self.slabs {
            // Experiments that go on need all their tables; of those that have ended, the host reads some.
            let (mut ended, mut going_on) = (Vec::new(), Vec::new());
            for (row, (place, exp)) in slab.places.iter_mut().zip(&slab.exps).enumerate() {
                if let Some(p) = *place
                    && which(exp)
                {
                    let stops = experiments[p].changes.may_stop() || experiments[p].series.is_on();
                    let goes_on = matches!(exp.status, status::RUNNING | status::NEEDS_PACKETS) || stops;
                    if goes_on || self.whole_tables { &mut going_on } else { &mut ended }.push((p, row));
                    *place = None;
                }
            }
            for (chosen, all) in [(ended, false), (going_on, true)] {
                if chosen.is_empty() {
                    continue;
                }
                let tables = (0..N_TABLES).filter(|&i| all || !ONLY_FOR_STEPS.contains(&TABLES[i].name));
                let mut home = pick(experiments, &chosen);
                self.copied[1] +=
                    slab.resident.download_some(&self.device, &self.queue, &self.faults, tables, &mut home)?;
            }
        }
        self.slabs.retain(|slab| slab.places.iter().any(Option::is_some));
        Ok(())
    }

    /// Copies what the host looks at while experiments run: headers, and the counters of NICs and ports.
    ///
    /// # Errors
    /// The device failed.
    pub(super) fn refresh_counters(&mut self, experiments: &mut [Tables]) -> Result<(), RunError> {
        for slab in &self.slabs {
            let chosen: Vec<(usize, usize)> =
                slab.places.iter().enumerate().filter_map(|(row, place)| place.map(|p| (p, row))).collect();
            let looked_at = (0..N_TABLES).filter(|&i| matches!(TABLES[i].name, "exps" | "nics" | "ports"));
            let mut there = pick(experiments, &chosen);
            self.copied[1] +=
                slab.resident.download_some(&self.device, &self.queue, &self.faults, looked_at, &mut there)?;
        }
        Ok(())
    }

    fn progress(&self, experiments: &[Tables], dispatch_steps: u32, dispatch_wall: Duration) -> DispatchProgress {
        let mut steps: Vec<u64> = experiments.iter().map(|t| t.exps.first().map_or(0, |exp| exp.steps)).collect();
        for slab in &self.slabs {
            for (place, exp) in slab.places.iter().zip(&slab.exps) {
                place.iter().for_each(|&p| steps[p] = exp.steps);
            }
        }
        DispatchProgress {
            finished: experiments.iter().filter(|t| is_final(t)).count(),
            experiments: experiments.len(),
            steps: steps.iter().sum(),
            dispatch_steps,
            dispatch_wall,
        }
    }
}
