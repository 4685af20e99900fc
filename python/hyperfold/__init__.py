"""Runs hyperfold sweeps and reads their results as pandas tables.

The program is what HYPERFOLD_BIN names, else the one that the wheel installed, else `hyperfold` on the PATH. Nothing is simulated here.
"""

from ._read import Results, read
from ._run import HyperfoldError, run

__all__ = ["HyperfoldError", "Results", "read", "run"]
