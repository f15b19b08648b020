"""Earlier messages are quoted where there is room, and the same ones are never chosen twice."""

from refold.domain.choosing_memories import choose_memories, forget_memories, memories_room
from refold.domain.compaction.budget import Budget
from refold.domain.conversation import Conversation
from refold.domain.evolve import evolve, fold
from refold.domain.notes import ChosenMemory, MemoriesChosen
from tests.support.builders import appended, assistant, history, talk, thinking

BUDGET = Budget(window=1_500, margin=0, reserve=0, fixed=0, limit=1_400, trigger=1_000, target=600)


def memory(position: int, text: str = "port 5433", score: float = 1.0) -> ChosenMemory:
    return ChosenMemory(
        position=position, message_id=f"m{position}", role="user", at="", text=text, score=score
    )


def chosen(*memories: ChosenMemory, tokens: int = 90) -> MemoriesChosen:
    return MemoriesChosen(query_position=5, memories=memories, tokens=tokens)


def quoting(*memories: ChosenMemory) -> Conversation:
    return fold([*history(*talk(4)), chosen(*memories)])


def choose(
    state: Conversation, present: MemoriesChosen | None, *memories: ChosenMemory
) -> tuple[MemoriesChosen, ...]:
    return choose_memories(state, present, memories, query_position=7, tokens=70)


def test_what_is_quoted_counts_as_part_of_the_conversation() -> None:
    state = quoting(memory(1))
    assert (state.memories_tokens, state.tokens) == (90, 890)


def test_new_ones_take_the_place_of_those_before() -> None:
    [event] = choose(quoting(memory(1)), chosen(memory(1)), memory(2), memory(3))
    assert ([m.position for m in event.memories], event.tokens) == ([2, 3], 70)
    assert evolve(quoting(memory(1)), event).memories_tokens == 70


def test_the_same_ones_in_another_order_with_other_scores_are_no_news() -> None:
    present = chosen(memory(1), memory(2, "x"))
    assert choose(quoting(), present, memory(2, "x", 0.9), memory(1, score=0.4)) == ()


def test_another_excerpt_of_the_same_message_is_news() -> None:
    assert choose(quoting(memory(1)), chosen(memory(1)), memory(1, "another part"))


def test_where_nothing_is_found_nothing_is_quoted_any_more() -> None:
    [event] = choose(quoting(memory(1)), chosen(memory(1)))
    assert (event.memories, event.tokens, event.query_position) == ((), 0, 7)
    assert choose(fold(history(*talk(4))), None) == ()
    assert forget_memories(Conversation()) == ()


def test_there_is_room_up_to_the_middle_between_target_and_trigger() -> None:
    state = Conversation()
    assert memories_room(state, 500, BUDGET, 1_500) == 300
    assert memories_room(state, 500, BUDGET, 100) == 100
    assert memories_room(state, 900, BUDGET, 1_500) == 0


def test_the_present_ones_take_nothing_from_the_room_of_those_that_replace_them() -> None:
    assert memories_room(quoting(memory(1)), 500, BUDGET, 1_500) == 390


def test_a_choice_has_thinking_left_out_that_was_signed_for_another_prefix() -> None:
    said = assistant(thinking("long"), "yes")
    state = fold([*history(*talk(1)), appended(2, said, 100, thinking_tokens=60)])
    after = evolve(state, chosen(memory(1)))
    assert after.tokens == state.tokens - 60 + 90
    assert after.answer_pending
