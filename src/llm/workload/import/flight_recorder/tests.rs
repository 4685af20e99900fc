//! Small dumps, made by hand, with times worked out by hand.

use std::fmt::Write;

use super::*;
use crate::workload::program::{OpKind, Stream};
use proptest::prelude::*;

/// An entry of the recorder. It was made so many us after the first, and took so long.
#[derive(Clone)]
struct Entry {
    name: &'static str,
    group: &'static str,
    sequence: u64,
    us: u64,
    duration_us: Option<u64>,
    state: &'static str,
    sizes: String,
    is_p2p: bool,
}

/// A collective of float elements in the group of all ranks.
fn call(name: &'static str, sequence: u64, us: u64, elements: u64) -> Entry {
    let sizes = format!(
        r#""input_sizes":[[{elements}]],"input_dtypes":["Float"],"output_sizes":[[{elements}]],"output_dtypes":["Float"]"#
    );
    Entry { name, group: "0", sequence, us, duration_us: None, state: "completed", sizes, is_p2p: false }
}

fn message(name: &'static str, sequence: u64, us: u64, elements: u64) -> Entry {
    Entry { is_p2p: true, ..call(name, sequence, us, elements) }
}

/// The end of calls that are launched together.
fn end(last: &Entry, name: &'static str, us: u64) -> Entry {
    let sizes = r#""input_sizes":[],"input_dtypes":[],"output_sizes":[],"output_dtypes":[]"#.to_string();
    Entry { name, us, sizes, state: "completed", ..last.clone() }
}

impl Entry {
    fn took(self, us: u64) -> Entry {
        Entry { duration_us: Some(us), ..self }
    }

    fn state(self, state: &'static str) -> Entry {
        Entry { state, ..self }
    }

    fn group(self, group: &'static str) -> Entry {
        Entry { group, ..self }
    }

    fn json(&self, record_id: u64) -> String {
        let (p2p, collective) = if self.is_p2p { (self.sequence, 0) } else { (0, self.sequence) };
        let duration =
            self.duration_us.map_or(String::new(), |us| format!(r#""duration_ms":{}.{:03},"#, us / 1000, us % 1000));
        format!(
            r#"{{"collective_seq_id":{collective},"p2p_seq_id":{p2p},"is_p2p":{},{duration}{},"op_id":1,"pg_id":0,"process_group":["{}","undefined"],"profiling_name":"{}","record_id":{record_id},"state":"{}","time_created_ns":{},"time_discovered_completed_ns":0,"timeout_ms":600000}}"#,
            self.is_p2p,
            self.sizes,
            self.group,
            self.name,
            self.state,
            1_700_000_000_000_000_000 + 1000 * self.us
        )
    }
}

/// A dump whose recorder had made so many entries before the first. Group `0` has so many ranks, group `1` ranks 0 and 1.
fn dump_from(first_id: u64, rank: u32, world: u32, entries: &[Entry]) -> (String, Vec<u8>) {
    let entries: Vec<String> = (first_id..).zip(entries).map(|(id, e)| e.json(id)).collect();
    let all: Vec<String> = (0..world).map(|r| r.to_string()).collect();
    let text = format!(
        "{{\"comm_lib_version\":\"2.21.5\",\"entries\":[{}],\"pg_config\":{{\"0\":{{\"desc\":\"undefined\",\"name\":\"0\",\"ranks\":\"[{}]\"}},\"1\":{{\"desc\":\"pp\",\"name\":\"1\",\"ranks\":\"[0, 1]\"}}}},\"version\":\"2.10\"}}",
        entries.join(",\n"),
        all.join(", ")
    );
    (format!("nccl_trace_rank_{rank}.json"), text.into_bytes())
}

fn dump(rank: u32, world: u32, entries: &[Entry]) -> (String, Vec<u8>) {
    dump_from(0, rank, world, entries)
}

fn read(dumps: &[(String, Vec<u8>)]) -> Result<Imported, String> {
    parse("dumps", dumps, &ImportOptions::default()).map_err(|e| e.to_string())
}

fn read_waiting(dumps: &[(String, Vec<u8>)]) -> Result<Imported, String> {
    let options = ImportOptions { wait_for_calls: true, ..ImportOptions::default() };
    parse("dumps", dumps, &options).map_err(|e| e.to_string())
}

/// Both ranks of two make these calls.
fn both(entries: &[Entry]) -> Vec<(String, Vec<u8>)> {
    vec![dump(0, 2, entries), dump(1, 2, entries)]
}

/// Ops of a rank as text: what, on which stream, after which ops.
fn ops(imported: &Imported, rank: usize) -> Vec<String> {
    let w = &imported.workload;
    let program = &w.programs[w.ranks[rank].program as usize];
    let one = |i: u32| {
        let op = &program.ops[i as usize];
        let mut text = match op.kind {
            OpKind::Compute { ps, .. } => format!("{} {} us", w.names.get(op.name).unwrap(), ps / 1_000_000),
            OpKind::Collective { op, bytes, .. } => format!("{op:?} {bytes}"),
            OpKind::Send { bytes, peer, .. } => format!("send {bytes} to {}", peer.member),
            OpKind::Recv { bytes, peer, .. } => format!("receive {bytes} from {}", peer.member),
            OpKind::Join => "join".to_string(),
        };
        match op.stream {
            Stream::COMPUTE => {}
            Stream::FREE => text.push_str(" free"),
            stream => write!(text, " on {}", stream.0).unwrap(),
        }
        if !program.deps_of(i).is_empty() {
            write!(text, " after {:?}", program.deps_of(i)).unwrap();
        }
        text
    };
    (0..program.ops.len() as u32).map(one).collect()
}

/// Calls at 0, 10 and 50 us that take 30, 5 and 7 us.
fn three() -> Vec<Entry> {
    vec![
        call("nccl:all_reduce", 1, 0, 1000).took(30),
        call("nccl:all_reduce", 2, 10, 2000).took(5),
        call("nccl:broadcast", 3, 50, 3).took(7),
    ]
}

fn lane(n: u8) -> u8 {
    crate::workload::import::torch::comm_streams().nth(usize::from(n)).unwrap().0
}

#[test]
fn the_host_makes_calls_when_it_made_them() {
    let imported = read(&both(&three())).unwrap();
    let lane_0 = lane(0);
    let expected = [
        format!("AllReduce 4000 on {lane_0}"),
        "host 10 us".to_string(),
        format!("AllReduce 8000 on {lane_0} after [1]"),
        "host 40 us".to_string(),
        format!("Broadcast 12 on {lane_0} after [3]"),
    ];
    assert_eq!(ops(&imported, 0), expected);
    assert_eq!((imported.workload.programs.len(), imported.workload.ranks.len()), (1, 2), "both ranks do the same");
    assert_eq!(
        imported.notes[0],
        "2 dumps with 6 calls; the longest, nccl_trace_rank_1.json, takes 50.0 us from its first call to its last. The host makes its calls when it made them and waits for none, as the recorder does not say what waits for a call; workload.wait_for_calls lets ranks wait for each. What comes before the first call and after the last is not known. Times of calls are simulated"
    );
    assert!(imported.notes[1].starts_with("2 broadcast(s) and reduction(s)") && imported.notes.len() == 2);
}

#[test]
fn ranks_wait_for_calls_if_they_are_told_to() {
    // The first runs until 30 us. The second, made at 10, begins then and ends at 35. The third begins at 50: 15 us of compute before it.
    let imported = read_waiting(&both(&three())).unwrap();
    let lane_0 = lane(0);
    let expected = [
        format!("AllReduce 4000 on {lane_0}"),
        format!("AllReduce 8000 on {lane_0} after [0]"),
        "compute 15 us after [1]".to_string(),
        format!("Broadcast 12 on {lane_0} after [2]"),
    ];
    assert_eq!(ops(&imported, 1), expected);
    assert!(imported.notes[0].contains("Ranks wait for each call"), "{}", imported.notes[0]);
    let untimed: Vec<Entry> = three().into_iter().map(|e| Entry { duration_us: None, ..e }).collect();
    let error = read_waiting(&both(&untimed)).unwrap_err();
    assert!(
        error.contains("2 of 2 calls have no duration_ms") && error.contains("TORCH_NCCL_ENABLE_TIMING=1"),
        "{error}"
    );
    // That of the last call does not matter: nothing is known to follow it.
    let mut last = three();
    last[2].duration_us = None;
    assert!(read_waiting(&both(&last)).is_ok());
}

#[test]
fn calls_of_two_groups_run_beside_each_other() {
    let entries = [call("nccl:all_reduce", 1, 0, 10), call("nccl:all_reduce", 1, 0, 20).group("1")];
    let imported = read(&both(&entries)).unwrap();
    assert_eq!(ops(&imported, 0), [format!("AllReduce 40 on {}", lane(0)), format!("AllReduce 80 on {}", lane(1))]);
    assert_eq!(imported.workload.groups.len(), 2);
}

#[test]
fn each_call_has_its_bytes() {
    let sized = |name, input: &str, output: &str| {
        let sizes = format!(
            r#""input_sizes":{input},"input_dtypes":["BFloat16"],"output_sizes":{output},"output_dtypes":["BFloat16"]"#
        );
        Entry { sizes, ..call(name, 1, 0, 0) }
    };
    let twice = r#""input_sizes":[[2,2],[2,2]],"input_dtypes":["Float","Float"],"output_sizes":[[2],[2]],"output_dtypes":["Float","Float"]"#;
    for (entry, expected) in [
        (sized("nccl:_all_gather_base", "[[5,2]]", "[[20]]"), "AllGather 40"),
        (sized("nccl:all_gather", "[[10]]", "[[2,10]]"), "AllGather 40"),
        (sized("nccl:_reduce_scatter_base", "[[20]]", "[[10]]"), "ReduceScatter 40"),
        (sized("nccl:all_to_all", "[[8]]", "[[8]]"), "AllToAll 16"),
        (sized("nccl:all_reduce_barrier", "[[1]]", "[[1]]"), "Barrier 0"),
        (sized("xccl:reduce", "[[]]", "[[]]"), "Reduce 2"),
        (
            Entry { sizes: twice.to_string(), ..call("nccl:reduce_scatter_tensor_coalesced", 1, 0, 0) },
            "ReduceScatter 32",
        ),
    ] {
        let imported = read(&both(&[entry])).unwrap();
        assert_eq!(ops(&imported, 1), [format!("{expected} on {}", lane(0))]);
    }
}

#[test]
fn messages_that_are_launched_together_wait_for_nothing_among_them() {
    let exchange = |own: u32| {
        let (send, recv) =
            if own == 0 { ("nccl:send 0->1", "nccl:recv 0<-1") } else { ("nccl:send 1->0", "nccl:recv 1<-0") };
        let recv = message(recv, 2, 21, 200).group("1").state("scheduled");
        let send_first = message(send, 2, 20, 200).group("1").state("scheduled");
        let alone = if own == 0 { "nccl:send 0->1" } else { "nccl:recv 1<-0" };
        let end = end(&recv, "nccl:coalesced", 25).took(4);
        dump(own, 2, &[message(alone, 1, 0, 5).group("1"), send_first, recv, end, call("nccl:all_reduce", 1, 30, 9)])
    };
    let imported = read(&[exchange(0), exchange(1)]).unwrap();
    let (alone, together, all) = (lane(0), lane(1), lane(2));
    let expected = [
        format!("send 20 to 1 on {alone}"),
        "host 25 us".to_string(),
        "send 800 to 1 free after [1]".to_string(),
        "receive 800 from 1 free after [1]".to_string(),
        format!("join on {together} after [2, 3]"),
        "host 5 us".to_string(),
        format!("AllReduce 36 on {all} after [5]"),
    ];
    assert_eq!(ops(&imported, 0), expected);
    assert_eq!(ops(&imported, 1)[0], format!("receive 20 from 0 on {alone}"));
}

#[test]
fn broadcasts_that_make_up_a_gathering_are_one() {
    let part = |elements| call("nccl:_broadcast_oop", 1, 1, elements).state("scheduled");
    let parts = [part(3), part(5)];
    let gather = [&parts[..], &[end(&parts[0], "nccl:ALLGATHER_coalesced", 2)]].concat();
    assert_eq!(ops(&read(&both(&gather)).unwrap(), 0), [format!("AllGather 32 on {}", lane(0))]);
    // Without a name of its own each stays what it is.
    let several = [&parts[..], &[end(&parts[0], "nccl:coalesced", 2)]].concat();
    let imported = read(&both(&several)).unwrap();
    assert_eq!(ops(&imported, 0), [format!("Broadcast 12 on {}", lane(0)), format!("Broadcast 20 on {}", lane(0))]);
    assert!(imported.notes.iter().any(|n| n.starts_with("2 time(s) several collectives")), "{:?}", imported.notes);
    let three = [&[part(4)], &gather[..]].concat();
    let error = read(&both(&three)).unwrap_err();
    assert!(error.contains("ends 3 calls as one AllGather of 2 ranks"), "{error}");
}

#[test]
fn a_rank_that_lacks_a_collective_is_named() {
    let call = |sequence, us| call("nccl:all_reduce", sequence, us, 1000 * sequence).state("started");
    let full = [call(1, 0).state("completed"), call(2, 5), call(3, 9)];
    let pp = self::call("nccl:_all_gather_base", 1, 7, 8).group("1");
    let dumps = [dump(0, 4, &full), dump(1, 4, &full), dump(2, 4, &full[..1]), dump(3, 4, &full)];
    let imported = read(&dumps).unwrap();
    let told = "group `0`: rank 2 did not make collective 2, AllReduce of 8000 bytes, which ranks 0-1, 3 made. The last call of rank 2 was record_id 0, AllReduce of 4000 bytes, which ended. If the job hung, ranks wait for this call first. 6 call(s) that not all have made are left out";
    assert_eq!(imported.notes[0], told);
    assert_eq!(ops(&imported, 0), [format!("AllReduce 4000 on {}", lane(0))]);
    // The earliest comes first: rank 1 lacks a call of group `1`, made at 7 us; rank 2 one of group `0`, made at 5.
    let with_pp = [&full[..], &[pp]].concat();
    let dumps = [dump(0, 4, &with_pp), dump(1, 4, &full), dump(2, 4, &full[..1]), dump(3, 4, &full)];
    let notes = read(&dumps).unwrap().notes;
    assert!(notes[0].contains("rank 2 did not make collective 2"), "{notes:?}");
    assert!(
        notes[1].starts_with("group `1`: rank 1 did not make collective 1, AllGather of 32 bytes, which rank 0 made"),
        "{notes:?}"
    );
    // A rank that made none at all.
    let error = read(&[dump(0, 2, &full), dump(1, 2, &[])]).unwrap_err();
    assert!(error.contains("no call is there that all ranks"), "{error}");
}

#[test]
fn a_call_that_all_made_and_that_did_not_end_is_named() {
    let calls = |state| [call("nccl:all_reduce", 1, 0, 8), call("nccl:all_reduce", 2, 5, 16).state(state)];
    let imported = read(&[dump(0, 2, &calls("completed")), dump(1, 2, &calls("started"))]).unwrap();
    let told = "group `0`: all ranks made collective 2, AllReduce of 64 bytes, but it had not ended on rank 1 when the dumps were written; it is simulated as any other";
    assert!(imported.notes.iter().any(|n| n == told), "{:?}", imported.notes);
}

#[test]
fn a_message_without_its_other_end_is_named() {
    let send = |k| message("nccl:send 0->1", k, 10 * k, 6).group("1");
    let receive = message("nccl:recv 1<-0", 1, 3, 6).group("1");
    let dumps = [dump(0, 2, &[send(1), send(2).state("started")]), dump(1, 2, &[receive])];
    let imported = read(&dumps).unwrap();
    let told = "group `1`: rank 1 did not make receive 2 from rank 0, which made the other end, record_id 1, of 24 bytes. If the job hung, ranks wait for this call first. 1 call(s) that not all have made are left out";
    assert_eq!(imported.notes[0], told);
    assert_eq!(ops(&imported, 0), [format!("send 24 to 1 on {}", lane(0))]);
}

#[test]
fn what_a_full_recorder_lost_is_left_out_on_all_ranks() {
    let all = |k: u64| call("nccl:all_reduce", k, 10 * k, 100 * k);
    let few: Vec<Entry> = (3..6).map(all).collect();
    let many: Vec<Entry> = (1..6).map(all).collect();
    let imported = read(&[dump_from(2, 0, 2, &few), dump(1, 2, &many)]).unwrap();
    assert_eq!(ops(&imported, 0), ops(&imported, 1));
    assert_eq!(ops(&imported, 1)[0], format!("AllReduce 1200 on {}", lane(0)));
    assert!(
        imported.notes[0].starts_with("the recorder of rank 0 was full, so that first calls are gone; 2 collective(s)"),
        "{:?}",
        imported.notes
    );
    // A call that was launched with one that is gone.
    let cut = message("nccl:send 0->1", 1, 0, 6).group("1");
    let cut = [&[cut.clone(), end(&cut, "nccl:coalesced", 1)], &few[..]].concat();
    assert_eq!(ops(&read(&[dump_from(1, 0, 2, &cut), dump(1, 2, &many)]).unwrap(), 0), ops(&imported, 0));
    // Later calls that are not there were not recorded, and are no less missing.
    let later = [&few[..1], &[end(&few[1], "nccl:coalesced", 33)], &few[1..]].concat();
    let error = read(&[dump_from(2, 0, 2, &later), dump(1, 2, &many)]).unwrap_err();
    assert!(error.contains("ends calls that were launched together, which are not there"), "{error}");
    // Messages count from the last one, if all ended.
    let sends: Vec<Entry> = (2..4).map(|k| message("nccl:send 0->1", k, k, 5 * k).group("1")).collect();
    let receives: Vec<Entry> = (1..4).map(|k| message("nccl:recv 1<-0", k, k, 5 * k).group("1")).collect();
    let imported = read(&[dump_from(1, 0, 2, &sends), dump(1, 2, &receives)]).unwrap();
    assert_eq!(ops(&imported, 1)[0], format!("receive 40 from 0 on {}", lane(0)));
    let open: Vec<Entry> = receives.iter().map(|e| e.clone().state("started")).collect();
    let error = read(&[dump_from(1, 0, 2, &sends), dump(1, 2, &open)]).unwrap_err();
    assert!(error.contains("rank 0 has 2 sends to rank 1, which has 3 receives; a recorder was full"), "{error}");
}

#[test]
fn one_dump_stands_for_all_if_its_groups_have_all() {
    let gather = Entry {
        sizes: r#""input_sizes":[[10]],"input_dtypes":["Float"],"output_sizes":[[20]],"output_dtypes":["Float"]"#
            .into(),
        ..call("nccl:_all_gather_base", 1, 0, 0)
    };
    let one = [dump(0, 2, &[gather])];
    assert_eq!(read(&one).unwrap().workload.ranks.len(), 2);
    let options = ImportOptions { ranks: Some(8), ..ImportOptions::default() };
    let eight = parse("dumps", &one, &options).unwrap();
    assert_eq!((eight.workload.ranks.len(), ops(&eight, 7)), (8, vec![format!("AllGather 320 on {}", lane(0))]));
    let of_four = parse("dumps", &[dump(0, 4, &[call("nccl:all_reduce", 1, 0, 1).group("1")])], &options);
    let error = of_four.unwrap_err().to_string();
    assert!(error.contains("group `1` has 2 of 4 ranks"), "{error}");
}

#[test]
fn what_a_dump_lacks_is_told_with_what_would_be_right() {
    let ok = dump(0, 2, &three());
    let other = |entries: &[Entry]| read(&[ok.clone(), dump(1, 2, entries)]).unwrap_err();
    let changed = |from: &str, to: &str| {
        let text = String::from_utf8(dump(1, 2, &three()).1).unwrap();
        assert!(text.contains(from), "{from}");
        read(&[ok.clone(), ("nccl_trace_rank_1.json".to_string(), text.replacen(from, to, 1).into_bytes())])
            .unwrap_err()
    };
    let single = |text: &[u8]| read(&[("t.json".into(), text.to_vec())]).unwrap_err();
    let less = Entry { sizes: call("", 0, 0, 999).sizes, ..three()[1].clone() };
    for (error, why) in [
        (
            changed("nccl:all_reduce", "nccl:gather"),
            "entry `nccl:gather` (record_id 0): `gather` has no counterpart here",
        ),
        (changed("nccl:all_reduce", "gloo:all_reduce"), "it is a call of `gloo`, not of NCCL"),
        (changed("nccl:all_reduce", "all_reduce"), "its `profiling_name` has no colon"),
        (changed("nccl:all_reduce", "nccl:send 0-1"), "lacks the two ends of a message"),
        (changed("\"Float\"", "\"Odd\""), "has dtype `Odd`, whose size is not known"),
        (changed("[\"Float\"]", "[]"), "has 1 tensors, but 0 dtypes"),
        (changed("[[1000]]", "[[1000,9999999999999999]]"), "more than"),
        (changed("\"time_created_ns\":17", "\"t\":17"), "no whole number as `time_created_ns`"),
        (changed("\"record_id\":1", "\"record_id\":7"), "record_id 7 follows 0; a dump of all calls"),
        (changed("\"ranks\":\"[0, 1]\"", "\"ranks\":\"\""), "`pg_config` does not say which ranks the group `0` has"),
        (changed("\"ranks\":\"[0, 1]\"", "\"ranks\":\"[1, 1]\""), "has rank 1 twice"),
        (changed("\"ranks\":\"[0, 1]\"", "\"ranks\":\"[0]\""), "does not have rank 1, whose dump this is"),
        (changed("\"version\":\"2.10\"", "\"version\":\"1.4\""), "it has version 1.4; PyTorch from 2.4 on"),
        (changed("\"duration_ms\":0.030", "\"duration_ms\":-3"), "duration_ms -3; a duration is at least 0"),
        (
            other(&[three()[0].clone(), less, three()[2].clone()]),
            "group `0`: as collective 2 rank 0 made AllReduce of 8000 bytes, but rank 1 made AllReduce of 3996 bytes; such a job hangs",
        ),
        (
            other(&[three()[0].clone(), three()[2].clone()]),
            "group `0`: rank 1 lacks collective 2, AllReduce of 8000 bytes, which rank 0 has, and has later ones",
        ),
        (
            other(&[end(&three()[0], "nccl:coalesced", 1)]),
            "entry record_id 0 ends calls that were launched together, which are not there (version 2.10)",
        ),
        (
            other(&[three()[0].clone(), three()[0].clone(), three()[1].clone()]),
            "entries record_id 0 to 1 have the same number, but `coalesced` does not follow",
        ),
        (other(&[message("nccl:send 0->1", 1, 0, 4)]), "it says that its rank is member 0 of its group"),
        (other(&[message("nccl:send 1->2", 1, 0, 4)]), "its other end is member 2 of a group of 2 ranks"),
        (read(&[ok.clone(), dump(0, 2, &three())]).unwrap_err(), "are both of rank 0"),
        (read(&[dump(0, 3, &three()), dump(2, 3, &three())]).unwrap_err(), "of 3 ranks there is no dump of rank 1"),
        (single(b"{\"entries\": [{]}"), "t.json: "),
        (single(b"{}"), "it has no `version` with `entries`"),
        (single(&[0x1f, 0x8b, 8]), "unpack it with gunzip"),
        (
            single(&[0x80, 2, 0x7d]),
            "it is a pickle; a dump as JSON would be right: torch._C._distributed_c10d._dump_nccl_trace_json() writes JSON",
        ),
        (single("[".repeat(100_000).as_bytes()), "t.json: "),
    ] {
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[test]
fn long_and_backward_times_are_told() {
    let late = [three()[0].clone(), call("nccl:all_reduce", 2, 2_000_000_000_000, 1)];
    let error = read(&both(&late)).unwrap_err();
    assert!(error.contains("record_id 1: it was made more than a million seconds after"), "{error}");
    let back = [call("nccl:all_reduce", 1, 10, 1), call("nccl:all_reduce", 2, 4, 1), call("nccl:all_reduce", 3, 15, 1)];
    let imported = read(&both(&back)).unwrap();
    let lane_0 = lane(0);
    assert_eq!(
        ops(&imported, 0),
        [
            format!("AllReduce 4 on {lane_0}"),
            format!("AllReduce 4 on {lane_0}"),
            "host 5 us".into(),
            format!("AllReduce 4 on {lane_0} after [2]")
        ]
    );
    assert!(imported.notes.iter().any(|n| n.starts_with("2 call(s) were made before")), "{:?}", imported.notes);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}", cut in 0usize..3000, position in 0usize..3000, byte in any::<u8>()) {
        let (name, mut bytes) = dump(0, 2, &three());
        let changed = position % bytes.len();
        bytes[changed] = byte;
        bytes.truncate(cut.min(bytes.len()));
        for bytes in [text.into_bytes(), bytes] {
            for wait_for_calls in [false, true] {
                let options = ImportOptions { wait_for_calls, ..ImportOptions::default() };
                let _ = parse("t", &[(name.clone(), bytes.clone())], &options);
                let _ = parse("t", &[(name.clone(), bytes.clone()), dump(1, 2, &three())], &options);
            }
        }
    }
}
