"""Runs hyperfold sweeps and reads their results as pandas tables.

The program itself is `hyperfold` on the PATH, or what HYPERFOLD_BIN names. Nothing is simulated here.
"""

from ._read import Results, read
from ._run import HyperfoldError, run

__all__ = ["HyperfoldError", "Results", "read", "run"]
