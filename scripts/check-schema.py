#!/usr/bin/env python3
"""Checks documents against a JSON Schema with Python's jsonschema, which shares no code with hyperfold.

    scripts/check-schema.py SCHEMA.json DOCUMENTS.jsonl     one line of output a document: "ok", or what is wrong first
    scripts/check-schema.py SCHEMA.json SWEEP.toml...       the same for sweep files; exit code 1 if one is wrong
"""
import json
import sys
import tomllib

from jsonschema import Draft202012Validator

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema)
wrong = False


def check(name, document):
    global wrong
    error = next(validator.iter_errors(document), None)
    wrong |= error is not None
    verdict = "ok" if error is None else f"{error.json_path}: {error.message}"
    print(name + verdict.replace("\n", " "))


for path in sys.argv[2:]:
    if path.endswith(".toml"):
        with open(path, "rb") as file:
            check(f"{path}: ", tomllib.load(file))
    else:
        with open(path, encoding="utf-8") as file:
            for line in file:
                check("", json.loads(line))
sys.exit(1 if wrong and sys.argv[2].endswith(".toml") else 0)
