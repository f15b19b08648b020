"""Forks, versions by time and differences, on a real log and on the command line."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.errors import ThreadExists
from refold.domain.errors import ConversationGone
from refold.domain.events import CompactionFailed, ConversationForked
from refold.infrastructure.event_store.store import SQLiteLog
from refold.testing.request_judge import preserved_thinking_violations
from tests.support.command_line import CONTROL, HOSTILE, Refold
from tests.support.fake_ports import Ticking
from tests.support.log_files import execute

LONG = "a long sentence about the parser and its many cases. " * 12


def open_log(path: Path) -> refold.Memory:
    return refold.open(path, window=8_000, clock=Ticking())


def talk_on(conversation: refold.ConversationMemory, start: int, turns: int) -> None:
    for n in range(start, start + turns):
        conversation.append({"role": "user", "content": f"question {n}: {LONG}"}, key=f"q{n}")
        conversation.append({"role": "assistant", "content": f"answer {n}: {LONG}"}, key=f"a{n}")


def shown(conversation: refold.ConversationMemory, at: int | None = None) -> object:
    context = conversation.context(at=conversation.version if at is None else at)
    return context.system, context.messages, context.tokens


def test_a_fork_is_the_conversation_as_it_was_and_stays_so_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with open_log(path) as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 0, 8)
        conversation.compact()
        talk_on(conversation, 8, 2)
        before, early = shown(conversation), shown(conversation, 10)
        fork = conversation.fork(thread_id="copy")
        old = conversation.fork(at=10)
        assert (shown(fork), shown(old)) == (before, early)
        assert old.thread_id.startswith("fork-")
        talk_on(fork, 10, 3)
        fork.compact()
        assert shown(conversation) == before
        assert fork.read("refold://copy/3").text == conversation.read(3).text
        after = shown(fork)
        assert memory.verify().ok
    with open_log(path) as memory:
        conversation, fork = memory.conversation("t"), memory.conversation("copy")
        assert (shown(conversation), shown(fork), shown(memory.conversation(old.thread_id))) == (
            before,
            after,
            early,
        )
        rows = {row.thread_id: (row.forked_from, row.forked_at) for row in memory.conversations()}
        assert rows == {"t": (None, None), "copy": ("t", 23), old.thread_id: ("t", 10)}
        assert [f.fate for f in fork.explain()].count("summarised") > 12


def test_what_was_delivered_before_a_fork_is_delivered_in_it(tmp_path: Path) -> None:
    with open_log(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 0, 3)
        fork = conversation.fork(at=4)
        again = fork.append({"role": "user", "content": f"question 1: {LONG}"}, key="q1")
        assert [m.new for m in again.messages] == [False]
        later = fork.append({"role": "user", "content": "question 2"}, key="q2")
        assert [m.new for m in later.messages] == [True]


def test_a_fork_of_a_fork_knows_both_sources(tmp_path: Path) -> None:
    with open_log(tmp_path / "a.db") as memory:
        talk_on(memory.conversation("t"), 0, 2)
        memory.conversation("t").fork(at=3, thread_id="b").fork(thread_id="c")
        memory.conversation("b").fork(at=2, thread_id="d")
        rows = {r.thread_id: (r.forked_from, r.forked_at) for r in memory.conversations()}
        assert rows == {"t": (None, None), "b": ("t", 3), "c": ("b", 4), "d": ("b", 2)}
    log = SQLiteLog(tmp_path / "a.db")
    assert set(log.forks()) == {("b", "t", 3), ("c", "t", 3), ("c", "b", 4), ("d", "b", 2)}
    log.close()


def test_an_attempt_under_way_is_given_up_in_the_copy_and_goes_on_in_the_source(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    with open_log(path) as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 0, 8)
        conversation.compact()
        # Version 17 is the request: what answered it came afterwards.
        fork = conversation.fork(at=17, thread_id="copy")
        assert fork.compact(force=True).outcome == "performed"
        assert len(conversation.summaries()) == len(fork.summaries()) == 1
    log = SQLiteLog(path)
    match [logged.event for logged in log.read("copy", 18, 19)]:
        case [ConversationForked(source="t", version=17), CompactionFailed(reason="abandoned")]:
            pass
        case other:
            pytest.fail(str(other))
    log.close()


def test_what_cannot_be_forked_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    with open_log(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        with pytest.raises(refold.InvalidSetting, match="nothing to fork"):
            conversation.fork()
        talk_on(conversation, 0, 2)
        for at in (0, 5, -1, True, 1.5, "2", datetime(2026, 1, 1)):
            with pytest.raises(refold.InvalidSetting):
                conversation.fork(at=at)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        with pytest.raises(refold.InvalidSetting, match="nothing to fork"):
            conversation.fork(at=datetime(2020, 1, 1, tzinfo=UTC))
        with pytest.raises(refold.InvalidThreadId):
            conversation.fork(thread_id=" ")
        memory.conversation("u").append({"role": "user", "content": "hello"})
        for taken in ("t", "u"):
            with pytest.raises(ThreadExists, match="another thread id"):
                conversation.fork(thread_id=taken)
        assert [row.messages for row in memory.conversations()] == [1, 4]
        assert memory.verify().ok


def test_an_event_that_was_changed_is_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with open_log(path) as memory:
        talk_on(memory.conversation("t"), 0, 4)
    change = "UPDATE stored_events SET state = replace(state, 'parser', 'farmer') WHERE rowid=3"
    execute(path, change.replace("replace(state", "replace(CAST(state AS TEXT)"))
    execute(path, "UPDATE stored_events SET state = CAST(state AS BLOB) WHERE rowid=3")
    with open_log(path) as memory:
        with pytest.raises(refold.LogDamaged, match="event 3"):
            memory.conversation("t").fork(thread_id="copy")
        with pytest.raises(refold.LogDamaged, match="event 3"):
            memory.conversation("t").context(at=4)
        assert memory.conversation("t").fork(at=2, thread_id="copy").version == 3
        assert memory.conversation("t").context(at=2).version == 2


def test_erased_text_is_in_no_fork_made_before_or_after(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with open_log(path) as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 0, 8)
        conversation.append({"role": "user", "content": "the word is swordfish"})
        conversation.compact()
        first = conversation.fork(thread_id="before")
        conversation.erase(16)
        second = conversation.fork(thread_id="after")
        third = conversation.fork(at=17, thread_id="as it was")
        for copy in (first, second, third):
            assert "swordfish" not in str(shown(copy))
            assert "Content unavailable" in copy.read(16).text
        assert memory.verify().ok
        conversation.fork(thread_id="gone")
        memory.conversation("gone").fork(thread_id="gone too")
    assert b"swordfish" not in path.read_bytes()
    with open_log(path) as memory:
        assert memory.verify().ok
        conversation = memory.conversation("t")
        assert shown(memory.conversation("gone too")) == shown(memory.conversation("gone"))


def test_an_erased_conversation_cannot_be_forked_or_compared(tmp_path: Path) -> None:
    with open_log(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 0, 2)
        fork = conversation.fork(thread_id="copy")
        memory.erase_conversation("t")
        for refused in (
            lambda: conversation.fork(),
            lambda: conversation.fork(at=2),
            lambda: conversation.diff(1, 2),
        ):
            with pytest.raises(ConversationGone):
                refused()
        del fork


def test_times_name_versions_also_when_the_clock_went_back(tmp_path: Path) -> None:
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    now = [start]
    with refold.open(tmp_path / "a.db", clock=lambda: now[0]) as memory:
        conversation = memory.conversation("t")
        for n, hours in enumerate((0, 2, 1)):
            now[0] = start + timedelta(hours=hours)
            conversation.append({"role": "user", "content": str(n)})

        def version(hours: float) -> int:
            return conversation.context(at=start + timedelta(hours=hours)).version

        assert [version(h) for h in (-1, 0, 0.5, 1, 1.5, 2, 99)] == [0, 1, 1, 3, 3, 3, 3]
        elsewhere = datetime.fromisoformat("2026-03-01T13:30:00+01:00")
        assert conversation.context(at=elsewhere).version == 1
        with pytest.raises(refold.InvalidSetting, match=r"\+00:00"):
            conversation.context(at=datetime(2026, 3, 1))


def test_times_at_the_ends_of_the_calendar_are_before_and_after_everything(tmp_path: Path) -> None:
    west = timezone(timedelta(hours=-12))
    with open_log(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 0, 1)
        assert (
            conversation.context(at=datetime.max.replace(tzinfo=west)).version
            == conversation.version
        )
        assert conversation.context(at=datetime.min.replace(tzinfo=UTC)).version == 0
        with pytest.raises(refold.InvalidSetting, match="versions 0 to 2"):
            conversation.context(at=10**30)


def test_a_difference_says_what_became_of_each_message(tmp_path: Path) -> None:
    with open_log(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 0, 8)
        conversation.compact()
        talk_on(conversation, 8, 1)
        found = conversation.diff(14, conversation.version)
        assert found.summary_before is None
        assert found.summary_after == conversation.summaries()[0].summary_id
        assert {e.what: e.count for e in found.events} == {
            "message appended": 4,
            "compaction requested": 1,
            "notes flushed": 1,
            "compaction performed": 1,
        }
        fates = {c.position: (c.before, c.after) for c in found.changes}
        covered = conversation.summaries()[0].covered_count
        assert [p for p, f in fates.items() if f == ("full", "summarised")] == list(range(covered))
        assert [p for p, f in fates.items() if f[0] is None] == [14, 15, 16, 17]
        assert found.freed == found.tokens_before - found.tokens_after
        assert "+memory: [Conversation Summary]" in found.unified
        assert '-user: {"type": "text", "text": "question 0' in found.unified

        back = conversation.diff(conversation.version, 14)
        assert {c.position: (c.after, c.before) for c in back.changes} == fates
        assert (back.freed, back.events) == (-found.freed, found.events)
        same = conversation.diff(5, 5)
        assert (same.unified, same.changes, same.events) == ("", (), ())
        conversation.revert_compaction()
        undone = conversation.diff(19, conversation.version)
        assert {(c.before, c.after) for c in undone.changes if c.position < covered} == {
            ("summarised", "full")
        }


def test_pictures_are_named_in_a_difference(tmp_path: Path) -> None:
    with open_log(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 100}
        conversation.append({"role": "user", "content": [{"type": "image", "source": source}]})
        found = conversation.diff(0, 1)
        assert "1,100 characters, SHA-256" in found.unified
        assert "iVBORw0KGgo" not in found.unified


async def _twins(path: Path) -> None:
    async with await refold.aopen(path, window=8_000) as memory:
        conversation = memory.conversation("t")
        await conversation.append({"role": "user", "content": "hello"})
        fork = await conversation.fork(at=1, thread_id="copy")
        await fork.append({"role": "assistant", "content": "hi"})
        assert (await fork.diff(1, 3)).tokens_after > (await conversation.diff(0, 1)).tokens_after
        now = datetime.now(UTC)
        assert (await conversation.context(at=now)).version == 1


def test_the_same_with_asyncio(tmp_path: Path) -> None:
    asyncio.run(_twins(tmp_path / "a.db"))


def test_fork_and_diff_on_the_command_line(refold: Refold, stored: Path) -> None:
    del stored
    forked = refold("fork", "talk", "copy", "--at", "70")
    assert forked.code == 0
    assert "as talk was at version 70" in forked.out
    answer = refold("fork", "talk", "--at", "2999-01-01T00:00:00Z", "--json").answer
    assert answer["forked_from"] == "talk"
    assert refold("fork", "talk", "copy").code == 2
    newest = refold("context", "talk", "--json").answer["version"]
    compared = refold("diff", "talk", "70", newest)
    assert "summarised" in compared.out
    assert "lines of the request were added" in compared.out
    full = refold("diff", "talk", "70", newest, "--full").out
    assert len(full.splitlines()) > len(compared.out.splitlines())
    told = refold("diff", "talk", newest, "70", "--json").answer
    assert (told["before"], told["after"], told["freed"] < 0) == (newest, 70, True)
    assert refold("context", "talk", "--at", "2026-01-01T99").code == 2
    assert refold("diff", "talk", "1", "yesterday").code == 2
    early = refold("context", "talk", "--at", "2000-01-01T00:00:00Z", "--json").answer
    assert early["version"] == 0


def test_texts_in_a_difference_cannot_command_the_terminal(refold: Refold, tmp_path: Path) -> None:
    with open_log(tmp_path / "agent.db") as memory:
        memory.conversation("t").append({"role": "user", "content": f"{HOSTILE} [bold]x[/bold]"})
    for words in (("diff", "t", "0", "1"), ("diff", "t", "0", "1", "--full")):
        ran = refold(*words)
        assert ran.code == 0
        assert not CONTROL.search(ran.out.replace("\n", ""))
        assert ("[bold]x[/bold]" in ran.out) == ("--full" in words)


@pytest.mark.parametrize("kind", ["preview", "unknown block"])
@pytest.mark.filterwarnings("ignore::refold.UnknownBlockWarning")
def test_a_fork_shows_no_thinking_that_was_signed_after_addresses_of_its_source(kind: str) -> None:
    model, requests = "claude-opus-5-5", list[dict[str, Any]]()
    large = "a line of the log\n" * 6_000
    said: list[dict[str, Any]] = [
        {"type": "text", "text": "Look." if kind == "unknown block" else large}
    ]
    if kind == "unknown block":
        said.append({"type": "future_block", "text": "from the future"})
    with refold.open(":memory:", window=16_000) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": said})
        for number in range(3):
            sent = conversation.context(model=model).for_anthropic()
            thought = {"type": "thinking", "thinking": "Hm.", "signature": f"c2ln{number:04}"}
            answer = [thought, {"type": "text", "text": f"Done with {number}."}]
            requests.append({**sent, "answer": answer})
            conversation.append({"role": "assistant", "content": answer})
            conversation.append({"role": "user", "content": "Go on."})
        assert "'thinking'" in str(conversation.context(model=model).messages)
        copy = conversation.fork()
        requests.append(copy.context(model=model).for_anthropic())
        assert "refold://t/0" not in str(requests[-1])
        assert preserved_thinking_violations(requests, model=model) == []
        new = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmV3"}
        copy.append({"role": "assistant", "content": [new, {"type": "text", "text": "Done."}]})
        copy.append({"role": "user", "content": "And now?"})
        assert "c2lnbmV3" in str(copy.context(model=model).messages)
