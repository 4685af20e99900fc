#!/usr/bin/env bash
# Builds a release archive: the program, completions, man pages, the schema of sweep files, documents and licences.
#
#   scripts/release.sh [--target TRIPLE] [--binary PROGRAM] [--out DIR]
#
# Without --target: static (musl) if that target is installed here, else this machine's own. A static program runs on any Linux, but
# loads no Vulkan driver, so it has the CPU engine only; name the gnu target for GPUs. --binary takes a program that is built already.
# The archive and its SHA-256 are in DIR (default target/dist). The same commit and compiler give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "release.sh: $*" >&2; exit 2; }
target='' binary='' out=target/dist
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || die "$1 needs a value"
    case "$1" in
        --target) target=$2 ;;
        --binary) binary=$2 ;;
        --out) out=$2 ;;
        *) die "unknown option $1; there are --target, --binary and --out" ;;
    esac
    shift 2
done
command -v cargo >/dev/null || die "cargo is missing; install Rust (rustup) first"

host=$(rustc -vV | sed -n 's/^host: //p')
if [ -z "$target" ]; then
    static=$(uname -m)-unknown-linux-musl
    if [ -z "$binary" ] && [ -d "$(rustc --print sysroot)/lib/rustlib/$static" ]; then
        target=$static
        echo "release.sh: static program for $target: the CPU engine only" >&2
    else
        target=$host
        [ -n "$binary" ] || echo "release.sh: $static is not installed, so the program is for $host (rustup target add $static)" >&2
    fi
fi
exe=''
case "$target" in *-windows-*) exe=.exe ;; esac
if [ -z "$binary" ]; then
    cargo build --release --locked --bin hyperfold --target "$target"
    binary=${CARGO_TARGET_DIR:-target}/$target/release/hyperfold$exe
fi
[ -x "$binary" ] || die "$binary is no program"
version=$("$binary" --version | tr -d '\r' | cut -d ' ' -f 2)
name=hyperfold-$version-$target

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=$work/$name
mkdir -p "$folder/completions"
cp "$binary" "$folder/hyperfold$exe"
# The symbols of a program for Windows are in a file of their own.
if [ -z "$exe" ] && command -v strip >/dev/null; then strip "$folder/hyperfold"; fi
binary=$folder/hyperfold$exe
cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$folder/"
"$binary" completions bash > "$folder/completions/hyperfold.bash"
"$binary" completions zsh > "$folder/completions/_hyperfold"
"$binary" completions fish > "$folder/completions/hyperfold.fish"
"$binary" completions powershell > "$folder/completions/_hyperfold.ps1"
"$binary" completions elvish > "$folder/completions/hyperfold.elv"
"$binary" man --out "$folder/man/man1" > /dev/null
"$binary" schema > "$folder/sweep.schema.json"

scripts/licenses.sh "$target" "$folder/licenses"

# Bytes do not depend on who packs them, or when.
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
find "$folder" -type f -exec chmod 644 {} +
chmod 755 "$binary"
mkdir -p "$out"
# macOS calls GNU's tar gtar, and has no sha256sum.
tar=tar
if command -v gtar >/dev/null; then tar=gtar; fi
sha256() { if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi; }
"$tar" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w -C "$work" -cf - "$name" | gzip -9n > "$out/$name.tar.gz"
(cd "$out" && sha256 "$name.tar.gz" > "$name.tar.gz.sha256")
echo "$out/$name.tar.gz"
