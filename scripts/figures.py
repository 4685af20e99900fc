#!/usr/bin/env python3
"""Measures the speed figures of README.md and docs/explanation/performance.md, and prints them as the tables that stand there.

    scripts/figures.py BINARY                  measure and print, best and worst of five; two minutes
    scripts/figures.py BINARY --write          write the tables into both pages, between `<!-- figures: NAME -->` and `<!-- figures end -->`
    scripts/figures.py BINARY --times 1 --only engine --only variants

BINARY is a release build: cargo build --release makes target/release/hyperfold. What is measured goes by turns, so that a neighbour on the machine slows down every row
and not one. Each table stands with the machine: processor, cores, and which share of them other programs and, on a guest, the host took meanwhile. Only a machine
without both is called idle.
"""
import argparse
import csv
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PERFORMANCE = ROOT / "docs" / "explanation" / "performance.md"
# A share of the cores below which other work does not count.
IDLE = 0.02
TABLE1 = "experiments/suites/wormhole-table1.toml"


@dataclasses.dataclass(frozen=True)
class Figure:
    """Something that is measured: a benchmark of `hyperfold bench`, or a shard of a sweep that holds one experiment."""

    name: str
    about: str
    shard: str = ""

    def command(self):
        """As the pages show it."""
        return f"hyperfold run {TABLE1} --out out/table1 --shard {self.shard} --jobs 1" if self.shard else f"hyperfold bench {self.name}"


ENGINE = [
    Figure("rail128-dcqcn", "a ring of 128 GPUs on rails, DCQCN"),
    Figure("rail128-hpcc", "the same, HPCC"),
    Figure("permutation1024-dcqcn", "a permutation of 1,024 hosts, DCQCN"),
    Figure("permutation1024-hpcc", "the same, HPCC"),
    Figure("storm32-none", "a pause storm: 32 hosts send to one, no congestion control"),
]
FOLDED = [
    Figure("gpt3-13b-128", "an iteration of GPT-3 13B on 128 GPUs, DCQCN", "4/24"),
    Figure("moe-8x7b-64", "an iteration of MoE-8x7B on 64 GPUs, DCQCN", "13/24"),
]
PREPARED = [
    Figure("generate-gpt3-175b-8192", "programs of GPT-3 175B for 8,192 ranks"),
    Figure("evaluate-gpt3-175b-8192", "an iteration of it by closed form"),
    Figure("prepare-gpt3-13b-128", "tables of an iteration of GPT-3 13B on 128 GPUs"),
]
VARIANTS = [
    Figure("variants1000-together", "a thousand variants of a training job in one run"),
    Figure("variants1000-alone", "twenty of them in runs of their own"),
]
GROUPS = {"engine": ENGINE, "folding": FOLDED, "preparing": PREPARED, "variants": VARIANTS}


@dataclasses.dataclass
class Measured:
    """Seconds of each turn, and what was done in them."""

    seconds: list = dataclasses.field(default_factory=list)
    row: dict = dataclasses.field(default_factory=dict)

    def best(self):
        return min(self.seconds)

    def worst(self):
        return max(self.seconds)

    def rates(self):
        """Millions of packet-hops a second: best and worst."""
        return tuple(f"{self.row['packet_hops'] / seconds / 1e6:.1f}" for seconds in (self.best(), self.worst()))


def busy_seconds():
    """Processor seconds that all programs of the machine have taken, and those that the host of a guest has taken from it."""
    fields = pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    ticks = [int(field) for field in fields]
    user, nice, system, _idle, _wait, irq, softirq, steal = ticks[:8]
    second = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / second, steal / second


def own_seconds():
    """Processor seconds of this script and of all programs that it has run."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def processor():
    """The processor's name."""
    found = re.search(r"^model name\s*:\s*(.+)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1).strip() if found else platform.processor() or platform.machine()


def is_guest():
    return bool(re.search(r"^flags\s*:.*\bhypervisor\b", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE))


def said(*command):
    """What a command prints."""
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if ended.returncode != 0:
        sys.exit(f"figures.py: {' '.join(map(str, command))}: exit code {ended.returncode}\n{ended.stderr}")
    return ended.stdout


class Machine:
    """What the figures were measured on, and what else it did meanwhile."""

    def __init__(self):
        self.began = datetime.datetime.now()
        self.busy, self.stolen = busy_seconds()
        self.own = own_seconds()

    def sentence(self, times):
        """The machine, for the pages."""
        busy, stolen = busy_seconds()
        cores = os.cpu_count() or 1
        passed = (datetime.datetime.now() - self.began).total_seconds() * cores
        others = max(0.0, (busy - self.busy) - (own_seconds() - self.own)) / passed
        taken = (stolen - self.stolen) / passed
        idle = others < IDLE and taken < IDLE
        kind = f"a guest on {processor()}" if is_guest() else processor()
        host = f", the host {taken:.0%}" if is_guest() else ""
        state = "idle" if idle else "BUSY"
        return (
            f"Best and worst of {times}, {self.began:%Y-%m-%d}, {kind} with {cores} cores. "
            f"It was {state}: other programs took {others:.0%} of the cores{host}."
        )


def measure(binary, figure):
    """One turn: seconds and the row."""
    if not figure.shard:
        rows = [json.loads(line) for line in said(binary, "bench", figure.name, "--json").splitlines()]
        seconds = rows[0]["seconds"] / (rows[0]["experiments"] if figure in PREPARED + VARIANTS else 1)
        return seconds, rows[0]
    with tempfile.TemporaryDirectory(prefix="figures-") as folder:
        said(binary, "run", ROOT / TABLE1, "--shard", figure.shard, "--jobs", "1", "--engine", "cpu", "--quiet", "--out", f"{folder}/out")
        with open(f"{folder}/out/stats.csv", encoding="utf-8") as stats, open(f"{folder}/out/results.csv", encoding="utf-8") as results:
            row = next(csv.DictReader(stats)) | next(csv.DictReader(results))
    return float(row["wall_s"]), {"packet_hops": int(row["packet_hops"]), "simulated": int(row["packet_hops_simulated"])}


def measure_all(binary, figures, times):
    """Every figure so many times, by turns."""
    measured = {figure.name: Measured() for figure in figures}
    for turn in range(times):
        for figure in figures:
            print(f"{turn + 1} of {times}: {figure.name}", file=sys.stderr)
            seconds, measured[figure.name].row = measure(binary, figure)
            measured[figure.name].seconds.append(seconds)
    return measured


def time(seconds):
    """Seconds in a unit that fits, with three digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def table(header, rows):
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def engine_table(measured):
    rows = [[f"`{f.name}`: {f.about}", f"{measured[f.name].row['packet_hops'] / 1e6:.1f}", *measured[f.name].rates()] for f in ENGINE]
    return table(["benchmark", "packet-hops, millions", "millions a second: best", "worst"], rows)


def folding_table(measured):
    rows = []
    for figure in FOLDED:
        m = measured[figure.name]
        rows.append([f"{figure.about}: `{figure.command()}`", f"{m.row['simulated'] / 1e6:.3f} of {m.row['packet_hops'] / 1e6:,.1f}", time(m.best()), time(m.worst())])
    return table(["run", "packet-hops simulated, millions", "time: best", "worst"], rows)


def preparing_table(measured):
    rows = [[f"`{f.name}`: {f.about}", time(measured[f.name].best()), time(measured[f.name].worst()), f"{measured[f.name].row['peak_bytes'] / 2**20:.3g} MiB"] for f in PREPARED]
    return table(["`hyperfold bench`", "time: best", "worst", "most memory"], rows)


def variants_table(measured):
    together, alone = (measured[f.name] for f in VARIANTS)
    rows = [[f"`{f.name}`: {f.about}", time(measured[f.name].best()), time(measured[f.name].worst())] for f in VARIANTS]
    rows.append(["times cheaper together", f"{alone.best() / together.best():.1f}", f"{alone.worst() / together.worst():.1f}"])
    return table(["`hyperfold bench`", "a variant: best", "worst"], rows)


def readme_table(measured):
    rows = []
    for figure in (ENGINE[0], ENGINE[2], ENGINE[4]):
        best, worst = measured[figure.name].rates()
        rows.append([figure.about, f"{best} M packet-hops/s", f"{worst} M", f"`{figure.command()}`"])
    m = measured[FOLDED[0].name]
    unfolded = f"{FOLDED[0].about}: {m.row['packet_hops'] / 1e6:,.0f} million packet-hops, of which {m.row['simulated'] / 1e6:.2f} are simulated"
    rows.append([unfolded, time(m.best()), time(m.worst()), f"`{FOLDED[0].command()}`"])
    return table(["what, on one core", "best", "worst", "command"], rows)


def written(text, name, block):
    """The page with another block of figures."""
    begin, end = f"<!-- figures: {name} -->", "<!-- figures end -->"
    before, found, rest = text.partition(begin)
    if not found or end not in rest:
        sys.exit(f"figures.py: no `{begin}` with `{end}` below it")
    return f"{before}{begin}\n{block}\n{end}{rest.split(end, 1)[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path, help="a release build of hyperfold")
    parser.add_argument("--times", type=int, default=5, metavar="N", help="turns [default: 5]")
    parser.add_argument("--only", action="append", default=[], choices=list(GROUPS), help="only these figures (repeatable)")
    parser.add_argument("--write", action="store_true", help="write the tables into the pages")
    args = parser.parse_args()
    if args.write and args.only:
        parser.error("--write needs all figures, as they stand with one machine")
    groups = {name: group for name, group in GROUPS.items() if name in (args.only or GROUPS)}
    machine = Machine()
    measured = measure_all(args.binary.resolve(), [figure for group in groups.values() for figure in group], args.times)
    told = machine.sentence(args.times)
    tables = {"engine": engine_table, "folding": folding_table, "preparing": preparing_table, "variants": variants_table}
    blocks = {name: f"{told}\n\n{tables[name](measured)}" for name in groups}
    if not args.only:
        blocks["speed"] = f"{readme_table(measured)}\n\n{told}"
    for name, block in blocks.items():
        print(f"\n{name}\n\n{block}")
    if args.write:
        README.write_text(written(README.read_text(), "speed", blocks.pop("speed")))
        page = PERFORMANCE.read_text()
        for name, block in blocks.items():
            page = written(page, name, block)
        PERFORMANCE.write_text(page)
        print(f"\nwritten to {README.name} and {PERFORMANCE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
