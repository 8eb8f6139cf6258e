"""A package ready to work on: unpacked, with an environment for its tests; and how its tests end."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from remora.errors import ConfigError, RemoraError
from remora.sandbox import LocalSpawner
from remora_lab.real_packages.pinned import Package, unpack

TESTS_S = 300.0
INSTALL_S = 600.0
ARGV = ["pytest", "-q", "-rfE", "--tb=no", "--no-header", "-p", "no:cacheprovider"]


@dataclass(frozen=True)
class SuiteEnd:
    """How a package's own tests ended."""

    passed: int = 0
    failed: tuple[str, ...] = ()
    problem: str = ""
    """Why they could not be run."""

    def new_failures(self, before: SuiteEnd) -> tuple[str, ...]:
        """Tests that fail now and did not before; the problem itself if they cannot be run any more."""
        if self.problem and not before.problem:
            return (self.problem,)
        return tuple(name for name in self.failed if name not in before.failed)


def prepare(package: Package, archive: Path, into: Path) -> Path:
    """Unpack a package and give it a `.venv` with pytest and what its tests need. Returns its folder."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    root = unpack(archive, into)
    # Inside another project's folder, only a settings file makes this folder a project of its own.
    if not (root / "remora.yaml").exists():
        (root / "remora.yaml").touch()
    venv.create(root / ".venv", with_pip=False)
    python = root / ".venv" / "bin" / "python"
    argv = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "pytest", *package.requires]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    if done.returncode:
        raise ConfigError(f"The tests of `{package.name}` need packages that cannot be installed: {done.stderr[-300:]}")
    (site,) = (root / ".venv").glob("lib/python3.*/site-packages")
    (site / "package_under_test.pth").write_text(f"{(root / package.source).resolve()}\n", encoding="utf-8")
    return root


async def run_suite(root: Path) -> SuiteEnd:
    """Run the package's own tests in the OS sandbox."""
    try:
        done = await LocalSpawner().run(ARGV, cwd=root, limit_s=TESTS_S)
    except RemoraError as error:
        return SuiteEnd(problem=error.message)
    return read_report(done.stdout.decode(errors="replace") + "\n" + done.stderr.decode(errors="replace"))


def read_report(text: str) -> SuiteEnd:
    """How tests ended, from what pytest printed."""
    failed = [name.partition(" - ")[0] for name in re.findall(r"^(?:FAILED|ERROR) (\S[^\n]*)", text, re.MULTILINE)]
    passed = re.findall(r"(\d+) passed", text)
    if not passed and not failed:
        lines = [line for line in text.splitlines() if line.strip()]
        return SuiteEnd(problem=(lines[-1] if lines else "pytest printed nothing")[:200])
    return SuiteEnd(int(passed[-1]) if passed else 0, tuple(dict.fromkeys(failed)))


def suite_with(root: Path, contents: dict[str, bytes | None]) -> SuiteEnd:
    """How the tests end with other contents of some files. The files are as before afterwards."""
    kept = {path: (root / path).read_bytes() if (root / path).exists() else None for path in contents}
    try:
        write_files(root, contents)
        return asyncio.run(run_suite(root))
    finally:
        write_files(root, kept)


def write_files(root: Path, contents: dict[str, bytes | None]) -> None:
    """Write files; None removes one."""
    for path, data in contents.items():
        target = root / path
        if data is None:
            target.unlink(missing_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
