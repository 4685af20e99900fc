//! Encodes and decodes memo records. A record is a part of what is known of one root: nodes with the edges that lead to them, parents first.
//! A node that another record extends appears as it was when it was created. So every record is correct by itself, and any set of records can be
//! merged.
//! A checkpoint names the snapshots that it leads to, which are roots of records of their own.
//!
//! Layer: fold/memo. Touches no file. A store must return the bytes unchanged, and only to a program with the same [`version`].

use bytemuck::Zeroable;
use sha2::Digest;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sha2::Sha256;

use super::codec_checkpoint::{
    get_checkpoint, get_choice, get_nic, get_port, put_checkpoint, put_choice, put_nic, put_port,
};
use crate::memo::node::{MemoNode, MessageEvent, Saved, TimedMessageEvent, standing};
use crate::memo::node_id::{MemoNodeId, child_id, root_id};
use crate::memo::outcome::{FinalState, MemberFinal, NicFinal};
use crate::memo::owner::NodeMaker;
use crate::rows::bytes::{NumberReader, NumberWriter};
use hyperfold_columns::{Field, FlowRx, FlowTx, Packet, Row};

/// The version of the meaning of records, packet model included. PRECONDITION of every change to either: a new number. `tests/fold/memo_store.rs`
/// compares it with digests of recorded data.
pub const SEMANTICS: u32 = 29;

/// Bits of a node's flags.
const EVENTS: u64 = 1;

const ENDED: u64 = 2;

const UNPREDICTABLE: u64 = 4;

const CHECKPOINT: u64 = 8;

const CHOICE: u64 = 16;

/// A version of the program, as far as records depend on it. Records of another version cannot be used.
pub type Version = [u8; 16];

/// The release that first wrote records of this form. It is a fixed part of [`version`], so a memo outlives releases that change no record.
const RECORDS_SINCE: &str = "0.1.0";

/// This version: a hash of [`SEMANTICS`], [`RECORDS_SINCE`] and the layout of the rows in records.
pub fn version() -> Version {
    let mut hash = Sha256::new();
    hash.update(SEMANTICS.to_le_bytes());
    hash.update(RECORDS_SINCE);
    hash.update([u8::from(cfg!(target_endian = "big"))]);
    for fields in [<FlowTx as Row>::FIELDS, <FlowRx as Row>::FIELDS, <Packet as Row>::FIELDS] {
        fields.iter().for_each(|f: &Field| hash.update(format!("{} {} {};", f.name, f.wgsl, f.offset)));
    }
    let mut version = Version::default();
    version.copy_from_slice(&hash.finalize()[..16]);
    version
}

/// Writes what is known of `node`; if `news` is false, only that it exists. Returns what the record then says of it.
pub(crate) fn put_node(w: &mut NumberWriter, node: &MemoNode, news: bool) -> Saved {
    let body = node.body();
    let now = standing(node, &body);
    let flags = [
        (true, EVENTS),
        (now.end, ENDED),
        (now.unpredictable, UNPREDICTABLE),
        (now.checkpoint, CHECKPOINT),
        (now.choice, CHOICE),
    ];
    w.number(flags.iter().filter(|f| news && f.0).map(|f| f.1).sum());
    w.number(node.born);
    if !news {
        return now;
    }
    w.number(now.known - node.born);
    w.number(now.events as u64);
    let mut at_ps = 0;
    for x in &body.events[..now.events] {
        w.number(x.at - at_ps);
        w.number(u64::from(x.member));
        w.number(u64::from(x.nth) << 2 | x.event as u64);
        at_ps = x.at;
    }
    if let Some(final_state) = &body.end {
        put_final_state(w, final_state);
    }
    if let Some(checkpoint) = &body.checkpoint {
        put_checkpoint(w, checkpoint);
    }
    if let Some(choice) = &body.choice {
        put_choice(w, choice);
    }
    now
}

/// A decoded record, and the memory that it takes in bytes.
pub(crate) struct Decoded {
    pub node: MemoNode,
    pub bytes: u64,
}

/// The key of a record's root and, if the root is a snapshot, the number of bytes at the key's end that are the snapshot.
pub(crate) fn key(record: &[u8]) -> Option<(&[u8], Option<usize>)> {
    get_key(&mut NumberReader(record))
}

/// Whether the bytes are a record that a lookup can read.
pub fn is_record(record: &[u8]) -> bool {
    key(record).is_some_and(|(key, state)| decode(record, key, state).is_some())
}

fn get_key<'a>(r: &mut NumberReader<'a>) -> Option<(&'a [u8], Option<usize>)> {
    let key = r.bytes()?;
    let state = r.small()?.checked_sub(1).map(|len| len as usize);
    state.is_none_or(|len| len <= key.len()).then_some((key, state))
}

/// Reads a record of the root of `key`, or of the snapshot in its last `state` bytes. `None` if it is no such record.
pub(crate) fn decode(record: &[u8], key: &[u8], state: Option<usize>) -> Option<Decoded> {
    let mut r = NumberReader(record);
    if get_key(&mut r)? != (key, state) {
        return None;
    }
    let mut bytes = MemoNode::bytes(key.len());
    let mut nodes = VecDeque::from([Arc::new(get_node(&mut r, root_id(key), &mut bytes)?)]);
    while !r.0.is_empty() {
        let back = usize::try_from(r.number()?).ok()?;
        let parent = Arc::clone(nodes.get(nodes.len().checked_sub(back)?)?);
        let key = r.bytes()?;
        bytes += MemoNode::bytes(key.len());
        let node = Arc::new(get_node(&mut r, child_id(&parent.id(), key), &mut bytes)?);
        parent.body().children.insert(key.into(), Arc::clone(&node));
        nodes.push_back(node);
    }
    let root = nodes.pop_front()?;
    drop(nodes);
    Some(Decoded { node: Arc::into_inner(root)?, bytes: bytes as u64 })
}

fn get_node(r: &mut NumberReader, id: MemoNodeId, bytes: &mut usize) -> Option<MemoNode> {
    let (flags, born) = (r.number()?, r.number()?);
    let node = MemoNode::new(id.into(), born, None, NodeMaker::default());
    node.unpredictable.store(flags & UNPREDICTABLE != 0, Ordering::Relaxed);
    let mut body = node.body();
    body.known = born;
    if flags & EVENTS != 0 {
        body.known = born.checked_add(r.number()?)?;
        let mut at_ps = 0u64;
        for _ in 0..r.count()? {
            at_ps = at_ps.checked_add(r.number()?)?;
            let member = r.small()?;
            let nth = r.number()?;
            let event = [MessageEvent::Sent, MessageEvent::Delivered, MessageEvent::Acked]
                .into_iter()
                .find(|&x| x as u64 == nth & 3)?;
            body.events.push(TimedMessageEvent { at: at_ps, member, nth: u32::try_from(nth >> 2).ok()?, event });
        }
        *bytes += body.events.len() * size_of::<TimedMessageEvent>();
        if flags & ENDED != 0 {
            let final_state = get_final_state(r)?;
            *bytes += FinalState::bytes(final_state.nics.len(), final_state.ports.len(), final_state.members.len());
            body.end = Some(Arc::new(final_state));
        }
        if flags & CHECKPOINT != 0 {
            let checkpoint = get_checkpoint(r)?;
            // Whoever reaches the checkpoint has reported all events before it.
            if checkpoint.at == 0 || checkpoint.at > body.known {
                return None;
            }
            *bytes += checkpoint.bytes();
            body.checkpoint = Some(Arc::new(checkpoint));
        }
        if flags & CHOICE != 0 {
            let choice = get_choice(r)?;
            if choice.at == 0 || choice.at > body.known {
                return None;
            }
            *bytes += choice.bytes();
            body.choice = Some(Arc::new(choice));
        }
    }
    body.saved = Some(standing(&node, &body));
    drop(body);
    Some(node)
}

fn put_final_state(w: &mut NumberWriter, final_state: &FinalState) {
    w.number(final_state.at);
    w.number(final_state.nics.len() as u64);
    for n in &final_state.nics {
        put_nic(w, &n.gained);
        w.number(u64::from(n.rr));
        w.number(n.order.len() as u64);
        n.order.iter().for_each(|&m| w.number(u64::from(m)));
    }
    w.number(final_state.ports.len() as u64);
    final_state.ports.iter().for_each(|p| put_port(w, p));
    w.number(final_state.peaks.len() as u64);
    final_state.peaks.iter().for_each(|&x| w.number(u64::from(x)));
    w.number(final_state.members.len() as u64);
    // Queue pairs of an episode start nearly equal, and end nearly as they started.
    let (mut tx, mut rx) = (FlowTx::zeroed(), FlowRx::zeroed());
    for m in &final_state.members {
        w.number(m.start);
        w.words(words(&m.tx_before), words(&tx));
        w.words(words(&m.tx), words(&m.tx_before));
        w.words(words(&m.rx_before), words(&rx));
        w.words(words(&m.rx), words(&m.rx_before));
        (tx, rx) = (m.tx_before, m.rx_before);
    }
}

fn get_final_state(r: &mut NumberReader) -> Option<FinalState> {
    let mut final_state =
        FinalState { at: r.number()?, nics: Vec::new(), ports: Vec::new(), peaks: Vec::new(), members: Vec::new() };
    for _ in 0..r.count()? {
        let (gained, rr) = (get_nic(r)?, r.small()?);
        let order = (0..r.count()?).map(|_| r.small()).collect::<Option<Vec<u32>>>()?;
        final_state.nics.push(NicFinal { gained, rr, order });
    }
    for _ in 0..r.count()? {
        final_state.ports.push(get_port(r)?);
    }
    final_state.peaks = (0..r.count()?).map(|_| r.small()).collect::<Option<Vec<u32>>>()?;
    let (mut tx, mut rx) = (FlowTx::zeroed(), FlowRx::zeroed());
    for _ in 0..r.count()? {
        let start = r.number()?;
        r.words(words_mut(&mut tx))?;
        let mut m = MemberFinal { start, tx, rx, tx_before: tx, rx_before: rx };
        r.words(words_mut(&mut m.tx))?;
        r.words(words_mut(&mut rx))?;
        (m.rx, m.rx_before) = (rx, rx);
        r.words(words_mut(&mut m.rx))?;
        final_state.members.push(m);
    }
    Some(final_state)
}

fn words<T: bytemuck::Pod>(row: &T) -> &[u32] {
    bytemuck::cast_slice(std::slice::from_ref(row))
}

fn words_mut<T: bytemuck::Pod>(row: &mut T) -> &mut [u32] {
    bytemuck::cast_slice_mut(std::slice::from_mut(row))
}
