"""A summariser that stands before another one: asked in a way of its own, and else the one behind it."""

from collections.abc import Awaitable, Callable

from .ports import BoundedSummariser, Summariser, SummaryDraft, SummaryRequest, signs

Ask = Callable[[Summariser, SummaryRequest], Awaitable[SummaryDraft]]
"""How the one behind is asked."""


class Relay:
    """Has the name of the summariser behind it, and can do what that one can."""

    def __init__(self, behind: Summariser, ask: Ask) -> None:
        self.behind = behind
        self.ask = ask

    @property
    def name(self) -> str:
        """The name of the one behind."""
        return self.behind.name

    @property
    def signs(self) -> bool:
        """Whether the one behind signs what it writes."""
        return signs(self.behind)

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Ask the one behind, in the way of this relay."""
        return await self.ask(self.behind, request)


class BoundedRelay(Relay):
    """The same before one with a window of its own."""

    def __init__(self, behind: Summariser, bounds: BoundedSummariser, ask: Ask) -> None:
        super().__init__(behind, ask)
        self._bounds = bounds

    @property
    def window(self) -> int:
        """The window of the one behind."""
        return self._bounds.window

    def measure(self, request: SummaryRequest) -> int:
        """The size of a request, as the one behind measures it."""
        return self._bounds.measure(request)


def relayed(behind: Summariser, ask: Ask) -> Relay:
    """``behind``, asked by ``ask``."""
    if isinstance(behind, BoundedSummariser):
        return BoundedRelay(behind, behind, ask)
    return Relay(behind, ask)
