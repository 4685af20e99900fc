#!/usr/bin/env python3
"""Holds a way of skipping against every packet simulated, over random sweeps: what steady-state skipping costs in accuracy, and whether runs say so.

    scripts/steady-errors.py OUT [--binary PATH] [--mode steady] [--contended] [--control CC] [--cases 100] [--seed 1] [--jobs 2]

Each case is a random network, congestion control and job. It runs with fidelity.fast_forward "off", with the mode, and with "off" over links that are a picosecond longer. A case is `over` where
the mode's makespan or mean completion time is off by more than 0.5 % and by more than that picosecond moves it.
Where flows collide, one picosecond may move much and another little. So such a case runs again, both with "off" and with the mode, over links that are 2, 3 or 5 ps longer or 1 or 2 ps shorter. It is then one of these:
- `moved`: one of these disturbances moves "off" by more than the mode's error.
- `chance`: the mean difference between the mode and "off", over all disturbances, is not above 0.5 % by more than two standard errors. So the mode has no error that a disturbance has not, too.
- `warned`: the run said so, by its estimate (steady_error in stats.csv, above 0.5 %) or its audits (audit_fct_error, above 1 %).
- `silent`.
What is in OUT already is kept.
With --contended each case is a job of 9 to 50 million packet-hops whose senders collide on a Clos or a fat-tree, under HPCC or DCQCN: what --mode rates is for. Then a case is over where
the mean completion time is off by more than 2 %.
Exit code 1: a case is over and silent.
"""
import argparse
import concurrent.futures
import csv
import pathlib
import random
import statistics
import subprocess
import sys

BOUND = 0.5
CONTENDED_MEAN_BOUND = 2
AUDIT_BOUND = 1
# Delays of links in ns, where 1000 is the default.
DISTURBED = [1000.002, 1000.003, 1000.005, 999.999, 999.998]
COLUMNS = ["makespan_ns", "fct_mean_ns"]


def case(draw, control):
    """The text of a sweep file's [base]."""
    gpus = draw.choice([8, 16, 32, 64])
    per_server = draw.choice([1, 4, 8] if gpus > 8 else [1, 4])
    kind = draw.choice(["rail-optimized", "rail-only", "clos", "fat-tree"])
    payload = draw.choice([1000, 4096, 9000])
    drawn = draw.choice(["dcqcn", "hpcc", "timely", "dctcp"])
    cc = control or drawn
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


def sweep(number, seed, mode, contended, control):
    draw = random.Random(f"{seed}/{number}")
    base, graph = contended_case(draw, number) if contended else (case(draw, control), None)
    return graph, f"""name = "case-{number}"
seed = {number + 1}
[base]
{base}
[sweep]
method = "list"
"""


def experiments(modes, delays):
    def one(mode, delay):
        return f'[[experiment]]\n"fidelity.fast_forward" = "{mode}"\n' + (f'"topology.link_delay_ns" = {delay}\n' if delay else "")

    return "".join(one(mode, delay) for mode, delay in zip(modes, delays))


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def run_file(args, name, text):
    """The folder of the results of a sweep with this text, or why there is none."""
    file, folder = args.out / f"{name}.toml", args.out / name
    if not (folder / "results.csv").exists():
        file.write_text(text)
        command = [args.binary, "run", file, "--out", folder, "--jobs", "1", "--engine", "cpu", "--quiet", "--memo", "off"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            return None, done.stderr.strip()
    return folder, None


def percent_off(row, off, column):
    """None: above 1 %, nothing is said of messages."""
    return (float(row[column]) / float(off[column]) - 1) * 100 if row[column] else None


def run(args, number):
    args.out.mkdir(parents=True, exist_ok=True)
    graph, base = sweep(number, args.seed, args.mode, args.contended, args.control)
    if graph:
        (args.out / f"case-{number}.csv").write_text(graph)
    folder, why = run_file(args, f"case-{number}", base + experiments(["off", args.mode, "off"], [None, None, 1000.001]))
    if why:
        return number, None, why
    off, skipped, moved = rows(folder / "results.csv")
    if off["status"] != "ok":
        return number, None, off["error"]
    stats = rows(folder / "stats.csv")[1]
    bounds = [BOUND, CONTENDED_MEAN_BOUND if args.contended else BOUND]
    errors = [percent_off(skipped, off, column) for column in COLUMNS]
    spreads = [abs(percent_off(moved, off, column)) for column in COLUMNS]

    def is_over():
        return any(e is not None and abs(e) > max(bound, spread) for e, bound, spread in zip(errors, bounds, spreads))

    over = is_over()
    chance = False
    if over:
        count = len(DISTURBED)
        more, why = run_file(args, f"case-{number}-disturbed", base + experiments(["off"] * count + [args.mode] * count, DISTURBED * 2))
        if why:
            return number, None, why
        disturbed = rows(more / "results.csv")
        chance = True
        for k, column in enumerate(COLUMNS):
            spreads[k] = max([spreads[k], *(abs(percent_off(row, off, column)) for row in disturbed[:count])])
            pairs = [(off, skipped), *zip(disturbed[:count], disturbed[count:])]
            apart = [percent_off(b, a, column) for a, b in pairs if b[column]]
            if len(apart) > 1:
                chance &= abs(statistics.mean(apart)) - 2 * statistics.stdev(apart) / len(apart) ** 0.5 <= bounds[k]
    says = float(stats["steady_error"] or 0) * 100
    return number, {
        "errors": [e or 0.0 for e in errors],
        "spreads": spreads,
        "over": over,
        "moved": over and not is_over(),
        "chance": chance,
        "says": says,
        "warned": says > BOUND or float(stats["audit_fct_error"] or 0) * 100 > AUDIT_BOUND,
        "skips": int(stats["steady_skips"]),
        "audited": int(stats["audited"]),
        "gain": float(stats["packet_hops_skipped"]) / max(1, float(skipped["packet_hops"])),
        "exact": int(stats["exact_instead"]),
    }, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--binary", default="hyperfold")
    parser.add_argument("--mode", default="steady")
    parser.add_argument("--contended", action="store_true")
    parser.add_argument("--control", choices=["dcqcn", "hpcc", "timely", "dctcp"], help="in all cases; else drawn")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    print("case  control  network         makespan %  (ps move it)  mean FCT %  (ps move it)  it says %     skips  audited  not simulated %")
    found, failed = [], 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        asked = [pool.submit(run, args, n) for n in range(args.cases)]
        for done in asked:
            number, result, why = done.result()
            if result is None:
                failed += 1
                print(f"{number:4}  failed: {why}")
                continue
            found.append(result)
            result["silent"] = result["over"] and not (result["moved"] or result["chance"] or result["warned"])
            if args.contended or result["over"] or result["warned"] or any(abs(e) > 0.1 for e in result["errors"]):
                text = (args.out / f"case-{number}.toml").read_text()
                word = lambda key: text.split(key + ' = "')[1].split('"')[0]
                marks = [mark for mark in ("over", "moved", "chance", "warned", "silent") if result[mark]]
                (e, f), (se, sf) = result["errors"], result["spreads"]
                print(
                    f"{number:4}  {word('cc'):7}  {word('kind'):14}  {e:10.3f}  {se:12.3f}  {f:10.3f}  {sf:12.3f}  {result['says']:12.3f}  {result['skips']:5}  {result['audited']:7}  {result['gain'] * 100:15.1f} {', '.join(marks)}"
                )
    count = lambda of: sum(1 for result in found if of(result))
    silent = count(lambda r: r["silent"])
    print(
        f"{args.cases} cases, {failed} failed, {count(lambda r: r['skips'] > 0)} skipped something, {count(lambda r: r['skips'] > 0 and r['audited'] == 0)} of these without an audit; "
        f"{count(lambda r: r['exact'])} started over as exact; {count(lambda r: r['warned'])} warned; {count(lambda r: r['over'])} over {BOUND} % and a picosecond: "
        f"{count(lambda r: r['moved'])} moved as much by other picoseconds, {count(lambda r: r['chance'] and not r['moved'])} not but by chance, "
        f"{count(lambda r: r['over'] and not r['moved'] and not r['chance'] and r['warned'])} warned, {silent} silent"
    )
    sys.exit(1 if silent else 0)


if __name__ == "__main__":
    main()
