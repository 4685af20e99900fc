#!/usr/bin/env python3
"""Runs the program on inputs that are nearly right: sweeps, the files they name, folders of results and memos with random damage.

    scripts/mutated-inputs.py BINARY [N] [--seed S] [--only WORD] [--jobs J] [--keep DIR]

BINARY is the program, N (10,000) how many inputs. Half of them are of the newer readers: overlays, tables of GPUs, models, kernels and slowdowns, traces
of clusters and of their failures, files of requests, logs of nccl-tests, traces of profilers, measured values, XML of servers, logs of runs. Each is read
by one command under 1 GiB of address space and within 20 s of one processor, 200 s on the clock. The exit code
must be 0 to 3, and nothing may panic, as a defect inside an experiment either. What fails is printed, and kept in DIR with its command.
Experiments get limits of packet-hops and seconds, so that what is merely large ends. Equal seeds give equal inputs. Exit code 0: no finding.
"""

import argparse
import concurrent.futures
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus"
MEMORY = 1 << 30
SECONDS = 20
LIMITS = ["--set", "limits.packet_hops=20000", "--set", "limits.wall_s=3"]

NUMBERS = [
    "0", "-1", "1", "2", "3", "7", "255", "65535", "65536", "4294967295", "4294967296", "2147483648", "9007199254740993",
    "9223372036854775807", "18446744073709551615", "18446744073709551616", "-9223372036854775808", "1e308", "1e-308", "1e999", "nan", "inf",
    "-0", "0.1", "0x10", "1_000", "00", "99999999999999999999999999", "1000000", "100000000",
]
WORDS = [
    "\n", "\t", " ", "=", "[", "]", "{", "}", "[[", "]]", "\"", "'", "#", ",", ".", ":", "\\", "\0", "\x1b[2J", "\u202e", "\ufeff", "é",
    "true", "false", "../", "/dev/zero", "*", "%", "<", "</", "/>", "&amp;", "->", "|", "(" * 200, "[" * 200, "x" * 5000, "\r\n",
    "[axes]\n", "[base.workload]\n", "[base.cluster]\n", "gpus = 16\n", "kind = \"model\"\n", "kind = \"chakra\"\n", "tp = 8\n", "id,ranks\n",
]


def text(path):
    return Path(path).read_bytes()


def seeds():
    """Each: a name, its files by name, which of them are changed, and what runs (the sweep is s.toml)."""
    made = []
    traffic = b'kind = "traffic"\npattern = "ring"\nbytes = 1000\n'

    def sweep(name, sections, files=None, change=None):
        body = "name = \"m\"\n" + "".join(f"[base.{s}]\n{lines}\n" for s, lines in sections.items())
        everything = {"s.toml": body.encode(), **(files or {})}
        made.append((name, everything, change or list(everything), "sweep"))

    ring = 'kind = "traffic"\npattern = "ring"\nbytes = 1000'
    small = {"cluster": "gpus = 8\ngpus_per_server = 1", "topology": 'kind = "clos"\nhosts_per_leaf = 4\nspines = 2'}
    for path in sorted((CORPUS / "sweep").glob("*.toml")):
        made.append((f"sweep-{path.stem}", {"s.toml": text(path)}, ["s.toml"], "sweep"))
    for pattern in ["incast", "permutation", "ring", "all-to-all", "poisson"]:
        lines = f'kind = "traffic"\npattern = "{pattern}"' + ("\nduration_ns = 10000" if pattern == "poisson" else "\nbytes = 5000")
        for cc in ["dcqcn", "hpcc", "timely", "dctcp", "none"]:
            sweep(f"sweep-{pattern}-{cc}", {**small, "transport": f'cc = "{cc}"', "workload": lines, "output": "flows = true\nlinks = true\nrtt = true"})
    axes = b'[sweep]\nmethod = "%s"\nsamples = 4\n[axes]\n"topology.link_gbps" = %s\n[[constraints]]\nwhere = "topology.link_gbps > 100 and cluster.gpus == 8"\n'
    for method, values in [(b"grid", b"[100, 200]"), (b"zip", b"[100, 200]"), (b"random", b"{ min = 100, max = 400 }"), (b"lhs", b"{ min = 100, max = 400 }"),
                           (b"optimize", b"{ start = 100, stop = 400, step = 100 }")]:
        body = b'name = "m"\n[base.cluster]\ngpus = 8\ngpus_per_server = 1\n[base.workload]\n' + traffic + axes % (method, values)
        if method not in (b"random", b"lhs", b"optimize"):
            body = body.replace(b"samples = 4\n", b"")
        made.append((f"sweep-{method.decode()}", {"s.toml": body}, ["s.toml"], "sweep"))
    for path in sorted((ROOT / "experiments" / "studies").glob("*.toml")) + [ROOT / "experiments" / "quickstart.toml"]:
        made.append((f"sweep-{path.stem}", {"s.toml": text(path)}, ["s.toml"], "sweep"))
    for path in sorted((ROOT / "experiments" / "contention").glob("*.toml"))[::5]:
        files = {"s.toml": text(path)}
        for named in re.findall(r'"([^"]+\.csv)"', path.read_text()):
            files[named] = text(path.parent / named)
        made.append((f"dag-{path.stem}", files, list(files), "sweep"))

    for path in sorted((CORPUS / "topology").iterdir()):
        form = path.suffix[1:]
        sweep(f"topology-{path.name}", {"topology": f'kind = "file"\npath = "t"\nformat = "{form}"', "workload": ring}, {"t": text(path)}, ["t"])
    for path in sorted((CORPUS / "topo").iterdir()):
        sweep(f"topology-{path.name}", {"topology": 'kind = "file"\npath = "t"\nformat = "htsim"', "workload": ring}, {"t": text(path)}, ["t"])
    star = {"t": text(CORPUS / "topology" / "ok-star.ns3")}
    for path in sorted((CORPUS / "flows").iterdir()):
        sweep(f"flows-{path.name}", {"topology": 'kind = "file"\npath = "t"\nformat = "ns3"', "workload": 'kind = "flows"\npath = "f"\nstart_unit = "ns"'},
              {**star, "f": text(path)}, ["f"])
    for path in sorted((CORPUS / "routes").iterdir()):
        sweep(f"routes-{path.name}", {"topology": 'kind = "file"\npath = "t"\nformat = "ns3"', "routing": 'policy = "file"\npath = "r"',
              "workload": 'kind = "flows"\npath = "f"\nstart_unit = "ns"'}, {**star, "f": text(CORPUS / "flows" / "ok-ns.txt"), "r": text(path)}, ["r"])
    for path in sorted((CORPUS / "cdf").iterdir()):
        sweep(f"cdf-{path.name}", {**small, "workload": 'kind = "traffic"\npattern = "poisson"\nduration_ns = 10000\ncdf = "./c.csv"'}, {"c.csv": text(path)}, ["c.csv"])
    for path in sorted((CORPUS / "config").iterdir()) + sorted((ROOT / "experiments" / "reference-cases").glob("*.config.txt")):
        sweep(f"config-{path.name}", {**small, "transport": 'config = "c"\nformat = "ns3"', "workload": ring}, {"c": text(path)}, ["c"])
    for kind, folder in [("simai", "simai"), ("htsim", "htsim"), ("goal", "goal")]:
        for path in sorted((CORPUS / folder).iterdir()):
            name = "w" + path.suffix
            sweep(f"{kind}-{path.name}", {"cluster": "gpus_per_server = 1", "workload": f'kind = "{kind}"\npath = "{name}"'}, {name: text(path)}, [name])
    graph = b"# a ring\nid,ranks,kind,bytes,peer,deps,duration_ns\nwork,0-3,compute,,,,1e3\nto,0-3,send,64,+1,work,\nfrom,0-3,recv,64,-1,,\n"
    sweep("dag-csv", {"cluster": "gpus = 4\ngpus_per_server = 1", "workload": 'kind = "dag"\npath = "g.csv"'}, {"g.csv": graph}, ["g.csv"])
    graph = b'ranks = 4\n[groups]\nall = "0-3"\n[[node]]\nid = "a"\nkind = "compute"\nduration_ns = 100\n[[node]]\nid = "b"\nkind = "all-reduce"\nbytes = 1000\ngroup = "all"\ndeps = ["a"]\n'
    sweep("dag-toml", {"cluster": "gpus = 4\ngpus_per_server = 1", "workload": 'kind = "dag"\npath = "g.toml"'}, {"g.toml": graph}, ["g.toml"])
    gpu = '<gpu dev="%d" sm="80"><nvlink target="a" count="12" tclass="0x068000"/></gpu>'
    nic = '<pci link_speed="16.0 GT/s PCIe" link_width="16"><nic><net name="mlx5_%d" speed="100000"/></nic></pci>'
    cpu = '<cpu numaid="%d" vendor="AuthenticAMD"><pci link_speed="16.0 GT/s PCIe" link_width="16">' + gpu + gpu + nic + "</pci></cpu>"
    xml = ("<system>" + cpu % (0, 0, 1, 0) + cpu % (1, 2, 3, 1) + "</system>").encode()
    nccl = 'NCCL_ALGO = "Ring"\nNCCL_PROTO = "Simple"\nNCCL_IB_HCA = "mlx5_0"\nNCCL_BUFFSIZE = "4194304"\nNCCL_MIN_NCHANNELS = 2'
    collective = 'kind = "collective"\nop = "all-reduce"\nbytes = 4000'
    sweep("xml", {"cluster": 'gpus = 8\ngpus_per_server = 4\nserver_xml = "x.xml"', "workload": collective}, {"x.xml": xml}, ["x.xml"])
    sweep("nccl", {"cluster": "gpus = 16", "workload": collective, "workload.nccl": nccl})
    model = 'kind = "model"\nmodel = "m.toml"\ntp = 2\npp = 2\ndp = 2'
    for path in sorted((ROOT / "experiments" / "wormhole-models").glob("*.toml")) + sorted((ROOT / "assets" / "models").glob("*.toml")):
        sweep(f"model-{path.stem}", {"cluster": "gpus = 8", "workload": model + "\nmemory_check = false"}, {"m.toml": text(path)}, ["m.toml", "s.toml"])
    m = {"m.toml": text(ROOT / "experiments" / "wormhole-models" / "gpt-7b.toml")}
    lines = text(ROOT / "assets" / "kernels" / "gemm.csv").splitlines(keepends=True)
    sweep("kernels", {"cluster": "gpus = 8", "workload": model + '\nkernels = "k.csv"'}, {**m, "k.csv": b"".join(lines[:20])}, ["k.csv"])
    trees = text(ROOT / "tests" / "workload" / "compute_data" / "slowdown_model.json")
    sweep("slowdown", {"cluster": "gpus = 8", "workload": model + '\nslowdown = "k.json"'}, {**m, "k.json": trees}, ["k.json"])
    gpu_toml = b'name = "mine"\nsource = "me"\nmemory_gib = 80\n'
    sweep("gpu", {"cluster": 'gpus = 8\ngpu = "g.toml"', "workload": model}, {**m, "g.toml": gpu_toml}, ["g.toml"])
    return made


def as_toml(table):
    """A table of values, lists and tables as TOML."""
    def value(v):
        if isinstance(v, dict):
            return "{ " + ", ".join(f"{key} = {value(of)}" for key, of in v.items()) + " }"
        if isinstance(v, list):
            return "[" + ", ".join(map(value, v)) + "]"
        return json.dumps(v)

    return "".join(f"{key} = {value(of)}\n" for key, of in table.items()).encode()


def newer_seeds():
    """The same of the readers that came last; the kind may name the command that reads the file."""
    made = []

    def sweep(name, sections, files, change=None, top=""):
        body = 'name = "m"\n' + top + "".join(f"[base.{s}]\n{lines}\n" for s, lines in sections.items())
        everything = {"s.toml": body.encode(), **files}
        made.append((name, everything, change or list(files), "sweep"))

    ring = 'kind = "traffic"\npattern = "ring"\nbytes = 1000'
    small = {"cluster": "gpus = 8\ngpus_per_server = 1", "topology": 'kind = "clos"\nhosts_per_leaf = 4\nspines = 2'}
    for path in sorted((CORPUS / "overlays").glob("*.toml")):
        sweep(f"overlay-{path.stem}", {**small, "workload": ring}, {"o.toml": text(path)}, top='include = ["o.toml"]\n')
    fitted = (
        b'[base]\ntopology.link_delay_ns = 700\ntransport.payload_bytes = 1000\n[calibration]\nprogram = "hyperfold 0.1.0"\nmeasured = "m.csv"\n'
        b'seed = 1\n[calibration.parameters."topology.link_delay_ns"]\nbefore = 500\nvalue = 700\nlow = 600\nhigh = 800\n'
    )
    sweep("overlay-two", {**small, "workload": ring}, {"a.toml": fitted, "b.toml": b"[base.topology]\nlink_gbps = 200\n"}, top='include = ["a.toml", "b.toml"]\n')
    training = 'kind = "model"\nmodel = "gpt3-13b"\ntp = 8\nmemory_check = false'
    gpu = b'name = "mine"\nsource = "me"\nlike = "h100"\nbf16_tflops = 800\nfp16_tflops = 800\nmemory_gb_per_s = 3000\nmemory_gib = 80\nlaunch_ns = 2000\n'
    sweep("gpu-table", {"cluster": 'gpus = 8\ngpu = "g.toml"', "workload": training, "cost": "gpu_usd = 1000.0\ngpu_watts = 500.0"}, {"g.toml": gpu})
    for path in sorted((ROOT / "assets" / "models").glob("*.toml")):
        # The first model of a family: of its own file, without the table that names it.
        family = tomllib.loads(path.read_text())
        first = next(iter(family.get("model", [])), None)
        if first and "transformer" in first:
            first["transformer"] = {**family.get("transformer", {}), **first["transformer"]}
            sweep(f"model-of-{path.stem}", {"cluster": "gpus = 8", "workload": 'kind = "model"\nmodel = "m.toml"\nmemory_check = false'}, {"m.toml": as_toml(first)})
    own = b'name = "mine"\nsource = "me"\n[transformer]\nlayers = 4\nhidden = 64\nheads = 8\nvocab = 100\nseq = 32\n'
    sweep("model-own", {"cluster": "gpus = 8", "workload": 'kind = "model"\nmodel = "m.toml"\ntp = 2\ndp = 4'}, {"m.toml": own})
    for name, of in [("gemm", "a100-80g-sxm"), ("attention", "a100-80g-sxm")]:
        lines = text(ROOT / "assets" / "kernels" / f"{name}.csv").splitlines(keepends=True)
        sweep(f"kernels-{name}", {"cluster": f'gpus = 8\ngpu = "{of}"', "workload": training + '\nkernels = "k.csv"'}, {"k.csv": b"".join(lines[:20])})
    table = b"gpu,kernel,communication,slowdown,source\n*,*,*,1.1,x\n*,gemm,*,1.2,x\nh100-sxm,gemm,all-reduce,1.3,x\n"
    sweep("slowdown-table", {"cluster": "gpus = 8", "workload": training + '\nslowdown = "t.csv"'}, {"t.csv": table})
    trees = text(ROOT / "tests" / "workload" / "compute_data" / "slowdown_model.json")
    sweep("slowdown-trees", {"cluster": "gpus = 8", "workload": training + '\nslowdown = "t.json"'}, {"t.json": trees})
    jobs = (
        b"job,user,submit_s,gpus,duration_s,estimate_s,priority,min_gpus\na,u,0,8,100,200,0,4\nb,v,5,16,50.5,60,1,8\nc,u,5,32,10,20,0,32\nd,,9.5,8,1000,,2,8\n"
    )
    failures = b"time_s,part,index,repair_s\n10,gpu,3,50\n20.5,host,1,100\n30,link,2,10\n"
    cluster = {"fidelity": 'mode = "job"', "cluster": "gpus = 64"}
    for policy in ["fcfs", "backfill", "sjf", "priority"]:
        sections = {**cluster, "jobs": 'source = "trace"\npath = "j.csv"', "scheduler": f'policy = "{policy}"'}
        sweep(f"cluster-{policy}", sections, {"j.csv": jobs})
    sweep("cluster-jobs", {**cluster, "jobs": 'source = "trace"\npath = "j.csv"'}, {"j.csv": jobs})
    sections = {**cluster, "jobs": "count = 10\nmax_gpus = 16\nmax_hours = 1.0", "failures": 'model = "trace"\npath = "f.csv"'}
    sweep("cluster-failures", sections, {"f.csv": failures})
    requests = b"arrival_s,prompt_tokens,output_tokens\n0,100,10\n0.05,200,20\n0.1,50,5\n0.1,1000,3\n"
    served = 'kind = "inference"\nmodel = "llama3-8b"\ntp = 2\nrequests = "trace"\npath = "r.csv"'
    sweep("requests", {"cluster": 'server = "dgx-h100"\ngpus = 8', "workload": served}, {"r.csv": requests})
    gpus = "".join(f'<gpu dev="{n}" sm="90"><nvlink target="0000:0{n}" count="18" tclass="0x068000"/></gpu>' for n in range(2))
    nic = '<pci class="0x020000" link_speed="32.0 GT/s PCIe" link_width="16"><nic><net name="mlx5_%d" speed="400000" gdr="1"/></nic></pci>'
    side = '<cpu numaid="%d" affinity="ff" arch="x86_64" vendor="GenuineIntel"><pci class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">%s%s</pci></cpu>'
    xml = '<?xml version="1.0"?>\n<!-- a server -->\n<system version="1">' + "".join(side % (n, gpus, nic % n) for n in range(2)) + "</system>"
    collective = 'kind = "collective"\nop = "all-reduce"\nbytes = 4000'
    sweep("server-xml", {"cluster": 'gpus = 8\ngpus_per_server = 4\nserver_xml = "x.xml"', "workload": collective}, {"x.xml": xml.encode()})
    sweep("topo-file", {"cluster": "gpus = 8\ngpus_per_server = 4", "workload": collective, "workload.nccl": 'NCCL_TOPO_FILE = "x.xml"'}, {"x.xml": xml.encode()})
    log = b"".join((ROOT / "experiments" / "calibration" / "aws-p4de-2.log").read_bytes().splitlines(keepends=True)[:60])
    made.append(("nccl-log", {"l.log": log}, ["l.log"], "nccl"))
    kernel = '{"ph":"X","cat":"kernel","name":"%s","ts":%d,"dur":%d,"args":{"External id":%d,%s}}'
    reduce_ = '"Collective name":"allreduce","In msg nelems":1024,"Out msg nelems":1024,"Group size":8,"dtype":"BFloat16"'
    events = []
    for n in range(4):
        at = 1000 * n
        events.append('{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","ts":%d,"dur":900}' % (n, at))
        shapes = '"Input Dims":[[128,512],[512,256]],"Input type":["c10::BFloat16","c10::BFloat16"]'
        events.append('{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":%d,"dur":9,"args":{"External id":%d,%s}}' % (at, n, shapes))
        events.append(kernel % ("sm90_gemm", at + 10, 100, n, '"grid":[1,1,1]'))
        events.append(kernel % ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", at + 200, 60, 900 + n, reduce_))
    trace = ('{"schemaVersion":1,"traceEvents":[' + ",\n".join(events) + "]}").encode()
    made.append(("profile", {"t.json": trace}, ["t.json"], "pytorch"))
    collectives = b'name = "s"\n[base.cluster]\nserver = "dgx-h100"\ngpus = 8\n[base.workload]\nkind = "collective"\nop = "all-reduce"\nanalytic = "all"\n[axes]\n"workload.bytes" = [1024, 1048576]\n'
    measured = b"workload.bytes,value,unit,use,note,source\n1024,20,us,,,x\n1048576,60,us,checked,a,x\n"
    made.append(("measured", {"s.toml": collectives, "m.csv": measured}, ["m.csv"], "calibrate"))
    return made


def newer_made_by(binary, work):
    """Seeds of the newer readers that the program itself makes: groups of Chakra's traces, the log of a run."""
    made = []

    def run(*args):
        subprocess.run([binary, *args], cwd=work, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    (work / "w.toml").write_text(
        'name = "m"\n[base]\ncluster = { gpus = 4, gpus_per_server = 1 }\nworkload = { kind = "traffic", pattern = "ring", bytes = 5000 }\n[axes]\n"transport.cc" = ["dcqcn", "hpcc"]\n'
    )
    run("run", "w.toml", "--out", "w", "--engine", "cpu", "--quiet")
    files = {f"w/{path.name}": text(path) for path in sorted((work / "w").iterdir()) if path.is_file()}
    made.append(("watched", files, ["w/events.jsonl"], "watch"))
    shutil.copy(CORPUS / "simai" / "ok-pipeline.txt", work / "q.txt")
    run("workload", "convert", "q.txt", "--to", "chakra", "--out", "grouped")
    traces = {f"grouped/{path.name}": text(path) for path in sorted((work / "grouped").iterdir())}
    traces.setdefault("grouped/comm_group.json", b'{"0": [0, 1], "1": [0, 1, 2, 3]}')
    sweep = b'name = "m"\n[base.cluster]\ngpus_per_server = 1\n[base.workload]\nkind = "chakra"\npath = "grouped"\n'
    kineto = {f"kineto/{path.name}": text(path) for path in sorted((ROOT / "experiments" / "kineto").iterdir())}
    sweep_of_kineto = b'name = "m"\n[base.cluster]\ngpus = 2\ngpus_per_server = 1\n[base.workload]\nkind = "kineto"\npath = "kineto"\n'
    made.append(("kineto", {"s.toml": sweep_of_kineto, **kineto}, list(kineto), "sweep"))
    dumps = {f"flight-recorder/{path.name}": text(path) for path in sorted((ROOT / "experiments" / "flight-recorder").iterdir())}
    sweep_of_dumps = sweep_of_kineto.replace(b'"kineto"', b'"flight-recorder"')
    made.append(("flight-recorder", {"s.toml": sweep_of_dumps, **dumps}, list(dumps), "sweep"))
    made.append(("chakra-groups", {"s.toml": sweep, **traces}, ["grouped/comm_group.json"], "sweep"))
    return made


def made_by(binary, work):
    """Seeds that the program itself makes: traces, a folder of results, a memo."""
    made = []

    def run(*args):
        subprocess.run([binary, *args], cwd=work, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    shutil.copy(CORPUS / "simai" / "ok-pipeline.txt", work / "p.txt")
    run("workload", "convert", "p.txt", "--to", "chakra", "--out", "traces")
    traces = {path.name: text(path) for path in sorted((work / "traces").iterdir())}
    sweep = b'name = "m"\n[base.cluster]\ngpus_per_server = 1\n[base.workload]\nkind = "chakra"\npath = "traces"\n'
    made.append(("chakra", {"s.toml": sweep, **{f"traces/{name}": body for name, body in traces.items()}}, [f"traces/{n}" for n in traces], "sweep"))
    (work / "s.toml").write_text(
        'name = "m"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1 }\nworkload = { kind = "collective", op = "all-reduce", bytes = 20000, iterations = 3 }\n'
        'output = { flows = true, links = true, rtt = true, trace = true }\n[axes]\n"topology.link_gbps" = [100, 200]\n"transport.cc" = ["dcqcn", "hpcc"]\n'
    )
    run("run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet")
    files = {f"o/{path.name}": text(path) for path in sorted((work / "o").iterdir()) if path.is_file() and path.name != "report.html"}
    base = {"s.toml": text(work / "s.toml"), **files}
    for name in files:
        made.append((f"results-{Path(name).name}", base, [name], "results"))
    # Experiments of which a timeline is recorded are not folded.
    (work / "f.toml").write_text('name = "m"\n[base]\ncluster = { gpus = 8, gpus_per_server = 1 }\nworkload = { kind = "collective", op = "all-reduce", bytes = 200000, iterations = 5 }\n')
    run("run", "f.toml", "--out", "f", "--engine", "cpu", "--memo", "memo.bin", "--quiet")
    made.append(("memo", {"s.toml": text(work / "f.toml"), "memo.bin": text(work / "memo.bin")}, ["memo.bin"], "memo"))
    return made


def mutate(bytes_, rng, others):
    data = bytearray(bytes_)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 5, 12])):
        if not data:
            data += rng.choice(WORDS).encode()
            continue
        at = rng.randrange(len(data))
        kind = rng.randrange(12)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.randrange(256)
        elif kind == 2:
            del data[at : at + rng.choice([1, 1, 4, 40, 400])]
        elif kind == 3:
            end = at + rng.choice([1, 8, 80])
            data[at:at] = data[at:end] * rng.choice([1, 1, 2, 50])
        elif kind == 4:
            data[at:at] = rng.choice(WORDS).encode()
        elif kind in (5, 6, 7):
            # Another number in a number's place: what readers trust most.
            numbers = list(re.finditer(rb"-?\d+(\.\d+)?", bytes(data)))
            if numbers:
                found = rng.choice(numbers)
                near = str(int(float(found[0][:15])) * rng.choice([1, 2, 10]) + rng.choice([-1, 0, 1, 3]))
                data[found.start() : found.end()] = (rng.choice(NUMBERS) if kind == 5 else near).encode()
        elif kind == 8:
            lines = bytes(data).split(b"\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            data = bytearray(b"\n".join(lines))
        elif kind == 9:
            del data[at:]
        elif kind == 10:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            data[at:at] = other[start : start + rng.choice([8, 64, 512])]
        else:
            strings = list(re.finditer(rb'"[^"\n]*"', bytes(data)))
            if strings:
                found = rng.choice(strings)
                data[found.start() : found.end()] = rng.choice([b'""', b'"x"', b'"' + rng.choice(WORDS).encode() + b'"', rng.choice(NUMBERS).encode()])
    return bytes(data)


def commands(kind, rng):
    run = ["run", "s.toml", "--engine", "cpu", "--jobs", "1", "--quiet", "--limit", "1"]
    if kind == "sweep":
        return rng.choice([["plan", "s.toml"], ["plan", "s.toml", "--json", "--limit", "1"], [*run, "--out", "out", *LIMITS], [*run, "--out", "out", *LIMITS]])
    if kind == "nccl":
        return ["measured", "nccl-tests", "l.log", *rng.choice([[], ["--op", "all-reduce"], ["--in-place"], ["--sweep", "n.toml", "--server", "dgx-h100", "--gpus", "16"]])]
    if kind == "pytorch":
        return ["measured", "pytorch", "t.json", *rng.choice([[], ["--rows", "compute"], ["--rows", "collectives"], ["--rows", "kernels", "--gpu", "h100"]])]
    if kind == "calibrate":
        return ["calibrate", "m.csv", "s.toml", "--check", "--bound", "90"]
    if kind == "watch":
        return ["watch", "w", "--once"]
    if kind == "memo":
        return [*run, "--out", "out", "--memo", "memo.bin"]
    again = ["run", "s.toml", "--engine", "cpu", "--jobs", "1", "--quiet", "--out", "o", "--resume"]
    return rng.choice([
        ["compare", "o"], ["compare", "o", "--pareto", "makespan_ns,fct_max_ns"], ["compare", "o", "--explain", "0", "1"],
        ["compare", "o", "--explain", "0", "1", "--ops"], ["report", "o"], ["trace", "o", "0"], ["merge", "o", "--out", "m"], ["recover", "o"], again,
    ])


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # Seconds of the processor: how busy the machine is otherwise decides nothing.
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))


def lay(scratch, files, instead):
    """A new folder with the files, some of them with other contents."""
    work = Path(tempfile.mkdtemp(dir=scratch))
    for file, body in {**files, **instead}.items():
        path = work / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return work


def right(binary, files, kind, scratch):
    """The exit code for a seed that nothing has been changed in."""
    args = commands(kind, random.Random(0)) if kind in ("nccl", "pytorch", "calibrate", "watch") else ["plan", "s.toml"]
    return subprocess.run([binary, *args], cwd=lay(scratch, files, {}), capture_output=True).returncode


def one(binary, made, others, case, seed, scratch):
    rng = random.Random(f"{seed} {case}")
    # Half are of the newer readers. Most changes are made to inputs that were right: the others are refused for the same reason as before.
    older, newer = made
    sound, every = newer if newer[1] and (case % 2 or not older[1]) else older
    name, files, changed, kind = rng.choice(sound if sound and rng.randrange(5) else every)
    which = rng.choice(changed)
    work = lay(scratch, files, {which: mutate(files[which], rng, others)})
    args = commands(kind, rng)
    if kind == "sweep" and rng.randrange(10) == 0 and name.split("-")[0] in ("simai", "htsim", "goal", "chakra", "kineto", "flight"):
        args = ["workload", "inspect", "traces" if name == "chakra" else which]
    began = time.monotonic()
    try:
        ended = subprocess.run([binary, *args], cwd=work, capture_output=True, timeout=10 * SECONDS, preexec_fn=bounded, stdin=subprocess.DEVNULL)
        code, said = ended.returncode, (ended.stderr + ended.stdout).decode(errors="replace")
    except subprocess.TimeoutExpired:
        code, said = "timeout", ""
    seconds = time.monotonic() - began
    failed = work / "out" / "failed.csv"
    if failed.is_file():
        said += failed.read_text(errors="replace")
    wrong = code not in (0, 1, 2, 3) or "panicked" in said or "a defect in hyperfold" in said or (code != 0 and not said.strip())
    return {"case": case, "name": name, "file": which, "args": args, "code": code, "said": said, "seconds": seconds, "work": work, "wrong": wrong}


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("binary")
    ask.add_argument("n", type=int, nargs="?", default=10_000)
    ask.add_argument("--seed", default="1")
    ask.add_argument("--first", type=int, default=0, help="number of the first input")
    ask.add_argument("--only", help="seeds whose name has this word")
    ask.add_argument("--jobs", type=int, default=os.cpu_count())
    ask.add_argument("--keep", type=Path, help="where findings are kept")
    asked = ask.parse_args()
    binary = str(Path(asked.binary).resolve())
    scratch = Path(tempfile.mkdtemp(prefix="mutated-"))
    findings, codes, slowest = [], {}, 0.0
    try:
        base = scratch / "base"
        base.mkdir()
        groups = [seeds() + made_by(binary, base), newer_seeds() + newer_made_by(binary, base)]
        if asked.only:
            groups = [[seed for seed in group if asked.only in seed[0]] for group in groups]
        if not any(groups):
            ask.error(f"--only {asked.only}: no seed has this word in its name")
        made = []
        for what, group in zip(["seeds", "seeds of the newer readers"], groups):
            said = [right(binary, files, kind, scratch) for _, files, _, kind in group]
            made.append(([seed for seed, code in zip(group, said) if code == 0], group))
            print(f"{len(group)} {what}, of which {len(made[-1][0])} are right", flush=True)
        others = [body for group in groups for _, files, changed, _ in group for file, body in files.items() if file in changed and body]
        with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
            cases = range(asked.first, asked.first + asked.n)
            for done, ran in enumerate(pool.map(lambda case: one(binary, made, others, case, asked.seed, scratch), cases), 1):
                codes[ran["code"]] = codes.get(ran["code"], 0) + 1
                slowest = max(slowest, ran["seconds"])
                if ran["wrong"]:
                    findings.append(ran)
                    print(f"case {ran['case']}: {ran['name']}, {ran['file']} changed; hyperfold {' '.join(ran['args'])}: {ran['code']} after {ran['seconds']:.1f} s")
                    print("   ", ran["said"].strip()[:600].replace("\n", "\n    "), flush=True)
                    if asked.keep:
                        kept = asked.keep / f"case-{ran['case']}"
                        shutil.copytree(ran["work"], kept, dirs_exist_ok=True)
                        (kept / "command.txt").write_text(" ".join(ran["args"]) + "\n")
                shutil.rmtree(ran["work"], ignore_errors=True)
                if done % 1000 == 0:
                    print(f"{done} inputs, {len(findings)} findings", flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    counted = ", ".join(f"{n} ended with {code}" for code, n in sorted(codes.items(), key=str))
    print(f"{asked.n} inputs (seed {asked.seed}): {counted}; the slowest took {slowest:.1f} s; {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
