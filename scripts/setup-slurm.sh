#!/usr/bin/env bash
# Makes sure that SLURM's daemons are installed, for scripts/soak-slurm.sh: Debian's and Ubuntu's own packages. Starts none of them, and does nothing where
# they are there already. Needs root or sudo only to install.
set -euo pipefail

me=setup-slurm
. "$(dirname "$0")/setup-common.sh"

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
become_root SLURM "slurmctld, slurmd, slurm-client and munge"

# Installing a daemon must not start it on this machine; Debian asks this file, and one that is there already is left alone.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
fi
install_packages SLURM slurmctld slurmd slurm-client munge
say "installed $(slurmctld -V)"
