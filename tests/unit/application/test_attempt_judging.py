"""Only a good summary is committed: one repair, then all stays as it was, and nobody is asked for ever."""

import pytest

from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.results import CompactionResult
from refold.application.errors import SummariserError
from refold.application.ports.summariser import Summariser
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.compaction.summary_rules import SummaryRefused
from refold.domain.events import CompactionFailed, CompactionPerformed, Event
from refold.domain.value import replace
from refold.infrastructure.summarisers.extractive.summariser import ExtractiveSummariser
from tests.support.bounded_summarisers import Bounded, Forgetful, Scripted, draft_of
from tests.support.builders import calls, talk, tool_result, user
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.fake_summarisers import (
    EmptySummariser,
    LongerThanSourceSummariser,
    RaisingSummariser,
    RecordingSummariser,
    TruncatedSummariser,
)
from tests.support.summary_scenes import Scene

GOOD = "They talked about the parser."


class Agent:
    """A conversation with a window of 8,000 tokens."""

    def __init__(self, summariser: Summariser, fallback: Summariser | None = None) -> None:
        self.log = MemoryLog()
        self.core = core_of(self.log, summariser=summariser, fallback=fallback)

    def says(self, tokens: int, *, turns: int = 1) -> None:
        words = "word " * (tokens * 2 // 5)
        pair = [{"role": "user", "content": words}, {"role": "assistant", "content": words}]
        ConversationMemory(self.core, "t", Runner()).append(pair * turns)

    def asks(self) -> tuple[CompactionResult, ...]:
        runner = Runner()
        try:
            context = ConversationMemory(self.core, "t", runner).context()
        finally:
            runner.close()
        assert context.tokens <= context.budget.limit
        return context.compactions

    def events(self, kind: type[Event]) -> list[Event]:
        return [e for e in self.log.streams["t"] if isinstance(e, kind)]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("", "empty"),
        ("Error: 529 overloaded_error", "an error in place"),
        (" ".join(f"w{n}" for n in range(3_000)), "there is room for 1,200"),
        (draft_of("They ta", complete=False), "cut off"),
        (draft_of(GOOD, required=("## Status",)), "## Status"),
        (SummariserError("truncated", "ran into max_tokens"), "max_tokens"),
    ],
)
def test_a_refused_answer_is_asked_for_once_more_with_the_reason(bad: object, reason: str) -> None:
    scripted = Scripted(bad, GOOD)  # type: ignore[arg-type]
    summary = Scene(*talk(4), summariser=scripted, focus="x").written()
    assert summary.text == GOOD
    first, second = scripted.requests
    assert first.repair is None
    assert reason in str(second.repair)
    assert replace(second, repair=None) == first
    assert summary.model_calls == 2


def test_a_second_refusal_is_the_end() -> None:
    scripted = Scripted("", "", GOOD)
    with pytest.raises(SummaryRefused, match="empty"):
        Scene(*talk(4), summariser=scripted).written()
    assert len(scripted.requests) == 2


@pytest.mark.parametrize("repairs", [0, 1, 3])
def test_how_often_it_is_asked_again_is_a_setting(repairs: int) -> None:
    scripted = Scripted("")
    core = core_of(summariser=scripted, policy=CompactionPolicy(repairs=repairs))
    with pytest.raises(SummaryRefused):
        Scene(*talk(4), summariser=scripted, core=core).written()
    assert len(scripted.requests) == 1 + repairs


def test_what_is_no_fault_of_the_answer_is_not_asked_for_again() -> None:
    raising = RaisingSummariser("overloaded")
    with pytest.raises(SummariserError, match="overloaded"):
        Scene(*talk(4), summariser=raising).written()
    assert raising.calls == 1


def test_the_repair_is_one_for_all_chunks_together() -> None:
    bounded = Bounded(5_000, EmptySummariser())
    with pytest.raises(SummaryRefused):
        Scene(*(user("word" * 380) for _ in range(9)), summariser=bounded).written()
    assert len(bounded.requests) == 2


def test_a_text_must_be_smaller_than_what_it_stands_for() -> None:
    scripted = Scripted(" ".join(f"w{n}" for n in range(900)))
    with pytest.raises(SummaryRefused) as caught:
        Scene(*talk(4), summariser=scripted, covered_tokens=500).written()
    assert caught.value.reason == "not_smaller"
    assert {r.limit_tokens for r in scripted.requests} == {500 - 60 - 1}


def test_required_parts_are_looked_for_in_every_part_of_a_divided_text() -> None:
    history = draft_of("## Status\nall went fine", required=("## Status",))
    turn = draft_of("## Early Progress\nmuch was done", required=("## Early Progress",))
    summary = Scene(*talk(4), summariser=Scripted(history, turn), split_at=4).written()
    assert summary.required == ("## Status", "## Early Progress")


ALWAYS_WRONG: list[Summariser] = [
    EmptySummariser(),
    TruncatedSummariser(),
    LongerThanSourceSummariser(),
]


@pytest.mark.parametrize("wrong", ALWAYS_WRONG, ids=lambda s: s.name)
def test_one_that_is_always_wrong_is_asked_twice_and_everything_stays(wrong: Summariser) -> None:
    recording = RecordingSummariser(wrong)
    agent = Agent(recording)
    agent.says(500, turns=12)
    [result] = agent.asks()
    assert (result.outcome, result.model_calls, result.retries) == ("failed", 2, 0)
    [failed] = agent.events(CompactionFailed)
    assert isinstance(failed, CompactionFailed)
    assert (failed.reason, failed.model_calls) == (result.reason, 2)
    assert failed.detail
    assert agent.asks() == (), "nobody is asked again before something is new"
    assert len(recording.requests) == 2


@pytest.mark.parametrize("wrong", ALWAYS_WRONG, ids=lambda s: s.name)
def test_while_an_agent_works_on_the_calls_stay_bounded(wrong: Summariser) -> None:
    recording = RecordingSummariser(wrong)
    agent = Agent(recording)
    triggers = 0
    for _ in range(120):
        agent.says(100)
        triggers += bool(agent.asks())
    assert triggers > 0
    assert len(recording.requests) <= 2 * triggers
    assert len(agent.events(CompactionPerformed)) >= 2, "code steps in"
    assert len(recording.requests) <= 40, "and a breaker opens in between"


def test_where_even_the_embedded_summariser_is_refused_a_note_stands_for_the_messages() -> None:
    agent = Agent(EmptySummariser(), fallback=EmptySummariser())
    agent.says(500, turns=14)
    results = agent.asks()
    assert [(r.outcome, r.summariser) for r in results] == [
        ("failed", "empty"),
        ("failed", "empty"),
        ("performed", "note"),
    ]
    performed = agent.events(CompactionPerformed)[-1]
    assert isinstance(performed, CompactionPerformed)
    assert "could not be summarised" in performed.text
    assert "refold://t/0" in performed.text
    assert performed.leaf is not None


def test_the_note_keeps_the_summary_before_it() -> None:
    agent = Agent(Scripted(GOOD, ""), fallback=EmptySummariser())
    agent.says(500, turns=12)
    agent.asks()
    agent.says(500, turns=14)
    results = agent.asks()
    assert results[-1].summariser == "note"
    performed = agent.events(CompactionPerformed)[-1]
    assert isinstance(performed, CompactionPerformed)
    assert performed.text.startswith(GOOD)


def test_a_rejected_text_never_blocks_a_later_compaction() -> None:
    agent = Agent(Scripted("", "", GOOD))
    agent.says(500, turns=12)
    assert agent.asks()[0].outcome == "failed"
    agent.says(200)
    assert agent.asks()[0].outcome == "performed"


@pytest.mark.parametrize("summariser", [ExtractiveSummariser(), Forgetful()], ids=lambda s: s.name)
def test_the_latest_request_is_live_or_in_the_ledger_or_in_the_text(summariser: Summariser) -> None:
    agent = Agent(summariser, ExtractiveSummariser())
    runner = Runner()
    conversation = ConversationMemory(agent.core, "t", runner)
    for n in range(40):
        asked = f"Please look into item {n} of the list. "
        conversation.append({"role": "user", "content": asked + "It is long. " * 30})
        for call in range(n % 7):
            name = f"c{n}-{call}"
            conversation.append([calls(name), user(tool_result(name, "line " * 60))])
        conversation.append({"role": "assistant", "content": f"Item {n} is done."})
        conversation.compact() if n % 3 == 2 else conversation.context()
        loaded = agent.log.load("t")
        live = str([entry.message.content for entry in loaded.window.entries])
        summary = loaded.window.summary
        kept = str([line.text for line in summary.ledger]) + summary.text if summary else ""
        assert asked.strip() in live + kept
    runner.close()
    assert len(agent.events(CompactionPerformed)) >= 5
