"""Compares the numbers in report.html with results.parquet, read by pyarrow.

usage: check_parquet.py report.html results.parquet
"""

import json
import re
import sys

import pyarrow
import pyarrow.parquet


def texts(column, rows):
    """A column of the page, a text a row."""
    if "text" in column:
        return column["text"]
    of = column["of"] or [0] * rows
    return [column["texts"][at] for at in of]


def same(text, value):
    if value is None:
        return text == ""
    if isinstance(value, bool):
        return text == str(value).lower()
    if isinstance(value, int):
        return int(text) == value
    if isinstance(value, float):
        return float(text) == value
    return text == value


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
    table = pyarrow.parquet.read_table(sys.argv[2])
    names = [column["name"] for column in data["columns"]]
    assert names == table.column_names, (names, table.column_names)
    assert data["rows"] == table.num_rows
    compared = 0
    for column, name in zip(data["columns"], names):
        values = table.column(name).to_pylist()
        numeric = pyarrow.types.is_integer(table.schema.field(name).type) or pyarrow.types.is_floating(table.schema.field(name).type)
        assert column["number"] == numeric, f"{name}: number is {column['number']}"
        for row, (text, value) in enumerate(zip(texts(column, data["rows"]), values, strict=True)):
            assert same(text, value), f"{name}, row {row}: the page says {text!r}, the file {value!r}"
            compared += numeric and value is not None
    # Means over replicas, from the file's own numbers.
    status = table.column("status").to_pylist()
    for metric, means in zip(data["metrics"], data["means"] or []):
        values = table.column(metric["name"]).to_pylist()
        for configuration, rows in enumerate(data["design"]["members"]):
            mine = [values[row] for row in rows if status[row] == "ok" and values[row] is not None]
            mean = means["mean"][configuration]
            if not mine:
                assert mean is None, (metric["name"], configuration)
            else:
                expected = sum(mine) / len(mine)
                assert abs(mean - expected) <= 1e-12 * abs(expected), (metric["name"], configuration, mean, expected)
    # The longest flow of an excerpt is that of the table.
    longest = dict(zip(table.column("exp_id").to_pylist(), table.column("fct_max_ns").to_pylist()))
    for exp_id, flows in ((data["flows"] or {}).get("of") or {}).items():
        assert float(flows["points"][-1]) == longest[int(exp_id)], exp_id
    print(f"{data['rows']} rows, {compared} numbers agree")


if __name__ == "__main__":
    main()
