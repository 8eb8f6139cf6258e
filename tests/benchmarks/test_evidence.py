"""The evidence benchmark: its page shows the stored results, and a framework's row needs nothing of Remora's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *argv], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def test_the_page_and_the_plot_show_the_stored_results() -> None:
    code = (
        "import json; from benchmarks.evidence.page import PAGE, PLOT, RESULTS, draw, filled\n"
        "results, page = json.loads(RESULTS.read_text()), PAGE.read_text()\n"
        "print(filled(page, results) == page, draw(results) == PLOT.read_text())"
    )
    done = run("-c", code)
    assert done.stdout.strip() == "True True", f"{done.stderr}\nRun `python -m benchmarks.evidence.page`"


def test_the_plot_is_valid_and_names_every_memory() -> None:
    plot = ElementTree.parse(ROOT / "docs" / "benchmarks" / "evidence.svg")  # noqa: S314 - our own file
    shown = {element.text for element in plot.iter() if element.tag.endswith("text")}
    results = json.loads((ROOT / "benchmarks" / "results" / "evidence.json").read_bytes())
    assert {row["memory"] for row in results["rows"]} - shown == {"task only"}


def test_plain_rows_are_measured_and_one_row_can_be_measured_again(tmp_path: Path) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "book", "arguments": '{"room": "R-77312"}'}}
    messages = [{"role": "user", "content": "Room R-77312"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "log.jsonl").write_text(json.dumps({"messages": messages}) + "\n", encoding="utf-8")
    out = tmp_path / "results.json"
    options = ("--data", str(tmp_path / "desk"), "--budgets", "500", "--plain", "--out", str(out))
    assert run("-m", "benchmarks.evidence", *options).returncode == 0
    first = json.loads(out.read_bytes())["rows"]
    assert {row["recall"] for row in first} == {1.0}
    assert run("-m", "benchmarks.evidence", *options, "--only", "remora").returncode == 0
    assert [row["memory"] for row in json.loads(out.read_bytes())["rows"]] == [row["memory"] for row in first]
