#!/usr/bin/env python3
"""What folding costs where nothing repeats: packet-hops by fidelity.fast_forward "steady" (or another mode), with audits, over those of "off".

    scripts/fold-cost.py BINARY                      every experiment of experiments/contention, at a tenth of its bytes
    scripts/fold-cost.py BINARY --random 0 900       random sweeps 0 to 899 of scripts/result-digests.py, as far as they have task graphs
    scripts/fold-cost.py BINARY --mode exact         another mode; --scale 1 simulates all bytes
    scripts/fold-cost.py BINARY --worst 40           how many of the worst are printed (default 25)

A line is the ratio, how far the time of an iteration (or the makespan) is off, and what was simulated. The last line says how many ratios are above 1.03 and
1.15, the worst, the mean and the largest error.
"""
import argparse
import concurrent.futures
import csv
import importlib.util
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMES = ("iteration_time_ns", "makespan_ns")


def digests():
    """scripts/result-digests.py as a module: it draws the random sweeps."""
    spec = importlib.util.spec_from_file_location("result_digests", ROOT / "scripts" / "result-digests.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def compared(binary, sweep, folder, mode, sets, name):
    """Lines of one sweep: ratio, error, name. Nothing where it cannot run."""
    rows = {}
    for way in ("off", mode):
        out = folder / way
        command = [binary, "run", sweep, "--out", out, "--jobs", "1", "--engine", "cpu", "--quiet", "--set", f"fidelity.fast_forward={way}", *sets]
        if subprocess.run([str(word) for word in command], capture_output=True).returncode not in (0, 1):
            return []
        rows[way] = {row["exp_id"]: (row, stats) for row, stats in zip(table(out / "results.csv"), table(out / "stats.csv"))}
    lines = []
    for exp_id, (plain, plain_stats) in rows["off"].items():
        folded, stats = rows[mode].get(exp_id, (None, None))
        needed = float(plain_stats["packet_hops_simulated"] or 0)
        if folded is None or needed == 0:
            continue
        ratio = (float(stats["packet_hops_simulated"]) + float(stats["audit_hops"] or 0)) / needed
        time = next(time for time in TIMES if plain.get(time))
        error = abs(float(folded[time]) / float(plain[time]) - 1)
        lines.append((ratio, error, f"{name} {exp_id} {plain.get('transport.cc') or ''}".strip()))
    return lines


def random_sweep(binary, drawn, index, mode):
    if drawn.KINDS[index % len(drawn.KINDS)] in ("traffic", "flows"):
        return []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        convert = drawn.random_sweep(index, folder)
        traces = [binary, "workload", "convert", convert, "--to", "chakra", "--out", folder / "traces"]
        if convert and subprocess.run([str(word) for word in traces], capture_output=True).returncode:
            return []
        return compared(binary, folder / "sweep.toml", folder, mode, [], f"random-{index:03}")


def contended(binary, sweep, scale, mode):
    with tempfile.TemporaryDirectory() as name:
        return compared(binary, sweep, pathlib.Path(name), mode, ["--set", f"workload.bytes_scale={scale}"], sweep.stem)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--random", nargs=2, type=int, metavar=("FROM", "TO"), help="random sweeps instead of experiments/contention")
    parser.add_argument("--mode", default="steady", choices=("exact", "steady", "rates"))
    parser.add_argument("--scale", type=float, default=0.1, help="workload.bytes_scale of experiments/contention (default 0.1)")
    parser.add_argument("--worst", type=int, default=25, help="how many lines are printed (default 25)")
    parser.add_argument("--parallel", type=int, default=2, help="runs at a time (default 2)")
    args = parser.parse_args()
    binary = shutil.which(args.binary)
    if binary is None:
        parser.error(f"no program {args.binary}; cargo build --release makes target/release/hyperfold")
    binary = str(pathlib.Path(binary).resolve())
    with concurrent.futures.ThreadPoolExecutor(args.parallel) as pool:
        if args.random:
            drawn = digests()
            found = list(pool.map(lambda index: random_sweep(binary, drawn, index, args.mode), range(*args.random)))
        else:
            sweeps = sorted((ROOT / "experiments" / "contention").glob("*.toml"))
            found = list(pool.map(lambda sweep: contended(binary, sweep, args.scale, args.mode), sweeps))
    lines = sorted((line for lines in found for line in lines), reverse=True)
    if not lines:
        parser.error("nothing could be compared: no sweep ran in both ways")
    for ratio, error, name in lines[: args.worst]:
        print(f"{ratio:6.3f}  {error:8.3%} off  {name}")
    above = [sum(ratio > bound for ratio, _, _ in lines) for bound in (1.03, 1.15)]
    mean = sum(ratio for ratio, _, _ in lines) / len(lines)
    print(f"{len(lines)} experiments: {above[0]} above 1.03, {above[1]} above 1.15, worst {lines[0][0]:.3f}, mean {mean:.3f}, largest error {max(error for _, error, _ in lines):.3%}")


if __name__ == "__main__":
    main()
