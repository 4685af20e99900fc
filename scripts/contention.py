#!/usr/bin/env python3
"""Holds what is skipped against every packet simulated, where senders contend: experiments/contention, under four congestion controls and none.

    scripts/contention.py OUT [--binary PATH] [--case NAME ...] [--set KEY=VALUE ...] [--mode rates] [--spread]

Runs each case with fidelity.fast_forward "steady" (or what --mode says) and "off" into OUT (what is there already is kept) and prints, by case and control, how far off the makespan,
the mean and the largest completion time are, percent; `over` where one of the latter two is by more than the larger of 1 % and twice the spread that random
choices alone make (relative standard deviations of an independent reference, ns-3's RoCEv2 model over ten seeds, the worst of incasts and of other cases).
All cases take some five minutes on one core. With --spread, cases that are over run with "off" another eight times, over links of 996 to 1,003 ns: how much a
nanosecond changes them (relative standard deviations, percent) tells chance from bias.
"""
import argparse
import csv
import pathlib
import statistics
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


def run(binary, case, mode, out, more, tag=""):
    folder = out / f"{case.stem}.{mode}{tag}"
    if not (folder / "results.csv").exists():
        command = [binary, "run", case, "--out", folder, "--jobs", "1", "--engine", "cpu", "--quiet", "--set", f"fidelity.fast_forward={mode}", *more]
        done = subprocess.run(command, stdout=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"contention.py: {case.name} ({mode}) ended with {done.returncode}; remove {folder} and run it by hand")
    return folder


def spread(binary, case, out):
    """By control: relative standard deviations of the mean and the largest completion time, percent."""
    runs = [run(binary, case, "off", out, ["--set", f"topology.link_delay_ns={ns}"], f".{ns}ns") for ns in range(996, 1004)]
    by_control = {}
    for row in (row for folder in runs for row in rows(folder / "results.csv")):
        by_control.setdefault(row["transport.cc"], []).append([float(row[k]) for k in ("fct_mean_ns", "fct_max_ns")])
    return {control: [100 * statistics.stdev(values) / statistics.mean(values) for values in zip(*list_)] for control, list_ in by_control.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--binary", default="hyperfold")
    parser.add_argument("--case", action="append", help="only this one (repeatable)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the steady runs (repeatable)")
    parser.add_argument("--mode", default="steady", choices=["steady", "rates"], help="what is held against every packet simulated")
    parser.add_argument("--spread", action="store_true", help="say by how much the cases that are over spread by themselves")
    args = parser.parse_args()
    more = [word for key in args.set for word in ("--set", key)]
    args.out.mkdir(parents=True, exist_ok=True)
    cases = sorted(p for p in CASES.glob("*.toml") if not args.case or p.stem in args.case)
    if not cases:
        sys.exit(f"contention.py: no such case; there are {', '.join(sorted(p.stem for p in CASES.glob('*.toml')))}")
    over, over_cases, errors = {}, {}, {}
    print(f"{'case':35} {'control':8} {'makespan':>9} {'mean':>8} {'largest':>8}  naps")
    for case in cases:
        off = run(args.binary, case, "off", args.out, [])
        steady = run(args.binary, case, args.mode, args.out, more)
        for was, now, stats in zip(rows(off / "results.csv"), rows(steady / "results.csv"), rows(steady / "stats.csv")):
            control = was["transport.cc"]
            error = [100 * (float(now[k]) / float(was[k]) - 1) for k in ("makespan_ns", "fct_mean_ns", "fct_max_ns")]
            kind = "incast" if case.stem.startswith(("incast", "gather", "two-incasts")) else "other"
            is_over = any(abs(e) > max(1, 2 * s) for e, s in zip(error[1:], SPREAD[kind][control]))
            over.setdefault(control, []).append(is_over)
            errors.setdefault(control, []).append(error)
            if is_over:
                over_cases.setdefault(case, []).append((control, error))
            print(f"{case.stem:35} {control:8} {error[0]:+9.3f} {error[1]:+8.3f} {error[2]:+8.3f}  {stats['steady_skips']}{'  over' if is_over else ''}")
    for control, list_ in over.items():
        makespan, mean, largest = ([abs(e[k]) for e in errors[control]] for k in range(3))
        within = sum(a <= 0.5 and b <= 2 for a, b in zip(makespan, mean))
        print(f"{control}: {sum(list_)} of {len(list_)} over; off on average by {statistics.mean(makespan):.2f} % (makespan), {statistics.mean(mean):.2f} % (mean), {statistics.mean(largest):.2f} % (largest); {within} within 0.5 % of the makespan and 2 % of the mean")
    if args.spread and over_cases:
        print(f"\n{'case':35} {'control':8} {'mean':>8} {'steady':>8} {'largest':>8} {'steady':>8}")
        for case, controls in over_cases.items():
            of = spread(args.binary, case, args.out)
            for control, error in controls:
                print(f"{case.stem:35} {control:8} {of[control][0]:8.2f} {error[1]:+8.2f} {of[control][1]:8.2f} {error[2]:+8.2f}")


if __name__ == "__main__":
    main()
