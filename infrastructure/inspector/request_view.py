"""The content of a request as a bar with a legend."""

from collections.abc import Iterator
from typing import NamedTuple

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.results import Context
from refold.application.rendering.request_parts import RequestPart
from refold.infrastructure.palette import PARTS, Meaning

WIDTH = 1000
"""Width of the bar in units of its own."""

_ORDER = tuple(PARTS)


class Segment(NamedTuple):
    """One part of the bar."""

    name: str
    meaning: Meaning
    tokens: int
    items: int
    x: float
    width: float


class Gauge(NamedTuple):
    """The content of a request, and its limits."""

    tokens: int
    window: int
    trigger: int
    limit: int
    segments: tuple[Segment, ...]
    trigger_x: float
    limit_x: float
    condensed: int
    """Tokens of messages that are shown shortened."""
    whole: int
    """Tokens of messages that are shown word for word."""

    @property
    def free(self) -> int:
        """Tokens up to the largest request that may be sent."""
        return max(0, self.limit - self.tokens)

    @property
    def until_due(self) -> int:
        """Tokens after which a compaction is due, or 0 if it is due now."""
        return max(0, self.trigger - self.tokens)

    @property
    def answer(self) -> int:
        """Tokens of the window that are kept for the answer and as a margin."""
        return self.window - self.limit


def gauge_of(conversation: ConversationMemory, context: Context) -> Gauge:
    """Return what fills a request."""
    budget = context.budget
    scale = WIDTH / max(budget.window, context.tokens, 1)
    parts = conversation.request_parts(context)
    return Gauge(
        context.tokens,
        budget.window,
        budget.trigger,
        budget.limit,
        tuple(_segments(parts, context.tokens, scale)),
        budget.trigger * scale,
        budget.limit * scale,
        *_shortened(conversation, context, parts),
    )


def _segments(parts: tuple[RequestPart, ...], total: int, scale: float) -> Iterator[Segment]:
    # Parts are counted without the frames of messages, so they are stretched to the size of the request.
    counted = sum(part.tokens for part in parts) or 1
    x = 0.0
    for part in sorted(parts, key=lambda part: _ORDER.index(part.kind)):
        width = part.tokens / counted * total * scale
        yield Segment(part.kind, PARTS[part.kind], part.tokens, part.count, x, width)
        x += width


def _shortened(
    conversation: ConversationMemory, context: Context, parts: tuple[RequestPart, ...]
) -> tuple[int, int]:
    first = context.summary.coverage.stop if context.summary else 0
    fates = conversation.explain(first, at=context.version)
    condensed = sum(f.shown_tokens for f in fates if f.fate in ("condensed", "offloaded"))
    fixed = ("system", "tools", "summary", "ledger", "recalled lines")
    messages = sum(part.tokens for part in parts if part.kind not in fixed)
    return condensed, max(0, messages - condensed)
