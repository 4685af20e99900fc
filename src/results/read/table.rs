//! Reads rows of `results.parquet` or `results.csv` as typed cells.
//!
//! Layer: results. Both files give the same cells: a decimal of the CSV reads as the double in the parquet file.

use std::path::Path;

use parquet::basic::{ConvertedType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::super::csv_rows;
use super::super::outputs::ColumnSets;
use super::super::record::{ExperimentRecord, IDENTITY, outcome_columns};
use super::super::record_macro::Shown;
use super::super::value::{Axis, Cell, ColumnKind};
use super::error::ReadError;
use crate::meter::memory_meter;
use hyperfold_base::input;

/// A table with names, kinds and cells.
pub(super) struct CellTable {
    pub columns: Vec<(String, ColumnKind)>,
    pub rows: Vec<Vec<Cell>>,
}

/// Reads `results.parquet`.
pub(super) fn from_parquet(path: &Path) -> Result<CellTable, ReadError> {
    let wrong = |source| ReadError::Parquet { path: path.into(), source };
    let file = input::open_anywhere(path).map_err(ReadError::io(path))?;
    let reader = SerializedFileReader::new(file).map_err(wrong)?;
    let descriptors: Vec<_> = reader.metadata().file_metadata().schema_descr().columns().to_vec();
    let mut columns = Vec::with_capacity(descriptors.len());
    for column in &descriptors {
        let name = column.name().to_string();
        let why = || ReadError::Table {
            path: path.into(),
            why: format!("column {name} has a type that results do not have"),
        };
        columns.push((name.clone(), kind(column).ok_or_else(why)?));
    }
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let meter = memory_meter();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(wrong)?;
        let n = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let first = rows.len();
        let bytes = (n as u64).saturating_mul((size_of::<Vec<Cell>>() + columns.len() * size_of::<Cell>()) as u64);
        meter.check("rows of results", bytes).map_err(ReadError::memory(path))?;
        rows.resize_with(first + n, || Vec::with_capacity(columns.len()));
        for (column_idx, (name, kind)) in columns.iter().enumerate() {
            let cells = cells(group.as_ref(), column_idx, *kind, n, &mut || {
                meter.check("cells of results", 0).map_err(|_| ParquetError::General(TOO_LARGE.into()))
            });
            let cells = cells.map_err(|e| match e {
                ParquetError::General(why) if why == TOO_LARGE => ReadError::memory(path)(
                    meter.check("cells of results", u64::MAX).expect_err("this is more than any allowance"),
                ),
                other => wrong(other),
            })?;
            if cells.len() != n {
                return Err(ReadError::Table {
                    path: path.into(),
                    why: format!("column {name} has {} values, not {n}", cells.len()),
                });
            }
            rows[first..].iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
        }
    }
    Ok(CellTable { columns, rows })
}

/// Returns the kind that a column was written as by [`super::super::parquet_file`].
fn kind(column: &ColumnDescriptor) -> Option<ColumnKind> {
    if column.max_def_level() > 1 || column.max_rep_level() > 0 {
        return None;
    }
    match (column.physical_type(), column.converted_type()) {
        (Physical::INT64, ConvertedType::UINT_64) => Some(ColumnKind::Unsigned),
        (Physical::INT64, _) => Some(ColumnKind::Int),
        (Physical::DOUBLE, _) => Some(ColumnKind::Real),
        (Physical::BOOLEAN, _) => Some(ColumnKind::Flag),
        (Physical::BYTE_ARRAY, _) => Some(ColumnKind::Text),
        _ => None,
    }
}

/// Checks that there is memory for more cells.
type HasRoom<'a> = &'a mut dyn FnMut() -> Result<(), ParquetError>;

/// Text of the error that means too little memory, until it is converted to an error of the file.
const TOO_LARGE: &str = "too large";
/// Records that are read between two checks of the memory.
const PIECE: usize = 1 << 14;

fn cells(
    group: &dyn RowGroupReader,
    column_idx: usize,
    kind: ColumnKind,
    n: usize,
    has_room: HasRoom,
) -> Result<Vec<Cell>, ParquetError> {
    match (group.get_column_reader(column_idx)?, kind) {
        (ColumnReader::Int64ColumnReader(r), ColumnKind::Unsigned) => {
            values(r, n, has_room, |v| Cell::Unsigned(v as u64))
        }
        (ColumnReader::Int64ColumnReader(r), _) => values(r, n, has_room, Cell::Int),
        (ColumnReader::DoubleColumnReader(r), _) => values(r, n, has_room, Cell::Real),
        (ColumnReader::BoolColumnReader(r), _) => values(r, n, has_room, Cell::Flag),
        (ColumnReader::ByteArrayColumnReader(r), _) => {
            values(r, n, has_room, |v| Cell::Text(String::from_utf8_lossy(v.data()).into_owned()))
        }
        _ => Err(ParquetError::General("a column's pages are of another type than its schema says".into())),
    }
}

fn values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    n: usize,
    has_room: HasRoom,
    cell: impl Fn(T::T) -> Cell,
) -> Result<Vec<Cell>, ParquetError> {
    let (mut cells, mut levels, mut present) = (Vec::new(), Vec::new(), Vec::new());
    while cells.len() < n {
        has_room()?;
        let max_records = (n - cells.len()).min(PIECE);
        let (records, _, _) = reader.read_records(max_records, Some(&mut levels), None, &mut present)?;
        if records == 0 {
            break;
        }
        let mut values = present.drain(..).map(&cell);
        // A required column has no levels.
        match levels.is_empty() {
            true => cells.extend(values),
            false => cells.extend(levels.drain(..).map(|level| match level {
                0 => Cell::Empty,
                _ => values.next().unwrap_or(Cell::Empty),
            })),
        }
    }
    Ok(cells)
}

/// Reads `results.csv`. Kinds of axes come from the manifest, or from the values if it names none.
pub(super) fn from_csv(path: &Path, axes: &[Axis]) -> Result<CellTable, ReadError> {
    from_text(path, input::open_table_anywhere(path).map_err(ReadError::io(path))?, axes)
}

/// Returns the rows that `results.csv` will have for these records.
pub(super) fn from_records<'a>(
    path: &Path,
    axes: &[Axis],
    sets: ColumnSets,
    records: impl Iterator<Item = &'a ExperimentRecord>,
) -> Result<CellTable, ReadError> {
    let mut text = csv_rows::header(csv_rows::results_header(axes, sets));
    let mut collected = csv_rows::CollectedRows::default();
    records.for_each(|record| collected.push(csv_rows::results_row(record, sets)));
    text.extend(collected.into_bytes());
    from_text(path, text.as_slice(), axes)
}

fn from_text(path: &Path, text: impl std::io::Read, axes: &[Axis]) -> Result<CellTable, ReadError> {
    let mut reader = csv::Reader::from_reader(text);
    let wrong = |source| ReadError::Csv { path: path.into(), source };
    let names: Vec<String> = reader.headers().map_err(wrong)?.iter().map(String::from).collect();
    let declared = |name: &str| {
        let fixed = IDENTITY.iter().chain(outcome_columns(ColumnSets::ALL)).find(|c| c.name == name).map(|c| c.kind);
        fixed.or_else(|| axes.iter().find(|a| a.key == name).map(|a| a.kind))
    };
    let meter = memory_meter();
    let mut texts: Vec<(u64, csv::StringRecord)> = Vec::new();
    for record in reader.records() {
        meter.check("rows of results", 0).map_err(ReadError::memory(path))?;
        let record = record.map_err(wrong)?;
        texts.push((record.position().map_or(0, csv::Position::line), record));
    }
    let infer = |column_idx: usize| {
        let cells: Vec<Cell> = texts.iter().map(|(_, r)| guess(r.get(column_idx).unwrap_or(""))).collect();
        Axis::infer("", &cells).kind
    };
    let columns: Vec<(String, ColumnKind)> = names
        .into_iter()
        .enumerate()
        .map(|(i, name)| (declared(&name).unwrap_or_else(|| infer(i)), name))
        .map(|(k, n)| (n, k))
        .collect();
    let mut rows = Vec::with_capacity(texts.len());
    for (line, record) in &texts {
        meter.check("rows of results", 0).map_err(ReadError::memory(path))?;
        let cell = |(text, (name, kind)): (&str, &(String, ColumnKind))| {
            let (path, column) = (path.to_path_buf(), name.clone());
            parse(text, *kind).map_err(|want| ReadError::Value { path, line: *line, column, value: text.into(), want })
        };
        rows.push(record.iter().zip(&columns).map(cell).collect::<Result<Vec<Cell>, _>>()?);
    }
    Ok(CellTable { columns, rows })
}

/// Returns a text as a cell of the narrowest kind that it fits.
fn guess(text: &str) -> Cell {
    let kinds = [ColumnKind::Int, ColumnKind::Real, ColumnKind::Flag];
    kinds.iter().find_map(|k| parse(text, *k).ok()).unwrap_or_else(|| text.into())
}

/// Parses a field as a cell of its column's kind. The error says what the field must be.
fn parse(text: &str, kind: ColumnKind) -> Result<Cell, &'static str> {
    if text.is_empty() {
        return Ok(Cell::Empty);
    }
    match kind {
        ColumnKind::Int => i64::read(text).map(Cell::Int),
        ColumnKind::Unsigned => u64::read(text).map(Cell::Unsigned),
        ColumnKind::Real => f64::read(text).map(Cell::Real),
        ColumnKind::Flag => bool::read(text).map(Cell::Flag),
        ColumnKind::Text => Ok(plain(text).into()),
    }
}

/// Removes the apostrophe that [`super::super::csv_rows::neutralise`] put before a text that looks like a formula.
fn plain(text: &str) -> &str {
    match text.strip_prefix('\'') {
        Some(rest) if csv_rows::is_formula(rest) => rest,
        _ => text,
    }
}
