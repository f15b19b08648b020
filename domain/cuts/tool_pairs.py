"""A tool call and its results are never separated (requirement A6, invariant 1)."""

from refold.domain.conversation import Conversation

from .rule import CutRule, Cuts, all_cuts


def legal(state: Conversation) -> Cuts:
    """The cuts that have no call before them with its result behind them."""
    forbidden: set[int] = set()
    calls: frozenset[str] = frozenset()
    asked = 0
    for message in state.live:
        if message.role == "assistant":
            # Only results before the model's next words are paired; later ones stand for themselves.
            calls, asked = frozenset(message.calls), message.position
        elif calls.intersection(message.results):
            forbidden.update(range(asked + 1, message.position + 1))
    return all_cuts(state) - forbidden


RULE = CutRule("tool_pairs", "a tool call may not be separated from its results", legal)
