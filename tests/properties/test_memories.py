"""With memories on, whole sessions stay legal, fit, and change only where something was decided."""

import dataclasses
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from refold.application.rendering.render import Rendered, memories_size, render
from refold.application.rendering.request_blocks import copied
from refold.application.runtime.core import RecallParts
from refold.application.runtime.memory_settings import MemoriesSettings
from refold.domain.compaction.budget import Budget
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import MessageAppended
from refold.domain.messages import readable
from refold.domain.value import replace
from refold.testing.history_layout import Step
from refold.testing.history_strategies import turns
from refold.testing.request_judge import prefix_violations, violations
from refold.testing.request_parts import blocks_of
from tests.properties.test_ladder import COUNTER, POLICIES, Talk
from tests.support.effort import one_in
from tests.support.fake_ports import MessageViews
from tests.support.recall_scenes import ListedIndex, TimedLog
from tests.support.talk import is_the_models_turn

# Deferred: their descriptions are longer than Hypothesis likes to print.
STEPS = st.deferred(
    lambda: (
        turns(min_messages=20, max_messages=40, max_text=400, huge=3_000)
        | turns(recorded=True, min_messages=20, max_messages=40, max_text=400, huge=3_000)
    )
)
ARCHIVING = st.sampled_from((None, None, 10))
MEMORIES = st.builds(
    MemoriesSettings,
    most=st.sampled_from((1, 3, 5)),
    least_score=st.sampled_from((0.0, 0.4)),
    tokens=st.sampled_from((150, 400, 1_500)),
)


class _Refusing(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise AssertionError(record.getMessage())


class Remembering(Talk):
    """A conversation on fakes with an index, which quotes earlier messages."""

    def __init__(self, window: int, policy: CompactionPolicy, memories: MemoriesSettings) -> None:
        super().__init__(window, policy)
        self.log = TimedLog()
        self.events = self.log.streams.setdefault("t", [])
        self.index = ListedIndex(self.log)
        self.core = dataclasses.replace(
            self.core,
            log=self.log,
            views=MessageViews(self.log),
            recall=RecallParts(index=self.index),
            settings=replace(self.core.settings, memories=memories),
        )

    def settle(self) -> int:
        """Settle; a lookup that fails, which disturbs no turn, is a defect here."""
        logger, refusing = logging.getLogger("refold.application.memories"), _Refusing()
        logger.addHandler(refusing)
        try:
            return super().settle()
        finally:
            logger.removeHandler(refusing)

    @contextmanager
    def looking_nothing_up(self) -> Generator[None]:
        self.index.before_answering = lambda: pytest.fail("the index was asked")
        yield
        self.index.before_answering = None

    def rendered_at(self, version: int) -> Rendered:
        return render("t", self.log.load("t", at=version).window, None, COUNTER.count_text)

    def assert_quotations_are_true(self, shown: Rendered, budget: Budget) -> None:
        loaded = self.log.load("t")
        quoted = loaded.window.memories
        if quoted is None:
            assert loaded.state.memories_tokens == 0
            return
        event("quoted")
        size = memories_size("t", quoted.memories, COUNTER.count_text)
        assert loaded.state.memories_tokens == quoted.tokens == size
        assert size <= self.core.settings.memories.tokens
        assert shown.tokens + budget.fixed <= budget.limit
        said = {e.position: e for e in self.events if isinstance(e, MessageAppended)}
        for memory in quoted.memories:
            assert memory.text in readable(said[memory.position].message)
            assert copied(memory.text) in str(shown.system)


def _request(shown: Rendered, decisions: int) -> dict[str, Any]:
    messages = [{**m, "content": blocks_of(m["content"])} for m in shown.messages]
    return {"system": shown.system, "messages": messages, "decision": decisions}


@one_in(3)
@given(
    steps=STEPS,
    policy=POLICIES,
    archive_over=ARCHIVING,
    memories=MEMORIES,
    window=st.sampled_from((2_500, 3_000, 4_000)),
)
def test_memories_change_nothing_between_decisions_and_their_sizes_are_true(
    steps: list[Step],
    policy: CompactionPolicy,
    archive_over: int | None,
    memories: MemoriesSettings,
    window: int,
) -> None:
    policy = replace(policy, archive_over=archive_over, archive_buffer=2)
    talk, asked = Remembering(window, policy, memories), list[tuple[int, Rendered, int]]()
    for step in steps:
        talk.say(step)
        if not is_the_models_turn(talk.spoken):
            continue
        talk.settle()
        shown = talk.rendered()
        if shown.messages:
            assert violations({"messages": shown.messages}) == []
        talk.assert_sizes_are_true(shown)
        talk.assert_quotations_are_true(shown, talk.budget)
        with talk.looking_nothing_up():
            assert talk.settle() == 0, "settled twice, and decided twice"
            assert talk.rendered() == shown
        asked.append((talk.log.load("t").state.version, shown, talk.decisions()))
    assert prefix_violations([_request(shown, decisions) for _, shown, decisions in asked]) == []
    for version, shown, _ in asked:
        assert talk.rendered_at(version) == shown
