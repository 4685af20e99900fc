"""A folder of results as pandas tables."""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

# Whole numbers that may be empty are pandas' nullable integers; times, rates and shares are floats.
_WHOLE = pd.UInt64Dtype()
_WHOLE_COLUMNS = {
    "flows.csv": ("exp_id", "flow_id", "src", "dst", "bytes", "retransmissions"),
    "links.csv": ("exp_id", "bytes", "max_queue_bytes", "ecn_marks", "pfc_pauses", "drops"),
    "rtt.csv": ("exp_id", "flow_id"),
    "series_links.csv": ("exp_id", "queue_bytes", "tx_bytes", "ecn_marks", "pfc_pauses", "drops"),
    "series_flows.csv": ("exp_id", "flow_id", "window_bytes", "outstanding_bytes", "acked_bytes"),
    "jobs.csv": ("exp_id", "gpus", "peak_memory_bytes", "first_flow", "flows", "bytes", "packet_hops", "shared_links", "shared_bytes"),
    "shared_links.csv": ("exp_id", "job_bytes", "other_bytes"),
    "stats.csv": (
        "exp_id packet_hops_simulated packet_hops_skipped memo_hits memo_misses steady_skips batches episodes episodes_known snapshots snapshots_known "
        "partitions partitions_max memo_bytes hops_steady rounded switches_coupled couplings carried_skips pauses_left_out audited audit_hops audit_messages theorem2_violations theorem3_violations"
    ).split(),
}
_TEXT_COLUMNS = ("link", "source", "target", "job", "kind", "background", "gpu_list", "placement", "algorithm", "shares_with", "busiest_shared_link", "shared_with")
_TYPES = {name: pd.StringDtype() for name in _TEXT_COLUMNS} | {"paused": pd.BooleanDtype()}


class Results:
    """What a run wrote into a folder. Tables are read when they are first asked for.

    Times are nanoseconds, sizes bytes, shares of one; the reference of results has every column.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        manifest = self.path / "manifest.json"
        if not manifest.is_file():
            raise FileNotFoundError(f"{self.path}: not a folder of results: it has no manifest.json; name what `hyperfold run --out` wrote")
        self.manifest: dict[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))

    def __repr__(self) -> str:
        m = self.manifest
        return f"<hyperfold.Results {self.path}: {m['name']}, {m['selected']} selected, {m['ok']} ok, {m['oom']} oom, {m['failed']} failed>"

    @property
    def name(self) -> str:
        """The sweep's name."""
        return self.manifest["name"]

    @property
    def axes(self) -> list[str]:
        """Dotted keys of the sweep's axes, which are columns of `results`."""
        return [axis["key"] for axis in self.manifest["axes"]]

    @cached_property
    def results(self) -> pd.DataFrame:
        """One row an experiment: results.parquet. What does not apply is missing (pd.NA)."""
        path = self.path / "results.parquet"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there: the run has not come to its end; `hyperfold run` with --resume carries on")
        types = {pa.string(): pd.StringDtype(), pa.bool_(): pd.BooleanDtype(), pa.float64(): pd.Float64Dtype(), pa.int64(): pd.Int64Dtype()}
        types |= {pa.uint64(): _WHOLE, pa.uint32(): _WHOLE, pa.int32(): pd.Int64Dtype()}
        return pq.read_table(path).to_pandas(types_mapper=types.get)

    @cached_property
    def flows(self) -> pd.DataFrame | None:
        """One row a flow: flows.csv, where the sweep set output.flows = true; else None."""
        return self._csv("flows.csv")

    @cached_property
    def links(self) -> pd.DataFrame | None:
        """One row a direction of a link: links.csv, where the sweep set output.links = true; else None."""
        return self._csv("links.csv")

    @cached_property
    def rtt(self) -> pd.DataFrame | None:
        """Sampled round-trip times: rtt.csv, where the sweep set output.rtt = true; else None."""
        return self._csv("rtt.csv")

    @cached_property
    def series_links(self) -> pd.DataFrame | None:
        """Samples of links over time: series_links.csv, where the sweep set output.series = "links"; else None."""
        return self._csv("series_links.csv")

    @cached_property
    def series_flows(self) -> pd.DataFrame | None:
        """Samples of flows over time: series_flows.csv, where the sweep set output.series = "flows"; else None."""
        return self._csv("series_flows.csv")

    @cached_property
    def jobs(self) -> pd.DataFrame | None:
        """One row an experiment and job: jobs.csv, where the sweep has [[job]] tables; else None."""
        return self._csv("jobs.csv")

    @cached_property
    def shared_links(self) -> pd.DataFrame | None:
        """One row a link and job that sends over it beside others: shared_links.csv, where the sweep set output.shared_links = true; else None."""
        return self._csv("shared_links.csv")

    @cached_property
    def stats(self) -> pd.DataFrame | None:
        """How each result came about: stats.csv."""
        return self._csv("stats.csv")

    def _csv(self, name: str) -> pd.DataFrame | None:
        path = self.path / name
        if not path.is_file():
            return None
        columns = pd.read_csv(path, nrows=0).columns
        whole = _WHOLE_COLUMNS[name]
        dtypes = {c: _WHOLE if c in whole else _TYPES.get(c, pd.Float64Dtype()) for c in columns}
        return pd.read_csv(path, dtype=dtypes, keep_default_na=False, na_values=[""])


def read(path: str | os.PathLike[str]) -> Results:
    """The results in a folder that `hyperfold run --out` wrote.

    Raises FileNotFoundError if it is no such folder.
    """
    return Results(path)
