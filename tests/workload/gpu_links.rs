//! Links inside a server are those of the GPU, unless keys or a server say others; what nothing says is refused.

use crate::support::program::Folder;

/// Bus bandwidth, Gb/s, of the experiments of a sweep of one collective.
fn busbw(cluster: &str, workload: &str, axes: &str) -> Vec<f64> {
    let sweep = format!(
        "name = \"links\"\n[base]\ncost = {{ gpu_usd = 1, gpu_watts = 1 }}\ncluster = {{ gpus = 8, {cluster} }}\ntransport = {{ cc = \"none\", payload_bytes = 4096 }}\n\
         workload = {{ kind = \"collective\", bytes = 268435456, {workload} }}\n[axes]\n{axes}\n"
    );
    let folder = Folder::new(&[("s.toml", &sweep)]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--quiet"]);
    assert_eq!(ran.code, 0, "{sweep}\n{}", ran.stderr);
    let gbps = folder.column("o/results.csv", "busbw_gbps");
    gbps.iter().map(|gbps| gbps.parse().unwrap_or_else(|e| panic!("{gbps:?}: {e}"))).collect()
}

/// What `plan` says of a sweep that cannot run.
fn refused(cluster: &str) -> String {
    let sweep = format!(
        "name = \"links\"\n[base]\ncost = {{ gpu_usd = 1, gpu_watts = 1 }}\ncluster = {{ gpus = 16, {cluster} }}\nworkload = {{ kind = \"collective\", op = \"all-reduce\" }}\n"
    );
    let own = "fp32_tflops = 60\ntf32_tflops = 500\nbf16_tflops = 900\nfp16_tflops = 900\nfp8_tflops = 1800\nsustained = 0.8\nmemory_gb_per_s = 3000\nmemory_efficiency = 0.8\nmemory_gib = 80\nl2_mib = 50\nl2_gb_per_s = 9000\nsms = 130\ntile_step = 16\ncluster = 2\nlaunch_ns = 3000\n";
    let folder = Folder::new(&[
        ("s.toml", &sweep),
        ("silent.toml", own),
        ("said.toml", &format!("{own}links = \"pcie\"\nlinks_gbps = 512\n")),
    ]);
    let ran = folder.run(&["plan", "s.toml"]);
    if ran.code == 0 { String::new() } else { ran.stderr }
}

#[test]
fn collectives_have_the_links_of_their_gpu() {
    let names = ["a100", "h100", "b200", "l40s", "h100-pcie", "mi300x"];
    let axis = format!("\"cluster.gpu\" = {names:?}");
    let found = busbw("gpus_per_server = 8", "op = \"all-reduce\", algorithm = \"ring\"", &axis);
    for ((name, gbps), own) in names.iter().zip(&found).zip([2400.0, 3600.0, 7200.0, 256.0, 512.0, 3584.0]) {
        assert!((0.4 * own..=own).contains(gbps), "{name}: {gbps} of {own} Gb/s");
    }
}

/// Two GPUs of a mesh have one link, three have two each, eight have all.
#[test]
fn a_mesh_is_a_link_a_pair() {
    let link = 512.0;
    let within = |found: f64, links: f64, what: &str| {
        assert!(
            (0.4 * links * link..=links * link).contains(&found),
            "{what}: {found} of {links} links of {link} Gb/s"
        );
    };
    for nvlink in ["analytic", "packet"] {
        let cluster = format!("gpu = \"mi300x\", nvlink = \"{nvlink}\"");
        let ranks = busbw(&cluster, "op = \"all-gather\", algorithm = \"direct\"", "\"workload.ranks\" = [2, 3, 8]");
        for (found, links) in ranks.iter().zip([1.0, 2.0, 7.0]) {
            within(*found, links, &format!("all-gather, {nvlink}"));
        }
        let send = busbw(&cluster, "op = \"send-recv\"", "\"workload.ranks\" = [8]");
        within(send[0], 1.0, &format!("send-recv, {nvlink}"));
    }
    // Two GPUs at a switch have the bandwidth of all their links.
    let switch = busbw("gpu = \"h100\"", "op = \"all-gather\", algorithm = \"direct\"", "\"workload.ranks\" = [2]");
    assert!(switch[0] > 1500.0, "{switch:?}");
}

/// Rings across servers go through a mesh by all its links, so that links do not bound them to one.
#[test]
fn rings_across_servers_use_the_mesh() {
    let found =
        busbw("gpu = \"mi300x\"", "op = \"all-gather\", algorithm = \"ring\", channels = 8", "\"cluster.gpus\" = [16]");
    assert!((1000.0..=3200.0).contains(&found[0]), "{found:?}");
}

#[test]
fn traffic_inside_a_server_has_the_links_of_a_pair() {
    let sweep = "name = \"ring\"\n[base]\ncluster = { gpus = 8 }\nworkload = { kind = \"traffic\", pattern = \"ring\", bytes = 64000000 }\n\
                 [axes]\n\"cluster.gpu\" = [\"mi300x\", \"h100\"]\n";
    let folder = Folder::new(&[("s.toml", sweep)]);
    assert_eq!(folder.run(&["run", "s.toml", "--out", "o", "--quiet"]).code, 0);
    let took: Vec<f64> = folder.column("o/results.csv", "makespan_ns").iter().map(|ns| ns.parse().unwrap()).collect();
    // 512 Mbit over 0.512 Tb/s, and 3.6 Tb/s; latencies of half a microsecond out and back.
    assert_eq!(took, [1_001_000.0, 143_222.222]);
}

#[test]
fn explicit_keys_win() {
    let op = "op = \"all-reduce\", algorithm = \"ring\"";
    let axis = "\"cluster.gpu\" = [\"l40s\", \"a100\"]";
    let found = busbw("nvlink_gbps = 1200", op, axis);
    assert!(found.iter().all(|gbps| (480.0..=1200.0).contains(gbps)), "{found:?}");
    let of_server = busbw("server = \"dgx-a100\"", op, axis);
    assert!(of_server.iter().all(|gbps| (1000.0..=2400.0).contains(gbps)), "{of_server:?}");
}

#[test]
fn what_nothing_says_is_refused_with_the_key() {
    for (cluster, words) in [
        ("gpu = \"v100\"", ["cluster.nvlink_gbps", "cluster.server = \"dgx-1v\""]),
        ("gpu = \"gh200\"", ["cluster.nvlink_gbps", "NVL32"]),
        ("gpu = \"mi300x\", gpus_per_server = 16", ["cluster.gpus_per_server", "at most 8 GPUs"]),
        ("gpu = { bf16_tflops = 900.0 }", ["cluster.nvlink_gbps", "links_gbps"]),
        ("gpu = { }", ["cluster.nvlink_gbps", "in the table `like`"]),
        ("gpu = { like = \"h1000\" }", ["`cluster.gpu", "like = \"h1000\" names no GPU; one of a100"]),
        ("gpu = { like = \"h100\", links = \"pcie\" }", ["cluster.gpu", "links_gbps is missing"]),
        ("gpu = \"silent.toml\"", ["silent.toml", "links_gbps"]),
    ] {
        let told = refused(cluster);
        assert!(words.iter().all(|word| told.contains(word)), "{cluster}: {told}");
    }
    for cluster in [
        "gpu = \"v100\", nvlink_gbps = 1200",
        "gpu = \"v100\", server = \"dgx-1v\"",
        "gpu = \"v100\", gpus_per_server = 1",
        "gpu = { like = \"h100\", name = \"x\" }",
        "gpu = \"said.toml\"",
        "gpu = \"silent.toml\", nvlink_gbps = 900",
    ] {
        let told = refused(&format!("{cluster}, nics_per_server = 1"));
        assert_eq!(told, "", "{cluster}");
    }
}

/// What `plan` says of hardware that was not measured and of axes that it cannot judge, where communication is simulated as packets.
#[test]
fn plans_tell_what_no_machine_stands_for() {
    let planned = |cluster: &str, workload: &str, axes: &str| {
        let sweep = format!(
            "name = \"told\"\n[base]\ncluster = {{ gpus = 16, {cluster} }}\nworkload = {{ {workload} }}\n[axes]\n{axes}\n"
        );
        let folder = Folder::new(&[("s.toml", &sweep)]);
        let ran = folder.run(&["plan", "s.toml"]);
        assert_eq!(ran.code, 0, "{sweep}\n{}", ran.stderr);
        ran.stdout
    };
    let model = "kind = \"model\", tp = 8, global_batch = 8, \
        model = { name = \"small\", transformer = { layers = 2, hidden = 128, heads = 8, seq = 128, vocab = 1024 } }";
    let collective = "kind = \"collective\", op = \"all-reduce\"";
    let gpus = "\"cluster.gpu\" = [\"h100\", \"l40s\"]";
    for (cluster, workload, axes, told) in [
        ("server = \"dgx-h100\"", model, gpus, "warning: no kernels of l40s were measured"),
        (
            "server = \"dgx-h100\"",
            collective,
            gpus,
            "warning: cluster.gpu = l40s is not the GPU of cluster.server = dgx-h100",
        ),
        ("gpus_per_server = 8", collective, gpus, "warning: cluster.gpu = l40s names no server"),
        (
            "nics_per_server = 1",
            collective,
            "\"cluster.gpus_per_server\" = [8, 16]",
            "warning: this sweep is no judge of",
        ),
    ] {
        let text = planned(cluster, workload, axes);
        assert!(text.contains(told), "{told}: {text}");
    }
}
