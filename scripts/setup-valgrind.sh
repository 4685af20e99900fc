#!/usr/bin/env bash
# Makes sure that valgrind is installed, for scripts/ledger.py: Debian's and Ubuntu's own package. Does nothing where it is there already. Needs root or
# sudo only to install.
set -euo pipefail

me=setup-valgrind
. "$(dirname "$0")/setup-common.sh"

if command -v valgrind >/dev/null; then
    say "valgrind is installed; nothing to do"
    exit 0
fi
command -v apt-get >/dev/null || die "valgrind is missing; install it with your system's package manager"
become_root valgrind valgrind
install_packages valgrind valgrind
