"""Every page fits into its window, can be read by everybody, and has the badges that its messages have earned."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args
from urllib.parse import urlencode

import pytest

from refold.application.projections.fates import Fate
from refold.infrastructure.inspector.message_views import message_views
from refold.infrastructure.inspector.panels import PANELS
from refold.infrastructure.inspector.reader import timeline_page
from tests.support.inspected import open_quiet, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from .conftest import OpenPage

pytestmark = pytest.mark.slow
THREADS = ("working", "hostile")
WINDOWS: tuple[tuple[int, Literal["light", "dark"]], ...] = ((1280, "dark"), (400, "light"))
TOO_WIDE = """() => {
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide <= 0) return [];
  return [...document.querySelectorAll('body *')]
    .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map(e => `${e.tagName}.${e.getAttribute('class')} ${e.textContent.slice(0, 40)}`).slice(0, 5);
}"""


def pages() -> Iterator[str]:
    """Addresses of all pages of conversations, and of those about none."""
    yield from ("/", "/?q=module")
    for thread in THREADS:
        yield f"/message?id={thread}&position=3"
        for panel in PANELS:
            more = (
                {"q": "module"} if panel == "recall" else {"check": 1} if panel == "health" else {}
            )
            yield f"/conversation?{urlencode({'id': thread, 'panel': panel, **more})}"
    yield "/conversation?id=working&panel=timeline&at=6"
    yield "/conversation?id=split&panel=summaries"


@pytest.mark.parametrize("address", list(pages()))
def test_a_page_fits_and_has_no_fault_of_accessibility(open_page: "OpenPage", address: str) -> None:
    page = open_page(address)
    for width, scheme in WINDOWS:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(TOO_WIDE) == [], width
        assert faults(page) == [], (width, scheme)


def faults(page: "Page") -> list[str]:
    """Return what axe finds in a page, each with its first places."""
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run()")
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:150] for node in one['nodes'][:3]]}"
        for one in found["violations"]
    ]


def test_the_judge_of_accessibility_finds_a_fault(page: "Page") -> None:
    page.evaluate("document.querySelector('label').remove()")
    page.evaluate("document.documentElement.removeAttribute('lang')")
    assert len(faults(page)) >= 2


def test_only_what_a_reader_clicked_is_dimmed_while_it_loads(open_page: "OpenPage") -> None:
    """The pictures ask for news by themselves; their text stays as dark as it is."""
    page = open_page("/conversation?id=working")
    page.evaluate(
        "htmx.findAll('#pictures, .travel form').forEach(e => e.classList.add('htmx-request'))"
    )
    dimmed = "all => all.map(e => getComputedStyle(e).opacity)"
    assert page.locator("#pictures.htmx-request").evaluate_all(dimmed) == ["1"]
    assert set(page.locator(".travel form.htmx-request").evaluate_all(dimmed)) == {"0.6"}


def test_a_page_that_is_too_wide_is_found(page: "Page") -> None:
    page.evaluate("document.querySelector('h1').innerHTML = 'x'.repeat(999)")
    page.evaluate("document.querySelector('h1').setAttribute('class', 't')")
    assert page.evaluate(TOO_WIDE)


def test_each_badge_is_on_a_message_that_has_it(open_page: "OpenPage", log: Path) -> None:
    seen = set[str]()
    with open_quiet(log) as memory:
        for thread in ("working", "split", "recalled"):
            conversation = memory.conversation(thread)
            found = timeline_page(conversation, conversation.row().messages, 0, 200, None)  # type: ignore[union-attr]
            views = message_views(found.messages, found.fates, budget=100_000)
            page = open_page(f"/conversation?id={thread}&start=0")
            for view in views:
                shown = page.locator(f"#m{view.position} .badge").all_text_contents()
                assert shown == [badge.word for badge in view.badges], view.position
                seen |= {view.fate, *(["thinking"] if "thinking left out" in shown else [])}
                seen |= {"recalled"} if "recall added lines" in shown else set()
    assert seen >= {*get_args(Fate), "thinking", "recalled"} - {"omitted"}


def test_a_summary_ends_before_a_message_that_says_so(open_page: "OpenPage") -> None:
    page = open_page("/conversation?id=split&start=0")
    line = page.locator(".cut")
    assert line.count() == 1
    assert "split turn" in line.inner_text()
    line.get_by_role("link").click()
    summary = page.locator("tr:target")
    summary.wait_for()
    assert "split turn" in summary.inner_text()


def test_a_long_output_is_folded_and_unfolds(open_page: "OpenPage") -> None:
    page = open_page("/conversation?id=working&start=0")
    folded = page.locator("article details").first
    hidden = folded.locator("pre")
    assert not hidden.is_visible()
    folded.locator("summary").click()
    assert hidden.is_visible()
    assert "line" in hidden.inner_text()


def test_a_picture_is_shown(open_page: "OpenPage") -> None:
    page = open_page("/conversation?id=working&start=0")
    picture = page.locator("article img")

    def is_shown() -> bool:
        # Messages get their heights when they come into view, so that the picture may move out of it.
        picture.scroll_into_view_if_needed()
        return bool(picture.evaluate("e => e.complete && e.naturalWidth > 0"))

    wait_until(is_shown)
    assert picture.get_attribute("alt")


@pytest.mark.parametrize("panel", PANELS)
def test_print_shows_the_content_on_white(open_page: "OpenPage", panel: str) -> None:
    page = open_page(f"/conversation?id=working&panel={panel}", color_scheme="dark")
    page.emulate_media(media="print")
    assert (
        page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert not page.get_by_role("navigation").first.is_visible()
    assert page.get_by_role("heading", level=1).is_visible()
    page.set_viewport_size({"width": 700, "height": 900})
    assert page.evaluate(TOO_WIDE) == []
