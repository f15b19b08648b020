"""The ladder on a history with tools: offload, condense, summarise, and stop as soon as it is enough."""

import asyncio
import dataclasses
from collections.abc import Sequence

import pytest

from refold.application.api.results import CompactionResult
from refold.application.compaction.fit_to_budget import settle
from refold.application.compaction.ladder import climb, make_fit
from refold.application.compaction.overflow import window_exceeded
from refold.application.conversation import appending
from refold.application.ports.token_counter import TokenCount
from refold.application.rendering.render import Rendered, render
from refold.application.runtime.core import Core
from refold.domain.compaction.budget import budget_for
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.errors import PinnedContentTooLarge
from refold.domain.events import (
    CompactionPerformed,
    Event,
    MessagePinned,
    MessagesCondensed,
    ShortenedPart,
    ToolContentOffloaded,
)
from refold.domain.messages import Block, Message
from refold.domain.value import replace
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.testing.request_judge import violations
from tests.support.builders import assistant, requested, tool_result, tool_use, user
from tests.support.builders import text as said
from tests.support.fake_ports import MemoryLog, PlainCounter, core_of
from tests.support.fake_summarisers import GoodSummariser, RaisingSummariser, RecordingSummariser

WINDOW = 8_000
POLICY = CompactionPolicy(whole_last=4)


class Ladder:
    """A conversation in a window of 8,000: trigger 5,600, target 2,800, limit 6,200.

    800 tokens are much; over 1,000 is large, over 1,400 a giant.
    """

    def __init__(self, core: Core | None = None, policy: CompactionPolicy = POLICY) -> None:
        self.log = MemoryLog()
        self.asked = RecordingSummariser(GoodSummariser())
        self.core = core or core_of(
            self.log, window=WINDOW, policy=policy, summariser=self.asked, fallback=self.asked
        )
        self.budget = budget_for(WINDOW, 0, policy)
        self.rounds = 0
        self.append(user("Please fix the build."))

    def append(self, *messages: Message) -> None:
        for message in messages:
            given = {"role": message.role, "content": message.content}
            appending.append(self.core, "t", given)

    def calls_tools(self, *sizes: int, words: int = 0) -> None:
        """A round: the model calls tools, whose results have these sizes in tokens."""
        self.rounds += 1
        ids = [f"c{self.rounds}_{n}" for n in range(len(sizes))]
        spoken = [said("word " * words)] if words else list[Block]()
        self.append(
            assistant(*spoken, *(tool_use(i, command="make") for i in ids)),
            user(
                *(tool_result(i, "line\n" * (s * 4 // 5)) for i, s in zip(ids, sizes, strict=True))
            ),
        )

    def settle(self) -> list[CompactionResult]:
        return asyncio.run(settle(self.core, "t", self.budget))

    @property
    def events(self) -> list[Event]:
        return self.core.log.streams["t"] if isinstance(self.core.log, MemoryLog) else []

    def decisions(self) -> list[str]:
        kinds = (ToolContentOffloaded, MessagesCondensed, CompactionPerformed)
        return [type(e).__name__ for e in self.events if isinstance(e, kinds)]

    def parts(self, kind: type[ToolContentOffloaded] | type[MessagesCondensed]) -> list[int]:
        found = (e.parts for e in self.events if isinstance(e, kind))
        return [part.position for parts in found for part in parts]

    def rendered(self) -> Rendered:
        window = self.core.log.load("t").window
        return render("t", window, None, self.core.counter.count_text)

    def assert_sizes_agree(self) -> None:
        """The size that decisions are made on is the size of what is rendered."""
        state, rendered = self.core.log.load("t").state, self.rendered()
        assert violations({"messages": rendered.messages}) == []
        assert state.tokens == rendered.tokens
        if state.summary is None:
            sent = [Message(role=m["role"], content=_content(m)) for m in rendered.messages]
            counted = sum(self.core.counter.count_message(message).total for message in sent)
            assert counted == state.tokens


def _content(message: dict[str, object]) -> str | tuple[Block, ...]:
    content = message["content"]
    return content if isinstance(content, str) else tuple(content)  # type: ignore[arg-type]


def test_below_the_trigger_no_rung_is_taken() -> None:
    ladder = Ladder()
    ladder.calls_tools(1_200)
    ladder.calls_tools(1_200, 1_200)
    assert ladder.settle() == []
    assert ladder.decisions() == []


def test_where_offloading_is_enough_nothing_is_condensed_or_summarised() -> None:
    ladder = Ladder()
    for _ in range(3):
        ladder.calls_tools(1_300)
    ladder.calls_tools(900)
    ladder.calls_tools(900)
    [result] = ladder.settle()
    assert ladder.decisions() == ["ToolContentOffloaded"]
    assert ladder.parts(ToolContentOffloaded) == [2, 4, 6]
    assert (result.outcome, result.success, result.trigger) == ("shortened", True, "size")
    assert (result.results_offloaded, result.results_condensed) == (3, 0)
    assert result.tokens_before > 5_600
    assert result.tokens_after == ladder.rendered().tokens
    assert result.freed == result.tokens_before - result.tokens_after > 800
    assert ladder.asked.requests == []
    ladder.assert_sizes_agree()


def test_where_nothing_is_large_older_results_are_condensed() -> None:
    ladder = Ladder()
    for _ in range(8):
        ladder.calls_tools(700)
    [result] = ladder.settle()
    assert ladder.decisions() == ["MessagesCondensed"]
    assert ladder.parts(MessagesCondensed) == [2, 4, 6, 8, 10, 12]
    assert (result.outcome, result.results_condensed) == ("shortened", 6)
    assert ladder.asked.requests == []
    first = ladder.rendered().messages[2]["content"][0]["content"]
    assert first.startswith("line\n" * 20)
    assert first.endswith("line\n" * 20)
    assert "soft-trim" in first
    assert "refold://t/2" in first
    ladder.assert_sizes_agree()


def test_where_neither_is_enough_only_what_the_summary_leaves_is_shown_shorter() -> None:
    ladder = Ladder()
    ladder.calls_tools(1_100)
    for _ in range(4):
        ladder.calls_tools(700, words=1_200)
    [result] = ladder.settle()
    assert ladder.decisions() == ["CompactionPerformed"]
    assert (result.outcome, result.offloads_released) == ("performed", 0)
    assert (result.results_offloaded, result.results_condensed) == (0, 0)
    assert result.tokens_before > 5_600
    assert result.tokens_after == ladder.rendered().tokens <= ladder.budget.target
    ladder.assert_sizes_agree()


def test_the_summariser_gets_the_whole_of_what_was_shown_shorter() -> None:
    ladder = Ladder()
    ladder.calls_tools(1_100)
    for _ in range(4):
        ladder.calls_tools(700, words=1_200)
    ladder.settle()
    requests = ladder.asked.requests
    sources = {s.position: s.message for request in requests for s in request.messages}
    assert sources[2].blocks()[0]["content"] == "line\n" * 880


def test_condensed_messages_that_outgrow_their_tier_are_summarised() -> None:
    policy = replace(POLICY, condensed_tier=0.05)
    ladder = Ladder(policy=policy)
    for _ in range(8):
        ladder.calls_tools(700)
    assert [r.outcome for r in ladder.settle()] == ["performed"]
    assert ladder.decisions() == ["CompactionPerformed"]


def test_settling_again_decides_nothing_and_repeats_the_request() -> None:
    ladder = Ladder()
    for _ in range(8):
        ladder.calls_tools(700)
    ladder.settle()
    version, request = len(ladder.events), ladder.rendered()
    assert ladder.settle() == []
    assert len(ladder.events) == version
    assert ladder.rendered() == request


def test_between_decisions_every_request_begins_with_the_one_before() -> None:
    ladder = Ladder()
    before, changes = ladder.rendered().messages, 0
    decided = 0
    for _ in range(40):
        ladder.calls_tools(300)
        ladder.settle()
        now = ladder.rendered().messages
        if len(ladder.decisions()) == decided:
            assert now[: len(before)] == before
        else:
            changes += 1
        before, decided = now, len(ladder.decisions())
    assert 2 <= changes <= 6
    ladder.assert_sizes_agree()


def test_an_offloaded_result_is_condensed_when_it_is_older() -> None:
    ladder = Ladder()
    for _ in range(3):
        ladder.calls_tools(1_300)
    ladder.calls_tools(900, 900)
    ladder.settle()
    for _ in range(5):
        ladder.calls_tools(600)
    ladder.settle()
    assert 2 in ladder.parts(ToolContentOffloaded)
    assert 2 in ladder.parts(MessagesCondensed)
    previews = ladder.core.log.load("t").window.previews
    assert previews[(2, "c1_0", "result")].method == "soft-trim"
    ladder.assert_sizes_agree()


def test_sizes_agree_to_the_token_for_many_results_in_one_message() -> None:
    log = MemoryLog()
    plain = core_of(log, window=WINDOW, policy=POLICY)
    ladder = Ladder(
        Core(
            log=log,
            keeper=plain.keeper,
            views=plain.views,
            recall=plain.recall,
            counter=EstimatingTokenCounter(),
            summariser=plain.summariser,
            fallback=plain.fallback,
            clock=plain.clock,
            new_id=plain.new_id,
            settings=plain.settings,
        )
    )
    for sizes in ((101,) * 17, (333,) * 7, (257,) * 9):
        ladder.calls_tools(*sizes)
    ladder.append(assistant("Done."), user("And now?"))
    ladder.calls_tools(700)
    ladder.calls_tools(700)
    climb(ladder.core, "t", ladder.budget, all_of_it=True)
    assert len(ladder.parts(MessagesCondensed)) > 20
    ladder.assert_sizes_agree()


class Doubled(PlainCounter):
    """A counter that has learnt that everything takes twice as much."""

    def count_text(self, text: str) -> int:
        return 2 * super().count_text(text)

    def count_message(self, message: Message) -> TokenCount:
        before = super().count_message(message)
        return TokenCount(total=2 * before.total, thinking=2 * before.thinking)


def test_what_is_saved_is_counted_as_it_was_recorded_whatever_the_counter_learnt_since() -> None:
    ladder, other = Ladder(), Ladder()
    for _ in range(8):
        ladder.calls_tools(700)
        other.calls_tools(700)
    other.core = dataclasses.replace(other.core, counter=Doubled())
    for one in (ladder, other):
        climb(one.core, "t", one.budget)
    learnt, plain = other.core.log.load("t").state, ladder.core.log.load("t").state
    assert ladder.parts(MessagesCondensed) == other.parts(MessagesCondensed)
    assert learnt.tokens == pytest.approx(plain.tokens, abs=8)


def test_a_pinned_message_is_not_touched() -> None:
    ladder = Ladder()
    for _ in range(8):
        ladder.calls_tools(700)
    ladder.events.append(MessagePinned(pin_id="p", position=4, text="", tokens=0))
    ladder.settle()
    assert ladder.parts(MessagesCondensed) == [2, 6, 8, 10, 12]


def test_a_call_that_waits_for_approval_is_not_touched_even_if_it_is_a_giant() -> None:
    ladder = Ladder()
    for _ in range(4):
        ladder.calls_tools(1_000)
    waiting = tool_use("w", code="line\n" * 1_300)
    ladder.append(assistant(waiting))
    ladder.settle()
    assert ladder.rendered().messages[-2]["content"][-1]["input"] == waiting["input"]


def test_what_nobody_has_read_yet_is_not_condensed() -> None:
    ladder = Ladder(policy=replace(POLICY, whole_last=1))
    for _ in range(6):
        ladder.calls_tools(600)
    ladder.calls_tools(600, 600, 600)
    ladder.settle()
    assert 14 not in ladder.parts(MessagesCondensed)


def test_where_dropping_the_thinking_is_enough_nothing_else_is_changed() -> None:
    ladder = Ladder()
    for n in range(8):
        thought: Block = {"type": "thinking", "thinking": "hm " * 450, "signature": "s"}
        ladder.append(
            assistant(thought, tool_use(f"t{n}", command="make")),
            user(tool_result(f"t{n}", "line\n" * 300)),
        )
    [result] = ladder.settle()
    assert (result.outcome, result.results_condensed) == ("shortened", 6)
    assert "thinking" not in str(ladder.rendered().messages)
    ladder.assert_sizes_agree()


def test_a_failing_summariser_leaves_what_the_rungs_freed() -> None:
    log, raising = MemoryLog(), RaisingSummariser()
    ladder = Ladder(core_of(log, window=WINDOW, policy=POLICY, summariser=raising))
    ladder.calls_tools(250)
    for _ in range(4):
        ladder.calls_tools(250, words=950)
    [result] = ladder.settle()
    assert (result.outcome, result.reason) == ("failed", "overloaded")
    assert result.results_condensed == 3
    assert result.tokens_after == ladder.rendered().tokens < result.tokens_before
    assert ladder.settle() == []
    assert raising.calls == 1


def test_while_a_compaction_runs_elsewhere_and_the_request_fits_no_rung_is_taken() -> None:
    ladder = Ladder()
    for _ in range(8):
        ladder.calls_tools(700)
    ladder.events.append(requested(4))
    assert [r.outcome for r in ladder.settle()] == ["in_flight"]
    assert ladder.decisions() == []


def test_a_decision_that_was_overtaken_is_made_again_on_what_is_there_now() -> None:
    ladder = Ladder()
    for _ in range(8):
        ladder.calls_tools(700)
    elsewhere = ShortenedPart(position=2, call_id="c1_0", side="result", tokens_freed=600)
    between = MessagesCondensed(parts=(elsewhere,), characters=200)
    ladder.log.before_deciding = lambda: ladder.events.append(between)
    ladder.settle()
    assert ladder.parts(MessagesCondensed) == [2, 4, 6, 8, 10, 12]


def test_the_last_resort_goes_from_previews_to_markers_and_stops_when_it_fits() -> None:
    ladder = Ladder()
    ladder.calls_tools(*(400 for _ in range(100)))
    budget = budget_for(WINDOW, 0, POLICY)
    done = make_fit(ladder.core, "t", budget)
    assert ladder.rendered().tokens <= budget.limit
    assert done.offloaded > 0
    assert done.condensed > 0
    methods = {p.method for p in ladder.core.log.load("t").window.previews.values()}
    assert methods == {"offload", "hard-clear"}
    ladder.assert_sizes_agree()


def _pinned(*texts: tuple[str, int]) -> Sequence[Event]:
    return [MessagePinned(pin_id=i, position=None, text="x", tokens=t) for i, t in texts]


def test_pins_that_do_not_fit_by_themselves_are_named() -> None:
    ladder = Ladder()
    ladder.events.extend(_pinned(("rules", 4_000), ("style", 2_201)))
    error = window_exceeded(ladder.core.log.load("t"), 6_900, ladder.budget)
    assert isinstance(error, PinnedContentTooLarge)
    assert (error.needed, error.budget, error.pinned) == (6_900, 6_200, 6_201)
    assert error.pins == ("rules", "style")
    assert "pin 'rules' 4,000 tokens, pin 'style' 2,201 tokens" in str(error)
    assert "Unpin" in str(error)


def test_a_message_that_is_pinned_in_its_place_counts_as_pinned() -> None:
    ladder = Ladder()
    ladder.append(assistant("ok"), user("word " * 5_200))
    ladder.events.append(MessagePinned(pin_id="p", position=2, text="", tokens=0))
    error = window_exceeded(ladder.core.log.load("t"), 6_700, ladder.budget)
    assert isinstance(error, PinnedContentTooLarge)
    assert "pin 'p' of message 2" in str(error)


@pytest.mark.parametrize("pins", [[], [("rules", 6_200)]])
def test_pins_that_fit_alone_are_not_to_blame(pins: list[tuple[str, int]]) -> None:
    ladder = Ladder()
    ladder.events.extend(_pinned(*pins))
    error = window_exceeded(ladder.core.log.load("t"), 6_900, ladder.budget)
    assert not isinstance(error, PinnedContentTooLarge)
    assert "message 0 (user)" in str(error)


@pytest.mark.parametrize("pins", [[], [("rules", 100)]])
def test_instruction_files_that_do_not_fit_are_named_with_their_settings(
    pins: list[tuple[str, int]],
) -> None:
    ladder = Ladder()
    ladder.events.extend(_pinned(*pins))
    budget = budget_for(WINDOW, 7_200, POLICY, instructions=7_000)
    error = window_exceeded(ladder.core.log.load("t"), 7_310, budget)
    assert not isinstance(error, PinnedContentTooLarge), "unpinning would not help"
    assert (error.needed, error.budget, error.instructions) == (7_310, 6_200, 7_000)
    assert "instruction files 7,000 tokens; system text and tools 200 tokens; " in str(error)
    for setting in ("instruction_files", "instruction_characters", "instruction_total"):
        assert f"`{setting}`" in str(error)
    error = window_exceeded(
        ladder.core.log.load("t"), 7_110, budget_for(WINDOW, 7_000, POLICY, instructions=7_000)
    )
    assert "system text" not in str(error)


def test_pins_that_do_not_fit_beside_instruction_files_are_named_with_both() -> None:
    ladder = Ladder()
    ladder.events.extend(_pinned(("rules", 4_000)))
    budget = budget_for(WINDOW, 3_000, POLICY, instructions=3_000)
    error = window_exceeded(ladder.core.log.load("t"), 7_100, budget)
    assert isinstance(error, PinnedContentTooLarge)
    assert (error.pinned, error.instructions) == (4_000, 3_000)
    assert "instruction files 3,000 tokens" in str(error)
    assert "`instruction_total`" in str(error)


def test_without_instruction_files_nothing_is_said_of_them() -> None:
    budget = budget_for(WINDOW, 7_000, POLICY)
    error = window_exceeded(Ladder().core.log.load("t"), 7_110, budget)
    assert error.instructions == 0
    assert "system text and tools 7,000 tokens" in str(error)
    assert "instruction" not in str(error)
