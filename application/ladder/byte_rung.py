"""The rung against too many bytes: the oldest images, documents and large results are shown by markers."""

from functools import partial

from refold.application.core import Core
from refold.application.loaded import LoadedConversation
from refold.domain.budget import Budget
from refold.domain.byte_size import byte_size
from refold.domain.events import Event, UserContentShortened
from refold.domain.offloading import as_few_as_needed, offload_parts
from refold.domain.shortening import unanswered_from

from .measuring import Measured, measured_as
from .rungs import Decision, Shortened, large_preview, recorded
from .tool_parts import SAID, TOOLS, decided, of_tools, of_users, tool_parts

WORTH_IT = 2_000
"""Bytes below which a part is left alone."""


def is_heavy(now: Measured) -> bool:
    """Whether the request has more bytes than may be sent."""
    return now.bytes > now.plain.byte_limit


def lighten(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """Take bytes out of a request that has too many: down to half the limit, so that it lasts.

    Oldest first. What the model has not answered yet stays, unless the request cannot be sent with it.
    """
    return recorded(core, thread_id, partial(_lightened, core, budget))


def _lightened(core: Core, budget: Budget, loaded: LoadedConversation) -> Decision:
    now = measured_as(core, loaded, budget)
    if now.bytes <= budget.byte_limit:
        return Decision()
    preview = large_preview(core.settings.policy)
    found = tool_parts(core, loaded, preview, sides=TOOLS | SAID, size=byte_size)
    parts = [p for p in found if p.freed >= WORTH_IT and (p.side in TOOLS or p.blind)]
    fresh = unanswered_from(loaded.state)
    older = as_few_as_needed(
        [p for p in parts if p.position < fresh], now.bytes - budget.byte_limit // 2
    )
    missing = now.bytes - sum(p.freed for p in older) - budget.byte_limit
    newer = as_few_as_needed([p for p in parts if p.position >= fresh], missing)
    chosen = (*older, *newer)
    tools = [p for p in chosen if p.side in TOOLS]
    events: list[Event] = []
    if tools:
        shown = of_tools(decided(core, loaded, tools, preview))
        events += offload_parts(shown, head=preview.head, tail=preview.tail)
    said = [p for p in chosen if p.side not in TOOLS]
    if said:
        now_shown = loaded.after(events) if events else loaded
        users = of_users(decided(core, now_shown, said, preview))
        events.append(UserContentShortened(parts=users, head=0, tail=0))
    return Decision(tuple(events))
