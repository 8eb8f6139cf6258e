"""What the pages say is run: code blocks, the commands of the first run, and everything that is generated."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import remora
from cli.warm import WarmCommand
from projects import copy_shop
from remora.app import Project
from remora.app._catalogue import CATALOGUE_FILE
from remora.app._settings import USER_CONFIG_FILE
from remora.config import Config
from remora.events import EVENT_TYPES
from remora.validation import parse_yaml, validate

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GOLDEN = ROOT / "tests" / "golden" / "format-1-lint.jsonl"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def run(*argv: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_every_python_block_runs(page: Path, tmp_path: Path) -> None:
    for number, code in enumerate(blocks(page, "python")):
        script = tmp_path / f"block{number}.py"
        script.write_text(code, encoding="utf-8")
        done = run(sys.executable, script, *([GOLDEN] if "sys.argv" in code else []), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_the_reader_of_thirty_lines_refuses_the_edited_stream(tmp_path: Path) -> None:
    (code,) = blocks(ROOT / "docs" / "reference" / "format-1.md", "python")
    (tmp_path / "reader.py").write_text(code, encoding="utf-8")
    good = run(sys.executable, "-I", tmp_path / "reader.py", GOLDEN, cwd=tmp_path)
    assert good.returncode == 0
    assert "agent_end" in good.stdout
    bad = run(sys.executable, "-I", tmp_path / "reader.py", GOLDEN.with_name("refused-edited.jsonl"), cwd=tmp_path)
    assert bad.returncode != 0
    assert len([line for line in code.splitlines() if line.strip()]) <= 36


@pytest.mark.parametrize("guide", ["first-run.md", "read-a-run.md"])
def test_the_commands_of_a_guide_work_as_written(guide: str, tmp_path: Path, warm: WarmCommand) -> None:
    # Part of the example project: an agent for each function of all its files takes long and shows nothing new.
    shop = copy_shop(tmp_path / "shop", "tests", "cart.py", "inventory.py", "orders.py")
    text = (ROOT / "docs" / "guides" / guide).read_text(encoding="utf-8")
    text = text if "    remora analyze . -o lint" in text else f"    remora analyze . -o lint\n{text}"
    commands = [line.strip() for line in re.findall(r"^    (remora .*)$", text, re.MULTILINE)]
    # The reader's own code is not here, and what the embedded model comes to is its own to decide.
    commands = [line for line in commands if "src" not in line and "embedded" not in line]
    assert len(commands) >= 6
    for command in commands:
        argv = command.split()[1:]
        if "AGENT" in argv:
            # The first: the last may build on the others' changes, and is refused before them.
            traces = sorted((shop / ".agentfs" / "traces").glob("*.jsonl"))
            argv[argv.index("AGENT")] = traces[0].stem[-7:]
        done = warm.run(tuple(argv), shop, dict(os.environ), "")
        assert done.returncode == 0, f"{command}: {done.stderr}"


def test_generated_pages_are_up_to_date() -> None:
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    done = run(sys.executable, "-m", "cogapp", "--check", "-U", *pages, cwd=ROOT)
    assert done.returncode == 0, f"{done.stdout}\nRun `make docs`"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    done = run(sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "index.html").exists()


def test_every_event_type_and_every_command_is_documented() -> None:
    events = (ROOT / "docs" / "reference" / "events.md").read_text(encoding="utf-8")
    cli = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert [word for word in EVENT_TYPES if f"`{word}`" not in events] == []
    for command in ("analyze", "diff", "accept", "doctor", "trace ls", "trace show", "trace verify"):
        assert f"## remora {command} " in cli


def test_pages_name_only_files_that_exist() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} names {target}"


def test_pages_name_only_files_of_the_user_that_are_read() -> None:
    named = {
        name
        for page in PAGES
        for name in re.findall(r"~/\.config/remora/([\w.-]+\w)", page.read_text(encoding="utf-8"))
    }
    assert named == {USER_CONFIG_FILE, CATALOGUE_FILE}


def test_the_library_page_has_every_public_method_with_exactly_its_parameters(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "library.md").read_text(encoding="utf-8")
    project = remora.open_project(tmp_path)
    rooms = ("runs", "review", "streams", "escalations", "agents", "hub", "tools", "library")
    classes = [remora.TwoTrack, Project, *(type(getattr(project, room)) for room in rooms)]
    for cls in classes:
        for name, method in inspect.getmembers(cls, lambda each: inspect.isfunction(each) or inspect.ismethod(each)):
            if name.startswith("_"):
                continue
            anchor = f"#{cls.__name__.lower()}-{name.replace('_', '-')} }}"
            assert anchor in page, f"{cls.__name__}.{name}"
            block = page.split(anchor)[1].split("```")[1]
            documented = re.findall(r"[(,\n] *\*{0,2}(\w+)(?=: )", block)
            assert documented == [each for each in inspect.signature(method).parameters if each != "self"], anchor


def test_pages_name_only_methods_of_a_project_that_exist(tmp_path: Path) -> None:
    project = remora.open_project(tmp_path)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for room, name in re.findall(r"\bproject\.([a-z]+)\.([a-z_]+)", text):
            assert hasattr(getattr(project, room), name), f"{page.name} names project.{room}.{name}"


def test_every_settings_block_of_a_page_can_be_used() -> None:
    checked = 0
    for page in PAGES:
        for text in blocks(page, "yaml"):
            values = parse_yaml(text, page)
            if isinstance(values, dict) and set(values) <= set(Config.model_fields) and "mcp" not in values:
                assert validate(Config, values, page)
                checked += 1
    assert checked >= 10
