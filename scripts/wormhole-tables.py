#!/usr/bin/env python3
"""Wormhole's evaluation with steady phases skipped, beside what provably repeats alone and the paper's figures.

    scripts/wormhole-tables.py [SUITE ...]        SUITE: wormhole-models, wormhole-cc, wormhole-topologies, wormhole-trace-small, wormhole-thresholds; all of them by default

Each suite of experiments/suites runs with fidelity.fast_forward = "exact", which skips only what it can prove to repeat, and with "steady", which skips steady phases, too, and is
off by what the tables say. wormhole-thresholds runs once: its first experiment is the exact one. With --unfolded each of the others also runs with "off", which simulates every
packet: flows.csv and results.csv of "exact" must then be the same to the byte, the two columns of results.csv aside that name the configuration.

Exit status: 0 if all went well, 1 if "exact" and "off" differ, if modes have other messages or if a run failed, 2 for bad usage.
"""

import argparse
import array
import csv
import math
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent.parent
SUITES = ["wormhole-models", "wormhole-cc", "wormhole-topologies", "wormhole-trace-small", "wormhole-thresholds"]
# Runs in one piece: the mode is among what it varies.
ONE_RUN = "wormhole-thresholds"

# Only numbers that the paper's text states; its bars are not read off.
PAPER = {
    "wormhole-models": [
        "Figure 8a (Section 7.1): 227x to 745x sooner than ns-3 on GPT, 135x to 510x on MoE, HPCC, 64 to 1,024 GPUs, one core.",
        "Figure 9a (Section 7.1): more than 130x on GPT and 50x on MoE by steady states alone; memoization a further 1.93x to 8.43x.",
        "Figure 9b (Section 7.1): more than 99.5 % of events skipped on GPT, 99.2 % on MoE, over the congestion controls.",
        "Figure 10a (Section 7.2): mean error of completion times within 1 %.",
        "Figure 11 (Section 7.2): NRMSE of the round-trip times of the first flow's packets below 0.005. Ours is of the mean round trips of all queue pairs, by packets.",
        "Figure 3a (Section 2.2): 1,633 patterns and over 1,200 repetitions an iteration on 128 GPUs; nearly 40,000 repetitions on 1,024.",
        "Figure 15b (Appendix H): a database of less than 100 KB on 1,024 GPUs.",
    ],
    "wormhole-cc": [
        "Figure 8b (Section 7.1): high acceleration under HPCC, DCQCN and TIMELY alike on 64 GPUs; the text gives no figures. DCTCP is ours.",
        "Figure 9b (Section 7.1): more than 99.5 % of events skipped on GPT, 99.2 % on MoE, over the congestion controls.",
        "Figure 10b (Section 7.2): mean error of completion times within 1 %.",
        "Figure 15a (Appendix G): numbers of partitions essentially the same under all of them; the text gives no figures.",
    ],
    "wormhole-topologies": ["Figure 13 (Section 7.3): speed-ups differ by at most 13 % between topologies; mean error of completion times within 1 %."],
    "wormhole-trace-small": [
        "Figure 14, which the text calls 13a and 13b (Section 7.4): 97.75x sooner than ns-3, an error of 3.02 % against the real iteration.",
        "Figure 3a (Section 2.2): 65,870 instances of 1,488 patterns. Figure 3b (Section 2.3): 98.82 % of it steady.",
    ],
    "wormhole-thresholds": [
        "Figure 12a (Section 7.3): rate, bytes in flight and queue length as metrics give closely aligned speed-ups and errors; 128 GPUs, HPCC; the text gives no figures.",
        "Figures 12b and 12c (Section 7.3): insensitive to theta and l within appropriate ranges; more skipped, and a larger error, as l grows or theta shrinks, says the text,",
        "  although Equation 6 is then harder to meet. Elsewhere (Section 7.1) theta = 5 % and l = 2000.",
    ],
}


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(binary, suite, out, extra, timeout):
    """Runs a suite into a new folder."""
    command = [binary, "run", str(HERE / "experiments" / "suites" / f"{suite}.toml"), "--out", str(out), "--jobs", "1", "--quiet", "--set", "output.rtt_means=true", *extra]
    print(" ".join(command), file=sys.stderr)
    try:
        done = subprocess.run(command, timeout=timeout, stdout=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        sys.exit(f"{suite}: not done after {timeout:.0f} s (--timeout)")
    if done.returncode != 0:
        sys.exit(f"{suite}: hyperfold ended with {done.returncode}")


def differences(folded, unfolded):
    """What differs between two runs that must agree."""
    found = []
    if (folded / "flows.csv").read_bytes() != (unfolded / "flows.csv").read_bytes():
        found.append("flows.csv")
    a, b = rows(folded / "results.csv"), rows(unfolded / "results.csv")
    if len(a) != len(b):
        return [*found, f"results.csv: {len(a)} and {len(b)} experiments"]
    for x, y in zip(a, b):
        found += [f"results.csv, experiment {x['exp_id']}, {k}: {x[k]} and {y.get(k)}" for k in x if k not in ("config_key", "exp_key") and x[k] != y.get(k)]
    return found


class Messages:
    """The messages of one experiment, in the order of flows.csv."""

    def __init__(self):
        self.ids, self.fct_ns, self.first_pair = array.array("q"), array.array("d"), array.array("q")
        self.pair = None

    def add(self, flow, src, dst, size, fct_ns):
        self.pair = self.pair or (src, dst)
        if (src, dst) == self.pair:
            self.first_pair.append(len(self.fct_ns))
        self.ids.extend((int(flow), int(src), int(dst), int(size)))
        self.fct_ns.append(float(fct_ns) if fct_ns else math.nan)


def messages(folder):
    """The messages of every experiment; rows are not kept, as there may be millions."""
    found = {}
    with open(folder / "flows.csv", newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        column = {name: k for k, name in enumerate(next(lines))}
        at = [column[c] for c in ("flow_id", "src", "dst", "bytes", "fct_ns")]
        for line in lines:
            found.setdefault(line[column["exp_id"]], Messages()).add(*(line[k] for k in at))
    return found


def errors(said, true):
    """Of completion times: error of their mean, mean error, both as shares, and the NRMSE of those of the first flow's pair of hosts."""
    pairs = [(x, y) for x, y in zip(said.fct_ns, true.fct_ns) if not math.isnan(x) and y > 0]
    first = [(x, y) for x, y in ((said.fct_ns[k], true.fct_ns[k]) for k in true.first_pair) if not math.isnan(x) and y > 0]
    if not pairs or not first:
        return None, None, None
    total = sum(y for _, y in pairs)
    mean_square = sum((x - y) ** 2 for x, y in first) / len(first)
    return sum(x for x, _ in pairs) / total - 1, sum(abs(x - y) / y for x, y in pairs) / len(pairs), math.sqrt(mean_square) / (sum(y for _, y in first) / len(first))


def round_trips(folder):
    """Of every experiment and queue pair: number of round trips and their mean, ns. Empty for folders of versions that did not write them."""
    path = folder / "rtt_means.csv"
    found = {}
    for row in rows(path) if path.exists() else []:
        found.setdefault(row["exp_id"], {})[row["flow_id"]] = (int(row["round_trips"]), float(row["rtt_mean_ns"]))
    return found


def rtt_errors(said, true):
    """Of mean round trips of queue pairs, each with the weight of its packets: root of the mean square error over the mean, and the largest error as a share."""
    pairs = [(n, said[flow][1], mean) for flow, (n, mean) in true.items() if flow in said and mean > 0]
    weight = sum(n for n, _, _ in pairs)
    if not weight:
        return None, None
    mean_square = sum(n * (x - y) ** 2 for n, x, y in pairs) / weight
    return math.sqrt(mean_square) / (sum(n * y for n, _, y in pairs) / weight), max(abs(x - y) / y for _, x, y in pairs)


def name(axes):
    if axes.get("fidelity.fast_forward") == "exact":
        return "exact"
    shown = {k: v for k, v in axes.items() if k != "fidelity.fast_forward"}
    return " ".join(pathlib.Path(v).stem if k == "workload.model" else f"{k.rpartition('.')[2]}={v}" for k, v in shown.items())


def percent(share, digits=3):
    return "-" if share is None else f"{100 * share:.{digits}g} %"


def share(part, whole):
    return f"{100 * part / max(whole, 1):.2f} %"


def seconds(stats):
    """Without audits, which simulate on purpose what was skipped. stats.csv of versions that did not count their time has no such column."""
    return f"{float(stats['wall_s']) - float(stats.get('auditing_s', 0)):.2f}"


def relative(said, true, column):
    return float(said[column]) / float(true[column]) - 1 if said[column] and true[column] else None


class Mode:
    """What a run left behind."""

    def __init__(self, folder):
        self.stats = {r["exp_id"]: r for r in rows(folder / "stats.csv")}
        self.results = {r["exp_id"]: r for r in rows(folder / "results.csv")}
        self.messages = messages(folder)
        self.round_trips = round_trips(folder)
        keys = list(next(iter(self.results.values())))
        self.axes = keys[keys.index("seed") + 1 : keys.index("status")]

    def name(self, exp_id):
        return name({k: self.results[exp_id][k] for k in self.axes})


def experiments(steady, exact, off=None, only=None):
    """Rows of three tables for every experiment: what was skipped, how far off it is, what repeats. `only`: the one experiment of `exact` that all are held against."""
    for e in sorted(steady.stats, key=int):
        base = only or e
        s, x, title = steady.stats[e], exact.stats[base], {"experiment": steady.name(e)}
        simulated, skipped, asleep = int(s["packet_hops_simulated"]), int(s["packet_hops_skipped"]), int(s["hops_steady"])
        exact_hops = int(x["packet_hops_simulated"]) + int(x["packet_hops_skipped"])
        told, true = steady.messages[e], exact.messages[base]
        if told.ids != true.ids:
            sys.exit(f"experiment {e}: its messages are not those of experiment {base} with \"exact\"")
        mean, each, nrmse = errors(told, true)
        rtt_nrmse, rtt_most = rtt_errors(steady.round_trips.get(e, {}), exact.round_trips.get(base, {}))
        yield {
            **title,
            "Mhops": f"{exact_hops / 1e6:.1f}",
            "exact skips": share(int(x["packet_hops_skipped"]), exact_hops),
            "steady skips": share(skipped, simulated + skipped),
            "as steady": share(asleep, simulated + skipped),
            "by memo": share(skipped - asleep, simulated + skipped),
            "naps": s["steady_skips"],
            "Mhops simulated": f"{simulated / 1e6:.2f}",
            **({"off s": seconds(off.stats[e])} if off else {}),
            "exact s": seconds(x),
            "steady s": seconds(s),
        }, {
            **title,
            "iteration": percent(relative(steady.results[e], exact.results[base], "iteration_time_ns")),
            "mean FCT": percent(mean),
            "FCT, mean |error|": percent(each),
            "NRMSE": "-" if nrmse is None else f"{nrmse:.2g}",
            "RTT, NRMSE": "-" if rtt_nrmse is None else f"{rtt_nrmse:.2g}",
            "RTT, largest error": percent(rtt_most),
            "audited naps": s["audited"],
            "messages": s["audit_messages"],
            "audit error": percent(float(s["audit_fct_error"])) if s["audit_fct_error"] else "-",
            "Theorem 2": s["theorem2_violations"],
            "Theorem 3": s["theorem3_violations"],
        }, {
            "experiment": exact.name(base),
            "hits": x["memo_hits"],
            "misses": x["memo_misses"],
            "episodes": x["episodes"],
            "known": x["episodes_known"],
            "snapshots": x["snapshots"],
            "snapshots known": x["snapshots_known"],
            "partitions": x["partitions"],
            "most": x["partitions_max"],
            "mean": f"{float(x['partitions_mean']):.1f}",
            "memo MB, exact": f"{int(x['memo_bytes']) / 1e6:.1f}",
            "steady": f"{int(s['memo_bytes']) / 1e6:.1f}",
        }


def table(lines):
    heads = list(lines[0])
    widths = [max(len(h), *(len(line[h]) for line in lines)) for h in heads]
    for line in [dict(zip(heads, heads)), *lines]:
        cells = [line[h].ljust(w) if k == 0 else line[h].rjust(w) for k, (h, w) in enumerate(zip(heads, widths))]
        print("  ".join(cells).rstrip())
    print()


def folders(out, suite, unfolded):
    """Where a suite's results are, and what else than the suite says is set for them."""
    if suite == ONE_RUN:
        return {"all": (out / suite, [])}
    modes = ["exact", "steady"] + (["off"] if unfolded else [])
    return {m: (out / f"{suite}-{m}", ["--set", f"fidelity.fast_forward={m}"]) for m in modes}


def report(suite, where):
    """Prints a suite's tables; gives how "exact" and "off" differ, if both ran."""
    print(f"## {suite}\n")
    found = []
    if suite == ONE_RUN:
        run_of_all = Mode(where["all"][0])
        exact = next((e for e, r in run_of_all.results.items() if r["fidelity.fast_forward"] == "exact"), None)
        if exact is None:
            sys.exit(f"{suite}: no experiment has fidelity.fast_forward = \"exact\"")
        lines = list(experiments(run_of_all, run_of_all, only=exact))
    else:
        modes = {m: Mode(folder) for m, (folder, _) in where.items()}
        lines = list(experiments(modes["steady"], modes["exact"], modes.get("off")))
    skipped, off_by, repeats = zip(*lines)
    print("What was skipped, of all packet-hops, and the time it took without audits:\n")
    table(skipped)
    print("How far \"steady\" is off \"exact\", which is off nothing, and what audits of naps found. NRMSE: root of the mean square error over the mean, of the completion times of the")
    print("messages between the first flow's two hosts; RTT, NRMSE (Figure 11): the same of mean round trips of queue pairs, each with the weight of its packets:\n")
    table(off_by)
    if suite != ONE_RUN:
        print("What repeats, with \"exact\", and the size of the memo, which a run's experiments share, by the end of each, with both:\n")
        table(repeats)
    if "off" in where:
        found = differences(where["exact"][0], where["off"][0])
        print("exact and off: " + ("the same flows.csv and results.csv" if not found else "DIFFERENT"))
        for what in found[:20]:
            print(f"  {what}")
        print()
    print("The paper, against ns-3, at full size:")
    for line in PAPER[suite]:
        print(f"  {line}")
    print()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="default: all of them")
    parser.add_argument("--binary", default=str(HERE / "target" / "release" / "hyperfold"), help="default: target/release/hyperfold")
    parser.add_argument("--out", default=str(HERE / "out"), help="folder of the results, SUITE-exact, SUITE-steady and so on, which must be new. Default: out")
    parser.add_argument("--no-run", action="store_true", help="compare and print the results that are in --out already")
    parser.add_argument("--unfolded", action="store_true", help="also run with every packet simulated, and compare that to the byte: minutes")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds a run may take; default 3600")
    asked = parser.parse_args()
    unknown = [s for s in asked.suites if s not in SUITES]
    if unknown:
        parser.error(f"no such suite: {unknown[0]}; there are {', '.join(SUITES)}")
    if not asked.no_run and not pathlib.Path(asked.binary).exists():
        parser.error(f"{asked.binary} is not there: build it with `cargo build --release`, or name another with --binary")
    differ = False
    for suite in asked.suites or SUITES:
        where = folders(pathlib.Path(asked.out), suite, asked.unfolded)
        for folder, extra in where.values():
            if not asked.no_run:
                folder.parent.mkdir(parents=True, exist_ok=True)
                run(asked.binary, suite, folder, extra, asked.timeout)
            for missing in (folder / f for f in ("flows.csv", "results.csv", "stats.csv") if not (folder / f).exists()):
                parser.error(f"{missing} is not there")
        differ |= bool(report(suite, where))
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
