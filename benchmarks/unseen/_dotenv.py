"""Tasks for `dotenv`: modules that read environment variables, and an .env.example that lists them or does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.making import Case, call, made
from remora_lab.bench.tasks import Task

EXAMPLE = ".env.example"
MAIL = '''"""Sends mail to customers."""

import os

HOST = os.environ.get("SMTP_HOST", "localhost")
PORT = int(os.environ.get("SMTP_PORT", "25"))
'''
LOGIN = '''"""Logs in at the mail server."""

import os

USER = os.environ.get("MAIL_USER", "robot")
PASSWORD = os.environ.get("MAIL_PASSWORD", "changeme")
'''
CACHE = """import os
import time


def fresh(saved_at):
    return time.time() - saved_at < int(os.getenv("CACHE_SECONDS", "300"))
"""
DATABASE = '''"""Where the orders are kept."""

from os import environ

URL = environ["DATABASE_URL"]
POOL = int(environ.get("POOL_SIZE", "5"))
PASSWORD = environ.get("DATABASE_PASSWORD", "postgres")
'''
CONFIG = '''"""Settings of the web shop, read once at the start."""

import os

DEBUG = os.getenv("DEBUG", "0") == "1"
LANGUAGE = os.getenv("SHOP_LANGUAGE", "en")
SESSION_SECRET = os.environ["SESSION_SECRET"]
PAYMENT_TOKEN = os.environ.get("PAYMENT_TOKEN", "test-4242")
'''
REGIONS = """import os


def endpoint(region):
    return os.environ[region.upper() + "_URL"]


def timeout():
    return float(os.environ.get("REGION_TIMEOUT", "30"))
"""
WEATHER = """import os

import requests


def forecast(city):
    query = {"q": city, "key": os.getenv("WEATHER_TOKEN", "demo")}
    return requests.get(os.getenv("WEATHER_URL", "https://weather.example/v2"), params=query, timeout=5).json()
"""


@dataclass(frozen=True)
class _Case(Case):
    """A module, .env.example before and after, and what is to be done."""

    before: str | None
    """None where there is no such file."""
    after: str | None
    add: Sequence[str] = ()
    secret: Sequence[str] = ()
    remove: Sequence[str] = ()
    others: Mapping[str, str] = field(default_factory=dict)
    """Files that are there besides."""


CASES = (
    _Case("dotenv-mail", "easy", "shop/mail.py", MAIL, None, "SMTP_HOST=localhost\nSMTP_PORT=25\n",
          add=["SMTP_HOST", "SMTP_PORT"]),
    _Case("dotenv-instep", "easy", "cache.py", CACHE, "CACHE_SECONDS=60\n", "CACHE_SECONDS=60\n"),
    _Case("dotenv-login", "medium", "mail/login.py", LOGIN, "MAIL_USER=robot\n", "MAIL_PASSWORD=\nMAIL_USER=robot\n",
          secret=["MAIL_PASSWORD"]),
    _Case("dotenv-leftover", "easy", "app/cache.py", CACHE,
          "CACHE_SECONDS=300\n# Until we move away from memcached\nMEMCACHED_HOST=localhost\n", "CACHE_SECONDS=300\n",
          remove=["MEMCACHED_HOST"]),
    _Case("dotenv-renamed", "medium", "orders/database.py", DATABASE, "DB_URL=\nPOOL_SIZE=5\n",
          "DATABASE_PASSWORD=\nDATABASE_URL=\nPOOL_SIZE=5\n", add=["DATABASE_URL"], secret=["DATABASE_PASSWORD"],
          remove=["DB_URL"]),
    _Case("dotenv-shop", "hard", "shop/config.py", CONFIG, "COUPONS=1\nDEBUG=0\nTHEME=dark\n",
          "DEBUG=0\nPAYMENT_TOKEN=\nSESSION_SECRET=\nSHOP_LANGUAGE=en\n", add=["SHOP_LANGUAGE"],
          secret=["SESSION_SECRET", "PAYMENT_TOKEN"], remove=["COUPONS", "THEME"]),
    _Case("dotenv-compose", "medium", "web/login.py", LOGIN,
          "COMPOSE_PROFILE=dev\nMAIL_TLS=yes\nMAIL_USER=robot\n",
          "COMPOSE_PROFILE=dev\nMAIL_PASSWORD=\nMAIL_USER=robot\n",
          secret=["MAIL_PASSWORD"], remove=["MAIL_TLS"],
          others={"compose.yml": "services:\n  web:\n    profiles: [\"${COMPOSE_PROFILE}\"]\n"}),
    _Case("dotenv-worker", "easy", "jobs/cache.py", CACHE, "CACHE_SECONDS=300\nWORKERS=4\n",
          "CACHE_SECONDS=300\nWORKERS=4\n",
          others={"jobs/worker.py": 'import os\n\nCOUNT = int(os.environ["WORKERS"])\n'}),
    _Case("dotenv-weather", "medium", "forecasts/weather.py", WEATHER, "# Copy to .env and fill in\n\nLOG_LEVEL=info\n",
          "# Copy to .env and fill in\n\nLOG_LEVEL=info\nWEATHER_TOKEN=\nWEATHER_URL=https://weather.example/v2\n",
          add=["WEATHER_URL"], secret=["WEATHER_TOKEN"],
          others={"logs.py": 'import os\n\nLEVEL = os.getenv("LOG_LEVEL", "info")\n'}),
    _Case("dotenv-conflict", "hard", "billing/login.py", LOGIN,
          "<<<<<<< HEAD\nMAIL_USER=robot\n=======\nMAIL_USER=postmaster\n>>>>>>> mail\n",
          "<<<<<<< HEAD\nMAIL_USER=robot\n=======\nMAIL_USER=postmaster\n>>>>>>> mail\n"),
    _Case("dotenv-regions", "medium", "regions.py", REGIONS, "EU_URL=https://eu.example\n",
          "EU_URL=https://eu.example\nREGION_TIMEOUT=30\n", add=["REGION_TIMEOUT"],
          others={"deploy.sh": "curl --fail \"$EU_URL/health\"\n"}),
    _Case("dotenv-optional", "hard", "store/settings.py", CONFIG,
          "# DEBUG=1\nPAYMENT_USER=shop\nSESSION_SECRET=\n",
          "# DEBUG=1\nPAYMENT_TOKEN=\nSESSION_SECRET=\nSHOP_LANGUAGE=en\n", add=["SHOP_LANGUAGE"],
          secret=["PAYMENT_TOKEN"], remove=["PAYMENT_USER"]),
)  # fmt: skip


def dotenv_tasks() -> Iterator[Task]:
    """Every task of the agent."""
    for case in CASES:
        yield _task(case)


def _task(case: _Case) -> Task:
    files = {case.path: case.source, **case.others}
    if case.before is not None:
        files[EXAMPLE] = case.before
    todo = [call("add_variable", name=name) for name in case.add]
    todo += [call("add_secret", name=name) for name in case.secret]
    todo += [call("remove_variable", name=name) for name in case.remove]
    return made(case.name, case.level, files, case.path, {EXAMPLE: case.after}, [call("compare_env"), todo])
