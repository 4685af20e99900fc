//! The first difference between two sets of tables, in words.
//!
//! Layer: host.

use hyperfold_columns::{OwnedTables, TABLES, Table};

/// The first difference: table, row, column and both values. `None`: all bytes are the same.
pub fn difference(got: &OwnedTables, want: &OwnedTables) -> Option<String> {
    let pairs = got.as_bytes().into_iter().zip(want.as_bytes());
    TABLES.iter().zip(pairs).find_map(|(table, (got, want))| in_table(table, got, want))
}

fn in_table(table: &Table, got: &[u8], want: &[u8]) -> Option<String> {
    let Table { name, columns, row_bytes, .. } = *table;
    if got.len() != want.len() {
        return Some(format!("table {name}: {} rows, must be {}", got.len() / row_bytes, want.len() / row_bytes));
    }
    if got == want {
        return None;
    }
    let place = (0..got.len()).find(|&i| got[i] != want[i])?;
    let field = columns.iter().rev().find(|f| f.offset <= place % row_bytes).expect("the first column is at 0");
    let width = if field.wgsl.contains("64") { 8 } else { 4 };
    let first = place - (place % row_bytes - field.offset) % width;
    let value = |bytes: &[u8]| -> u64 {
        let mut word = [0; 8];
        word[..width].copy_from_slice(&bytes[first..first + width]);
        u64::from_le_bytes(word)
    };
    let element = (first % row_bytes - field.offset) / width;
    Some(format!(
        "table {name}, row {}, column {}{}: {} ({:#x}), must be {} ({:#x})",
        place / row_bytes,
        field.name,
        if element > 0 { format!("[{element}]") } else { String::new() },
        value(got),
        value(got),
        value(want),
        value(want)
    ))
}
