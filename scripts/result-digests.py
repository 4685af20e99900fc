#!/usr/bin/env python3
"""Digests of what a hyperfold binary writes, to see that a change of the code changes no result.

    scripts/result-digests.py BINARY --out FILE            run every case, write one line per case and file
    scripts/result-digests.py BINARY --compare FILE        run every case, say which lines differ (exit 1 if any does)
    scripts/result-digests.py BINARY --compare FILE --engine gpu --every
                                                           the same on a GPU: the lines are the same
    scripts/result-digests.py BINARY --compare FILE --memo off
                                                           the same for cases that are folded, without a memo: the lines are the same

FILE of the repository: tests/digests/results.sha256. Cases are every sweep under experiments/ at small size, each case of experiments/contention folded in two ways, and 300
random sweeps, drawn from a fixed seed, each with fidelity.fast_forward "off", "exact" and "steady". A line is `case file digest`; the digest is the first 16 digits of the SHA-256 of
results.csv, flows.csv, links.csv and (where a case has them) rtt.csv, rtt_means.csv, jobs.csv and shared_links.csv. A case that fails has a line `exit` with its code, and the rows of failed.csv.

Of stats.csv the names of columns, times and sizes in memory do not count; it is compared only where a run is one experiment on one thread, as the memo's hits
of several depend on which comes first. Cases of experiments/contention are named by a digest of their content, so that files may be renamed. Everything runs in a temporary folder.

What is not run, and why, is in SKIPPED below and is printed.
"""
import argparse
import concurrent.futures
import csv
import hashlib
import io
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXPERIMENTS = ROOT / "experiments"
RANDOM_SWEEPS = 300
MODES = ("off", "exact", "steady")
FILES = ("results.csv", "flows.csv", "links.csv", "rtt.csv", "rtt_means.csv", "jobs.csv", "shared_links.csv")
# Columns of results.csv that do not count: hashes of all keys, which every new key changes, and columns that are younger than the recorded digests.
NOT_COUNTED = {"config_key", "exp_key", "algorithm", "protocol", "channels"}
NOT_COUNTED |= {"validated_error", "validated_class", "validated_mean_error", "validated_p90_error", "validated_rows"}
NOT_COUNTED |= {"validated_latency_error", "validated_latency_mean_error", "validated_latency_p90_error"}
NOT_COUNTED |= {"retransmissions"}
MEMORY_BYTES = 8 << 30
CPU_S = 60
TIMEOUT_S = 600

# Sweeps under experiments/, with what makes them small.
SMALL = {
    "papers/arcadia-buffers": ["workload.bytes=1000000"],
    "papers/arcadia-congestion": ["jobs.simulated_hours=48"],
    "papers/arcadia-groups": [],
    "papers/arcadia-job-sizes": ["jobs.count=100"],
    "papers/arcadia-link-rates": ["workload.microbatch=512"],
    "papers/arcadia-pauses": ["workload.bytes=1000000"],
    "papers/arcadia-queue-pairs": ["workload.bytes=1000000"],
    "papers/arcadia-shared-hosts": ["job.one.bytes=1000000", "job.two.bytes=1000000"],
    "papers/arcadia-stranding": ["jobs.count=200"],
    "papers/arcadia-training-speed": ["jobs.count=100", "jobs.simulated_hours=24"],
    "papers/moye-chunks": [],
    "papers/moye-layouts": [],
    "papers/moye-memory": [],
    "papers/moye-simulation-time": [],
    "papers/multiverse-balancing": ["workload.global_batch=128"],
    "papers/multiverse-priorities": ["workload.global_batch=128"],
    "papers/multiverse-priorities-packets": ["cluster.gpus=64", "topology.k=8", "workload.global_batch=4", "workload.seq=64"],
    "papers/multiverse-groups": [],
    "papers/simai-link-rates": [],
    "papers/simai-scale-up": [],
    "quickstart": ["workload.bytes=10000"],
    "reference-cases": [],
    "studies/checkpoint-interval": [],
    "studies/checkpoint-storage": [],
    "studies/cluster-of-models": ["jobs.count=6"],
    "studies/collectives": ["cluster.gpus=16"],
    "studies/data-parallel-100000": ["cluster.gpus=64", "topology.servers_per_pod=4", "workload.dp=64", "workload.global_batch=256", "workload.seq=128"],
    "studies/elastic-jobs": [],
    "studies/fair-shares": [],
    "studies/flow-beside-golden-topologies": ["fidelity.mode=flow"],
    "studies/flow-beside-packets": [],
    "studies/folding": ["workload.global_batch=8", "workload.seq=64"],
    "studies/gpt3-13b-128": ["workload.seq=64", "workload.global_batch=4", "workload.analytic=tp,dp"],
    "studies/gpt3-175b-54000": ["cluster.gpus=192", "topology.servers_per_pod=4", "workload.dp=4", "workload.global_batch=32", "workload.seq=128"],
    "studies/inference-experts": [],
    "studies/inference-grouped-queries": ["workload.output_tokens=50"],
    "studies/inference-published": [],
    "studies/inference-serving": ["workload.request_count=40", "workload.output_tokens=50"],
    "studies/large-cluster": ["jobs.count=100"],
    "studies/maintenance": [],
    "studies/mixtral-8x7b-64": ["workload.seq=64", "workload.global_batch=8", "workload.analytic=tp,dp"],
    "studies/optimize": ["workload.analytic=dp", "workload.seq=128"],
    "studies/parallelism": ["workload.seq=128"],
    "studies/pipeline-schedules": [],
    "studies/schedulers": [],
    "studies/shared-cluster-month": ["cluster.gpus=2048", "jobs.count=60", "jobs.max_gpus=1024", "topology.servers_per_pod=16"],
    "studies/spares": [],
    "studies/contended-jobs": [],
    "studies/spraying": [],
    "studies/failing-links": [],
    "studies/slow-links": [],
    "studies/lossy-links": [],
    "studies/port-failover": [],
    "studies/ultra-ethernet": [],
    "studies/ultra-ethernet-beside-htsim": [],
    "studies/ultra-ethernet-slow-links": [],
    "studies/optical-circuits": [],
    "studies/queues-further-on": [],
    "studies/weighed-ports": [],
    "studies/flowlets": ["workload.bytes=200000"],
    "studies/traffic-classes": [],
    "studies/switches-that-reduce": ["job.train.bytes=1048576"],
    "studies/kineto": [],
    "studies/flight-recorder": [],
    "studies/classes-by-dimension": ["job.neighbour.iterations=1"],
    "studies/fabrics-1024": ["cluster.gpus=128", "workload.seq=128", "fidelity.mode=flow", "fidelity.join=collectives"],
    "studies/fabrics-16384": [],
    "studies/failed-link-routing": ["workload.bytes=1000000"],
    "studies/failed-link-training": ["workload.seq=128"],
    "studies/storage-beside-training": [],
    "studies/topology-search-10k": ["workload.analytic=all", "sweep.samples=2"],
    "studies/topologies-13b": ["workload.seq=64", "workload.global_batch=8"],
    "studies/two-jobs": ["job.train.bytes=1000000", "job.other.bytes=1000000", "job.noise.duration_ns=200000"],
    "suites/simai-v1": ["workload.analytic=all"],
    "suites/wormhole-cc": ["workload.seq=64", "transport.payload_bytes=9000"],
    "suites/wormhole-models": ["workload.seq=64", "transport.payload_bytes=9000"],
    "suites/wormhole-table1": ["workload.seq=64", "workload.analytic=all"],
    "suites/wormhole-thresholds": ["workload.seq=64", "transport.payload_bytes=9000"],
    "suites/wormhole-topologies": ["workload.seq=64", "transport.payload_bytes=9000"],
    "suites/wormhole-trace": ["workload.seq=64", "workload.analytic=all", "workload.global_batch=32"],
    "suites/wormhole-trace-small": ["workload.seq=64", "workload.global_batch=32", "transport.payload_bytes=9000"],
}
LIMIT = {"studies/topologies-13b": 2, "studies/classes-by-dimension": 3, "studies/fabrics-16384": 2, "studies/failed-link-training": 3, "studies/contended-jobs": 4, "studies/fair-shares": 3, "papers/arcadia-buffers": 10, "papers/arcadia-link-rates": 2, "papers/arcadia-shared-hosts": 6, "papers/moye-chunks": 12, "papers/moye-memory": 14, "papers/multiverse-balancing": 2, "papers/multiverse-priorities": 2, "studies/inference-experts": 6, "papers/arcadia-queue-pairs": 7, "papers/moye-layouts": 1, "papers/multiverse-groups": 20, "papers/simai-scale-up": 12, "suites/wormhole-models": 3, "suites/wormhole-table1": 9, "suites/simai-v1": 2, "studies/parallelism": 8, "suites/wormhole-trace": 1}
# Cases that repeat so much that they take minutes without a memo: 2,000 and 140 million packet-hops.
NEEDS_MEMO = {"studies/topologies-13b", "studies/flow-beside-packets"}
SKIPPED = [
    "suites/simai-v1: experiments 2 to 6, suites/wormhole-table1: experiments 9 to 23, suites/wormhole-models: experiments 3 to 7, suites/wormhole-trace: experiments 1 to 5, studies/parallelism: experiments 8 to 30: "
    "hundreds of GPUs, minutes or gigabytes each",
    "communication of suites/simai-v1, suites/wormhole-table1, suites/wormhole-trace, studies/gpt3-13b-128, studies/mixtral-8x7b-64 is analytic where it would be large",
    "experiments/models and experiments/wormhole-models hold model shapes, not sweeps; studies/contended-jobs and suites/wormhole-* run them",
    "experiments/validation: `hyperfold validate` runs it",
]


# ---- Random sweeps. Only Random.random() is used: its sequence is the same in every version of Python. ----

class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed).random

    def whole(self, low, high):
        return low + int(self.random() * (high - low + 1))

    def pick(self, *of):
        return of[self.whole(0, len(of) - 1)]

    def chance(self, percent):
        return self.random() * 100 < percent

    def size(self, low, high):
        """Log-uniform, sometimes on a packet's boundary."""
        n = int(low * (high / low) ** self.random())
        return max(n // 1000, 1) * 1000 if self.chance(40) else n

    def pair(self, n):
        a = self.whole(0, n - 1)
        return a, (a + self.whole(1, n - 1)) % n


KINDS = ("traffic", "collective", "dag", "flows", "model", "traffic", "simai", "collective", "htsim", "goal", "chakra")
CONTROLS = ("hpcc", "dcqcn", "timely", "dctcp", "none")
TOPOLOGIES = ("rail-optimized", "fat-tree", "clos", "rail-only", "file", "rail-optimized", "clos")
OPS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce", "send-recv", "barrier")
ALGORITHMS = ("auto", "ring", "tree", "halving-doubling", "direct", "hierarchical", "nvls", "in-network")
PATTERNS = ("incast", "permutation", "ring", "all-to-all", "poisson")


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace('"', '\\"') + '"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + " }"
    return repr(value)


def ns3_topology(draw, hosts):
    """Hosts 0 .. hosts-1, a tree of switches with a second link here and there."""
    switches = draw.whole(1, 4)
    rate = draw.pick(25, 100, 200, 400)
    delay = draw.pick("1us", "500ns", "2us", "0.0015ms")
    links = [f"{hosts + s} {hosts + draw.whole(0, s - 1)} {draw.pick(rate, rate, 100)}Gbps {delay} 0" for s in range(1, switches)]
    if switches > 1 and draw.chance(40):
        links.append(links[0])
    links += [f"{h} {hosts + draw.whole(0, switches - 1)} {rate}Gbps {delay} 0" for h in range(hosts)]
    return f"{hosts + switches} {switches} {len(links)}\n{' '.join(str(hosts + s) for s in range(switches))}\n" + "\n".join(links) + "\n"


def simai_topology(draw, servers, per_server):
    gpus = servers * per_server
    nvswitches, leaf = range(gpus, gpus + servers), gpus + servers
    rate = draw.pick(100, 200, 400)
    links = [f"{g} {gpus + g // per_server} 2880Gbps 0.000025ms 0" for g in range(gpus)] + [f"{g} {leaf} {rate}Gbps 0.0005ms 0" for g in range(gpus)]
    return f"{gpus + servers + 1} {per_server} {servers} 1 {len(links)} H100\n{' '.join(map(str, nvswitches))} {leaf}\n" + "\n".join(links) + "\n"


def htsim_topology(draw, hosts):
    radix, latency, gbps = hosts // 2, draw.pick(500, 1000, 2000), draw.pick(100, 200)
    return (f"Nodes {hosts}\nTiers 2\nPodsize {hosts}\n\nTier 0\nDownlink_speed_Gbps {gbps}\nRadix_Down {radix}\nRadix_Up 2\nDownlink_Latency_ns {latency}\n"
            f"Switch_Latency_ns {draw.pick(0, 300)}\nOversubscribed {radix * gbps // 200}\n\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 2\nDownlink_Latency_ns {latency}\n")


def dag(draw, ranks):
    lines, last = ["id,ranks,kind,duration_ns,bytes,group,peer,tag,stream,deps"], {}
    for i in range(draw.whole(3, 24)):
        what = draw.whole(0, 9)
        if what < 5:
            src, dst = draw.pair(ranks)
            size, delay = draw.size(100, 8_000_000), draw.whole(1, 60_000)
            after = last.get(src, "") if draw.chance(50) else f"c{i}"
            lines.append(f"c{i},{src},compute,{delay},,,,,free,")
            lines.append(f"m{i},{src},send,,{size},,{dst},{i},free,{after}")
            lines.append(f"r{i},{dst},recv,,{size},,{src},{i},free,")
            last[src], last[dst] = f"m{i}", f"r{i}"
        elif what < 8:
            step = draw.pick(1, 2)
            group = " ".join(str(r) for r in range(draw.whole(0, step - 1), ranks, step))
            lines.append(f"k{i},{group},{draw.pick('all-reduce', 'all-gather', 'reduce-scatter', 'all-to-all')},,{draw.size(1000, 16_000_000)},{group},,,,")
        else:
            lines.append(f"w{i},0-{ranks - 1},compute,{draw.whole(1, 20_000)},,,,,,")
    return "\n".join(lines) + "\n"


def flows(draw, hosts):
    rows = []
    incast = draw.whole(0, hosts - 1) if draw.chance(40) else None
    same = draw.size(1000, 400_000) if draw.chance(40) else None
    spread = draw.pick(0, 0, 1000, 50_000)
    for _ in range(draw.whole(1, 24)):
        src, dst = draw.pair(hosts)
        if incast is not None:
            src, dst = (incast + draw.whole(1, hosts - 1)) % hosts, incast
        rows.append(f"{src} {dst} 3 100 {same or draw.size(500, 16_000_000)} {draw.whole(0, spread)}")
    return f"{len(rows)}\n" + "\n".join(rows) + "\n"


def simai(draw, gpus):
    tp, ep, pp = draw.pick((2, 1, 1), (4, 1, 1), (2, 2, 1), (2, 1, 2), (1, 1, 2))
    header = f"model_parallel_NPU_group: {tp} ep: {ep} pp: {pp} vpp: 1 ga: {draw.whole(1, 3) if pp > 1 else 1} all_gpus: {gpus}" + (f" pp_comm {draw.size(1000, 100_000)}" if pp > 1 else "")
    b = lambda: draw.size(1000, 4_000_000)
    rows = []
    for i in range(draw.whole(1, 4)):
        c1, c2, n1, n2 = draw.whole(100, 9000), draw.whole(100, 9000), b(), b()
        rows.append(f"layer{i} -1 {c1} ALLREDUCE {n1} {c2} ALLREDUCE {n2} {c2} NONE 0 10")
        if ep > 1:
            rows.append(f"moe{i} -1 {c1} ALLTOALL_EP {n1} {c1} ALLTOALL_EP {n2} 0 REDUCESCATTER_DP_EP {n2} 0")
    rows.append(f"grad -1 1 NONE 0 1 NONE 0 1 {draw.pick('ALLREDUCE', 'ALLGATHER', 'REDUCESCATTER')} {b()} 100")
    return f"HYBRID_TRANSFORMER{draw.pick('', '_FWD_IN_BCKWD')} {header}\n{len(rows)}\n" + "\n".join(rows) + "\n"


def htsim(draw, hosts):
    n = draw.whole(2, 16)
    rows, triggers = [], []
    for i in range(1, n + 1):
        src, dst = draw.pair(hosts)
        if triggers and draw.chance(40):
            rows.append(f"{src}->{dst} id {i} trigger {triggers[-1]} size {draw.size(500, 8_000_000)}")
        else:
            rows.append(f"{src}->{dst} id {i} start {draw.whole(0, 20_000_000)} size {draw.size(500, 8_000_000)}")
        if i < n and not (triggers and triggers[-1] == i) and draw.chance(40) and not any(r.endswith(f"send_done_trigger {i}") for r in rows):
            triggers.append(i)
            rows[-1] += f" send_done_trigger {i}"
            # The next flow waits for it.
    used = [t for t in triggers if any(f" trigger {t} size" in r for r in rows)]
    rows = [r if not (m := re.search(r" send_done_trigger (\d+)$", r)) or int(m.group(1)) in used else r[: m.start()] for r in rows]
    return f"Nodes {hosts}\nConnections {len(rows)}\nTriggers {len(used)}\n" + "\n".join(rows + [f"trigger id {t} oneshot" for t in used]) + "\n"


def goal(draw, ranks):
    at = [[] for _ in range(ranks)]
    needs = [[] for _ in range(ranks)]
    for i in range(draw.whole(2, 20)):
        src, dst = draw.pair(ranks)
        size = draw.size(100, 8_000_000)
        at[src] += [f"c{i}: calc {draw.whole(1, 50_000)}", f"s{i}: send {size}b to {dst} tag {i}"]
        at[dst].append(f"r{i}: recv {size}b from {src} tag {i}")
        needs[src].append(f"s{i} requires c{i}")
        earlier = [line.split(":")[0] for line in at[src][:-2]]
        if earlier and draw.chance(50):
            needs[src].append(f"c{i} requires {earlier[-1]}")
    return f"num_ranks {ranks}\n" + "".join(f"rank {r} {{\n" + "\n".join(at[r] + needs[r]) + "\n}\n" for r in range(ranks))


def random_sweep(index, folder):
    """Writes sweep `index` and its files into `folder`; the path of the sweep, and of a SimAI file that must first be converted to Chakra traces."""
    draw = Draw(f"hyperfold {index}")
    kind, control, shape = KINDS[index % len(KINDS)], CONTROLS[index % len(CONTROLS)], TOPOLOGIES[index % len(TOPOLOGIES)]
    keys, convert = {}, None
    gpus = draw.pick(8, 8, 16, 16, 24, 32)
    if kind in ("model", "simai", "chakra", "goal", "htsim") or shape == "file":
        gpus = draw.pick(8, 16)
    per_server = draw.pick(1, 2, 4, 8)
    form = None
    if shape == "file":
        form = draw.pick("ns3", "ns3", "htsim", "simai")
        per_server = draw.pick(2, 4) if form == "simai" else 1
        text = {"ns3": lambda: ns3_topology(draw, gpus), "htsim": lambda: htsim_topology(draw, gpus), "simai": lambda: simai_topology(draw, gpus // per_server, per_server)}[form]()
        (folder / "topology.txt").write_text(text)
        keys |= {"topology.path": "topology.txt", "topology.format": form}
    keys |= {"cluster.gpus": gpus, "cluster.gpus_per_server": per_server, "topology.kind": shape}
    if shape != "file":
        nics = draw.pick(per_server, per_server, max(per_server // 2, 1)) if kind in ("collective", "model", "dag") else per_server
        keys["cluster.nics_per_server"] = nics
        link = draw.pick(25, 100, 200, 400)
        keys |= {"topology.link_gbps": link, "topology.uplink_gbps": draw.pick(link, link, 100, 400), "topology.link_delay_ns": draw.pick(200, 1000, 1000, 2500.5)}
        if draw.chance(30):
            keys["topology.switch_latency_ns"] = draw.pick(100, 333.25)
        if draw.chance(40) and shape != "rail-only":
            keys["topology.oversubscription"] = draw.pick(1.0, 2.0, 4.0)
        if shape == "clos":
            keys["topology.tiers"] = draw.pick(2, 2, 3)
            if draw.chance(50):
                keys["topology.hosts_per_leaf"] = draw.pick(2, 4)
        if shape == "fat-tree" and draw.chance(30):
            keys["topology.k"] = draw.pick(6, 8)
        if draw.chance(15) and kind in ("collective", "dag") and per_server > 1:
            keys["cluster.nvlink"] = "packet"
        if draw.chance(15) and per_server > 1:
            keys["cluster.nvlink_gbps"] = draw.pick(0, 900)
    # The smallest has room for little more than the headroom that pauses need (3 x rate x delay / 8 a port).
    gbps = max(keys.get("topology.link_gbps", 400), keys.get("topology.uplink_gbps", 400))
    port_bytes = 3 * gbps * (keys.get("topology.link_delay_ns", 2000) + 350) / 8 + 4096
    least = int((gpus + 8) * port_bytes / 262144 + 2) / 4
    keys["transport.pfc"] = not draw.chance(20)
    keys["topology.buffer_mib"] = draw.pick(32.0, least, least)
    keys["routing.policy"] = draw.pick("ecmp", "ecmp", "spray")
    keys["routing.seed"] = draw.whole(1, 9)
    if keys["routing.policy"] == "spray" and draw.chance(50):
        keys["routing.max_paths"] = draw.pick(2, 4)

    keys["transport.cc"] = control
    keys["transport.payload_bytes"] = draw.pick(1000, 1024, 4000, 8192)
    for key, values in {
        "pfc_alpha_shift": (3, 1, 5), "ecn": (True, True, False), "window": (True, False), "var_window": (True, False), "global_rtt": (True, False),
        "fresh_qp": (False, True), "clock": ("ps", "ns"), "ack_interval_bytes": (1, 1, 4000, 16000), "ack_high_prio": (True, False), "cnp_interval_us": (0.0, 4.0, 50.0),
        "min_rate_mbps": (1000.0, 100.0), "rate_bound": (True, True, False), "seed": (1, 2, 3),
    }.items():
        if draw.chance(25):
            keys[f"transport.{key}"] = draw.pick(*values)
    if draw.chance(50) and control != "dctcp":
        keys |= {"transport.ecn_kmin_kb": draw.pick(5.0, 50.0, 400.0), "transport.ecn_kmax_kb": draw.pick(400.0, 1600.0), "transport.ecn_pmax": draw.pick(0.01, 0.2, 1.0)}
    own = {
        "dcqcn": {"g": (0.00390625, 0.0625), "increase_us": (300.0, 55.0, 5.0), "fast_recovery": (1, 5), "clamp": (True, False), "rai_mbps": (20.0, 200.0)},
        "hpcc": {"eta": (0.95, 0.8), "mi_thresh": (0, 5), "int_multi": (1, 4, 16), "fast_react": (True, False), "rai_mbps": (40.0, 400.0)},
        "timely": {"alpha": (0.875, 0.5), "beta": (0.8, 0.3), "t_low_us": (50.0, 10.0), "t_high_us": (500.0, 60.0), "min_rtt_us": (20.0, 5.0)},
        "dctcp": {"g": (0.0625, 0.25), "k_kb": (300.0, 30.0), "rai_mbps": (615.0, 100.0)},
        "none": {},
    }[control]
    for key, values in own.items():
        if draw.chance(30):
            keys[f"transport.{control}.{key}"] = draw.pick(*values)

    keys["workload.kind"] = kind
    nccl = kind in ("collective", "model", "dag", "simai", "chakra")
    if kind == "traffic":
        pattern = PATTERNS[index // len(KINDS) % len(PATTERNS)]
        keys["workload.pattern"] = pattern
        if pattern == "poisson":
            keys |= {"workload.load": draw.pick(0.1, 0.5, 0.8), "workload.cdf": draw.pick("WebSearch", "FbHdp", "AliStorage2019", "GoogleRPC2008"), "workload.duration_ns": draw.pick(20_000, 50_000)}
        else:
            keys["workload.bytes"] = draw.size(1000, 300_000 if pattern == "all-to-all" else 16_000_000)
        if pattern == "incast":
            keys |= {"workload.fan_in": draw.whole(1, gpus - 1), "workload.receivers": draw.pick(1, 1, 2)}
        if pattern == "ring":
            keys["workload.stride"] = draw.whole(1, gpus - 1)
        keys["workload.seed"] = draw.whole(1, 9)
    elif kind == "collective":
        n = index // len(KINDS)
        keys |= {"workload.op": OPS[n % len(OPS)], "workload.algorithm": draw.pick(*ALGORITHMS), "workload.bytes": draw.size(10_000, 64_000_000)}
        # Only all-reduces have every algorithm.
        if keys["workload.op"] != "all-reduce" and draw.chance(70):
            keys["workload.algorithm"] = "auto"
        if keys["workload.op"] == "all-to-all":
            keys["workload.algorithm"] = draw.pick("auto", "direct", "hierarchical")
        if keys["workload.op"] == "barrier":
            del keys["workload.bytes"]
        if draw.chance(30):
            keys["workload.ranks"] = draw.whole(2, gpus)
        if draw.chance(30):
            keys["workload.iterations"] = draw.pick(2, 3)
    elif kind == "dag":
        (folder / "graph.csv").write_text(dag(draw, gpus))
        keys["workload.path"] = "graph.csv"
    elif kind == "flows":
        (folder / "flows.txt").write_text(flows(draw, gpus))
        keys |= {"workload.path": "flows.txt", "workload.start_unit": "ns"}
    elif kind == "model":
        tp, pp, cp, ep = draw.pick((1, 1, 1, 1), (2, 1, 1, 1), (2, 2, 1, 1), (4, 2, 1, 1), (1, 2, 2, 1), (2, 1, 1, 2), (1, 1, 1, 4))
        model = {"layers": draw.pick(2, 4), "hidden": draw.pick(64, 128), "heads": 8, "vocab": 1024, "seq": 64}
        if ep > 1:
            model |= {"moe": {"experts": 4, "top_k": 2}}
        keys |= {"workload.model": {"name": "small", "source": "our choice", "transformer": model}, "workload.tp": tp, "workload.pp": pp, "workload.cp": cp, "workload.ep": ep, "workload.framework": "megatron" if tp * pp * cp * ep > 1 else draw.pick("deepspeed", "fsdp", "ddp", "megatron"), "workload.microbatch": draw.pick(1, 2)}
        if pp > 1 and draw.chance(30):
            keys["workload.schedule"] = "gpipe"
        if draw.chance(30):
            keys["workload.compute_jitter"] = 0.05
        if draw.chance(20):
            keys["workload.recompute"] = draw.pick("selective", "full")
        if draw.chance(30) and tp > 1:
            keys["workload.analytic"] = draw.pick("tp", "intra", "all")
        if draw.chance(30):
            keys["workload.iterations"] = 2
        if draw.chance(20):
            keys |= {"workload.straggler_ranks": "1", "workload.straggler_slowdown": 1.5}
    elif kind == "simai":
        (folder / "workload.txt").write_text(simai(draw, gpus))
        keys["workload.path"] = "workload.txt"
    elif kind == "chakra":
        (folder / "workload.txt").write_text(simai(draw, gpus))
        keys["workload.path"] = "traces"
        convert = folder / "workload.txt"
    elif kind == "htsim":
        (folder / "matrix.cm").write_text(htsim(draw, gpus))
        keys["workload.path"] = "matrix.cm"
    elif kind == "goal":
        (folder / "schedule.goal").write_text(goal(draw, gpus))
        keys["workload.path"] = "schedule.goal"
    if nccl:
        for key, values in {"protocol": ("LL", "LL128", "Simple"), "channels": (1, 2, 4), "chunk_kib": (16.0, 128.0), "qps_per_connection": (2, 4), "split_data_on_qps": (True, False), "pxn": (True, False), "start_overhead_ns": (100.0,), "work_queue_latency_ns": (250.5,)}.items():
            if draw.chance(15):
                keys[f"workload.{key}"] = draw.pick(*values)
    for key, values in {"memo": (True, False), "steady_samples": (8, 16), "steady_theta": (0.05, 0.1, 0.2), "steady_interval_ns": (2000, 10_000), "steady_metric": ("rate", "window", "inflight", "queue", "rtt"), "audit": (1.0, 0.1)}.items():
        if draw.chance(30):
            keys[f"fidelity.{key}"] = draw.pick(*values)
    keys |= {"output.flows": True, "output.links": True}
    if draw.chance(30):
        keys["output.rtt"] = True
    text = f'name = "random-{index}"\nseed = {draw.whole(1, 99)}\n' + "".join(f"base.{key} = {toml(value)}\n" for key, value in keys.items())
    (folder / "sweep.toml").write_text(text)
    return convert


# ---- Cases ----

class Case:
    def __init__(self, key, sweep, sets=(), limit=None, index=None, mode=None, label=""):
        self.key, self.sweep, self.sets, self.limit, self.index, self.mode, self.label = key, sweep, list(sets), limit, index, mode, label


def contention_key(path):
    """By content: all but the sweep's name and its graph's file name."""
    text = "\n".join(line for line in path.read_text().splitlines() if not re.match(r"\s*(name|path)\s*=|\s*#|\s*$", line))
    graph = re.search(r'^\s*path\s*=\s*"([^"]+)"', path.read_text(), re.M)
    body = (path.parent / graph.group(1)).read_bytes() if graph else b""
    return "contention-" + hashlib.sha256(text.encode() + body).hexdigest()[:10]


def cases():
    out = [f"output.{k}=true" for k in ("flows", "links")]
    found = sorted(str(p.relative_to(EXPERIMENTS))[:-5] for p in EXPERIMENTS.rglob("*.toml"))
    named = [n for n in found if not n.startswith(("contention/", "models/", "wormhole-models/", "validation/", "validation-large/"))]
    missing = set(SMALL) ^ set(named)
    if missing:
        sys.exit(f"result-digests.py: SMALL and experiments/ differ: {', '.join(sorted(missing))}")
    for name in sorted(named):
        yield Case(name, EXPERIMENTS / f"{name}.toml", SMALL[name] + out, LIMIT.get(name))
    contention = sorted((contention_key(p), p) for p in (EXPERIMENTS / "contention").glob("*.toml"))
    for key, path in contention:
        for mode, scale in (("steady", 0.05), ("exact", 0.01)):
            yield Case(f"{key}-{mode}", path, [f"fidelity.fast_forward={mode}", f"workload.bytes_scale={scale}", "output.links=true"], label=path.stem)
    for index in range(RANDOM_SWEEPS):
        for mode in MODES:
            yield Case(f"random-{index:03}-{mode}", None, [f"fidelity.fast_forward={mode}"], index=index, mode=mode, label=KINDS[index % len(KINDS)])


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def results_digest(path):
    """Of the columns that count. Fields are written again as they were read, so that quoting does not count."""
    with open(path, newline="") as file:
        head, *rows = csv.reader(file)
    keep = [i for i, name in enumerate(head) if name not in NOT_COUNTED]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([row[i] for i in keep] for row in [head, *rows])
    return digest(text.getvalue().encode())


def stats_digest(path):
    """Values by place: times, sizes in memory, names of columns and who simulated what do not count."""
    with open(path, newline="") as file:
        head, *rows = csv.reader(file)
    if len(rows) != 1:
        return None
    keep = [i for i, name in enumerate(head) if not name.endswith(("_s", "_bytes", "_plain"))]
    return digest("\n".join(",".join(row[i] for i in keep) for row in rows).encode())


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


def call(command):
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=TIMEOUT_S, preexec_fn=None if "gpu" in command else limits)
        return done.returncode, done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return "timeout", ""


def run(case, binary, engine, jobs, folder, keep, memo):
    work = folder / case.key.replace("/", "_")
    work.mkdir()
    lines, sweep = [], case.sweep
    if case.index is not None:
        convert = random_sweep(case.index, work)
        sweep = work / "sweep.toml"
        if convert:
            code, text = call([binary, "workload", "convert", str(convert), "--to", "chakra", "--out", str(work / "traces")])
            if code:
                lines.append(("convert", f"exit-{code}"))
    out = work / "out"
    # What folding counts depends on which of several threads comes first; every second random case has one, and its stats.csv counts.
    jobs = 1 if case.index is not None and case.index % 2 else jobs
    command = [binary, "run", str(sweep), "--out", str(out), "--engine", engine, "--jobs", str(jobs), "--quiet"]
    command += ["--memo", "off"] if memo == "off" else []
    command += [word for key in case.sets for word in ("--set", key)] + (["--limit", str(case.limit)] if case.limit else [])
    started = time.monotonic()
    code, text = call(command)
    seconds = time.monotonic() - started
    if code:
        # Paths of this run are no part of the message.
        text = text.replace(str(work), "WORK").replace(str(ROOT), "ROOT")
        lines.append(("exit", f"{code}-{digest(text.encode()) if code == 2 else ''}"))
    if (out / "failed.csv").exists():
        with open(out / "failed.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        lines.append(("failed.csv", digest("\n".join(r["exp_id"] + " " + r["error"].replace(str(work), "WORK") for r in rows).encode())))
    for name in FILES:
        if (out / name).exists():
            lines.append((name, results_digest(out / name) if name == "results.csv" else digest((out / name).read_bytes())))
    if engine == "cpu" and memo == "on" and jobs == 1 and (out / "stats.csv").exists() and (stats := stats_digest(out / "stats.csv")):
        lines.append(("stats.csv", stats))
    if keep:
        shutil.copytree(work, keep / work.name, dirs_exist_ok=True)
        (keep / work.name / "stderr.txt").write_text(text)
    shutil.rmtree(work)
    return lines, seconds, text


def gpu_subset(all_cases):
    """Small enough for an adapter in software."""
    return [c for c in all_cases if c.key == "reference-cases" or (c.index is not None and c.index % 10 == 3 and c.mode == "off")]


def folded_subset(all_cases):
    """Cases that ask for folding, as far as they end without a memo within the time that a case may take."""
    return [c for c in all_cases if c.mode != "off" and c.key not in NEEDS_MEMO]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--out", type=pathlib.Path, help="write the lines to this file")
    parser.add_argument("--compare", type=pathlib.Path, help="say which lines differ from this file's")
    parser.add_argument("--engine", choices=("cpu", "gpu"), default="cpu", help="gpu: a subset, whose lines are those of the CPU engine")
    parser.add_argument("--every", action="store_true", help="with --engine gpu: every case, for an adapter that is no software")
    parser.add_argument("--memo", choices=("on", "off"), default="on", help="off: cases that are folded, without a memo; their lines are those with it")
    parser.add_argument("--jobs", type=int, default=2, help="threads of a run (default 2)")
    parser.add_argument("--parallel", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--only", help="only cases whose name matches this regular expression")
    parser.add_argument("--keep", type=pathlib.Path, help="keep what the cases wrote under this folder")
    parser.add_argument("--slowest", action="store_true", help="say which cases took longest")
    args = parser.parse_args()
    binary = shutil.which(args.binary) or sys.exit(f"result-digests.py: no program {args.binary}")
    binary = str(pathlib.Path(binary).resolve())
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY and hard < MEMORY_BYTES:
        sys.exit(
            f"result-digests.py: each run may have {MEMORY_BYTES >> 30} GiB of address space, so that all machines give the same lines, and `ulimit -v` allows "
            f"{hard / (1 << 30):.1f} GiB; allow more"
        )
    before = {}
    if args.compare:
        for line in args.compare.read_text().splitlines():
            if line and not line.startswith("#"):
                key, name, value = line.split()
                before[(key, name)] = value
    chosen = [c for c in cases() if not args.only or re.search(args.only, c.key)]
    if args.engine == "gpu" and not args.every:
        chosen = gpu_subset(chosen)
    if args.memo == "off":
        chosen = folded_subset(chosen)
    for what in SKIPPED:
        print(f"not run: {what}", file=sys.stderr)
    started = time.monotonic()
    now, labels, took, texts = {}, {}, [], {}
    with tempfile.TemporaryDirectory(prefix="digests.") as folder, concurrent.futures.ThreadPoolExecutor(args.parallel) as pool:
        runs = [(c, pool.submit(run, c, binary, args.engine, args.jobs, pathlib.Path(folder), args.keep, args.memo)) for c in chosen]
        for case, future in runs:
            lines, seconds, text = future.result()
            took.append((seconds, case.key))
            labels[case.key], texts[case.key] = case.label, text
            for name, value in lines:
                now[(case.key, name)] = value
    failed = sorted({k for k, n in now if n in ("exit", "convert")})
    print(f"{len(chosen)} cases, {len(now)} lines, {len(failed)} cases with failures, {time.monotonic() - started:.0f} s", file=sys.stderr)
    if args.slowest:
        for seconds, key in sorted(took, reverse=True)[:20]:
            print(f"{seconds:7.2f} s  {key} {labels[key]}", file=sys.stderr)
        for key in failed:
            print(f"{key} {labels[key]}: {[v for (k, n), v in now.items() if k == key and n == 'exit']} {texts[key].strip()[:300]}", file=sys.stderr)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text("# case file digest; written by scripts/result-digests.py\n" + "".join(f"{k} {n} {v}\n" for (k, n), v in sorted(now.items())))
    if args.compare:
        run_keys = {c.key for c in chosen}
        before = {(k, n): v for (k, n), v in before.items() if k in run_keys and ((args.engine == "cpu" and args.memo == "on") or n != "stats.csv")}
        differ = [at for at in sorted(before.keys() | now.keys()) if before.get(at) != now.get(at)]
        for key, name in differ:
            print(f"differs: {key} {name}: {before.get((key, name), 'absent')} before, {now.get((key, name), 'absent')} now {'(' + labels[key] + ')' if labels.get(key) else ''}")
        print(f"{len(differ)} of {len(before)} lines differ from {args.compare}")
        if differ or not before:
            sys.exit(1)


if __name__ == "__main__":
    main()
