#!/usr/bin/env python3
"""Holds a way of skipping against every packet simulated, over random sweeps: what steady-state skipping costs in accuracy, and whether runs say so.

    scripts/steady-errors.py OUT [--binary PATH] [--mode steady] [--contended] [--cases 100] [--seed 1] [--jobs 2]

Each case is a random network, congestion control and job. It runs with fidelity.fast_forward "off", with the mode, and with "off" over links that are a picosecond longer. A case is `over` where
the mode's makespan or mean completion time is off by more than 0.5 % and by more than that picosecond moves it, and `silent` where its own estimate (steady_error in stats.csv) is not above 0.5 % either. What is in OUT already is kept.
With --contended each case is a job of 9 to 50 million packet-hops whose senders collide on a Clos or a fat-tree, under HPCC or DCQCN: what --mode rates is for. Then a case is over where
the mean completion time is off by more than 2 %.
Exit code 1: a case is over and silent.
"""
import argparse
import concurrent.futures
import csv
import pathlib
import random
import subprocess
import sys

BOUND = 0.5
CONTENDED_MEAN_BOUND = 2


def case(draw):
    """The text of a sweep file's [base]."""
    gpus = draw.choice([8, 16, 32, 64])
    per_server = draw.choice([1, 4, 8] if gpus > 8 else [1, 4])
    kind = draw.choice(["rail-optimized", "rail-only", "clos", "fat-tree"])
    payload = draw.choice([1000, 4096, 9000])
    cc = draw.choice(["dcqcn", "hpcc", "timely", "dctcp"])
    rate = draw.choice([50, 100, 200, 400])
    lines = [
        f"cluster = {{ gpus = {gpus}, gpus_per_server = {per_server} }}",
        f'topology = {{ kind = "{kind}", link_gbps = {rate}, uplink_gbps = {rate} }}',
        f'transport = {{ cc = "{cc}", payload_bytes = {payload} }}',
    ]
    if kind == "clos":
        lines[1] = lines[1].replace(" }", f", oversubscription = {draw.choice([1, 2, 4])} }}")
    mebibytes = draw.choice([8, 16, 32, 64]) * (4 if payload > 1000 else 1) * 8 // max(8, gpus // 2)
    if draw.random() < 0.5:
        op = draw.choice(["all-reduce", "all-gather", "reduce-scatter", "all-to-all"])
        algorithm = draw.choice(["ring", "tree"]) if op == "all-reduce" else "auto"
        lines.append(f'workload = {{ kind = "collective", op = "{op}", bytes = {mebibytes << 20}, algorithm = "{algorithm}" }}')
    else:
        pp = draw.choice([p for p in (2, 4, 8) if p <= gpus])
        lines.append(
            f'workload = {{ kind = "model", model = "gpt2", pp = {pp}, global_batch = {gpus // pp * draw.choice([2, 4])}, seq = {draw.choice([512, 1024])}, memory_margin = 10.0 }}'
        )
    return "\n".join(lines)


def contended_case(draw, number):
    """The same for a job whose senders collide, and the rows of its task graph."""
    hosts = draw.choice([16, 32])
    kind = draw.choice(["clos", "fat-tree"])
    payload = draw.choice([1000, 4096])
    rate = draw.choice([100, 200, 400])
    over = draw.choice([1, 2, 4])
    more = f", hosts_per_leaf = {draw.choice([4, 8])}, oversubscription = {over}" if kind == "clos" else ""
    lines = [
        f'transport = {{ cc = "{draw.choice(["hpcc", "dcqcn"])}", payload_bytes = {payload} }}',
        f'topology = {{ kind = "{kind}", link_gbps = {rate}, uplink_gbps = {rate}{more} }}',
    ]
    job = draw.choice(["rings", "all-to-all", "shifts", "incasts", "training"])
    if job == "training":
        lines[0] = lines[0].replace("payload_bytes = 1000", "payload_bytes = 4096")
        lines += [
            "cluster = { gpus = 64, gpus_per_server = 8 }",
            f'workload = {{ kind = "model", model = "gpt3-1.7b", tp = 8, pp = 2, global_batch = {draw.choice([16, 32])}, seq = 512, memory_margin = 10.0 }}',
        ]
        return "\n".join(lines), None
    lines.insert(0, f"cluster = {{ gpus = {hosts}, gpus_per_server = 1, nics_per_server = 1 }}")
    if job == "all-to-all":
        mebibytes = draw.choice([1024, 2048, 3072]) // hosts * payload // 1000
        lines.append(f'workload = {{ kind = "collective", op = "all-to-all", bytes = {mebibytes << 20} }}')
        return "\n".join(lines), None
    lines.append(f'workload = {{ kind = "dag", path = "case-{number}.csv" }}')
    ranks = list(range(hosts))
    draw.shuffle(ranks)
    rows = []

    def send(at, to, size, tag):
        rows.append(f"s{tag},{at},send,{size},,{to},{tag},free")
        rows.append(f"r{tag},{to},recv,{size},,{at},{tag},free")

    size = draw.choice([1600, 2400, 3200]) // hosts * payload * 1000
    if job == "rings":
        groups = draw.choice([2, 4])
        for g in range(groups):
            group = " ".join(map(str, ranks[g::groups]))
            rows.append(f"g{g},{group},all-reduce,{size // 2},{group},,,")
    elif job == "shifts":
        for k, rank in enumerate(ranks):
            send(rank, ranks[(k + 1) % hosts], size * draw.choice([2, 3, 4]) // 4, k + 1)
    else:
        fan = draw.choice([3, 5, 7])
        for first in range(0, hosts - fan, fan + 1):
            for k in range(1, fan + 1):
                send(ranks[first + k], ranks[first], size * draw.choice([2, 3, 4]) // 4, first + k)
    return "\n".join(lines), "id,ranks,kind,bytes,group,peer,tag,stream\n" + "\n".join(rows) + "\n"


def sweep(number, seed, mode, contended):
    draw = random.Random(f"{seed}/{number}")
    base, graph = contended_case(draw, number) if contended else (case(draw), None)
    return graph, f"""name = "case-{number}"
seed = {number + 1}
[base]
{base}
[sweep]
method = "list"
[[experiment]]
"fidelity.fast_forward" = "off"
[[experiment]]
"fidelity.fast_forward" = "{mode}"
[[experiment]]
"fidelity.fast_forward" = "off"
"topology.link_delay_ns" = 1000.001
"""


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def run(binary, out, number, seed, mode, contended):
    folder = out / f"case-{number}"
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"case-{number}.toml"
    if not (folder / "results.csv").exists():
        graph, text = sweep(number, seed, mode, contended)
        file.write_text(text)
        if graph:
            file.with_suffix(".csv").write_text(graph)
        command = [binary, "run", file, "--out", folder, "--jobs", "1", "--engine", "cpu", "--quiet", "--memo", "off"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            return number, None, done.stderr.strip()
    off, skipped, moved = rows(folder / "results.csv")
    if off["status"] != "ok":
        return number, None, off["error"]
    stats = rows(folder / "stats.csv")[1]

    def error(column, other):
        return (float(other[column]) / float(off[column]) - 1) * 100

    found = []
    for column, bound in (("makespan_ns", BOUND), ("fct_mean_ns", CONTENDED_MEAN_BOUND if contended else BOUND)):
        # Above 1 %, nothing is said of messages.
        if not skipped[column]:
            found.append((0.0, 0.0, False))
            continue
        e, spread = error(column, skipped), abs(error(column, moved))
        found.append((e, spread, abs(e) > bound and abs(e) > spread))
    says = float(stats["steady_error"] or 0) * 100
    gain = float(stats["packet_hops_skipped"]) / max(1, float(skipped["packet_hops"]))
    return number, (found, says, int(stats["steady_skips"]), int(stats["audited"]), gain, int(stats["exact_instead"])), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--binary", default="hyperfold")
    parser.add_argument("--mode", default="steady")
    parser.add_argument("--contended", action="store_true")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    print("case  control  network         makespan %  (1 ps moves)  mean FCT %  (1 ps moves)  it says %     skips  audited  not simulated %")
    over, silent, failed, skipping, unaudited, warned, exact = 0, 0, 0, 0, 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        asked = [pool.submit(run, args.binary, args.out, n, args.seed, args.mode, args.contended) for n in range(args.cases)]
        for done in asked:
            number, result, why = done.result()
            if result is None:
                failed += 1
                print(f"{number:4}  failed: {why}")
                continue
            found, says, skips, audited, gain, exactly = result
            is_over = any(f[2] for f in found)
            is_silent = is_over and says < BOUND
            over, silent = over + is_over, silent + is_silent
            skipping, unaudited = skipping + (skips > 0), unaudited + (skips > 0 and audited == 0)
            warned, exact = warned + (says > BOUND), exact + exactly
            if args.contended or is_over or says > BOUND or abs(found[0][0]) > 0.1 or abs(found[1][0]) > 0.1:
                text = (args.out / f"case-{number}.toml").read_text()
                word = lambda key: text.split(key + ' = "')[1].split('"')[0]
                mark = " over, silent" if is_silent else " over" if is_over else ""
                print(
                    f"{number:4}  {word('cc'):7}  {word('kind'):14}  {found[0][0]:10.3f}  {found[0][1]:12.3f}  {found[1][0]:10.3f}  {found[1][1]:12.3f}  {says:12.3f}  {skips:5}  {audited:7}  {gain * 100:15.1f}{mark}"
                )
    print(f"{args.cases} cases, {failed} failed, {skipping} skipped something, {unaudited} of these without an audit; {exact} started over as exact; {warned} warn; {over} over {BOUND} %, {silent} of these silent")
    sys.exit(1 if silent else 0)


if __name__ == "__main__":
    main()
