from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from remora.errors import ConfigError
from remora_lab.real_packages.page import END, START, examples, rating_rows, write_page
from remora_lab.real_packages.pinned import Package, fetch, read_pinned, select, unpack
from remora_lab.real_packages.place import SuiteEnd, read_report
from remora_lab.real_packages.results import Offered, RowEnd, read_lines, write_lines


def offered(place: int, rating: str = "merge", package: str = "a", *, unsafe: bool = False) -> Offered:
    return Offered(
        package=package, row="rule", operation="lint", node=f"a.py:f{place}", path="a.py", by="rule", unsafe=unsafe,
        rating=rating, why="because", size=1, diff=f"-{place}\n",
    )  # fmt: skip


END_OF_ROW = RowEnd(package="a", version="1", row="rule", operations=("lint",), tests_before=3, tests_after=3)


def test_the_bundled_packages_are_pinned_by_digest_and_most_are_unseen() -> None:
    packages = read_pinned()
    assert len(packages) == 10
    assert sum(not package.seen for package in packages) >= 5
    with pytest.raises(ConfigError, match="There is no package `nobody`"):
        select(packages, ["nobody"])


def test_results_come_back_and_a_later_run_of_a_row_counts(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    write_lines(file, [offered(1), END_OF_ROW])
    write_lines(file, [offered(2), offered(3, "wrong"), END_OF_ROW])
    changes, ends = read_lines([file])
    assert [change.node for change in changes] == ["a.py:f2", "a.py:f3"]
    assert ends == [END_OF_ROW]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("[]\n")
    with pytest.raises(ConfigError, match="line 1 is not a result"):
        read_lines([tmp_path / "r.jsonl"])


def test_unsafe_changes_have_a_row_of_their_own() -> None:
    rows = rating_rows([offered(1), offered(2, "useless"), offered(3, "wrong", unsafe=True)])
    assert rows == [
        ("rule", "lint", "bulk accept", "2", "1", "1", "0", "50%"),
        ("rule", "lint", "marked unsafe", "1", "0", "0", "1", "0%"),
    ]


def test_figures_replace_only_what_is_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "packages.md"
    page.write_text(f"# Mine\n{START}\nold\n{END}\nRead by a person.\n")
    write_page(page, [offered(1)], [END_OF_ROW])
    text = page.read_text()
    assert text.startswith("# Mine\n")
    assert text.endswith("Read by a person.\n")
    assert "old" not in text
    assert "| rule | lint | bulk accept | 1 | 1 | 0 | 0 | 100% |" in text
    page.write_text("no marks")
    with pytest.raises(ConfigError, match="has no place for figures"):
        write_page(page, [], [])


def test_examples_are_spread_over_packages_and_do_not_depend_on_the_rating() -> None:
    changes = [offered(place, package="a") for place in range(9)] + [offered(9, package="b")]
    worse = [change.model_copy(update={"rating": "wrong"}) for change in changes]
    assert {change.package for change in examples(changes, 2)} == {"a", "b"}
    assert [change.node for change in examples(changes, 5)] == [change.node for change in examples(worse, 5)]


def test_what_pytest_printed_is_read() -> None:
    end = read_report("FAILED tests/test_a.py::test_x - assert 1\n1 failed, 4 passed in 0.1s\n")
    assert end == SuiteEnd(4, ("tests/test_a.py::test_x",))
    assert end.new_failures(SuiteEnd(5)) == ("tests/test_a.py::test_x",)
    assert read_report("ImportError: no module\n").problem == "ImportError: no module"


def archive(tmp_path: Path, name: str = "tiny-1.0.tar.gz") -> Package:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        info = tarfile.TarInfo("tiny-1.0/tiny.py")
        info.size = 6
        tar.addfile(info, io.BytesIO(b"x = 1\n"))
    folder = tmp_path / "index" / "tiny"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(data.getvalue())
    (folder / "index.html").write_text(f'<a href="{name}#sha256=1">{name}</a>')
    return Package(name="tiny", file=name, sha256=hashlib.sha256(data.getvalue()).hexdigest(), code=("tiny.py",))


def test_a_file_is_used_only_if_it_is_the_pinned_one(tmp_path: Path) -> None:
    package = archive(tmp_path)
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / package.file).write_bytes(b"another file")
    with pytest.raises(ConfigError, match="is not the pinned file"):
        fetch(package, cache)
    (cache / package.file).write_bytes((tmp_path / "index" / "tiny" / package.file).read_bytes())
    root = unpack(fetch(package, cache), tmp_path / "work")
    assert (root / "tiny.py").read_bytes() == b"x = 1\n"
    assert package.version == "1.0"


def test_a_registry_that_is_not_there_is_an_error_with_a_hint(tmp_path: Path) -> None:
    package = archive(tmp_path)
    with pytest.raises(ConfigError, match="cannot be fetched") as error:
        fetch(package, tmp_path / "cache", (tmp_path / "nowhere").as_uri())
    assert "--index" in str(error.value.hint)
