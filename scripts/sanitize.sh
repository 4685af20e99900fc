#!/usr/bin/env bash
# Runs tests under Miri and under the sanitizers, as far as the toolchains here can; says what ran and what could not.
#
#   scripts/sanitize.sh [miri|address|thread]...      all three without an argument
#
# Miri interprets: it runs the pure parts (units, columns, codecs, the allocator that counts), and stops at undefined behaviour. It needs the nightly
# toolchain with the components miri and rust-src. The sanitizers run compiled code: the library's tests of folding, engine, journal and memo. They
# need nightly and a C compiler; that of threads rust-src as well, as the standard library is built with it too. Exit code 1 if something was found, 0 if nothing
# was, also where a toolchain is missing: that is printed.
set -uo pipefail
cd "$(dirname "$0")/.."
toolchain=${HYPERFOLD_NIGHTLY:-nightly}
host=$(rustc -vV | sed -n 's/^host: //p')
# Folders of their own, so that nothing else is built anew.
target=${CARGO_TARGET_DIR:-target}
wanted=("$@")
[ ${#wanted[@]} -gt 0 ] || wanted=(miri address thread)
failed=0
ran() { echo "sanitize.sh: $1: $2"; }

# What Miri can run: no files, no threads of rayon, no simulation of millions of packets.
MIRI_CRATES=(-p hyperfold-base -p hyperfold-columns -p hyperfold-engine -p hyperfold-fold -p hyperfold-results)
MIRI_TESTS=(units:: index:: row:: value:: journal_codec cpu::math cpu::key rows::bytes budget::allocator)
# What the sanitizers run: engines and everything that is shared between threads.
CRATES=(-p hyperfold-base -p hyperfold-engine -p hyperfold-fold -p hyperfold-results -p hyperfold-host)

for what in "${wanted[@]}"; do
    case $what in
        miri)
            if ! cargo "+$toolchain" miri --version >/dev/null 2>&1; then
                ran miri "not run: rustup component add miri rust-src --toolchain $toolchain"
                continue
            fi
            if MIRIFLAGS="-Zmiri-disable-isolation" PROPTEST_CASES=4 CARGO_TARGET_DIR="$target/miri" \
                cargo "+$toolchain" miri test "${MIRI_CRATES[@]}" --lib -- "${MIRI_TESTS[@]}"; then
                ran miri "nothing found in ${MIRI_TESTS[*]}"
            else
                ran miri "FAILED"
                failed=1
            fi
            ;;
        address | thread)
            sysroot=$(rustc "+$toolchain" --print sysroot 2>/dev/null) || sysroot=
            # Races in the standard library look like false alarms unless it is built with the sanitizer; for addresses it need not be.
            std=(-Zbuild-std)
            if [ -z "$sysroot" ]; then
                ran "$what" "not run: rustup toolchain install $toolchain --component rust-src"
                continue
            elif [ ! -d "$sysroot/lib/rustlib/src" ]; then
                if [ "$what" = thread ]; then
                    ran "$what" "not run: rustup component add rust-src --toolchain $toolchain"
                    continue
                fi
                ran "$what" "the standard library itself is not checked: rustup component add rust-src --toolchain $toolchain"
                std=()
            fi
            # Leaks of statics are none; a race in the standard library's own locks is none either once it is built with the sanitizer.
            if ASAN_OPTIONS=detect_leaks=0 RUSTFLAGS="-Zsanitizer=$what" CARGO_TARGET_DIR="$target/$what" CARGO_INCREMENTAL=0 \
                cargo "+$toolchain" test "${std[@]}" --target "$host" "${CRATES[@]}" --lib; then
                ran "$what" "nothing found in ${CRATES[*]}"
            else
                ran "$what" "FAILED"
                failed=1
            fi
            ;;
        *)
            echo "usage: sanitize.sh [miri|address|thread]..." >&2
            exit 2
            ;;
    esac
done
exit $failed
