#!/usr/bin/env python3
"""Lets every call fail by which hyperfold opens, writes, syncs, cuts, renames or removes a file of its results, one call at a time.

    scripts/io-faults.py BINARY [--every N] [--errors ENOSPC,EIO]

A small sweep is run, resumed, merged, and run with a memo on disk, under `strace`, which makes the n-th call of a kind fail (fault injection). Each time:
the program ends with exit code 0, 1 or 2, never by a signal or a panic, and says why if it is not 0; what ended with 0 has every byte of an undisturbed
run; and the same command, given again without a fault (`run` with --resume), ends with these bytes. Needs strace (Debian's package). --every N takes each
N-th call only.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SWEEP = """name = "io"
[base]
cluster = { gpus = 8, gpus_per_server = 1, nics_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 4, spines = 4 }
workload = { kind = "collective", op = "all-reduce", iterations = 2 }
output = { flows = true, links = true, rtt = true, trace = true }
[axes]
"transport.cc" = ["dcqcn", "hpcc"]
"workload.bytes" = [20000, 50000]
"""
# What must be the same, byte by byte.
SAME = ("results.csv", "results.parquet", "flows.csv", "links.csv", "rtt.csv")
FILES = ("", "journal.bin", "results.csv", "stats.csv", "flows.csv", "links.csv", "rtt.csv", "failed.csv", "results.parquet", "results.parquet.part", "events.jsonl",
         "manifest.json", "manifest.json.part", "report.html", "report.html.part", "trace", *(f"trace/{i}.pftrace{part}" for i in range(4) for part in ("", ".part")))
# Calls that belong together, and errors that they give in life.
CALLS = {
    "openat": ("EACCES", "EMFILE", "ENOSPC"),
    "write": ("ENOSPC", "EIO"),
    "fsync,fdatasync": ("EIO",),
    "ftruncate": ("EIO",),
    "rename": ("EACCES", "ENOSPC"),
    "unlink": ("EACCES",),
    "mkdir": ("EACCES", "ENOSPC"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--every", type=int, default=1, help="only each N-th call")
    parser.add_argument("--errors", help="only these errors, such as ENOSPC,EIO")
    args = parser.parse_args()
    binary = str(pathlib.Path(shutil.which(args.binary) or sys.exit(f"io-faults.py: no program {args.binary}")).resolve())
    if not shutil.which("strace"):
        sys.exit("io-faults.py: strace is missing (apt-get install strace)")
    wanted = set(args.errors.split(",")) if args.errors else None
    started, tried, wrong = time.monotonic(), 0, []
    with tempfile.TemporaryDirectory(prefix="io-faults.") as root:
        root = pathlib.Path(root)
        (root / "s.toml").write_text(SWEEP)

        def command(*words):
            return [binary, *words, "--quiet"]

        def run(out, *more):
            return command("run", str(root / "s.toml"), "--out", str(out), "--engine", "cpu", "--jobs", "1", *more)

        def sound(*words):
            done = subprocess.run(words, capture_output=True, text=True, timeout=120)
            if done.returncode:
                sys.exit(f"io-faults.py: without a fault, `{' '.join(words)}` ends with {done.returncode}: {done.stderr}")

        whole, half, other = root / "whole", root / "half", root / "other"
        sound(*run(whole))
        sound(*run(half, "--shard", "0/2"))
        sound(*run(other, "--shard", "1/2"))
        memo = root / "memo.bin"

        out = root / "out"

        def interrupted():
            """What a run leaves that is killed while it writes its second record."""
            shutil.copytree(whole, out)
            journal = (out / "journal.bin").read_bytes()
            (out / "journal.bin").write_bytes(journal[: len(journal) * 2 // 5])

        # Name, files that may fail instead of the folder's, how the folder is prepared, the command, and the command that heals.
        cases = [
            ("run", [], lambda: None, run(out), run(out, "--resume")),
            ("resume", [], interrupted, run(out, "--resume"), run(out, "--resume")),
            ("merge", [], lambda: None, command("merge", str(half), str(other), "--out", str(out)), run(out, "--resume")),
            ("memo", [memo, root / "memo.bin.new", root], lambda: memo.unlink(missing_ok=True), run(out, "--memo", str(memo)), run(out, "--resume", "--memo", str(memo))),
        ]
        for name, more, prepare, words, heals in cases:
            # A case with files of its own lets only these fail.
            paths = more or [out / file if file else out for file in FILES]
            for calls, errors in CALLS.items():
                for error in errors:
                    if wanted and error not in wanted:
                        continue
                    n, hit = 1, True
                    while hit:
                        shutil.rmtree(out, ignore_errors=True)
                        prepare()
                        log = root / "strace.log"
                        trace = ["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={calls}", "-e", f"inject={calls}:error={error}:when={n}"]
                        trace += [word for path in paths for word in ("-P", str(path))]
                        done = subprocess.run([*trace, *words], capture_output=True, text=True, timeout=120)
                        text = log.read_text(errors="replace") if log.exists() else ""
                        hit = "(INJECTED)" in text
                        if not hit:
                            break
                        tried += 1
                        where = re.search(r".*\(INJECTED\)", text)
                        what = f"{name}: {calls} {error} at call {n} ({where.group(0).split(' ', 1)[1][:90] if where else ''})"

                        def same(after):
                            for file in SAME:
                                here = out / file
                                if not here.exists() or here.read_bytes() != (whole / file).read_bytes():
                                    wrong.append(f"{what}: {after}, {file} is not that of an undisturbed run")

                        if done.returncode not in (0, 1, 2) or "panicked" in done.stderr:
                            wrong.append(f"{what}: exit {done.returncode}: {done.stderr[:300]}")
                        elif done.returncode and not done.stderr.strip():
                            wrong.append(f"{what}: exit {done.returncode} without a word")
                        elif done.returncode == 0:
                            same("exit 0")
                        again = subprocess.run(heals, capture_output=True, text=True, timeout=120)
                        if again.returncode:
                            wrong.append(f"{what}: given again it ends with {again.returncode}: {again.stderr[:300]}")
                        else:
                            same("given again")
                        n += args.every
    for line in wrong:
        print(line)
    print(f"{tried} faults, {len(wrong)} findings, {time.monotonic() - started:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
