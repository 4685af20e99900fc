#!/usr/bin/env bash
# Makes sure that strace is installed, for scripts/io-faults.py: Debian's and Ubuntu's own package. Does nothing where it is there already. Needs root or sudo only to
# install.
set -euo pipefail

me=setup-strace
. "$(dirname "$0")/setup-common.sh"
install_command strace
