#!/usr/bin/env python3
"""Writes random messages as a task graph, for measuring what folding costs where nothing repeats (benches/runs, fold-price): messages without dependencies, each behind a
compute node that delays it; sizes and delays are log-uniform.

    scripts/random-messages.py FOLDER MESSAGES [--stretch N]

FOLDER gets mix.csv and mixed.toml (a fat-tree of 16 hosts at 400 Gb/s, HPCC). --stretch multiplies delays, which are up to 200 us. The same arguments write the same files. Then, with valgrind,
for `steady` and `off`:

    valgrind --tool=callgrind --cache-sim=no hyperfold run FOLDER/mixed.toml --out OUT --engine cpu --jobs 1 --quiet --set fidelity.fast_forward=steady
"""
import argparse
import math
import pathlib
import random

SWEEP = """name = "mixed"
seed = 1
base.cluster = { gpus = 16, gpus_per_server = 1 }
base.topology = { kind = "fat-tree", k = 4, link_gbps = 400 }
base.transport.cc = "hpcc"
base.workload = { kind = "dag", path = "mix.csv" }
base.output.flows = true
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("messages", type=int)
    parser.add_argument("--stretch", type=int, default=1)
    args = parser.parse_args()
    draw = random.Random(1)
    lines = ["id,ranks,kind,duration_ns,bytes,group,peer,tag,stream,deps"]
    for i in range(args.messages):
        src, dst = draw.sample(range(16), 2)
        delay = int(math.exp(draw.uniform(0, math.log(200_000)))) * args.stretch
        size = int(math.exp(draw.uniform(math.log(1_000), math.log(1_000_000))))
        lines.append(f"c{i},{src},compute,{delay},,,,,free,")
        lines.append(f"m{i},{src},send,,{size},,{dst},{i},free,c{i}")
        lines.append(f"r{i},{dst},recv,,{size},,{src},{i},free,")
    args.folder.mkdir(parents=True, exist_ok=True)
    (args.folder / "mix.csv").write_text("\n".join(lines) + "\n")
    (args.folder / "mixed.toml").write_text(SWEEP)


if __name__ == "__main__":
    main()
