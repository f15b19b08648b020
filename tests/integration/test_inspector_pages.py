"""Every page of the inspector: it only reads, shows texts as texts, and answers wrong requests in a sentence."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

import refold
from refold.infrastructure.inspector import site
from refold.infrastructure.inspector.access import HEADERS
from refold.infrastructure.inspector.panels import PANELS
from refold.inspector import Access, app
from tests.support.hostile_texts import CONTROLS, MISLEADING
from tests.support.inspected import (
    ODD_IDS,
    addresses,
    client_of,
    fill_badges,
    fill_hostile,
    open_quiet,
    unsafe_markup,
    user,
)
from tests.support.log_files import set_state

THREADS = ("working", "split", "recalled", "hostile")
HOME = Path(site.__file__).parent
QUERY_NAME = re.compile(
    r"""(?:number|get)\(["'](\w+)["']|number_in\([\w. ]+, ["'](\w+)["']|query\[["'](\w+)["']\]"""
)
WRONG = (
    "abc",
    "-5",
    "1e9",
    "1.5",
    " ",
    "9" * 5_000,
    "9" * 13,
    "\N{SUPERSCRIPT TWO}",
    "0x10",
    "NaN",
    "\x00",
)
HALF = "half \ud83d a word"
LARGE = "999999999999"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with every badge and hostile texts."""
    path: Path = tmp_path_factory.mktemp("inspected") / "agent.db"
    fill_badges(path)
    with open_quiet(path) as memory:
        fill_hostile(memory)
    return path


@pytest.fixture
def memory(log: Path) -> Iterator[refold.Memory]:
    with open_quiet(log) as opened:
        yield opened


def sentence_of(answer: Any) -> str:
    """The text of an answer that is no page with content."""
    if answer.headers["content-type"].startswith("application/json"):
        found: str = answer.json()["message"]
        return found
    return re.sub(r"<[^>]+>", " ", answer.text)


def assert_plain_refusal(answer: Any, statuses: tuple[int, ...]) -> None:
    assert answer.status_code in statuses, f"{answer.url}: {answer.status_code}"
    said = sentence_of(answer)
    assert not re.search(r"Traceback|invalid literal|int\(\)|could not be made|\.py", said), said
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize("thread", THREADS)
def test_every_page_shows_texts_as_texts_and_has_the_headers(
    memory: refold.Memory, thread: str
) -> None:
    client = client_of(memory)
    for address in addresses(memory, thread):
        answer = client.get(address)
        assert (
            answer.status_code in (200, 404) if "/media" in address else answer.status_code == 200
        ), address
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS, address
        assert client.head(address).status_code == answer.status_code
        if "html" in answer.headers["content-type"]:
            assert unsafe_markup(answer.text) == [], address
            assert not CONTROLS.search(answer.text), address
            assert not MISLEADING.search(answer.text), address
        elif "json" in answer.headers["content-type"]:
            assert json.loads(answer.content.decode()), address


def test_only_what_is_a_picture_is_shown_as_one(memory: refold.Memory) -> None:
    page = client_of(memory).get("/conversation?id=hostile&start=0").text
    (address,) = re.findall(r'<img [^>]*src="([^"]*)"', page)
    answer = client_of(memory).get(unescape(address))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")


@pytest.mark.parametrize("target", ["panel", "listed", "pictures"])
def test_parts_of_pages_are_as_safe(memory: refold.Memory, target: str) -> None:
    client = client_of(memory)
    for address in addresses(memory, "hostile"):
        answer = client.get(address, headers={"hx-request": "true", "hx-target": target})
        if "html" in answer.headers["content-type"]:
            assert unsafe_markup(answer.text) == [], address


def test_nothing_that_is_read_changes_the_log(log: Path, memory: refold.Memory) -> None:
    files = sorted(log.parent.glob("agent.db*"))
    before = {path: path.read_bytes() for path in files}
    versions = {thread: memory.conversation(thread).version for thread in THREADS}
    with open_quiet(log) as other:
        clients = (client_of(memory), client_of(other))
        for thread in ("working", "recalled"):
            for address in addresses(memory, thread, check=1 if thread == "working" else ""):
                assert len({client.get(address).status_code for client in clients}) == 1
        assert {thread: other.conversation(thread).version for thread in THREADS} == versions
    assert {path: path.read_bytes() for path in files} == before


def query_names() -> set[str]:
    """Every name in an address that the code of the inspector reads."""
    texts = [path.read_text("utf-8") for path in HOME.glob("*.py")]
    found = {name for text in texts for names in QUERY_NAME.findall(text) for name in names if name}
    return found - {"id", "panel", "q"}


def test_the_names_of_numbers_are_known() -> None:
    assert {
        "at",
        "position",
        "start",
        "limit",
        "version",
        "before",
        "after",
        "block",
    } <= query_names()


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[refold.Memory]:
    """A memory with a conversation of three messages, ``working``."""
    with open_quiet(tmp_path_factory.mktemp("short") / "agent.db") as opened:
        opened.conversation("working").append([user(f"word {n}") for n in range(3)])
        yield opened


@pytest.mark.parametrize("thread", [thread for thread in THREADS if thread != "hostile"])
def test_a_request_is_shown_as_the_model_sees_it(memory: refold.Memory, thread: str) -> None:
    context = memory.conversation(thread).context(at=memory.conversation(thread).version)
    page = client_of(memory).get(f"/conversation?id={thread}&panel=request").text
    shown = unescape(page.partition("What the model sees")[2].partition("As JSON")[0])
    assert shown.count('of the request">') == len(context.messages)
    for message in context.messages:
        content = message["content"]
        blocks: list[Any] = [message] if isinstance(content, str) else content
        for block in blocks:
            text = str(block.get("text") or block.get("content") or block.get("thinking") or "")
            assert text[:80].strip() in shown
    for label, is_there in (
        ("summary", context.summary is not None),
        ("ledger", len(context.memory) > 1),
        ("recalled lines", "[Recalled Lines]" in str(context.messages)),
    ):
        assert (f'">{label}</p>' in re.sub(r" <span class=.size.*?</span>", "", shown)) == is_there


@pytest.mark.slow(but=["abc", LARGE])
@pytest.mark.parametrize("wrong", [*WRONG, LARGE])
def test_a_wrong_number_is_never_an_unexpected_error(short: refold.Memory, wrong: str) -> None:
    client = client_of(short)
    for address in addresses(short, "working", check=""):
        for name in query_names():
            path, _, query = address.partition("?")
            given = dict(pair.split("=") for pair in query.split("&")) | {name: wrong}
            answer = client.get(f"{path}?{urlencode(given)}")
            if answer.status_code not in (200, 204):
                assert_plain_refusal(answer, (400, 404))


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(
    "address",
    [
        "/?start=",
        "/conversation?id=working&at=",
        "/conversation?id=working&position=",
        "/conversation?id=working&start=",
        "/conversation?id=working&message=",
        "/conversation?id=working&panel=compare&before=",
        "/message?id=working&position=",
        "/live?id=working&version=",
        "/media?id=working&position=0&block=",
        "/request.json?id=working&at=",
        "/api/conversations?start=",
        "/api/history?id=working&limit=",
    ],
)
def test_a_wrong_number_is_refused_in_a_sentence(
    short: refold.Memory, address: str, wrong: str
) -> None:
    answer = client_of(short).get(address + urlencode({"": wrong})[1:])
    assert_plain_refusal(answer, (400,))
    name = re.split(r"[?&]", address)[-1]
    assert name in sentence_of(answer)


@pytest.mark.parametrize("panel", PANELS)
def test_a_version_that_is_not_there_is_refused_in_a_sentence(
    short: refold.Memory, panel: str
) -> None:
    newest = short.conversation("working").version
    query = {"id": "working", "panel": panel}
    client = client_of(short)
    for at in (1, 2, newest):
        assert client.get(f"/conversation?{urlencode({**query, 'at': at})}").status_code == 200
    for at in (newest + 1, 10**11):
        assert_plain_refusal(client.get(f"/conversation?{urlencode({**query, 'at': at})}"), (400,))


@pytest.mark.parametrize("thread", ODD_IDS)
def test_a_conversation_with_an_odd_id_has_all_pages(tmp_path: Path, thread: str) -> None:
    with open_quiet(tmp_path / "agent.db") as memory:
        memory.conversation(thread).append([user("the word"), user("and more")])
        memory.conversation("-").append(user("another"))
        client = client_of(memory)
        for address in addresses(memory, thread, check=""):
            # Clients shorten such paths before they send them; the query has every id.
            if (
                "/media" not in address
                and "{" not in address
                and "/api/conversations/" not in address
            ):
                assert client.get(address).status_code == 200, address
        assert client.get(f"/api/history?{urlencode({'id': thread})}").json()["id"] == thread
        listed = client.get("/").text
        (link,) = re.findall(r'<a href="(/conversation\?[^"]*)"><bdi>the word', listed)
        assert ">the word</pre>" in client.get(link.replace("&amp;", "&")).text


@pytest.mark.parametrize(
    "thread", ["", " ", "x" * 1_000, "\x00", "\ud83d", "\n", "nowhere", "-", "/etc/passwd"]
)
def test_a_conversation_that_cannot_be_is_not_found(short: refold.Memory, thread: str) -> None:
    client = client_of(short)
    given = thread.encode("utf-8", "surrogatepass")
    for address in addresses(short, "THREAD", check=""):
        answer = client.get(address.replace("THREAD", urlencode({"": given})[1:]))
        if "id=" in address and not address.startswith(("/?", "/api/conversations")):
            assert_plain_refusal(answer, (400, 404))


@pytest.mark.parametrize(
    "address",
    [
        "/nowhere",
        "/conversation/",
        "/static/",
        "/static/x",
        "/static/../site.py",
        "//",
        "/api",
        "/api/",
        "/%00",
    ],
)
def test_an_unknown_address_is_a_plain_404(memory: refold.Memory, address: str) -> None:
    answer = client_of(memory).get("http://127.0.0.1:8123" + address)
    assert_plain_refusal(answer, (404,))


def test_an_unknown_panel_or_message_is_a_plain_404(memory: refold.Memory) -> None:
    client = client_of(memory)
    for address in ("/conversation?id=working&panel=%22x", "/message?id=working&position=99999"):
        assert_plain_refusal(client.get(address), (404,))


@pytest.mark.parametrize("panel", PANELS)
def test_an_unexpected_error_shows_nothing_of_it(
    memory: refold.Memory,
    panel: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(type(memory.conversation("working")), "row", fail)
    answer = client_of(memory).get(f"/conversation?id=working&panel={panel}")
    assert (answer.status_code, "secret" in answer.text) == (500, False)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert len([one for one in caplog.records if one.levelname == "ERROR"]) == 1
    assert "secret" not in caplog.text


def test_an_empty_log_has_a_list_and_nothing_else(tmp_path: Path) -> None:
    with open_quiet(tmp_path / "agent.db") as memory:
        client = client_of(memory)
        assert client.get("/").status_code == 200
        assert client.get("/?q=word").status_code == 200
        assert client.get("/api/conversations").json()["conversations"] == []
        for address in addresses(memory, "t"):
            if not address.startswith(("/?", "/api/conversations?")):
                assert_plain_refusal(client.get(address), (404,))


def test_an_erased_conversation_is_gone_from_every_page(tmp_path: Path) -> None:
    with open_quiet(tmp_path / "agent.db") as memory:
        memory.conversation("t").append(user("the word quokka"))
        memory.conversation("u").append([user("the word wombat"), user("a message of kiwi")])
        memory.erase_conversation("t")
        memory.conversation("u").erase(1)
        client = client_of(memory)
        for address in addresses(memory, "t"):
            answer = client.get(address)
            assert "quokka" not in answer.text
            if not address.startswith(("/?", "/api/conversations?")):
                assert_plain_refusal(answer, (404,))
        for address in addresses(memory, "u", q="kiwi"):
            assert "message of kiwi" not in client.get(address).text


def test_a_conversation_that_is_erased_while_it_is_shown_is_not_found(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise refold.ConversationGone("working")

    for method in ("context", "messages", "explain"):
        monkeypatch.setattr(type(memory.conversation("working")), method, gone)
    answer = client_of(memory).get("/conversation?id=working")
    assert_plain_refusal(answer, (404,))


def test_a_damaged_log_is_a_sentence_on_every_page(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with open_quiet(path) as memory:
        memory.conversation("t").append([user(f"word {n} " * 50) for n in range(20)])
        memory.conversation("well").append(user("word"))
        assert len(memory.conversations()) == 2
    set_state(path, 5, b"?")
    with open_quiet(path) as memory:
        client = client_of(memory)
        for address in addresses(memory, "t"):
            answer = client.get(address)
            if answer.status_code != 200:
                assert_plain_refusal(answer, (404, 500))
        for address in addresses(memory, "well"):
            answer = client.get(address)
            if answer.status_code not in (200, 404):
                # A search needs the index, which is of all conversations.
                assert_plain_refusal(answer, (500,))
        for address in ("/", "/conversation?id=well", "/conversation?id=well&panel=health&check=1"):
            assert client.get(address).status_code == 200
        guest = client_of(memory, lambda _: Access(owner="me"))
        refused = guest.get("/?q=word")
        assert_plain_refusal(refused, (500,))
        assert "'t'" not in unescape(refused.text)


def test_an_encrypted_log_is_shown_with_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFOLD_ENCRYPTION_KEY", "fTcCXuAXxnwKwvxHDcMsYmn7UnPzeqUoCeyGkQLGBkU=")
    with open_quiet(tmp_path / "agent.db") as memory:
        memory.conversation("t").append(user("the word"))
        client = client_of(memory)
        for address in addresses(memory, "t"):
            assert client.get(address).status_code == 200 or "/media" in address
        assert "the word" in client.get("/conversation?id=t").text


def test_half_a_character_is_no_error(tmp_path: Path) -> None:
    with open_quiet(tmp_path / "agent.db") as memory:
        memory.conversation("t").append(user(HALF))
        client = client_of(memory)
        assert "half \ufffd a word" in client.get("/conversation?id=t").text
        assert client.get("/api/history?id=t").json()["messages"][0]["message"]["content"] == HALF
        assert client.get("/request.json?id=t").json()["messages"]


@pytest.mark.parametrize(
    "mounted", ["/memory", "/a/b", "/m\N{LATIN SMALL LETTER E WITH ACUTE}moire"]
)
def test_below_a_path_every_link_stays_below_it(memory: refold.Memory, mounted: str) -> None:
    service = Starlette(routes=[Mount(mounted, app(memory, lambda _: True))])
    client = TestClient(service, follow_redirects=False)
    reached = set[str]()
    for address in addresses(memory, "split", position=300, check=""):
        answer = client.get(mounted + address)
        assert answer.status_code in (200, 404), address
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        if "html" in answer.headers["content-type"]:
            links = re.findall(r'(?:href|src|hx-get)="(/[^"]*)"', answer.text)
            reached |= {link.replace("&amp;", "&").partition("#")[0] for link in links}
    # Of the links that differ in a number only, one is followed.
    kinds = {re.sub(r"=\d+", "=N", link): link for link in sorted(reached)}
    assert len(kinds) > 12
    for link in kinds.values():
        assert TestClient(service).get(link).status_code in (200, 204), link
    refused = client.get(f"{mounted}/nowhere")
    assert_plain_refusal(refused, (404,))
    error = client.get(f"{mounted}/api/history?id=nowhere")
    assert (error.status_code, set(error.json())) == (404, {"error", "message"})
    assert client.post(f"{mounted}/").status_code == 405
