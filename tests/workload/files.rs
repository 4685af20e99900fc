//! Workload files of other tools: what they become, and every diagnostic.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::inputs;
use hyperfold_base::units::{PS_PER_NS, PS_PER_US};
use hyperfold_llm::collective::CollectiveOp;
use hyperfold_llm::workload::critical_path::free_makespan as drive;
use hyperfold_llm::workload::import::{self, ImportOptions, Imported, WorkloadFormat};
use hyperfold_llm::workload::inspect::{Summary, summary};
use hyperfold_llm::workload::program::{Dim, OpKind, Phase, Stream, Workload};
use hyperfold_llm::workload::repeat::repeat;
use hyperfold_llm::workload::rescale::{Factor, rescale};
use hyperfold_llm::workload::{StartUnit, export, read_flows};
use hyperfold_network::topology::{TopologyFormat, read_topology};

fn corpus(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(kind)
}

/// One line a file of the folder: the error it gives, or `ok` and what was read.
fn messages(kind: &str, read: impl Fn(&Path) -> Result<String, String>) -> String {
    let folder = corpus(kind);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let shown = format!("{}{}", folder.display(), std::path::MAIN_SEPARATOR);
    let row = |file: PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().to_string();
        let read = read(&file);
        assert_eq!(read.is_ok(), name.starts_with("ok"), "{name}: {read:?}");
        match read {
            Ok(what) => format!("{name} ok: {}", what.replace(&shown, "")),
            Err(e) => {
                assert!(e.contains(&name), "{name}: the message does not name the file: {e}");
                e.replace(&shown, "")
            }
        }
    };
    files.into_iter().map(row).collect::<Vec<_>>().join("\n")
}

/// A workload in a line. It must come to its end.
fn line(i: &Imported) -> String {
    let s = summary(&i.workload);
    let drove = drive(&i.workload).unwrap_or_else(|e| panic!("{e}"));
    let bytes: Vec<String> =
        s.collective_bytes.iter().map(|((d, op), a)| format!("{d:?} {op:?} {}x{}", a.count, a.bytes)).collect();
    let messages: Vec<String> =
        s.message_bytes.iter().map(|(d, a)| format!("{d:?} send {}x{}", a.count, a.bytes)).collect();
    let notes = if i.notes.is_empty() { String::new() } else { format!("; notes: {}", i.notes.join("; ")) };
    format!(
        "{} ranks, {} programs, {} ops; {}; compute {} ns, makespan {} ns{notes}",
        s.ranks,
        s.programs,
        s.ops,
        [bytes, messages].concat().join(", "),
        s.compute_ps / PS_PER_NS,
        drove / PS_PER_NS
    )
}

#[test]
fn simai_files() {
    insta::assert_snapshot!(messages("simai", |p| import::simai::read(p, &ImportOptions::default())
        .map(|i| line(&i))
        .map_err(|e| e.to_string())));
}

#[test]
fn htsim_files() {
    insta::assert_snapshot!(messages("htsim", |p| {
        let i = import::htsim::read(p, &ImportOptions::default()).map_err(|e| e.to_string())?;
        Ok(format!(
            "{}; flows {:?}",
            line(&i),
            i.flows
                .as_ref()
                .map(|f| f.iter().map(|f| (f.src_rank, f.dst_rank, f.bytes, f.start_ps)).collect::<Vec<_>>())
        ))
    }));
}

#[test]
fn goal_files() {
    insta::assert_snapshot!(messages("goal", |p| import::goal::read(p, &ImportOptions::default())
        .map(|i| line(&i))
        .map_err(|e| e.to_string())));
}

#[test]
fn htsim_topologies() {
    insta::assert_snapshot!(messages("topo", |p| {
        let net = read_topology(p, TopologyFormat::Htsim).map_err(|e| e.to_string())?.network;
        let links: Vec<String> = net
            .links
            .iter()
            .map(|l| format!("{}-{} {}G {}ns", l.a, l.b, l.rate_bps / 1_000_000_000, l.delay_ps as f64 / 1000.0))
            .collect();
        Ok(format!("{} nodes, {} ranks, {}", net.nodes.len(), net.ranks.len(), links.join(" ")))
    }));
}

#[test]
fn every_file_of_others_is_read_or_refused_for_a_reason() {
    let Some(inputs) = inputs::folder() else { return };
    let mut files = Vec::new();
    inputs::entries(&inputs, &mut files);
    let mut rows = Vec::new();
    for file in files.iter().filter(|f| f.extension().is_none_or(|e| e != "md")) {
        let name = file.strip_prefix(&inputs).unwrap().display().to_string();
        // Executing 9,216 ranks takes minutes here; the fewest of the same shape do the same program.
        let options = if name.contains("workload_analytical") {
            ImportOptions { ranks: Some(384), ..ImportOptions::default() }
        } else {
            ImportOptions::default()
        };
        let row = match (name.split('/').next().unwrap(), import::guess(file)) {
            ("topology", _) => {
                topology(file, if name.contains("simai") { TopologyFormat::Simai } else { TopologyFormat::Ns3 })
            }
            _ if name.ends_with(".topo") => topology(file, TopologyFormat::Htsim),
            ("traffic", _) => {
                let net = read_topology(&inputs.join("topology/hpcc_fat.txt"), TopologyFormat::Ns3).unwrap().network;
                read_flows(file, &net, Some(StartUnit::S))
                    .map(|f| format!("ns-3 flows: {} flows, {} left out", f.flows.len(), f.left_out))
                    .map_err(|e| e.to_string())
            }
            (_, Some(format)) => import::read(file, format, &options).map_err(|e| e.to_string()).map(|i| {
                if format == WorkloadFormat::Chakra {
                    let back = chakra(&i.workload);
                    assert_eq!((totals(&back), drive(&back)), (totals(&i.workload), drive(&i.workload)), "{name}");
                }
                format!("{format:?}: {}", line(&i))
            }),
            (_, None) => panic!("{name}: no reader"),
        };
        let row = row.unwrap_or_else(|e| format!("REFUSED {e}"));
        rows.push(format!("{name}: {}", row.replace(&format!("{}/", inputs.display()), "")));
    }
    insta::assert_snapshot!(rows.join("\n"));
}

fn topology(file: &Path, format: TopologyFormat) -> Result<String, String> {
    let net = read_topology(file, format).map_err(|e| e.to_string())?.network;
    Ok(format!("{format:?} topology: {} ranks, {} nodes, {} links", net.ranks.len(), net.nodes.len(), net.links.len()))
}

fn simai(text: &str) -> Workload {
    import::simai::parse("test", text, &ImportOptions::default()).unwrap().workload
}

/// A pipeline of `pp` stages, `vpp` chunks, `ga` micro-batches; rows of 100 ns forward, 200 ns backward.
fn pipeline(pp: u32, vpp: u32, ga: u32) -> Workload {
    let mut text = format!(
        "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: {pp} vpp: {vpp} ga: {ga} all_gpus: {} pp_comm: 4096\n",
        4 * pp
    );
    let rows = 1 + 2 * vpp;
    text += &format!("{}\n", ga * rows);
    for _ in 0..ga {
        text += "embedding_layer -1 0 NONE 0 0 NONE 0 0 NONE 0 0\n";
        for _ in 1..rows {
            text += "mlp -1 100 ALLREDUCE 64 150 NONE 0 50 NONE 0 0\n";
        }
    }
    simai(&text)
}

#[test]
fn a_pipeline_has_the_bubble_and_the_bytes_of_the_formulas() {
    for (pp, vpp, ga) in [(2, 1, 1), (4, 1, 8), (3, 1, 2), (4, 2, 8), (2, 3, 4), (4, 2, 4)] {
        let w = pipeline(pp, vpp, ga);
        let work = u64::from(ga * 2 * vpp) * 300 * PS_PER_NS;
        // Narayanan et al. (SC21): the bubble is (p - 1) / (m v) of the work.
        let bubble = work * u64::from(pp - 1) / u64::from(ga * vpp);
        let makespan = drive(&w).unwrap_or_else(|e| panic!("pp {pp} vpp {vpp} ga {ga}: {e}"));
        assert_eq!(makespan, work + bubble, "pp {pp} vpp {vpp} ga {ga}");
        // Each boundary between chunks is crossed once a micro-batch in either direction, by each of 4 ranks a stage.
        let crossings = u128::from(2 * ga * (pp * vpp - 1) * 4);
        assert_eq!(summary(&w).message_bytes[&Dim::Pp].bytes, crossings * 4096, "pp {pp} vpp {vpp} ga {ga}");
    }
}

#[test]
fn a_pipeline_that_cannot_be_interleaved_or_cut_says_so() {
    let uneven = "HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ep: 1 pp: 2 vpp: 2 ga: 3 all_gpus: 2 pp_comm: 4\n3\n"
        .to_string()
        + &"embedding_layer -1 10 NONE 0 10 NONE 0 10 NONE 0 0\n".repeat(3);
    let i = import::simai::parse("test", &uneven, &ImportOptions::default()).unwrap();
    assert!(i.notes.iter().any(|n| n.contains("vpp 2 is read as 1")), "{:?}", i.notes);
    drive(&i.workload).unwrap();
    let uncut = uneven.replace("ga: 3", "ga: 2");
    let i = import::simai::parse("test", &uncut, &ImportOptions::default()).unwrap();
    assert!(i.notes.iter().any(|n| n.contains("count as one micro-batch")), "{:?}", i.notes);
    drive(&i.workload).unwrap();
}

#[test]
fn simai_groups_lie_as_simai_places_them() {
    let w = simai(
        "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 2 all_gpus: 8\n1\nmoe -1 1 ALLTOALL_EP 64 1 ALLREDUCE 64 1 REDUCESCATTER_DP_EP 64 0\n",
    );
    let members = |rank: usize, op: CollectiveOp| {
        let r = &w.ranks[rank];
        let slot = w.programs[r.program as usize].ops.iter().find_map(|o| match o.kind {
            OpKind::Collective { op: this, slot, .. } if this == op => Some(slot),
            _ => None,
        });
        w.groups[r.groups[slot.unwrap() as usize] as usize].members.clone()
    };
    assert_eq!(members(3, CollectiveOp::AllReduce), [2, 3]);
    assert_eq!(members(3, CollectiveOp::AllToAll), [1, 3]);
    assert_eq!(members(6, CollectiveOp::AllToAll), [4, 6]);
    assert_eq!(members(3, CollectiveOp::ReduceScatter), [3, 7]);
}

#[test]
fn a_checkpoint_repeats_the_forward_pass_before_its_segment() {
    let rows =
        "a -1 1 NONE 0 10 NONE 0 0 NONE 0 0\nb -1 2 NONE 0 20 NONE 0 0 NONE 0 0\nc -1 4 NONE 0 40 NONE 0 0 NONE 0 0\n";
    let text = |marks: &str| {
        format!("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 all_gpus: 1 {marks}\n3\n{rows}")
    };
    let total = |marks: &str| summary(&simai(&text(marks))).compute_ps / PS_PER_NS;
    assert_eq!(total("checkpoints: 0 checkpoint_initiates: 0"), 77);
    assert_eq!(total("checkpoints: 1 0 checkpoint_initiates: 1 2"), 77 + 1 + 2);
    assert_eq!(total("checkpoints: 2 0 1 checkpoint_initiates: 1 2"), 77 + 2);
}

/// A trace of one rank by the exporter: (kind, deps) an operation.
fn traces(w: &Workload) -> Vec<(String, Vec<u8>)> {
    (0..w.ranks.len() as u32).map(|r| (format!("trace.{r}.et"), export::chakra::trace(w, r).unwrap())).collect()
}

fn chakra(w: &Workload) -> Workload {
    let groups = export::chakra::groups_file(w);
    import::chakra::parse(
        "traces",
        &traces(w),
        groups.as_deref().map(|g| ("comm_group.json", g)),
        &ImportOptions::default(),
    )
    .unwrap()
    .workload
}

/// Computations and their picoseconds; calls and bytes of each kind of collective; bytes of messages.
type Totals = (u64, u64, Vec<((Dim, CollectiveOp), u64, u128)>, u128);

/// Sums that no form may change.
fn totals(w: &Workload) -> Totals {
    let s: Summary = summary(w);
    let communication = s.collective_bytes.iter().map(|(&k, a)| (k, a.count, a.bytes)).collect();
    (s.computes, s.compute_ps, communication, s.message_bytes.values().map(|a| a.bytes).sum())
}

fn fixtures() -> Vec<(String, Workload)> {
    let mut out = vec![("pipeline".to_string(), pipeline(2, 2, 4))];
    for (kind, format) in
        [("simai", WorkloadFormat::Simai), ("htsim", WorkloadFormat::Htsim), ("goal", WorkloadFormat::Goal)]
    {
        let mut files: Vec<PathBuf> = fs::read_dir(corpus(kind)).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        for file in files.iter().filter(|f| f.file_name().unwrap().to_string_lossy().starts_with("ok")) {
            out.push((
                file.display().to_string(),
                import::read(file, format, &ImportOptions::default()).unwrap().workload,
            ));
        }
    }
    out
}

#[test]
fn chakra_traces_read_back_as_the_graph_that_was_written() {
    for (name, w) in fixtures() {
        let once = chakra(&w);
        assert_eq!(totals(&once), totals(&w), "{name}");
        assert_eq!(drive(&once), drive(&w), "{name}");
        // A graph that came from traces has nothing that traces cannot say: it comes back equal.
        assert_eq!(chakra(&once), once, "{name}");
    }
}

#[test]
fn simai_text_reads_back_with_the_same_work() {
    let mut written = 0;
    for (name, w) in fixtures() {
        match export::simai::text(&w) {
            Ok(text) => {
                let back = simai(&text);
                assert_eq!(totals(&back), totals(&w), "{name}:\n{text}");
                assert_eq!(drive(&back), drive(&w), "{name}:\n{text}");
                assert_eq!(export::simai::text(&back).unwrap(), text, "{name}");
                written += 1;
            }
            Err(e) => assert!(
                name.contains("pipeline") || !name.contains("simai") || name.contains("micro") || name.contains("data"),
                "{name}: {e}"
            ),
        }
    }
    assert!(written >= 3, "{written}");
}

#[test]
fn flow_files_are_written_where_starts_are_fixed() {
    let matrix = import::htsim::read(&corpus("htsim").join("ok-flows.cm"), &ImportOptions::default()).unwrap();
    assert_eq!(
        export::flows::text(&matrix.workload).unwrap(),
        "2\n0 1 3 100 1000 0.000000000000\n1 2 3 100 2000 0.000001500000\n"
    );
    let triggers = import::htsim::read(&corpus("htsim").join("ok-triggers.cm"), &ImportOptions::default()).unwrap();
    assert!(triggers.flows.is_none());
    let e = export::flows::text(&triggers.workload).unwrap_err().to_string();
    assert!(e.contains("a flow file cannot say it"), "{e}");
}

/// Bytes of a trace by hand: protobuf as the schema numbers it, not as this project's writer does.
fn by_hand(nodes: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![7, 0x0a, 5, b'0', b'.', b'0', b'.', b'4'];
    for n in nodes {
        out.push(n.len() as u8);
        out.extend_from_slice(n);
    }
    out
}

fn read_by_hand(ranks: u32, nodes: &[&[u8]]) -> Result<Imported, String> {
    let traces: Vec<_> = (0..ranks).map(|r| (format!("t.{r}.et"), by_hand(nodes))).collect();
    import::chakra::parse("traces", &traces, None, &ImportOptions::default()).map_err(|e| e.to_string())
}

/// A collective: type 7, comm_type (int64) and comm_size 300 (int64).
fn collective(kind: u8) -> Vec<u8> {
    let mut n = vec![0x08, 1, 0x12, 1, b'c', 0x18, 7, 0x52, 13, 0x0a, 9];
    n.extend_from_slice(b"comm_type");
    n.extend_from_slice(&[0x48, kind, 0x52, 14, 0x0a, 9]);
    n.extend_from_slice(b"comm_size");
    n.extend_from_slice(&[0x48, 0xac, 0x02]);
    n
}

#[test]
fn chakra_sizes_count_what_a_rank_begins_with() {
    for (kind, op, bytes) in [
        (0, CollectiveOp::AllReduce, 300),
        (2, CollectiveOp::AllGather, 1200),
        (5, CollectiveOp::Broadcast, 300),
        (6, CollectiveOp::AllToAll, 300),
        (7, CollectiveOp::ReduceScatter, 300),
        (9, CollectiveOp::Barrier, 0),
    ] {
        let w = read_by_hand(4, &[&collective(kind)]).unwrap().workload;
        let OpKind::Collective { op: read, bytes: size, .. } = w.programs[0].ops[0].kind else { panic!("{kind}") };
        assert_eq!((read, size), (op, bytes));
    }
    assert!(read_by_hand(4, &[&collective(3)]).unwrap_err().contains("gather, is not supported"));
    assert!(read_by_hand(4, &[&collective(10)]).unwrap_err().contains("comm_type 10"));
}

/// A compute node of 2 us with these dependencies: control (field 4) and data (field 5).
fn compute(id: u8, ctrl: &[u8], data: &[u8]) -> Vec<u8> {
    let mut n = vec![0x08, id, 0x18, 4, 0x38, 2];
    ctrl.iter().for_each(|&d| n.extend_from_slice(&[0x20, d]));
    if !data.is_empty() {
        n.extend_from_slice(&[0x2a, data.len() as u8]);
        n.extend_from_slice(data);
    }
    n
}

#[test]
fn chakra_graphs_are_checked() {
    let chain = read_by_hand(1, &[&compute(3, &[2], &[]), &compute(1, &[], &[]), &compute(2, &[], &[1])]).unwrap();
    assert_eq!(drive(&chain.workload), Ok(6 * PS_PER_US));
    assert_eq!(chain.workload.programs[0].ops[0].stream, Stream::FREE);
    let cases: [(&[&[u8]], &str); 5] = [
        (
            &[&compute(1, &[], &[2]), &compute(2, &[1], &[]), &compute(3, &[], &[1])],
            "t.0.et: node 2: it waits for itself",
        ),
        (&[&compute(1, &[], &[9])], "t.0.et: node 1: it depends on node 9, which the trace does not have"),
        (&[&compute(1, &[9], &[])], "t.0.et: node 1: it depends on node 9, which the trace does not have"),
        (&[&compute(1, &[], &[]), &compute(1, &[], &[])], "t.0.et: node 1: two nodes have this id"),
        (&[&compute(1, &[], &[1])], "t.0.et: node 1: it depends on itself"),
    ];
    for (nodes, expected) in cases {
        let e = read_by_hand(1, nodes).unwrap_err();
        assert!(e.starts_with(expected), "{e}");
    }
    // A length beyond the file, a type without a meaning, a collective that ranks disagree on.
    assert!(read_by_hand(1, &[&[0x08, 1, 0x18, 9]]).unwrap_err().contains("type 9 is none of"));
    let mut cut = by_hand(&[&compute(1, &[], &[])]);
    cut.pop();
    let cut = import::chakra::parse("traces", &[("t.0.et".to_string(), cut)], None, &ImportOptions::default())
        .unwrap_err()
        .to_string();
    assert!(cut.starts_with("t.0.et: byte 8: a node: a length of 6 bytes is more than the 5 that are left"), "{cut}");
    let differ =
        [("t.0.et".to_string(), by_hand(&[&collective(0)])), ("t.1.et".to_string(), by_hand(&[&collective(2)]))];
    let differ = import::chakra::parse("traces", &differ, None, &ImportOptions::default()).unwrap_err().to_string();
    assert!(differ.contains("collective 0 of a group of 2 ranks differs: rank 0 has AllReduce of 300 bytes, rank 1 has AllGather of 600 bytes"), "{differ}");
}

#[test]
fn one_trace_stands_for_many_ranks_if_asked() {
    let trace = [("t.0.et".to_string(), by_hand(&[&collective(0)]))];
    let options = ImportOptions { ranks: Some(16), ..ImportOptions::default() };
    let w = import::chakra::parse("traces", &trace, None, &options).unwrap().workload;
    assert_eq!((w.ranks.len(), w.programs.len(), w.groups[0].members.len()), (16, 1, 16));
    let two = [trace[0].clone(), trace[0].clone()];
    assert!(
        import::chakra::parse("traces", &two, None, &options)
            .unwrap_err()
            .to_string()
            .contains("only a single trace can stand for more")
    );
}

#[test]
fn trace_files_are_found_by_folder_prefix_and_name() {
    let root = tempfile::tempdir().unwrap();
    let w = simai("MICRO\n1\nm -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4096 1\n");
    for (rank, (_, bytes)) in traces(&w).into_iter().enumerate() {
        fs::write(root.path().join(format!("run.{rank}.et")), bytes).unwrap();
    }
    let read = |p: &Path| import::chakra::read(p, &ImportOptions::default());
    let whole = read(root.path()).unwrap().workload;
    assert_eq!(whole.ranks.len(), 8);
    assert_eq!(read(&root.path().join("run")).unwrap().workload, whole);
    assert_eq!(import::guess(&root.path().join("run")), Some(WorkloadFormat::Chakra));
    assert_eq!(read(&root.path().join("run.3.et")).unwrap().workload.ranks.len(), 1);
    fs::remove_file(root.path().join("run.3.et")).unwrap();
    let e = read(root.path()).unwrap_err().to_string();
    assert!(e.contains("there is a trace of rank 4, but none of rank 3"), "{e}");
    assert!(read(&root.path().join("other")).unwrap_err().to_string().contains("no `.et` file is there"));
}

#[test]
fn rescaling_multiplies_sizes_and_durations() {
    let mut w = pipeline(2, 1, 2);
    let before = summary(&w);
    rescale(&mut w, "1/2".parse().unwrap(), "2.5".parse().unwrap()).unwrap();
    let after = summary(&w);
    assert_eq!(after.total_bytes() * 2, before.total_bytes());
    assert_eq!(after.compute_ps * 2, before.compute_ps * 5);
    assert_eq!(drive(&w).unwrap() * 2, drive(&pipeline(2, 1, 2)).unwrap() * 5);
    for bad in ["0", "-1", "1/0", "x", "1e9", ""] {
        assert!(bad.parse::<Factor>().is_err(), "{bad}");
    }
    let huge: Factor = "1e6".parse().unwrap();
    rescale(&mut w, huge, huge).unwrap();
    rescale(&mut w, huge, Factor::ONE).unwrap_err();
}

#[test]
fn an_iteration_begins_where_the_one_before_ended() {
    for (name, w) in fixtures() {
        let mut three = w.clone();
        repeat(&mut three, 3);
        assert_eq!(summary(&three).compute_ps, 3 * summary(&w).compute_ps, "{name}");
        let (once, thrice) = (drive(&w).unwrap(), drive(&three).unwrap());
        // Stages of a pipeline end at different times, so iterations may overlap across ranks, never within one.
        assert!(thrice <= 3 * once && thrice >= once, "{name}: {once}, {thrice}");
        let ends = &three.programs[0].iteration_ends;
        assert_eq!((ends.len(), ends[2]), (3, three.programs[0].ops.len() as u32), "{name}");
    }
    let mut w = pipeline(1, 1, 2);
    let once = drive(&w).unwrap();
    repeat(&mut w, 4);
    assert_eq!(drive(&w).unwrap(), 4 * once);
}

#[test]
fn phases_and_dimensions_are_kept_for_the_breakdown() {
    let w = simai(
        "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 4\n1\nm -1 5 ALLREDUCE 64 7 ALLREDUCE 64 11 ALLREDUCE 64 13\n",
    );
    for w in [chakra(&w), w] {
        let s = summary(&w);
        let phases: Vec<_> = s.phase_ps.iter().map(|(p, ps)| (*p, ps / PS_PER_NS)).collect();
        // The update time follows each of the three collectives.
        assert_eq!(phases, [(Phase::Forward, 5 + 13), (Phase::Backward, 7 + 11 + 13), (Phase::Optimizer, 13)]);
        assert_eq!(s.collective_bytes.keys().map(|(d, _)| *d).collect::<Vec<_>>(), [Dim::Tp, Dim::Dp]);
        // The weight-gradient collective blocks nothing.
        assert_eq!(drive(&w), Ok((5 + 13 + 7 + 13 + 11 + 13) * PS_PER_NS));
    }
}
