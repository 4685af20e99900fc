#!/usr/bin/env python3
"""Holds Cargo.lock to a copy of RustSec's advisory database, without a network.

    scripts/check-advisories.py DATABASE

DATABASE is a clone of github.com/RustSec/advisory-db, with or without a work tree. Exit code 1 if a locked crate has an advisory that its
version is not clear of; notices that a crate is unmaintained are printed and are no failure. `cargo deny check advisories` says the same.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path


def version(text):
    """A version as numbers, and whether it is a release: 1.2 is 1.2.0."""
    core, _, before = text.split("+")[0].partition("-")
    numbers = [int(part) for part in core.split(".") if part.isdigit()]
    return (*(numbers + [0, 0, 0])[:3], before == "", before)


def allows(requirement, locked):
    """Whether a version meets comparisons such as `>= 1.2.0, < 2`, or `^1.2`."""
    for part in requirement.split(","):
        operator, bound = re.match(r"\s*(>=|<=|>|<|=|\^|~)?\s*(.*?)\s*$", part).groups()
        at = version(bound)
        if operator in ("^", None, "~"):
            fixed = 1 if at[0] or operator == "~" else 2 if at[1] else 3
            fixed = 2 if operator == "~" and bound.count(".") else fixed
            if locked < at or locked[:fixed] != at[:fixed]:
                return False
        elif not {">=": locked >= at, "<=": locked <= at, ">": locked > at, "<": locked < at, "=": locked == at}[operator]:
            return False
    return True


def advisories(database):
    """Each advisory on a crate as a table."""
    git = ["git", "-C", str(database)]
    listed = subprocess.run([*git, "ls-tree", "-r", "--name-only", "HEAD", "crates"], check=True, capture_output=True, text=True)
    for name in listed.stdout.split():
        if name.endswith(".md"):
            yield name, lambda name=name: subprocess.run([*git, "show", f"HEAD:{name}"], check=True, capture_output=True, text=True).stdout


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    lock = tomllib.loads((Path(__file__).resolve().parent.parent / "Cargo.lock").read_text())
    locked = {}
    for package in lock["package"]:
        locked.setdefault(package["name"], []).append(package["version"])
    date = subprocess.run(["git", "-C", sys.argv[1], "log", "-1", "--format=%cs"], check=True, capture_output=True, text=True).stdout.strip()
    failed = looked = 0
    for name, read in advisories(sys.argv[1]):
        crate = name.split("/")[1]
        if crate not in locked:
            continue
        table = tomllib.loads(re.search(r"```toml\n(.*?)```", read(), re.S)[1])
        looked += 1
        about, clear = table["advisory"], table.get("versions", {})
        if "withdrawn" in about:
            continue
        for found in locked[crate]:
            if any(allows(r, version(found)) for r in clear.get("patched", []) + clear.get("unaffected", [])):
                continue
            notice = about.get("informational")
            failed += notice is None or notice == "unsound"
            print(f"{about['id']}: {crate} {found}: {notice or 'vulnerability'}, {about.get('url', '')}")
    print(f"{len(locked)} crates, {looked} advisories on them in the database of {date}: {failed} that matter")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
