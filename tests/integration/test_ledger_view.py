"""``ledger``: what code keeps word for word, by kind, with its sources, its age and its state."""

from pathlib import Path
from typing import Any

import pytest

import refold

RULE = "Never push to the branch release-7 without asking."
WISH = "Please add a test for the parser in src/parser.py."


def opened(path: Path, **options: Any) -> refold.Memory:
    options.setdefault("window", 8_000)
    return refold.open(path / "agent.db", notes="off", summariser="extractive", **options)


def say(conversation: refold.ConversationMemory, *said: str) -> None:
    for text in said:
        conversation.append({"role": "user", "content": text}, author="person")
        conversation.append({"role": "assistant", "content": "I see."})


def run(conversation: refold.ConversationMemory, command: str, number: int, **more: Any) -> None:
    call = {
        "type": "tool_use",
        "id": f"c{number}",
        "name": "bash",
        "input": {"command": command},
    }
    conversation.append({"role": "assistant", "content": [call]})
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "Done.", **more}
    conversation.append({"role": "user", "content": [result]})


def leave(conversation: refold.ConversationMemory) -> None:
    """Go on until everything so far has left the context."""
    for n in range(40):
        conversation.append({"role": "user", "content": f"Go on with step {n}. " + "And on. " * 60})
        conversation.append({"role": "assistant", "content": f"Step {n} was easy. " * 10})
    assert conversation.compact().outcome == "performed"


def find(found: refold.LedgerView, text: str, part: str = "ledger") -> refold.LedgerEntry:
    return next(e for e in found.entries if text in e.text and e.part == part)


def test_a_rule_has_its_kind_its_source_and_its_age(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        conversation = memory.conversation("t")
        say(conversation, "Hello there.", RULE)
        leave(conversation)
        found = conversation.ledger()
        entry = find(found, RULE)
        stored = conversation.read(2)
        assert (entry.position, entry.at) == (2, stored.at)
        assert entry.age == found.length - 1 - 2
        assert (entry.is_shown, entry.said_by, entry.author) == (True, "user", "person")
        memory_lines = "\n".join(conversation.context().memory).split("\n")
        assert entry.heading in memory_lines
        assert entry in found.by_kind[entry.kind]


def test_a_request_is_open_until_a_message_says_that_it_is_not(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        conversation = memory.conversation("t")
        say(conversation, WISH)
        leave(conversation)
        assert find(conversation.ledger(), WISH).state == "open"
        other = memory.conversation("u")
        say(other, WISH, "Never mind, forget it.")
        leave(other)
        entry = find(other.ledger(), WISH)
        assert (entry.state, entry.ended_at) == ("withdrawn", 2)


def test_commands_and_failures_say_how_they_ended(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        conversation = memory.conversation("t")
        say(conversation, WISH)
        run(conversation, "make build-docs", 1)
        run(conversation, "make check-links", 2, is_error=True, content="Error: link 7 is broken")
        run(conversation, "make check-links", 3, is_error=True, content="Error: link 9 is broken")
        leave(conversation)
        kinds = conversation.ledger().by_kind
        states = {entry.text: entry.state for entry in kinds["command"] if entry.part == "ledger"}
        assert states == {"make build-docs": "ok", "make check-links": "failed"}
        assert {entry.state for entry in kinds["failure"]} == {"failed"}


def test_a_text_of_several_messages_is_counted_and_names_the_newest(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        conversation = memory.conversation("t")
        say(conversation, RULE, "Good.", RULE)
        leave(conversation)
        entry = find(conversation.ledger(), RULE)
        assert (entry.uses, entry.position) == (2, 4)


def test_what_has_no_room_is_listed_as_kept_unseen(tmp_path: Path) -> None:
    policy = refold.CompactionPolicy(ledger_tokens=300, index_tokens=0)
    with opened(tmp_path, policy=policy) as memory:
        conversation = memory.conversation("t")
        say(conversation, *[f"Never change the file src/part_{n}.py, please." for n in range(20)])
        leave(conversation)
        lines = [entry for entry in conversation.ledger().entries if entry.part == "ledger"]
        text = conversation.context().memory[-1]
        assert {entry.is_shown for entry in lines} == {True, False}
        for entry in lines:
            assert (f"[{entry.position}] {entry.text}" in text) == entry.is_shown


def test_pins_stand_first_and_without_a_summary_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        conversation = memory.conversation("t")
        assert conversation.ledger().entries == ()
        conversation.append({"role": "user", "content": "Hello."})
        pin = conversation.pin("The moon is far.")
        (entry,) = conversation.ledger().entries
        assert (entry.part, entry.kind, entry.text) == ("pin", "pin", "The moon is far.")
        assert (entry.pin_id, entry.position, entry.age) == (pin, None, None)
        assert conversation.ledger().summary_id is None
        say(conversation, RULE)
        leave(conversation)
        assert conversation.ledger().entries[0] == entry
        conversation.unpin(pin)
        assert all(entry.part != "pin" for entry in conversation.ledger().entries)


def test_an_earlier_version_has_the_ledger_of_then(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        conversation = memory.conversation("t")
        say(conversation, RULE)
        leave(conversation)
        then = conversation.ledger()
        say(conversation, WISH)
        leave(conversation)
        forked = conversation.fork()
        assert conversation.ledger(at=then.version) == then
        assert find(conversation.ledger(), WISH)
        assert forked.ledger().entries == conversation.ledger().entries
        with pytest.raises(refold.InvalidSetting, match="versions"):
            conversation.ledger(at=10_000)


def test_every_shown_entry_stands_in_the_memory_and_every_index_entry_under_its_title(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as memory:
        conversation = memory.conversation("t")
        say(conversation, RULE, WISH, "See docs/plan.md and the value MAX_PART_SIZE.")
        run(conversation, "make build-docs && make all-links", 1)
        leave(conversation)
        text = "\n".join(conversation.context().memory)
        shown = [entry for entry in conversation.ledger().entries if entry.is_shown]
        assert {entry.part for entry in shown} == {"ledger", "index"}
        for entry in shown:
            above = text[: text.index(entry.text, text.index(f"\n{entry.heading}\n"))]
            assert above.rpartition("\n## ")[2].startswith(entry.heading.removeprefix("## "))


def test_an_erased_conversation_has_no_ledger(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        conversation = memory.conversation("t")
        say(conversation, RULE)
        leave(conversation)
        memory.erase_conversation("t")
        with pytest.raises(refold.ConversationGone):
            conversation.ledger()
