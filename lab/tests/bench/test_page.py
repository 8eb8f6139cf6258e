"""The page: made from stored results alone, and always as they say."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.test_results import head, result
from remora.errors import ConfigError
from remora_lab.bench.charts import MARKS, Bar, Point, dots
from remora_lab.bench.page import BEGIN, PAGE, page_files
from remora_lab.bench.results import Stored, read_results
from remora_lab.bench.summary import summarize
from remora_lab.marks import END

ROOT = Path(__file__).parents[3]
STORED = ROOT / "benchmarks" / "results" / "tasks.jsonl"
FOLDER = ROOT / "docs" / "benchmarks"
EMPTY = f"# Tasks\n\n{BEGIN}\n{END}\n\nWords.\n"


def some() -> Stored:
    rows = [("first-candidate", "", 6), ("random", "", 2), ("embedded", "SmolLM2-135M", 3), ("server", "<b>|x", 10)]
    made = [
        result(f"t{n}", row=row, model=model, solved=n < good, turns=3, asked=3, right_tools=2, prompt_tokens=1500)
        for row, model, good in rows
        for n in range(10)
    ]
    made += [result(f"t{n}", row="random", control="planted", seed=s, solved=n < s) for n in range(10) for s in (0, 1)]
    return Stored((head(),), tuple(made))


def test_the_page_of_the_docs_is_what_the_stored_results_say() -> None:
    if not STORED.exists():
        pytest.skip("no results are stored yet")
    made = page_files(read_results([STORED]), (FOLDER / PAGE).read_text(encoding="utf-8"))
    for name, text in made.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, (
            f"run `remora bench report {STORED} --page {FOLDER}`"
        )


def test_rows_controls_and_who_is_better_are_told() -> None:
    page = page_files(some(), EMPTY)[PAGE]
    assert "| no model: first candidate | 10 × 1 | 60% (31–83) | 67% (67–67) |" in page
    assert "| no model: random candidate | 20% (6–51) | 5% (1–34) |" in page  # as shipped, planted
    assert "embedded base model, two tracks beside no model: first candidate: -30 points" in page
    assert page.endswith("Words.\n")
    assert page_files(some(), page)[PAGE] == page


def test_a_row_that_is_no_better_is_told_so() -> None:
    alike = [result(f"t{n}", row=row, solved=n % 2 == 0) for row in ("first-candidate", "embedded") for n in range(10)]
    (found,) = summarize(alike).comparisons
    assert found.points == (0.0, 0.0, 0.0)
    assert "no difference that these tasks show" in page_files(Stored((head(),), tuple(alike)), EMPTY)[PAGE]


def test_charts_are_whole_and_hold_no_markup_from_outside() -> None:
    made = page_files(some(), EMPTY)
    charts = {name: text for name, text in made.items() if name.endswith(".svg")}
    assert set(charts) == {"tasks-solved.svg", "tasks-tokens.svg", "tasks-controls.svg"}
    for text in charts.values():
        ElementTree.fromstring(text)  # noqa: S314 - our own
        assert "<b>" not in text
        assert "prefers-color-scheme: dark" in text


def test_a_page_without_a_place_for_figures_is_refused() -> None:
    with pytest.raises(ConfigError, match="no place for figures"):
        page_files(some(), "# Tasks\n")


def test_marks_of_one_line_do_not_cover_each_other() -> None:
    bars = [Bar("one", [Point(50, 40, 60, mark) for mark in MARKS]), Bar("other", [Point(50, 40, 60)])]
    drawn = dots("Solved", bars, top=100, legend=MARKS)
    heights = [float(y) for y in re.findall(r'class="range"[^>]* y1="([\d.]+)"', drawn)]
    assert len(heights) == len(MARKS) + 1
    assert min(later - sooner for sooner, later in itertools.pairwise(heights)) >= 10
    assert max(heights) + 5 < min(float(y) for y in re.findall(r'class="grid"[^>]* y2="([\d.]+)"', drawn))
