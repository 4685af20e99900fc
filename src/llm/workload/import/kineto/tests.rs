//! Small traces, made by hand, with times worked out by hand.

use std::fmt::Write;

use super::*;
use crate::workload::program::{OpKind, Stream};
use proptest::prelude::*;

/// A kernel of a model: begin and duration in us, and its stream.
fn kernel(ts: f64, dur: f64, stream: u32) -> String {
    format!(
        r#"{{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":{stream},"ts":{ts},"dur":{dur},"args":{{"stream":{stream},"device":0}}}}"#
    )
}

/// A kernel of NCCL with float elements on stream 20, in group 0 of ranks 0 and 1.
fn nccl(ts: f64, dur: f64, more: &str) -> String {
    format!(
        r#"{{"ph":"X","cat":"kernel","name":"ncclDevKernel_X","pid":0,"tid":20,"ts":{ts},"dur":{dur},"args":{{"stream":20,"device":0,"dtype":"Float","Group size":2,"Process Group Name":"0","Process Group Ranks":"[0, 1]",{more}}}}}"#
    )
}

fn all_reduce(ts: f64, dur: f64, elements: u64, sequence: u64) -> String {
    let more = format!(
        r#""Collective name":"allreduce","In msg nelems":{elements},"Out msg nelems":{elements},"Seq":{sequence}"#
    );
    nccl(ts, dur, &more)
}

fn trace(rank: u32, world: u32, events: &[String]) -> (String, Vec<u8>) {
    let events = events.join(",\n");
    let text = format!(
        "{{\"schemaVersion\":1,\"distributedInfo\":{{\"backend\":\"nccl\",\"rank\":{rank},\"world_size\":{world}}},\n\"traceEvents\":[\n{events}]}}"
    );
    (format!("rank{rank}.json"), text.into_bytes())
}

fn read(traces: &[(String, Vec<u8>)]) -> Result<Imported, String> {
    parse("traces", traces, &ImportOptions::default()).map_err(|e| e.to_string())
}

/// Ops of a rank as text: what, on which stream, after which ops.
fn ops(imported: &Imported, rank: usize) -> Vec<String> {
    let w = &imported.workload;
    let program = &w.programs[w.ranks[rank].program as usize];
    let one = |i: u32| {
        let op = &program.ops[i as usize];
        let mut text = match op.kind {
            OpKind::Compute { ps, .. } => format!("{} {} ns", w.names.get(op.name).unwrap(), ps / 1000),
            OpKind::Collective { op, bytes, .. } => format!("{op:?} {bytes}"),
            OpKind::Send { bytes, peer, .. } => format!("send {bytes} to {}", peer.member),
            OpKind::Recv { bytes, peer, .. } => format!("receive {bytes} from {}", peer.member),
            OpKind::Join => "join".to_string(),
        };
        write!(text, " on {}", if op.stream == Stream::COMPUTE { "compute" } else { "comm" }).unwrap();
        if !program.deps_of(i).is_empty() {
            write!(text, " after {:?}", program.deps_of(i)).unwrap();
        }
        text
    };
    (0..program.ops.len() as u32).map(one).collect()
}

/// Two kernels of 10 and 5 us with 1 us of the host between them; an all-reduce that begins 2 us after them, beside a kernel of 20 us; a kernel that begins as the
/// all-reduce ends.
fn step(shift: f64) -> Vec<String> {
    vec![
        kernel(shift + 100.0, 10.0, 7),
        kernel(shift + 111.0, 5.0, 7),
        kernel(shift + 116.0, 20.0, 7),
        all_reduce(shift + 118.0, 30.0, 1000, 1),
        kernel(shift + 149.0, 4.0, 7),
    ]
}

#[test]
fn kernels_keep_their_times_and_wait_as_the_trace_shows() {
    let imported = read(&[trace(0, 2, &step(0.0)), trace(1, 2, &step(5000.0))]).unwrap();
    let expected = [
        // 10 us, 1 us of the host, 5 us: the all-reduce waits for what ended before it.
        "kernels 16000 ns on compute",
        "kernels 20000 ns on compute",
        "host 2000 ns on comm after [0]",
        "AllReduce 4000 on comm",
        // The stream was idle from 136 us on. The all-reduce ended at 148 us, so that 1 us is time of the host.
        "kernels 5000 ns on compute after [3]",
    ];
    assert_eq!(ops(&imported, 0), expected);
    assert_eq!(imported.workload.programs.len(), 1, "both ranks do the same");
    assert_eq!(imported.workload.groups[0].members, [0, 1]);
    let note = "2 traces with 10 kernels; the longest, rank1.json, takes 53.0 us. For 4.0 us of it streams waited for nothing that the trace has: that stays as time of the host. Times of collectives are simulated, not taken from traces";
    assert_eq!(imported.notes[0], note);
}

#[test]
fn waits_that_took_no_time_come_from_events() {
    // The all-reduce ends while the kernel before the last one runs, so that times alone show no wait.
    let events = |sync: Option<&str>| {
        let mut events = vec![
            kernel(0.0, 10.0, 7).replace("\"device\"", "\"correlation\":1,\"device\""),
            all_reduce(10.0, 5.0, 8, 1).replace("\"device\"", "\"correlation\":3,\"device\""),
            kernel(10.0, 20.0, 7).replace("\"device\"", "\"correlation\":4,\"device\""),
            kernel(30.0, 7.0, 7).replace("\"device\"", "\"correlation\":9,\"device\""),
        ];
        events.extend(sync.map(str::to_string));
        events
    };
    let read = |sync| read(&[trace(0, 2, &events(sync)), trace(1, 2, &events(sync))]).unwrap();
    let without = ops(&read(None), 0);
    assert_eq!(without[2], "kernels 27000 ns on compute");
    let sync = r#"{"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","ts":1,"dur":1,"args":{"stream":7,"correlation":6,"wait_on_stream":20,"wait_on_cuda_event_record_corr_id":5}}"#;
    let with_sync = read(Some(sync));
    assert_eq!(ops(&with_sync, 0)[2..], ["kernels 20000 ns on compute", "kernels 7000 ns on compute after [1]"]);
    let hint = |i: &Imported| i.notes.iter().any(|note| note.contains("enable_cuda_sync_events"));
    assert!(hint(&read(None)) && !hint(&with_sync), "{:?}", with_sync.notes);
}

#[test]
fn each_call_has_its_bytes() {
    for (call, expected) in [
        (r#""Collective name":"_allgather_base","In msg nelems":10,"Out msg nelems":20"#, "AllGather 80"),
        (r#""Collective name":"allgather","In msg nelems":10"#, "AllGather 80"),
        (r#""Collective name":"_reduce_scatter_base","In msg nelems":10,"Out msg nelems":5"#, "ReduceScatter 40"),
        (
            r#""Collective name":"all_to_allv","In msg nelems":10,"Out msg nelems":10,"In split size":"[5, 5]""#,
            "AllToAll 40",
        ),
        (r#""Collective name":"broadcast","In msg nelems":3,"Out msg nelems":3"#, "Broadcast 12"),
        (r#""Collective name":"barrier""#, "Barrier 0"),
    ] {
        let events = [kernel(0.0, 1.0, 7), nccl(1.0, 2.0, call)];
        let imported = read(&[trace(0, 2, &events), trace(1, 2, &events)]).unwrap();
        assert_eq!(ops(&imported, 1)[1], format!("{expected} on comm after [0]"));
    }
}

#[test]
fn messages_go_to_the_rank_they_name() {
    let call = |name: &str, field: &str, rank: u32| {
        nccl(1.0, 2.0, &format!(r#""Collective name":"{name}","In msg nelems":6,"Out msg nelems":6,"{field}":{rank}"#))
    };
    let sends = [kernel(0.0, 1.0, 7), call("send", "Dst Rank", 1)];
    let receives = [kernel(0.0, 1.0, 7), call("recv", "Src Rank", 0)];
    let imported = read(&[trace(0, 2, &sends), trace(1, 2, &receives)]).unwrap();
    assert_eq!(ops(&imported, 0)[1], "send 24 to 1 on comm after [0]");
    assert_eq!(ops(&imported, 1)[1], "receive 24 from 0 on comm after [0]");
    let to_itself = [kernel(0.0, 1.0, 7), call("send", "Dst Rank", 0)];
    let error = read(&[trace(0, 2, &to_itself), trace(1, 2, &receives)]).unwrap_err();
    assert!(error.contains("Dst Rank 0 is not another rank of its group `0`"), "{error}");
}

#[test]
fn one_trace_stands_for_all_if_its_groups_have_all() {
    let gather = nccl(10.0, 2.0, r#""Collective name":"_allgather_base","In msg nelems":10,"Out msg nelems":20"#);
    let one = [trace(0, 2, &[kernel(0.0, 10.0, 7), gather])];
    let imported = read(&one).unwrap();
    assert_eq!((imported.workload.ranks.len(), ops(&imported, 1)[1].as_str()), (2, "AllGather 80 on comm after [0]"));
    let options = ImportOptions { ranks: Some(8), ..ImportOptions::default() };
    let eight = parse("traces", &one, &options).unwrap();
    assert_eq!((eight.workload.ranks.len(), ops(&eight, 7)[1].as_str()), (8, "AllGather 320 on comm after [0]"));
    assert_eq!(eight.workload.groups[0].members.len(), 8);
    let of_four = parse("traces", &[trace(0, 4, &step(0.0))], &options).unwrap_err().to_string();
    assert!(of_four.contains("its group `0` has 2 of 4 ranks"), "{of_four}");
}

#[test]
fn groups_come_from_what_the_trace_has() {
    let members = |ranks: &str, more: &str, info: &str| {
        let event = all_reduce(1.0, 1.0, 4, 1)
            .replace("\"Process Group Ranks\":\"[0, 1]\"", &format!("\"Process Group Ranks\":{ranks}{more}"));
        let traces = [0, 1].map(|rank| {
            let (name, bytes) = trace(rank, 2, &[kernel(0.0, 1.0, 7), event.clone()]);
            let text = String::from_utf8(bytes).unwrap().replace("\"backend\"", &format!("{info}\"backend\""));
            (name, text.into_bytes())
        });
        read(&traces).map(|i| i.workload.groups[0].members.clone())
    };
    assert_eq!(members("[0, 1]", "", "").unwrap(), [0, 1]);
    assert_eq!(members("\"[0, ..., 1]\"", ",\"Global rank start\":0,\"Global rank stride\":1", "").unwrap(), [0, 1]);
    let listed = r#""pg_config":[{"pg_name":"0","ranks":[1, 0]}],"#;
    assert_eq!(members("\"\"", "", listed).unwrap(), [1, 0]);
    assert_eq!(members("\"[0, ..., 1]\"", "", "").unwrap(), [0, 1], "a group of all ranks");
    for (ranks, why) in [
        ("\"[0, 0]\"", "has rank 0 twice"),
        ("\"[0, 1, 2]\"", "has size 2, but 3 ranks"),
        ("\"[1, 2]\"", "does not have rank 0"),
    ] {
        let error = members(ranks, "", "").unwrap_err();
        assert!(error.contains(why) && error.contains("rank0.json: event at ts 1, `ncclDevKernel_X`"), "{error}");
    }
}

#[test]
fn what_a_trace_lacks_is_told_with_what_would_be_right() {
    let ok = trace(0, 2, &step(0.0));
    let other = |events: &[String]| read(&[ok.clone(), trace(1, 2, events)]).unwrap_err();
    let without = |word: &str| step(0.0).iter().map(|e| e.replace(word, "\"x\"")).collect::<Vec<_>>();
    for (error, why) in [
        (other(&without("\"Collective name\"")), "does not say its collective; PyTorch from 2.3 on notes it"),
        (other(&without("\"In msg nelems\"")), "`allreduce` has no `In msg nelems`"),
        (other(&without("\"dtype\"")), "has dtype ``, whose size is not known"),
        (other(&without("\"dur\"")), "has no number as `dur`"),
        (other(&step(0.0)[..3]), "group `0`: it has 0 collectives, rank0.json has 1"),
        (other(&[kernel(0.0, 1.0, 7), all_reduce(2.0, 1.0, 999, 1)]), "is AllReduce of 3996 bytes, that of rank0.json"),
        (other(&[kernel(0.0, 1.0, 7), all_reduce(2.0, 1.0, 1000, 2)]), "has Seq 2, that of rank0.json has Seq 1"),
        (other(&[]), "it has no GPU kernels; profile with ProfilerActivity.CUDA"),
        (other(&[kernel(0.0, -1.0, 7)]), "has dur -1; a duration is at least 0"),
        (other(&[kernel(0.0, 1e15, 7)]), "more than a million seconds"),
        (
            other(&[kernel(0.0, 1.0, 7), kernel(0.0, 1.0, 8).replace("\"device\":0", "\"device\":1")]),
            "one process for each GPU",
        ),
        (read(std::slice::from_ref(&ok)).map(|_| String::new()).unwrap_or_default(), ""),
        (read(&[ok.clone(), trace(0, 2, &step(0.0))]).unwrap_err(), "are both of rank 0"),
        (
            read(&[ok.clone(), trace(2, 3, &[kernel(0.0, 1.0, 7)])]).unwrap_err(),
            "of 3 ranks there is no trace of rank 1",
        ),
        (read(&[("t.json".into(), b"{\"traceEvents\": [{]}".to_vec())]).unwrap_err(), "t.json: "),
        (read(&[("t.json".into(), b"{}".to_vec())]).unwrap_err(), "export_chrome_trace"),
        (read(&[("t.json".into(), vec![0x1f, 0x8b, 8])]).unwrap_err(), "unpack it with gunzip"),
        (read(&[("t.json".into(), vec![0x80, 4, 0x95])]).unwrap_err(), "it is a pickle"),
        (read(&[("t.json".into(), b"[1]".to_vec())]).unwrap_err(), "line 1 column"),
        (read(&[("t.json".into(), "[".repeat(100_000).into_bytes())]).unwrap_err(), "t.json: "),
    ] {
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[test]
fn uneven_exchanges_are_noted() {
    let exchange = |elements: u64| {
        let call = format!(
            r#""Collective name":"all_to_allv","In msg nelems":{elements},"Out msg nelems":8,"In split size":"[1, {}]""#,
            elements - 1
        );
        vec![kernel(0.0, 1.0, 7), nccl(1.0, 1.0, &call)]
    };
    let imported = read(&[trace(0, 2, &exchange(10)), trace(1, 2, &exchange(30))]).unwrap();
    assert_eq!(ops(&imported, 0)[1], "AllToAll 120 on comm after [0]");
    assert!(imported.notes.iter().any(|n| n.starts_with("2 all-to-all(s) send parts of different sizes")));
    assert!(imported.notes.iter().any(|n| n.starts_with("1 all-to-all(s) have other sizes on other ranks")));
}

#[test]
fn ranks_come_from_the_trace_or_the_name() {
    let rank_by_name = |name: &str| files::rank_of(name, &events::KinetoTrace::default());
    for (name, rank) in [
        ("out/rank3.json", Some(3)),
        ("out/host1_rank_12.1722.pt.trace.json", Some(12)),
        ("trace.0007.json", Some(7)),
        ("worker5-trace.json", Some(5)),
        ("trace.json", None),
        ("é7é.json", Some(7)),
    ] {
        assert_eq!(rank_by_name(name), rank, "{name}");
    }
    let named = events::KinetoTrace { rank: Some(9), ..events::KinetoTrace::default() };
    assert_eq!(files::rank_of("rank3.json", &named), Some(9));
    assert_eq!(ops(&read(&[trace(1, 2, &step(0.0)), trace(0, 2, &step(0.0))]).unwrap(), 0).len(), 5);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}", cut in 0usize..3000, position in 0usize..3000, byte in any::<u8>()) {
        let (name, mut bytes) = trace(0, 2, &step(0.0));
        let changed = position % bytes.len();
        bytes[changed] = byte;
        bytes.truncate(cut.min(bytes.len()));
        for bytes in [text.into_bytes(), bytes] {
            let _ = parse("t", &[(name.clone(), bytes.clone())], &ImportOptions::default());
            let _ = parse("t", &[(name.clone(), bytes), trace(1, 2, &step(0.0))], &ImportOptions::default());
        }
    }
}
