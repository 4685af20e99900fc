#!/usr/bin/env bash
# Kills a run of a sweep at random moments, carries on with --resume, and compares every byte with a run that was left alone.
#
#   scripts/kill-test.sh HYPERFOLD [KILLS] [SEED]
#
# HYPERFOLD is the program; KILLS (200) is how many kills must hit a run that is still going; SEED (random, printed) gives the moments and the
# numbers of threads. A sweep that completes is compared, and the next kills hit a new run of it. Exit code 0: every byte was equal.
# Three of ten kills hit a run while it writes to the memo's file (scripts/kill-memo-test.py).
set -euo pipefail

scripts=$(realpath "$(dirname "$0")")
program=$(realpath "${1:?usage: kill-test.sh HYPERFOLD [KILLS] [SEED]}")
kills=${2:-200}
memo_kills=$((kills * 3 / 10))
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

# Runs into folder $1, killed after $2 milliseconds, and sets code: 1 is how a run of this sweep ends by itself, 137 is our kill.
run() {
    local after
    after=$(printf %d.%03d $(($2 / 1000)) $(($2 % 1000)))
    code=0
    { timeout --signal KILL "$after" "$program" run sweep.toml --engine cpu --quiet --jobs $((RANDOM % 2 + 1)) --out "$1" "${@:3}" >/dev/null 2>log; } 2>/dev/null \
        || code=$?
}
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

from=$(date +%s%N)
run whole 600000
[ "$code" -eq 1 ] || broken
# Kills come within so many milliseconds of a start: as long as a run takes, and then a bit less after each that came too late.
within=$((($(date +%s%N) - from) / 1000000 + 1))
echo "kill-test: seed $seed; an undisturbed run takes $within ms"

hits=0 completed=0
while [ "$hits" -lt $((kills - memo_kills)) ]; do
    run out $((RANDOM % within + 1)) --resume
    case $code in
        137)
            hits=$((hits + 1))
            within=$((within * 21 / 20 + 1))
            ;;
        1)
            compare
            completed=$((completed + 1))
            within=$((within * 3 / 4 + 10))
            # Every other time the complete folder is kept, so that kills hit its files being written again, too.
            if [ $((completed % 2)) -eq 0 ]; then rm -rf out; fi
            ;;
        *) broken ;;
    esac
done
run out 600000 --resume
[ "$code" -eq 1 ] || broken
compare
echo "kill-test: $hits kills, $((completed + 1)) completions, all bytes equal"
if [ "$memo_kills" -gt 0 ]; then python3 "$scripts/kill-memo-test.py" "$program" "$memo_kills" "$seed"; fi
