"""Tasks for `dependencies`: modules with imports, and a pyproject.toml that declares them, others or too many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.making import Case, call, made
from remora_lab.bench.tasks import Task

PYPROJECT = "pyproject.toml"
FORECAST = '''"""Asks the weather service what tomorrow brings."""

import json

import httpx


def forecast(city):
    answer = httpx.get("https://weather.example/v2", params={"q": city})
    return json.loads(answer.text)["tomorrow"]
'''
THUMBNAILS = '''"""Makes thumbnails as album.yaml asks for them."""

from pathlib import Path

import yaml
from PIL import Image


def thumbnails(folder: Path):
    size = yaml.safe_load((folder / "album.yaml").read_text())["size"]
    for path in folder.glob("*.png"):
        image = Image.open(path)
        image.thumbnail((size, size))
        image.save(path.with_suffix(".small.png"))
'''
SCREEN = """import time

from rich.progress import track


def brew(minutes):
    for _ in track(range(minutes), description="Brewing"):
        time.sleep(60)
"""
PROPERTIES = """import pytest
from hypothesis import given
from hypothesis import strategies as st

from teapot import brew


@given(st.integers(max_value=-1))
def test_nobody_brews_for_less_than_no_time(minutes):
    with pytest.raises(ValueError):
        brew(minutes)
"""
INVOICES = '''"""Invoices, by the rules of the house."""

from decimal import Decimal

import acme_ledger
import requests


def send(invoice):
    total = sum(Decimal(row["price"]) for row in invoice["rows"])
    acme_ledger.book(invoice["number"], total)
    requests.post("https://post.example/invoices", json=invoice, timeout=10)
'''
SERVICE = '''"""The web service: reads orders and stores them."""

from flask import Flask, request
from pydantic import BaseModel

try:
    import orjson as json
except ImportError:
    import json

app = Flask(__name__)


class Order(BaseModel):
    number: int


@app.post("/orders")
def store():
    return Order(**json.loads(request.data)).model_dump()
'''
REPORT = """import numpy as np
import pandas as pd
from jinja2 import Template

from finance.rates import rate


def report(path, template):
    sales = pd.read_csv(path)
    sales["euro"] = np.round(sales["price"] * rate("USD"), 2)
    return Template(template).render(rows=sales.to_dict("records"))
"""
TIME_TEST = "from freezegun import freeze_time\n\n\n@freeze_time('2024-02-29')\ndef test_leap_day():\n    pass\n"


@dataclass(frozen=True)
class _Case(Case):
    """A module, the entries of both groups before and after, and what is to be done."""

    main: Sequence[str]
    dev: Sequence[str]
    add: Sequence[str] = ()
    """Packages for the group that fits the file."""
    move: Mapping[str, str] = field(default_factory=dict)
    """Packages and the group they go to."""
    remove: Sequence[str] = ()
    after: tuple[Sequence[str], Sequence[str]] | None = None
    """Both groups afterwards; None where they are left as they are."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Files that are there besides."""
    dynamic: bool = False


CASES = (
    _Case("dependencies-level", "easy", "weather/client.py", FORECAST, ['"httpx>=0.27",'], ['"pytest>=8",', '"ruff",']),
    _Case("dependencies-forecast", "easy", "forecast.py", FORECAST, ['"click",', '"rich",'], ['"pytest",'],
          add=["httpx"], after=(['"click",', '"httpx",', '"rich",'], ['"pytest",']),
          others={"cli.py": "import click\nimport rich\n"}),
    _Case("dependencies-leftover", "easy", "kitchen/screen.py", SCREEN, ['"rich>=13",', '"toml",'], ['"mypy",'],
          remove=["toml"], after=(['"rich>=13",'], ['"mypy",'])),
    _Case("dependencies-properties", "medium", "tests/test_teapot.py", PROPERTIES, ['"rich",'], ['"pytest>=8",'],
          add=["hypothesis"], after=(['"rich",'], ['"hypothesis",', '"pytest>=8",']),
          others={"teapot.py": SCREEN}),
    _Case("dependencies-album", "medium", "album/thumbnails.py", THUMBNAILS, ['"PyYAML>=6",', '"six",'], ['"ruff",'],
          add=["pillow"], remove=["six"], after=(['"pillow",', '"PyYAML>=6",'], ['"ruff",'])),
    _Case("dependencies-screen", "medium", "teapot/screen.py", SCREEN, ['"click",'], ['"pytest",', '"rich>=13",'],
          move={"rich": "main"}, after=(['"click",', '"rich>=13",'], ['"pytest",']),
          others={"teapot/cli.py": "import click\n"}),
    _Case("dependencies-dynamic", "medium", "dynamo/forecast.py", FORECAST, [], ['"pytest",'], dynamic=True),
    _Case("dependencies-ledger", "hard", "billing/invoices.py", INVOICES, ['"requests",'], []),
    _Case("dependencies-service", "hard", "shop/service.py", SERVICE,
          ['"flask>=3",', '"freezegun",', '"gunicorn",  # the Procfile starts it', '"ujson",'], ['"pytest",'],
          add=["pydantic"], move={"freezegun": "dev"}, remove=["ujson"],
          after=(['"flask>=3",', '"gunicorn",  # the Procfile starts it', '"pydantic",'],
                 ['"freezegun",', '"pytest",']),
          others={"tests/test_time.py": TIME_TEST}),
    _Case("dependencies-report", "hard", "finance/report.py", REPORT, ['"tablib",', '"xlwt",'], ['"jinja2>=3",'],
          add=["numpy", "pandas"], move={"jinja2": "main"}, remove=["tablib", "xlwt"],
          after=(['"jinja2>=3",', '"numpy",', '"pandas",'], []),
          others={"finance/rates.py": "def rate(currency):\n    return 0.9\n"}),
)  # fmt: skip


def dependencies_tasks() -> Iterator[Task]:
    """Every task of the agent."""
    for case in CASES:
        yield _task(case)


def _task(case: _Case) -> Task:
    files = {case.path: case.source, **case.others, PYPROJECT: _pyproject(case, case.main, case.dev)}
    main, dev = case.after or (case.main, case.dev)
    group = "dev" if case.path.startswith("tests/") else "main"
    todo = [call("add_dependency", package=name, group=group) for name in case.add]
    todo += [call("move_dependency", package=name, group=goal) for name, goal in case.move.items()]
    todo += [call("remove_dependency", package=name) for name in case.remove]
    after: dict[str, str | None] = {PYPROJECT: _pyproject(case, main, dev)}
    return made(case.name, case.level, files, case.path, after, [call("check_imports"), todo])


def _pyproject(case: _Case, main: Sequence[str], dev: Sequence[str]) -> str:
    name = case.name.partition("-")[2]
    declared = 'dynamic = ["dependencies"]' if case.dynamic else _array("dependencies", main)
    return (
        f'[project]\nname = "{name}"\nversion = "1.0.0"\n{declared}\n\n'
        f"[dependency-groups]\n{_array('dev', dev)}\n\n[tool.ruff]\nline-length = 100\n"
    )


def _array(key: str, entries: Sequence[str]) -> str:
    return "\n".join([f"{key} = [", *(f"    {entry}" for entry in entries), "]"])
