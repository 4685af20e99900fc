//! Validation of kernels and layers against published measurements. The tables are in `assets/reference`, each with its source.
//!
//! Part of compute. A prediction never uses its own row: rows of the operation database are left out one by one. If the sustained rate of a GPU comes from the
//! row, it is taken from other GPUs of its family instead.

mod kernels;
mod layers;

pub use kernels::kernels;
pub use layers::layers;

/// A measurement and the model's value for it.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputeValidationRow {
    /// A description of the measurement.
    pub name: String,
    /// Unit of both values.
    pub unit: &'static str,
    /// Measured value.
    pub measured: f64,
    /// Value of the model.
    pub simulated: f64,
    /// How the value was predicted, and why it may be off.
    pub note: String,
}

impl ComputeValidationRow {
    /// Relative error: (simulated - measured) / measured.
    pub fn error(&self) -> f64 {
        (self.simulated - self.measured) / self.measured
    }
}

/// Mean of the absolute relative errors; 0 if there are none.
pub fn mean_absolute_error(rows: &[ComputeValidationRow]) -> f64 {
    if rows.is_empty() { 0.0 } else { rows.iter().map(|r| r.error().abs()).sum::<f64>() / rows.len() as f64 }
}

/// Records of a table of the assets, by column.
fn records(text: &'static str) -> Vec<Vec<String>> {
    let reader = csv::ReaderBuilder::new().comment(Some(b'#')).flexible(true).from_reader(text.as_bytes());
    let rows = reader.into_records().map(|r| r.expect("assets/reference is read by a test"));
    rows.map(|r| r.iter().map(str::to_string).collect()).collect()
}

fn number(text: &str) -> f64 {
    text.parse().expect("assets/reference is read by a test")
}
