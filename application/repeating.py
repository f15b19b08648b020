"""How much of a request repeats the one before it, told without rendering either again."""

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from refold.domain.remembering import MemoriesChosen

from .context import Context
from .loaded import LoadedConversation
from .projections.window import PinnedText, Preview, PreviewKey
from .rendering.render import System

REMEMBERED = 1_000
"""Of so many conversations the last request is remembered."""


class _Request(NamedTuple):
    model: str | None
    system: str
    fixed: int
    tokens: int
    decisions: int
    """How many events of the conversation were no messages."""
    summary_id: str | None
    previews: Mapping[PreviewKey, Preview]
    pins: tuple[PinnedText, ...]
    memories: MemoriesChosen | None

    def is_fixed_like(self, other: "_Request") -> bool:
        """Whether system text and tools are the same, for the same model: caches know one only."""
        return self[:3] == other[:3]

    def is_decided_like(self, other: "_Request") -> bool:
        """Whether no decision lies between that changes what is shown."""
        return self.decisions == other.decisions or self[5:] == other[5:]


class LastRequests:
    """The last request of each conversation."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Request] = OrderedDict()

    def repeated(self, loaded: LoadedConversation, context: Context, system: System) -> int:
        """How many tokens of ``context`` the request before it began with; remembers this one.

        Between two decisions a request begins with the whole request before (invariant 18); after
        one, only the caller's system text and tools are sure to be the same.
        """
        window, state = loaded.window, loaded.state
        now = _Request(
            model=context.model,
            system=system if isinstance(system, str) else json.dumps(system),
            fixed=context.budget.fixed,
            tokens=context.tokens,
            decisions=state.version - state.length,
            summary_id=window.summary.summary_id if window.summary else None,
            previews=window.previews,
            pins=window.pins,
            memories=window.memories,
        )
        before = self._known.pop(context.thread_id, None)
        self._known[context.thread_id] = now
        while len(self._known) > REMEMBERED:
            self._known.pop(next(iter(self._known)), None)
        if before is None or not now.is_fixed_like(before):
            return 0
        return min(before.tokens if now.is_decided_like(before) else now.fixed, now.tokens)

    def forget(self, thread_id: str) -> None:
        """Forget the last request of a conversation: something that it showed was erased."""
        self._known.pop(thread_id, None)
