"""The bubblewrap command line for a plan. `_jail` applies the rest of the plan inside."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from remora.sandbox._plan import HOME, LOADER, OUT, PACKAGE, encode

SOURCE = "/run/remora-source"
NAMESPACES = ("user", "ipc", "pid", "net", "uts", "cgroup-try")


def launch_in(bwrap: Path, plan: Mapping[str, Any], *, overlay: bool) -> list[str]:
    """Build the command line that runs the plan inside bubblewrap."""
    python = Path(sys.executable).resolve()
    areas = [plan["root"], "/tmp", "/var/tmp", HOME, "/dev/shm", OUT]  # noqa: S108
    inner = {**plan, "mode": "bubblewrap", "view": "overlay" if overlay else "copy", "areas": areas}
    command = [str(python), "-I", "-S", "-c", LOADER, SOURCE, *encode(inner)]
    return [
        str(bwrap),
        *_namespace_args(),
        *_tmpfs_args(plan),
        *_system_args(plan, python),
        *_project_args(plan, overlay=overlay),
        *command,
    ]


def _namespace_args() -> Iterator[str]:
    yield from (f"--unshare-{name}" for name in NAMESPACES)
    yield from ("--uid", "1000", "--gid", "1000", "--die-with-parent", "--new-session", "--as-pid-1")
    yield from ("--proc", "/proc", "--dev", "/dev")


def _system_args(plan: Mapping[str, Any], python: Path) -> Iterator[str]:
    for path, target in plan["links"]:
        yield from ("--symlink", target, path)
    for source, path in plan["read"]:
        yield from ("--ro-bind", source, path)
    for folder in (python.parent, python.parent.parent / "lib"):
        if not folder.is_relative_to("/usr"):
            yield from ("--ro-bind", str(folder), str(folder))
    yield from ("--ro-bind", str(PACKAGE / "_jail"), f"{SOURCE}/_jail")


def _tmpfs_args(plan: Mapping[str, Any]) -> Iterator[str]:
    for path in ("/tmp", "/var/tmp", HOME, "/dev/shm", OUT):  # noqa: S108
        yield from ("--size", str(plan["limits"]["disk"]), "--tmpfs", path)


def _project_args(plan: Mapping[str, Any], *, overlay: bool) -> Iterator[str]:
    root, over = plan["root"], plan["over"]
    if overlay:
        yield from ("--overlay-src", root, "--tmp-overlay", root)
        yield from _hide_args(plan, root)
    else:
        yield from ("--ro-bind", root, f"{SOURCE}/base")
        yield from _hide_args(plan, f"{SOURCE}/base")
        yield from ("--size", str(plan["limits"]["disk"]), "--tmpfs", root)
        for path in plan["inside"]:
            yield from ("--ro-bind", path, path)
    yield from ("--ro-bind", over, f"{SOURCE}/over") if over else ()
    yield from ("--remount-ro", "/")
    yield "--"


def _hide_args(plan: Mapping[str, Any], seen_at: str) -> Iterator[str]:
    for name in plan["hide"]:
        path = Path(plan["root"], name)
        if path.is_dir() and not _has_link(Path(plan["root"]), name):
            yield from ("--size", "4096", "--tmpfs", f"{seen_at}/{name}", "--remount-ro", f"{seen_at}/{name}")
        elif path.is_file() and not _has_link(Path(plan["root"]), name):
            yield from ("--ro-bind", str(PACKAGE / "_jail" / "etc" / "empty"), f"{seen_at}/{name}")


def _has_link(root: Path, name: str) -> bool:
    parts = Path(name).parts
    return any(root.joinpath(*parts[: count + 1]).is_symlink() for count in range(len(parts)))
