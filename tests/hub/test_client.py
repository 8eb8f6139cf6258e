"""What the Hub says of a node is so in the files, as the one who asks sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hub.conftest import write
from remora.errors import WorkspaceError
from remora.hub import HubClient, NodeState, index_now
from remora.hub._models import NODE_KEY
from remora.kv import KVManager, TypedKVRepository
from remora.workspaces import OverlayWorkspace

TAKE, ADD, PUT = "shop/stock.py:take", "shop/cart.py:Cart.add", "shop/cart.py:Cart.put"


async def test_a_node_knows_its_callers_callees_and_tests_in_other_files(hub: HubClient) -> None:
    take, add = await hub.node(TAKE), await hub.node(ADD)
    assert take is not None and add is not None
    assert take.callers == (ADD, PUT)
    assert take.raises == ("OutOfStock",)
    assert add.callees == (PUT, TAKE)
    assert add.related_tests == ("tests/test_cart.py:test_adding",)
    assert add.callers == ()


async def test_every_field_of_a_node_is_read_from_its_file(project: Path, hub: HubClient) -> None:
    (project / "a.py").write_text(
        "import functools\n\n\n@functools.cache\ndef f(a: int, b, *c) -> int:\n"
        '    """First.\n\n    Second."""\n    if a and b:\n        return g(a)\n    raise KeyError(a)\n'
    )
    state = await hub.node("a.py:f")
    assert state is not None
    shown = state.plain() | {"file_hash": "", "source_hash": "", "updated_at": ""}
    assert len(state.file_hash) == len(state.source_hash) == 64
    assert state.updated_at > "2020"
    assert shown == {
        "node_id": "a.py:f", "path": "a.py", "qualified": "f", "kind": "function", "line": 4, "file_hash": "",
        "source_hash": "", "signature": "def f(a: int, b, *c) -> int", "docstring": "First.", "has_docstring": True,
        "decorators": ["functools.cache"], "imports": [], "calls": ["g", "KeyError"], "raises": ["KeyError"],
        "callees": [], "callers": [], "related_tests": [], "line_count": 8, "complexity": 3, "hint_coverage": 0.5,
        "updated_at": "", "update_source": "reader",
    }  # fmt: skip


async def test_stored_nodes_are_typed_records(project: Path, state: Path, hub: HubClient) -> None:
    async with KVManager(state / "hub.db") as kv:
        stored = await TypedKVRepository[NodeState](kv, NODE_KEY).load(TAKE)
    found = await hub.node(TAKE)
    assert stored is not None and found is not None
    assert stored == found.model_copy(update={"callers": (), "callees": (), "related_tests": ()})
    assert stored.update_source == "index"


async def test_facts_for_the_packet_name_what_lives_elsewhere_and_no_time(hub: HubClient) -> None:
    facts = await hub.get_context([ADD])
    assert facts == {
        ADD: {
            "signature": "def add(self, count)",
            "calls": {PUT: "def put(self, count)", TAKE: "def take(count: int) -> int raises OutOfStock"},
            "tests": ["tests/test_cart.py:test_adding"],
        }
    }
    assert await hub.get_context([ADD]) == facts


async def test_facts_are_small_whatever_the_code_is(project: Path, state: Path) -> None:
    long = "very_long_name_of_a_function_that_goes_on_and_on_" * 3
    text = f"def {long}({', '.join(f'parameter_{n}: int' for n in range(60))}):\n    '''{'doc ' * 500}'''\n"
    calls = "".join(f"def caller_{long}_{n}():\n    {long}()\n\n\n" for n in range(60))
    write(project, {"big.py": text + calls})
    index_now(project, state)
    facts = await HubClient(project, state).get_context([f"big.py:{long}", TAKE])
    assert all(len(str(each)) < 800 for each in facts.values())
    assert list(facts) == [f"big.py:{long}", TAKE]


async def test_a_file_that_changed_after_indexing_is_never_shown_as_it_was(project: Path, hub: HubClient) -> None:
    write(project, {"shop/stock.py": "def take(count: str) -> str:\n    return count\n"})
    pulled = await hub.pull([ADD, TAKE])
    assert pulled.facts[TAKE]["signature"] == "def take(count: str) -> str"
    assert pulled.freshness == {TAKE: "workspace", ADD: "index"}
    assert pulled.facts[ADD]["calls"][TAKE] == "def take(count: str) -> str"
    assert "raises" not in str(pulled.facts)


async def test_a_caller_that_no_longer_calls_is_no_caller(project: Path, hub: HubClient) -> None:
    write(project, {"shop/cart.py": "class Cart:\n    def add(self, count):\n        return count\n"})
    assert "callers" not in (await hub.get_context([TAKE]))[TAKE]


async def test_a_caller_whose_file_is_gone_is_no_caller(project: Path, hub: HubClient) -> None:
    (project / "shop/cart.py").unlink()
    assert "callers" not in (await hub.get_context([TAKE]))[TAKE]


async def test_nodes_that_are_gone_have_no_facts(project: Path, hub: HubClient) -> None:
    write(project, {"shop/stock.py": "def give() -> None: ...\n"})
    (project / "tests/test_cart.py").unlink()
    asked = [TAKE, "tests/test_cart.py:test_adding", "shop/stock.py:give", "no/such.py:f", "shop/cart.py:Nope"]
    assert list(await hub.get_context(asked)) == ["shop/stock.py:give"]


async def test_an_agent_sees_its_own_edits_and_nobody_else_does(project: Path, state: Path, hub: HubClient) -> None:
    workspace = OverlayWorkspace(project, state / "workspaces" / "01AGENT")
    mine = hub.seen_by(workspace)
    await workspace.write("shop/stock.py", b"def take(count, much=False):\n    return count\n")
    await workspace.write("shop/new.py", b"from shop.stock import take\n\n\ndef fetch():\n    return take(1)\n")
    facts = await mine.get_context([TAKE, "shop/new.py:fetch"])
    assert facts[TAKE]["signature"] == "def take(count, much=False)"
    assert facts[TAKE]["callers"] == [ADD, PUT, "shop/new.py:fetch"]
    assert list(await hub.get_context([TAKE, "shop/new.py:fetch"])) == [TAKE]
    assert (await hub.get_context([TAKE]))[TAKE]["raises"] == ["OutOfStock"]


async def test_without_an_index_a_node_is_known_from_its_own_file(project: Path, state: Path) -> None:
    client = HubClient(project, state)
    pulled = await client.pull([ADD])
    assert pulled.facts == {ADD: {"signature": "def add(self, count)", "calls": {PUT: "def put(self, count)"}}}
    assert "no index" in pulled.problem
    assert not await client.health_check()
    assert not state.exists()


async def test_a_hub_with_an_index_is_healthy(hub: HubClient) -> None:
    assert await hub.health_check()


@pytest.mark.parametrize("path", ["../x.py", "/etc/passwd.py", "shop/../../x.py", "", "shop//stock.py", "link/x.py"])
async def test_no_node_leads_outside(project: Path, state: Path, hub: HubClient, path: str) -> None:
    outside = project.parent / "x.py"
    outside.write_text("def secret(): ...\n")
    (project / "link").symlink_to(project.parent)
    assert await hub.get_context([f"{path}:secret"]) == {}
    assert (
        await hub.seen_by(OverlayWorkspace(project, state / "workspaces" / "01A")).get_context([f"{path}:secret"]) == {}
    )


async def test_a_view_that_refuses_gives_no_facts(hub: HubClient) -> None:
    class Closed:
        def look(self, path: str) -> bytes:
            raise WorkspaceError("no")

        def changed(self) -> list[str]:
            return []

    assert await hub.seen_by(Closed()).get_context([TAKE]) == {}


async def test_methods_are_found_by_a_written_type_and_through_modules_that_pass_names_on(
    project: Path, state: Path
) -> None:
    write(
        project,
        {
            "app.py": "from shop import Cart\n\n\ndef fill(cart: Cart, n=1):\n    cart.add(n)\n",
            "shop/__init__.py": "from .stock import take\nfrom .cart import Cart\n",
            "src/lib/__init__.py": "",
            "src/lib/a.py": "def one(): ...\n",
            "src/lib/b.py": "import lib.a as short\n\n\ndef two():\n    short.one()\n",
        },
    )
    index_now(project, state)
    hub = HubClient(project, state)
    add, one = await hub.node(ADD), await hub.node("src/lib/a.py:one")
    assert add is not None and one is not None
    assert add.callers == ("app.py:fill",)
    assert one.callers == ("src/lib/b.py:two",)


async def test_a_module_knows_who_imports_it(hub: HubClient) -> None:
    state = await hub.node("shop/stock.py")
    assert state is not None
    assert state.callers == ("shop/__init__.py", "shop/cart.py")
