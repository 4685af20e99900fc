#!/usr/bin/env python3
"""Holds what is skipped against every packet simulated, where senders contend: experiments/contention, under four congestion controls and none.

    scripts/contention.py OUT [--binary PATH] [--case NAME ...] [--set KEY=VALUE ...]

Runs each case with fidelity.fast_forward "steady" and "off" into OUT (what is there already is kept) and prints, by case and control, how far off the makespan,
the mean and the largest completion time are, percent; `over` where one of the latter two is by more than the larger of 1 % and twice the spread that random
choices alone make (relative standard deviations of an independent reference, ns-3's RoCEv2 model over ten seeds, the worst of incasts and of other cases).
All cases take some five minutes on one core.
"""
import argparse
import csv
import pathlib
import subprocess
import sys

CASES = pathlib.Path(__file__).resolve().parent.parent / "experiments" / "contention"
# Of (mean, largest) completion time, percent.
SPREAD = {
    "incast": {"hpcc": (1.46, 0.25), "dcqcn": (2.26, 3.29), "timely": (0.14, 1.05), "dctcp": (1.98, 0.05), "none": (0, 0)},
    "other": {"hpcc": (1.20, 0.33), "dcqcn": (2.49, 6.33), "timely": (0, 0), "dctcp": (0, 0), "none": (0, 0)},
}


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def run(binary, case, mode, out, more):
    folder = out / f"{case.stem}.{mode}"
    if not (folder / "results.csv").exists():
        command = [binary, "run", case, "--out", folder, "--jobs", "1", "--engine", "cpu", "--quiet", "--set", f"fidelity.fast_forward={mode}", *more]
        done = subprocess.run(command, stdout=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"contention.py: {case.name} ({mode}) ended with {done.returncode}; remove {folder} and run it by hand")
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--binary", default="hyperfold")
    parser.add_argument("--case", action="append", help="only this one (repeatable)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the steady runs (repeatable)")
    args = parser.parse_args()
    more = [word for key in args.set for word in ("--set", key)]
    args.out.mkdir(parents=True, exist_ok=True)
    cases = sorted(p for p in CASES.glob("*.toml") if not args.case or p.stem in args.case)
    if not cases:
        sys.exit(f"contention.py: no such case; there are {', '.join(sorted(p.stem for p in CASES.glob('*.toml')))}")
    over = {}
    print(f"{'case':14} {'control':8} {'makespan':>9} {'mean':>8} {'largest':>8}  naps")
    for case in cases:
        off = run(args.binary, case, "off", args.out, [])
        steady = run(args.binary, case, "steady", args.out, more)
        for was, now, stats in zip(rows(off / "results.csv"), rows(steady / "results.csv"), rows(steady / "stats.csv")):
            control = was["transport.cc"]
            error = [100 * (float(now[k]) / float(was[k]) - 1) for k in ("makespan_ns", "fct_mean_ns", "fct_max_ns")]
            kind = "incast" if case.stem.startswith(("inc", "gather", "two_inc")) else "other"
            is_over = any(abs(e) > max(1, 2 * s) for e, s in zip(error[1:], SPREAD[kind][control]))
            over.setdefault(control, []).append(is_over)
            print(f"{case.stem:14} {control:8} {error[0]:+9.3f} {error[1]:+8.3f} {error[2]:+8.3f}  {stats['steady_skips']}{'  over' if is_over else ''}")
    for control, list_ in over.items():
        print(f"{control}: {sum(list_)} of {len(list_)} over")


if __name__ == "__main__":
    main()
