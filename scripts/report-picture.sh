#!/usr/bin/env bash
# Makes the picture of a report that the README shows: runs the quickstart and photographs its report.html.
#
#   scripts/report-picture.sh        writes assets/report-example.png; needs Chromium (scripts/setup-chromium.sh)
set -euo pipefail
cd "$(dirname "$0")/.."

for browser in ${HYPERFOLD_CHROMIUM:+"$HYPERFOLD_CHROMIUM"} chromium chromium-browser google-chrome; do
    if command -v "$browser" >/dev/null && "$browser" --version >/dev/null 2>&1; then break; fi
    browser=
done
[ -n "$browser" ] || { echo "report-picture.sh: no Chromium; run scripts/setup-chromium.sh first" >&2; exit 2; }

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cargo run --release --quiet -- run experiments/quickstart.toml --out "$out/run" --quiet --set output.flows=true --set output.links=true
# As root its sandbox cannot start; the page is ours and nothing is fetched.
"$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$out/profile" --window-size=1120,1740 \
    --screenshot="$PWD/assets/report-example.png" "file://$out/run/report.html" 2>/dev/null
ls -l assets/report-example.png
