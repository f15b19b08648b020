"""A context that outgrew its budget is brought down, step by step, and never at any price."""

from typing import Any

import pytest

import refold
from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.results import Context
from refold.application.ports.summariser import Summariser
from refold.domain.compaction.budget import Budget
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.errors import ContextWindowExceeded, InvalidSetting
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    Event,
    ToolContentOffloaded,
)
from refold.testing.request_judge import violations
from tests.support.builders import calls, requested, results, tool_result, tool_use, user
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.fake_summarisers import (
    GoodSummariser,
    RaisingSummariser,
    RecordingSummariser,
    every_answering_fake,
)


class Agent:
    """A conversation with a window of 8,000 tokens: trigger at 5,600, limit 6,200."""

    def __init__(
        self,
        summariser: Summariser | None = None,
        policy: CompactionPolicy | None = None,
    ) -> None:
        self.log = MemoryLog()
        self.helper = RecordingSummariser(GoodSummariser())
        self.core = core_of(
            self.log, window=8_000, summariser=summariser, fallback=self.helper, policy=policy
        )

    def says(self, tokens: int, *, turns: int = 1) -> None:
        """Turns of two messages, each turn about so large."""
        words = "word " * (tokens * 2 // 5)
        pair = [{"role": "user", "content": words}, {"role": "assistant", "content": words}]
        self.conversation.append(pair * turns)

    @property
    def conversation(self) -> ConversationMemory:
        return ConversationMemory(self.core, "t", Runner())

    def context(self, **more: Any) -> Context:
        runner = Runner()
        try:
            context = ConversationMemory(self.core, "t", runner).context(**more)
        finally:
            runner.close()
        assert violations(context.for_anthropic()) == []
        assert context.tokens <= context.budget.limit
        return context

    def events(self, kind: type[Event]) -> list[Event]:
        return [e for e in self.log.streams["t"] if isinstance(e, kind)]


def test_below_the_trigger_nothing_happens() -> None:
    agent = Agent(RaisingSummariser())
    agent.says(500, turns=10)
    context = agent.context()
    assert context.compactions == ()
    assert context.summary is None
    assert len(context.messages) == 21


def test_over_the_trigger_the_context_comes_down_to_the_target() -> None:
    agent = Agent()
    agent.says(500, turns=12)
    context = agent.context()
    assert [c.outcome for c in context.compactions] == ["performed"]
    assert context.tokens <= context.budget.target
    assert len(agent.helper.requests) == 1  # It extracts the leaf, and writes no summary.


def test_the_next_context_is_the_same_without_asking_again() -> None:
    recording = RecordingSummariser()
    agent = Agent(recording)
    agent.says(500, turns=12)
    first, second = agent.context(), agent.context()
    assert second.compactions == ()
    assert (second.system, second.messages) == (first.system, first.messages)
    assert len(recording.requests) == 1


def test_a_failure_leaves_a_context_that_fits_as_it_was() -> None:
    agent = Agent(RaisingSummariser())
    agent.says(500, turns=12)
    before = agent.context(at=24)
    context = agent.context()
    assert [c.reason for c in context.compactions] == ["overloaded"]
    assert context.messages == before.messages
    assert agent.helper.requests == []


def test_after_a_failure_the_summariser_is_not_asked_before_the_context_has_grown() -> None:
    raising = RaisingSummariser()
    agent = Agent(raising)
    agent.says(500, turns=12)
    agent.context()
    agent.context()
    assert raising.calls == 1
    agent.says(200)
    agent.context()
    assert raising.calls == 2


def test_the_embedded_summariser_steps_in_where_the_request_would_not_fit() -> None:
    agent = Agent(RaisingSummariser())
    agent.says(500, turns=14)
    context = agent.context()
    assert [(c.outcome, c.summariser) for c in context.compactions] == [
        ("failed", "raising"),
        ("performed", "good"),
    ]
    assert len(agent.helper.requests) == 2  # The summary, and its leaf.
    assert context.tokens <= context.budget.target


@pytest.mark.parametrize("summariser", every_answering_fake(), ids=lambda s: s.name)
def test_whatever_a_summariser_answers_the_context_fits(summariser: Summariser) -> None:
    agent = Agent(summariser)
    agent.says(500, turns=14)
    assert agent.context().summary is not None


def test_a_compaction_that_hangs_elsewhere_is_not_waited_for_when_the_request_would_not_fit() -> (
    None
):
    agent = Agent()
    agent.says(500, turns=14)
    agent.log.streams["t"].append(requested(8))
    context = agent.context()
    assert [c.outcome for c in context.compactions] == ["in_flight", "performed"]
    [given_up] = agent.events(CompactionFailed)
    assert isinstance(given_up, CompactionFailed)
    assert given_up.reason == "abandoned"


def test_a_compaction_that_runs_elsewhere_is_left_alone_while_the_request_fits() -> None:
    agent = Agent()
    agent.says(500, turns=12)
    agent.log.streams["t"].append(requested(8))
    context = agent.context()
    assert [c.outcome for c in context.compactions] == ["in_flight"]
    assert agent.events(CompactionFailed) == []


def test_giant_results_are_offloaded_before_a_summary_is_made() -> None:
    agent = Agent()
    agent.conversation.append([user("go"), calls("a"), user(tool_result("a", "line\n" * 6_000))])
    agent.says(500, turns=2)
    context = agent.context()
    [event] = agent.events(ToolContentOffloaded)
    assert isinstance(event, ToolContentOffloaded)
    assert [(p.position, p.side) for p in event.parts] == [(2, "result")]
    assert [c.outcome for c in context.compactions] == ["shortened"]
    assert context.summary is None
    assert "refold://t/2" in str(context.messages)
    assert agent.conversation.messages(2, 3)[0].message.blocks()[0]["content"] == "line\n" * 6_000


def test_giant_inputs_are_offloaded_as_well() -> None:
    agent = Agent()
    call = {"role": "assistant", "content": [tool_use("a", code="line\n" * 6_000)]}
    agent.conversation.append([user("go"), call, results("a")])
    agent.says(500, turns=2)
    assert "refold://t/1" in str(agent.context().messages)


def test_a_running_turn_of_large_results_fits_by_offloading_them() -> None:
    agent = Agent()
    names = [f"c{i}" for i in range(6)]
    answers = user(*(tool_result(name, "line\n" * 1_000) for name in names))
    agent.conversation.append([user("go"), calls(*names), answers])
    context = agent.context()
    assert "refold://t/2" in str(context.messages)
    assert context.messages[0]["content"] == "go"


def test_what_cannot_be_made_smaller_is_a_typed_error_with_figures() -> None:
    agent = Agent()
    agent.conversation.append(user("word " * 9_000))
    agent.conversation.pin(0)
    with pytest.raises(ContextWindowExceeded) as caught:
        agent.context()
    assert caught.value.budget == 6_200
    assert caught.value.needed > 7_500
    assert "message 0" in str(caught.value)


def test_a_large_system_prompt_counts() -> None:
    agent = Agent()
    agent.says(500, turns=9)
    assert agent.context(at=18).tokens < 5_600
    context = agent.context(system="rule " * 1_000)
    assert len(context.compactions) == 1
    assert isinstance(context.budget, Budget)


def test_a_context_of_the_past_compacts_nothing_and_never_changes() -> None:
    agent = Agent()
    agent.says(500, turns=12)
    before = agent.context(at=24)
    assert before.compactions == ()
    now = agent.context()
    assert agent.context(at=24) == before
    assert agent.context(at=now.version).messages == now.messages
    assert len(agent.events(CompactionPerformed)) == 1


@pytest.mark.parametrize("version", [-1, 3, 10**30])
def test_a_version_that_does_not_exist_is_refused(version: int) -> None:
    agent = Agent()
    agent.says(10)
    with pytest.raises(InvalidSetting, match="versions 0 to 2"):
        agent.conversation.context(at=version)


def test_tools_and_system_prompt_come_back_as_copies() -> None:
    agent = Agent()
    agent.says(10)
    tool = {"name": "bash", "input_schema": {"type": "object"}}
    context = agent.context(system="You help.", tools=[tool])
    assert context.for_anthropic()["tools"] == [tool]
    assert context.for_anthropic()["system"] == "You help."
    context.tools[0]["input_schema"].clear()
    assert tool["input_schema"] == {"type": "object"}


def test_a_long_conversation_asks_once_a_compaction_and_each_frees_room() -> None:
    recording = RecordingSummariser()
    agent = Agent(recording)
    sizes: list[int] = []
    for _ in range(60):
        agent.says(300)
        sizes.append(agent.context().tokens)
    assert len(recording.requests) == len(agent.events(CompactionPerformed))
    assert len(agent.events(CompactionRequested)) == len(agent.events(CompactionPerformed))
    assert 3 <= len(recording.requests) <= 12
    assert max(sizes) < 5_600 + 400


def test_a_call_that_waits_for_approval_is_never_shortened() -> None:
    with refold.open(":memory:", window=2_000) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "please write the file"})
        call = {"type": "tool_use", "id": "c1", "name": "write", "input": {"text": "x1 " * 2_000}}
        conversation.append({"role": "assistant", "content": [call]})
        with pytest.raises(refold.ContextWindowExceeded, match="message 1"):
            conversation.context()
        answer = {"type": "tool_result", "tool_use_id": "c1", "content": "written"}
        conversation.append({"role": "user", "content": [answer]})
        context = conversation.context()
        assert context.tokens <= context.budget.limit
        assert "refold://t/1" in str(context.messages)


@pytest.mark.parametrize("what", ["tools", "pin"])
def test_nothing_is_folded_for_a_request_that_could_not_fit_anyway(what: str) -> None:
    agent, huge = Agent(), "word " * 20_000
    agent.says(400, turns=8)
    tools: list[dict[str, Any]] = []
    match what:
        case "tools":
            tools = [{"name": "t", "description": huge, "input_schema": {"type": "object"}}]
        case _:
            agent.conversation.pin(huge)
    version = agent.conversation.version
    with pytest.raises(ContextWindowExceeded):
        agent.context(tools=tools)
    assert agent.conversation.version == version
