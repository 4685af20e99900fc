//! What leaves its rail and what does not: sends of pipelines by relays (PXN), and rings by NCCL_CROSS_NIC.

use crate::support::program::Folder;

/// Runs a sweep on servers of four H100 on rails that spines join, with these files beside it. Returns its folder, what the program said, and its exit code.
fn ran(workload: &str, servers: u32, files: &[(&str, &str)], set: &[&str]) -> (Folder, String, i32) {
    let sweep = format!(
        "name = \"r\"\n[base]\ncluster = {{ gpu = \"h100\", gpus = {}, gpus_per_server = 4 }}\n\
         topology = {{ kind = \"rail-optimized\", servers_per_pod = {servers}, spines = 4, link_gbps = 400 }}\n\
         transport = {{ cc = \"none\" }}\noutput = {{ flows = true, links = true }}\nworkload = {workload}\n",
        4 * servers
    );
    let folder = Folder::new(&[&[("s.toml", sweep.as_str())], files].concat());
    let mut args = vec!["run", "s.toml", "--out", "out", "--engine", "cpu"];
    set.iter().for_each(|setting| args.extend(["--set", setting]));
    let ran = folder.run(&args);
    (folder, ran.stderr + &ran.stdout, ran.code)
}

/// Bytes on links whose name satisfies a condition.
fn bytes_on(folder: &Folder, is_counted: impl Fn(&str) -> bool) -> f64 {
    let links = folder.column("out/links.csv", "link").into_iter().zip(folder.numbers("links", "bytes"));
    links.filter(|(name, _)| is_counted(name)).map(|(_, bytes)| bytes).sum()
}

fn makespan_us(folder: &Folder) -> f64 {
    folder.numbers("results", "makespan_ns")[0] / 1000.0
}

/// The second stage of a pipeline lies two GPUs further: rank 0 sends to rank 6, at place 2 of the other server.
const STAGES: &str = "id,ranks,kind,bytes,peer\nto,0,send,8000000,6\nfrom,6,recv,8000000,0\n";
const GRAPH: &str = "{ kind = \"dag\", path = \"graph.csv\", ranks = 8 }";

#[test]
fn stages_at_other_places_send_by_the_gpu_on_their_rail() {
    let run = |set: &[&str]| {
        let (folder, said, code) = ran(GRAPH, 2, &[("graph.csv", STAGES)], set);
        assert_eq!(code, 0, "{said}");
        folder
    };
    let nics =
        |folder: &Folder| [0, 2].map(|host| bytes_on(folder, |name| name == format!("host{host}->leaf{host}")) > 8e6);
    let spines = |folder: &Folder| bytes_on(folder, |name| name.contains("->spine"));
    for nvlink in ["cluster.nvlink=analytic", "cluster.nvlink=packet"] {
        let (relayed, direct) = (run(&[nvlink]), run(&[nvlink, "workload.pxn=false"]));
        assert_eq!((nics(&relayed), spines(&relayed)), ([false, true], 0.0), "{nvlink}");
        assert!(nics(&direct) == [true, false] && spines(&direct) > 8e6, "{nvlink}");
        // 8 MB at 400 Gb/s are 160 us, and headers 8. The relay waits for a chunk of NVLink, 0.3 us and its latency, and not for all.
        let (relayed_us, direct_us) = (makespan_us(&relayed), makespan_us(&direct));
        assert!((168.0..185.0).contains(&relayed_us), "{nvlink}: {relayed_us} us");
        assert!((relayed_us - direct_us).abs() < 8.0, "{nvlink}: {relayed_us} us by a relay, {direct_us} us without");
    }
    // Without NVLink nobody relays.
    let apart = run(&["cluster.nvlink_gbps=0"]);
    assert_eq!(nics(&apart), [true, false]);
}

#[test]
fn relays_are_the_way_where_rails_do_not_meet() {
    let rail_only =
        |set: &[&str]| ran(GRAPH, 2, &[("graph.csv", STAGES)], &[&["topology.kind=rail-only"], set].concat());
    let (folder, said, code) = rail_only(&[]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(folder.numbers("flows", "bytes"), [8e6]);
    let (_, said, code) = rail_only(&["workload.pxn=false"]);
    assert!(code != 0, "{said}");
}

#[test]
fn rings_cross_rails_as_nccl_cross_nic_says() {
    let all_reduce = "{ kind = \"collective\", op = \"all-reduce\", bytes = 16777216, algorithm = \"ring\" }";
    let run = |set: &[&str]| {
        let (folder, said, code) = ran(all_reduce, 4, &[], set);
        assert_eq!(code, 0, "{said}");
        let spines = bytes_on(&folder, |name| name.contains("->spine"));
        (folder.text("out/flows.csv"), spines)
    };
    let own = run(&[]);
    assert_eq!(own.1, 0.0, "rings stay on their rails");
    for value in ["0", "2"] {
        let set = format!("workload.nccl.NCCL_CROSS_NIC={value}");
        assert!(run(&[set.as_str()]) == own, "{value} is as without");
    }
    // A ring of 16 GPUs carries 30/16 of the data over each hop, and each of four hops between servers now crosses a spine. Headers, acknowledgements and
    // LL128's flags come on top.
    let crossing = run(&["workload.nccl.NCCL_CROSS_NIC=1"]).1;
    let expected = f64::from(16 << 20) * 30.0 / 16.0 * 4.0;
    assert!((1.0..1.25).contains(&(crossing / expected)), "{crossing} bytes, {expected} of data");
    // Trees begin and end at one NIC.
    let tree = |set: &[&str]| run(&[&["workload.algorithm=tree"], set].concat());
    assert!(tree(&["workload.nccl.NCCL_CROSS_NIC=1"]) == tree(&[]));
}
