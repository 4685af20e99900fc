#!/usr/bin/env bash
# Makes sure that one Vulkan adapter passes hyperfold's self-test: installs Mesa's software Vulkan where none does.
#
#   scripts/setup-vulkan.sh [path of the hyperfold binary]
#
# Does nothing if `hyperfold doctor` already finds a passing adapter. Debian 12's own Mesa (22.3) fails the self-test (its
# loops stop after 65,535 iterations), so there the driver comes from Debian's backports, whose source is derived from the
# machine's own apt configuration. Debian 13 and later and Ubuntu have a good driver of their own. Needs root or sudo.
set -euo pipefail
cd "$(dirname "$0")/.."

me=setup-vulkan
. scripts/setup-common.sh

# The binary that judges adapters; without one, everything below still installs a driver.
bin=${1:-}
if [ -z "$bin" ]; then
    for candidate in "${CARGO_TARGET_DIR:-target}"/checked/hyperfold "${CARGO_TARGET_DIR:-target}"/release/hyperfold "${CARGO_TARGET_DIR:-target}"/debug/hyperfold; do
        if [ -x "$candidate" ]; then bin=$candidate; break; fi
    done
fi
passes() { [ -n "$bin" ] && "$bin" doctor --json >/dev/null 2>&1; }

if passes; then
    say "an adapter passes the self-test; nothing to install"
    exit 0
fi

[ -r /etc/os-release ] || die "no /etc/os-release: not Debian or Ubuntu. Install a Vulkan driver (Mesa 23 or later has one in software) by hand"
# shellcheck disable=SC1091
. /etc/os-release
case "${ID:-} ${ID_LIKE:-}" in
    *debian*|*ubuntu*) ;;
    *) die "this is ${PRETTY_NAME:-an unknown system}; install Mesa's Vulkan drivers (23 or later) with its package manager, then run 'hyperfold doctor'" ;;
esac
command -v apt-get >/dev/null || die "apt-get is missing; install Mesa's Vulkan drivers (23 or later) by hand"

become_root "a Vulkan driver" mesa-vulkan-drivers

# Prints the machine's own archive with its suite replaced: the first stanza or line that serves the release itself
# (suite = codename, component main), so that third-party sources are never taken for Debian's.
derived_deb822() { # file, codename, suite
    awk -v want="$2" -v suite="$3" '
        function flush(   i, j, n, hit, main, word) {
            hit = 0; main = 0
            for (i = 1; i <= count; i++) {
                n = split(line[i], word, /[ \t]+/)
                for (j = 2; j <= n; j++) {
                    if (line[i] ~ /^Suites:/ && word[j] == want) hit = 1
                    if (line[i] ~ /^Components:/ && word[j] == "main") main = 1
                }
            }
            if (hit && main && !done) {
                for (i = 1; i <= count; i++) {
                    if (line[i] ~ /^#/) continue
                    if (line[i] ~ /^Types:/) print "Types: deb"
                    else if (line[i] ~ /^Suites:/) print "Suites: " suite
                    else if (line[i] ~ /^Components:/) print "Components: main"
                    else print line[i]
                }
                done = 1
            }
            count = 0
        }
        /^[ \t]*$/ { flush(); next }
        { line[++count] = $0 }
        END { flush() }
    ' "$1"
}
derived_one_line() { # file, codename, suite
    awk -v want="$2" -v suite="$3" '
        $1 == "deb" {
            i = 2
            if ($i ~ /^\[/) { while ($i !~ /\]$/ && i < NF) i++; i++ }
            if ($(i + 1) != want) next
            main = 0
            for (j = i + 2; j <= NF; j++) if ($j == "main") main = 1
            if (!main) next
            out = $1
            for (j = 2; j <= i; j++) out = out " " $j
            print out " " suite " main"
            exit
        }
    ' "$1"
}
add_backports() {
    local suite=$1 codename=$2 file text target
    if apt-cache policy 2>/dev/null | grep -q "[ =]$suite[/ ,]"; then
        say "$suite is already among the apt sources"
        return
    fi
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
        [ -r "$file" ] || continue
        case "$file" in
            *.sources) text=$(derived_deb822 "$file" "$codename" "$suite"); target=hyperfold-backports.sources ;;
            *) text=$(derived_one_line "$file" "$codename" "$suite"); target=hyperfold-backports.list ;;
        esac
        if [ -n "$text" ]; then
            say "adding $suite, derived from $file, as /etc/apt/sources.list.d/$target"
            printf '%s\n' "$text" | "${as_root[@]}" tee "/etc/apt/sources.list.d/$target" >/dev/null
            return
        fi
    done
    die "found no apt source for $codename to derive $suite from; add $suite by hand and run this again"
}

pin=()
if [ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ]; then
    add_backports "${VERSION_CODENAME}-backports" "$VERSION_CODENAME"
    pin=(-t "${VERSION_CODENAME}-backports")
fi
install_packages mesa-vulkan-drivers "${pin[@]}" mesa-vulkan-drivers libvulkan1

if [ -z "$bin" ]; then
    say "installed; build hyperfold and run 'hyperfold doctor' to test the adapter"
elif passes; then
    say "installed, and an adapter passes the self-test"
else
    "$bin" doctor || true
    die "installed, but no adapter passes the self-test; see the lines above"
fi
