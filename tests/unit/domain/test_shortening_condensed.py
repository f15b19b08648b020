"""Tool results of older messages are cut short: all of them at once, and nothing else."""

from refold.domain.compaction.budget import budget_for
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.conversation import Conversation
from refold.domain.events import MessagesCondensed, ShortenedPart
from refold.domain.evolve import fold
from refold.domain.shortening import (
    Side,
    ToolPart,
    choose_condensed,
    condense_parts,
    select_worth_marking,
)
from tests.support.builders import appended, calls, conversation, history, talk

POLICY = CompactionPolicy(whole_last=4)
BUDGET = budget_for(8_000, 0, POLICY)
"""A tenth of the window are 800 tokens, and a quarter of that is worth a decision."""
STATE = conversation(*talk(6))
"""Twelve messages of which those from position 8 on stay whole."""


def part(position: int, freed: int = 150, side: Side = "result") -> ToolPart:
    return ToolPart(position, f"c{position}", side, freed + 50, 50)


def chosen(*parts: ToolPart, state: Conversation = STATE) -> list[int] | None:
    found = choose_condensed(parts, state, BUDGET, POLICY)
    return None if found is None else [p.position for p in found]


def test_all_results_before_the_whole_messages_are_cut_at_once() -> None:
    assert chosen(part(1), part(3), part(7), part(8), part(9)) == [1, 3, 7]


def test_inputs_are_the_models_own_words_and_stay() -> None:
    assert chosen(part(1, 900, "call"), part(2, 900)) == [2]


def test_a_result_that_a_marker_makes_hardly_smaller_stays() -> None:
    assert [p.position for p in select_worth_marking([part(1, 19), part(2, 20)])] == [2]


def test_too_little_is_no_decision() -> None:
    assert chosen(part(1, 199)) is None
    assert chosen(part(1, 200)) == [1]
    assert chosen() is None


def test_dropping_the_thinking_can_be_worth_it_alone() -> None:
    thinks = appended(12, calls("a"), 300, thinking_tokens=200)
    assert chosen(state=fold([*history(*talk(6)), thinks])) == []


def test_one_event_holds_all_parts_and_what_is_left_of_them() -> None:
    parts = [ShortenedPart(position=2, call_id="a", side="result", tokens_freed=70)]
    assert condense_parts(parts, 200) == (MessagesCondensed(parts=tuple(parts), characters=200),)
