#!/usr/bin/env bash
# Makes sure that there is a Chromium for the tests of report.html: installs Debian's where none is found.
#
#   scripts/setup-chromium.sh
#
# Does nothing if chromium, chromium-browser or google-chrome is on the PATH, or if HYPERFOLD_CHROMIUM names one. Needs root or sudo.
# Only the tests need a browser in this way; a report opens in any.
set -euo pipefail

me=setup-chromium
. "$(dirname "$0")/setup-common.sh"

# Ubuntu's chromium-browser is a stub that asks for a snap; only one that answers counts.
works() { command -v "$1" >/dev/null && "$1" --version >/dev/null 2>&1; }
for browser in ${HYPERFOLD_CHROMIUM:+"$HYPERFOLD_CHROMIUM"} chromium chromium-browser google-chrome; do
    if works "$browser"; then
        say "$browser is there; nothing to install"
        exit 0
    fi
done

command -v apt-get >/dev/null || die "apt-get is missing; install Chromium by hand, or name one in HYPERFOLD_CHROMIUM"
become_root Chromium chromium
install_packages chromium chromium
works chromium || die "chromium is installed but does not start; on Ubuntu, install it from another source and name it in HYPERFOLD_CHROMIUM"
say "installed"
