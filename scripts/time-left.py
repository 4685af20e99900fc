#!/usr/bin/env python3
"""Holds the time that `hyperfold run` says is left against the time that it takes.

    scripts/time-left.py BINARY [--only WORD] [--threads N]

Sweeps of experiments run one after the other in a terminal of their own (a pseudo-terminal), as for a user, and what the bar says is read along. At a quarter, a half and three quarters of each run's
time, the time that had passed and the time said to be left are a total. The table has it over the time that the run took: 1.00 is right, from 0.50 to 2.00 is within a factor of two. `-`: nothing was
said, as before something is known, or because less than a second was left. Runs use no memo on disk.
"""
import argparse
import os
import pathlib
import pty
import re
import select
import shutil
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent / "experiments"
SWEEPS = [
    ["quickstart.toml"],
    ["contention/incast-15.toml"],
    ["studies/folding.toml", "--set", "topology.kind=clos", "--set", "transport.cc=hpcc"],
    ["studies/flow-beside-golden-topologies.toml"],
    ["studies/inference-experts.toml"],
    ["studies/gpt3-13b-128.toml"],
    ["suites/wormhole-cc.toml"],
    ["suites/wormhole-table1.toml", "--limit", "4"],
    ["suites/wormhole-thresholds.toml"],
    ["suites/wormhole-topologies.toml"],
    ["suites/wormhole-trace-small.toml"],
    ["contention/all-to-all-16-fat-tree.toml"],
]
MARKS = [0.25, 0.5, 0.75]
LEFT = re.compile(r"about (?:(\d+) h )?(?:(\d+) min ?)?(?:([\d.]+) s )?left")
LINE = re.compile(r"\d+/\d+ experiments finished[^\r\n\x1b]*")


def seconds(text):
    """The seconds that a line says are left, or None."""
    found = LEFT.search(text)
    if not found:
        return None
    hours, minutes, rest = found.groups()
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(rest or 0)


def watched(command):
    """Runs the command in a terminal. Returns its exit code, how long it took, and what it said was left, and when."""
    began, said = time.monotonic(), []
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm", COLUMNS="200")
        os.execvp(command[0], command)
    rest = ""
    while True:
        ready, _, _ = select.select([terminal], [], [], 1.0)
        if not ready:
            continue
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        rest = (rest + data.decode(errors="replace"))[-4000:]
        lines = LINE.findall(rest)
        if lines:
            said.append((time.monotonic() - began, seconds(lines[-1])))
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - began, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--only", default="", help="sweeps whose command has this word")
    parser.add_argument("--threads", help="as --jobs of hyperfold run")
    args = parser.parse_args()
    binary = shutil.which(args.binary)
    if not binary:
        sys.exit(f"{args.binary} is no program")
    print(f"{'sweep':75}  took, s  " + "  ".join(f"at {mark * 100:.0f} %" for mark in MARKS))
    told = within = 0
    for sweep in SWEEPS:
        name = " ".join(sweep).replace("--set ", "")
        if args.only not in name:
            continue
        with tempfile.TemporaryDirectory(prefix="time-left.") as folder:
            command = [binary, "run", str(ROOT / sweep[0]), *sweep[1:], "--out", f"{folder}/out", "--memo", "off"]
            command += ["--jobs", args.threads] if args.threads else []
            code, took, said = watched(command)
        if code not in (0, 1):
            print(f"{name:75}  failed with exit code {code}")
            continue
        cells = []
        for mark in MARKS:
            before = [left for at, left in said if at <= mark * took]
            left = before[-1] if before else None
            ratio = None if left is None else mark + left / took
            told += ratio is not None
            within += ratio is not None and 0.5 <= ratio <= 2
            cells.append("     -" if ratio is None else f"{ratio:6.2f}")
        print(f"{name:75}  {took:7.1f}  " + "  ".join(cells), flush=True)
    print(f"{within} of {told} totals that were said are within a factor of two of the time that the run took")


if __name__ == "__main__":
    main()
