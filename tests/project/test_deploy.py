"""The compose files start what exists: images that can be built, extras and commands that Remora has."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy").glob("*.yaml"))


def services(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))["services"]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_service_has_an_image_or_can_be_built_and_waits_only_for_services_that_there_are(path: Path) -> None:
    known = {name for each in FILES for name in services(each)}
    for name, service in services(path).items():
        assert ("image" in service) != ("build" in service), name
        assert set(service.get("depends_on", ())) <= known, name
        if build := service.get("build"):
            context = (path.parent / build["context"]).resolve()
            assert context == ROOT and (context / build["dockerfile"]).is_file()


def test_every_volume_that_a_service_keeps_is_declared() -> None:
    declared = {name for path in FILES for name in yaml.safe_load(path.read_text(encoding="utf-8")).get("volumes", {})}
    mounts = (mount for path in FILES for service in services(path).values() for mount in service.get("volumes", ()))
    kept = {mount.partition(":")[0] for mount in mounts if not mount.startswith(("$", "/", "."))}
    assert kept == declared == {"traces", "home"}


def test_a_node_installs_extras_that_there_are() -> None:
    (extras,) = re.findall(r"/source\[([a-z,-]+)\]", (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8"))
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(extras.split(",")) <= set(declared) and "fleet" in extras


def test_the_image_has_the_weights_and_the_library_that_the_embedded_model_needs() -> None:
    """The smallest images of Python have no OpenMP, and a node may have no network."""
    model = pytest.importorskip("xllamacpp", reason="the embedded model is not installed")
    image = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    needs = any(b"libgomp.so.1" in path.read_bytes() for path in Path(model.__file__).parent.glob("*.so"))
    assert "libgomp1" in image or not needs
    assert "RUN remora model pull" in image


def test_the_store_is_made_for_the_roles_that_the_server_has() -> None:
    compose = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    program, *command = shlex.split(services(ROOT / "deploy" / "cluster.yaml")["store"]["command"])
    assert (program, command[:2]) == ("remora", ["store", "init"])
    given = {command[place + 1] for place, word in enumerate(command) if word in ("--writer", "--reader")}
    assert given == set(re.findall(r"CREATE ROLE (\w+)", compose))


def test_the_server_counts_as_healthy_only_when_others_reach_it() -> None:
    """While its image makes the database and the roles, the server answers on its socket only."""
    check = services(ROOT / "deploy" / "compose.yaml")["postgres"]["healthcheck"]["test"]
    assert check[check.index("-h") + 1 if "-h" in check else 0] == "127.0.0.1"
