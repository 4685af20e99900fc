//! The page of a cluster over days: where time went, servers over time, jobs that could not fill their NICs.

use std::time::Duration;

use serde_json::json;

use super::browser::Browser;
use crate::support::program::Folder;

/// What a page of a large cluster is to open within on a machine that does nothing else, and what a test allows that shares it with others.
const AIM: Duration = Duration::from_secs(2);
const SLACK: u32 = 4;

const SWEEP: &str = r#"
name = "month"
[base]
fidelity.mode = "job"
cluster.gpus = 256
topology = { kind = "rail-optimized", servers_per_pod = 8, oversubscription = 4 }
jobs = { count = 50, min_gpus = 8, max_gpus = 128, load = 1.0, comm_mib = "8:2000" }
failures = { host_mtbf_h = 400.0, drain_every_h = 10.0, hot_spares = 2 }
scheduler.placement = "spread"
output.cluster_map = true
[axes]
"scheduler.iterations_at" = ["flow", "none"]
"failures.repair_h" = [4.0, 40.0]
"#;

#[test]
fn servers_over_time_and_crowded_links_are_drawn() {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let done = folder.run(&["run", "s.toml", "--out", "o", "--quiet"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let page = folder.file("o/report.html");
    let bytes = std::fs::metadata(&page).unwrap().len();
    assert!(bytes < 1 << 20, "{bytes} bytes");
    let mut b = Browser::start();
    let took = b.open(&page);
    assert!(took < AIM * SLACK, "{took:?}");
    assert_eq!(b.complaints, Vec::<String>::new());
    assert_eq!(b.eval("document.querySelectorAll('canvas.map').length"), json!(4));
    // Servers that are used, that are down and that stand by have colours of their own.
    let colours = "(() => { const c = document.querySelector('canvas.map'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; \
                   return new Set([...Array(d.length / 4).keys()].map((i) => d.slice(4 * i, 4 * i + 3).join())).size; })()";
    assert!(b.eval(colours).as_u64().unwrap() > 5);
    let crowded = b.text("document.getElementById('congestion').textContent");
    assert!(crowded.contains("set off by") && crowded.contains("->"), "{crowded}");
    let broken = b.eval("document.getElementById('main').textContent.match(/undefined|NaN|\\[object|Infinity/)");
    assert!(broken.is_null(), "{broken}");
    b.eval(
        "document.querySelector('canvas.map').dispatchEvent(new MouseEvent('mousemove', { clientX: 0, clientY: 0 }))",
    );
    b.eval("(() => { const c = document.querySelector('canvas.map'), r = c.getBoundingClientRect(); c.dispatchEvent(new MouseEvent('mousemove', { clientX: r.left + 3, clientY: r.top + 3 })); })()");
    let title = b.text("document.querySelector('canvas.map').title");
    assert!(title.starts_with("servers 0 to 0, hours 0 to"), "{title}");
}
