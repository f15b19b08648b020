"""A session that is imported while it grows: everything that it has in the end is stored, once."""

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.conversation.transcripts import RecordedMessage
from refold.domain.messages import Message
from refold.domain.originals import Original
from refold.infrastructure.event_store.stored_log import StoredLog
from tests.support.builders import assistant, text, tool_result, tool_use, user
from tests.support.real_data import files, needs_data

TURN = [
    user("Build it."),
    assistant(text("I build three parts."), *(tool_use(f"c{n}", part=n) for n in range(3))),
    user(*(tool_result(f"c{n}", f"built {n}") for n in range(3))),
    assistant("Done."),
]


def recorded(messages: Sequence[Message]) -> list[RecordedMessage]:
    return [RecordedMessage(message=m, key=f"m{n}") for n, m in enumerate(messages)]


def cut(message: Message, blocks: int) -> Message:
    return Message(role=message.role, content=message.blocks()[:blocks])


def blocks_of(conversation: refold.ConversationMemory) -> list[str]:
    return [
        json.dumps(block, sort_keys=True)
        for stored in conversation.messages()
        for block in stored.message.blocks()
    ]


def all_blocks(messages: Sequence[Message]) -> list[str]:
    return [json.dumps(block, sort_keys=True) for m in messages for block in m.blocks()]


@pytest.mark.parametrize("blocks", [1, 2, 3, 4])
def test_the_rest_of_an_answer_is_stored_when_it_is_there(
    memory: refold.Memory, blocks: int
) -> None:
    conversation = memory.conversation("t")
    for seen in range(1, blocks + 1):
        conversation.append_recorded(recorded([TURN[0], cut(TURN[1], seen)]))
    for _ in range(2):
        conversation.append_recorded(recorded(TURN))
        assert blocks_of(conversation) == all_blocks(TURN)
    assert memory.verify().ok


def test_calls_that_are_written_between_results(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    conversation.append_recorded(recorded([TURN[0], cut(TURN[1], 2), cut(TURN[2], 1)]))
    conversation.append_recorded(recorded(TURN[:3]))
    conversation.append_recorded(recorded(TURN))
    assert sorted(blocks_of(conversation)) == sorted(all_blocks(TURN))
    conversation.append_recorded(recorded(TURN))
    assert len(blocks_of(conversation)) == len(all_blocks(TURN))


def test_a_message_that_changed_otherwise_stays_as_it_was_stored(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    conversation.append_recorded(recorded([user("one"), assistant("two")]))
    conversation.append_recorded(
        recorded([user("one"), assistant(text("three"), tool_use("c", a=1))])
    )
    assert [m.text for m in conversation.messages()] == ["one", "two"]


def test_the_rest_of_an_erased_message_does_not_come_back(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    conversation.append_recorded(recorded([TURN[0], cut(TURN[1], 2)]))
    conversation.erase(1)
    conversation.append_recorded(recorded(TURN))
    assert "I build" not in json.dumps(blocks_of(conversation))
    assert len(conversation.messages()) == 4


@needs_data
def test_a_real_session_that_is_cut_anywhere(tmp_path: Path) -> None:
    path = files("claude-code-entire/*.jsonl.gz")[1]
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)[:400]
    file = tmp_path / "session.jsonl"
    file.write_bytes(b"".join(lines))
    whole = [one.message for one in refold.read_transcript(file).conversations[0].messages]
    for at in range(60, len(lines), 29):
        with refold.open(":memory:", telemetry=False) as memory:
            for seen in (lines[:at], lines):
                file.write_bytes(b"".join(seen))
                (one,) = refold.read_transcript(file).conversations
                memory.conversation("t").append_recorded(list(one.messages))
            found = blocks_of(memory.conversation("t"))
        assert sorted(found) == sorted(all_blocks(whole)), f"cut after {at} lines"


def test_known_messages_are_looked_up_and_read_together(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation, calls = memory.conversation("t"), Counter[str]()
    messages = recorded([user(f"question {n}") for n in range(60)])
    conversation.append_recorded(messages)
    for name in ("versions_of_keys", "read", "read_at"):
        original = getattr(StoredLog, name)

        def noted(*given: Any, original: Any = original, name: str = name, **how: Any) -> Any:
            calls[name] += 1
            return original(*given, **how)

        monkeypatch.setattr(StoredLog, name, noted)
    assert conversation.select_known(messages) == messages
    assert calls == {"versions_of_keys": 1}
    again = conversation.append_recorded(messages)
    assert again.positions == tuple(range(60))
    assert calls["versions_of_keys"] <= 3
    assert calls["read"] + calls["read_at"] <= 3


@pytest.mark.parametrize("seen", [[2], [3], [2, 3], [5], [2, 3, 5, 7]])
def test_sealed_reasoning_in_the_rest_of_an_answer_is_kept(tmp_path: Path, seen: list[int]) -> None:
    def item(**payload: object) -> str:
        return json.dumps({"type": "response_item", "payload": payload}) + "\n"

    def sealed(number: int) -> str:
        return item(
            type="reasoning", summary=[], encrypted_content=f"sealed words {number} " + "x" * 30
        )

    def called(number: int) -> str:
        return item(type="function_call", name="look", arguments="{}", call_id=f"c{number}")

    asked = item(type="message", role="user", content=[{"type": "input_text", "text": "Look."}])
    first = [asked, called(0), called(1)]
    lines = [*first, *(one for n in range(2, 5) for one in (sealed(n), called(n)))]
    file = tmp_path / "rollout.jsonl"
    with refold.open(":memory:", telemetry=False) as memory:
        for upto in (*seen, len(lines), len(lines)):
            file.write_text("".join(lines[:upto]))
            (one,) = refold.read_transcript(file).conversations
            memory.conversation("t").append_recorded(one.messages)
        out = json.dumps([*memory.conversation("t").export()])
        assert len(blocks_of(memory.conversation("t"))) == 6
        assert memory.verify().ok
    for number in range(2, 5):
        assert out.count(f"sealed words {number}") == 1


def test_sealed_reasoning_of_an_erased_part_does_not_come_back(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    blocks = [tool_use(f"c{n}", part=n) for n in range(3)]
    sealed = [{"type": "reasoning", "encrypted_content": f"sealed {n} " + "x" * 30} for n in (0, 2)]
    for seen, items in ((1, sealed[:1]), (2, sealed[:1]), (3, sealed)):
        original = Original(format="codex", data=items)
        grown = RecordedMessage(message=assistant(*blocks[:seen]), key="m1", original=original)
        conversation.append_recorded([*recorded([user("Build it.")]), grown])
        if seen == 2:
            conversation.erase(1)
    assert len(conversation.messages()) == 4
    assert "sealed 0" not in json.dumps([*conversation.export()])


def test_a_part_that_another_process_stored_meanwhile_gets_its_rest(tmp_path: Path) -> None:
    with (
        refold.open(tmp_path / "a.db", telemetry=False) as one,
        refold.open(tmp_path / "a.db", telemetry=False) as other,
    ):
        one.conversation("t").append_recorded(recorded(TURN[:1]))
        other.conversation("t").append_recorded(recorded([TURN[0], cut(TURN[1], 2)]))
        more = [user(f"Question {n}") for n in range(40)]
        one.conversation("t").append_recorded(recorded([*TURN, *more]))
        assert blocks_of(one.conversation("t")) == all_blocks([*TURN, *more])


def test_a_part_that_is_stored_while_the_whole_is_read_gets_its_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transact = StoredLog.transact
    with (
        refold.open(tmp_path / "a.db", telemetry=False) as one,
        refold.open(tmp_path / "a.db", telemetry=False) as other,
    ):

        def interrupted(*given: Any, **how: Any) -> Any:
            monkeypatch.setattr(StoredLog, "transact", transact)
            other.conversation("t").append_recorded(recorded([TURN[0], cut(TURN[1], 2)]))
            return transact(*given, **how)

        monkeypatch.setattr(StoredLog, "transact", interrupted)
        one.conversation("t").append_recorded(recorded(TURN))
        assert blocks_of(one.conversation("t")) == all_blocks(TURN)
        assert one.verify().ok


def test_the_rest_of_an_answer_whose_call_was_written_again_is_stored(
    memory: refold.Memory,
) -> None:
    conversation = memory.conversation("t")
    begun = assistant(text("I look."), tool_use("c0"))
    whole = assistant(text("I look."), tool_use("c0", path="a.py"), tool_use("c1", path="b.py"))
    seen = user(tool_result("c0", "a"), tool_result("c1", "b"))
    conversation.append_recorded(recorded([user("Look."), begun]))
    for _ in range(2):
        conversation.append_recorded(recorded([user("Look."), whole, seen]))
        assert [block["type"] for m in conversation.messages() for block in m.message.blocks()] == [
            *("text", "text", "tool_use", "tool_use"),
            *("tool_result", "tool_result"),
        ]
    assert memory.verify().ok


def test_the_rest_of_results_that_were_shortened_is_stored(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    calls = assistant(tool_use("c0"), tool_use("c1"))
    conversation.append_recorded(recorded([user("Look."), calls, user(tool_result("c0", "long"))]))
    shortened = user(tool_result("c0", "…"), tool_result("c1", "b"))
    conversation.append_recorded(recorded([user("Look."), calls, shortened]))
    assert [
        block["content"] for m in conversation.messages()[2:] for block in m.message.blocks()
    ] == [
        "long",
        "b",
    ]


def test_results_that_end_in_another_order_are_stored(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    asked = [user("Look."), assistant(*(tool_use(f"c{n}") for n in range(4)))]
    for seen in ([2], [1, 2], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3]):
        results = user(*(tool_result(f"c{n}", str(n)) for n in seen))
        conversation.append_recorded(recorded([*asked, results]))
    stored = [b["content"] for m in conversation.messages()[2:] for b in m.message.blocks()]
    assert stored == ["2", "1", "0", "3"]
    assert memory.verify().ok


def test_reasoning_that_is_written_before_an_answer_later_is_stored(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    answer = [text("I look."), tool_use("c0")]
    thought = {"type": "thinking", "thinking": "Where?"}
    conversation.append_recorded(recorded([user("Look."), assistant(*answer)]))
    for _ in range(2):
        conversation.append_recorded(recorded([user("Look."), assistant(thought, *answer)]))
        stored = [b for m in conversation.messages()[1:] for b in m.message.blocks()]
        assert stored == [*answer, thought]


def test_a_text_that_is_put_before_a_message_is_not_the_rest_of_it(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    conversation.append_recorded(recorded([user("Look.")]))
    conversation.append_recorded(recorded([user(text("Files: 3."), text("Look."))]))
    assert [m.text for m in conversation.messages()] == ["Look."]
