"""A system text that waits to be recorded, and quotes a message that is erased meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import refold

SAID = "My number is 0151-4711-2233, call me."
PROFILE = f"You are kind.\nThe user said: {SAID}\nBe brief."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[refold.Memory]:
    with refold.open(tmp_path / "agent.db", window=8_000, background=False) as memory:
        yield memory


def begun(
    memory: refold.Memory, thread_id: str, owner: str | None = None
) -> refold.ConversationMemory:
    conversation = memory.conversation(thread_id, owner=owner)
    conversation.append({"role": "user", "content": SAID})
    return conversation


def assert_is_nowhere(conversation: refold.ConversationMemory, folder: Path) -> None:
    assert "0151-4711" not in str(list(conversation.export("events")))
    for version in range(1, conversation.version + 1):
        assert "0151-4711" not in str(conversation.context(at=version).for_anthropic())
    for file in folder.iterdir():
        assert b"0151-4711-2233" not in file.read_bytes(), file.name


@pytest.mark.parametrize("first", [None, "You are kind."])
def test_what_waits_is_recorded_without_the_quotation(
    memory: refold.Memory, tmp_path: Path, first: str | None
) -> None:
    conversation = begun(memory, "t")
    if first is not None:
        conversation.context(system=first)
        conversation.append([{"role": "assistant", "content": "Yes?"}])
        conversation.append({"role": "user", "content": "Go on."})
    asked = conversation.context(system=PROFILE).version
    report = conversation.erase(0)
    assert report.complete
    assert "system text" in [one.place for one in report.removed]
    conversation.append({"role": "assistant", "content": "Fine."})
    system = str(conversation.context(at=asked).system)
    assert system.startswith("You are kind.\n")
    assert system.endswith("\nBe brief.")
    conversation.append({"role": "user", "content": "And now?"})
    conversation.context(system=PROFILE)
    conversation.append({"role": "assistant", "content": "Nothing."})
    assert_is_nowhere(conversation, tmp_path)
    assert memory.verify().ok


def test_what_waits_in_a_fork_or_for_an_owner_loses_the_quotation(
    memory: refold.Memory, tmp_path: Path
) -> None:
    one, other, mine = begun(memory, "one"), begun(memory, "other"), begun(memory, "mine", "ann")
    copies = [one.fork(thread_id="copy"), other.fork(thread_id="another")]
    for conversation in (*copies, mine):
        conversation.context(system=PROFILE)
    one.erase(0)
    memory.erase_conversation("other")
    memory.erase_owner("ann")
    for conversation in (*copies, mine):
        conversation.append({"role": "assistant", "content": "Fine."})
        assert_is_nowhere(conversation, tmp_path)
    assert memory.verify().ok


def test_what_waits_does_not_come_back_when_the_id_is_used_again(
    memory: refold.Memory, tmp_path: Path
) -> None:
    begun(memory, "t").context(system=PROFILE)
    memory.erase_conversation("t")
    again = memory.conversation("t")
    again.append({"role": "user", "content": "Hello."})
    assert_is_nowhere(again, tmp_path)


def test_what_waits_and_quotes_nothing_is_recorded_with_the_answer(memory: refold.Memory) -> None:
    conversation = begun(memory, "t")
    conversation.context(system="You are kind.")
    conversation.erase(0)
    names = [event["name"] for event in conversation.export("events")]
    assert names == ["message_appended", "message_erased"]
    conversation.append({"role": "assistant", "content": "Fine."})
    assert conversation.context(at=1).system == "You are kind."
