#!/usr/bin/env bash
# All tests, on a fresh machine that has a Rust toolchain: builds, makes sure of a GPU adapter (in software, where there is
# no other), of a browser and of an independent reader of Parquet files, runs them. Further arguments go to `cargo test`.
#
#   scripts/test.sh              every test
#   scripts/test.sh --soak       the long ones instead: fuzzing and many seeds, HYPERFOLD_SOAK_MINUTES (default 30) in all
#
# Random cases are the same on every run of the tests (PROPTEST_RNG_SEED), and on every soak of one commit.
# HYPERFOLD_TEST_PROFILE (default `checked`: optimised, with overflow and debug assertions) is the cargo profile.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${HYPERFOLD_TEST_PROFILE:-checked}
soak=false
if [ "${1:-}" = --soak ]; then
    soak=true
    shift
fi
export HYPERFOLD_SOAK_MINUTES=${HYPERFOLD_SOAK_MINUTES:-30}
case "$HYPERFOLD_SOAK_MINUTES" in
    ''|*[!0-9]*) echo "test.sh: HYPERFOLD_SOAK_MINUTES=$HYPERFOLD_SOAK_MINUTES: write whole minutes, for example 30" >&2; exit 2 ;;
esac

command -v cargo >/dev/null || { echo "test.sh: cargo is missing; install Rust (rustup) first" >&2; exit 2; }
# Snapshots are compared, never written, whatever the caller's environment says.
export INSTA_UPDATE=no CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}

if [ -z "${PROPTEST_RNG_SEED:-}" ]; then
    PROPTEST_RNG_SEED=1
    if $soak; then PROPTEST_RNG_SEED=$(( 16#$(git rev-parse --short=8 HEAD 2>/dev/null || echo 2) )); fi
fi
export PROPTEST_RNG_SEED
echo "test.sh: PROPTEST_RNG_SEED=$PROPTEST_RNG_SEED"

# All at once: building the program alone first would choose other features of a crate below, and build most of the workspace twice.
cargo test --workspace --profile "$profile" --no-run
scripts/setup-vulkan.sh "${CARGO_TARGET_DIR:-target}/$profile/hyperfold"

if $soak; then
    # Shards on a SLURM cluster of one node.
    scripts/setup-slurm.sh
    scripts/soak-slurm.sh "${CARGO_TARGET_DIR:-target}/$profile/hyperfold"
    # Less of everything in a short soak.
    at_most() { echo $(( $1 < $2 ? $1 : $2 )); }
    cases=$(at_most $(( 2500 * HYPERFOLD_SOAK_MINUTES )) 20000)
    kills=$(at_most $(( 25 * HYPERFOLD_SOAK_MINUTES )) 200)
    mutating=$(at_most $(( (HYPERFOLD_SOAK_MINUTES + 2) / 3 )) 2)
    # The parsers' fuzz tests, with many more cases than usual.
    HYPERFOLD_SOAK=30 PROPTEST_CASES=$cases cargo test --profile "$profile" --test sweep --test workload -- fuzz:: corpus::
    # Seeded mutations of what every parser reads.
    HYPERFOLD_FUZZ_MINUTES=$mutating cargo test --profile "$profile" --test sweep -- --ignored --nocapture fuzz_targets::mutations_for_some_minutes
    # Calls that fail by which results are written.
    scripts/setup-strace.sh
    scripts/io-faults.py "${CARGO_TARGET_DIR:-target}/$profile/hyperfold" --every 5
    # Runs that are killed at random moments and carried on with.
    scripts/kill-test.sh "${CARGO_TARGET_DIR:-target}/$profile/hyperfold" "$kills"
    # Kernels with every part, on a driver.
    HYPERFOLD_GPU_PARTS=all cargo test --profile "$profile" --test gpu
    # Soak tests are the ignored ones with `soak` in their name; one at a time, so that each has the machine to itself.
    exec cargo test --workspace --profile "$profile" "$@" -- --ignored --test-threads 1 soak
fi
scripts/setup-chromium.sh
scripts/setup-python.sh
exec cargo test --workspace --profile "$profile" --no-fail-fast "$@"
