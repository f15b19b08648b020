"""The last rung: a user's text, image or document that is too large to stay whole (requirement C8)."""

from collections.abc import Sequence
from functools import partial

from refold.application.core import Core
from refold.application.loaded import LoadedConversation
from refold.application.projections.entries import Entry, held_entries
from refold.application.projections.window import Preview
from refold.domain.budget import Budget
from refold.domain.events import UserContentShortened
from refold.domain.shortening import ToolPart, unanswered_from

from .exceeding import is_out_of_reach
from .measuring import measured_as
from .rungs import Decide, Decision, Shortened, recorded
from .tool_parts import SAID, decided, of_users, tool_parts

LARGE_SHARE = 2
"""A text over the budget divided by this is too large for it."""
SHOWN_SHARE = 8
"""Of such a text at most the budget divided by this is shown."""
LEAST_SHOWN = 400
"""Characters that are shown of each end in any case."""
MARKER = Preview(0, 0, 0)


def shorten_texts(core: Core, thread_id: str, budget: Budget, *, to_target: bool) -> Shortened:
    """Show what a user said shorter: one after the other, the largest first, and no more than needed.

    What is larger than half the budget, where the request does not fit or, with ``to_target``, is above
    its target; anything, where it would not fit otherwise. Never what is pinned.
    """
    goal = budget.target if to_target else budget.limit
    return _all_shortened(core, thread_id, partial(_shortened, core, budget, goal))


def clear_texts(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """The same, as far as no other rung can help: nothing else would have any room."""

    def decide(loaded: LoadedConversation) -> Decision:
        if not is_out_of_reach(loaded.state, budget):
            return Decision()
        return _shortened(core, budget, budget.limit, loaded)

    return _all_shortened(core, thread_id, decide)


def _all_shortened(core: Core, thread_id: str, decide: Decide) -> Shortened:
    done = Shortened()
    while core.settings.shorten_texts:
        taken = recorded(core, thread_id, decide)
        if not taken.decisions:
            break
        done = done.plus(taken)
    return done


def _may_be_needed(loaded: LoadedConversation, budget: Budget) -> bool:
    """Whether it is worth a closer look."""
    if loaded.state.tokens + budget.fixed > budget.limit:
        return True
    half = budget.limit // LARGE_SHARE
    return any(m.role == "user" and m.tokens > half for m in loaded.state.live)


def _shortened(core: Core, budget: Budget, goal: int, loaded: LoadedConversation) -> Decision:
    if not _may_be_needed(loaded, budget):
        return Decision()
    if is_out_of_reach(loaded.state, budget, texts_shortened=True):
        return Decision()  # It would not fit without any text.
    size = measured_as(core, loaded, budget).size
    if size <= goal:
        return Decision()
    must = size > budget.limit
    found = [p for p in tool_parts(core, loaded, MARKER, sides=SAID) if p.freed > 0]
    large = [p for p in found if p.tokens > budget.limit // LARGE_SHARE and not p.blind]
    chosen = max(large, key=_tokens, default=None)
    if chosen is None and must:
        chosen = _next(found, unanswered_from(loaded.state))
    if chosen is None:
        return Decision()
    preview = MARKER if chosen.blind else _ends(loaded, chosen, budget)
    if preview is None:
        return Decision()
    parts = of_users(decided(core, loaded, [chosen], preview))
    parts = tuple(part for part in parts if part.tokens_freed > 0)
    if not parts:
        return Decision()
    event = UserContentShortened(parts=parts, head=preview.head, tail=preview.tail)
    return Decision((event,))


def _next(found: Sequence[ToolPart], fresh: int) -> ToolPart | None:
    """What goes next where the request does not fit: what was answered before what was not."""
    older = [part for part in found if part.position < fresh]
    return max(older or found, key=_tokens, default=None)


def _ends(loaded: LoadedConversation, part: ToolPart, budget: Budget) -> Preview | None:
    """Head and tail of a text, as much of each; None where it is as short already."""
    entries = held_entries(loaded.window.entries)
    entry = next(entry for entry in entries if entry.position == part.position)
    text = _text(entry, int(part.call_id))
    share = budget.limit / SHOWN_SHARE / max(1, part.tokens)
    each = max(LEAST_SHOWN, int(len(text) * share / 2))
    before = loaded.window.previews.get((part.position, part.call_id, part.side))
    if before is not None:
        each = min(LEAST_SHOWN, before.head // 2)
    return Preview(each, each, 0) if each >= LEAST_SHOWN // 4 else None


def _text(entry: Entry, index: int) -> str:
    return str(entry.message.blocks()[index].get("text") or "")


def _tokens(part: ToolPart) -> int:
    return part.tokens
