# shellcheck shell=bash
# What the setup scripts share; each sources it: its messages, how it becomes root, Debian's packages.
#
# Before use: `me` is the script's name without `.sh`, for its messages.

say() { printf '%s: %s\n' "${me:?}" "$*"; }
die() { say "$*" >&2; exit 1; }

# The words that run a command as root, into `as_root`; dies where that is not possible.
become_root() { # what needs it, what to install by hand instead
    if [ "$(id -u)" = 0 ]; then as_root=(env DEBIAN_FRONTEND=noninteractive)
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
    elif command -v sudo >/dev/null && [ -t 0 ]; then as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
    else die "installing $1 needs root: run 'sudo scripts/$me.sh', or install $2 by hand"
    fi
}

# Installs packages, after become_root; options of apt-get may stand among them.
install_packages() { # what is installed, then packages
    local what=$1
    shift
    # Another source of the machine may be out of reach; the install below is what must succeed.
    "${as_root[@]}" apt-get update -q || say "apt-get update reported a problem; trying to install anyway"
    "${as_root[@]}" apt-get install -y -q --no-install-recommends "$@" || die "apt-get could not install $what; see its messages above"
}

# Makes sure of a command that is a package of the same name.
install_command() { # the command
    if command -v "$1" >/dev/null; then
        say "$1 is installed; nothing to do"
        return
    fi
    command -v apt-get >/dev/null || die "$1 is missing; install it with your system's package manager"
    become_root "$1" "$1"
    install_packages "$1" "$1"
}
