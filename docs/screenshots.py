"""Makes the pictures of the viewer in these pages: `make screenshots`, then look at them.

Runs agents without a model on a copy of `examples/shop`, starts `remora view`, and takes pictures with the system's
Chromium.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from remora import app
from remora.view import Server

HERE = Path(__file__).parent
SHOP = HERE.parent / "examples" / "shop"
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ANALYZE = ("analyze", "shop/report.py", "-o", "lint,docstring", "--policy", "first-candidate")


def main() -> None:
    """Make all pictures."""
    found = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if found is None:
        raise SystemExit("error: no Chromium was found\nhint: `make test-browser` installs one where it can")
    with tempfile.TemporaryDirectory() as folder:
        shop = Path(folder) / "shop"
        shutil.copytree(SHOP, shop, ignore=shutil.ignore_patterns(".agentfs", "__pycache__"))
        limit = {"REMORA_RUNNER__MEMORY__PACKET_SIZE_LIMIT": "1600"}
        environment = os.environ | limit | {"REMORA_RUNNER__BY_RULE": "false"}  # every turn has a prompt
        command = [sys.executable, "-m", "remora", *ANALYZE]
        subprocess.run(command, cwd=shop, env=environment, stdout=subprocess.DEVNULL, check=False)
        project = app.open_project(shop)
        agent = next(row.agent_id for row in project.library.agents() if row.node_id.endswith(":daily_report"))
        with serving(project) as server, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
            for name, scheme in (("view", "light"), ("view-dark", "dark")):
                page = browser.new_page(viewport={"width": 1360, "height": 1100}, color_scheme=scheme)
                page.goto(server.url())
                take_pictures(page, server.origin, agent, name)
            browser.close()


def take_pictures(page: Any, origin: str, agent: str, name: str) -> None:
    """Both tracks of one turn; in light also the list, an explanation and the files."""
    page.goto(f"{origin}/a/{agent}?turn=3")
    page.screenshot(path=HERE / "img" / f"{name}.png")
    if name != "view":
        return
    page.click('.why[data-key="lint_errors_remaining"]')
    page.wait_for_selector("#panel[open]")
    page.set_viewport_size({"width": 1360, "height": 720})
    page.screenshot(path=HERE / "img" / "view-explain.png")
    page.goto(f"{origin}/a/{agent}/files")
    page.screenshot(path=HERE / "img" / "view-files.png")


@contextmanager
def serving(project: app.Project) -> Iterator[Server]:
    """The viewer in a thread of its own."""
    server = Server(project)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


if __name__ == "__main__":
    main()
