#!/usr/bin/env bash
# Writes what the program is built of: crates.txt, a list with licences, and the licence texts that the crates carry.
#
#   scripts/licenses.sh TRIPLE FOLDER
#
# Needs no network where the program was built. `cargo fetch --locked --target TRIPLE` gets what only its tests would need.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -eq 2 ] || { echo "licenses.sh: give a target triple and a folder" >&2; exit 2; }
target=$1 folder=$2
mkdir -p "$folder"
cp assets/fonts/LICENSE-DejaVu "$folder/"
cargo tree --locked --offline --target "$target" -e normal --prefix none --format '{p} {l}' \
    | sed 's/ (\*)$//; s/ (proc-macro)//' | sort -u | grep -v '^hyperfold[ -]' > "$folder/crates.txt"
metadata=$(cargo metadata --locked --offline --format-version 1 --filter-platform "$target")
# On Windows, paths are written with two backslashes.
grep -o '"manifest_path":"[^"]*"' <<< "$metadata" | cut -d '"' -f 4 | tr -s '\\' / | while read -r manifest; do
    crate=$(dirname "$manifest")
    known=$(basename "$crate")
    grep -q "^${known%-[0-9]*.*} v${known##*-} " "$folder/crates.txt" || continue
    for text in "$crate"/LICEN[CS]E* "$crate"/COPYING* "$crate"/NOTICE*; do
        if [ -f "$text" ]; then cp "$text" "$folder/$known-$(basename "$text")"; fi
    done
done
