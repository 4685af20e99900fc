#!/usr/bin/env python3
"""Counts the instructions of everyday commands and holds them against benches/instructions.txt, so that no speed is lost unseen.

    scripts/ledger.py BINARY                               count every case and compare; exit code 1 where one takes more than 3 % above its line
    scripts/ledger.py BINARY --record "why it changed"     write the lines of cases that moved by more than 0.5 %, with the reason
    scripts/ledger.py BINARY --case flow --repeat 3        one case, three times, with its spread; more than 0.5 % is an error
    scripts/ledger.py BINARY --counters --file mine.txt    the processor's own counters (perf stat) in place of callgrind, with a file of their own
    scripts/ledger.py BINARY --profile DIR                 keep what callgrind wrote: callgrind_annotate DIR/CASE.callgrind says which functions it was
    scripts/ledger.py --list                               names of the cases, and what each is
    scripts/ledger.py --selftest                           the comparison held against counts that are made up, without valgrind

BINARY is a release build: cargo build --release makes target/release/hyperfold. A case is a command on a sweep of benches/ledger. Instructions are counted by valgrind's
callgrind, which runs one thread at a time, about fifty times slower than the processor does. They do not depend on the load of the machine. They do depend on the compiler, on
glibc and on what valgrind says the processor has, so the file names the compiler. scripts/setup-valgrind.sh installs valgrind.

What would make a count move from run to run is taken away: one thread on one core, no progress, a budget of memory that is given, an empty environment, a folder whose name
has the same length each time, no randomised addresses. Seeds of hash tables stay random; --repeat shows what they do.
"""
import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import platform
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SWEEPS = ROOT / "benches" / "ledger"
LEDGER = ROOT / "benches" / "instructions.txt"
# A case may take so much more than its line says, or so much less before the line should be lowered.
ABOVE = 0.03
BELOW = 0.05
# What is left of chance in a count. Lines of cases that moved by less stay as they are when others are recorded.
SPREAD = 0.005
LONGEST_S = 600


@dataclasses.dataclass(frozen=True)
class Case:
    """A command whose instructions are counted, and commands that make what it reads, which are not."""

    name: str
    about: str
    command: str
    before: tuple = ()


def run(sweep, *options):
    """Simulates a sweep of benches/ledger on one thread."""
    return " ".join((f"run {sweep}.toml --out out --engine cpu --jobs 1 --memory 4 --quiet", *options))


def engine(control):
    return Case(
        f"engine-{control}",
        f"the engine alone: a permutation of 64 hosts on a fat-tree, {control}",
        run("permutation", f"--set transport.cc={control}"),
    )


def folding(mode):
    options = [f"--set fidelity.fast_forward={mode}"]
    if mode == "rates":
        # Short jobs carry rates on only without audits, and only where flows collide.
        options += ["--set fidelity.audit=0 --set topology.kind=clos --set transport.cc=hpcc --set workload.global_batch=4"]
    return Case(f"folding-{mode}", f'a training job with fidelity.fast_forward = "{mode}"', run("training", *options))


CASES = [
    Case("start-up", "hyperfold --version", "--version"),
    *(engine(control) for control in ("none", "dcqcn", "hpcc", "timely", "dctcp")),
    Case("pause-storm", "32 hosts send to one without congestion control", run("storm")),
    *(folding(mode) for mode in ("off", "exact", "steady", "rates")),
    Case("variants-together", "24 variants of a training job that share patterns", run("variants")),
    Case("prepare-large", "the tables of a network of 2,000 hosts, over which little is sent", run("large")),
    Case("plan-10000", "planning ten thousand experiments", "plan points.toml --memory 4"),
    Case("layouts", "layouts of GPT-3 175B by closed form", run("layouts")),
    Case("optimize", "a search among candidates", run("search")),
    Case("flow-level", "an iteration on 32 GPUs at flow level", run("flow")),
    Case("serving", "a model that serves requests", run("serving")),
    Case("cluster", "a cluster over days, by two schedulers", run("cluster")),
    Case("collectives", "collectives as packets, algorithms as NCCL chooses", run("collectives")),
    Case("many-small", "a thousand experiments of a few packets each", run("thousand")),
    Case("compare", "ranking a thousand results", "compare out --top 3", (run("thousand"),)),
    Case("report", "the report of a thousand results", "report out", (run("thousand"),)),
    Case("resume", "a run that finds all of a thousand results there", run("thousand", "--resume"), (run("thousand"),)),
]


class LedgerError(Exception):
    """What the user reads, and exit code 2."""


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of the ledger: instructions, and why they last changed."""

    instructions: int
    reason: str


def read_ledger(text, name):
    """Lines of a ledger by the case's name."""
    lines = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split(None, 2)
        if len(parts) < 3 or not parts[1].replace(",", "").isdigit():
            raise LedgerError(f"{name}:{number}: `{line}`: a case, its instructions and a reason would be right")
        if parts[0] in lines:
            raise LedgerError(f"{name}:{number}: {parts[0]} has a line already")
        lines[parts[0]] = Line(int(parts[1].replace(",", "")), parts[2].strip())
    return lines


def ledger_text(lines, counted_with):
    """The ledger as a file."""
    head = [
        "# Instructions of everyday commands: case, instructions, why they last changed. scripts/ledger.py counts and compares them, and --list says what each case is.",
        "# More than 3 % above a line fails .ci/run. Whoever means it records the case anew: scripts/ledger.py BINARY --case CASE --record REASON.",
        f"# Counted with {counted_with}",
    ]
    rows = [f"{name:<18} {line.instructions:>15,}  {line.reason}" for name, line in lines.items()]
    return "\n".join(head + rows) + "\n"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a count says beside its line."""

    text: str
    failed: bool


def verdict(name, counted, line):
    """Holds a count against its line of the ledger."""
    if line is None:
        return Verdict(f"{name:<18} {counted:>15,}  has no line; record it with --case {name} --record REASON", True)
    change = counted / line.instructions - 1.0
    row = f"{name:<18} {counted:>15,}  {change:+7.2%}"
    if counted > line.instructions * (1.0 + ABOVE):
        return Verdict(f"{row}  MORE than {ABOVE:.0%} above {line.instructions:,} ({line.reason})", True)
    if counted < line.instructions * (1.0 - BELOW):
        return Verdict(f"{row}  well below {line.instructions:,}: record it, so that the gain stays", False)
    return Verdict(row, False)


def verdicts(counts, lines, whole):
    """Of each count, and of lines without a case where all cases were counted."""
    said = [verdict(name, counted, lines.get(name)) for name, counted in counts.items()]
    left = [name for name in lines if name not in counts] if whole else []
    return said + [Verdict(f"{name:<18} is in the ledger, but no case has this name", True) for name in left]


def recorded(counts, lines, reason, whole):
    """The lines after a recording: cases that moved get the count and the reason."""
    new = {name: line for name, line in lines.items() if not whole or name in counts}
    for name, counted in counts.items():
        old = lines.get(name)
        if old is None or abs(counted / old.instructions - 1.0) > SPREAD:
            new[name] = Line(counted, reason)
    order = {case.name: k for k, case in enumerate(CASES)}
    return dict(sorted(new.items(), key=lambda item: order.get(item[0], len(order))))


def first_line(command):
    """The first line that a command prints, or that it is not there."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return f"an unknown {command[0]}"


class Counter:
    """Counts the instructions of commands of one binary."""

    def __init__(self, binary, counters, profile):
        self.binary = binary
        self.counters = counters
        self.profile = profile
        fixed = ["setarch", platform.machine(), "-R"]
        probe = shutil.which("setarch") and subprocess.run([*fixed, "true"], capture_output=True, check=False)
        self.prefix = fixed if probe and probe.returncode == 0 else []
        self.tool = shutil.which("perf" if counters else "valgrind")
        if not self.tool:
            raise LedgerError("perf is missing" if counters else "valgrind is missing: run scripts/setup-valgrind.sh")

    def counted_with(self):
        """What a count depends on beside the code."""
        tool = "perf's counters" if self.counters else first_line([self.tool, "--version"])
        return f"{first_line(['rustc', '--version'])}, {tool}, glibc {platform.libc_ver()[1]}"

    def start(self, words, folder, core):
        """Runs a command to its end, on one core and with an empty environment; gives what it wrote on standard error."""
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(folder), "TMPDIR": str(folder), "RAYON_NUM_THREADS": "1"}
        ended = subprocess.run(
            words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=LONGEST_S, check=False, preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        if ended.returncode != 0:
            raise LedgerError(f"{' '.join(map(str, words))}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
        return ended.stderr

    def count(self, case, core):
        """Instructions of a case, and the seconds that counting took."""
        began = time.monotonic()
        # Names of temporary folders have one length, so paths are equally long in each run.
        with tempfile.TemporaryDirectory(prefix="ledger-") as name:
            folder = pathlib.Path(name)
            for sweep in SWEEPS.glob("*.toml"):
                shutil.copy(sweep, folder)
            for command in case.before:
                self.start([self.binary, *command.split()], folder, core)
            if self.counters:
                wrapped = [self.tool, "stat", "-x", ",", "-e", "instructions:u"]
            else:
                out = self.profile / f"{case.name}.callgrind" if self.profile else "/dev/null"
                wrapped = [self.tool, "--tool=callgrind", f"--callgrind-out-file={out}"]
            told = self.start([*self.prefix, *wrapped, self.binary, *case.command.split()], folder, core)
        pattern = r"^(\d+),.*instructions" if self.counters else r"Collected : (\d+)"
        found = re.search(pattern, told, re.MULTILINE)
        if not found:
            raise LedgerError(f"{case.name}: {wrapped[0]} did not say how many instructions it counted:\n{told}")
        return int(found.group(1)), time.monotonic() - began


def count_all(counter, cases, repeat):
    """Counts of each case, in their order. As many run at a time as there are cores: a count does not depend on the load."""
    cores = queue.SimpleQueue()
    usable = sorted(os.sched_getaffinity(0))
    for core in usable:
        cores.put(core)

    def one(case):
        core = cores.get()
        try:
            return [counter.count(case, core) for _ in range(repeat)]
        finally:
            cores.put(core)

    with concurrent.futures.ThreadPoolExecutor(len(usable)) as pool:
        waiting = [(case, pool.submit(one, case)) for case in cases]
        return {case.name: done.result() for case, done in waiting}


def selftest():
    """The comparison against counts that are made up. Asserts; needs no valgrind."""
    lines = {"steady": Line(1_000_000_000, "first count"), "storm": Line(2_000, "first, with a space")}
    again = read_ledger(ledger_text(lines, "nothing"), "made up")
    assert again == lines, again

    def failed(counts, whole=True):
        return [v.failed for v in verdicts(counts, lines, whole)]

    same = {"steady": 1_000_000_000, "storm": 2_000}
    assert failed(same) == [False, False]
    assert failed(same | {"steady": 1_030_000_000}) == [False, False], "3 % is allowed"
    assert failed(same | {"steady": 1_031_000_000}) == [True, False], "more is not"
    assert failed(same | {"steady": 1_050_000_000}) == [True, False], "a slow-down of 5 % fails"
    assert failed(same | {"new": 5}) == [False, False, True], "a case without a line"
    assert failed({"steady": 1_000_000_000}) == [False, True], "a line without a case"
    assert failed({"steady": 1_000_000_000}, whole=False) == [False], "not where some cases were counted"
    lower = verdict("steady", 940_000_000, lines["steady"])
    assert not lower.failed and "well below" in lower.text, lower
    new = recorded(same | {"storm": 2_100}, lines, "because", whole=True)
    assert new == {"steady": lines["steady"], "storm": Line(2_100, "because")}, new
    assert recorded({"steady": 1_004_000_000}, lines, "because", whole=False) == lines, "chance is not recorded"
    assert list(recorded({"steady": 5}, lines, "because", whole=True)) == ["steady"], "lines without a case go"
    for wrong in ("steady\n", "steady x reason\n", "steady 5\n", "a 5 b\na 5 b\n"):
        try:
            read_ledger(wrong, "made up")
        except LedgerError:
            continue
        raise AssertionError(f"{wrong!r} was read")
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names), names
    print("selftest: the comparison tells what is slower")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?", type=pathlib.Path, help="a release build of hyperfold")
    parser.add_argument("--case", action="append", default=[], metavar="NAME", help="only this case (repeatable)")
    parser.add_argument("--record", metavar="REASON", help="write the counts of cases that moved, with the reason")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="count each case N times, and say how far counts lie apart")
    parser.add_argument("--counters", action="store_true", help="the processor's counters by perf stat, in place of callgrind")
    parser.add_argument("--file", type=pathlib.Path, default=LEDGER, help="the ledger [default: benches/instructions.txt]")
    parser.add_argument("--profile", type=pathlib.Path, metavar="DIR", help="keep callgrind's output in this folder")
    parser.add_argument("--list", action="store_true", help="say what the cases are")
    parser.add_argument("--selftest", action="store_true", help="check the comparison itself")
    args = parser.parse_args()
    if not (args.list or args.selftest):
        if args.binary is None:
            parser.error("BINARY is missing: a release build, such as target/release/hyperfold")
        if not os.access(args.binary, os.X_OK):
            parser.error(f"{args.binary}: no such program; cargo build --release makes target/release/hyperfold")
        if args.counters and args.file == LEDGER:
            parser.error("--counters needs --file: what the processor counts is not what callgrind counts")
    return args


def chosen_cases(names):
    unknown = set(names) - {case.name for case in CASES}
    if unknown:
        raise LedgerError(f"no case {', '.join(sorted(unknown))}; there are: {', '.join(case.name for case in CASES)}")
    return [case for case in CASES if not names or case.name in names]


def main():
    args = parsed()
    if args.selftest:
        selftest()
        return 0
    cases = chosen_cases(args.case)
    if args.list:
        for case in cases:
            print(f"{case.name:<18} {case.about}: hyperfold {case.command}")
        return 0
    if args.profile:
        args.profile = args.profile.resolve()
        args.profile.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    counter = Counter(args.binary.resolve(), args.counters, args.profile)
    runs = count_all(counter, cases, args.repeat)
    wide = False
    for name, of_case in runs.items():
        counts = [count for count, _ in of_case]
        spread = max(counts) / min(counts) - 1.0
        wide |= spread > SPREAD
        if args.repeat > 1:
            print(f"{name:<18} spread {spread:.3%} of {len(counts)} counts{', too much' if spread > SPREAD else ''}; {of_case[-1][1]:.1f} s each")
    counts = {name: min(count for count, _ in of_case) for name, of_case in runs.items()}
    whole = not args.case
    lines = read_ledger(args.file.read_text(), args.file.name) if args.file.exists() else {}
    if args.record:
        args.file.write_text(ledger_text(recorded(counts, lines, args.record, whole), counter.counted_with()))
        print(f"{args.file}: recorded with {counter.counted_with()}")
        return 1 if wide else 0
    said = verdicts(counts, lines, whole)
    print("\n".join(v.text for v in said))
    print(f"{len(counts)} cases in {time.monotonic() - began:.0f} s; counted with {counter.counted_with()}")
    failed = any(v.failed for v in said)
    if failed:
        recorded_with = [line for line in args.file.read_text().splitlines() if line.startswith("# Counted with")] if args.file.exists() else []
        print(f"{args.file.name}: {' '.join(recorded_with).lstrip('# ') or 'there is no such file yet'}", file=sys.stderr)
        print("Something takes more instructions than its line says. Make it cheaper, or record it: scripts/ledger.py BINARY --case CASE --record REASON", file=sys.stderr)
    return 1 if failed or wide else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LedgerError as error:
        print(f"ledger.py: {error}", file=sys.stderr)
        sys.exit(2)
