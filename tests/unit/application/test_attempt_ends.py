"""What a compaction tells: its result, the observers, and nothing at all to the agent's turn."""

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest

from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.results import CompactionResult
from refold.application.compaction.on_demand import Demand, manual_attempt
from refold.application.ports.summariser import Summariser
from refold.application.runtime.core import Core, Extras
from refold.domain.events import CompactionPerformed, CompactionRequested
from refold.domain.messages import Message
from tests.support.bounded_summarisers import Bounded, Scripted, draft_of
from tests.support.builders import assistant, calls, talk, user
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.fake_summarisers import (
    EmptySummariser,
    GoodSummariser,
    RaisingSummariser,
    SlowSummariser,
)

LONG = "word " * 40


class Watching:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[CompactionResult] = []

    def compaction_ended(self, result: CompactionResult) -> None:
        self.told.append(result)

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        pass


class Failing(Watching):
    """An observer with a fault."""

    def compaction_ended(self, result: CompactionResult) -> None:
        super().compaction_ended(result)
        raise RuntimeError("no connection to the metrics")


def watched(summariser: Summariser, *observers: Watching) -> tuple[Core, MemoryLog]:
    log = MemoryLog()
    core = replace(core_of(log, summariser=summariser), observers=observers)
    said = [{"role": m.role, "content": f"{m.content} {LONG}"} for m in talk(10)]
    ConversationMemory(core, "t", Runner()).append(said)
    return core, log


def compact(core: Core) -> CompactionResult:
    return asyncio.run(manual_attempt(core, "t", Demand(), Extras()).run())


def test_a_performed_compaction_tells_how_it_went() -> None:
    core, log = watched(Scripted("", draft_of("They talked about it.", attempts=3)))
    result = compact(core)
    asked, _, done = log.streams["t"][-3:]
    assert isinstance(asked, CompactionRequested)
    assert isinstance(done, CompactionPerformed)
    assert (result.thread_id, result.attempt_id, result.trigger) == (
        "t",
        asked.attempt_id,
        "manual",
    )
    assert (result.model_calls, result.retries) == (4, 2)
    assert done.model_calls == 4
    assert (result.effective, result.is_split_turn, result.rebuilt) == (
        done.effective,
        False,
        False,
    )
    assert result.omitted == ()
    assert result.seconds >= 1, "the clock of the fakes goes on by a second at every look"
    assert not result.breaker_open


def test_a_clock_that_was_set_back_gives_no_negative_duration() -> None:
    core, _ = watched(Scripted(draft_of("They talked about it.")))
    noon = core.clock()
    back = (noon - timedelta(minutes=minutes) for minutes in count())
    assert compact(replace(core, clock=lambda: next(back))).seconds >= 0


def test_a_rebuilt_summary_and_what_was_left_out_are_told() -> None:
    core, _ = watched(Bounded(4_000))
    ConversationMemory(core, "t", Runner()).append(
        [user("word" * 3_000), assistant("ok"), *talk(3)]
    )
    result = compact(core)
    assert [one.position for one in result.omitted] == [20]
    assert result.outcome == "performed"


def test_every_attempt_that_ended_is_told_to_the_observers() -> None:
    watching = Watching()
    core, _ = watched(Scripted("", "", "All went fine."), watching)
    assert watching.told == [compact(core)]
    assert watching.told[0].outcome == "failed"
    compact(core)
    assert [r.outcome for r in watching.told] == ["failed", "performed"]
    compact(core)
    assert watching.told[2].outcome == "nothing_to_do", "whoever asked by hand is told that as well"


def test_an_observer_that_fails_is_logged_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failing, watching = Failing(), Watching()
    core, _ = watched(GoodSummariser(), failing, watching)
    with caplog.at_level(logging.WARNING):
        assert compact(core).outcome == "performed"
    assert len(failing.told) == len(watching.told) == 1
    assert f"an observer failed: RuntimeError ({__file__}:" in caplog.text
    assert "no connection to the metrics" not in caplog.text  # It could quote a message.


@pytest.mark.parametrize("summariser", [RaisingSummariser("timeout"), EmptySummariser()])
def test_a_failure_is_told_with_the_calls_it_took(summariser: Summariser) -> None:
    core, _ = watched(summariser)
    result = compact(core)
    assert result.outcome == "failed"
    assert (result.model_calls, result.retries) in {(3, 2), (2, 0)}


def test_a_cancelled_compaction_is_told_as_well() -> None:
    watching = Watching()

    async def scene() -> None:
        slow = SlowSummariser()
        core, _ = watched(slow, watching)
        task = asyncio.create_task(manual_attempt(core, "t", Demand(), Extras()).run())
        await slow.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert [(r.outcome, r.reason) for r in watching.told] == [("failed", "cancelled")]


def test_what_blocks_is_named_with_its_position() -> None:
    log = MemoryLog()
    core = core_of(log)
    ConversationMemory(core, "t", Runner()).append([user("go"), calls("a")])
    waiting: list[Message] = [user(f"and {n}? {LONG}") for n in range(12)]
    ConversationMemory(core, "t", Runner()).append(waiting)
    result = compact(core)
    assert result.outcome == "nothing_to_do"
    assert result.blocked_since is not None
    assert result.reason
