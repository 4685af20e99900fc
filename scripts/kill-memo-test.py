#!/usr/bin/env python3
"""Kills a run while it writes to the memo's file, carries on with --resume, and compares every byte with a run that had no memo.

    scripts/kill-memo-test.py HYPERFOLD [KILLS] [SEED]

HYPERFOLD is the program; KILLS (60) is how many kills must hit a process that holds the memo's lock. SEED gives the moments within a write.
Whoever holds the lock reads what others have added and adds to it, so every such kill falls into a write or just beside one. Exit code 0: all
bytes were equal.
"""

import fcntl
import filecmp
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SWEEP = """
name = "killed"
[base]
cluster = { gpus = 16, gpus_per_server = 1, nics_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 8, spines = 8 }
workload = { kind = "collective", op = "all-reduce", algorithm = "ring", bytes = 4000000, iterations = 3 }
output = { flows = true, links = true }
[axes]
"transport.cc" = ["dcqcn", "hpcc", "timely"]
"topology.link_gbps" = [100, 200]
"""
FILES = ["results.csv", "results.parquet", "flows.csv", "links.csv"]


def is_held(lock):
    """Whether another process has the lock."""
    try:
        with open(lock, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    program = str(Path(sys.argv[1]).resolve())
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    seed = sys.argv[3] if len(sys.argv) > 3 else str(time.time_ns() % 65536)
    rng = random.Random(seed)
    work = Path(tempfile.mkdtemp(prefix="kill-memo-"))
    try:
        (work / "sweep.toml").write_text(SWEEP)
        base = [program, "run", "sweep.toml", "--engine", "cpu", "--quiet"]
        subprocess.run([*base, "--out", "whole"], cwd=work, check=True)
        hits = completed = starts = 0
        while hits < kills:
            starts += 1
            if starts > 50 * kills:
                sys.exit(f"kill-memo-test: only {hits} of {starts} runs could be hit while they wrote (seed {seed})")
            with open(work / "log", "wb") as log:
                run = subprocess.Popen([*base, "--out", "out", "--resume", "--memo", "memo"], cwd=work, stdout=log, stderr=log)
                # The first time the lock is held the memo is opened, and later it is written; any of them, and any moment within.
                which, seen, was, pause = rng.randrange(1, 3), 0, False, rng.random() * 0.001
                while run.poll() is None:
                    held = is_held(work / "memo.lock")
                    seen += held and not was
                    was = held
                    if held and seen >= which:
                        time.sleep(pause)
                        if is_held(work / "memo.lock"):
                            run.kill()
                            break
                code = run.wait()
            if code == -9:
                hits += 1
                continue
            if code != 0:
                print((work / "log").read_text())
                sys.exit(f"kill-memo-test: the run ended with {code} (seed {seed})")
            completed += 1
            for name in FILES:
                if not filecmp.cmp(work / "whole" / name, work / "out" / name, shallow=False):
                    sys.exit(f"kill-memo-test: {name} differs from that of a run without a memo (seed {seed})")
            shutil.rmtree(work / "out")
            # A memo that has everything is written no more.
            for left in work.glob("memo*"):
                left.unlink()
        last = subprocess.run([*base, "--out", "out", "--resume", "--memo", "memo"], cwd=work)
        same = all(filecmp.cmp(work / "whole" / name, work / "out" / name, shallow=False) for name in FILES)
        if last.returncode != 0 or not same:
            sys.exit(f"kill-memo-test: the last run ended with {last.returncode}, bytes equal: {same} (seed {seed})")
        print(f"kill-memo-test: {hits} kills while the memo was locked for writing, {completed + 1} completions, all bytes equal (seed {seed})")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
