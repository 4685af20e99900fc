#!/usr/bin/env bash
# Kills a run of a sweep at random moments, carries on with --resume, and compares every byte with a run that was left alone.
#
#   scripts/kill-test.sh HYPERFOLD [KILLS] [SEED]
#
# HYPERFOLD is the program; KILLS (200) is how many kills must hit a run that is still going; SEED (random, printed) gives the moments and the
# numbers of threads. A sweep that completes is compared, and the next kills hit a new run of it. Exit code 0: every byte was equal.
set -euo pipefail

program=$(realpath "${1:?usage: kill-test.sh HYPERFOLD [KILLS] [SEED]}")
kills=${2:-200}
seed=${3:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
RANDOM=$seed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > sweep.toml <<'TOML'
name = "killed"
[base]
cluster = { gpus = 16, gpus_per_server = 1, nics_per_server = 1 }
topology = { kind = "clos", hosts_per_leaf = 8, spines = 8, buffer_mib = 4 }
workload = { kind = "traffic", fan_in = 12, receivers = 2 }
output = { flows = true, links = true, rtt = true }
# The largest experiments fail of it, so that failed.csv has rows.
limits = { packet_hops = 100000 }
[axes]
"transport.cc" = ["dcqcn", "hpcc", "timely", "dctcp"]
"workload.pattern" = ["ring", "all-to-all", "incast"]
"topology.link_gbps" = [100, 200, 400]
"workload.bytes" = [25000, 50000, 100000]
TOML

now_ms() { echo $(($(date +%s%N) / 1000000)); }
# Starts a run into folder $1 and sets pid.
start() { "$program" run sweep.toml --engine cpu --quiet --jobs $((RANDOM % 2 + 1)) --out "$1" "${@:2}" >/dev/null 2>log & pid=$!; }
# Waits for it and sets code: 1 is how a run of this sweep ends by itself, 137 is our kill.
finish() { code=0; { wait "$pid"; } 2>/dev/null || code=$?; }
broken() {
    echo "kill-test: the run ended with exit code $code (seed $seed)" >&2
    cat log >&2
    exit 1
}
compare() {
    local file
    for file in results.csv results.parquet flows.csv links.csv rtt.csv failed.csv; do
        if ! cmp "whole/$file" "out/$file"; then
            echo "kill-test: $file differs from an undisturbed run's (seed $seed)" >&2
            exit 1
        fi
    done
}

from=$(now_ms)
start whole
finish
[ "$code" -eq 1 ] || broken
takes=$(($(now_ms) - from))
echo "kill-test: seed $seed; an undisturbed run takes $takes ms"

hits=0 completed=0 attempts=0
while [ "$hits" -lt "$kills" ]; do
    attempts=$((attempts + 1))
    if [ "$attempts" -gt $((kills * 20)) ]; then
        echo "kill-test: only $hits of $attempts kills came before the run's end" >&2
        exit 1
    fi
    start out --resume
    # Any moment from the start to a little after the end of a whole run; late ones hit the files being written again.
    moment=$((RANDOM % (takes * 6 / 5)))
    sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
    kill -KILL "$pid" 2>/dev/null || true
    finish
    case $code in
        137) hits=$((hits + 1)) ;;
        1)
            compare
            completed=$((completed + 1))
            # Every other time the complete folder is kept, so that its files are written again under fire.
            if [ $((completed % 2)) -eq 0 ]; then rm -rf out; fi
            ;;
        *) broken ;;
    esac
done
start out --resume
finish
[ "$code" -eq 1 ] || broken
compare
echo "kill-test: $hits kills, $((completed + 1)) completions, all bytes equal"
