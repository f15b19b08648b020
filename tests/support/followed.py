"""What every compaction attempt asked of a summariser, and how it ended: noted while it runs."""

import math
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from refold.application.api.results import CompactionResult
from refold.application.errors import SummariserError
from refold.application.ports.summariser import Summariser, SummaryDraft, SummaryRequest
from refold.domain.events import Trigger

from .fake_summarisers import GoodSummariser, source_text


class Call(NamedTuple):
    """One call of the summariser."""

    by: str
    request: SummaryRequest
    draft: SummaryDraft | None
    """Its answer; None where it raised."""


@dataclass
class Attempted:
    """One attempt, from before its plan to its end."""

    trigger: Trigger
    calls: list[Call] = field(default_factory=list[Call])
    results: list[CompactionResult] = field(default_factory=list[CompactionResult])


_CURRENT: ContextVar[Attempted | None] = ContextVar("attempt", default=None)


class Follower:
    """An observer that knows which call was made for which attempt, also of those that overlap."""

    def __init__(self) -> None:
        self.attempts: list[Attempted] = []
        self.told: list[CompactionResult] = []

    @contextmanager
    def compacting(self, thread_id: str, trigger: Trigger) -> Generator[None]:
        del thread_id
        attempted = Attempted(trigger)
        self.attempts.append(attempted)
        token = _CURRENT.set(attempted)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def compaction_ended(self, result: CompactionResult) -> None:
        self.told.append(result)
        if (attempted := _CURRENT.get()) is not None:
            attempted.results.append(result)

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        del thread_id
        assert 0 <= tokens_repeated <= tokens

    def of(self, attempt_id: str) -> Attempted | None:
        """What is known of an attempt; None where its process died before it was told."""
        for attempted in reversed(self.attempts):
            if any(result.attempt_id == attempt_id for result in attempted.results):
                return attempted
        return None


class SwitchedSummariser:
    """Passes each call on to the summariser that is plugged in, and notes it."""

    def __init__(self) -> None:
        self.current: Summariser = GoodSummariser()
        self.calls: list[Call] = []

    @property
    def name(self) -> str:
        return self.current.name

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        by, plugged, draft = self.current.name, self.current, None
        try:
            draft = await self._answer(plugged, request)
            return draft
        finally:
            call = Call(by, request, draft)
            self.calls.append(call)
            if (attempted := _CURRENT.get()) is not None:
                attempted.calls.append(call)

    async def _answer(self, plugged: Summariser, request: SummaryRequest) -> SummaryDraft:
        return await plugged.summarise(request)


class BoundedSwitchedSummariser(SwitchedSummariser):
    """The same with a window of its own; refuses, as a provider does, what does not fit."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def measure(self, request: SummaryRequest) -> int:
        """A third of a token for each character, some for the frames, and the answer."""
        given = (request.previous, request.focus, request.ledger, request.repair)
        words = source_text(request) + "".join(text or "" for text in given)
        words += "".join(str(request.omitted))
        inputs = sum(
            len(str(block.get("input", "")))
            for source in request.messages
            for block in source.message.blocks()
        )
        frames = 5 * len(request.messages)
        return math.ceil((len(words) + inputs) / 3) + frames + 20 + request.limit_tokens

    async def _answer(self, plugged: Summariser, request: SummaryRequest) -> SummaryDraft:
        if self.measure(request) > self.window:
            raise SummariserError("too_large", "the prompt is too long")
        return await plugged.summarise(request)
