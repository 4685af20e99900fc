#!/usr/bin/env bash
# Checks subjects of commits: `area: what changes for the user or reader`, in lower case, at most 100 characters, no full stop at the end.
# Areas are the folders here and in src (crates are folders of src), `ci`, and `build` for Cargo.toml, wheels and packages.
#
#   scripts/check-subjects.sh RANGE              those of a range of commits, such as main..HEAD; merges and reverts are free
#   scripts/check-subjects.sh --message FILE     that of a commit in the making
#
# Continuous integration checks every pull request. `git config core.hooksPath scripts/hooks` checks each commit as it is made.
set -euo pipefail
cd "$(dirname "$0")/.."

areas='build ci'
for folder in */ src/*/; do
    folder=$(basename "$folder")
    case "$folder" in src|target|out) ;; *) areas="$areas $folder" ;; esac
done
wrong=0

# Says what is wrong with the subject $1.
check() {
    local subject=$1 names=${1%%: *} text=${1#*: } faults='' name
    if [ "$names" = "$subject" ]; then
        faults='no `area: ` before what changes'
    else
        for name in ${names//, / }; do
            case " $areas " in *" $name "*) ;; *) faults="$faults; no area $name" ;; esac
        done
        # Abbreviations and names such as DCQCN or SimAI may begin it.
        if [[ $text =~ ^[[:upper:]][[:lower:]]*([^[:alnum:]]|$) ]]; then faults="$faults; \`${text%% *}\` begins with a capital"; fi
    fi
    if [ "${#subject}" -gt 100 ]; then faults="$faults; ${#subject} characters, at most 100"; fi
    case "$subject" in *.) faults="$faults; a full stop at the end" ;; esac
    if [ -n "$faults" ]; then
        echo "$subject" >&2
        echo "  ${faults#; }" >&2
        wrong=1
    fi
}

case "${1:-}" in
    '') echo "check-subjects.sh: give a range of commits, or --message FILE" >&2; exit 2 ;;
    --message)
        subject=$(grep -v '^#' "${2:?check-subjects.sh: --message needs a file}" | head -n 1 || true)
        # What git words itself, or joins to another commit later.
        case "$subject" in 'Merge '*|'Revert "'*|'fixup! '*|'squash! '*|'amend! '*) exit 0 ;; esac
        check "$subject" ;;
    *)
        subjects=$(git log --no-merges --format=%s "$1")
        while IFS= read -r subject; do
            case "$subject" in ''|'Revert "'*) ;; *) check "$subject" ;; esac
        done <<< "$subjects" ;;
esac
if [ "$wrong" -ne 0 ]; then echo "areas: $areas" >&2; fi
exit "$wrong"
