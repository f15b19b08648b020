"""The page of all conversations: its orders, owners, marks and search, and the work that a page takes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import refold
import refold.inspector
from refold.application.api.memory import Memory
from refold.infrastructure.projection_store import view_answers, view_folds
from refold.infrastructure.projection_store.row_checksums import open_row
from tests.support.fake_summarisers import RaisingSummariser


@pytest.fixture
def client(memory: Memory) -> TestClient:
    return TestClient(refold.inspector.app(memory, lambda _: True))


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[Memory]:
    """A memory whose summaries cannot be made."""
    with refold.open(
        tmp_path / "failing.db",
        window=4_000,
        summariser=RaisingSummariser("overloaded"),
        background=False,
    ) as opened:
        yield opened


def say(memory: Memory, thread_id: str, *words: str, owner: str | None = None) -> None:
    conversation = memory.conversation(thread_id, owner=owner)
    for number, one in enumerate(words):
        role = "assistant" if number % 2 else "user"
        conversation.append({"role": role, "content": one})


def listed(page: str) -> list[str]:
    """The ids of the conversations in the rows of a page, in their order."""
    body = page.partition("<tbody>")[2]
    return re.findall(r'<th scope="row"><a href="/conversation\?id=([^&]*)&', body)


def test_an_empty_log_says_how_to_begin(client: TestClient) -> None:
    page = client.get("/").text
    assert "no conversations yet" in page
    assert "refold import" in page
    assert "refold demo" in page
    assert "<table" not in page


def test_each_head_leads_to_its_order(memory: Memory, client: TestClient) -> None:
    say(memory, "old", "a " * 300)
    say(memory, "young", "a")
    heads = client.get("/").text.partition("<thead>")[2].partition("</thead>")[0]
    assert re.findall(r'<a href="/([^"]*)">', heads) == [
        "?order=messages",
        "?order=size",
        "?order=compactions",
        "?order=failures",
        "?order=compacted",
        "",
        "?order=age",
    ]
    assert listed(client.get("/").text) == ["young", "old"]
    for order in ("size", "age"):
        page = client.get(f"/?order={order}").text
        assert listed(page) == ["old", "young"]
        assert page.count("aria-sort") == 1


def test_an_unknown_order_is_refused_in_a_sentence(client: TestClient) -> None:
    answer = client.get("/?order=newest")
    assert answer.status_code == 404
    assert "there are activity, messages, size, age" in answer.text


def test_an_owner_leads_to_what_is_theirs(memory: Memory, client: TestClient) -> None:
    say(memory, "a", "hello", owner="ann")
    say(memory, "b", "hello", owner="bob")
    assert 'href="/?owner=ann"' in client.get("/").text
    page = client.get("/?owner=ann").text
    assert listed(page) == ["a"]
    assert 'href="/?order=size&amp;owner=ann"' in page
    assert 'href="/"' in page.partition("all owners")[0].rpartition("<p")[2]


def test_a_reader_of_one_owner_sees_that_list_whatever_the_address_says(memory: Memory) -> None:
    say(memory, "a", "hello", owner="ann")
    say(memory, "b", "hello", owner="bob")
    access = refold.inspector.Access(owner="ann")
    client = TestClient(refold.inspector.app(memory, lambda _: access))
    for address in ("/", "/?owner=bob"):
        assert listed(client.get(address).text) == ["a"]
    found = client.get("/api/conversations?owner=bob").json()
    assert [one["id"] for one in found["conversations"]] == ["a"]


def test_a_failed_compaction_is_counted_and_marked(failing: Memory) -> None:
    say(failing, "t", *["some words " * 40] * 8)
    failing.conversation("t").compact(force=True)
    client = TestClient(refold.inspector.app(failing, lambda _: True))
    row = client.get("/?order=failures").text.partition("<tbody>")[2]
    assert '<td class="n" data-name="failed">1</td>' in row
    assert re.search(r'class="badge c-damage b-damage" title="overloaded">failed</span>', row)
    (found,) = client.get("/api/conversations").json()["conversations"]
    assert (found["failed_compactions"], found["last_outcome"]) == (1, "failed")


def test_a_fork_leads_to_its_source(memory: Memory, client: TestClient) -> None:
    say(memory, "a", "hello")
    memory.conversation("a").fork(thread_id="b")
    assert 'fork of <a href="/conversation?id=a&amp;panel=timeline">' in client.get("/").text


def test_pages_go_on_to_the_last_and_not_past_it(memory: Memory, client: TestClient) -> None:
    for number in range(205):
        say(memory, f"t{number:03}", "hello")
    first, last = client.get("/?order=age").text, client.get("/?order=age&start=200").text
    assert 'rel="next" href="/?order=age&amp;start=100"' in first
    assert listed(last) == [f"t{number}" for number in range(200, 205)]
    assert 'rel="next"' not in last
    for past in (205, 900, 10**12 - 1):
        assert listed(client.get(f"/?order=age&start={past}").text) == listed(last)
    ids: list[str] = []
    start: int | None = 0
    while start is not None:
        answer = client.get(f"/api/conversations?order=age&limit=60&start={start}").json()
        ids += [one["id"] for one in answer["conversations"]]
        start = answer["next"]
    assert ids == [f"t{number:03}" for number in range(205)]


def test_hits_are_grouped_by_conversation(memory: Memory, client: TestClient) -> None:
    say(memory, "a", "The quokka lives on an island.", "A quokka is small.")
    say(memory, "b", "No animals here, only one quokka.")
    page = client.get("/?q=quokka").text
    assert "in 2 conversations" in page
    assert page.count('<section class="found">') == 2
    assert page.count(">in the request<") == 3
    assert "The quokka lives on an island." in page


def test_a_search_without_hits_says_so(memory: Memory, client: TestClient) -> None:
    say(memory, "a", "hello")
    page = client.get("/?q=zzqqxx").text
    assert "Nothing was found for “zzqqxx”" in page
    assert "<section" not in page


def test_a_search_in_the_list_of_an_owner_stays_there(memory: Memory, client: TestClient) -> None:
    say(memory, "a", "the quokka", owner="ann")
    say(memory, "b", "the quokka", owner="bob")
    memory.conversation("b").append({"role": "user", "content": "quokka?"}, owner="ann")
    page = client.get("/?q=quokka&owner=ann").text
    assert re.findall(r'<bdi class="id">(\w+)</bdi>', page) == ["a"]


PAGES = (
    "/",
    "/?order=failures",
    "/?order=size&start=50",
    "/?q=quokka",
    "/api/conversations?limit=50",
)


def test_rows_and_bytes_of_a_page_do_not_grow_with_the_log(
    memory: Memory, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[str]()

    def opened(table: str, row: Any) -> Any:
        read.append(table)
        return open_row(table, row)

    for module in (view_answers, view_folds):
        monkeypatch.setattr(module, "open_row", opened)
    found: list[dict[str, tuple[int, int]]] = []
    made = 0
    for count in (200, 5_000):
        for number in range(made, count):
            say(memory, f"t{number:05}", f"a quokka, number {number % 100:05}")
        made = count
        costs: dict[str, tuple[int, int]] = {}
        for page in PAGES:
            client.get(page)
            read.clear()
            size = len(re.sub(rb"\d[\d,]*", b"0", client.get(page).content))
            costs[page] = len(read), size
        found.append(costs)
    for page in PAGES:
        (rows, size), (more_rows, more_size) = found[0][page], found[1][page]
        assert rows == more_rows, page
        assert abs(size - more_size) <= 300, page
