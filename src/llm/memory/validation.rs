//! The memory suite of `hyperfold validate`: published figures compared with the estimate.
//!
//! Layer: memory. The tables are embedded from `assets/reference`; their headers give the sources. None of them is a reading of a GPU's memory. The figures of
//! Korthikanti et al. are (nearly) their own formulas, so agreement shows that these are implemented; Moye's are a simulator's.

use super::stage::StageMemory;
use super::{MemoryOptions, estimate};
use crate::model::{ElementBytes, Layout, Model, Recompute};

const FIG1: &str = include_str!("../../../assets/reference/seqsel_fig1_memory_gib.csv");
const FIG7: &str = include_str!("../../../assets/reference/seqsel_fig7_activation_pct.csv");
const MOYE: &str = include_str!("../../../assets/reference/moye_table8_memory.csv");

const GIB: f64 = (1u64 << 30) as f64;

/// One published figure and the estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryValidationRow {
    /// A description of the measurement.
    pub name: String,
    /// Unit of both values.
    pub unit: &'static str,
    /// Measured value.
    pub measured: f64,
    /// Value of the model.
    pub simulated: f64,
    /// The quantity that is compared, and the reason for a difference.
    pub note: String,
}

/// Korthikanti et al. 2022, Table 3: model, tensor and pipeline parallelism, virtual stages, micro-batch, global batch.
const SEQSEL: [(&str, u32, u32, u32, u32, u32); 4] =
    [("22B", 8, 1, 1, 4, 4), ("175B", 8, 8, 3, 1, 64), ("530B", 8, 35, 3, 1, 280), ("1T", 8, 64, 1, 1, 512)];

/// All rows of the suite.
pub fn rows() -> Vec<MemoryValidationRow> {
    let mut rows = Vec::new();
    for (name, tp, pp, vpp, ..) in SEQSEL {
        let layout = seqsel(name, tp, pp, vpp);
        seqsel_gib(&mut rows, name, &layout);
        seqsel_percent(&mut rows, name, &layout);
    }
    rows.push(stage_outputs());
    rows.extend(table(MOYE).iter().map(|r| moye(r)));
    rows
}

/// A layout of the paper: 16-bit parameters, fp32 gradients, Adam, no data parallelism, unfused attention.
pub(super) fn seqsel(name: &str, tp: u32, pp: u32, vpp: u32) -> Layout {
    let (microbatch, global_batch) = SEQSEL.iter().find(|s| s.0 == name).map_or((1, 1), |s| (s.4, s.5));
    Layout { tp, pp, vpp, microbatch, global_batch, bucket_bytes: 160_000_000, ..Layout::one_gpu() }
}

fn model_of(name: &str) -> std::sync::Arc<Model> {
    Model::named(&format!("gpt3-{}", name.to_lowercase())).expect("the table's models are presets")
}

fn stages(name: &str, layout: &Layout) -> Vec<StageMemory> {
    estimate(&model_of(name), layout, &MemoryOptions::default()).stages
}

/// Lines of an embedded table after its header, as fields.
fn table(text: &str) -> Vec<Vec<&str>> {
    text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).skip(1).map(|l| l.split(',').collect()).collect()
}

fn number(field: &str) -> f64 {
    field.parse().expect("embedded tables hold numbers")
}

fn line<'a>(text: &'a str, model: &str) -> Vec<&'a str> {
    table(text).into_iter().find(|l| l[0] == model).expect("the table has every model")
}

fn seqsel_gib(rows: &mut Vec<MemoryValidationRow>, name: &str, layout: &Layout) {
    let published = line(FIG1, name);
    let plain = stages(name, layout);
    let best = stages(name, &Layout { sequence_parallel: true, recompute: Recompute::CORE, ..layout.clone() });
    let gib = |bytes: u64| bytes as f64 / GIB;
    let inner = &plain[plain.len() / 2];
    let states = match plain.len() {
        1 => "the figure is 18 B for each weight of the layers' matrices; the only stage also holds embeddings, biases and norms".to_string(),
        _ => format!(
            "the figure is 18 B for each weight of the layers' matrices: a stage between the ends; with the embedding the first holds {:.2}",
            gib(plain[0].states())
        ),
    };
    let layers = |stage: &StageMemory| {
        format!(
            "the figure is the paper's formula, layers of the first stage; what is beside them adds {:.2}",
            gib(stage.ends)
        )
    };
    let figure = [
        ("parameters, gradients and optimizer", inner.states(), states),
        ("activations, tensor parallel", plain[0].activations, layers(&plain[0])),
        ("activations, sequence parallel and selective recomputation", best[0].activations, layers(&best[0])),
    ];
    for ((quantity, bytes, note), measured) in figure.into_iter().zip(&published[1..]) {
        rows.push(MemoryValidationRow {
            name: format!("seqsel Fig. 1 {name}: {quantity}"),
            unit: "GiB",
            measured: number(measured),
            simulated: gib(bytes),
            note,
        });
    }
}

fn seqsel_percent(rows: &mut Vec<MemoryValidationRow>, name: &str, layout: &Layout) {
    let published = line(FIG7, name);
    let first = |sequence_parallel, recompute| {
        stages(name, &Layout { sequence_parallel, recompute, ..layout.clone() })[0].activations as f64
    };
    let base = first(false, Recompute::None);
    let columns = [
        ("sequence parallel", first(true, Recompute::None)),
        ("selective recomputation", first(false, Recompute::CORE)),
        ("sequence parallel and selective recomputation", first(true, Recompute::CORE)),
        ("full recomputation", first(false, Recompute::Full)),
    ];
    for ((technique, bytes), measured) in columns.into_iter().zip(&published[2..]) {
        rows.push(MemoryValidationRow {
            name: format!("seqsel Fig. 7 {name}: {technique}"),
            unit: "%",
            measured: number(measured),
            simulated: 100.0 * bytes / base,
            note: "of what tensor parallelism alone keeps, layers of the first stage: the paper's formulas, from which the figure itself is off where this is"
                .into(),
        });
    }
}

/// The figure of the paper's text (its Appendix B): the memory saved with 530B by dropping the outputs of the first stage's micro-batches.
fn stage_outputs() -> MemoryValidationRow {
    let model = model_of("530B");
    let layout = seqsel("530B", 8, 35, 1);
    let ends = |keep_stage_outputs| {
        estimate(&model, &layout, &MemoryOptions { keep_stage_outputs, ..MemoryOptions::default() }).stages[0].ends
    };
    MemoryValidationRow {
        name: "seqsel 530B: outputs of the first stage, dropped".into(),
        unit: "GiB",
        measured: 2.73,
        simulated: (ends(true) - ends(false)) as f64 / GIB,
        note: "one virtual stage, as the paper's formula s b h p x 2 B".into(),
    }
}

fn moye(fields: &[&str]) -> MemoryValidationRow {
    let [pp, tp, dp] = [0, 1, 2].map(|i| number(fields[i]) as u32);
    let bytes = ElementBytes { params: 2, grads: 2 + 4, activations: 2, optimizer: 12 };
    let layout = Layout { dp, bytes, global_batch: dp, ..seqsel("485B", tp, pp, 1) };
    MemoryValidationRow {
        name: format!("Moye Table 8, 485B pp {pp} tp {tp} dp {dp}: parameters, gradients and optimizer"),
        unit: "GiB",
        measured: number(fields[3]),
        simulated: stages("485B", &layout)[0].states() as f64 / GIB,
        note: "another simulator's figure, no measurement; that it is 20 B a parameter of the first stage without activations is read off this table: tests counts only".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_within_three_percent() {
        let rows = rows();
        assert_eq!(rows.len(), 4 * (3 + 4) + 1 + 6);
        for r in rows {
            let error = (r.simulated - r.measured) / r.measured;
            println!("{:<90} {:>10.3} {:>10.3} {:>+7.2} %", r.name, r.measured, r.simulated, 100.0 * error);
            assert!(error.abs() < 0.03, "{}: {} {}", r.name, r.measured, r.simulated);
        }
    }
}
