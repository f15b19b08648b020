"""Exported pages in a browser: from a disk and from a web server, wide and narrow, with the keyboard alone."""

import base64
import struct
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from refold.infrastructure.bootstrap import open_memory
from refold.infrastructure.cli.program import main
from tests.support.command_line import talk
from tests.support.hostile_texts import ALL, LONG
from tests.support.inspected import follow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
WIDTHS = (1280, 400)
ARABIC = "مرحبا، هل يمكنك قراءة الملف README.md قبل الغد؟"
HEBREW = "שגיאה: הקובץ config.yaml לא נמצא"
CHINESE = "请不要删除任何文件，先运行测试。" * 60


def picture(width: int, height: int) -> str:
    """A picture of PNG in base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checked

    rows = (b"\0" + b"\x20\x60\xa0" * width) * height
    shape = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    content = chunk(b"IHDR", shape) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + content).decode()


def messages() -> list[dict[str, Any]]:
    source = {"type": "base64", "media_type": "image/png", "data": picture(1600, 300)}
    used = {"type": "tool_use", "id": "x1", "name": "read_a_file", "input": {"path": LONG[:300]}}
    failed = {"type": "tool_result", "tool_use_id": "x1", "is_error": True, "content": HEBREW}
    return [
        {"role": "user", "content": ARABIC},
        {"role": "assistant", "content": CHINESE},
        {"role": "user", "content": [{"type": "image", "source": source}]},
        {"role": "assistant", "content": [{"type": "text", "text": f"{ALL} {LONG}"}, used]},
        {"role": "user", "content": [failed]},
        {"role": "assistant", "content": "A line.\n" * 300},
        *talk(60),
    ]


def run(*words: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["refold", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
    assert end.value.code == 0


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``one.html``, one conversation, and ``pages``, the whole log."""
    folder = tmp_path_factory.mktemp("exported")
    log = folder / "agent.db"
    with open_memory(log, window=8_000) as memory:
        conversation = memory.conversation("会话/one")
        conversation.append(messages(), recorded=True)
        conversation.compact()
        memory.conversation("two").append(talk(1), recorded=True)
    run("export", "会话/one", "--html", folder / "one.html", "--db", log)
    run("inspect", "--bundle", folder / "pages", "--db", log)
    return folder


@contextmanager
def opened(
    browser: "Browser", width: int, scheme: Any = "light"
) -> "Generator[tuple[Page, list[str]]]":
    """A page, and what went wrong on it or was requested by it."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, noticed = context.new_page(), list[str]()
    page.on("console", lambda message: noticed.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: noticed.append(f"error: {error}"))
    page.on("request", lambda request: noticed.append(request.url))
    page.on("requestfailed", lambda request: noticed.append(f"failed: {request.url}"))
    yield page, noticed
    context.close()


def overflow(page: "Page") -> int:
    found: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return found


@pytest.mark.parametrize("width", WIDTHS)
def test_the_file_opens_without_network_console_messages_and_overflow(
    browser: "Browser", exported: Path, width: int
) -> None:
    with opened(browser, width) as (page, noticed):
        page.goto((exported / "one.html").as_uri())
        page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
        assert noticed == [(exported / "one.html").as_uri()]
        assert overflow(page) <= 0
        assert page.locator("article.message").count() == 246
        size = page.locator("img").evaluate("one => [one.naturalWidth, one.clientWidth]")
        assert size[0] == 1600
        assert 0 < size[1] <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_a_folder_is_read_from_the_list_to_a_message_and_back(
    browser: "Browser", exported: Path, width: int
) -> None:
    folder = exported / "pages"
    with opened(browser, width, "dark") as (page, noticed):
        page.goto((folder / "index.html").as_uri())
        assert overflow(page) <= 0
        follow(page.get_by_role("link", name=ARABIC[:20]))
        assert page.locator("article.message").count() == 200
        for name in ("Summaries", "Ledger", "Timeline", "later"):
            follow(page.get_by_role("link", name=name, exact=True).first)
            assert overflow(page) <= 0
        assert page.locator("article.message").count() == 46
        follow(page.locator("p.cut a").first)
        assert page.locator("tr:target").count() == 1
        follow(page.get_by_role("link", name="refold"))
        assert page.get_by_role("heading", name="Conversations").is_visible()
        assert all(one.startswith(folder.as_uri()) for one in noticed), noticed


@pytest.mark.parametrize("from_server", [False, True])
def test_the_style_of_a_folder_is_applied(
    browser: "Browser", exported: Path, from_server: bool
) -> None:
    with served(exported / "pages") as address, opened(browser, 1280) as (page, noticed):
        page.goto(address if from_server else (exported / "pages" / "index.html").as_uri())
        follow(page.get_by_role("link", name=ARABIC[:20]))
        side = page.locator("article.message").first.evaluate(
            "one => getComputedStyle(one).borderLeftWidth"
        )
        assert side == "3px"
        assert [one for one in noticed if one.startswith(("console", "error", "failed"))] == []


@contextmanager
def served(folder: Path) -> Generator[str]:
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def test_the_keyboard_alone_unfolds_a_text_and_follows_a_link(
    browser: "Browser", exported: Path
) -> None:
    with opened(browser, 1280) as (page, _):
        page.goto((exported / "one.html").as_uri())
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # Skip to content.
        message = page.locator("#m1")
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.closest('#m1 details') !== null"):
                break
        folded = message.locator("details")
        assert folded.evaluate("one => one.open") is False
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
        page.keyboard.press("Enter")
        assert folded.evaluate("one => one.open") is True
        page.keyboard.press("Space")
        assert folded.evaluate("one => one.open") is False
        message.locator("a.pos").focus()
        page.keyboard.press("Enter")
        assert page.url.endswith("#m1")


def test_nothing_of_the_file_needs_a_script(browser: "Browser", exported: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((exported / "one.html").as_uri())
    page.locator("#m1 summary").click()
    assert page.locator("#m1 details > pre").is_visible()
    context.close()


def test_texts_have_the_direction_of_their_script(browser: "Browser", exported: Path) -> None:
    with opened(browser, 400) as (page, _):
        page.goto((exported / "one.html").as_uri())

        def direction(place: str) -> str:
            found: str = page.locator(place).evaluate("one => getComputedStyle(one).direction")
            return found

        assert direction("#m0 pre") == "rtl"
        assert direction("#m4 pre") == "rtl"
        assert direction("#m1 pre >> nth=0") == "ltr"
        assert page.locator("#m1 pre").first.inner_text().startswith(CHINESE[:20])
        assert page.locator("#m0 pre").inner_text() == ARABIC


def test_summaries_are_next_to_the_timeline_where_there_is_room(
    browser: "Browser", exported: Path
) -> None:
    for width, is_wide in ((1280, True), (400, False)):
        with opened(browser, width) as (page, _):
            page.goto((exported / "one.html").as_uri())
            timeline = page.locator("#timeline").bounding_box()
            summaries = page.locator("#summaries").bounding_box()
            assert timeline
            assert summaries
            assert (summaries["x"] >= timeline["x"] + timeline["width"]) is is_wide
            if is_wide:
                page.locator("#m200").scroll_into_view_if_needed()
                assert page.locator("#summaries h2").bounding_box()
                assert page.locator(".side").evaluate("one => one.getBoundingClientRect().top") >= 0
