"""The decisions to quote earlier messages in the system text, or to stop quoting them."""

from collections.abc import Sequence

from refold.domain.compaction.budget import Budget

from .conversation import Conversation
from .notes import ChosenMemory, MemoriesChosen, Rewritten
from .value import replace


def memories_room(state: Conversation, size: int, budget: Budget, most: int) -> int:
    """Return the maximum tokens of quotations in a request that has ``size`` tokens with the current ones.

    The result is at most ``most``. It also keeps a distance from the trigger, so that the next compaction
    is not due soon: each change makes the provider read the whole prefix again.
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
    """Quote ``memories``, best first, instead of the ``present`` ones.

    Does nothing if both quote the same texts: a new order is not worth a new prefix. ``tokens`` is the
    size of all quotations as rendered, with the text around them.
    """
    if not memories:
        return forget_memories(state)
    if present is not None and _quotations(present.memories) == _quotations(memories):
        return ()
    chosen = tuple(memories)
    return (MemoriesChosen(query_position=query_position, memories=chosen, tokens=tokens),)


def forget_memories(state: Conversation) -> tuple[MemoriesChosen, ...]:
    """Stop quoting, or do nothing if nothing is quoted."""
    if not state.memories_tokens:
        return ()
    newest = max(0, state.length - 1)
    return (MemoriesChosen(query_position=newest, memories=(), tokens=0),)


def withdraw_memories(
    state: Conversation, kept: MemoriesChosen | None, rewritten: Sequence[Rewritten]
) -> tuple[MemoriesChosen, ...]:
    """Record that earlier choices lost content. ``kept`` are the quotations that stay, or None."""
    newest = max(0, state.length - 1)
    nothing = MemoriesChosen(query_position=newest, memories=(), tokens=0)
    return (replace(kept or nothing, rewritten=tuple(rewritten)),)


def is_before_first_request(state: Conversation) -> bool:
    """Return whether quotations can be chosen without changing a prefix that was sent.

    This is so if a user has spoken, but no request is recorded and nothing is quoted. Answers do not
    count: an assistant may greet first, and a history may be imported.
    """
    if state.erased or state.memories_at or state.compactions or state.frame is not None:
        return False
    return bool(state.older_live) or any(message.role == "user" for message in state.live)


def _quotations(memories: Sequence[ChosenMemory]) -> frozenset[tuple[str | None, int, str]]:
    return frozenset((memory.thread_id, memory.position, memory.text) for memory in memories)
