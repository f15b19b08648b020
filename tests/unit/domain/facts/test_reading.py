"""Facts of messages: each text is copied from its message, with its kind, its place and its state."""

import gc
from collections import deque
from typing import Any

import pytest

from refold.domain.facts import composed_names, cues, speech, statements
from refold.domain.facts.fact import Fact
from refold.domain.facts.message_reader import MessageRead, MessageReader
from refold.domain.facts.reading import (
    RELEASED,
    ReadOnce,
    read_facts,
    read_messages,
)
from refold.domain.messages import Message
from tests.support.builders import assistant, tool_result, tool_use, user


def person(text: str) -> Message:
    return Message(role="user", content=text, author="person")


def facts(*messages: Message, kind: str = "") -> list[Fact]:
    return [fact for fact in read_facts(enumerate(messages)) if kind in ("", fact.kind)]


def texts(kind: str, *messages: Message) -> list[str]:
    return [fact.text for fact in facts(*messages, kind=kind)]


def runs(command: str, printed: str = "ok", *, error: bool = False) -> tuple[Message, Message]:
    result = tool_result("c", printed, is_error=error)
    return assistant(tool_use("c", command=command)), user(result)


WORK = runs("ls")


@pytest.mark.parametrize(
    ("kind", "said", "text"),
    [
        ("request", "Please fix the login page.", "Please fix the login page."),
        ("rule", "You must never push to main.", "You must never push to main."),
        ("prohibition", "Do not do any of this:\n- delete the cache", "delete the cache"),
        ("preference", "I prefer short answers.", "I prefer short answers."),
        (
            "decision",
            "We decided to keep Redis for sessions.",
            "We decided to keep Redis for sessions.",
        ),
        ("path", "Look at src/app/main.py.", "src/app/main.py"),
        ("number", "It takes 250 ms.", "250 ms"),
        ("version", "It needs 2.31.0 or newer.", "2.31.0"),
        ("id", "See PROJ-4711.", "PROJ-4711"),
        ("name", "The field retry_policy is gone.", "retry_policy"),
        ("address", "It is at https://example.org/a?b=1 now.", "https://example.org/a?b=1"),
        ("address", "It listens on 127.0.0.1:8080 now.", "127.0.0.1:8080"),
        ("number", "It took 2.588s in all.", "2.588s"),
    ],
)
def test_what_a_person_says_is_read_as_facts_of_every_kind(kind: str, said: str, text: str) -> None:
    found = facts(*WORK, person(said), kind=kind)
    assert [(fact.text, fact.position, fact.by) for fact in found if fact.text == text][:1] == [
        (text, 2, "person")
    ]


def test_a_command_is_read_with_all_its_lines_and_how_it_ended() -> None:
    command = "cd app && npm ci\nnpm run build"
    call, result = runs(command, "npm ERR! missing script: build", error=True)
    (found,) = facts(call, result, kind="command")
    assert (found.text, found.state, found.position, found.by) == (command, "failed", 0, "call")
    (error,) = facts(call, result, kind="error")
    assert (error.text, error.position) == ("npm ERR! missing script: build", 1)
    (outcome,) = facts(call, result, kind="outcome")
    assert (outcome.text, outcome.state, outcome.called_at) == (error.text, "failed", 0)
    assert outcome.note == error.note


@pytest.mark.parametrize(
    ("tool", "given", "state"),
    [
        ("Edit", {"file_path": "src/a.py", "old_string": "x", "new_string": "y"}, "edited"),
        ("Read", {"file_path": "src/a.py"}, "read"),
    ],
)
def test_a_file_is_known_as_edited_or_read_once_the_call_succeeded(
    tool: str, given: dict[str, str], state: str
) -> None:
    call = assistant({"type": "tool_use", "id": "c", "name": tool, "input": given})
    assert [f.state for f in facts(call, kind="path")] == [""]
    assert [f.state for f in facts(call, user(tool_result("c", "ok")), kind="path")] == ["", state]
    refused = user(tool_result("c", "File does not exist.", is_error=True))
    assert [f.state for f in facts(call, refused, kind="path")] == [""]


def test_what_a_message_quotes_is_not_ascribed_to_the_person() -> None:
    said = "The reviewer wrote:\n> rename src/old.py to src/new.py\n\nPlease address this in src/app.py."
    found = {fact.text: fact.by for fact in facts(person(said), kind="path")}
    assert found == {"src/old.py": "quoted", "src/new.py": "quoted", "src/app.py": "person"}


def test_text_that_the_program_inserted_is_not_the_persons() -> None:
    said = "<system-reminder>see docs/rules.md</system-reminder>\nfix src/app.py"
    found = {fact.text: fact.by for fact in facts(person(said), kind="path")}
    assert found == {"src/app.py": "person", "docs/rules.md": "program"}


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_abcdefghijklmnopqrstuv0123",
        "password=hunter2-4711-x",
        "https://me:s3cr3t_word@db.example.org/x",
    ],
)
def test_no_fact_has_a_credential(secret: str) -> None:
    said = f"Use {secret} for src/app.py, please."
    messages = (
        person(said),
        assistant(said),
        *runs(f"deploy --now {secret} && ls src/app.py", said),
        assistant(tool_use("d", token=secret, note=said)),
    )
    found = facts(*messages)
    assert "src/app.py" in [fact.text for fact in found]
    hidden = secret.rpartition("=")[2].partition("@")[0].rpartition(":")[2]
    assert [fact for fact in found if hidden in fact.text or hidden in fact.note] == []


def test_a_word_that_is_cut_is_not_read() -> None:
    filler = "word " * 5_000
    long = f"{filler[:23_990]} src/app/{'x' * 40}/main.py {filler} docs/{'y' * 5_990}/end.md src/last.py"
    assert texts("path", assistant(long)) == ["src/last.py"]


def test_a_message_has_a_fact_once_and_another_message_has_it_again() -> None:
    said = "src/app.py calls src/app.py"
    assert [f.position for f in facts(person(said), person(said), kind="path")] == [0, 1]


def test_a_result_without_its_call_is_read_and_did_nothing() -> None:
    read = read_messages(enumerate([user(tool_result("gone", "src/app.py is there"))]))
    assert [fact.kind for fact in read.facts] == ["path"]
    assert [(call.is_known, call.answered_at) for call in read.calls] == [(False, 0)]


def test_a_call_without_a_result_did_nothing_yet() -> None:
    read = read_messages(enumerate([assistant(tool_use("c", command="make all"))]))
    assert [fact.kind for fact in read.facts if fact.state] == []
    assert [(call.action.exact, call.answered_at) for call in read.calls] == [(("make all",), -1)]


def test_the_newest_released_rules_are_those_that_compactions_use() -> None:
    assert next(reversed(RELEASED.values())) is read_facts


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Positions of the messages that were read."""
    positions = list[int]()
    original = MessageReader.read

    def count(self: MessageReader, position: int, message: Message) -> MessageRead:
        positions.append(position)
        return original(self, position, message)

    monkeypatch.setattr(MessageReader, "read", count)
    return positions


def test_messages_that_were_read_are_not_read_again_for_other_readers(read: list[int]) -> None:
    messages = [*enumerate([person("fix src/app.py"), *WORK, person("and src/b.py")])]
    reading = ReadOnce()
    whole = reading.read(messages)
    assert reading.read(messages) == whole
    assert reading.read(messages[1:]).facts == tuple(f for f in whole.facts if f.position)
    assert read == [0, 1, 2, 3]
    assert (
        reading.read(messages[:1]).has_tools is False
    )  # No tool is called there: other rules apply.
    assert read == [0, 1, 2, 3, 0]


def test_overlapping_messages_give_what_reading_all_of_them_gives(read: list[int]) -> None:
    said = [person("fix src/app.py"), *WORK, person("and src/b.py"), *runs("make"), *runs("ls -l")]
    messages = [*enumerate(said)]
    reading = ReadOnce()
    reading.read(messages[3:])
    assert reading.read(messages[:6]) == read_messages(messages[:6])
    assert reading.read(messages) == read_messages(messages)
    assert sorted(read[:8]) == [*range(8)]


def test_a_result_that_comes_later_belongs_to_its_call(read: list[int]) -> None:
    messages = [*enumerate([person("go"), *runs("make all", "made")])]
    reading = ReadOnce()
    assert not reading.read(messages[:2]).calls[0].answered_at >= 0
    (call,) = reading.read(messages).calls
    assert (call.position, call.answered_at) == (1, 2)
    assert read == [0, 1, 2]


@pytest.mark.parametrize("start", range(8))
@pytest.mark.parametrize("stop", range(1, 9))
def test_reading_ahead_changes_no_later_reading(start: int, stop: int, read: list[int]) -> None:
    said = [person("fix src/app.py"), *WORK, person("and src/b.py"), *runs("make"), *runs("ls -l")]
    messages = [*enumerate(said)]
    reading = ReadOnce()
    reading.read_ahead(messages, range(start, stop))
    assert read == [*range(start, stop)]
    read.clear()
    assert reading.read(messages) == read_messages(messages)
    again = {at for at in range(8) if read.count(at) == 2}  # The expected value reads all once.
    ahead = {*range(start, stop)}
    results = {2, 5, 7}  # A result is not read ahead without its call.
    assert again == {*range(8)} - ahead | {start} & results & ahead


def test_what_was_read_is_forgotten_with_its_message(read: list[int]) -> None:
    reading = ReadOnce()
    reading.read([(0, person("fix src/a.py"))])
    gc.collect()
    reading.read([])
    assert not reading._known  # pyright: ignore[reportPrivateUsage]


class Taken(deque[Any]):
    """A queue whose last item another thread takes after a look at it."""

    def __bool__(self) -> bool:
        return True


def test_another_thread_may_forget_what_is_gone() -> None:
    reading, messages = ReadOnce(), [(0, person("fix src/a.py"))]
    reading._gone = Taken()  # pyright: ignore[reportPrivateUsage]
    assert reading.read(messages) == read_messages(messages)


def test_a_second_result_of_a_call_is_of_an_unknown_one() -> None:
    call, result = runs("make all")
    twice = user(*result.blocks(), *result.blocks())
    first, second = read_messages(enumerate([call, twice])).calls
    assert (first.is_known, second.is_known) == (True, False)


def test_other_messages_at_the_same_positions_are_read() -> None:
    reading = ReadOnce()
    first = reading.read([(0, person("fix src/a.py"))])
    second = reading.read([(0, person("fix src/b.py"))])
    assert first != second


def test_texts_that_were_judged_are_forgotten() -> None:
    said = "Never push to main because the tests take long."
    read_messages([(0, person(said))])
    assert cues.weight(said) > 0
    assert cues.is_binding(said)
    remembered = (
        cues.weight,
        cues.is_binding,
        speech.sentences_of,
        statements.closing_of,
    )
    assert all(function.cache_info().currsize for function in remembered)
    assert composed_names.distinct_names("retry_policy", range(0)) == {"retry_policy": False}
    assert composed_names.known_names
    ReadOnce().forget()
    assert not any(function.cache_info().currsize for function in remembered)
    assert not composed_names.known_names
