#!/usr/bin/env bash
# Measures which lines the tests run, and prints one figure for each folder of src.
#
#   scripts/coverage.sh [ARGUMENTS OF cargo test]      such as --lib, or --test sweep; without any, all tests but the long ones
#
# Needs the component llvm-tools (rustup component add llvm-tools), or llvm-cov and llvm-profdata of a distribution's LLVM 19 or later
# (Debian's package llvm-19), which read the same profiles. Programs that tests start count as well. The build has a folder of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
host=$(rustc -vV | sed -n 's/^host: //p')
tools=$(rustc --print sysroot)/lib/rustlib/$host/bin
if [ ! -x "$tools/llvm-cov" ]; then
    tools=
    # Older ones do not know the version of rustc's profiles.
    for version in $(ls -d /usr/lib/llvm-*/bin/llvm-cov 2>/dev/null | sed 's,^/usr/lib/llvm-\([0-9]*\)/.*,\1,' | sort -n); do
        if [ "$version" -ge 19 ]; then tools=/usr/lib/llvm-$version/bin; fi
    done
    if [ -z "$tools" ]; then
        echo "coverage.sh: llvm-cov is missing: rustup component add llvm-tools, or install llvm-19 or later" >&2
        exit 2
    fi
fi
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/coverage CARGO_INCREMENTAL=0 INSTA_UPDATE=no
export RUSTFLAGS="-C instrument-coverage" LLVM_PROFILE_FILE=$PWD/$CARGO_TARGET_DIR/profiles/%p-%8m.profraw
rm -rf "$CARGO_TARGET_DIR/profiles"
# Line tables are all that is needed, and executables stay small.
profile=(--config 'profile.dev.debug="line-tables-only"')
cargo test --workspace "${profile[@]}" --no-fail-fast "$@" || echo "coverage.sh: some tests failed; lines that they ran count all the same" >&2
mapfile -t programs < <(cargo test --workspace "${profile[@]}" --no-run --message-format=json "$@" 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | sort -u)
objects=()
for program in "${programs[@]}"; do objects+=(--object "$program"); done
# Tests kill programs on purpose, whose profiles may be cut off: only if all are, that is an error.
"$tools/llvm-profdata" merge --sparse --failure-mode=all "$CARGO_TARGET_DIR"/profiles/*.profraw -o "$CARGO_TARGET_DIR/tests.profdata"
"$tools/llvm-cov" export --summary-only --instr-profile "$CARGO_TARGET_DIR/tests.profdata" "${objects[@]}" \
    --ignore-filename-regex '/(tests|examples|benches|fuzz)/|/registry/|/rustc/|/rustlib/' >"$CARGO_TARGET_DIR/coverage.json"
python3 - "$CARGO_TARGET_DIR/coverage.json" "$PWD/src/" <<'PYTHON'
import collections
import json
import sys

lines = collections.defaultdict(lambda: [0, 0])
for file in json.load(open(sys.argv[1]))["data"][0]["files"]:
    if not file["filename"].startswith(sys.argv[2]):
        continue
    folder = file["filename"][len(sys.argv[2]) :].split("/")[0]
    for name in (folder, "all"):
        lines[name][0] += file["summary"]["lines"]["covered"]
        lines[name][1] += file["summary"]["lines"]["count"]
for name, (covered, count) in sorted(lines.items(), key=lambda x: (x[0] == "all", x[0])):
    print(f"{name:20} {100 * covered / count:5.1f} %   {covered} of {count} lines")
PYTHON
