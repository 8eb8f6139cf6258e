"""The index is as the files are, whatever happened to them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from hub.conftest import FILES, write
from remora.discovery import CodeFiles
from remora.errors import HubError, KVDamaged
from remora.hub import HubClient, index_now
from remora.hub._index import Index
from remora.hub._lock import WriterLock
from remora.kv import KVFile

STABLE = ("updated_at", "stamp")


def rows(state: Path) -> dict[str, bytes]:
    """Everything in the index."""
    kv = KVFile(state / "hub.db", durable=False)
    try:
        return {row.key: row.data for row in kv.scan("")}
    finally:
        kv.close()


def index_of(project: Path, state: Path) -> Index:
    state.mkdir(exist_ok=True)
    return Index(KVFile(state / "hub.db", durable=False), CodeFiles(project, state_dir=state), "index")


def same(project: Path, state: Path, tmp_path: Path) -> bool:
    """Whether the index holds what a fresh one would hold."""
    fresh = tmp_path / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    index_now(project, fresh, [state.name])
    return _plain(rows(state)) == _plain(rows(fresh))


def _plain(found: dict[str, bytes]) -> dict[str, object]:
    import orjson

    plain = {}
    for key, data in found.items():
        value = orjson.loads(data)
        plain[key] = {name: each for name, each in value.items() if name not in (*STABLE, "update_source")}
    return plain


CHANGES = {
    "a file changed": lambda root: write(root, {"shop/stock.py": "def take(): ...\n"}),
    "a file is new": lambda root: write(root, {"shop/deep/er/new.py": "import shop.stock\n"}),
    "a file is gone": lambda root: (root / "shop/stock.py").unlink(),
    "a file was renamed": lambda root: (root / "shop/stock.py").rename(root / "shop/store.py"),
    "a folder was moved": lambda root: (root / "shop").rename(root / "store"),
    "a folder is gone": lambda root: shutil.rmtree(root / "shop"),
    "a file became a folder": lambda root: (
        (root / "shop/stock.py").unlink(),
        write(root, {"shop/stock.py/inner.py": "def f(): ...\n"}),
    ),
    "a file is no text any more": lambda root: (root / "shop/stock.py").write_bytes(b"\xff\xfe"),
    "a file is a link now": lambda root: (
        (root / "shop/stock.py").unlink(),
        (root / "shop/stock.py").symlink_to(root / "shop/cart.py"),
    ),
    "git ignores a folder": lambda root: write(root, {".gitignore": "shop/\n"}),
    "a file is broken": lambda root: write(root, {"shop/stock.py": "def take(:\n  x\nclass A: pass\n"}),
    "two files changed places": lambda root: (
        (root / "shop/stock.py").rename(root / "x"),
        (root / "shop/cart.py").rename(root / "shop/stock.py"),
        (root / "x").rename(root / "shop/cart.py"),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_after_a_sweep_it_equals_a_fresh_index(project: Path, state: Path, tmp_path: Path, change: str) -> None:
    index_now(project, state)
    CHANGES[change](project)
    index_now(project, state)
    assert same(project, state, tmp_path)


@pytest.mark.parametrize("change", [name for name in CHANGES if "git" not in name])
def test_told_paths_are_enough(project: Path, state: Path, tmp_path: Path, change: str) -> None:
    index = index_of(project, state)
    list(index.sweep())
    before = {path.relative_to(project).as_posix() for path in project.rglob("*")}
    CHANGES[change](project)
    after = {path.relative_to(project).as_posix() for path in project.rglob("*")}
    index.touch(sorted(before ^ after | {"shop/stock.py", "shop/cart.py"} & after))
    assert same(project, state, tmp_path)


def test_random_histories_end_in_the_index_of_the_files(project: Path, state: Path, tmp_path: Path) -> None:
    rnd = random.Random(8)
    index = index_of(project, state)
    for _ in range(40):
        touched = set()
        for _ in range(rnd.randrange(1, 4)):
            path = f"{rnd.choice(['shop', 'a', 'a/b'])}/{rnd.choice('xyz')}.py"
            touched.add(path)
            if rnd.random() < 0.3:
                (project / path).unlink(missing_ok=True)
            else:
                write(project, {path: f"from shop import take\n\n\ndef f{rnd.randrange(9)}():\n    take(g())\n"})
        index.touch(touched)
    list(index.sweep())
    assert same(project, state, tmp_path)


def test_only_what_changed_is_read_again(project: Path, state: Path) -> None:
    assert index_now(project, state).changed == len(FILES)
    assert index_now(project, state).changed == 0
    write(project, {"shop/stock.py": FILES["shop/stock.py"] + "\n"})
    assert index_now(project, state).changed == 1


def test_a_change_writes_only_the_records_of_its_file(project: Path, state: Path) -> None:
    index = index_of(project, state)
    list(index.sweep())
    before = rows(state)
    write(project, {"shop/stock.py": FILES["shop/stock.py"].replace("take", "grab")})
    index.touch(["shop/stock.py"])
    after = rows(state)
    changed = {key for key in before | after if before.get(key) != after.get(key)}
    assert all("shop/stock.py" in key for key in changed)


def test_what_is_ignored_is_not_indexed(project: Path, state: Path) -> None:
    write(
        project,
        {
            ".gitignore": "out/\n*.gen.py\n",
            "out/a.py": "",
            "shop/b.gen.py": "",
            ".hidden/c.py": "",
            "env/pyvenv.cfg": "",
            "env/d.py": "",
            "node_modules/e.py": "",
        },
    )
    index = index_of(project, state)
    list(index.sweep())
    bring_up_to_date = rows(state)
    index.touch(["out/a.py", "out", "shop/b.gen.py", ".hidden/c.py", "env/d.py", "node_modules/e.py", ".agentfs"])
    assert rows(state) == bring_up_to_date
    assert sorted(key for key in bring_up_to_date if key.startswith("file:")) == sorted(
        f"file:{path}" for path in FILES
    )


def test_a_second_writer_is_refused(project: Path, state: Path) -> None:
    index_now(project, state)
    lock = WriterLock(state)
    assert lock.take("index", "now")
    try:
        with pytest.raises(HubError, match="writing the index"):
            index_now(project, state)
    finally:
        lock.release()
    index_now(project, state)


async def test_a_damaged_index_is_made_anew(project: Path, state: Path, tmp_path: Path) -> None:
    index_now(project, state)
    (state / "hub.db").write_bytes(b"garbage" * 1000)
    pulled = await HubClient(project, state).pull(["shop/stock.py:take"])
    assert pulled.problem
    assert pulled.facts["shop/stock.py:take"]["raises"] == ["OutOfStock"]
    index_now(project, state)
    assert same(project, state, tmp_path)
    assert (state / "hub.db.damaged").exists()


def test_records_of_an_older_extractor_are_made_again(
    project: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_now(project, state)
    for module in ("_index", "_rows", "_reader"):
        monkeypatch.setattr(f"remora.hub.{module}.EXTRACTOR", 2)
    assert index_now(project, state).changed == len(FILES)
    assert same(project, state, tmp_path)


def test_a_record_of_another_kind_is_damage(project: Path, state: Path) -> None:
    index_now(project, state)
    kv = KVFile(state / "hub.db", durable=False)
    kv.commit({"file:shop/stock.py": b"[]"}, {})
    kv.close()
    with pytest.raises(KVDamaged):
        list(index_of(project, state).sweep())
    assert index_now(project, state).changed == len(FILES)


def test_a_folder_that_is_told_is_looked_into(project: Path, state: Path, tmp_path: Path) -> None:
    index = index_of(project, state)
    list(index.sweep())
    write(project, {"new/a.py": "def f(): ...\n", "new/deep/b.py": ""})
    assert index.touch(["new"]) == 2
    assert same(project, state, tmp_path)
