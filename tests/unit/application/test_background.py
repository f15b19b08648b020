"""Compacting in the background: nobody waits for it, it is never doubled, it fails in silence."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from refold.application.api.memory import Memory
from refold.application.compaction.background import Background
from refold.domain.events import CompactionPerformed
from tests.support.background_desk import WAIT, WORDS, Desk, said, talk
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.fake_summarisers import GoodSummariser, HeldSummariser, RaisingSummariser


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The conversations for which a compaction was begun, each time anew."""
    begin, conversations = Background.begin, list[str]()

    def counted(self: Background, thread_id: str) -> None:
        conversations.append(thread_id)
        begin(self, thread_id)

    monkeypatch.setattr(Background, "begin", counted)
    return conversations


def test_a_compaction_that_is_due_begins_after_an_append_and_nobody_waits_for_it(
    at_work: Desk, held: HeldSummariser
) -> None:
    at_work.say(1)
    context = at_work.conversation.context()
    assert context.summary is None
    assert context.tokens <= context.budget.limit
    [requested] = at_work.requests
    assert requested.trigger == "background"
    assert at_work.ends == []
    held.release()
    assert at_work.memory.drain(WAIT)
    [end] = at_work.ends
    assert isinstance(end, CompactionPerformed)
    assert at_work.conversation.context().tokens < context.tokens
    assert len(at_work.appended) == 24


def test_the_next_one_begins_when_it_is_due_again() -> None:
    desk = Desk(GoodSummariser())
    for rounds in range(1, 4):
        while len(desk.requests) < rounds:
            desk.say(1)
            assert desk.memory.drain(WAIT)
            assert desk.conversation.context().compactions == ()
    assert [request.trigger for request in desk.requests] == ["background"] * 3
    message = desk.appended[0].tokens
    assert all(5_600 <= request.tokens_before < 5_600 + message for request in desk.requests)
    assert {type(end) for end in desk.ends} == {CompactionPerformed}
    desk.memory.close()


def test_nothing_begins_before_it_is_due(held: HeldSummariser) -> None:
    with Desk(held).memory as memory:
        memory.conversation("t").append([{"role": "user", "content": WORDS}] * 22)
        assert memory.drain(WAIT)
    assert held.calls == 0


def test_nothing_begins_while_a_call_waits_for_its_result(held: HeldSummariser) -> None:
    with Desk(held).memory as memory:
        conversation = memory.conversation("t")
        conversation.append([{"role": "user", "content": WORDS}] * 22)
        call = {"type": "tool_use", "id": "c", "name": "look", "input": {"at": WORDS * 2}}
        conversation.append({"role": "assistant", "content": [call]})
        assert memory.drain(WAIT)
        assert held.calls == 0
        result = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}
        conversation.append({"role": "user", "content": [result]})
        assert held.started.wait(WAIT)
        held.release()


def test_nothing_begins_by_itself_where_it_was_not_asked_for(held: HeldSummariser) -> None:
    with Memory(core_of(summariser=held)) as memory:
        memory.conversation("t").append([{"role": "user", "content": WORDS}] * 30)
        assert memory.drain(WAIT)
    assert held.calls == 0


def test_system_prompt_and_tools_of_the_last_request_count_when_a_message_is_appended(
    held: HeldSummariser,
) -> None:
    desk = Desk(held)
    desk.say(8)
    schema = {"type": "object"}
    tools: list[dict[str, Any]] = [
        {"name": "t", "description": "d" * 3_935, "input_schema": schema}
    ]
    assert desk.conversation.context(system="s" * 8_000, tools=tools).summary is None
    desk.say(2)
    assert not held.started.is_set()
    desk.say(1)
    assert held.started.wait(WAIT)
    desk.memory.close(0)


def test_a_conversation_of_an_earlier_process_goes_on(held: HeldSummariser) -> None:
    first = Desk(GoodSummariser())
    first.say(22)
    second = Desk(held, beside=first)
    second.conversation.context()
    second.say(1)
    assert held.started.wait(WAIT)
    second.memory.close(0)
    first.memory.close()


def test_a_context_that_finds_a_compaction_due_begins_it_and_does_not_wait(
    held: HeldSummariser,
) -> None:
    desk = Desk(held)
    desk.say(20)
    context = desk.conversation.context(system="s" * 2_400)
    assert context.summary is None
    assert held.started.wait(WAIT)
    desk.memory.close(0)


def test_of_one_conversation_one_compaction_runs_however_many_threads_append(
    at_work: Desk, held: HeldSummariser
) -> None:
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(at_work.conversation.append, said("hi")) for _ in range(40)]:
            done.result(WAIT)
    held.release()
    assert at_work.memory.drain(WAIT)
    assert held.calls == len(at_work.requests) == 1
    assert len(at_work.appended) == 63


def test_conversations_are_compacted_side_by_side(at_work: Desk, held: HeldSummariser) -> None:
    at_work.memory.conversation("u").append(talk(23))
    held.release()
    assert at_work.memory.drain(WAIT)
    assert held.calls == 2
    assert any(isinstance(e, CompactionPerformed) for e in at_work.log.streams["u"])


def test_a_request_that_would_not_fit_waits_for_the_compaction_that_runs(
    at_work: Desk, held: HeldSummariser
) -> None:
    at_work.say(4)
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(at_work.conversation.context) for _ in range(2)]
        # Both are past the point where they would have given up waiting.
        assert goes_on(lambda: held.calls == 1 and not any(a.done() for a in asked))
        held.release()
        contexts = [one.result(WAIT) for one in asked]
    for context in contexts:
        assert context.summary is not None
        assert context.tokens <= context.budget.limit
    assert held.calls == len(at_work.requests) == 1


def test_threads_that_ask_at_once_when_a_compaction_is_due_make_one_and_all_get_what_fits() -> None:
    held = HeldSummariser()
    log = MemoryLog()
    with Memory(core_of(log, summariser=held)) as memory, ThreadPoolExecutor(4) as threads:
        conversation = memory.conversation("t")
        conversation.append(talk(30))
        together = threading.Barrier(4)

        def ask() -> int:
            together.wait(WAIT)
            context = conversation.context()
            return context.tokens - context.budget.limit

        asked = [threads.submit(ask) for _ in range(4)]
        assert held.started.wait(WAIT)
        held.release()
        assert all(one.result(WAIT) <= 0 for one in asked)
        assert held.calls == 1
        assert len([e for e in log.streams["t"] if isinstance(e, CompactionPerformed)]) == 1


def test_compacting_by_hand_meanwhile_is_told_that_one_is_in_flight(at_work: Desk) -> None:
    assert at_work.conversation.compact().outcome == "in_flight"


def test_nothing_begins_while_somebody_else_holds_the_lease(
    held: HeldSummariser, begun: list[str]
) -> None:
    other = HeldSummariser()
    first = Desk(other)
    second = Desk(held, beside=first)
    first.say(23)
    assert other.started.wait(WAIT)
    second.say(1)
    assert second.memory.drain(WAIT)
    assert len(second.requests) == 1
    assert begun == ["t"]
    for desk in (first, second):
        desk.memory.close(0)


def test_a_failure_is_in_the_log_and_never_in_the_turn() -> None:
    raising = RaisingSummariser()
    desk = Desk(raising)
    desk.say(23)
    assert desk.memory.drain(WAIT)
    assert desk.failures() == ["overloaded"]
    assert desk.conversation.context().summary is None
    desk.say(1, "ok")
    assert desk.memory.drain(WAIT)
    assert raising.calls == 1, "asked again although nothing has grown"
    desk.say(1)
    assert desk.memory.drain(WAIT)
    assert raising.calls == 2
    desk.memory.close()


def test_a_log_that_fails_meanwhile_is_no_matter_of_the_turn(
    at_work: Desk, held: HeldSummariser, caplog: pytest.LogCaptureFixture
) -> None:
    at_work.log.broken = True
    with caplog.at_level(logging.WARNING):
        held.release()
        assert at_work.memory.drain(WAIT)
    assert "compacting in the background failed" in caplog.text
    assert "broken on purpose" in caplog.text
    at_work.log.broken = False
    at_work.say(1)
    assert at_work.conversation.context().summary is None


def test_where_nothing_can_be_covered_it_is_not_tried_again_at_every_append(
    held: HeldSummariser, begun: list[str]
) -> None:
    desk = Desk(held)
    desk.conversation.append([said(WORDS)] * 23)
    for _ in range(5):
        desk.conversation.append(said("ok"))
        assert desk.memory.drain(WAIT)
    desk.memory.close()
    assert begun == ["t"]
    assert held.calls == 0


def goes_on(holds: Callable[[], bool]) -> bool:
    """Whether it holds now and for a little while: for what must not happen."""
    pause = threading.Event()
    return all(holds() for _ in range(5) if not pause.wait(0.02))
