#!/usr/bin/env python3
"""How much it matters under HPCC what the counters of hops differ by within a unit of telemetry (docs/internals/folding.md, "What congestion control carries over"): completion times of a
message of 8 MB over three switches, alone, after messages of twelve sizes that shared some of its ports, on links that are all alike.

    scripts/telemetry-phases.py OUT [--binary PATH]

Prints, for each link rate and payload, how far the largest time is above the smallest with `off`, and how far `steady` is from that at most.
"""
import argparse
import csv
import pathlib
import subprocess

GRAPH = """id,ranks,kind,duration_ns,bytes,peer,tag,deps
b,1,send,,{},3,2,
rb,3,recv,,{},1,2,
e,0,send,,{},2,9,
re,2,recv,,{},0,9,
w,3,compute,2000000,,,,rb
c,3,send,,1000,0,3,w
rc,0,recv,,1000,3,3,
f,0,send,,8000000,3,4,rc
rf,3,recv,,8000000,0,4,
"""
SWEEP = """name = "telemetry-phases"
seed = 1
base.cluster = {{ gpus = 4, gpus_per_server = 1 }}
base.topology.kind = "clos"
base.topology.hosts_per_leaf = 1
base.transport.cc = "hpcc"
base.workload.kind = "dag"
base.output.flows = true
base.topology.link_gbps = {rate}
base.topology.uplink_gbps = {rate}
axes."transport.payload_bytes" = [1000, 4096]
axes."workload.path" = [{paths}]
"""
RATES = [25, 50, 100, 200, 400]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--binary", default="hyperfold")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    paths = []
    for i in range(12):
        path = args.out / f"after{i}.csv"
        shared, other = 200_000 + i * 4_354, 300_000 + i * 7_919
        path.write_text(GRAPH.format(shared, shared, other, other))
        paths.append(f'"{path.name}"')
    print("link, Gb/s  payload  spread  steady off by")
    for rate in RATES:
        times = {}
        for fold in ["off", "steady"]:
            sweep = args.out / f"{rate}.toml"
            sweep.write_text(SWEEP.format(rate=rate, paths=", ".join(paths)))
            run = args.out / f"{rate}.{fold}"
            subprocess.run([args.binary, "run", sweep, "--out", run, "--engine", "cpu", "--quiet", "--set", f"fidelity.fast_forward={fold}"], check=True)
            payload = {row["exp_id"]: row["transport.payload_bytes"] for row in csv.DictReader((run / "results.csv").open())}
            for row in csv.DictReader((run / "flows.csv").open()):
                if row["bytes"] == "8000000":
                    times.setdefault(payload[row["exp_id"]], {}).setdefault(fold, []).append(float(row["fct_ns"]))
        for payload, of in times.items():
            spread = max(of["off"]) / min(of["off"]) - 1
            worst = max((b / a - 1 for a, b in zip(of["off"], of["steady"])), key=abs)
            print(f"{rate:10}  {payload:>7}  {spread:6.2%}  {worst:+13.2%}")


if __name__ == "__main__":
    main()
