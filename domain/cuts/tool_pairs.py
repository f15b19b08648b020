"""A cut may not separate a tool call from its results."""

from refold.domain.conversation import Conversation
from refold.domain.turns import Round, rounds

from .rule import CutRule, Cuts, all_cuts


def legal(state: Conversation) -> Cuts:
    """Return the cuts that do not separate a tool call from its results."""
    forbidden: set[int] = set()
    for index, found in enumerate(rounds(state.live)):
        results = found.results
        if index == 0 and not found.response and state.older_live:
            # The call may be among the messages that are only counted.
            results = tuple(m for m in found.replies if m.results)
        if results:
            begin = found.response[-1].position if found.response else -1
            forbidden.update(range(begin + 1, results[-1].position + 1))
    return all_cuts(state) - forbidden


def blocking_position(state: Conversation) -> int | None:
    """Return the position of the newest tool call with a result, or None."""
    answered = (r for r in reversed(rounds(state.live)) if r.results)
    return next((_begin(r) for r in answered), None)


def _begin(found: Round) -> int:
    return found.response[-1].position


RULE = CutRule(
    "tool_pairs", "a tool call may not be separated from its results", legal, blocking_position
)
