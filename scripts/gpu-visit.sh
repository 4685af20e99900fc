#!/usr/bin/env bash
# Half an hour on a bare machine with a GPU: everything it needs in one folder, and three parts that run there.
#
#   scripts/gpu-visit.sh prepare FOLDER     here, after `cargo build --release`: fills FOLDER, which then goes to the machine
#   FOLDER/gpu-visit.sh 1                   there: the machine, the engine's kernels, and results beside those of the CPU engine
#   FOLDER/gpu-visit.sh 2                   there: `hyperfold bench gpu`
#   FOLDER/gpu-visit.sh 3                   there: sweeps by GPU and by all cores, and the recorded digests
#
# Each part ends within ten minutes and writes into $OUT (FOLDER/out). Exit code 1: something differs from the CPU engine.
# HF_ENGINE=cpu rehearses a part without a GPU. HF_SECONDS is the time of part 2 (480). HF_LIMIT is how many variants part 3 runs (512).
set -uo pipefail

die() { printf 'gpu-visit: %s\n' "$*" >&2; exit 2; }
say() { printf '== %s\n' "$*"; }
usage() { sed -n 's/^#   //p' "$0" >&2; exit 2; }

RESULTS="results.csv flows.csv links.csv rtt.csv"
PARITY="collectives pauses patterns training flow-level"
MANY="many-allreduce many-permutations"
# Vulkan's loader and what NVIDIA's driver loads beside it, for machines that have the driver alone.
LOADER="libvulkan1 libglvnd0 libegl1 libglx0 libgl1"

# Notes that something differs or fails; parts run in pipelines.
wrong() { touch "$work/wrong"; }

digest() { sha256sum <"$1" | cut -c1-16; }

# Runs sweep $1 into the new folder $2 on engine $3; further words are options. The log goes to $2.log.
run() {
    local sweep=$1 out=$2 engine=$3
    shift 3
    timeout 280 "$program" run "$sweeps/$sweep.toml" --out "$out" --engine "$engine" --memo off --quiet "$@" 2>"$out.log"
}

# The lines `sweep file digest` of what sweep $1 wrote into folder $2.
digests() {
    local file
    for file in $RESULTS; do
        if [ -f "$2/$file" ]; then echo "$1 $file $(digest "$2/$file")"; fi
    done
}

prepare() { # the folder
    local root folder binary sweep
    set -e
    root=$(cd "$(dirname "$0")/.." && pwd)
    binary=${CARGO_TARGET_DIR:-$root/target}/release/hyperfold
    [ -x "$binary" ] || die "$binary is missing: cargo build --release"
    mkdir -p "$1" || die "cannot make $1"
    folder=$(cd "$1" && pwd)
    mkdir -p "$folder/scripts" "$folder/loader"
    rm -rf "$folder/sweeps" "$folder/experiments"
    { strip -o "$folder/hyperfold" "$binary" 2>/dev/null || cp "$binary" "$folder/hyperfold"; } || die "cannot write into $folder"
    cp "$root/scripts/gpu-visit.sh" "$folder/"
    cp -r "$root/scripts/gpu-visit" "$folder/sweeps"
    cp -r "$root/experiments" "$folder/experiments"
    cp "$root/scripts/result-digests.py" "$folder/scripts/"
    cp "$root/tests/digests/results.sha256" "$folder/"
    # shellcheck disable=SC2086
    if ! compgen -G "$folder/loader/*.deb" >/dev/null && ! (cd "$folder/loader" && apt-get download -qq $LOADER); then
        say "no packages of Vulkan's loader: the machine must have one"
    fi
    program=$folder/hyperfold sweeps=$folder/sweeps
    work=$(mktemp -d)
    : >"$folder/cpu.txt"
    for sweep in $PARITY; do
        run "$sweep" "$work/$sweep" cpu || { tail -3 "$work/$sweep.log" >&2; die "$sweep fails on the CPU"; }
        digests "$sweep" "$work/$sweep" >>"$folder/cpu.txt"
    done
    rm -rf "$work"
    say "$folder: $(du -sh "$folder" | cut -f1), $(wc -l <"$folder/cpu.txt") digests of the CPU engine"
    say "there, one after another: $(basename "$folder")/gpu-visit.sh 1, 2, 3"
}

# Finds Vulkan's loader and driver where the system does not name them.
find_vulkan() {
    local package file
    if ! ldconfig -p | grep -q 'libvulkan\.so\.1'; then
        for package in "$folder"/loader/*.deb; do
            if [ -f "$package" ]; then dpkg -x "$package" "$work/loader"; fi
        done
        for file in "$work"/loader/usr/lib/*/; do
            if [ -d "$file" ]; then export LD_LIBRARY_PATH=${file%/}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; fi
        done
    fi
    for file in /usr/share/vulkan/icd.d/nvidia*.json /etc/vulkan/icd.d/nvidia*.json; do
        if [ -f "$file" ]; then return; fi
    done
    for file in /usr/local/nvidia/share/vulkan/icd.d/nvidia*.json /usr/local/share/vulkan/icd.d/nvidia*.json; do
        if [ -f "$file" ] && [ -z "${VK_DRIVER_FILES:-}" ]; then export VK_DRIVER_FILES=$file; fi
    done
}

# The machine, the engine's kernels, results beside those of the CPU engine, and one sweep ten times.
part_1() {
    local sweep n=0 same=0 first="" differ=0 line k
    { nvidia-smi; grep PRETTY_NAME /etc/os-release; grep -m1 'model name' /proc/cpuinfo; nproc; free -g; } >"$OUT/machine.txt" 2>&1
    head -16 "$OUT/machine.txt"
    say "doctor"
    local options=(--json)
    if [ "$engine" = gpu ]; then options+=(--engine); fi
    timeout 280 "$program" doctor "${options[@]}" >"$OUT/doctor.json" || { wrong; say "doctor ends with code $?"; }
    cut -c1-400 "$OUT/doctor.json"
    say "results beside those of the CPU engine"
    : >"$work/now.txt"
    for sweep in $PARITY; do
        run "$sweep" "$work/$sweep" "$engine" || { wrong; tail -3 "$work/$sweep.log"; }
        digests "$sweep" "$work/$sweep" >>"$work/now.txt"
    done
    while read -r line; do
        n=$((n + 1))
        if grep -qxF "$line" "$work/now.txt"; then same=$((same + 1)); else echo "differs: $line"; fi
    done <"$folder/cpu.txt" >"$OUT/parity.txt"
    echo "$same of $n files as on the CPU" >>"$OUT/parity.txt"
    for k in 1 2 3 4 5 6 7 8 9 10; do
        run pauses "$work/again-$k" "$engine" || wrong
        line=$(digests pauses "$work/again-$k")
        if [ "${first:=$line}" != "$line" ]; then differ=$((differ + 1)); fi
    done
    echo "one sweep ten times: $differ differ from the first" >>"$OUT/parity.txt"
    cat "$OUT/parity.txt"
    if [ "$same" != "$n" ] || [ "$differ" != 0 ]; then wrong; fi
}

# What the device does, by workload, experiments, dispatch and workgroup. A rehearsal without a GPU measures the CPU engine.
part_2() {
    local seconds=${HF_SECONDS:-480}
    if [ "$engine" = gpu ]; then
        timeout $((seconds + 90)) "$program" bench gpu --out "$OUT/gpu.jsonl" --budget "$seconds" || wrong
        if grep -q '"same_as_cpu":false' "$OUT/gpu.jsonl"; then wrong; fi
    else
        timeout "$seconds" "$program" bench batch512-cpu --json | tee "$OUT/gpu.jsonl" || wrong
    fi
}

# One line on a finished run: sweep $1, engine $2, folder $3, wall seconds $4.
told() {
    awk -F, -v sweep="$1" -v engine="$2" -v wall="$4" -v digest="$(digest "$3/results.csv")" -v simulating="$(
        sed -n 's/.*"simulating": \([0-9.]*\).*/\1/p' "$3/manifest.json"
    )" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == "packet_hops_simulated") column = i; next }
        { hops += $column }
        END {
            printf "%s, %s: %d experiments, %.1f M packet-hops, %.2f s in all, %.2f s simulating, %.1f M packet-hops a second of these; results.csv %s\n",
                sweep, engine, NR - 1, hops / 1e6, wall, simulating, hops / 1e6 / (simulating > 0 ? simulating : 1), digest
        }' "$3/stats.csv"
}

# The same sweeps by GPU and by all cores, then the recorded digests of small cases.
part_3() {
    local sweep by begin end
    for sweep in $MANY; do
        for by in "$engine" cpu; do
            begin=$(date +%s.%N)
            if ! run "$sweep" "$work/$sweep-$by" "$by" --limit "${HF_LIMIT:-512}"; then
                wrong
                tail -3 "$work/$sweep-$by.log"
            else
                end=$(date +%s.%N)
                told "$sweep" "$by" "$work/$sweep-$by" "$(awk -v a="$begin" -v b="$end" 'BEGIN { print b - a }')"
            fi
            if [ "$engine" = cpu ]; then break; fi
        done
        cmp -s "$work/$sweep-$engine/results.csv" "$work/$sweep-cpu/results.csv" || { wrong; echo "$sweep: results.csv differs"; }
    done | tee "$OUT/beside.txt"
    if ! command -v python3 >/dev/null; then
        say "no python3: recorded digests are not compared"
        return
    fi
    say "recorded digests"
    timeout 240 python3 "$folder/scripts/result-digests.py" "$program" --compare "$folder/results.sha256" --engine "$engine" --every \
        --only '^(reference-cases$|random-.*-off$)' --parallel 8 >"$OUT/digests.txt" 2>&1 || { wrong; say "digests end with code $?"; }
    tail -20 "$OUT/digests.txt"
}

if [ "${1:-}" = prepare ]; then
    [ $# = 2 ] || usage
    prepare "$2"
    exit 0
fi
case "${1:-}" in
    1 | 2 | 3) ;;
    *) usage ;;
esac
folder=$(cd "$(dirname "$0")" && pwd)
program=$folder/hyperfold sweeps=$folder/sweeps engine=${HF_ENGINE:-gpu}
[ -x "$program" ] || die "$program is missing: scripts/gpu-visit.sh prepare FOLDER"
OUT=${OUT:-$folder/out}
mkdir -p "$OUT" || die "cannot make $OUT"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RUST_LOG=${RUST_LOG:-hyperfold=debug}
find_vulkan
"part_$1" 2>&1 | tee "$OUT/part-$1.log"
say "keep $OUT"
[ ! -e "$work/wrong" ]
