"""Reading in a browser: the accessibility tree, by keyboard, without JavaScript, and while a process appends."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from refold.infrastructure.inspector.panels import PANELS
from tests.support.command_line import talk
from tests.support.inspected import Served, follow, open_quiet, served, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from .conftest import OpenPage

pytestmark = pytest.mark.slow
GOLDEN = Path(__file__).parent / "golden"
KEEP = "REFOLD_X_KEEP_PAGES"
"""Variable with which the kept trees are written again: look at the difference before you commit them."""
CHANGING = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "TIME"),
    (r"\b[0-9a-f]{20}\b", "ID"),
    (r"\b[0-9a-f]{8}\b", "ID"),
)
APPEND = """
import sys
from pathlib import Path
from tests.support.inspected import open_quiet, user
with open_quiet(Path(sys.argv[1])) as memory:
    memory.conversation(sys.argv[2]).append([user("A new message. " * 60), user("And more.")])
"""


def tree_of(part: "Locator") -> str:
    """Return the accessibility tree without what differs in each run."""
    tree = part.aria_snapshot()
    for pattern, name in CHANGING:
        tree = re.sub(pattern, name, tree)
    return tree + "\n"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a log with one short conversation."""
    path: Path = tmp_path_factory.mktemp("small") / "agent.db"
    with open_quiet(path) as memory:
        memory.conversation("short").append(talk(2))
        memory.conversation("short").label("A short talk")
    with served(path) as serving:
        yield serving


def judge(name: str, tree: str) -> None:
    """Compare a tree with the kept one."""
    kept = GOLDEN / f"{name}.yaml"
    if os.environ.get(KEEP):
        kept.write_text(tree, "utf-8")
    assert kept.exists(), f"{KEEP}=1 pytest tests/browser/test_reading.py writes {kept.name}"
    assert tree == kept.read_text("utf-8"), f"if it should be so: {KEEP}=1 writes the trees again"


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("conversations", "/"),
        ("search", "/?q=question"),
        ("conversation", "/conversation?id=short"),
        ("message", "/message?id=short&position=1"),
    ],
)
def test_a_page_is_read_aloud_as_before(
    open_page: "OpenPage", small: Served, name: str, address: str
) -> None:
    judge(name, tree_of(open_page(address, small).locator("body")))


@pytest.mark.parametrize("panel", sorted(set(PANELS) - {"timeline"}))
def test_a_panel_is_read_aloud_as_before(open_page: "OpenPage", small: Served, panel: str) -> None:
    page = open_page(f"/conversation?id=short&panel={panel}&q=question", small)
    judge(f"panel_{panel}", tree_of(page.locator("#panel")))


def test_no_tree_is_kept_of_a_panel_that_is_gone() -> None:
    kept = {path.stem.removeprefix("panel_") for path in GOLDEN.glob("panel_*.yaml")}
    assert kept <= set(PANELS)


def focused(page: "Page") -> str:
    """Return name and text of the element that has the focus."""
    script = "() => { const e = document.activeElement; return e.tagName + ' ' + (e.id || e.textContent.trim()); }"
    found: str = page.evaluate(script)
    return found


def press_until(page: "Page", wanted: str, key: str = "Tab") -> None:
    """Press a key until an element has the focus."""
    for _ in range(60):
        page.keyboard.press(key)
        if wanted in focused(page):
            return
    raise AssertionError(f"{wanted!r} is not reached by {key}; last: {focused(page)!r}")


def test_everything_is_reached_by_keyboard(open_page: "OpenPage", small: Served) -> None:
    page = open_page("/", small)
    page.keyboard.press("Tab")
    assert focused(page) == "A Skip to content"
    assert page.get_by_text("Skip to content").bounding_box()["x"] >= 0  # type: ignore[index]
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert focused(page) == "INPUT q"
    page.keyboard.type("question")
    page.keyboard.press("Enter")
    page.locator("#listed .hits li").first.wait_for()
    assert "q=question" in page.url
    press_until(page, "message")
    page.keyboard.press("Enter")
    page.locator("#panel").wait_for()
    at = page.url
    press_until(page, "A to-recall")
    page.keyboard.press("Enter")
    page.locator("#rq").wait_for()
    assert focused(page) == "A to-recall"
    press_until(page, "INPUT rq")
    page.keyboard.type("question")
    page.keyboard.press("Enter")
    page.locator("#panel .hits li").first.wait_for()
    assert "panel=recall" in page.url
    page.go_back()
    wait_until(lambda: page.locator("#panel .hits li").count() == 0)
    page.go_back()
    page.locator("#rq").wait_for(state="detached")
    assert page.url == at
    page.go_back()
    page.locator("#listed .hits li").first.wait_for()
    page.wait_for_load_state()  # before it, htmx does not yet listen for the next step back
    page.go_back()
    page.locator("#listed table").wait_for()
    assert page.url.partition("#")[0] == f"{small.origin}/"


@pytest.mark.parametrize(
    ("address", "link", "shown"),
    [
        ("id=recalled&panel=summaries", "losses", "Facts and values of the messages"),
        ("id=working&panel=health", "verify", "all is well"),
        ("id=working&panel=compare", "compare", "Between them"),
        ("id=working&panel=request", "go-message", "The request at version"),
        ("id=working&panel=request", "to-previous", "The request at version"),
    ],
)
def test_a_part_that_is_loaded_keeps_the_focus_and_the_place(
    open_page: "OpenPage", address: str, link: str, shown: str
) -> None:
    page = open_page(f"/conversation?{address}")
    page.evaluate("scrollTo(0, 200)")
    page.locator(f"#{link}").focus()
    before, place = page.evaluate("location.href"), page.evaluate("scrollY")
    page.keyboard.press("Enter")
    wait_until(lambda: page.evaluate("location.href") != before)
    page.get_by_text(shown).first.wait_for()
    assert page.evaluate("document.activeElement.id") == link
    most = page.evaluate("document.documentElement.scrollHeight - innerHeight")
    assert abs(page.evaluate("scrollY") - min(place, most)) < 5


def test_a_text_unfolds_by_keyboard_and_the_focus_can_be_seen(open_page: "OpenPage") -> None:
    page = open_page("/conversation?id=live&start=0")
    press_until(page, "SUMMARY")
    style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert style != "none"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open") is True


def test_all_is_read_without_javascript(open_page: "OpenPage") -> None:
    page = open_page("/", java_script_enabled=False)
    follow(page.get_by_role("link", name="Hello").first)
    assert page.locator("article").count() > 1
    for title, _ in PANELS.values():
        follow(page.get_by_role("navigation", name="Panels").get_by_role("link", name=title))
        assert (page.locator("#panel").text_content() or "").strip()
    follow(page.get_by_role("link", name="Timeline"))
    follow(page.locator("article a.more").first)
    assert page.get_by_role("heading", level=1).inner_text().startswith("Message")


def test_new_messages_show_while_the_reader_stays_where_they_are(
    open_page: "OpenPage", log: Path
) -> None:
    page = open_page("/conversation?id=live&start=0")
    page.locator("#m4 details summary").click()
    page.evaluate("scrollTo(0, 900)")
    wait_until(lambda: bool(page.evaluate("scrollY > 500")))
    before = page.locator("#pictures").inner_text()
    page.locator("#m4 details summary").focus()
    where = "document.querySelector('#m4').getBoundingClientRect().top"
    place = page.evaluate(where)
    subprocess.run([sys.executable, "-c", APPEND, str(log), "live"], check=True, timeout=60)
    wait_until(lambda: page.locator("#pictures").inner_text() != before, 5)
    # The browser scrolls by what grew above, so that the text stays where it is.
    wait_until(lambda: bool(abs(page.evaluate(where) - place) < 5), 3)
    assert page.evaluate("document.querySelector('#m4 details').open") is True
    assert focused(page).startswith("SUMMARY")


def test_a_version_of_the_past_asks_for_nothing_new(open_page: "OpenPage", log: Path) -> None:
    page = open_page("/conversation?id=live&start=0&at=5")
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("new Promise(done => setTimeout(done, 3000))")
    assert asked == []
