"""`python -m benchmarks.hub`: the Hub beside an `ast` pass, and what asking it and changing a file cost."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import shutil
import sysconfig
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.aims import at_least, at_most
from benchmarks.hub_ast import Pass
from benchmarks.measure import business, child, folder, machine, now, peak_rss, say, versions
from remora.discovery import CodeFiles
from remora.hub import HubClient, index_now, start_daemon, stop_daemon
from remora.hub._index import Index
from remora.kv import KVFile

STDLIB = Path(sysconfig.get_paths()["stdlib"])
QUICK_FILES = 40


def copied(tree: Path, files: int | None) -> list[str]:
    """The standard library's files, without what was installed beside it."""
    found = CodeFiles(STDLIB, exclude=["site-packages"]).all()[:files]
    for path in found:
        place = tree / path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(STDLIB / path, place)
    return found


def by_ast(tree: Path, files: list[str]) -> tuple[int, int]:
    """Nodes, and files that it could not read: each file read and taken apart, nothing kept."""
    nodes = failed = 0
    for path in files:
        try:
            nodes += len(Pass((tree / path).read_bytes()).run())
        except (SyntaxError, ValueError, RecursionError):
            failed += 1
    return nodes, failed


def full(tree: Path, files: list[str], chunk: int) -> dict[str, Any]:
    """Seconds for all files by both ways, in turns of some files each: the Hub's with its database written."""
    state = tree / ".agentfs"
    state.mkdir(exist_ok=True)
    index = Index(KVFile(state / "hub.db", durable=False), CodeFiles(tree, state_dir=state), "index")
    took: dict[str, list[float]] = {"hub_wall": [], "hub_cpu": [], "ast_wall": [], "ast_cpu": []}
    nodes = failed = 0
    for round_, start in enumerate(range(0, len(files), chunk)):
        part = files[start : start + chunk]
        for who in ("hub", "ast") if round_ % 2 else ("ast", "hub"):
            gc.collect()
            cpu, wall = time.process_time(), time.perf_counter()
            if who == "hub":
                index.touch(part)
            else:
                found = by_ast(tree, part)
                nodes, failed = nodes + found[0], failed + found[1]
            took[f"{who}_wall"].append(time.perf_counter() - wall)
            took[f"{who}_cpu"].append(time.process_time() - cpu)
    index.close()
    sums = {name: round(sum(times), 2) for name, times in took.items()}
    return {
        "files": len(files),
        "lines": sum((tree / path).read_bytes().count(b"\n") for path in files),
        "ast_nodes": nodes,
        "ast_failed": failed,
        **sums,
        "wall_ratio": round(sums["ast_wall"] / sums["hub_wall"], 2),
        "cpu_ratio": round(sums["ast_cpu"] / sums["hub_cpu"], 2),
        "db_mb": round((state / "hub.db").stat().st_size / 1e6, 1),
    }


def asking(tree: Path, rounds: int) -> dict[str, float]:
    """Milliseconds for the facts of 10 nodes, in ten files, asked again and again; and of another 10 each time."""
    client = HubClient(tree, tree / ".agentfs")
    kv = KVFile(tree / ".agentfs" / "hub.db", durable=False)
    nodes = [row.key.removeprefix("node:") for row in kv.scan("node:")]
    kv.close()
    functions = [node for node in nodes if ":" in node]
    step = max(1, len(functions) // (10 * rounds))
    parts = [functions[round_ * step :: step * rounds][:10] for round_ in range(rounds)]
    cold, warm, cpu = asyncio.run(_asked(client, parts))
    client.close()
    return {
        "nodes": len(nodes),
        "warm_ms": round(median(warm), 2),
        "warm_cpu_ms": round(cpu, 2),
        "warm_p95_ms": round(sorted(warm)[int(len(warm) * 0.95)], 2),
        "first_ms": round(median(cold), 2),
    }


async def _asked(client: HubClient, parts: list[list[str]]) -> tuple[list[float], list[float], float]:
    """Milliseconds of the first time and of later ones, for each part; and the CPU time of a later one, on average."""
    cold = [await _ms(client, part) for part in parts]
    cpu = time.process_time()
    warm = [await _ms(client, part) for part in parts for _ in range(5)]
    return cold, warm, (time.process_time() - cpu) * 1000 / len(warm)


async def _ms(client: HubClient, nodes: list[str]) -> float:
    began = time.perf_counter()
    await client.get_context(nodes)
    return (time.perf_counter() - began) * 1000


def visible(tree: Path, rounds: int) -> dict[str, float]:
    """Milliseconds from a save to the moment when a reader finds it in the index that the daemon writes."""
    state, place = tree / ".agentfs", tree / "watched.py"
    place.write_text("def f(): ...\n")
    start_daemon(tree, state)
    took = []
    try:
        client = HubClient(tree, state)
        for number in range(rounds):
            place.write_text(f"def f():\n    '''{number}'''\n")
            began = time.perf_counter()
            while True:
                found = client.facts(["watched.py:f"])
                if found.freshness == {"watched.py:f": "index"} and found.facts["watched.py:f"]["doc"] == str(number):
                    break
                time.sleep(0.0005)
            took.append((time.perf_counter() - began) * 1000)
            time.sleep(0.05)  # a person saves less often; two saves at once are one change
    finally:
        stop_daemon(state)
    return {"visible_ms": round(median(took), 1), "visible_p95_ms": round(sorted(took)[int(len(took) * 0.95)], 1)}


def change(trees: list[tuple[int, Path]], rounds: int) -> dict[str, Any]:
    """CPU for one changed file, in a small tree and in a large one, by turns."""
    took: dict[int, list[float]] = {size: [] for size, _ in trees}
    open_ = []
    for size, tree in trees:
        state = tree / ".agentfs"
        index = Index(KVFile(state / "hub.db", durable=False), CodeFiles(tree, state_dir=state), "daemon")
        index.touch([])
        list(index.sweep())
        open_.append((size, tree, index))
    source = (STDLIB / "textwrap.py").read_text()
    for number in range(rounds):
        for size, tree, index in open_:
            (tree / "changed.py").write_text(f"{source}\nX = {number}\n")
            began = time.process_time()
            index.touch(["changed.py"])
            took[size].append((time.process_time() - began) * 1000)
    sizes = sorted(took)
    small, large = (median(took[size]) for size in (sizes[0], sizes[-1]))
    return {"files": sizes, "small_ms": round(small, 2), "large_ms": round(large, 2), "ratio": round(large / small, 2)}


def memory(nodes: int) -> dict[str, Any]:
    """Peak memory of a fresh process that indexes so many nodes and then looks at all files again."""
    with folder() as path:
        each = "".join(
            f"def function_{n}(a: int, b) -> int:\n    '''Say {n}.'''\n    return function_{n - 1}(a)\n\n\n"
            for n in range(100)
        )
        for number in range(nodes // 101 + 1):
            place = path / f"package_{number % 50}" / f"module_{number}.py"
            place.parent.mkdir(exist_ok=True)
            place.write_text(each)
        out = child("-m", "benchmarks.hub", "--memory-of", str(path))
    found: dict[str, Any] = json.loads(out)
    return found


def memory_of(tree: Path) -> dict[str, Any]:
    """For the child: index, ask, and say how much memory that took."""
    before = peak_rss()
    index_now(tree, tree / ".agentfs")
    index_now(tree, tree / ".agentfs")
    client = HubClient(tree, tree / ".agentfs")
    asyncio.run(client.get_context([f"package_0/module_0.py:function_{n}" for n in range(10)]))
    kv = KVFile(tree / ".agentfs" / "hub.db", durable=False)
    count = "SELECT count(*) FROM records WHERE key >= ? AND key < ?"
    nodes = kv.read(lambda db: int(db.execute(count, (b"node:", b"node;")).fetchone()[0]), 0)
    kv.close()
    return {"nodes": nodes, "peak_mb": round(peak_rss() / 1e6, 1), "before_mb": round(before / 1e6, 1)}


def judged(rows: dict[str, Any]) -> list[dict[str, Any]]:
    """The aims, and whether they were met."""
    return [
        at_least(
            "full index of the standard library against an `ast` pass, wall", 1.5, [rows["full"]["wall_ratio"]], "×"
        ),
        at_least("the same, CPU", 1.5, [rows["full"]["cpu_ratio"]], "×"),
        at_most("a saved file is visible to a reader, median", 100, [rows["visible"]["visible_ms"]], " ms"),
        at_most("`get_context` of 10 nodes, warm, median", 5, [rows["asking"]["warm_ms"]], " ms"),
        at_most(f"peak memory for {rows['memory']['nodes']:,} nodes", 300, [rows["memory"]["peak_mb"]], " MB"),
        at_most("CPU of one change, largest tree against smallest", 1.25, [rows["change"]["ratio"]], "×"),
    ]


def main() -> None:
    """Measure, judge, keep and show."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hub", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small, to see that it runs")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "hub.json")
    parser.add_argument("--memory-of", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        print(json.dumps(memory_of(options.memory_of)))
        return
    quick, busy = options.quick, business()
    rows: dict[str, Any] = {}
    with folder() as path:
        large, small = path / "large", path / "small"
        say("full index")
        files = copied(large, QUICK_FILES if quick else None)
        rows["full"] = full(large, files, 10 if quick else 100)
        say("asking")
        rows["asking"] = asking(large, 5 if quick else 40)
        say("a saved file")
        rows["visible"] = visible(large, 5 if quick else 60)
        say("a change")
        copied(small, 10)
        index_now(small, small / ".agentfs")
        rows["change"] = change([(10, small), (len(files), large)], 5 if quick else 40)
    say("memory")
    rows["memory"] = memory(2_000 if quick else 100_000)
    results = {"when": now(), "machine": machine(), "versions": versions(), "busy_before": busy, "hub": rows}
    results |= {"aims": judged(rows), "busy_after": business()}
    options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
