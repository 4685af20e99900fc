#!/usr/bin/env bash
# Makes sure that valgrind is installed, for scripts/ledger.py: Debian's and Ubuntu's own package. Does nothing where it is there already. Needs root or sudo only to
# install.
set -euo pipefail

me=setup-valgrind
. "$(dirname "$0")/setup-common.sh"
install_command valgrind
