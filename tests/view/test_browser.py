"""The pages in a real browser: the system's Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from remora import app
from remora.events import AgentEndEvent, AgentStartEvent, BlobRef, FileChange, ToolResultEvent, TurnStartEvent
from remora.trace import FileBlobs
from remora.view import export_agent
from view.hostile import PAYLOADS, end, start, turn
from view.loops import finish

WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""
NAMELESS = """
[...document.querySelectorAll("button, input, a, [role=img], dialog")].filter((each) => {
  const labels = each.labels ? [...each.labels].map((label) => label.textContent).join("") : "";
  const by = document.getElementById(each.getAttribute("aria-labelledby") || "none");
  const told = each.getAttribute("aria-label") || each.textContent || each.title || each.value;
  return !(told || labels || by || each.closest("svg"));
}).map((each) => each.outerHTML)
"""


@pytest.fixture
def page(browser: Any, running: Any) -> Iterator[Any]:
    """A page of the owner's browser that fails at any script error, refused script, dialog or foreign request."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.add_init_script(WATCH)
    opened, problems = context.new_page(), list[str]()
    opened.on("pageerror", lambda error: problems.append(f"error: {error}"))
    opened.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    own = (f"http://127.0.0.1:{running.port}/", "file://")
    opened.on("request", lambda request: None if request.url.startswith(own) else problems.append(request.url))
    opened.goto(running.server.url())
    yield opened
    assert opened.evaluate("window.pwned") is None
    assert opened.evaluate("window.violations") == []
    context.close()
    assert problems == []


def visit(page: Any, running: Any, path: str) -> None:
    page.goto(f"{running.server.origin}{path}")


def test_arrow_keys_mouse_and_slider_move_along_the_turns(page: Any, running: Any, run: Any) -> None:
    visit(page, running, f"/a/{run(turns=6)}")
    assert page.inner_text("#where") == "turn 6 of 6"
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector('.tracks[data-turn="5"]')
    assert page.url.endswith("?turn=5")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector('.tracks[data-turn="1"]')
    page.locator("#timeline a").nth(2).click(force=True)
    page.wait_for_selector('.tracks[data-turn="3"]')
    page.locator("#turn").fill("4")
    page.wait_for_selector('.tracks[data-turn="4"]')
    assert page.inner_text("#where") == "turn 4 of 6"
    page.reload()
    page.wait_for_selector('.tracks[data-turn="4"]')


def test_both_tracks_of_a_turn_stand_side_by_side(page: Any, running: Any, run: Any) -> None:
    visit(page, running, f"/a/{run()}?turn=2")
    short, long = page.inner_text(".short"), page.inner_text(".long")
    assert "ORD-1007 is late by 3 days" in short and "late_order" in short and "of 1,2" in short
    assert "handled order ORD-1000" in long and "handled order ORD-1299" not in short
    boxes = [page.locator(f".{name}").bounding_box() for name in ("short", "long")]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    assert page.locator(".short .is-new").count() > 0


def test_a_click_in_the_packet_leads_to_the_bytes_that_it_came_from(page: Any, running: Any, run: Any) -> None:
    visit(page, running, f"/a/{run()}?turn=2")
    page.click('.why[data-key="days_late"]')
    page.wait_for_selector("#panel[open]")
    panel = page.inner_text("#panel")
    assert "days_late" in panel and "turn 1" in panel and "SKU-11" in panel
    page.click("#panel [data-go]")
    page.wait_for_selector('.tracks[data-turn="1"]')
    assert "find_order" in page.inner_text(".card.flash")


@pytest.mark.parametrize(
    "style", ["account", *(pytest.param(style, marks=pytest.mark.faults) for style in ("json", "markdown"))]
)
def test_a_click_on_raw_output_says_whether_the_model_ever_saw_it(
    page: Any, running: Any, run: Any, style: str
) -> None:
    visit(page, running, f"/a/{run(style)}?turn=2")
    page.locator(".card.result .lines li").nth(0).click()
    page.wait_for_selector("#panel[open]")
    assert page.inner_text("#panel h2") == "Did the model see this?"
    page.keyboard.press("Escape")
    seen, unseen = page.locator(".lines li.seen"), page.locator(".card.result .lines li:not(.seen)")
    for line, word in ((seen, "Yes."), (unseen, "No.")):
        if line.count():
            line.nth(line.count() // 2).click()
            page.wait_for_selector(f'#panel b:text-is("{word}")')
            page.keyboard.press("Escape")
    assert seen.count() or style != "account"
    assert unseen.count()


def test_the_lines_of_an_output_can_be_asked_about_with_the_keyboard(page: Any, running: Any, run: Any) -> None:
    visit(page, running, f"/a/{run()}?turn=2")
    page.locator(".card.result .lines").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector("#panel[open]")
    assert "ORD-1001" in page.inner_text("#panel .quote")


def test_a_live_run_appears_without_a_reload(page: Any, running: Any, write: Any, writing: Any) -> None:
    agent = write(AgentStartEvent(format=1, goal="g"), TurnStartEvent(turn=1))
    visit(page, running, f"/a/{agent}")
    page.evaluate("window.kept = 1")

    async def go_on() -> None:
        async with writing(agent) as add:
            result = ToolResultEvent(call_id="1", tool="look", outcome="success", raw="a fresh result", turn=2)
            await add(TurnStartEvent(turn=2), result)

    async def come_to_an_end() -> None:
        async with writing(agent) as add:
            await add(TurnStartEvent(turn=3), AgentEndEvent(turn=3, verdict="clean"))

    finish(go_on())
    page.wait_for_selector("text=a fresh result")
    assert page.inner_text("#where") == "turn 2 of 2"
    assert page.evaluate("window.kept") == 1
    finish(come_to_an_end())
    page.wait_for_selector("text=verdict clean")
    assert page.inner_text("#where") == "turn 3 of 3"
    visit(page, running, "/")
    write(AgentStartEvent(format=1, goal="another goal"), AgentEndEvent())
    page.wait_for_selector("text=another goal")


@pytest.mark.faults
def test_a_large_output_is_read_by_windows_and_searched(page: Any, running: Any, write: Any, folder: Path) -> None:
    data = "".join(f"line {n} of many that a tool has printed\n" for n in range(30_000)).encode()
    ref = BlobRef(blob=finish(FileBlobs(folder / ".agentfs").put(data)), size=len(data), encoding="utf-8")
    result = ToolResultEvent(call_id="1", tool="t", outcome="success", raw_ref=ref, turn=1)
    visit(page, running, f"/a/{write(AgentStartEvent(format=1), TurnStartEvent(turn=1), result)}")
    assert page.locator(".lines li").count() < 200
    for _ in range(10):
        before = page.get_attribute("[data-more]", "data-more")
        page.click("[data-more]")
        page.wait_for_selector(f'[data-more]:not([data-more="{before}"])')
    assert page.locator(".window").count() == 8
    page.fill("[data-find]", "line 29999 of many")
    page.press("[data-find]", "Enter")
    page.wait_for_selector("mark")
    assert page.inner_text("mark") == "line 29999 of many"


@pytest.mark.faults
def test_no_payload_runs_in_the_browser(page: Any, running: Any, write: Any) -> None:
    texts = [" ".join(PAYLOADS[at : at + 12]) for at in range(0, len(PAYLOADS), 12)]
    change = FileChange(path=texts[0])
    turns = [each for number, text in enumerate(texts, 1) for each in turn(text, number, change)]
    agent = write(start(texts[0]), *turns, end(texts[0]))
    for path in ("/", f"/a/{agent}?turn=1", f"/a/{agent}/files", f"/a/{agent}/ladder", f"/report?id={agent}"):
        visit(page, running, path)
        assert page.evaluate("[window.pwned, window.violations.length]") == [None, 0]
    visit(page, running, f"/a/{agent}?turn=0")
    for number in range(1, len(texts) + 1):
        page.evaluate(f"go({number})")
        page.wait_for_selector(f'.tracks[data-turn="{number}"]')
        if number % 5 == 1:
            page.locator(".why").first.click()
            page.wait_for_selector("#panel[open]")
            page.keyboard.press("Escape")
            page.locator(".card.result .lines li").first.click()
            page.wait_for_selector("#panel[open]")
            page.keyboard.press("Escape")


def test_an_exported_page_needs_no_server_and_no_network(
    page: Any, project: app.Project, run: Any, tmp_path: Path
) -> None:
    done = export_agent(project, run(turns=6), tmp_path / "run.html", max_bytes=5_000_000)
    page.goto(f"file://{done.path}")
    assert page.locator(".tracks:visible").count() == 1
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#where") == "turn 5 of 6"
    assert page.locator(".tracks:visible").get_attribute("data-turn") == "5"
    page.locator('.tracks:visible .why[data-key="days_late"]').click()
    assert page.locator(".tracks:visible").get_attribute("data-turn") == "4"
    assert "find_order" in page.inner_text(".card.flash")


@pytest.mark.faults
def test_every_page_fits_from_400_to_2560_pixels_and_names_what_can_be_used(page: Any, running: Any, run: Any) -> None:
    one, other = run(), run("account")
    page.emulate_media(color_scheme="dark")
    paths = (
        "/",
        f"/a/{one}",
        f"/a/{other}?turn=3",
        f"/a/{one}/files",
        f"/a/{one}/turns",
        "/changes",
        f"/a/{one}/ladder",
        "/search?q=late",
    )
    for path in (*paths, f"/compare?a={one}&b={other}", "/compare", f"/report?id={one}", f"/a/{one}/search?q=late"):
        for width in (400, 2560):
            page.set_viewport_size({"width": width, "height": 900})
            visit(page, running, path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
        assert page.evaluate(NAMELESS) == [], path
        assert page.locator("h1").count() == 1 and page.locator("main").count() == 1


def test_the_theme_can_be_switched_and_stays(page: Any, running: Any) -> None:
    colour: Callable[[], str] = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")  # noqa: E731
    light = colour()
    page.click("[data-theme-switch]")
    dark = colour()
    assert dark != light
    page.reload()
    assert colour() == dark


def test_without_the_token_a_page_of_another_origin_reads_nothing(browser: Any, running: Any, tmp_path: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    assert page.goto(running.server.origin + "/").status == 403
    page.goto(running.server.url())
    (tmp_path / "evil.html").write_text("<p>evil</p>")
    page.goto(f"file://{tmp_path}/evil.html")
    script = f"fetch('{running.server.origin}/', {{credentials: 'include'}}).then((a) => a.text(), () => 'refused')"
    assert page.evaluate(script) == "refused"
    context.close()
