//! The format of the memo's file: a header, then segments that are only ever appended. A segment is an index of records, and the records. Every part carries a
//! checksum, so that damage is detected, and intact segments after it are found again.
//!
//! Layer: host. Knows neither the content of records nor which other processes have the file open.
//!
//! Header: magic, the file's own number, sum. Segment: mark, version, generation, counts, sums (64 bytes); index (per record: root, offset in the body, length,
//! sum); names of used roots; body. Numbers are little-endian.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use sha2::{Digest, Sha256};

use hyperfold_fold::{MemoNodeId, Version};

const MAGIC: &[u8; 16] = b"hyperfold memo\r\n";
const MARK: &[u8; 8] = b"episodes";
pub(crate) const HEADER: u64 = 40;
const SEGMENT: usize = 64;
const ENTRY: usize = 40;
const NAME: usize = 16;
/// Bytes searched at once for the next segment behind a damaged one.
const STRIDE: usize = 1 << 20;

/// Identifies a file: a rewritten file has another number.
pub(crate) type FileNumber = [u8; 16];

/// Place of a record in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoFileEntry {
    pub root: MemoNodeId,
    /// Offset from the start of the file, bytes.
    pub offset: u64,
    pub len: u64,
    sum: u64,
}

/// A segment without its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub version: Version,
    /// Number of the run that added it, counted over all runs that added to the file.
    pub generation: u64,
    pub entries: Vec<MemoFileEntry>,
    pub used: Vec<MemoNodeId>,
}

/// The segments found in a file.
#[derive(Debug, Default)]
pub(crate) struct MemoFileScan {
    pub segments: Vec<Segment>,
    /// The last segment if it is incomplete, with the entries whose records are there.
    pub torn: Option<Segment>,
    /// Whether bytes were found that are no segment, or that differ from their checksum.
    pub damaged: bool,
    /// Offset where the next segment goes.
    pub end: u64,
}

/// Checksum: the first eight bytes of a SHA-256.
fn sum(bytes: &[u8]) -> u64 {
    word(&Sha256::digest(bytes), 0)
}

fn word(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes are a word"))
}

fn half(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes are half a word"))
}

fn name(bytes: &[u8], offset: usize) -> [u8; NAME] {
    bytes[offset..offset + NAME].try_into().expect("sixteen bytes are a name")
}

/// Writes the header of an empty file.
pub(crate) fn write_header(file: &mut File, number: FileNumber) -> io::Result<()> {
    let mut head = MAGIC.to_vec();
    head.extend(number);
    head.extend(sum(&head).to_le_bytes());
    file.write_all(&head)
}

/// Returns the file's number. `None`: it is no memo.
pub(crate) fn read_header(file: &mut File) -> io::Result<Option<FileNumber>> {
    let mut head = [0u8; HEADER as usize];
    let is_whole = read_at(file, 0, &mut head)?;
    let is_one = is_whole && head[..16] == *MAGIC && word(&head, 32) == sum(&head[..32]);
    Ok(is_one.then(|| name(&head, 16)))
}

/// Whether a file begins like a memo, even a damaged one, or is empty and so may become one.
pub(crate) fn begins_as_one(file: &mut File) -> io::Result<bool> {
    let mut begin = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(HEADER + MARK.len() as u64).read_to_end(&mut begin)?;
    let magic = &begin[..begin.len().min(MAGIC.len())];
    let equal_bytes = magic.iter().zip(MAGIC).filter(|(a, b)| a == b).count();
    Ok(MAGIC.starts_with(magic) || 2 * equal_bytes >= MAGIC.len() || begin.get(HEADER as usize..) == Some(&MARK[..]))
}

/// Returns a segment as bytes.
pub(crate) fn segment(
    version: &Version,
    generation: u64,
    records: &[(MemoNodeId, Vec<u8>)],
    used: &[MemoNodeId],
) -> Vec<u8> {
    let (mut index, mut offset) = (Vec::new(), 0u64);
    for (root, record) in records {
        index.extend(root);
        index.extend(offset.to_le_bytes());
        index.extend((record.len() as u64).to_le_bytes());
        index.extend(sum(record).to_le_bytes());
        offset += record.len() as u64;
    }
    used.iter().for_each(|root| index.extend(root));
    let mut out = MARK.to_vec();
    out.extend(version);
    out.extend(generation.to_le_bytes());
    out.extend((records.len() as u32).to_le_bytes());
    out.extend((used.len() as u32).to_le_bytes());
    out.extend(offset.to_le_bytes());
    out.extend(sum(&index).to_le_bytes());
    out.extend(sum(&out).to_le_bytes());
    out.extend(index);
    records.iter().for_each(|(_, record)| out.extend(record));
    out
}

/// Reads a record. `None`: it is damaged.
pub(crate) fn record(file: &mut File, entry: &MemoFileEntry) -> io::Result<Option<Vec<u8>>> {
    if entry.offset.saturating_add(entry.len) > file.seek(SeekFrom::End(0))? {
        return Ok(None);
    }
    let mut bytes = vec![0; entry.len as usize];
    let is_whole = read_at(file, entry.offset, &mut bytes)?;
    Ok((is_whole && sum(&bytes) == entry.sum).then_some(bytes))
}

/// Finds the segments from offset `from` on. Reads no record.
pub(crate) fn scan(file: &mut File, start: u64) -> io::Result<MemoFileScan> {
    let len = file.seek(SeekFrom::End(0))?;
    let mut scan = MemoFileScan { end: start, ..MemoFileScan::default() };
    let mut offset = start;
    while offset < len {
        let Some(head) = head(file, offset)? else {
            let Some(next) = next_head(file, offset + 1, len)? else {
                // An unfinished addition looks like this as well.
                scan.torn = Some(Segment::default());
                break;
            };
            scan.damaged = true;
            offset = next;
            continue;
        };
        let body = offset + (SEGMENT + head.index_len()) as u64;
        let end = body.saturating_add(head.body);
        let Some(mut segment) = index(file, &head, offset, body, len)? else {
            if end <= len && head.body < len {
                scan.damaged = true;
                offset = end;
                continue;
            }
            scan.torn = Some(Segment::default());
            break;
        };
        if end > len {
            segment.entries.retain(|e| e.offset + e.len <= len);
            scan.torn = Some(segment);
            break;
        }
        scan.segments.push(segment);
        offset = end;
        scan.end = end;
    }
    Ok(scan)
}

/// The header of a segment.
struct Head {
    version: Version,
    generation: u64,
    entries: u32,
    used: u32,
    body: u64,
    index_sum: u64,
}

impl Head {
    fn index_len(&self) -> usize {
        self.entries as usize * ENTRY + self.used as usize * NAME
    }
}

fn head(file: &mut File, offset: u64) -> io::Result<Option<Head>> {
    let mut b = [0u8; SEGMENT];
    if !read_at(file, offset, &mut b)? || b[..8] != *MARK || word(&b, 56) != sum(&b[..56]) {
        return Ok(None);
    }
    Ok(Some(Head {
        version: name(&b, 8),
        generation: word(&b, 24),
        entries: half(&b, 32),
        used: half(&b, 36),
        body: word(&b, 40),
        index_sum: word(&b, 48),
    }))
}

/// Reads the index of the segment with header `head` at `offset`. `None`: the index is damaged.
fn index(file: &mut File, head: &Head, offset: u64, body: u64, len: u64) -> io::Result<Option<Segment>> {
    if body > len {
        return Ok(None);
    }
    let mut bytes = vec![0; head.index_len()];
    if !read_at(file, offset + SEGMENT as u64, &mut bytes)? || sum(&bytes) != head.index_sum {
        return Ok(None);
    }
    let (entries, used) = bytes.split_at(head.entries as usize * ENTRY);
    let entry = |b: &[u8]| MemoFileEntry {
        root: name(b, 0),
        offset: body.saturating_add(word(b, 16)),
        len: word(b, 24),
        sum: word(b, 32),
    };
    Ok(Some(Segment {
        version: head.version,
        generation: head.generation,
        entries: entries.chunks_exact(ENTRY).map(entry).collect(),
        used: used.chunks_exact(NAME).map(|b| name(b, 0)).collect(),
    }))
}

/// Returns the offset of the next valid segment header, searching from `offset`.
fn next_head(file: &mut File, mut offset: u64, len: u64) -> io::Result<Option<u64>> {
    let mut bytes = vec![0; STRIDE];
    while offset + SEGMENT as u64 <= len {
        let n = STRIDE.min((len - offset) as usize);
        if !read_at(file, offset, &mut bytes[..n])? {
            return Ok(None);
        }
        for k in bytes[..n].windows(MARK.len()).enumerate().filter(|(_, w)| *w == MARK).map(|(k, _)| k) {
            if head(file, offset + k as u64)?.is_some() {
                return Ok(Some(offset + k as u64));
            }
        }
        // A mark may lie across the edge of two strides.
        offset += (n - MARK.len() + 1) as u64;
    }
    Ok(None)
}

/// Fills `bytes` from `offset`. Returns `false` if the file ends before.
fn read_at(file: &mut File, offset: u64, bytes: &mut [u8]) -> io::Result<bool> {
    file.seek(SeekFrom::Start(offset))?;
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: Version = [3; 16];

    /// Returns a file of three segments of two records each, as bytes, and the records.
    fn bytes() -> (Vec<u8>, Vec<(MemoNodeId, Vec<u8>)>) {
        let mut file = tempfile::tempfile().unwrap();
        write_header(&mut file, [9; 16]).unwrap();
        let records: Vec<(MemoNodeId, Vec<u8>)> =
            (0u8..6).map(|k| ([k; 16], vec![k ^ 0x55; 40 + usize::from(k)])).collect();
        for (g, two) in records.chunks(2).enumerate() {
            file.write_all(&segment(&VERSION, g as u64, two, &[[g as u8; 16]])).unwrap();
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        (bytes, records)
    }

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    /// Returns the records that can still be read, in order.
    fn found(file: &mut File, scan: &MemoFileScan) -> Vec<(MemoNodeId, Vec<u8>)> {
        let entries: Vec<MemoFileEntry> =
            scan.segments.iter().chain(&scan.torn).flat_map(|s| s.entries.clone()).collect();
        entries.iter().filter_map(|e| Some((e.root, record(file, e).unwrap()?))).collect()
    }

    #[test]
    fn what_is_written_is_found() {
        let (bytes, records) = bytes();
        let mut file = file_of(&bytes);
        assert_eq!(read_header(&mut file).unwrap(), Some([9; 16]));
        let scan = scan(&mut file, HEADER).unwrap();
        assert!(!scan.damaged && scan.torn.is_none() && scan.end == bytes.len() as u64);
        assert_eq!(
            scan.segments.iter().map(|s| (s.generation, s.used.clone())).collect::<Vec<_>>(),
            (0..3).map(|g| (g, vec![[g as u8; 16]])).collect::<Vec<_>>()
        );
        assert_eq!(found(&mut file, &scan), records);
    }

    #[test]
    fn what_was_cut_off_is_noticed_and_the_rest_is_found() {
        let (bytes, records) = bytes();
        for len in HEADER as usize..bytes.len() {
            let mut file = file_of(&bytes[..len]);
            let scan = scan(&mut file, HEADER).unwrap();
            let found = found(&mut file, &scan);
            assert_eq!(found, records[..found.len()], "{len} bytes");
            let is_boundary = scan.end == len as u64;
            assert_eq!(scan.torn.is_none(), is_boundary, "{len} bytes");
            assert!(!scan.damaged && found.len() >= 2 * scan.segments.len(), "{len} bytes");
        }
    }

    #[test]
    fn one_changed_byte_costs_a_segment_at_most() {
        let (bytes, records) = bytes();
        for position in HEADER as usize..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 1 << (position % 8);
            let mut file = file_of(&changed);
            let scan = scan(&mut file, HEADER).unwrap();
            let found = found(&mut file, &scan);
            assert!(found.iter().all(|r| records.contains(r)), "byte {position}");
            assert!((4..6).contains(&found.len()), "byte {position}: {}", found.len());
        }
    }
}
