"""``refold export --html`` and ``refold inspect --bundle``: complete, safe to share, for any browser."""

import base64
import hashlib
import json
import os
import re
import signal
import stat
import time
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from refold.infrastructure.bootstrap import open_memory
from refold.infrastructure.inspector.rendering_pages import HERE
from tests.support.command_line import Refold, process, talk
from tests.support.hostile_texts import ALL

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 40).decode()
PLACES = (
    *("label", "thread", "system", "text", "long", "input", "nested", "tool", "result"),
    *("error", "thinking", "media", "caption", "name", "kind", "picture"),
)
PIECE = "aZ9y"
SECRETS = {place: f"ghp_{n:02}" + PIECE * 6 for n, place in enumerate(PLACES)}
PASSWORD = "correcthorsebattery"


def hostile_messages() -> list[dict[str, Any]]:
    """A conversation with a credential in every place that has a text."""
    picture = {"type": "base64", "media_type": "image/png", "data": PNG}
    fake = base64.b64encode(SECRETS["picture"].encode()).decode()
    return [
        {"role": "system", "content": f"You are brief. {SECRETS['system']}"},
        {"role": "user", "content": f"{SECRETS['text']} {ALL} " + "word " * 200},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": SECRETS["thinking"], "signature": "s"},
                {
                    "type": "tool_use",
                    "id": "c1",
                    "name": f"run {SECRETS['tool']}",
                    "input": {
                        "command": SECRETS["input"],
                        "password": PASSWORD,
                        SECRETS["name"]: [{"deep": SECRETS["nested"], "token": PASSWORD}],
                    },
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "is_error": True,
                    "content": f"{SECRETS['error']}\n{json.dumps({'password': PASSWORD})}\n"
                    f"{json.dumps(json.dumps({'password': PASSWORD}))}\n{SECRETS['result']}",
                },
                {"type": "text", "text": f"A picture: {SECRETS['caption']}"},
                {"type": "image", "source": picture},
                {"type": "image", "source": {**picture, "media_type": f"a/{SECRETS['media']}"}},
                {"type": "image", "source": {**picture, "data": fake}},
                {"type": SECRETS["kind"], "text": "an unknown block"},
            ],
        },
        {"role": "user", "content": "x" * 490 + " " + SECRETS["long"]},
        {"role": "assistant", "content": "Done, says Ada Lovelace to 张伟."},
        *talk(30, f"Ada said password={PASSWORD} and {SECRETS['text']}. "),
    ]


THREAD = f"ada-lovelace/{SECRETS['thread']}"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A log with a conversation full of credentials, compacted, and with another one."""
    with open_memory(tmp_path / "agent.db", window=8_000) as memory:
        conversation = memory.conversation(THREAD, owner="ada.lovelace")
        conversation.append(hostile_messages(), recorded=True)
        conversation.label(f"Ada's key {SECRETS['label']}")
        conversation.compact()
        assert conversation.summaries()
        memory.conversation("other").append(talk(3), recorded=True)
    return tmp_path


class Page(HTMLParser):
    """The links, ids and texts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self._texts: list[str] = []
        self.feed(html)
        self.text = "".join(self._texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in ("href", "src"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_data(self, data: str) -> None:
        self._texts.append(data)


def lost_links(folder: Path, file: Path) -> Iterator[str]:
    """The links of a page that lead nowhere."""
    page = Page(file.read_text("utf-8"))
    for link in page.links:
        if link.startswith("data:"):
            continue
        name, _, place = link.partition("#")
        target = (file.parent / unquote(name)).resolve() if name else file
        is_there = bool(link) and target.is_file() and target.is_relative_to(folder)
        if not is_there or (place and place not in ids_of(target)):
            yield link


@cache
def ids_of(file: Path) -> frozenset[str]:
    return frozenset(Page(file.read_text("utf-8")).ids)


def secrets_in(html: str) -> list[str]:
    """The places whose secrets are in a page, as a whole or cut, in any form."""
    shown = html + Page(html).text + unquote(html)
    found = [place for place, secret in SECRETS.items() if secret in shown]
    fake = base64.b64encode(SECRETS["picture"].encode()).decode()
    found += [name for name in (PASSWORD, fake, PIECE) if name in shown]
    return found


def test_no_secret_of_any_place_is_in_the_file(hostile: Path, refold: Refold) -> None:
    ran = refold("export", "ada", "--html", "a.html")
    assert ran.code == 0, ran.err
    html = (hostile / "a.html").read_text("utf-8")
    assert secrets_in(html) == []
    assert secrets_in(ran.out) == []
    assert "Ada Lovelace to 张伟" in html


def test_no_secret_of_any_place_is_in_the_folder(hostile: Path, refold: Refold) -> None:
    ran = refold("inspect", "--bundle", "pages")
    assert ran.code == 0, ran.err
    for file in (hostile / "pages").rglob("*"):
        assert secrets_in(str(file)) == []
        assert secrets_in(file.read_text("utf-8") if file.is_file() else "") == []


def test_names_are_masked_in_ids_titles_owners_summaries_and_file_names(
    hostile: Path, refold: Refold
) -> None:
    names = ("--redact", "Ada Lovelace", "--redact", "ada", "--redact", "张伟")
    assert refold("export", "ada", "--html", "a.html", *names).code == 0
    assert refold("inspect", "--bundle", "pages", *names).code == 0
    for file in (hostile / "a.html", *(hostile / "pages").rglob("*")):
        assert not re.search(r"\bada\b|lovelace|张伟", file.name, re.IGNORECASE)
        if file.is_file():
            assert not re.search(r"\bada\b|lovelace|张伟", file.read_text("utf-8"), re.IGNORECASE)
    assert "Done, says [name 1] to [name 3]." in (hostile / "a.html").read_text("utf-8")


def test_the_file_says_at_its_top_what_it_is_and_what_was_masked(
    hostile: Path, refold: Refold
) -> None:
    ran = refold("export", "ada", "--html", "a.html", "--redact", "Lovelace", "--json")
    masked = ran.answer["masked"]
    page = Page((hostile / "a.html").read_text("utf-8"))
    top = page.text[: page.text.index("The next request")]
    assert re.search(r"Made \d{4}-\d\d-\d\d \d\d:\d\d UTC by refold .* of agent\.db\.", top)
    assert "messages 0 to 125 of 126" in top
    counts = f"Masked: {masked['credentials']:,} credentials, [name 1] {masked['name 1']} ×."
    assert counts in top
    assert masked["credentials"] > len(PLACES)
    assert masked["name 1"] >= 3
    assert "Pictures are shown as they are: 1." in top


def test_the_file_needs_no_network_no_script_and_no_other_file(
    hostile: Path, refold: Refold
) -> None:
    assert refold("export", "ada", "--html", "a.html").code == 0
    html = (hostile / "a.html").read_text("utf-8")
    page = Page(html)
    style = html.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:" in html
    assert not page.tags & {"script", "form", "iframe", "object", "base"}
    assert not {name for name in page.attributes if name.startswith(("on", "hx-"))} | (
        page.attributes & {"style"}
    )
    assert f"data:image/png;base64,{PNG}" in page.links
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert list(lost_links(hostile, hostile / "a.html")) == []


def test_all_texts_are_in_the_file_and_links_lead_to_messages_and_summaries(
    hostile: Path, refold: Refold
) -> None:
    assert refold("export", "ada", "--html", "a.html").code == 0
    page = Page((hostile / "a.html").read_text("utf-8"))
    assert {f"m{position}" for position in range(126)} <= set(page.ids)
    with open_memory(hostile / "agent.db") as memory:
        (summary,) = memory.conversation(THREAD).summaries()
    assert summary.summary_id in page.ids
    assert f"#{summary.summary_id}" in page.links
    assert "entries have a place in the request" in page.text
    assert "word word " in page.text


def test_a_range_has_its_messages_and_no_links_to_others(hostile: Path, refold: Refold) -> None:
    assert refold("export", "ada", "--html", "a.html", "--range", "10..20").code == 0
    page = Page((hostile / "a.html").read_text("utf-8"))
    assert [one for one in page.ids if one.startswith("m") and one[1:].isdigit()] == [
        f"m{position}" for position in range(10, 20)
    ]
    assert "messages 10 to 19 of 126" in page.text
    assert list(lost_links(hostile, hostile / "a.html")) == []
    assert refold("export", "ada", "--html", "b.html", "--range", "900..").code == 2


def test_too_many_messages_are_refused_with_commands_that_work(
    tmp_path: Path, refold: Refold
) -> None:
    with open_memory(tmp_path / "agent.db") as memory:
        messages = [{"role": ("user", "assistant")[n % 2], "content": f"{n}"} for n in range(2_001)]
        memory.conversation("t").append(messages, recorded=True)
    ran = refold("export", "t", "--html", "t.html")
    assert ran.code == 2
    assert "InvalidSetting: 2,001 messages are too many" in ran.err.replace("\n", " ")
    page, bundle = re.findall(r"`refold ([^`]*)`", ran.err)
    assert refold(*page.split()).code == 0
    assert refold(*bundle.split()).code == 0
    assert (tmp_path / "t.html").read_text("utf-8").count('<article id="m') == 2_000
    folder = tmp_path / "DIR" / "conversations" / "0001-t"
    assert len([*folder.glob("messages-*.html")]) == 10


def test_a_page_goes_to_standard_output_too(hostile: Path, refold: Refold) -> None:
    ran = refold("export", "other", "--html", "-")
    assert ran.code == 0
    assert ran.out.startswith("<!doctype html>")
    assert ran.out.endswith("</html>")
    assert "</html>" in refold("export", "other", "--html", "-", "--json").answer["html"]
    assert not (hostile / "-").exists()


def test_a_page_is_for_its_owner_and_replaces_nothing_by_accident(
    hostile: Path, refold: Refold
) -> None:
    out = hostile / "a.html"
    out.write_text("mine")
    refused = refold("export", "other", "--html", out)
    assert refused.code == 2
    assert "TargetExists" in refused.err
    assert out.read_text() == "mine"
    assert refold("export", "other", "--html", out, "--force").code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert refold("export", "other", "--html", "agent.db", "--force").code == 2
    assert refold("export", "other", "--html", hostile / "none" / "a.html").code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("--out", "a.jsonl", "--html", "a.html"),
        ("--format", "events", "--html", "a.html"),
        ("--at", "3", "--html", "a.html"),
        ("--redact", "Ada"),
        ("--range", "1..2"),
        ("--window", "9000"),
        ("--html", "a.html", "--redact", " "),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    hostile: Path, refold: Refold, words: tuple[str, ...]
) -> None:
    assert refold("export", "other", *words).code == 2
    assert not (hostile / "a.html").exists()


def test_every_link_of_a_folder_leads_to_one_of_its_pages(hostile: Path, refold: Refold) -> None:
    with open_memory(hostile / "agent.db") as memory:
        memory.conversation("long").append(talk(101), recorded=True)
    ran = refold("inspect", "--bundle", "pages", "--json")
    folder = hostile / "pages"
    files = [*folder.rglob("*.html")]
    assert ran.answer["conversations"] == 3
    assert ran.answer["messages"] == 126 + 12 + 404
    assert ran.answer["pages"] == len(files) == 1 + 3 * 3 + 2
    for file in files:
        assert list(lost_links(folder, file)) == []
        assert "script" not in Page(file.read_text("utf-8")).tags
        assert "default-src 'none'; style-src 'self' file:; img-src data:" in file.read_text()
    assert (folder / "style.css").is_file()
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")} == {0o600, 0o700}


def test_names_of_the_interface_break_no_link(hostile: Path, refold: Refold) -> None:
    names = ("index", "messages", "summaries", "conversations", "html", "timeline", "none", "self")
    given = [word for name in names for word in ("--redact", name)]
    assert refold("inspect", "--bundle", "pages", *given).code == 0
    assert refold("export", "ada", "--html", "a.html", *given).code == 0
    for file in (hostile / "pages").rglob("*.html"):
        assert list(lost_links(hostile / "pages", file)) == []
    assert list(lost_links(hostile, hostile / "a.html")) == []


def test_ids_of_all_kinds_become_file_names(tmp_path: Path, refold: Refold) -> None:
    ids = [
        "../up",
        "CON",
        "a/b",
        "A/B",
        "sk abcdefghijklmnopqrstuvwx",
        "会话",
        "x" * 200,
        ".",
        "a b",
    ]
    with open_memory(tmp_path / "agent.db") as memory:
        for one in ids:
            memory.conversation(one).append({"role": "user", "content": "Hi."})
    assert refold("inspect", "--bundle", "pages").code == 0
    folder = tmp_path / "pages"
    names = [path.name for path in (folder / "conversations").iterdir()]
    assert len({name.lower() for name in names}) == len(ids)
    assert all(re.fullmatch(r"[0-9]{4}(-[a-z0-9-]{1,40})?", name) for name in names)
    for file in folder.rglob("*.html"):
        assert list(lost_links(folder, file)) == []


def test_a_folder_is_replaced_on_purpose_only_and_keeps_the_files_of_others(
    hostile: Path, refold: Refold
) -> None:
    folder = hostile / "pages"
    folder.mkdir()
    assert refold("inspect", "--bundle", folder).code == 0
    (folder / "CNAME").write_text("example.org")
    old = folder / "conversations" / "0009-old"
    old.mkdir()
    refused = refold("inspect", "--bundle", folder)
    assert refused.code == 2
    assert "TargetExists" in refused.err
    assert old.is_dir()
    assert refold("inspect", "--bundle", folder, "--force").code == 0
    assert not old.exists()
    assert (folder / "CNAME").read_text() == "example.org"
    assert refold("verify").code == 0


@pytest.mark.parametrize("name", ["index.html", "style.css", "conversations"])
def test_pages_that_refold_did_not_write_are_never_replaced(
    hostile: Path, refold: Refold, name: str
) -> None:
    folder = hostile / "pages"
    folder.mkdir()
    (folder / name).write_text("mine")
    refused = refold("inspect", "--bundle", folder, "--force")
    assert refused.code == 2
    assert "did not write" in refused.err
    assert (folder / name).read_text() == "mine"
    assert refold("inspect", "--bundle", hostile / "agent.db", "--force").code == 2
    assert refold("inspect", "--bundle", hostile / "none" / "pages").code == 2
    assert refold("inspect", "--redact", "Ada").code == 2


def test_an_empty_log_gives_an_empty_list(tmp_path: Path, refold: Refold) -> None:
    with open_memory(tmp_path / "agent.db"):
        pass
    assert refold("inspect", "--bundle", "pages").code == 0
    assert "0 conversations" in (tmp_path / "pages" / "index.html").read_text()


def test_ctrl_c_leaves_no_folder_and_says_so(tmp_path: Path) -> None:
    with open_memory(tmp_path / "agent.db") as memory:
        for n in range(60):
            memory.conversation(f"t{n}").append(talk(20), recorded=True)
    with process("inspect", "--bundle", "pages", folder=tmp_path) as started:
        until = time.monotonic() + 60
        while not [*tmp_path.glob(".pages.*/pages/conversations/0005*")]:
            assert time.monotonic() < until
            assert started.poll() is None
            time.sleep(0.01)
        os.kill(started.pid, signal.SIGINT)
        _, err = started.communicate(timeout=60)
    assert started.returncode == 130
    assert "No page was written" in err.decode()
    assert [path.name for path in tmp_path.iterdir() if "pages" in path.name] == []


def test_no_template_declares_a_text_to_be_safe() -> None:
    """What a template declares to be finished HTML would be neither masked nor escaped."""
    for template in (HERE / "templates").iterdir():
        text = template.read_text("utf-8")
        for word in ("safe", "escape", "e", "tojson", "urlize", "xmlattr", "forceescape"):
            assert not re.search(rf"\|\s*{word}\b", text), f"{template.name}: |{word}"
        assert "autoescape" not in text, template.name
