"""A summariser that tells what its model was given and what it wrote."""

from collections.abc import Callable

from .ports import BoundedSummariser, Summariser, SummaryDraft, SummaryRequest, TokenCounter, signs

Heard = Callable[[int, int, str | None], None]
"""Is told of every call: tokens given, tokens written, and by which model."""


class MeteredSummariser:
    """Passes everything on to another summariser, and counts."""

    def __init__(self, inner: Summariser, counter: TokenCounter, heard: Heard) -> None:
        self._inner = inner
        self._counter = counter
        self._heard = heard

    @property
    def name(self) -> str:
        """The inner one's."""
        return self._inner.name

    @property
    def signs(self) -> bool:
        """As the inner one does."""
        return signs(self._inner)

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Ask the inner one. An answer that failed is not counted: providers do not charge for it."""
        draft = await self._inner.summarise(request)
        given = sum(self._counter.count_message(s.message).total for s in request.messages)
        texts = (request.previous or "", request.focus or "", request.ledger, request.repair or "")
        given += sum(map(self._counter.count_text, texts))
        self._heard(given, self._counter.count_text(draft.text), draft.model)
        return draft


class MeteredBoundedSummariser(MeteredSummariser):
    """The same for one with a window of its own."""

    def __init__(
        self, inner: Summariser, bounds: BoundedSummariser, counter: TokenCounter, heard: Heard
    ) -> None:
        super().__init__(inner, counter, heard)
        self._bounds = bounds

    @property
    def window(self) -> int:
        """The inner one's."""
        return self._bounds.window

    def measure(self, request: SummaryRequest) -> int:
        """As the inner one does."""
        return self._bounds.measure(request)


def metered(inner: Summariser, counter: TokenCounter, heard: Heard) -> MeteredSummariser:
    """The same summariser, telling ``heard`` of every call."""
    if isinstance(inner, BoundedSummariser):
        return MeteredBoundedSummariser(inner, inner, counter, heard)
    return MeteredSummariser(inner, counter, heard)
