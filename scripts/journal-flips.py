#!/usr/bin/env python3
"""Flips single bits in the journal of a run, and counts what is lost, what is told and what comes back.

    scripts/journal-flips.py BINARY [N] [--seed S]

BINARY is the program, N (300) how many journals are damaged, one random bit each. Each time: `recover` and `run --resume` end with exit code 0 or 1;
at most one experiment is lost; whatever is damaged is told as a warning, by `run --resume --quiet` too; and what the resumed run writes has every byte
of the undisturbed run. Exit code 0: no finding.
"""

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SWEEP = """name = "flips"
[base]
cluster = { gpus = 8, gpus_per_server = 1, nics_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 4, spines = 4 }
workload = { kind = "traffic", pattern = "ring" }
output = { flows = true, links = true }
[axes]
"transport.cc" = ["dcqcn", "hpcc", "timely", "dctcp"]
"workload.bytes" = [1000, 2000, 3000, 4000, 5000, 6000]
"topology.link_gbps" = [100, 200, 400]
"""
EXPERIMENTS = 72
FILES = ["results.csv", "results.parquet", "flows.csv", "links.csv", "failed.csv"]


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("binary")
    ask.add_argument("n", type=int, nargs="?", default=300)
    ask.add_argument("--seed", default="1")
    asked = ask.parse_args()
    binary = str(Path(asked.binary).resolve())
    rng = random.Random(asked.seed)
    work = Path(tempfile.mkdtemp(prefix="flips-"))
    findings = nothing = one = 0

    def hyperfold(*args):
        return subprocess.run([binary, *args], cwd=work, capture_output=True, text=True, errors="replace")

    def run(folder, *more):
        return hyperfold("run", "s.toml", "--engine", "cpu", "--jobs", "1", "--quiet", "--out", folder, *more)

    try:
        (work / "s.toml").write_text(SWEEP)
        whole = run("whole")
        if whole.returncode != 0:
            sys.exit(f"the undisturbed run ended with {whole.returncode}: {whole.stderr}")
        kept = {name: (work / "whole" / name).read_bytes() for name in FILES if (work / "whole" / name).is_file()}
        journal = (work / "whole" / "journal.bin").read_bytes()
        for case in range(asked.n):
            damaged = bytearray(journal)
            at, bit = rng.randrange(len(damaged)), rng.randrange(8)
            damaged[at] ^= 1 << bit
            for folder in ("o", "o-recovered"):
                shutil.rmtree(work / folder, ignore_errors=True)
            shutil.copytree(work / "whole", work / "o")
            (work / "o" / "journal.bin").write_bytes(damaged)
            wrong = []
            recovered = hyperfold("recover", "o")
            found = re.search(r"recovered: (\d+) experiments?", recovered.stdout)
            lost = EXPERIMENTS - int(found[1]) if found else EXPERIMENTS
            if recovered.returncode not in (0, 1) or not 0 <= lost <= 1:
                wrong.append(f"recover ended with {recovered.returncode}, {lost} experiments lost: {recovered.stdout}{recovered.stderr}")
            resumed = run("o", "--resume")
            for command, ended in (("recover", recovered), ("run --resume --quiet", resumed)):
                if "damaged" not in ended.stderr:
                    wrong.append(f"{command} says nothing of the damage: {ended.stderr}")
            if resumed.returncode != 0:
                wrong.append(f"run --resume ended with {resumed.returncode}: {resumed.stderr}")
            wrong += [f"{name} differs" for name, body in kept.items() if (work / "o" / name).read_bytes() != body]
            nothing += lost == 0
            one += lost == 1
            if wrong:
                findings += 1
                print(f"case {case}: bit {bit} of byte {at} of {len(journal)}:", *wrong, sep="\n    ", flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{asked.n} flips (seed {asked.seed}): {nothing} lost nothing, {one} lost one experiment; {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
