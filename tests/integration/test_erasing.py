"""What is erased is in no file: not in the log, its write-ahead log, the read models, nor in a fork."""

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

import refold
from refold.application.chat import Chat
from refold.application.memory import Memory
from refold.application.ports import SummaryDraft, SummaryRequest
from refold.domain.errors import ConversationGone, InvalidThreadId, UnknownMessage
from refold.domain.policy import CompactionPolicy
from refold.infrastructure.log.erasing import PENDING
from tests.support.fake_summarisers import HeldSummariser, source_text
from tests.support.legality import violations

SECRET = "Geheimnis-4711 käse 密码"
PATH = "/srv/geheim/xyz4711.txt"
FORMS = tuple(
    form.encode()
    for text in (SECRET, PATH, "Geheimnis-4711", "xyz4711")
    for form in (text, json.dumps(text)[1:-1])
)


class Quoting:
    """Repeats the beginning of everything that it is given."""

    name = "quoting"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        said = " ".join(line[:60] for line in source_text(request).splitlines())
        text = f"{request.previous or ''} {said}"[: 2 * request.limit_tokens]
        return SummaryDraft(text=text, complete=True, model="quoting", prompt_fingerprint="q")


class Failing(Quoting):
    """Fails with what it was given in its words."""

    name = "failing"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        raise RuntimeError(f"cannot work with {source_text(request)}")


def opened(folder: Path, **options: object) -> Memory:
    given: dict[str, object] = {"window": 3_000, "summariser": Quoting(), **options}
    return refold.open(folder / "a.db", **given)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "log"
    made.mkdir()
    return made


@pytest.fixture
def memory(folder: Path) -> Iterator[Memory]:
    with opened(folder) as made:
        yield made


def holding(folder: Path) -> dict[str, int]:
    """The files that hold the secret in any form, with how often."""
    found = {p.name: sum(map(p.read_bytes().count, FORMS)) for p in folder.iterdir()}
    return {name: count for name, count in found.items() if count}


def talk(chat: Chat, turns: int, secret_at: Sequence[int] = ()) -> None:
    """Turns of two messages; the user's of some say the secret, which is at twice their number."""
    for turn in range(turns):
        said = f"{SECRET}: never touch {PATH}" if turn in secret_at else f"look at file_{turn}.py"
        chat.append(
            [
                {"role": "user", "content": f"Please {said}. " + "word " * 40},
                {"role": "assistant", "content": f"It is done, turn {turn}. " + "blah " * 40},
            ]
        )
        chat.context()


def is_sound(memory: Memory, chat: Chat) -> None:
    found = memory.verify()
    assert found.ok, found.damage
    for version in range(1, chat.version + 1):
        request = chat.context(at=version).for_anthropic()
        assert violations(request, allow_pending_at_end=True) == []


def test_a_live_message_is_gone_from_every_file_at_once(folder: Path, memory: Memory) -> None:
    chat = memory.conversation("t")
    talk(chat, 3, [1])
    assert holding(folder)
    report = chat.erase(2, "asked")
    assert holding(folder) == {}
    assert report.complete
    assert report.positions == (2,)
    stub = chat.read(2)
    assert stub.erased
    assert stub.message.content == "[Content unavailable: refold://t/2]"
    assert stub.message.content in str(chat.context().messages)
    is_sound(memory, chat)


def test_a_covered_one_is_gone_from_all_that_was_made_from_it(folder: Path, memory: Memory) -> None:
    chat = memory.conversation("t")
    talk(chat, 30, [1])
    chat.pin(2)
    assert chat.explain(2, 3)[0].fate == "summarised"
    assert len(chat.summaries()) > 1
    assert any(SECRET in s.summary_text for s in chat.summaries())
    report = chat.erase(2)
    assert holding(folder) == {}
    places = {one.place for one in report.removed}
    assert places == {"message", "summary", "leaf", "ledger", "attempt", "pin", "read models"}
    assert chat.pins() == ()
    assert chat.explain(2, 3)[0].fate == "erased"
    memory.close()
    assert holding(folder) == {}
    with opened(folder) as again:
        is_sound(again, again.conversation("t"))
    assert holding(folder) == {}


def test_the_summary_is_made_anew_from_what_remains(memory: Memory) -> None:
    chat = memory.conversation("t")
    talk(chat, 30, [1])
    before = chat.context()
    assert before.summary is not None
    (rebuilt,) = chat.erase(2).rebuilt
    after = chat.context()
    assert after.summary is not None
    assert after.summary.summary_id == rebuilt.summary_id
    assert after.summary.coverage == before.summary.coverage
    assert after.summary.tokens <= before.summary.tokens
    assert after.tokens <= before.tokens
    assert {line.position for line in after.summary.ledger}.isdisjoint({2})
    assert "file_0.py" in str([line.text for line in after.summary.ledger])
    active = [s.summary_id for s in chat.summaries() if s.is_active]
    assert active == [rebuilt.summary_id]


def test_leaves_that_it_was_not_in_are_kept_as_they_are(memory: Memory) -> None:
    chat = memory.conversation("t")
    talk(chat, 40, [1])
    made = (chat.context(at=version).summary for version in range(1, chat.version + 1))
    leaves = list(dict.fromkeys(one.leaf.text for one in made if one and one.leaf))
    assert len(leaves) > 1
    chat.erase(2)
    summary = chat.context().summary
    assert summary is not None
    assert summary.leaf is not None
    assert leaves[0] not in summary.leaf.text
    assert all(leaf in summary.leaf.text for leaf in leaves[1:])


def test_the_conversation_goes_on_and_is_compacted_again(folder: Path, memory: Memory) -> None:
    chat = memory.conversation("t")
    talk(chat, 30, [1])
    chat.erase(2)
    talk(chat, 30)
    assert holding(folder) == {}
    is_sound(memory, chat)
    assert chat.revert_compaction().outcome == "reverted"
    is_sound(memory, chat)


def test_a_summary_made_by_an_erasure_is_not_undone(memory: Memory) -> None:
    chat = memory.conversation("t")
    talk(chat, 30, [1])
    chat.erase(2)
    version = chat.version
    result = chat.revert_compaction()
    assert (result.outcome, result.reason) == ("nothing_to_do", "erased")
    assert chat.version == version


def test_erasing_again_changes_nothing_and_says_so(memory: Memory) -> None:
    chat = memory.conversation("t")
    talk(chat, 30, [1])
    chat.erase([2, 4])
    version = chat.version
    again = chat.erase([2, "refold://t/4"])
    assert not again.changed
    assert again.already_erased == (2, 4)
    assert chat.version == version


def test_what_is_not_there_is_refused_and_nothing_is_erased(memory: Memory) -> None:
    chat = memory.conversation("t")
    talk(chat, 2, [1])
    with pytest.raises(UnknownMessage):
        chat.erase([2, 99])
    assert not chat.read(2).erased
    with pytest.raises(InvalidThreadId):
        memory.erase_conversation("nobody")


def test_the_words_of_a_failed_attempt_are_gone(folder: Path) -> None:
    with opened(folder, summariser=Failing(), window=100_000) as memory:
        chat = memory.conversation("t")
        talk(chat, 20, [1])
        result = chat.compact()
        assert result.outcome == "failed"
        assert SECRET in result.detail
        chat.erase(2)
        assert holding(folder) == {}
        is_sound(memory, chat)


def test_a_withdrawn_superseded_and_reverted_summary_is_gone(folder: Path, memory: Memory) -> None:
    chat = memory.conversation("t")
    talk(chat, 30, [1])
    assert chat.revert_compaction().outcome == "reverted"
    chat.erase(2)
    assert holding(folder) == {}
    is_sound(memory, chat)


def test_an_offloaded_result_is_gone_and_its_call_stays_paired(folder: Path) -> None:
    policy = CompactionPolicy(offload_tokens=100, giant_share=0.1)
    with opened(folder, policy=policy, window=8_000) as memory:
        chat = memory.conversation("t")
        chat.append({"role": "user", "content": "read it"})
        for n in range(12):
            call = {"type": "tool_use", "id": f"c{n}", "name": "read", "input": {"path": PATH}}
            told = {
                "type": "tool_result",
                "tool_use_id": f"c{n}",
                "content": SECRET + "word " * 600,
            }
            chat.append({"role": "assistant", "content": [call]})
            chat.append({"role": "user", "content": [told]})
            chat.context()
        assert {"offloaded", "condensed"} & {fate.fate for fate in chat.explain()}
        chat.erase(range(1, 25))
        assert holding(folder) == {}
        is_sound(memory, chat)
        assert chat.read(1).message.content == (
            {"type": "tool_use", "id": "c0", "name": "read", "input": {}},
        )


def test_its_copies_in_forks_go_with_it_in_whichever_it_is_erased(
    folder: Path, memory: Memory
) -> None:
    chat = memory.conversation("t")
    talk(chat, 30, [1, 25])
    early = chat.fork(at=20, thread_id="early")
    copy = chat.fork(thread_id="copy")
    copy.append({"role": "user", "content": "only here"})
    deeper = copy.fork(thread_id="deeper")
    report = deeper.erase(2)
    assert report.copies == ("copy", "early", "t")
    assert chat.erase(50).copies == ("copy", "deeper")
    assert holding(folder) == {}
    for one in (chat, early, copy, deeper):
        assert one.read(2).erased
        is_sound(memory, one)


def test_a_key_delivered_late_is_not_stored_again(folder: Path, memory: Memory) -> None:
    chat = memory.conversation("t")
    message = {"role": "user", "content": SECRET}
    chat.append(message, key="k1")
    chat.erase(0)
    stored = chat.append(message, key="k1")
    assert not stored.messages[0].new
    assert holding(folder) == {}


def test_a_summariser_that_answers_after_the_erasure_is_refused(folder: Path) -> None:
    held = HeldSummariser(Quoting())
    with opened(folder, summariser=held, window=100_000) as memory:
        chat = memory.conversation("t")
        talk(chat, 30, [1])
        results: list[str] = []
        late = threading.Thread(target=lambda: results.append(chat.compact().reason))
        late.start()
        assert held.started.wait(20)
        chat.erase(2)
        held.release()
        late.join(20)
        assert results == ["overtaken"]
        assert holding(folder) == {}
        assert {row.outcome for row in chat.compactions()} == {"failed"}
        is_sound(memory, chat)


def test_erasing_works_for_asyncio_as_well(folder: Path) -> None:
    async def erase() -> None:
        async with refold.aopen(folder / "a.db") as memory:
            chat = memory.conversation("t")
            await chat.append({"role": "user", "content": SECRET})
            assert (await chat.erase(0)).complete
            assert holding(folder) == {}
            assert (await memory.erase_conversation("t")).changed

    asyncio.run(erase())


def test_nothing_is_left_of_an_erased_conversation(folder: Path, memory: Memory) -> None:
    chat = memory.conversation("t")
    talk(chat, 30, [1, 28])
    chat.append({"role": "user", "content": SECRET}, key="k")
    chat.label(SECRET)
    other = memory.conversation("other")
    other.append({"role": "user", "content": "hello"})
    report = memory.erase_conversation("t", "asked")
    assert report.conversation
    assert report.complete
    assert holding(folder) == {}
    assert [row.thread_id for row in memory.conversations()] == ["other"]
    assert memory.verify().ok
    assert not memory.erase_conversation("t").changed
    attempts: list[Callable[[], object]] = [
        lambda: chat.append({"role": "user", "content": "again"}, key="k"),
        chat.context,
        lambda: chat.context(at=3),
        chat.compact,
        chat.revert_compaction,
        chat.fork,
        lambda: chat.pin("x"),
        lambda: chat.unpin("x"),
        lambda: chat.label("x"),
        lambda: chat.read(0),
        lambda: chat.erase(0),
    ]
    for attempt in attempts:
        with pytest.raises(ConversationGone):
            attempt()
    assert chat.messages() == []
    assert chat.explain() == ()
    memory.close()
    assert holding(folder) == {}


def test_a_fork_of_an_erased_conversation_keeps_only_what_was_said_there(
    folder: Path, memory: Memory
) -> None:
    chat = memory.conversation("t")
    talk(chat, 10, [1])
    fork = chat.fork(thread_id="f")
    fork.append({"role": "user", "content": "only here"})
    assert memory.erase_conversation("t").copies == ("f",)
    assert holding(folder) == {}
    assert [m.erased for m in fork.messages()] == [True] * 20 + [False]
    is_sound(memory, fork)


def test_erasing_a_fork_leaves_the_original(memory: Memory) -> None:
    chat = memory.conversation("t")
    talk(chat, 3, [1])
    chat.fork(thread_id="f")
    assert memory.erase_conversation("f").copies == ()
    assert not chat.read(2).erased


def test_a_reader_in_the_way_is_told_and_the_rest_is_done_later(folder: Path) -> None:
    with opened(folder) as memory:
        chat = memory.conversation("t")
        talk(chat, 3, [1])
        with closing(sqlite3.connect(folder / "a.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM stored_events").fetchall()
            report = chat.erase(2)
            assert not report.complete
            assert chat.read(2).erased
        assert chat.erase(2).complete
        assert holding(folder) == {}


def test_what_a_dead_process_left_is_removed_when_the_log_is_opened(folder: Path) -> None:
    code = """
import os, sys, refold
from refold.infrastructure.log.erasing import StreamEraser
memory = refold.open(sys.argv[1])
chat = memory.conversation("t")
chat.append([{"role": "user", "content": sys.argv[2]}, {"role": "user", "content": "more"}])
chat.messages()
StreamEraser.finish = lambda *_: os._exit(9)
chat.erase(0)
"""
    place = str(folder / "a.db")
    died = subprocess.run([sys.executable, "-c", code, place, SECRET], check=False)
    assert died.returncode == 9
    assert holding(folder)
    opened(folder).close()
    assert holding(folder) == {}
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute(f"SELECT count(*) FROM {PENDING}").fetchone() == (0,)


def test_another_memory_that_has_it_open_shows_it_no_more(folder: Path, memory: Memory) -> None:
    chat = memory.conversation("t")
    talk(chat, 3, [1])
    with opened(folder) as other:
        mine = other.conversation("t")
        assert SECRET in str(mine.context().messages)
        assert SECRET in str(mine.messages())
        chat.erase(2)
        assert SECRET not in str(mine.context().messages)
        assert SECRET not in str(mine.messages())
        assert mine.explain(2, 3)[0].fate == "erased"
        assert other.verify().ok
    assert holding(folder) == {}


def test_read_models_that_were_filled_while_it_was_erased_are_filled_again(
    folder: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = memory.conversation("t")
    chat.append([{"role": "user", "content": f"{SECRET} {n}"} for n in range(3)])
    with opened(folder) as other:
        from refold.infrastructure.views import views

        scan, erased = views.islice, list[bool]()

        def erasing(events: Iterator[object], most: int) -> Iterator[object]:
            # Rows were read from the log, the erasure comes, and then the rest is read.
            for number, event in enumerate(scan(events, most)):
                yield event
                if number == 0 and not erased:
                    erased.append(True)
                    later = threading.Thread(target=chat.erase, args=([0, 1, 2],))
                    later.start()
                    while chat.version < 6:
                        pass

        monkeypatch.setattr(views, "islice", erasing)
        assert SECRET not in str([row.text for row in other._core.views.messages("t", 0, 9)])  # pyright: ignore[reportPrivateUsage]
    assert erased
