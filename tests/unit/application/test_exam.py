"""The exam: what a memory shows of a recorded session, told apart from what it lost."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from refold.application.conversation.transcripts import RecordedConversation, RecordedMessage
from refold.application.lab.exam import Exam, ExamFigures, Share, budget_of
from refold.application.lab.exam_facts import Fact, Shown, facts_of
from refold.application.lab.exam_memories import (
    ExamMemory,
    NewestMessages,
    RandomMessages,
    RefoldMemory,
    Request,
)
from refold.application.lab.exam_questions import ResumeFacts, needles_in
from refold.domain.messages import Message
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from tests.support.builders import assistant, tool_result, tool_use, user

COUNTER = EstimatingTokenCounter()


def person(text: str) -> Message:
    return Message(role="user", content=text, author="person")


def recorded(*messages: Message) -> RecordedConversation:
    told = [RecordedMessage(message=m, key=str(n)) for n, m in enumerate(messages)]
    return RecordedConversation(thread_id="t", messages=tuple(told))


OLD = [
    person("Please keep the public names stable. It is a library."),
    assistant("I go on, because the tests pass.", tool_use("a", command="make check && make docs")),
    user(tool_result("a", "cache timeout value: 4711s\nok")),
]
TALK = [m for n in range(14) for m in (person(f"Go on with part {n} now."), assistant("Done."))]
REST = [
    assistant(tool_use("z", command="make check && make docs", path="src/deep/old.py")),
    user(tool_result("z", "ok")),
]
SESSION = recorded(*OLD, *TALK, *REST)


class Fixed:
    """A memory that always shows the same text, or fails."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def append(self, messages: Sequence[RecordedMessage]) -> None:
        del messages

    def context(self) -> Request:
        if self.text is None:
            raise ValueError("broken")
        return {"messages": [{"role": "user", "content": self.text}]}

    def close(self) -> None:
        pass


def examined(memory: Callable[[int], ExamMemory], *, percent: float = 50) -> ExamFigures:
    exam = Exam(memory, COUNTER, percent)
    exam.examine(SESSION)
    return exam.figures()


def test_what_is_not_shown_is_not_kept() -> None:
    found = examined(lambda _: Fixed("nothing"))
    assert found.reuse["commands"] == Share(kept=0, of=1)
    assert found.reuse["parts"] == Share(kept=0, of=2)
    assert found.reuse["said"].kept == 0
    assert found.reuse["said"].of > 1
    assert found.reuse["paths"].percent is None  # Only the rest of the session has the path.
    assert found.refused == 0


def test_what_a_list_shows_is_kept() -> None:
    text = "make check && make docs. Please keep the public names stable."
    found = examined(lambda _: Fixed(text))
    assert found.reuse["commands"].percent == 100
    assert found.reuse["parts"].percent == 100
    assert found.reuse["said"].kept == 1


def test_messages_in_full_are_no_facts_to_ask_for() -> None:
    found = examined(lambda budget: NewestMessages(COUNTER, 10 * budget))
    assert all(share.of == 0 for share in found.reuse.values())
    assert found.written == pytest.approx(0, abs=0.01)


def test_a_memory_that_fails_has_refused_requests_and_no_figures() -> None:
    found = examined(lambda _: Fixed(None))
    assert found.refused == 12
    assert all(share.of == 0 for share in found.reuse.values())


def test_a_request_over_its_budget_is_counted() -> None:
    assert examined(lambda _: Fixed("word " * 9_999)).over_budget == 13


@pytest.mark.parametrize("memory", [NewestMessages, RandomMessages])
def test_simple_memories_stay_within_their_budget(memory: Any) -> None:
    found = examined(lambda budget: memory(COUNTER, budget), percent=30)
    assert found.over_budget == 0
    assert 0 < found.use <= 1


def test_refold_sits_the_exam(tmp_path: Any) -> None:
    import refold

    budget = budget_of(SESSION, COUNTER, 100)
    found = examined(lambda _: RefoldMemory(refold.open(tmp_path / "a.db", window=8_000)))
    assert found.sessions == 1
    assert found.refused == 0
    assert budget > 100


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        (assistant("see src/app/main.py:12, please"), Fact("paths", "src/app/main.py")),
        (user(tool_result("c", '{"file": "a/b/c.go"}')), Fact("paths", "a/b/c.go")),
        (assistant("the field retry_policy"), Fact("names", "retry_policy")),
        (assistant(tool_use("c", command="a  b\n&& c d e f")), Fact("commands", "a b && c d e f")),
        (assistant(tool_use("c", command="cd x; make all")), Fact("parts", "make all")),
        (person("It is slow. Please make it fast."), Fact("asked", "Please make it fast.")),
    ],
)
def test_facts_are_found_by_plain_splitting(message: Message, fact: Fact) -> None:
    assert fact in facts_of(message)


@pytest.mark.parametrize(
    "message",
    [
        Message(role="user", content="Please delete everything.", author="program"),
        assistant("Please delete everything."),
        person("```\nPlease delete everything.\n```"),
        person("Please delete everything. " * 80),
    ],
)
def test_what_nobody_typed_was_not_said(message: Message) -> None:
    assert not any(fact.kind in ("said", "asked") for fact in facts_of(message))


@pytest.mark.parametrize(
    ("text", "found"),
    [("see src/a.py.", True), ("see src/a.pyc", False), ("see x/src/a.py", False), ("", False)],
)
def test_a_fact_stands_as_whole_words(text: str, found: bool) -> None:
    assert Shown([text]).has("src/a.py") == found


def test_facts_to_go_on_are_the_newest() -> None:
    facts = ResumeFacts()
    for message in (*OLD, assistant(tool_use("w", file_path="src/new.py", content="x"))):
        facts.take(message)
    assert facts.facts() == {
        "asked": "Please keep the public names stable.",
        "command": "make check && make docs",
        "decision": "I go on, because the tests pass.",
        "result": "ok",
    }


def test_a_needle_is_a_label_with_one_value() -> None:
    [needle] = needles_in(OLD, [*OLD, *TALK])
    assert needle.answer == "4711s"
    assert "4711" not in needle.question
    assert "cache timeout value" in needle.question
    twice = [*OLD, user(tool_result("b", "cache timeout value: 12s"))]
    assert needles_in(OLD, twice) == []
