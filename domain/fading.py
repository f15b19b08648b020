"""What a conversation remembers one by one of its live messages, and what it only counts."""

from collections.abc import Sequence

from .facts import LiveMessage
from .rounds import with_companions

# At most this many are remembered, so that folding an append costs the same at any length. Older ones
# are only counted: every cut lies among the newer ones.
REMEMBERED = 4_096


def fading(live: Sequence[LiveMessage], preamble: int, pinned: frozenset[int]) -> frozenset[int]:
    """The positions of the messages that are only counted from now on; often none.

    What is pinned stays remembered, and so does what the running turn was asked: the cuts go around it.
    """
    # Some at once, so that most appends do not pay for it.
    some = REMEMBERED // 4
    first = sum(1 for m in live[:preamble] if m.position < preamble)
    fixed = with_companions(live, pinned)
    rest = [m for m in live[first:] if m.position not in fixed]
    excess = max(0, first + len(rest) - REMEMBERED)
    if not excess:
        return frozenset()
    asked = with_companions(live, _asked(live))
    older = [m.position for m in rest if m.position not in asked]
    return frozenset(older[: some * -(-excess // some)])


def _asked(live: Sequence[LiveMessage]) -> frozenset[int]:
    """The first and the newest that the user said since the model last ended a turn."""
    said: list[int] = []
    for message in reversed(live):
        if message.ends_turn:
            break
        if message.role == "user" and message.speaks:
            said.append(message.position)
    return frozenset((said[0], said[-1]) if said else ())
