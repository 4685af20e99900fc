#!/usr/bin/env bash
# Makes sure that SLURM's daemons are installed, for scripts/soak-slurm.sh: Debian's and Ubuntu's own packages. Starts none of them, and does nothing where
# they are there already. Needs root or sudo only to install.
set -euo pipefail

say() { printf 'setup-slurm: %s\n' "$*"; }
die() { printf 'setup-slurm: %s\n' "$*" >&2; exit 1; }

# Daemons are in sbin, which a user's PATH may lack.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
missing=()
for program in munged slurmctld slurmd sbatch scontrol; do
    command -v "$program" >/dev/null || missing+=("$program")
done
if [ "${#missing[@]}" = 0 ]; then
    say "SLURM is installed ($(slurmctld -V)); nothing to do"
    exit 0
fi

command -v apt-get >/dev/null || die "missing: ${missing[*]}; install SLURM and munge with your system's package manager"
if [ "$(id -u)" = 0 ]; then as_root=(env DEBIAN_FRONTEND=noninteractive)
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
elif command -v sudo >/dev/null && [ -t 0 ]; then as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
else die "installing SLURM needs root: run 'sudo scripts/setup-slurm.sh', or install slurmctld, slurmd, slurm-client and munge by hand"
fi

# Installing a daemon must not start it on this machine; Debian asks this file, and one that is there already is left alone.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
fi
# Another source of the machine may be out of reach; the install below is what must succeed.
"${as_root[@]}" apt-get update -q || say "apt-get update reported a problem; trying to install anyway"
"${as_root[@]}" apt-get install -y -q --no-install-recommends slurmctld slurmd slurm-client munge || die "apt-get could not install SLURM; see its messages above"
say "installed $(slurmctld -V)"
