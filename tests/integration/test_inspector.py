"""The pages of the inspector, asked without a browser."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

import refold.inspector
from refold.application.api.memory import Memory
from refold.application.api.results import StoredMessage
from refold.application.conversation.transcripts import RecordedMessage
from refold.domain.messages import Message
from refold.infrastructure.inspector.message_views import (
    LEAST_FOLDED,
    SHOWN_AT_ONCE,
    message_views,
)
from refold.infrastructure.inspector.panels import PANELS
from refold.infrastructure.inspector.summaries_panel import new_starts
from tests.support.counted_reads import counted_reads
from tests.support.inspected import assistant, call, client_of, open_quiet, result, user


@pytest.fixture
def client(memory: Memory) -> TestClient:
    """Return a client that may read everything."""
    return TestClient(refold.inspector.app(memory, lambda _: True))


def test_the_list_leads_to_the_messages_of_a_conversation(
    memory: Memory, client: TestClient
) -> None:
    memory.conversation("a/b?c").append({"role": "user", "content": "Where is <b>Ada</b>?"})
    listed = client.get("/").text
    assert 'href="/conversation?id=a%2Fb%3Fc&amp;panel=timeline"' in listed
    page = client.get("/conversation?id=a%2Fb%3Fc").text
    assert "Where is &lt;b&gt;Ada&lt;/b&gt;?" in page


def test_a_conversation_that_does_not_exist_is_not_made(memory: Memory, client: TestClient) -> None:
    assert client.get("/conversation?id=nothing").status_code == 404
    assert not memory.conversations()


READ_WHOLE = ("why", "cache")
"""Panels that read the whole conversation: where a value was, and what each request kept of the one before."""
WORDS = "word " * 40
QUERIES = {"recall": "port 17", "why": "17"}


@pytest.mark.slow
def test_a_page_reads_and_renders_as_much_of_a_long_conversation_as_of_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, work = counted_reads(monkeypatch), dict[str, list[dict[str, int]]]()
    for size in (600, 3_000):
        with open_quiet(tmp_path / f"{size}.db", 12_000) as memory:
            conversation = memory.conversation("t")
            for start in range(0, size, 50):
                said = [
                    (user, assistant)[n % 2](f"Port {n}. {WORDS}") for n in range(start, start + 50)
                ]
                conversation.append(said, recorded=True)
                conversation.context()
            browser = client_of(memory)
            for panel in PANELS:
                address = "/conversation?" + urlencode(
                    {"id": "t", "panel": panel, "q": QUERIES.get(panel, "")}
                )
                assert browser.get(address).status_code == 200  # Fills caches.
                counted.clear()
                page = browser.get(address)
                work.setdefault(panel, []).append({**counted, "bytes": len(page.content)})
    for panel, (short, long) in work.items():
        assert short["renders"] == long["renders"] <= 3, panel
        assert max(short["bytes"], long["bytes"]) <= 300_000, panel
        if panel not in READ_WHOLE:
            assert long["events"] <= short["events"] + 10 <= 100, panel
            assert long["messages"] <= 1.1 * short["messages"], panel
            assert long["rows"] <= short["rows"] + 125, panel


def test_a_log_of_a_smaller_window_says_how_to_see_its_limits(tmp_path: Path) -> None:
    path, hint = tmp_path / "agent.db", "If the agent has a smaller window"
    with open_quiet(path, 8_000) as memory:
        conversation = memory.conversation("t")
        for n in range(80):
            conversation.append([user(f"Port {n}. {WORDS}"), assistant(f"Noted {n}. {WORDS}")])
            conversation.context()
        assert hint not in client_of(memory).get("/conversation?id=t").text
    with open_quiet(path, 200_000) as memory:
        assert hint in client_of(memory).get("/conversation?id=t").text
        memory.conversation("new").append(user("Hello"))
        assert hint not in client_of(memory).get("/conversation?id=new").text


def test_the_page_of_a_message_has_all_of_it_and_says_how_to_get_it_back(tmp_path: Path) -> None:
    with open_quiet(tmp_path / "agent.db", 8_000) as memory:
        conversation = memory.conversation("a b")
        long = "".join(f"line {n}\n" for n in range(8_000))
        conversation.append(
            [user("Read it."), call(1, "read", {}), result(1, long), assistant("Done.")]
        )
        for n in range(60):
            conversation.append([user(f"Port {n}. {WORDS}"), assistant(f"Noted {n}. {WORDS}")])
            conversation.context()
        page = client_of(memory).get("/message?id=a%20b&position=2").text
    assert "line 7999" in page
    assert "The request does not have it" in page
    assert "appended as the result of a tool" in page
    assert "refold://a%20b/2" in page
    assert "refold pin &#39;a b&#39; 2" in page


def test_commands_of_pages_can_be_typed_for_an_id_that_looks_like_an_option(
    tmp_path: Path,
) -> None:
    with open_quiet(tmp_path / "agent.db", 8_000) as memory:
        conversation = memory.conversation("-x")
        conversation.append(
            [user("Read it."), call(1, "read", {}), result(1, "port 5433 " + "line\n" * 8_000)]
        )
        conversation.append(assistant("Done."))
        for n in range(60):
            conversation.append([user(f"Port {n}. {WORDS}"), assistant(f"Noted {n}. {WORDS}")])
            conversation.context()
        client = client_of(memory)
        page = client.get("/message?id=-x&position=2").text
        why = client.get("/conversation?id=-x&panel=why&q=port+5433").text
    assert "refold read -- -x 2" in page
    assert "refold pin -- -x 2" in page
    assert "refold recall -- -x &#39;port 5433&#39;" in why
    assert not re.search(r"refold \w+ -x", why)


BEGAN = datetime(2019, 5, 4, 10, tzinfo=UTC)


def fill_compacted(path: Path) -> int:
    """Play a recording of 2019 with several compactions, and return how many."""
    with open_quiet(path, 8_000) as memory:
        conversation = memory.conversation("t")
        for n in range(240):
            note = f"The lock file of job {n} is /var/run/job-{n}.lock on port {7_000 + n}. {WORDS}"
            message = (user(note), assistant(f"Noted {n}. {WORDS}"))[n % 2]
            said = RecordedMessage(
                message=Message.model_validate(message),
                key=f"{n}",
                at=BEGAN + timedelta(minutes=n),
            )
            conversation.append_recorded([said])
            conversation.context()
        return len(conversation.summaries())


@pytest.fixture
def compacted(tmp_path: Path) -> Iterator[Memory]:
    """A memory with one conversation that was compacted several times."""
    path = tmp_path / "agent.db"
    fill_compacted(path)
    with open_quiet(path, 8_000) as memory:
        yield memory


def test_the_losses_of_all_compactions_are_on_one_page_and_none_is_there_twice(
    tmp_path: Path,
) -> None:
    path = tmp_path / "agent.db"
    count = fill_compacted(path)
    assert count > 2
    with open_quiet(path, 8_000) as memory:
        browser = client_of(memory)
        page = browser.get("/conversation?id=t&panel=summaries").text
        (link,) = re.findall(r'href="([^"]*losses=1)"', page)
        losses = browser.get(unescape(link)).text
        ends = [one.first_kept_index for one in memory.conversation("t").summaries()]
    found = re.findall(r">messages (\d+) to (\d+)</a>: <b>", losses)
    starts = [0, *ends[:-1]]
    expected = [(start, end - 1) for start, end in zip(starts, ends, strict=True)]
    assert [tuple(map(int, one)) for one in reversed(found)] == expected


def test_a_summary_is_first_compared_with_the_messages_that_it_is_the_first_to_cover(
    compacted: Memory,
) -> None:
    browser = client_of(compacted)
    page = browser.get("/conversation?id=t&panel=summaries").text
    *_, before, newest = compacted.conversation("t").summaries()
    new = f"in messages {before.first_kept_index} to {newest.compact_up_to_index}, which no"
    assert new in page
    (link,) = re.findall(r'href="([^"]*)"[^>]*>Compare with older messages', page)
    assert f"to {before.compact_up_to_index}: " in browser.get(unescape(link)).text


def test_after_a_reverted_compaction_the_next_is_again_the_first_to_cover_its_messages(
    compacted: Memory,
) -> None:
    conversation = compacted.conversation("t")
    *_, kept, _reverted = conversation.summaries()
    conversation.revert_compaction()
    assert conversation.compact().outcome == "performed"
    starts = new_starts(conversation.summaries())
    assert [*starts.values()][-2:] == [kept.first_kept_index] * 2


def test_a_compaction_says_after_which_message_it_was_and_when_that_was_said(
    compacted: Memory,
) -> None:
    browser = client_of(compacted)
    pages = [
        browser.get(f"/conversation?id=t&panel=summaries{more}").text for more in ("", "&losses=1")
    ]
    count = compacted.conversation("t").summaries()[-1].message_count
    assert count
    said_at = BEGAN + timedelta(minutes=count - 1)
    assert f"after message {count - 1}, {said_at:%Y-%m-%d %H:%M:%S}" in pages[0]
    assert f"after message {count - 1}, {said_at:%Y-%m-%d %H:%M:%S}" in pages[1]


def test_a_request_is_found_by_the_position_of_its_last_message(compacted: Memory) -> None:
    browser, version = client_of(compacted), compacted.conversation("t").read(150).version
    assert version != 151
    pages = [
        browser.get(f"/conversation?id=t&panel=request&{at}").text
        for at in ("message=150", f"at={version}")
    ]
    assert "Noted 149" in pages[0]
    assert "job 152" not in pages[0]
    assert pages[0] == pages[1]
    assert browser.get("/conversation?id=t&message=240").status_code == 404


def test_the_legend_of_an_earlier_version_counts_what_had_happened_by_then(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    count = fill_compacted(path)
    with open_quiet(path, 8_000) as memory:
        browser, second = client_of(memory), memory.conversation("t").summaries()[1].version
        legend = re.compile(r"compaction <b>(\d+)</b>([^<]*)<")
        (now,) = legend.findall(browser.get("/conversation?id=t").text)
        (then,) = legend.findall(browser.get(f"/conversation?id=t&at={second}").text)
    assert now == (f"{count}", "")
    assert then == ("2", f" of {count}")


def test_few_characters_are_not_folded() -> None:
    def blocks_of(length: int) -> Iterator[tuple[int, int, int]]:
        message = Message(role="user", content="x" * length)
        stored = StoredMessage(
            position=0, message_id="m", version=1, message=message, at="", tokens=1
        )
        (view,) = message_views([stored], {}, budget=None)
        yield from ((len(one.head), one.folded, one.left_out) for one in view.blocks)

    assert [*blocks_of(SHOWN_AT_ONCE + LEAST_FOLDED)] == [(620, 0, 0)]
    assert [*blocks_of(SHOWN_AT_ONCE + LEAST_FOLDED + 1)] == [(500, 121, 0)]
