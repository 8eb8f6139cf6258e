"""Requests of the Berkeley Function Calling Leaderboard, as files for `remora bench requests --from`.

    python -m benchmarks.public_requests --out FOLDER [--rows 40] [--wheel FILE]

Writes one file for each category in which one call is right, or none. They come from the wheel of `bfcl-eval`
(Apache 2.0), which is downloaded and never installed or imported. The digests of ids decide which rows a file has.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

WHEEL = "bfcl-eval==2026.3.23"
DATA = "bfcl_eval/data"
CATEGORIES = ("simple_python", "multiple", "live_simple", "live_multiple", "irrelevance", "live_irrelevance")
TYPES = {"dict": "object", "float": "number", "tuple": "array"}
"""What their types are called in JSON Schema. `any` is every type."""


def fetch_wheel(folder: Path) -> Path:
    """Download the wheel into `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), WHEEL]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def read_category(wheel: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    """The rows of a category in the order of their ids' digests, each with its right call."""
    rows = _lines(wheel.read(f"{DATA}/BFCL_v4_{name}.json"))
    answers = f"{DATA}/possible_answer/BFCL_v4_{name}.json"
    known = {each["id"]: each["ground_truth"] for each in _lines(wheel.read(answers))} if _has(wheel, answers) else {}
    rows.sort(key=lambda row: hashlib.sha256(row["id"].encode()).digest())
    return [row_of(row, known.get(row["id"])) for row in rows]


def row_of(row: Mapping[str, Any], answer: list[Mapping[str, Any]] | None) -> dict[str, Any]:
    """A row as `remora bench requests` reads it. `answer` has one call, or is None where no tool fits."""
    said = [message["content"] for message in itertools.chain(*row["question"]) if message["role"] != "assistant"]
    tools = [_tool(function) for function in row["function"]]
    return {"request": "\n\n".join(said), "tools": tools, "call": _call(answer[0]) if answer else None}


def _call(answer: Mapping[str, Any]) -> dict[str, Any]:
    ((name, values),) = answer.items()
    return {"name": _plain(name), "accepts": _accepts(values)}


def _accepts(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The right values of each argument; deep inside some answers one value stands without a list."""
    listed = {name: right if isinstance(right, list) else [right] for name, right in values.items()}
    return {name: [_accepted(value) for value in right] for name, right in listed.items()}


def _accepted(value: Any) -> Any:
    """A right value; an empty text means that the argument may be missing."""
    if isinstance(value, dict):
        return _accepts(value)
    if isinstance(value, list):
        return [_accepts(each) if isinstance(each, dict) else each for each in value]
    return None if value == "" else value


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    return {**function, "name": _plain(function["name"]), "parameters": _schema(function["parameters"])}


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Their schema as JSON Schema."""
    found = dict(schema)
    if (kind := found.pop("type", "any")) != "any":
        found["type"] = TYPES.get(kind, kind)
    if "properties" in found:
        found["properties"] = {name: _schema(each) for name, each in found["properties"].items()}
    if "items" in found:
        found["items"] = _schema(found["items"])
    return found


def _plain(name: str) -> str:
    """A name as servers allow it, without dots."""
    return name.replace(".", "_")


def _lines(text: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in text.splitlines() if line.strip()]


def _has(wheel: zipfile.ZipFile, name: str) -> bool:
    return name in wheel.namelist()


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--wheel", type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(given.wheel or fetch_wheel(Path(folder))) as wheel:
        for name in CATEGORIES:
            rows = read_category(wheel, name)[: given.rows]
            (given.out / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
            print(f"{given.out / name}.jsonl: {len(rows)} requests")


if __name__ == "__main__":
    main()
