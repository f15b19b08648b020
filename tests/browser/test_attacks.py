"""Texts of a transcript stay texts, the token stays secret, and pages of other servers get nothing."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from pytest_httpserver import HTTPServer

from refold.infrastructure.inspector.panels import PANELS
from tests.support.inspected import SCRIPTS, Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from .conftest import OpenPage

pytestmark = pytest.mark.slow
MOST_BYTES = 300_000
WEIGHT = """performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource'))
  .reduce((sum, one) => sum + one.decodedBodySize, 0)"""
ADDRESSES = [
    "/",
    "/?q=window",
    "/message?id=hostile&position=0",
    "/message?id=hostile&position=3",
    *(
        f"/conversation?{urlencode({'id': 'hostile', 'panel': panel, 'q': 'window'})}"
        for panel in PANELS
    ),
]
OUTSIDE = """[...document.querySelectorAll('*')].flatMap(e => [...e.attributes])
  .filter(a => ['href', 'src', 'action', 'hx-get', 'data'].includes(a.name))
  .map(a => a.value).filter(v => !/^(\\/(?![\\/\\\\])|#|data:,$)/.test(v))"""
EVENTS = """[...document.querySelectorAll('*')].flatMap(e => [...e.attributes])
  .map(a => a.name).filter(name => name === 'style' || name.startsWith('on') || name.startsWith('hx-on'))"""


def assert_nothing_ran(page: "Page") -> None:
    assert page.evaluate("typeof window.ran") == "undefined"
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate(EVENTS) == []
    assert (
        page.locator("iframe, object, embed, base, style, script:not([src]), [http-equiv]").count()
        == 0
    )
    assert page.locator("script").count() == 1


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_text_of_a_transcript_runs_or_loads(open_page: "OpenPage", address: str) -> None:
    page = open_page(address)
    assert_nothing_ran(page)
    for _ in range(12):
        page.keyboard.press("Tab")
    page.mouse.move(600, 400)
    page.mouse.wheel(0, 2_000)
    page.mouse.move(500, 300)
    assert_nothing_ran(page)
    assert page.evaluate(WEIGHT) <= MOST_BYTES


def test_every_text_is_shown_as_it_was_written(open_page: "OpenPage") -> None:
    page = open_page("/conversation?id=hostile&start=0")
    assert SCRIPTS in "".join(page.locator("#m0 pre").all_text_contents())
    assert "</pre></details></article>" in (page.locator("#m3").text_content() or "")
    assert page.locator("article").count() == 8


def test_found_texts_that_are_put_into_the_page_do_not_run(open_page: "OpenPage") -> None:
    page = open_page()
    page.get_by_role("searchbox").fill("window")
    page.get_by_role("button", name="Search").click()
    page.locator("#listed .hits li").first.wait_for()
    assert "<script>" in (page.locator("#listed").text_content() or "")
    assert_nothing_ran(page)


@pytest.mark.parametrize("start", [0, 100])
def test_a_page_of_two_hundred_messages_is_light(open_page: "OpenPage", start: int) -> None:
    page = open_page(f"/conversation?id=long&start={start}")
    assert page.locator("article").count() == 200
    assert page.evaluate(WEIGHT) <= MOST_BYTES


def test_the_token_leaves_the_address_and_scripts_do_not_see_the_cookie(
    page: "Page", inspector: Served
) -> None:
    assert page.url == f"{inspector.origin}/"
    assert inspector.token not in page.content()
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("document.referrer") == ""
    cookie: Any = page.context.cookies()[0]
    assert len(page.context.cookies()) == 1
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert inspector.token not in cookie["value"]


ATTACK = """<!doctype html><title>-</title>
<iframe id=f src="TARGET/conversation?id=hostile"></iframe>
<img id=i src="TARGET/media?id=working&position=36&block=0">
<script>window.loaded = 'no'</script>
<script src="TARGET/static/htmx.min.js" onload="window.loaded = 'yes'"></script>
<script>
window.got = Promise.all(['/', '/api/conversations'].map(path =>
  fetch('TARGET' + path, {credentials: 'include', mode: 'no-cors'})
    .then(r => r.type + r.status, () => 'refused')));
window.read = fetch('TARGET/api/conversations', {credentials: 'include'}).then(r => r.text(), () => 'refused');
</script>"""


def test_a_page_of_another_server_of_this_machine_reads_nothing(
    browser: "Browser", inspector: Served, httpserver: HTTPServer
) -> None:
    page_of_attacker = ATTACK.replace("TARGET", inspector.origin)
    httpserver.expect_request("/").respond_with_data(page_of_attacker, content_type="text/html")
    context = browser.new_context()
    statuses = dict[str, int]()
    context.on(
        "response",
        lambda answer: statuses.update({answer.url.removeprefix(inspector.origin): answer.status}),
    )
    page = context.new_page()
    page.goto(inspector.url)
    statuses.clear()
    page.goto(httpserver.url_for("/").replace("localhost", "127.0.0.1"))
    assert page.evaluate("window.loaded") == "no"
    assert page.evaluate("window.read") == "refused"
    assert page.evaluate("window.got") == ["refused", "refused"]
    assert page.evaluate("document.getElementById('i').naturalWidth") == 0
    assert statuses["/conversation?id=hostile"] == 403
    assert "window.ran" not in page.frames[-1].content()
    context.close()
