"""What is loaded of an agent is what was digested, byte for byte: nothing added, swapped or linked later is run."""

from __future__ import annotations

import asyncio
import importlib.util
import marshal
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import remora
from remora.app import Project
from remora.errors import ConfigError
from remora.events import ToolResultEvent

DEFINITION = """
name: words
goal: Count the words of {node}
system_prompt: Count them.
tools:
  - {name: count_words, effects: none, python: "counting.py:count_words"}
  - {name: read_note, effects: none}
script: [count_words, read_note, submit_result]
"""
COUNTING = '''
import remora


@remora.tool
def count_words(text: str = "to be"):
    """Count the words of a text."""
    return {"summary": "the trusted code"}
'''
NOTE = '''
"""Read a note."""
from remora.scripts import external
from shared import said


@external
async def read_beside(name: str) -> str: ...


{"summary": said() + " " + await read_beside("note.txt") + " " + await read_beside("sandboxed/run.py")}
'''
SHARED = "def said():\n    return 'the trusted script'\n"
AGENTS = 4
RUN = {"server.server": "scripted", "runner.max_concurrent": 1}


def evil(mark: Path) -> str:
    return f"open({str(mark)!r}, 'w').close()\n" + COUNTING.replace("the trusted code", "other code")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "remora.yaml").touch()
    (root / "a.py").write_text("".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(AGENTS)))
    write_agent(root / "agents" / "words")
    return root


def write_agent(folder: Path, definition: str = DEFINITION) -> None:
    tools = folder / "tools"
    tools.mkdir(parents=True)
    (folder / "subagent.yaml").write_text(definition)
    (folder / "counting.py").write_text(COUNTING)
    (tools / "read_note.pym").write_text(NOTE)
    (tools / "shared.py").write_text(SHARED)
    (tools / "note.txt").write_text("and note")
    (folder / "sandboxed").mkdir()
    (folder / "sandboxed" / "run.py").write_text("and file")


def opened(root: Path, **settings: Any) -> Project:
    return remora.open_project(root, RUN | settings)


def said(app: Project, root: Path) -> list[str]:
    """What the tools of all agents summed up, in order."""
    results = asyncio.run(app.runs.analyze([root / "a.py"], ["words"]))
    assert {result.reason for result in results} == {"submitted"}, results
    events = [event for result in results for event in app.library.events(result.agent_id)]
    return [event.raw["summary"] for event in events if isinstance(event, ToolResultEvent)]


TRUSTED = ["the trusted code", "the trusted script and note and file"] * AGENTS


def test_a_compiled_file_added_after_trust_is_never_run(project: Path, tmp_path: Path) -> None:
    app, folder = opened(project), project / "agents" / "words"
    app.agents.trust(folder)
    data = compile(evil(tmp_path / "ran"), "counting.py", "exec")
    compiled = Path(importlib.util.cache_from_source(str(folder / "counting.py")))
    compiled.parent.mkdir()
    # A compiled file may say of itself that nobody need look at the source.
    compiled.write_bytes(importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(data))
    assert said(app, project) == TRUSTED
    assert not (tmp_path / "ran").exists()


def test_no_compiled_file_is_written_into_an_agent(project: Path) -> None:
    app = opened(project)
    app.agents.trust(project / "agents")
    assert said(app, project) == TRUSTED
    assert not list((project / "agents").rglob("__pycache__"))


def test_an_agents_folder_that_is_named_like_a_cache_is_digested_like_any_other(project: Path) -> None:
    folder = project / "__pycache__" / "x" / "words"
    write_agent(folder)
    (project / "remora.yaml").write_text("agents_dir: __pycache__/x\n")
    app = opened(project)
    app.agents.trust(folder)
    assert said(app, project) == TRUSTED
    (folder / "counting.py").write_text(COUNTING + "# changed\n")
    with pytest.raises(ConfigError, match="needs trust"):
        opened(project).runs.plan([project / "a.py"], ["words"])


@pytest.mark.parametrize(
    "file", ["counting.py", "tools/read_note.pym", "tools/shared.py", "tools/note.txt", "sandboxed/run.py"]
)
def test_a_file_swapped_after_it_was_loaded_changes_nothing_in_the_run(
    project: Path, tmp_path: Path, file: str
) -> None:
    app, path = opened(project), project / "agents" / "words" / file
    app.agents.trust(project / "agents")

    async def swap_after_the_first() -> list[str]:
        plan, agents = app.runs.plan([project / "a.py"], ["words"]), []
        async for result in app.runs.run(plan):
            agents.append(result.agent_id)
            path.write_text(evil(tmp_path / "ran"))
        return agents

    agents = asyncio.run(swap_after_the_first())
    events = [event for agent in agents for event in app.library.events(agent)]
    assert [event.raw["summary"] for event in events if isinstance(event, ToolResultEvent)] == TRUSTED
    assert not (tmp_path / "ran").exists()
    assert not app.agents.is_trusted(app.agents.sources()["words"])


def test_a_trusted_definition_cannot_take_its_code_from_the_folder_of_another(project: Path, tmp_path: Path) -> None:
    write_agent(project / "agents" / "front", DEFINITION)  # its `name` is `words`, as another folder is called
    (project / "agents" / "words" / "counting.py").write_text(evil(tmp_path / "ran"))
    app = opened(project)
    app.agents.trust(project / "agents" / "front")
    with pytest.raises(ConfigError, match=r"\$\.name: `words`: expected `front`"):
        asyncio.run(app.runs.analyze([project / "a.py"], ["front"]))
    assert not (tmp_path / "ran").exists()


def test_modules_of_an_agent_see_each_other_and_only_as_they_were_digested(project: Path) -> None:
    folder = project / "agents" / "words"
    (folder / "lib").mkdir()
    (folder / "lib" / "json.py").write_text("WORD = 'the trusted code'\n")  # named as a module of Python
    text = COUNTING.replace("import remora", "import json, remora\nfrom .lib.json import WORD\nassert json.dumps")
    (folder / "counting.py").write_text(text.replace('"the trusted code"', "WORD"))
    app = opened(project)
    app.agents.trust(folder)
    loaded = app.agents.load(["words"])["words"]
    (folder / "lib" / "json.py").write_text("WORD = 'other code'\n")
    assert app.agents.functions(loaded)["count_words"].function() == {"summary": "the trusted code"}
    assert "lib" not in sys.modules


@pytest.mark.parametrize("word", ["from . import absent", "from .absent import x", "import counting"])
def test_what_the_digest_does_not_cover_cannot_be_imported_from_the_folder(project: Path, word: str) -> None:
    folder = project / "agents" / "words"
    (folder / "counting.py").write_text(f"{word}\n{COUNTING}")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "absent.py").write_text("x = 1\n")
    app = opened(project)
    app.agents.trust(folder)
    with pytest.raises(ConfigError, match=r"ImportError|ModuleNotFoundError"):
        asyncio.run(app.runs.analyze([project / "a.py"], ["words"]))


def test_a_python_tool_gets_its_data_from_what_was_digested(project: Path) -> None:
    folder = project / "agents" / "words"
    (folder / "word.txt").write_text("the trusted code")
    text = COUNTING.replace('"the trusted code"', "pkgutil.get_data(__package__, 'word.txt').decode()")
    (folder / "counting.py").write_text("import pkgutil\n" + text)
    app = opened(project)
    app.agents.trust(folder)
    loaded = app.agents.load(["words"])["words"]
    functions = app.agents.functions(loaded)
    (folder / "word.txt").write_text("other code")
    assert functions["count_words"].function() == {"summary": "the trusted code"}


def test_a_link_a_pipe_or_too_much_in_an_agent_is_refused_and_stops_no_other(project: Path, tmp_path: Path) -> None:
    folder = project / "agents" / "words"
    (tmp_path / "private").write_text("password: hunter2")
    made = {
        "link": lambda file: file.symlink_to(tmp_path / "private"),
        "regular file": lambda file: os.mkfifo(file),
        "bytes": lambda file: file.write_bytes(bytes(17 * 1024 * 1024)),
    }
    for word, make in made.items():
        file = folder / "tools" / "data"
        make(file)
        app = opened(project)
        with pytest.raises(ConfigError, match=word) as caught:
            app.agents.trust(folder)
        assert "hunter2" not in str(caught.value)
        with pytest.raises(ConfigError, match=word):
            app.agents.load(["words"])
        assert "lint" in app.agents.load(["lint"])
        assert "cannot be used" in {row.name: row.description for row in app.agents.describe()}["words"]
        file.unlink()


def test_a_definition_that_is_a_link_is_refused_and_nothing_of_it_is_quoted(project: Path, tmp_path: Path) -> None:
    file = project / "agents" / "words" / "subagent.yaml"
    file.unlink()
    (tmp_path / "private").write_text("hunter2: hunter2\n")
    file.symlink_to(tmp_path / "private")
    with pytest.raises(ConfigError, match="is a link") as caught:
        opened(project).agents.load(["words"])
    assert "hunter2" not in str(caught.value)


def test_names_that_differ_only_in_case_are_refused(project: Path) -> None:
    folder = project / "agents" / "words"
    (folder / "Counting.py").write_text(COUNTING)
    if len(list(folder.glob("*ounting.py"))) == 1:
        pytest.skip("this disk does not tell them apart")
    with pytest.raises(ConfigError, match="differ only in case"):
        opened(project).agents.trust(folder)


@pytest.mark.parametrize("folder", ["../outside", "/outside", "link"])
def test_a_repository_cannot_name_agents_outside_of_it(project: Path, tmp_path: Path, folder: str) -> None:
    outside = tmp_path / "outside"
    write_agent(outside / "words")
    (project / "link").symlink_to(outside)
    named = str(outside) if folder.startswith("/") else folder
    (project / "remora.yaml").write_text(f"agents_dir: {named}\n")
    with pytest.raises(ConfigError, match=r"lies outside the project|inside the project"):
        opened(project).agents.load(["words"])
    (project / "remora.yaml").write_text("")
    app = opened(project, agents_dir=named)
    app.agents.trust(outside / "words")
    assert said(app, project) == TRUSTED


def test_the_projects_own_folder_of_agents_may_not_lead_outside_either(project: Path, tmp_path: Path) -> None:
    (project / "agents").rename(tmp_path / "outside")
    (project / "agents").symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigError, match="lies outside the project"):
        opened(project).agents.load(["words"])


def test_the_list_of_what_is_trusted_is_believed_only_where_nobody_else_can_write_it(
    project: Path, tmp_path: Path
) -> None:
    app, own = opened(project), tmp_path / "own"
    app.agents.trust(project / "agents")
    file = own / "trusted.json"
    assert (file.stat().st_mode & 0o777, own.stat().st_mode & 0o777) == (0o600, 0o700)

    def refused(words: str) -> None:
        for attempt in (lambda: app.agents.load(["words"]), lambda: app.agents.trust(project / "agents")):
            with pytest.raises(ConfigError, match=words):
                attempt()

    file.chmod(0o666)
    refused("others may write")
    file.chmod(0o600)
    own.chmod(0o777)
    refused("others may write")
    own.chmod(0o700)
    file.rename(own / "real.json")
    file.symlink_to(own / "real.json")
    refused("is a link")
    file.unlink()
    (own / "real.json").rename(file)
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
        refused("belongs to")
        os.chown(file, 0, 0)
    assert said(app, project) == TRUSTED


SUMMARIZER = "class Words:\n    def summarize(self, raw):\n        return 'the trusted summary'\n"
SUMMED = DEFINITION.replace("script:", "summarizers: {count_words: 'NAME'}\nscript:")


def summaries(app: Project, root: Path) -> set[str]:
    results = asyncio.run(app.runs.analyze([root / "a.py"], ["words"]))
    events = [event for result in results for event in app.library.events(result.agent_id)]
    found = [event for event in events if isinstance(event, ToolResultEvent) and event.tool == "count_words"]
    return {event.delta.action.summary for event in found if event.delta.action}


def test_a_summarizer_of_the_agents_folder_is_what_was_digested(project: Path, tmp_path: Path) -> None:
    folder = project / "agents" / "words"
    (folder / "subagent.yaml").write_text(SUMMED.replace("NAME", "summing.py:Words"))
    (folder / "summing.py").write_text(SUMMARIZER)
    (folder / "counting.py").write_text(COUNTING.replace('{"summary": "the trusted code"}', '["a", "b"]'))
    app = opened(project)
    with pytest.raises(ConfigError, match="needs trust"):
        app.agents.load(["words"])
    app.agents.trust(folder)
    assert summaries(app, project) == {"the trusted summary"}

    async def swap_after_the_first() -> set[str]:
        agents = []
        async for result in app.runs.run(app.runs.plan([project / "a.py"], ["words"])):
            agents.append(result.agent_id)
            (folder / "summing.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{SUMMARIZER}")
        events = [event for agent in agents for event in app.library.events(agent)]
        found = [event for event in events if isinstance(event, ToolResultEvent) and event.tool == "count_words"]
        return {event.delta.action.summary for event in found if event.delta.action}

    assert asyncio.run(swap_after_the_first()) == {"the trusted summary"}
    assert not (tmp_path / "ran").exists()


def test_a_summarizer_that_lies_in_the_project_is_not_covered_by_trust_and_refused(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(project))
    folder = project / "agents" / "words"
    (folder / "summing.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{SUMMARIZER}")
    definition = SUMMED.replace("NAME", "agents.words.summing:Words")
    (folder / "subagent.yaml").write_text(definition)
    app = opened(project)
    app.agents.trust(folder)
    with pytest.raises(ConfigError, match="lies in the project"):
        app.agents.load(["words"])
    assert not (tmp_path / "ran").exists()
