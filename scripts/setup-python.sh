#!/usr/bin/env bash
# Makes a Python environment with what tests compare with: pyarrow reads Parquet files, jsonschema checks sweeps against the schema; and what the package in python/ needs.
#
#   scripts/setup-python.sh          in target/python (or under CARGO_TARGET_DIR)
#
# Does nothing if they are there already. Installs Debian's python3-venv where Python cannot make environments; that needs root or sudo.
# Only tests use it: hyperfold itself needs no Python.
set -euo pipefail
cd "$(dirname "$0")/.."

me=setup-python
. scripts/setup-common.sh

venv=${CARGO_TARGET_DIR:-target}/python
packages=(pyarrow jsonschema pandas tomli_w)
has_all() { [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import sys, importlib; [importlib.import_module(m) for m in sys.argv[1:]]' "${packages[@]}" 2>/dev/null; }

if has_all; then
    say "$venv has ${packages[*]}; nothing to install"
    exit 0
fi
if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    command -v apt-get >/dev/null || die "python3 cannot make environments; install Python 3 with venv by hand"
    become_root python3-venv python3-venv
    install_packages python3-venv python3-venv
fi
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || die "python3 could not make $venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}" || die "pip could not install ${packages[*]}; see its messages above"
has_all || die "installed, but ${packages[*]} cannot be imported"
say "installed ${packages[*]} in $venv"
