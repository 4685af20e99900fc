#!/usr/bin/env python3
"""Wormhole's evaluation, folded and unfolded, beside the paper's figures.

    scripts/wormhole-tables.py [SUITE ...]        SUITE: wormhole-models, wormhole-cc, wormhole-topologies, wormhole-trace-small; all of them by default

Each suite of experiments/suites runs twice: as it is, and with fidelity.fast_forward=off. flows.csv and results.csv must be the same to the byte, the two columns of
results.csv aside that name the configuration; then tables are printed. Folds are exact: there is no steady-state skipping in them, which is most of what the paper measures.

Exit status: 0 if all is equal, 1 if something differs or a run failed, 2 for bad usage.
"""

import argparse
import csv
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent.parent
SUITES = ["wormhole-models", "wormhole-cc", "wormhole-topologies", "wormhole-trace-small"]

# Only numbers that the paper's text states; its bars are not read off.
PAPER = {
    "wormhole-models": [
        "Figure 8a (Section 7.1): 227x to 745x sooner than ns-3 on GPT, 135x to 510x on MoE, HPCC, 64 to 1,024 GPUs, one core.",
        "Figure 9a (Section 7.1): more than 130x on GPT and 50x on MoE by steady states alone; memoization a further 1.93x to 8.43x.",
        "Figure 9b (Section 7.1): more than 99.5 % of events skipped on GPT, 99.2 % on MoE, over the congestion controls.",
        "Figure 10a (Section 7.2): mean error of completion times within 1 %.",
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
}


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(binary, suite, out, extra, timeout):
    """Runs a suite into a new folder."""
    command = [binary, "run", str(HERE / "experiments" / "suites" / f"{suite}.toml"), "--out", str(out), "--jobs", "1", "--quiet", *extra]
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


def fct_error(folded, unfolded):
    """Mean relative error of flow completion times by experiment, in percent."""
    sums = {}
    for x, y in zip(rows(folded / "flows.csv"), rows(unfolded / "flows.csv")):
        if x["fct_ns"] and y["fct_ns"]:
            total, n = sums.get(x["exp_id"], (0.0, 0))
            sums[x["exp_id"]] = (total + abs(float(x["fct_ns"]) - float(y["fct_ns"])) / float(y["fct_ns"]), n + 1)
    return {e: 100 * total / n for e, (total, n) in sums.items()}


def name(axes):
    return " ".join(pathlib.Path(v).stem if k == "workload.model" else f"{k.rpartition('.')[2]}={v}" for k, v in axes.items())


def ratio(a, b):
    return f"{a / b:.2f}x" if b > 0 else "-"


def experiments(folded, unfolded):
    """A row of figures for every experiment."""
    stats, plain = rows(folded / "stats.csv"), {r["exp_id"]: r for r in rows(unfolded / "stats.csv")}
    results = {r["exp_id"]: r for r in rows(folded / "results.csv")}
    errors = fct_error(folded, unfolded)
    keys = list(next(iter(results.values())))
    axes = keys[keys.index("seed") + 1 : keys.index("status")]
    for s in sorted(stats, key=lambda r: int(r["exp_id"])):
        e = s["exp_id"]
        simulated, skipped = int(s["packet_hops_simulated"]), int(s["packet_hops_skipped"])
        yield {
            "experiment": name({k: results[e][k] for k in axes}),
            "Mhops": f"{(simulated + skipped) / 1e6:.1f}",
            "skipped": f"{100 * skipped / max(simulated + skipped, 1):.1f} %",
            "by hops": ratio(simulated + skipped, simulated),
            "by time": ratio(float(plain[e]["wall_s"]), float(s["wall_s"])),
            "unfolded s": f"{float(plain[e]['wall_s']):.2f}",
            "folded s": f"{float(s['wall_s']):.2f}",
            "hits": s["memo_hits"],
            "misses": s["memo_misses"],
            "FCT error": f"{errors[e]:.3g} %" if e in errors else "-",
            "batches": s["batches"],
        }, {
            "experiment": name({k: results[e][k] for k in axes}),
            "episodes": s["episodes"],
            "episodes known": s["episodes_known"],
            "states": s["states"],
            "states known": s["states_known"],
            "partitions": s["partitions"],
            "most": s["partitions_max"],
            "mean": f"{float(s['partitions_mean']):.1f}",
            "memo MB": f"{int(s['memo_bytes']) / 1e6:.1f}",
            "simulating s": f"{float(s['simulating_s']):.2f}",
            "looking up s": f"{float(s['looking_up_s']):.2f}",
            "cutting s": f"{float(s['cutting_s']):.2f}",
        }


def table(lines):
    heads = list(lines[0])
    widths = [max(len(h), *(len(line[h]) for line in lines)) for h in heads]
    for line in [dict(zip(heads, heads)), *lines]:
        cells = [line[h].ljust(w) if k == 0 else line[h].rjust(w) for k, (h, w) in enumerate(zip(heads, widths))]
        print("  ".join(cells).rstrip())
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="default: all of them")
    parser.add_argument("--binary", default=str(HERE / "target" / "release" / "hyperfold"), help="default: target/release/hyperfold")
    parser.add_argument("--out", default=str(HERE / "out"), help="folder of the results, SUITE-folded and SUITE-off, which must be new. Default: out")
    parser.add_argument("--no-run", action="store_true", help="compare and print the results that are in --out already")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds a run may take; default 3600")
    asked = parser.parse_args()
    unknown = [s for s in asked.suites if s not in SUITES]
    if unknown:
        parser.error(f"no such suite: {unknown[0]}; there are {', '.join(SUITES)}")
    if not asked.no_run and not pathlib.Path(asked.binary).exists():
        parser.error(f"{asked.binary} is not there: build it with `cargo build --release`, or name another with --binary")
    differ = False
    for suite in asked.suites or SUITES:
        folded, unfolded = (pathlib.Path(asked.out) / f"{suite}-{how}" for how in ("folded", "off"))
        if not asked.no_run:
            folded.parent.mkdir(parents=True, exist_ok=True)
            run(asked.binary, suite, folded, [], asked.timeout)
            run(asked.binary, suite, unfolded, ["--set", "fidelity.fast_forward=off"], asked.timeout)
        for missing in (d / f for d in (folded, unfolded) for f in ("flows.csv", "results.csv", "stats.csv") if not (d / f).exists()):
            parser.error(f"{missing} is not there")
        print(f"## {suite}\n")
        lines = list(experiments(folded, unfolded))
        table([a for a, _ in lines])
        table([b for _, b in lines])
        found = differences(folded, unfolded)
        print("folded and unfolded: " + ("the same flows.csv and results.csv" if not found else "DIFFERENT"))
        for what in found[:20]:
            print(f"  {what}")
        differ |= bool(found)
        print("\nThe paper, against ns-3 and with steady states skipped, at full size:")
        for line in PAPER[suite]:
            print(f"  {line}")
        print()
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
