#!/usr/bin/env bash
# Makes sure that there is a Chromium for the tests of report.html: installs Debian's where none is found.
#
#   scripts/setup-chromium.sh
#
# Does nothing if chromium, chromium-browser or google-chrome is on the PATH, or if HYPERFOLD_CHROMIUM names one. Needs root or sudo.
# Only the tests need a browser in this way; a report opens in any.
set -euo pipefail

say() { printf 'setup-chromium: %s\n' "$*"; }
die() { printf 'setup-chromium: %s\n' "$*" >&2; exit 1; }

# Ubuntu's chromium-browser is a stub that asks for a snap; only one that answers counts.
works() { command -v "$1" >/dev/null && "$1" --version >/dev/null 2>&1; }
for browser in ${HYPERFOLD_CHROMIUM:+"$HYPERFOLD_CHROMIUM"} chromium chromium-browser google-chrome; do
    if works "$browser"; then
        say "$browser is there; nothing to install"
        exit 0
    fi
done

command -v apt-get >/dev/null || die "apt-get is missing; install Chromium by hand, or name one in HYPERFOLD_CHROMIUM"
if [ "$(id -u)" = 0 ]; then as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
elif command -v sudo >/dev/null && [ -t 0 ]; then as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
else die "installing Chromium needs root: run 'sudo scripts/setup-chromium.sh', or install chromium by hand"
fi
export DEBIAN_FRONTEND=noninteractive
# Another source of the machine may be out of reach; the install below is what must succeed.
"${as_root[@]}" apt-get update -q || say "apt-get update reported a problem; trying to install anyway"
"${as_root[@]}" apt-get install -y -q --no-install-recommends chromium || die "apt-get could not install chromium; see its messages above"
works chromium || die "chromium is installed but does not start; on Ubuntu, install it from another source and name it in HYPERFOLD_CHROMIUM"
say "installed"
