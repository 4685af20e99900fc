#!/usr/bin/env python3
"""Arcadia's Figure 2: does a cluster end its jobs sooner if every job becomes faster?

    scripts/arcadia-groups.py --write          write the traces that experiments/papers/arcadia-groups.toml reads
    scripts/arcadia-groups.py OUT              print what its results in OUT say, as tables

A trace has jobs of nine groups: three ranges of sizes, three of training samples. As in the paper's Appendix A, the second trace of a pair is the first with every job as fast as
the fastest of its group. The gain is the time that all jobs take with the old times over that with the new, minus one; of a group, likewise with the jobs of that group.
"""
import csv
import pathlib
import random
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "experiments/papers/arcadia-groups"
SEEDS = (1, 2, 3)
JOBS = 300
# GPUs; hours of the mean job. Our choice: Meta's trace is not public.
SIZES = {"small": (8, 16, 32), "middle": (64, 128, 256), "large": (512, 1024)}
SAMPLES = {"short": 3.0, "medium": 8.0, "long": 24.0}


def jobs(seed):
    """Rows of (group, submit_s, GPUs, seconds): jobs arrive at random over four days; times of a group differ by up to 22 %."""
    draw = random.Random(seed).random
    pick = lambda of: list(of)[int(draw() * len(of))]
    rows = []
    for _ in range(JOBS):
        size = ("small", "small", "small", "middle", "middle", "large")[int(draw() * 6)]
        samples = pick(SAMPLES)
        rows.append((f"{size}-{samples}", draw() * 4 * 86400, pick(SIZES[size]), SAMPLES[samples] * 3600 * (0.9 + 0.2 * draw())))
    return sorted(rows, key=lambda row: row[1])


def write():
    FOLDER.mkdir(exist_ok=True)
    for seed in SEEDS:
        old = jobs(seed)
        fastest = {}
        for group, _, _, seconds in old:
            fastest[group] = min(seconds, fastest.get(group, seconds))
        for name in ("old", "new"):
            lines = ["# Written by scripts/arcadia-groups.py", "job,submit_s,gpus,duration_s"]
            for i, (group, submit, gpus, seconds) in enumerate(old):
                lines.append(f"{group}-{i},{submit:.0f},{gpus},{seconds if name == 'old' else fastest[group]:.0f}")
            (FOLDER / f"{name}-{seed}.csv").write_text("\n".join(lines) + "\n")


def spans(out):
    """Seconds from the first arrival to the last end, by experiment and group; the group "all" has every job."""
    found = {}
    with open(pathlib.Path(out) / "cluster_jobs.csv", newline="") as file:
        for row in csv.DictReader(file):
            for group in ("all", row["job"].rsplit("-", 1)[0]):
                first, last = found.get((row["exp_id"], group), (float("inf"), 0.0))
                found[(row["exp_id"], group)] = (min(first, float(row["submit_s"])), max(last, float(row["end_s"])))
    return {key: last - first for key, (first, last) in found.items()}


def tables(out):
    with open(pathlib.Path(out) / "results.csv", newline="") as file:
        runs = {(row["scheduler.policy"], pathlib.Path(row["jobs.path"]).stem): row for row in csv.DictReader(file)}
    took = spans(out)
    policies = list(dict.fromkeys(policy for policy, _ in runs))
    groups = ["all"] + [f"{size}-{samples}" for size in SIZES for samples in SAMPLES]
    print("| jobs | " + " | ".join(f"{policy}, trace {seed}" for policy in policies for seed in SEEDS) + " |")
    print("|---" * (1 + len(policies) * len(SEEDS)) + "|")
    for group in groups:
        gains = []
        for policy in policies:
            for seed in SEEDS:
                old, new = (took[(runs[(policy, f"{name}-{seed}")]["exp_id"], group)] for name in ("old", "new"))
                gains.append(f"{100 * (old / new - 1):+.1f} %")
        print(f"| {group} | " + " | ".join(gains) + " |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write() if sys.argv[1] == "--write" else tables(sys.argv[1])
