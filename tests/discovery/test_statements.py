"""A statement of a document is called false only if the code proves it, and corrected only if one answer is right."""

from __future__ import annotations

import pytest

from remora.discovery import PythonCode

CODE = {
    "pkg/__init__.py": "from pkg.cart import total_price\n",
    "pkg/cart.py": "def total_price(items, discount=0):\n    return items\n\n\n"
    "class Cart:\n    def __init__(self, owner):\n        self.owner = owner\n",
    "pyproject.toml": '[project]\nrequires-python = ">=3.10"\n',
}


def checked(document: str, path: str = "pkg/cart.py", name: str = "README.md") -> tuple[list[str], str]:
    files = {**CODE, name: document}
    answer = PythonCode().proven("statements", {one: text.encode() for one, text in files.items()}, path, ())
    return [one["what"] for one in answer["findings"]], answer["files"].get(name, document)


def fenced(code: str) -> str:
    return f"# Use\n\n```python\n{code}```\n"


def test_a_misspelled_import_is_corrected() -> None:
    found, text = checked(fenced("from pkg.cart import total_pirce\n"))
    assert found == ["README.md imports `total_pirce` from `pkg.cart`, which has no such name"]
    assert text == fenced("from pkg.cart import total_price\n")


@pytest.mark.parametrize(
    ("name", "is_slip"),
    [
        ("totalPrice", True),
        ("total_prce", True),
        ("total_proce", True),
        ("totaal_price", True),
        ("total_prices", False),  # perhaps another function, for several
        ("otal_price", False),
        ("total_rice", True),
        ("total_pr1ce", False),
        ("total_prize", False),
        ("sub_total_price", False),
        ("total", False),
    ],
)
def test_a_name_that_is_only_like_another_is_reported(name: str, is_slip: bool) -> None:
    document = fenced(f"from pkg.cart import {name}\n")
    found, text = checked(document)
    assert len(found) == 1
    assert (text == fenced("from pkg.cart import total_price\n")) is is_slip
    assert (text == document) is not is_slip


def test_an_import_that_can_mean_nothing_is_only_reported() -> None:
    document = fenced("from pkg.cart import checkout\n")
    found, text = checked(document)
    assert len(found) == 1
    assert text == document


def test_a_misspelled_parameter_is_corrected() -> None:
    found, text = checked(fenced("from pkg.cart import total_price\n\ntotal_price([], dicsount=3)\n"))
    assert found == ["README.md calls `total_price` with `dicsount=`, which is no parameter"]
    assert "total_price([], discount=3)" in text


def test_prompts_and_directives_are_read_too() -> None:
    assert len(checked(">>> from pkg.cart import Carts\n")[0]) == 1
    assert len(checked(".. code-block:: python\n\n    from pkg.cart import Carts\n", name="docs/a.rst")[0]) == 1


@pytest.mark.parametrize(
    "document",
    [
        fenced("from pkg.cart import total_price, Cart\n\ntotal_price([], discount=1)\nCart(owner='x')\n"),
        fenced("from pkg import cart, total_price\n"),
        fenced("from other.cart import total_prices\n"),
        "Old versions had `from pkg.cart import total_prices`.\n",
        "```text\nfrom pkg.cart import total_prices\n```\n",
        "```python\nfrom pkg.cart import (\n```\n",
    ],
)
def test_what_is_true_or_no_code_is_left(document: str) -> None:
    for path in ("pkg/cart.py", "pkg/__init__.py"):
        assert checked(document, path) == ([], document)


@pytest.mark.parametrize("name", ["CHANGELOG.md", "docs/porting_from_2.md"])
def test_history_is_not_false(name: str) -> None:
    document = fenced("from pkg.cart import total_prices\n")
    assert checked(document, name=name) == ([], document)


@pytest.mark.parametrize("document", ["Python 3.6+\n===========\n\nWorks.\n", "# Requires Python 3.6+\n\nText.\n"])
def test_a_heading_is_a_name_and_no_claim(document: str) -> None:
    assert checked(document, "pkg/__init__.py") == ([], document)


@pytest.mark.parametrize(
    ("line", "now"),
    [
        ("Requires Python 3.8+.\n", "Requires Python 3.10+.\n"),
        ("It works on Python 3.8 or newer.\n", "It works on Python 3.10 or newer.\n"),
        ("- Python >= 3.8 or later\n", "- Python >= 3.10 or later\n"),
        ("Pkg requires at least Python 3.8. Have fun.\n", "Pkg requires at least Python 3.10. Have fun.\n"),
        ("Requires Python >= 3.8.\n", "Requires Python >= 3.10.\n"),
        ("- Compatible with Python 2.7 and greater\n", "- Compatible with Python 3.10 and greater\n"),
        ("Requires Python >= 3.8, < 4.\n", "Requires Python >= 3.8, < 4.\n"),
        ("Requires Python >= 3.8.1.\n", "Requires Python >= 3.8.1.\n"),
        ("Supports Python 2.7 and Python 3.8+.\n", "Supports Python 2.7 and Python 3.8+.\n"),
        ("Requires Python 3.10+.\n", "Requires Python 3.10+.\n"),
        ("Requires Python 3.11+.\n", "Requires Python 3.11+.\n"),
        ("Version 2.1 supports Python 3.8+.\n", "Version 2.1 supports Python 3.8+.\n"),
        ("It no longer supports Python 3.8+.\n", "It no longer supports Python 3.8+.\n"),
        ("It supports coroutines in Python 3.8 and above.\n", "It supports coroutines in Python 3.8 and above.\n"),
        ("Tested on and supports CPython 3.8+\n", "Tested on and supports CPython 3.8+\n"),
        ("It is officially supported on Python 3.8+\n", "It is officially supported on Python 3.10+\n"),
        ("With Python 3.8+ you can use `:=`.\n", "With Python 3.8+ you can use `:=`.\n"),
        ("It is the module that comes with\nPython 3.8+.\n", "It is the module that comes with\nPython 3.8+.\n"),
        ("`other` requires Python 3.8+.\n", "`other` requires Python 3.8+.\n"),
        ("Since NumPy needs Python 3.8+, so do we.\n", "Since NumPy needs Python 3.8+, so do we.\n"),
        ("You need:\n\n- Python 3.8+\n", "You need:\n\n- Python 3.10+\n"),
    ],
)
def test_the_oldest_python_is_that_of_the_settings(line: str, now: str) -> None:
    assert checked(line, "pkg/__init__.py")[1] == now
    assert checked(line, "pkg/cart.py")[1] == line, "it belongs to the first file of the package"


@pytest.mark.parametrize(
    "above",
    [
        "3.0.0\n  Drop old versions. The library now\n",
        "## 3.0 (2020-01-01)\n\n- It got faster.\n",
        "# Changelog\n\n",
        "Version History\n---------------\n\n",
        "Upgrade Guide\n-------------\n\nTo 9.0\n^^^^^^\n\nText.\n\nRequirements\n~~~~~~~~~~~~\n\n",
        "# Upgrading\n\n## To 9\n\n### Notes\n\n## Requirements\n\n",
    ],
)
def test_what_a_version_of_the_past_needed_stays(above: str) -> None:
    assert checked(f"{above}  requires Python 3.6+.\n", "pkg/__init__.py")[0] == []
    assert len(checked(f"{above}# Install\n\nrequires Python 3.6+.\n", "pkg/__init__.py")[0]) == 1


@pytest.mark.parametrize(
    ("name", "is_about_today"),
    [
        ("README.rst", True),
        ("docs/source/index.rst", True),
        ("docs/installation.md", True),
        ("INSTALL.txt", True),
        ("docs/topics/async.rst", False),
        ("examples/web/README.md", False),
        ("CONTRIBUTING.md", False),
    ],
)
def test_only_documents_about_the_project_as_it_is_say_what_it_needs(name: str, is_about_today: bool) -> None:
    assert (checked("It requires Python 3.8+.\n", "pkg/__init__.py", name)[0] != []) is is_about_today


def test_a_link_to_a_file_that_moved_is_corrected() -> None:
    assert checked("See [the cart](cart.py).\n", "pkg/__init__.py")[1] == "See [the cart](pkg/cart.py).\n"
    elsewhere = "See [the cart](src/cart.py).\n"
    assert checked(elsewhere, "pkg/__init__.py") == (
        ["README.md links to `src/cart.py`, which does not exist"],
        elsewhere,
    )
    example = "See [the cart](examples/cart.py).\n"
    assert checked(example, "pkg/__init__.py") == ([], example)
    assert checked("See [it](nowhere.md) and [that](https://a.b/c.py).\n", "pkg/__init__.py")[0] == []


@pytest.mark.parametrize("part", [" ", "[", "[](a.b", "[a](b.c", "- Python 3.7+\n"])
def test_a_document_of_nothing_but_beginnings_is_read_once(part: str) -> None:
    checked(part * (200_000 // len(part)), "pkg/__init__.py")  # a slower search would take hours
