#!/usr/bin/env bash
# Makes sure that strace is installed, for scripts/io-faults.py: Debian's and Ubuntu's own package. Does nothing where it is there already. Needs root or
# sudo only to install.
set -euo pipefail

me=setup-strace
. "$(dirname "$0")/setup-common.sh"

if command -v strace >/dev/null; then
    say "strace is installed; nothing to do"
    exit 0
fi
command -v apt-get >/dev/null || die "strace is missing; install it with your system's package manager"
become_root strace strace
install_packages strace strace
