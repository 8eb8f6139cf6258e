"""Environments with one framework each, made from the package registry when a test first needs them.

They are kept in the user's cache, by the requirements that they were made from, for later sessions.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

FRAMEWORKS = {
    "pydantic_ai": ("pydantic-ai-slim==2.66.*",),
    "langchain": ("langchain==1.4.*",),
    "openai_agents": ("openai-agents==0.24.*",),
    "smolagents": ("smolagents==1.26.*",),
}
TOOLS = {
    "otel": ("opentelemetry-sdk>=1.30", "opentelemetry-proto>=1.30"),
    "phoenix": ("arize-phoenix==20.26.*",),
    "mlflow": ("mlflow==3.17.*",),
}
"""What else is tested in an environment of its own."""
EXAMPLES = {
    "rag": (*FRAMEWORKS["pydantic_ai"], "openai>=3", "logfire[asyncpg,httpx]>=4", "asyncpg>=0.31", "httpx>=0.28"),
    "sql_agent": (*FRAMEWORKS["langchain"], "langchain-community>=0.4"),
    "customer_service": (*FRAMEWORKS["openai_agents"], "hatchling>=1.27"),
    "text_to_sql": FRAMEWORKS["smolagents"],
}
"""What the examples of `benchmarks.frameworks` need."""
ALONE = {"rag": ("pydantic-ai-examples==2.62.*",)}
"""Packages of which an example needs only a module, and none of the dependencies."""
BASE = ("orjson>=3.10", "pydantic>=2.10,<3")


def python_with(framework: str) -> Path:
    """The Python of an environment with this framework. Skips the test if there is none and no registry to make it."""
    requirements, alone = (*(FRAMEWORKS | TOOLS | EXAMPLES)[framework], *BASE), ALONE.get(framework, ())
    key = hashlib.sha256(repr((requirements + alone, sys.version_info[:2])).encode()).hexdigest()[:12]
    home = Path(os.environ.get("REMORA_FRAMEWORKS") or Path.home() / ".cache" / "remora-frameworks")
    folder = home / f"{framework}-{key}"
    if not (folder / "made").exists():
        home.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        for wanted in (requirements, ("--no-deps", *alone) if alone else ()):
            done = subprocess.run([*install, *wanted], check=False, capture_output=True, text=True)
            if wanted and done.returncode:
                pytest.skip(f"{framework} cannot be installed here: {done.stderr[-300:]}")
        (folder / "made").touch()
    return folder / "bin" / "python"
