"""Runs sweeps with the hyperfold program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from ._read import Results, read


class HyperfoldError(RuntimeError):
    """The program refused a sweep or ended with an error. Its text is the program's own message."""

    def __init__(self, code: int, message: str, out: Path) -> None:
        super().__init__(message or f"hyperfold ended with exit code {code}")
        #: Exit code: 1 some experiments failed, 2 bad input, 3 a condition was met, 130 interrupted.
        self.code = code
        #: Where results are, as far as there are any.
        self.out = out


def _program() -> str:
    """The program: what HYPERFOLD_BIN names, else what was installed together with this package, else hyperfold on the PATH."""
    if named := os.environ.get("HYPERFOLD_BIN"):
        if found := shutil.which(named):
            return found
        raise FileNotFoundError(f"no program {named}, which HYPERFOLD_BIN names")
    # Scripts of this environment, of the user (pip --user), and beside the package (pip --target).
    user = sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))
    for folder in (sysconfig.get_path("scripts"), user, Path(__file__).parents[1] / "bin"):
        program = Path(folder, "hyperfold.exe" if os.name == "nt" else "hyperfold")
        if program.is_file() and os.access(program, os.X_OK):
            return str(program)
    if found := shutil.which("hyperfold"):
        return found
    raise FileNotFoundError("no program hyperfold: install the wheel that has it, put hyperfold on the PATH, or name it in HYPERFOLD_BIN")


def _words(options: Mapping[str, Any]) -> list[str]:
    """Options of the command line: jobs=2 is --jobs 2, strict=True is --strict, a list repeats its option."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(option)
            elif one is not None and one is not False:
                words += [option, str(one)]
    return words


def run(
    sweep: Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    set: Mapping[str, Any] | None = None,
    allow_failed: bool = False,
    **options: Any,
) -> Results:
    """Runs a sweep into the folder `out`, which must be new or empty, and reads its results.

    `sweep` is a sweep file's path, or its content as a dict: {"name": ..., "base": {...}, "axes": {...}}. A dict is written to `OUT.toml` beside the folder, so that
    paths in it are relative to there. `set` overrides keys by their dotted names. Other options are those of `hyperfold run`: jobs=2, engine="cpu", limit=10.

    Raises HyperfoldError with the program's message if it refuses the sweep, or, without `allow_failed`, if experiments fail.
    """
    out = Path(out)
    if isinstance(sweep, Mapping):
        path = out.with_name(out.name + ".toml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tomli_w.dumps(dict(sweep)).encode())
    else:
        path = Path(sweep)
    overrides = [f"{key}={_toml(value)}" for key, value in (set or {}).items()]
    command = [_program(), "run", str(path), "--out", str(out), "--quiet", *_words({"set": overrides, **options})]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0 and not (done.returncode == 1 and allow_failed and (out / "manifest.json").is_file()):
        raise HyperfoldError(done.returncode, done.stderr.strip(), out)
    return read(out)


def _toml(value: Any) -> str:
    """A value as TOML writes it."""
    return tomli_w.dumps({"v": value}, multiline_strings=False).removeprefix("v = ").strip()
