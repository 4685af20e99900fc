#!/usr/bin/env bash
# Fuzzes every parser for MINUTES in all, each for its share.
#
#   fuzz/run.sh MINUTES
#
# With cargo-fuzz and a nightly toolchain by libFuzzer, from the seeds of fuzz/targets.rs and what fuzz/corpus has grown to. Without them the same
# targets get seeded mutations of the seeds, on the stable toolchain. Exit code 0: nothing was found; findings are in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:?usage: fuzz/run.sh MINUTES}
targets=$(sed -n 's/^    target("\([a-z0-9_]*\)".*/\1/p' fuzz/targets.rs)
if cargo fuzz --version >/dev/null 2>&1 && cargo +nightly --version >/dev/null 2>&1 && [ "${HYPERFOLD_FUZZ:-}" != plain ]; then
    seconds=$(awk -v m="$minutes" -v n="$(wc -w <<<"$targets")" 'BEGIN { s = int(m * 60 / n); print s > 1 ? s : 1 }')
    for target in $targets; do
        mapfile -t seeds < <(sed -n "/target(\"$target\"/s/.*&\[\(.*\)\]).*/\1/p" fuzz/targets.rs | tr -d '",' | tr ' ' '\n')
        mkdir -p "fuzz/corpus/$target"
        folders=()
        for seed in "${seeds[@]}"; do
            if [ -d "$seed" ]; then folders+=("$seed"); else cp "$seed" "fuzz/corpus/$target/"; fi
        done
        cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "${folders[@]}" -- \
            -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=0
    done
else
    echo "fuzz/run.sh: seeded mutations, without coverage (libFuzzer: cargo install cargo-fuzz, rustup toolchain install nightly)" >&2
    HYPERFOLD_FUZZ_MINUTES=$minutes cargo test --profile "${HYPERFOLD_TEST_PROFILE:-checked}" --test sweep -- \
        --ignored --nocapture fuzz_targets::mutations_for_some_minutes
fi
