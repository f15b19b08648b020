"""The decision which earlier messages are quoted in the system text, and to quote none any more."""

from collections.abc import Sequence

from refold.domain.compaction.budget import Budget

from .conversation import Conversation
from .notes import ChosenMemory, MemoriesChosen
from .value import Rewritten, replace


def memories_room(state: Conversation, size: int, budget: Budget, most: int) -> int:
    """The tokens that quotations may take in a request that has ``size`` tokens with the present ones.

    No more than ``most``, and never so many that the next decision would be due soon: each one has the
    provider read the whole prefix anew.
    """
    well_under = min((budget.trigger + budget.target) // 2, budget.trigger - 1)
    return max(0, min(most, well_under - (size - state.memories_tokens)))


def choose_memories(
    state: Conversation,
    present: MemoriesChosen | None,
    memories: Sequence[ChosenMemory],
    *,
    query_position: int,
    tokens: int,
) -> tuple[MemoriesChosen, ...]:
    """Quote ``memories``, the best first, in place of the ``present`` ones.

    Nothing happens if they say the same: another order is not worth another prefix. ``tokens``: of all
    as rendered, with what stands around them.
    """
    if not memories:
        return forget_memories(state)
    if present is not None and _quotations(present.memories) == _quotations(memories):
        return ()
    chosen = tuple(memories)
    return (MemoriesChosen(query_position=query_position, memories=chosen, tokens=tokens),)


def forget_memories(state: Conversation) -> tuple[MemoriesChosen, ...]:
    """Quote nothing any more; nothing happens if nothing is quoted."""
    if not state.memories_tokens:
        return ()
    newest = max(0, state.length - 1)
    return (MemoriesChosen(query_position=newest, memories=(), tokens=0),)


def withdraw_memories(
    state: Conversation, kept: MemoriesChosen | None, rewritten: Sequence[Rewritten]
) -> tuple[MemoriesChosen, ...]:
    """Record that earlier choices lost their content; ``kept``: what is quoted now and stays so."""
    newest = max(0, state.length - 1)
    nothing = MemoriesChosen(query_position=newest, memories=(), tokens=0)
    return (replace(kept or nothing, rewritten=tuple(rewritten)),)


def is_before_first_request(state: Conversation) -> bool:
    """Whether a user has spoken, no request is recorded and nothing is quoted: the prefix is still free.

    Answers say nothing of that: an assistant may greet first, and a history may come from elsewhere.
    """
    if state.erased or state.memories_at or state.compactions or state.frame is not None:
        return False
    return bool(state.older_live) or any(message.role == "user" for message in state.live)


def _quotations(memories: Sequence[ChosenMemory]) -> frozenset[tuple[str | None, int, str]]:
    return frozenset((memory.thread_id, memory.position, memory.text) for memory in memories)
