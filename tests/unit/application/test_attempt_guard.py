"""One guard for every route: after failures nobody is asked again before the conversation has grown."""

from pathlib import Path

import pytest

import refold
from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.results import CompactionResult
from refold.application.compaction.attempt import CompactionAttempt
from refold.application.runtime.core import Extras
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import CompactionPerformed, Trigger
from refold.domain.value import replace
from tests.support.builders import talk
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.fake_summarisers import EmptySummariser, GoodSummariser, RecordingSummariser

LONG = "word " * 40


class Desk:
    """A conversation of ten long turns in a window of 8,000 tokens: a step of growth is 160."""

    def __init__(self, *, window: int = 8_000, policy: CompactionPolicy | None = None) -> None:
        self.log = MemoryLog()
        self.summariser = RecordingSummariser(EmptySummariser())
        self.core = core_of(self.log, window=window, summariser=self.summariser, policy=policy)
        self.says(10)

    def says(self, turns: int) -> None:
        said = [{"role": m.role, "content": f"{m.content} {LONG}"} for m in talk(turns)]
        self.conversation(Runner()).append(said)

    def conversation(self, runner: Runner) -> ConversationMemory:
        return ConversationMemory(self.core, "t", runner)

    def compact(self, *, force: bool = False) -> CompactionResult:
        runner = Runner()
        try:
            return self.conversation(runner).compact(force=force)
        finally:
            runner.close()

    def attempt(self, trigger: Trigger) -> CompactionResult:
        runner = Runner()
        budget = self.core.budget(Extras())
        attempt = CompactionAttempt(
            self.core, "t", budget, trigger=trigger, summariser=self.core.summariser
        )
        try:
            return runner.run(attempt.run())
        finally:
            runner.close()


def test_by_hand_it_is_tried_again_at_once_until_the_breaker_opens() -> None:
    desk = Desk()
    results = [desk.compact() for _ in range(4)]
    assert [r.outcome for r in results] == ["failed", "failed", "failed", "nothing_to_do"]
    assert [r.breaker_open for r in results] == [False, False, True, True]
    refused = results[-1]
    assert (refused.reason, refused.success, refused.model_calls) == ("breaker_open", True, 0)
    assert len(desk.summariser.requests) == 6


def test_it_says_when_it_will_be_tried_again() -> None:
    desk = Desk()
    for _ in range(3):
        desk.compact()
    size = desk.log.load("t").state.tokens
    assert f"from {size:,} to {size + 800:,} tokens" in desk.compact().detail


def test_by_force_it_is_tried_once_more() -> None:
    desk = Desk()
    for _ in range(3):
        desk.compact()
    assert desk.compact(force=True).outcome == "failed"
    assert desk.compact().reason == "breaker_open"
    desk.summariser.inner = GoodSummariser()
    forced = desk.compact(force=True)
    assert (forced.outcome, forced.breaker_open) == ("performed", False)


def test_when_the_conversation_has_grown_it_is_tried_again() -> None:
    desk = Desk()
    for _ in range(3):
        desk.compact()
    desk.says(4)
    assert desk.compact().reason == "breaker_open"
    desk.says(5)
    assert desk.compact().outcome == "failed"
    assert desk.compact().reason == "breaker_open"


def test_in_the_background_the_same_guard_holds() -> None:
    desk = Desk(window=1_500)
    for _ in range(3):
        desk.attempt("background")
    result = desk.attempt("background")
    assert (result.outcome, result.reason, result.trigger) == (
        "nothing_to_do",
        "breaker_open",
        "background",
    )


def test_how_many_failures_open_it_is_a_setting() -> None:
    desk = Desk(policy=CompactionPolicy(breaker_after=1))
    assert [desk.compact().outcome for _ in range(2)] == ["failed", "nothing_to_do"]


def test_nothing_to_compact_is_said_as_such_even_while_it_is_open() -> None:
    desk = Desk(policy=CompactionPolicy(breaker_after=1, keep_last=4))
    desk.compact()
    few = Desk(policy=CompactionPolicy(breaker_after=1, keep_last=50))
    few.log.streams["t"] = desk.log.streams["t"]
    assert few.compact().reason == "keep_last"


def test_while_it_is_open_a_request_that_must_fit_is_made_smaller_by_code_alone() -> None:
    desk = Desk()
    for _ in range(3):
        desk.compact()
    asked = len(desk.summariser.requests)
    desk.core = core_of(desk.log, window=1_500, summariser=desk.summariser)
    runner = Runner()
    context = desk.conversation(runner).context()
    runner.close()
    assert context.tokens <= context.budget.limit
    assert [c.outcome for c in context.compactions][-1] == "performed"
    assert len(desk.summariser.requests) == asked


@pytest.mark.parametrize("restarts", [False, True])
def test_the_guard_survives_a_restart(tmp_path: Path, restarts: bool) -> None:
    def opened() -> refold.Memory:
        return refold.open(tmp_path / "a.db", window=8_000, summariser=EmptySummariser())

    memory = opened()
    memory.conversation("t").append(
        [{"role": m.role, "content": f"{m.content} {LONG}"} for m in talk(10)]
    )
    outcomes: list[str] = []
    for _ in range(5):
        outcomes.append(memory.conversation("t").compact().outcome)
        if restarts:
            memory.close()
            memory = opened()
    memory.close()
    assert outcomes == ["failed", "failed", "failed", "nothing_to_do", "nothing_to_do"]


def test_after_an_ineffective_compaction_the_next_by_size_waits_for_growth() -> None:
    desk = Desk(window=1_500, policy=CompactionPolicy(keep_last=1))
    desk.summariser.inner = GoodSummariser()
    runner = Runner()
    context = desk.conversation(runner).context()
    assert [c.outcome for c in context.compactions] == ["performed"]
    performed = [e for e in desk.log.streams["t"] if isinstance(e, CompactionPerformed)]
    # The same history, had the compaction missed its target: over the trigger, and within the limit.
    [done], tokens = performed, desk.log.load("t").state.tokens
    heavy = replace(done, effective=False, tokens=done.tokens + 1_100 - tokens)
    desk.log.streams["t"] = [heavy if e is done else e for e in desk.log.streams["t"]]
    assert 1_050 < desk.conversation(runner).context().tokens < 1_163
    assert desk.conversation(runner).context().compactions == ()
    desk.says(1)
    waited = desk.conversation(runner).context().compactions
    runner.close()
    assert [c.outcome for c in waited] == ["performed"], "over the limit nobody can wait"
