#!/usr/bin/env bash
# Makes a Python environment with the independent readers that tests compare files with (pyarrow, for Parquet).
#
#   scripts/setup-python.sh          in target/python (or under CARGO_TARGET_DIR)
#
# Does nothing if they are there already. Installs Debian's python3-venv where Python cannot make environments; that needs root or sudo.
# Only tests use it: hyperfold itself needs no Python.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup-python: %s\n' "$*"; }
die() { printf 'setup-python: %s\n' "$*" >&2; exit 1; }

venv=${CARGO_TARGET_DIR:-target}/python
packages=(pyarrow)
has_all() { [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import sys, importlib; [importlib.import_module(m) for m in sys.argv[1:]]' "${packages[@]}" 2>/dev/null; }

if has_all; then
    say "$venv has ${packages[*]}; nothing to install"
    exit 0
fi
if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    command -v apt-get >/dev/null || die "python3 cannot make environments; install Python 3 with venv by hand"
    if [ "$(id -u)" = 0 ]; then as_root=()
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
    elif command -v sudo >/dev/null && [ -t 0 ]; then as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
    else die "installing python3-venv needs root: run 'sudo scripts/setup-python.sh', or install python3-venv by hand"
    fi
    export DEBIAN_FRONTEND=noninteractive
    "${as_root[@]}" apt-get update -q || say "apt-get update reported a problem; trying to install anyway"
    "${as_root[@]}" apt-get install -y -q --no-install-recommends python3-venv || die "apt-get could not install python3-venv; see its messages above"
fi
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || die "python3 could not make $venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}" || die "pip could not install ${packages[*]}; see its messages above"
has_all || die "installed, but ${packages[*]} cannot be imported"
say "installed ${packages[*]} in $venv"
