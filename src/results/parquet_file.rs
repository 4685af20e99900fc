//! `results.parquet`: the rows of `results.csv` with types.
//!
//! Layer: results. Plain pages, no compression and no dates, so that equal results are equal bytes.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::csv_rows::results_row;
use super::outputs::ColumnSets;
use super::record::{ExperimentRecord, IDENTITY, outcome_columns};
use super::value::{Axis, Cell, ColumnKind};

/// Rows in a row group; this decides the file's bytes.
const GROUP_ROWS: usize = 16_384;

/// Writes all rows. PRECONDITION: `records` are in the order of `exp_id`.
///
/// # Errors
/// The sink fails.
pub fn write<W: Write + Send>(
    sink: W,
    axes: &[Axis],
    sets: ColumnSets,
    records: &[ExperimentRecord],
) -> Result<(), ParquetError> {
    let columns = columns(axes, sets);
    let fields = columns.iter().map(|c| c.field().map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("results").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_created_by("hyperfold".into())
        .set_compression(Compression::UNCOMPRESSED)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    let mut file = SerializedFileWriter::new(sink, schema, Arc::new(properties))?;
    for group in records.chunks(GROUP_ROWS) {
        let rows: Vec<Vec<Cell>> = group.iter().map(|record| results_row(record, sets)).collect();
        let mut writer = file.next_row_group()?;
        for (column_idx, column) in columns.iter().enumerate() {
            column.write(&mut writer, rows.iter().map(|row| &row[column_idx]))?;
        }
        writer.close()?;
    }
    file.close()?;
    Ok(())
}

struct ParquetColumn<'a> {
    name: &'a str,
    kind: ColumnKind,
    required: bool,
}

/// Returns the columns in the order of `results.csv`.
fn columns(axes: &[Axis], sets: ColumnSets) -> Vec<ParquetColumn<'_>> {
    fn fixed<'a>(c: &super::record::RecordColumn) -> ParquetColumn<'a> {
        ParquetColumn { name: c.name, kind: c.kind, required: c.required }
    }
    fn axis(a: &Axis) -> ParquetColumn<'_> {
        ParquetColumn { name: &a.key, kind: a.kind, required: false }
    }
    IDENTITY.iter().map(fixed).chain(axes.iter().map(axis)).chain(outcome_columns(sets).map(fixed)).collect()
}

impl ParquetColumn<'_> {
    fn field(&self) -> Result<Type, ParquetError> {
        let (physical, converted) = match self.kind {
            ColumnKind::Int => (Physical::INT64, ConvertedType::NONE),
            ColumnKind::Unsigned => (Physical::INT64, ConvertedType::UINT_64),
            ColumnKind::Real => (Physical::DOUBLE, ConvertedType::NONE),
            ColumnKind::Flag => (Physical::BOOLEAN, ConvertedType::NONE),
            ColumnKind::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
        };
        Type::primitive_type_builder(self.name, physical)
            .with_repetition(if self.required { Repetition::REQUIRED } else { Repetition::OPTIONAL })
            .with_converted_type(converted)
            .build()
    }

    fn write<'c, W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        cells: impl Iterator<Item = &'c Cell>,
    ) -> Result<(), ParquetError> {
        let mut column = group.next_column()?.expect("the schema has one column for each");
        macro_rules! values {
            ($type:ty, $convert:expr) => {{
                let converted: Vec<Option<_>> = cells.map($convert).collect();
                let levels: Vec<i16> = converted.iter().map(|v| i16::from(v.is_some())).collect();
                let present: Vec<_> = converted.into_iter().flatten().collect();
                let levels = (!self.required).then_some(levels.as_slice());
                column.typed::<$type>().write_batch(&present, levels, None)?;
            }};
        }
        match self.kind {
            ColumnKind::Int | ColumnKind::Unsigned => values!(Int64Type, whole),
            ColumnKind::Real => values!(DoubleType, Cell::number),
            ColumnKind::Flag => values!(BoolType, |cell: &Cell| match cell {
                Cell::Flag(v) => Some(*v),
                _ => None,
            }),
            ColumnKind::Text => values!(ByteArrayType, |cell: &Cell| match cell {
                Cell::Empty => None,
                other => Some(ByteArray::from(other.to_string().into_bytes())),
            }),
        }
        column.close()
    }
}

/// Returns a whole number's 64 bits; the column's annotation says how to read them.
fn whole(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Int(v) => Some(*v),
        Cell::Unsigned(v) => Some(*v as i64),
        _ => None,
    }
}
