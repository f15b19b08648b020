"""What was stored names its version, and versions, positions and times name the same moments."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.conversation.transcripts import RecordedMessage
from refold.domain.messages import Message
from tests.support.command_line import talk
from tests.support.log_files import execute

LONG_AGO = datetime(2025, 9, 3, 10, 0, tzinfo=UTC)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[refold.Memory]:
    with refold.open(tmp_path / "a.db", window=8_000) as made:
        yield made


@pytest.fixture
def conversation(memory: refold.Memory) -> refold.ConversationMemory:
    """Eighty messages, compacted once."""
    made = memory.conversation("t")
    made.append(talk(20))
    made.compact()
    return made


def asked(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def imported(memory: refold.Memory) -> refold.ConversationMemory:
    """Ten messages, written a minute apart long ago and stored now, and compacted now."""
    conversation = memory.conversation("old")
    conversation.append_recorded(
        [
            RecordedMessage(
                message=Message(
                    role="user" if n % 2 == 0 else "assistant", content=f"words {n} " * 40
                ),
                key=f"k{n}",
                at=LONG_AGO + timedelta(minutes=n),
            )
            for n in range(10)
        ]
    )
    return conversation


def test_all_that_is_read_back_names_its_version(conversation: refold.ConversationMemory) -> None:
    stored = conversation.messages(70, 75)
    assert [m.version for m in stored] == list(range(71, 76))
    assert [r.version for r in conversation.query(start=70, stop=75).records] == list(range(71, 76))
    (hit,) = conversation.recall("Answer 7", limit=1)
    assert hit.version == conversation.read(hit.position).version == hit.position + 1
    assert conversation.read_part(hit.address).version == hit.version
    assert conversation.messages(79)[0].version == 80 < conversation.version


def test_a_position_names_the_moment_right_after_its_message(
    conversation: refold.ConversationMemory,
) -> None:
    version = conversation.read(30).version
    assert conversation.context(position=30).messages == conversation.context(at=version).messages
    assert conversation.context(position=30).version == version
    assert len(conversation.fork(position=30).messages()) == 31
    with pytest.raises(refold.InvalidSetting, match="give only one of them"):
        conversation.context(at=3, position=4)
    for position in (80, -1):
        with pytest.raises(refold.UnknownMessage):
            conversation.fork(position=position)
    with pytest.raises(refold.InvalidSetting, match="not a position"):
        conversation.context(position="3")  # type: ignore[arg-type]


def test_asyncio_takes_positions_as_well(tmp_path: Path) -> None:
    async def run() -> None:
        async with refold.aopen(tmp_path / "b.db") as memory:
            conversation = memory.conversation("t")
            await conversation.append(talk(3))
            assert (await conversation.context(position=2)).version == 3
            fork = await conversation.fork(position=2)
            assert len(await fork.messages()) == 3
            parts = await conversation.request_parts(await conversation.context())
            assert sum(part.tokens for part in parts) > 0
            assert (await conversation.explain(at=2))[-1].position == 1

    asyncio.run(run())


def test_a_time_means_the_time_that_messages_show(memory: refold.Memory) -> None:
    conversation = imported(memory)
    shown = conversation.messages()[4].at
    assert shown == "2025-09-03T10:04:00.000000Z"
    moment = datetime.fromisoformat(shown)
    assert conversation.context(at=moment).version == 5
    assert len(conversation.fork(at=moment).messages()) == 5
    assert conversation.context(at=moment + timedelta(seconds=59)).version == 5
    assert conversation.context(at=moment - timedelta(seconds=1)).version == 4
    assert conversation.context(at=LONG_AGO - timedelta(days=1)).version == 0
    assert [f.position for f in conversation.explain(at=moment)] == [0, 1, 2, 3, 4]
    assert conversation.diff(moment, conversation.version).before == 5


def test_a_value_came_in_at_the_time_that_its_message_shows(memory: refold.Memory) -> None:
    conversation = imported(memory)
    came = conversation.why("words 4").changes[0]
    assert (came.cause, came.at) == ("appended", conversation.read(4).at)


def test_what_was_decided_later_is_not_seen_at_the_time_of_the_messages(
    memory: refold.Memory,
) -> None:
    conversation = imported(memory)
    pin = conversation.pin(0)
    last = datetime.fromisoformat(conversation.messages()[-1].at)
    assert conversation.context(at=last).version == 10
    assert conversation.context(at=datetime.now(UTC)).version == conversation.version == 11
    assert pin


def test_live_messages_and_decisions_keep_their_times(
    conversation: refold.ConversationMemory,
) -> None:
    before = datetime.now(UTC)
    conversation.append({"role": "user", "content": "one more"})
    assert conversation.context(at=before).version == conversation.version - 1
    assert conversation.context(at=datetime.now(UTC)).version == conversation.version


def test_one_message_has_one_fate_whoever_is_asked(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    conversation.append({"role": "system", "content": "Only preamble words here."})
    conversation.append(talk(20))
    conversation.pin(5)
    conversation.compact()
    used: dict[str, object] = {"type": "tool_use", "id": "big", "name": "look", "input": {}}
    conversation.append({"role": "assistant", "content": [used]})
    big = "row of a table " * 3_000
    conversation.append(
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "big", "content": big}],
        }
    )
    conversation.context()
    conversation.erase(8)
    told = {fate.position: fate.fate for fate in conversation.explain()}
    assert {"preamble", "pinned", "summarised", "full", "erased"} <= set(told.values())
    said = {
        record.position: record.fate
        for begin in range(0, len(told), 40)
        for record in conversation.query(
            start=begin, stop=begin + 40, limit=200, max_tokens=50_000
        ).records
    }
    assert said == {position: told[position] for position in said}
    assert len(said) > 60
    for question in ("preamble words", "Question 1", "Answer 7", "row of a table"):
        for hit in conversation.recall(question, limit=10):
            assert hit.fate == told[hit.position]
    for position in told:
        assert conversation.read_part(position).fate == told[position]


def test_whether_a_message_is_archived_stands_at_the_message(
    conversation: refold.ConversationMemory, tmp_path: Path
) -> None:
    (summary,) = conversation.summaries()
    covered = {f.position for f in conversation.explain() if f.fate == "summarised"}
    assert covered
    stored = conversation.messages()
    assert {m.position for m in stored if m.is_archived} == covered
    assert {m.summary_id for m in stored if m.is_archived} == {summary.summary_id}
    in_file = asked(tmp_path / "a.views.db", "SELECT position, summary_id FROM archived_messages")
    assert {row[0] for row in in_file} == covered
    conversation.revert_compaction()
    assert not any(m.is_archived for m in conversation.messages())


def test_a_summary_says_how_many_messages_there_were_and_which_is_kept_first(
    conversation: refold.ConversationMemory,
) -> None:
    conversation.append({"role": "user", "content": "one more"})
    (summary,) = conversation.summaries()
    assert summary.message_count == 80
    assert summary.first_kept_index == summary.compact_up_to_index + 1
    (mark,) = [m.mark for m in conversation.messages() if m.mark]
    assert (mark.message_count, mark.first_kept_index) == (80, summary.first_kept_index)
    tail = conversation.messages()[summary.first_kept_index :]
    assert tail[0].mark == mark
    assert not any(m.is_archived for m in tail)


def test_a_conversation_has_the_times_of_its_messages(memory: refold.Memory) -> None:
    conversation = imported(memory)
    (row,) = memory.conversations()
    assert row.created_at == conversation.messages()[0].at
    assert row.last_activity == conversation.messages()[-1].at
    assert row.title.startswith("words 0 words 0")
    memory.replay()
    assert memory.conversations() == [row]
    assert memory.verify().ok


def test_the_first_words_are_a_persons_if_it_is_known(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    conversation.append({"role": "user", "content": "A skill was loaded."}, author="program")
    conversation.append({"role": "user", "content": "Why is\nthe build red?"}, author="person")
    (row,) = memory.conversations()
    assert (row.title, row.first_words_at) == ("Why is the build red?", 1)
    conversation.erase(1)
    (row,) = memory.conversations()
    assert (row.first_words, row.title) == (None, "")
    assert memory.verify().ok
    memory.replay()
    assert memory.conversations() == [row]


@pytest.mark.slow
def test_a_gap_is_told_once(tmp_path: Path) -> None:
    log = tmp_path / "g.db"
    with refold.open(log, window=8_000) as memory:
        for _ in range(40):
            memory.conversation("t").append(talk(6))
            memory.conversation("t").context()
    assert asked(log, "SELECT count(*) FROM stored_snapshots")[0][0]
    execute(log, "DELETE FROM stored_events WHERE originator_version = 40")
    with refold.open(log) as memory:
        found = memory.verify().damage
    assert {(d.place, d.kind) for d in found} <= {("log", "gap"), ("log", "keys"), ("keys", "keys")}
    assert not [d for d in found if d.place == "snapshots"]


@pytest.mark.slow
def test_a_damaged_snapshot_is_still_told(tmp_path: Path) -> None:
    log = tmp_path / "s.db"
    with refold.open(log, window=8_000) as memory:
        for _ in range(40):
            memory.conversation("t").append(talk(6))
            memory.conversation("t").context()
    execute(log, "UPDATE stored_snapshots SET state = x'00'")
    with refold.open(log) as memory:
        assert "snapshots" in {d.place for d in memory.verify().damage}


def test_results_for_answers_the_calls_of_these_tools_and_leaves_yours(
    conversation: refold.ConversationMemory,
) -> None:
    tools = conversation.tools()
    question = {"query": "Answer 7"}
    blocks: list[dict[str, object]] = [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "recall_memory", "input": question},
        {"type": "tool_use", "id": "t2", "name": "run_tests", "input": {}},
    ]
    reply = {"role": "assistant", "content": blocks}
    (answer,) = tools.results_for(reply)
    assert answer["tool_use_id"] == "t1"
    assert "is_error" not in answer
    assert tools.results_for(blocks) == [answer]
    assert [b["id"] for b in blocks[1:] if b["name"] not in tools] == ["t2"]
    assert tools.results_for({"role": "assistant", "content": "words"}) == []


def test_the_text_form_has_no_words_that_nobody_said_and_takes_a_limit(
    memory: refold.Memory,
) -> None:
    conversation = memory.conversation("t")
    conversation.append({"role": "assistant", "content": "I begin."}, recorded=True)
    conversation.append({"role": "user", "content": "Go on."})
    conversation.append({"role": "system", "content": "It is Monday."})
    conversation.append({"role": "assistant", "content": "I went."})
    made = conversation.context()
    said = made.as_text()
    assert "[" not in said
    assert said.split("\n\n") == [
        "## RECENT MESSAGES",
        "Assistant: I begin.",
        "User: Go on.",
        "System: It is Monday.",
        "Assistant: I went.",
    ]
    assert made.as_text(2).split("\n\n")[1:] == ["System: It is Monday.", "Assistant: I went."]
    assert made.as_text(0) == "## RECENT MESSAGES"
    with pytest.raises(refold.InvalidSetting):
        made.as_text(-1)
    wrong: Any = "2"
    with pytest.raises(refold.InvalidSetting, match="limit"):
        made.as_text(wrong)


def test_a_blank_time_is_no_version(tmp_path: Path) -> None:
    with refold.open(tmp_path / "agent.db") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "The port is 5433."})
        with pytest.raises(refold.InvalidSetting, match="not a time with a time zone"):
            conversation.why("5433", at="")
