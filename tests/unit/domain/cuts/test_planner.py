"""The planner chooses among the legal cuts, or names the rule that blocks."""

import pytest

from refold.domain.compaction.budget import Budget
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.conversation import Conversation
from refold.domain.cuts.planner import CompactionPlan, NothingToCompact, plan_compaction
from refold.domain.cuts.rules import CutRule, Cuts
from refold.domain.events import MessagePinned, Trigger
from refold.domain.evolve import fold
from refold.domain.messages import Message
from refold.domain.value import replace
from tests.support.builders import (
    appended,
    assistant,
    calls,
    conversation,
    coverage,
    history,
    performed,
    results,
    system,
    talk,
    user,
)

POLICY = CompactionPolicy(summary_tier=0.1, ledger_share=0.05, index_share=0)
BUDGET = Budget(
    window=1_500,
    margin=0,
    reserve=0,
    fixed=0,
    limit=1_400,
    trigger=1_000,
    target=600,
    summary_overhead=0,
)
"""Room for 1,000 tokens; summary and ledger take at most 180 and 70, so that 350 of messages may stay."""


def plan(
    state: Conversation, trigger: Trigger = "size", policy: CompactionPolicy = POLICY
) -> CompactionPlan:
    found = plan_compaction(state, BUDGET, policy, trigger)
    assert isinstance(found, CompactionPlan), found
    return found


def blocked(state: Conversation, trigger: Trigger = "size") -> str:
    found = plan_compaction(state, BUDGET, POLICY, trigger)
    assert isinstance(found, NothingToCompact), found
    assert found.because
    return found.rule


def rounds(count: int) -> list[Message]:
    """One request and then tool rounds only."""
    pairs = [(calls(f"c{i}"), results(f"c{i}")) for i in range(count)]
    return [user("do it all"), *(message for pair in pairs for message in pair)]


def test_as_much_is_kept_as_meets_the_target() -> None:
    found = plan(conversation(*rounds(7), assistant("more")))
    assert found.coverage.stop == 13
    assert found.kept_tokens == 300
    assert found.covered_tokens == 1_300


def test_the_plan_says_what_it_leaves_room_for() -> None:
    found = plan(conversation(*talk(6)))
    assert found.goal_tokens == 600
    assert found.beside_tokens == 70
    longest = found.kept_tokens + found.limit_tokens + found.beside_tokens
    assert longest <= found.goal_tokens


def test_the_summary_aims_at_its_share_with_a_fifth_of_slack() -> None:
    found = plan(conversation(*talk(6)))
    assert (found.target_tokens, found.limit_tokens) == (150, 180)


def test_a_tool_round_moves_the_cut_on() -> None:
    state = conversation(*talk(4), user("go"), calls("a"), results("a"), assistant("done"))
    assert plan(state).coverage.stop == 9
    wide = conversation(*talk(4), calls("a"), *[user("hm")] * 2, results("a"), assistant("done"))
    assert plan(wide).coverage.stop == 12


def test_on_demand_the_newest_messages_are_kept() -> None:
    assert plan(conversation(*talk(6), tokens=50), "manual").coverage.stop == 6
    keep_two = replace(POLICY, keep_last=2)
    assert plan(conversation(*talk(6)), "manual", keep_two).coverage.stop == 9


def test_on_demand_the_kept_messages_are_extended_over_a_tool_round() -> None:
    tail = [calls("a"), results("a"), *talk(2)]
    assert plan(conversation(*talk(2), *tail), "manual").coverage.stop == 4


@pytest.mark.parametrize("trigger", ["size", "manual"])
def test_a_conversation_of_the_newest_messages_is_left_alone(trigger: Trigger) -> None:
    assert blocked(conversation(*talk(2), user("x")), trigger) == "keep_last"
    assert blocked(conversation(), trigger) == "keep_last"


def test_nothing_new_since_the_last_compaction_is_nothing_to_do() -> None:
    state = fold([*history(*talk(8)), performed(8)])
    assert blocked(state, "manual") == "nothing_new"


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([calls("a"), *[user("hm")] * 12], "pending_calls"),
        ([user("x")] * 12, "unanswered_messages"),
    ],
)
def test_the_rule_that_leaves_no_cut_is_named(messages: list[Message], rule: str) -> None:
    assert blocked(conversation(*messages)) == rule


def nowhere(state: Conversation) -> Cuts:
    del state
    return frozenset()


def test_a_rule_of_ones_own_is_named_as_well() -> None:
    never = CutRule("never", "because", nowhere)
    found = plan_compaction(conversation(*talk(6)), BUDGET, POLICY, "size", [never])
    assert found == NothingToCompact(rule="never", because="because")


def test_requests_alone_are_not_covered() -> None:
    state = conversation(user("do it all"), calls("a"), results("a"), tokens=400)
    assert blocked(state) == "open_requests"


def test_thinking_of_what_stays_is_not_counted_for_it_goes() -> None:
    thought = [appended(i, m, 100, thinking_tokens=50) for i, m in enumerate(rounds(7))]
    found = plan(fold(thought))
    assert found.coverage.stop == 9
    assert found.kept_tokens == 350


def test_pinned_texts_are_part_of_what_stays() -> None:
    line = MessagePinned(pin_id="p", position=None, text="never on Fridays", tokens=100)
    found = plan(fold([*history(*talk(6)), line]))
    assert (found.coverage.stop, found.kept_tokens) == (10, 300)


def test_the_summary_may_be_half_as_long_where_that_meets_the_target() -> None:
    roomy = replace(BUDGET, window=15_000, limit=14_000, trigger=10_000, target=5_000)
    state = conversation(*talk(2), calls("a"), results("a"), tokens=1_500)
    found = plan_compaction(state, roomy, POLICY, "size")
    assert isinstance(found, CompactionPlan)
    assert found.kept_tokens == 3_000
    assert (found.target_tokens, found.limit_tokens) == (1_083, 1_300)
    assert found.kept_tokens + found.limit_tokens + found.beside_tokens == found.goal_tokens


def test_the_request_of_the_running_turn_stays_when_the_cut_lies_inside_the_turn() -> None:
    found = plan(conversation(*rounds(7)))
    assert found.coverage.exclusions == (0,)
    assert found.coverage.stop > 1
    assert found.coverage.first_message_id == "m0"
    assert found.coverage.count == found.coverage.stop - 1
    assert found.kept_tokens <= 350


def test_the_last_message_covered_is_named_also_when_an_older_one_is_covered_later() -> None:
    kept = performed(4, coverage=coverage(4, exclusions=(0,)))
    state = fold([*history(*talk(2)), kept, *history(*[user("x")] * 12, start=4)])
    found = plan(state).coverage
    assert (found.stop, found.count) == (4, 4)
    assert (found.first_message_id, found.last_message_id) == ("m0", "m3")


def test_a_request_that_was_answered_is_covered() -> None:
    messages = [*rounds(7), assistant("all done"), user("thanks"), assistant("welcome")]
    assert plan(conversation(*messages)).coverage.exclusions == ()


def test_the_preamble_is_never_covered() -> None:
    found = plan(conversation(system("rules"), system("more"), *talk(6)))
    assert found.coverage.start == 2
    assert found.coverage.first_message_id == "m2"
    assert found.coverage.count == found.coverage.stop - 2


def test_a_system_message_in_the_middle_is_no_preamble() -> None:
    found = plan(conversation(user("a"), system("note"), *talk(6)))
    assert found.coverage.start == 0
    assert found.coverage.count == found.coverage.stop


def test_where_little_is_left_a_shorter_summary_is_asked_for() -> None:
    tight = replace(BUDGET, limit=500, trigger=5_000, target=2_600)
    state = conversation(*talk(3), user("x"), assistant("y"), tokens=1_000)
    found = plan_compaction(state, tight, POLICY, "size")
    assert isinstance(found, CompactionPlan)
    assert found.limit_tokens == 150
    assert found.target_tokens == 150


def test_what_a_summary_costs_besides_its_text_leaves_less_room_for_messages() -> None:
    dear = replace(BUDGET, summary_overhead=100)
    found = plan_compaction(conversation(*talk(6)), dear, POLICY, "size")
    assert isinstance(found, CompactionPlan)
    assert found.kept_tokens == 200


def test_less_than_a_summary_costs_anyway_is_not_covered() -> None:
    dear = replace(BUDGET, summary_overhead=100)
    found = plan_compaction(conversation(*talk(6), tokens=10), dear, POLICY, "manual")
    assert isinstance(found, NothingToCompact)
    assert found.rule == "too_little"
