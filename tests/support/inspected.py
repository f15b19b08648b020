"""Conversations for the inspector: each badge, hostile texts, owners and guests. And every address of its pages."""

import base64
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.routing import Route
from starlette.testclient import TestClient

import refold
from refold.infrastructure.inspector.panels import PANELS
from refold.infrastructure.inspector.site import pages_of
from refold.inspector import app
from tests.support.command_line import PROGRAM, talk
from tests.support.hostile_texts import HIDDEN, MARKUP, TEMPLATES, TERMINAL

if TYPE_CHECKING:
    from playwright.sync_api import Locator

WINDOW = 16_000
SMALL_WINDOW = 6_000
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCRIPTS = (
    "<script>window.ran = 1</script> <img src=x onerror=\"window.ran = 2\"> <svg onload='window.ran = 3'> "
    '" onmouseover="window.ran = 4" autofocus onfocus="window.ran = 5 \' </pre></details></article> '
    "<iframe src=javascript:window.ran=6></iframe> [link](javascript:window.ran=7) {{7*7}} {% raw %} ${7*7} "
    '<a href="javascript:window.ran=8">click</a> <form action=//evil.example><button autofocus>x</button> '
    '<meta http-equiv="refresh" content="0;url=//evil.example"> <base href=//evil.example> '
    "<link rel=stylesheet href=//evil.example/x.css> <style>*{display:none}</style> --><!-- ]]> <!ELEMENT "
    '<div hx-get="//evil.example" hx-trigger="load" hx-on::load="window.ran = 9" data-hx-get="//evil.example">'
    "</div> </title> </textarea> &lt;b&gt; &#x3c;i&#x3e; <plaintext>"
)
"""Texts that would run, load or hide something if a page did not escape them."""
HOSTILE = f"{SCRIPTS} {MARKUP} {TEMPLATES} {TERMINAL} {HIDDEN} half \ud83d a character"
GUEST, MINE, OTHERS = "guest-word", "my-word", "foreign-word"
ODD_IDS = (
    "..", ".", "/", "a/b", "/a/", "a//b", "?", "#", "a?b=c#d", "&id=t", "%", "%2e%2e", "%00", "\\", "a b", '"',
    "'", "<script>", "\N{GRINNING FACE}", "ключ", "x" * 300, "history", "x/history",
)  # fmt: skip


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(number: int, name: str, given: Mapping[str, Any], thought: str = "") -> dict[str, Any]:
    used = {"type": "tool_use", "id": f"c{number}", "name": name, "input": given}
    before = [{"type": "thinking", "thinking": thought, "signature": "s" * 60}] if thought else []
    return {"role": "assistant", "content": [*before, used]}


def result(number: int, content: Any, *, failed: bool = False) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": f"c{number}", "content": content}
    return {"role": "user", "content": [{**block, "is_error": True} if failed else block]}


def open_quiet(path: Path, window: int = WINDOW, **more: Any) -> refold.Memory:
    """A memory that does nothing by itself."""
    return refold.open(path, window=window, background=False, scrub_megabytes=0, **more)


def fill_working(memory: refold.Memory, thread_id: str = "working") -> None:
    """Shortened results, thinking that was left out, an error, an image, and a system text."""
    conversation = memory.conversation(thread_id)
    conversation.append({"role": "system", "content": "You are a careful engineer."})
    conversation.append([user("Hello."), assistant("Hello, what shall I do?")])
    conversation.append(user("Please look at every module; never use npm."))
    for n in range(16):
        lines = (
            f"line {k} of module {n}: value_{k} = {k * n}" for k in range(150 if n % 2 else 30)
        )
        thought = f"I should read module {n}." if n % 3 == 0 else ""
        conversation.append(call(n, "read_file", {"path": f"src/module_{n}.py"}, thought))
        conversation.append(result(n, "\n".join(lines), failed=n == 13))
        conversation.context()
    picture = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    conversation.append(
        {"role": "user", "content": [{"type": "image", "source": picture}, {"type": "text", "text": "See?"}]}
    )  # fmt: skip


def fill_split(memory: refold.Memory, thread_id: str = "split") -> None:
    """One request whose rounds are summarised in part: a split turn, with the request protected."""
    conversation = memory.conversation(thread_id)
    conversation.append([user("Hello."), assistant("Hello."), user("Look at all of them.")])
    rounds = talk(60, "Some words of the long talk about sheds. " * 4)
    tools_only = [one for one in rounds if not isinstance(one["content"], str)]
    conversation.append(tools_only)
    assert conversation.compact().outcome == "performed"


def fill_recalled(memory: refold.Memory, thread_id: str = "recalled") -> None:
    """A pin, an erased message, and a question with a line that recall added."""
    conversation = memory.conversation(thread_id)
    conversation.append(user("Please set up the servers. The region is Falkland."))
    conversation.append(assistant("Done: the staging redis listens on port 6390 now."))
    conversation.pin(0)
    for n in range(40):
        conversation.append(user(f"Go on with module m{n}. " + "Look at each file. " * 12))
        conversation.append(assistant(f"Module m{n} is done. " + "All checks pass. " * 12))
        conversation.context()
    conversation.erase(conversation.row().messages - 2)  # type: ignore[union-attr]
    conversation.append(user("Which port did we give to redis on staging?"))
    conversation.context()
    conversation.append(assistant("It is 6390."))


def fill_badges(log: Path) -> None:
    """Make a log with every badge, in the conversations ``working``, ``split`` and ``recalled``."""
    with open_quiet(log) as memory:
        fill_working(memory)
    with open_quiet(log, SMALL_WINDOW) as memory:
        fill_split(memory)
        fill_recalled(memory)


def fill_hostile(memory: refold.Memory, thread_id: str = "hostile") -> None:
    """Texts that would like to be more, in every place of a conversation; a long line, and images that are none."""
    conversation = memory.conversation(thread_id)
    no_image, with_script = (
        base64.b64encode(data).decode() for data in (b"text", b"<svg onload=window.ran=1/>")
    )
    sources = (
        {"type": "base64", "media_type": "image/png", "data": "no images!!"},
        {"type": "base64", "media_type": "image/png", "data": no_image},
        {"type": "base64", "media_type": "image/svg+xml", "data": with_script},
        {"type": "base64", "media_type": 'image/png" onerror="window.ran=1', "data": PIXEL},
        {"type": "url", "url": "https://evil.example/x.png"},
    )
    images = [{"type": "image", "source": source} for source in sources]
    conversation.append([user(HOSTILE), assistant(HOSTILE)])
    conversation.append(call(0, "look", {SCRIPTS: HOSTILE, "path": SCRIPTS}, HOSTILE))
    conversation.append(result(0, HOSTILE + "A" * 1_000_000))
    conversation.append(
        {"role": "user", "content": [*images, {"type": SCRIPTS, "x": HOSTILE}]}, recorded=True
    )
    conversation.append(assistant("\n" * 5_000 + HOSTILE))
    conversation.label("".join(c for c in SCRIPTS if c.isprintable()))
    conversation.append([user(HOSTILE), assistant(f"{SCRIPTS} word")])


def fill_owners(memory: refold.Memory) -> None:
    """Conversations of two owners, each with a message of the other as a guest, and one without an owner."""
    for thread, owner, words, guest, guest_words in (
        ("mine", "me", MINE, "other", GUEST),
        ("theirs", "other", OTHERS, "me", f"{MINE}-elsewhere"),
    ):
        conversation = memory.conversation(thread, owner=owner)
        conversation.append([user(f"{words} one"), assistant("Noted.")])
        conversation.append(user(f"{guest_words} two"), owner=guest)
        conversation.append([assistant("Noted."), user(f"{words} three"), assistant("Fine.")])
        conversation.label(f"label {words}")
    memory.conversation("nobodys").append(user(f"{OTHERS} four"))


def addresses(memory: refold.Memory, thread_id: str, **more: object) -> Iterator[str]:
    """Every address about a conversation: each route, and each panel of its page."""
    usual = {"id": thread_id, "position": 0, "block": 0, "q": "word", "check": 1, **more}
    for route in pages_of(memory).routes:
        assert isinstance(route, Route)
        path = re.sub(r"\{thread_id(:path)?\}", quote(thread_id, safe=""), route.path)
        if path == "/conversation":
            yield from (f"{path}?{urlencode({**usual, 'panel': panel})}" for panel in PANELS)
        elif "{" not in path:
            yield f"{path}?{urlencode(usual)}"


class MarkupJudge(HTMLParser):
    """Finds what a page of the inspector must not have: scripts, styles and events in it, and addresses elsewhere."""

    LOADS = (
        "src",
        "href",
        "action",
        "formaction",
        "data",
        "srcset",
        "poster",
        "hx-get",
        "xlink:href",
    )
    FORBIDDEN = (
        "style",
        "iframe",
        "object",
        "embed",
        "base",
        "frame",
        "applet",
        "noscript",
        "template",
    )

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in self.FORBIDDEN or (tag == "script" and "src" not in given):
            self.found.append(f"<{tag}>")
        if tag == "meta" and "http-equiv" in given:
            self.found.append("<meta http-equiv>")
        for name, value in given.items():
            if name == "style" or name.startswith(
                ("on", "hx-on", "data-hx", "hx-vars", "hx-headers")
            ):
                self.found.append(f"{tag} {name}")
            if value.strip().lower().startswith(("javascript:", "js:")):
                self.found.append(f"{tag} {name}={value[:40]}")
            # A path on this server; "data:," is the icon that is none.
            if name in self.LOADS and not re.match(
                r"/(?![/\\])|#|data:,$|data:image/(png|jpeg|gif|webp);", value
            ):
                self.found.append(f"{tag} {name}={value[:40]}")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and data.strip() and self.cdata_elem == "script":
            self.found.append(f"script: {data[:40]}")


def unsafe_markup(page: str) -> list[str]:
    """Return what a page has that it must not have."""
    judge = MarkupJudge()
    judge.feed(page)
    judge.close()
    return judge.found


def client_of(
    memory: refold.Memory, authorise: Callable[[Request], Any] = lambda _: True
) -> TestClient:
    """A client of the application that a service mounts."""
    return TestClient(
        app(memory, authorise), base_url="http://127.0.0.1:8123", follow_redirects=False
    )


def follow(link: "Locator") -> None:
    """Click a link in a browser, and wait for its page with all that the page loads."""
    with link.page.expect_navigation():
        link.click()


def wait_until(holds: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until something holds. Playwright's own waiting evaluates texts, which the pages forbid."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.05)


class Served(NamedTuple):
    """A server that runs in a process of its own."""

    url: str
    """URL with the token."""
    process: "subprocess.Popen[str]"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return self.url.partition("/?")[0]

    @property
    def token(self) -> str:
        return self.url.partition("token=")[2]


@contextmanager
def served(log: Path, *words: str) -> Generator[Served]:
    """``refold inspect`` on a free port; ended by Ctrl-C, if it has not ended before."""
    command = [*PROGRAM, "inspect", "--db", str(log), "--json", "--window", str(WINDOW), *words]
    with subprocess.Popen(
        command, cwd=log.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            yield Served(json.loads(line)["url"], process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
