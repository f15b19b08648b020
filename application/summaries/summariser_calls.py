"""Call a summariser: judge each answer, ask again for a refused one, and count the calls."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from refold.application.errors import SummariserError
from refold.application.ports.summariser import (
    BoundedSummariser,
    NotesDraft,
    NotesRequest,
    Summariser,
    SummaryDraft,
    SummaryRequest,
    TakeNotes,
    for_models,
    is_by_code,
    note_taking,
    signs,
)
from refold.application.runtime.foreign_code import Contained
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.compaction.summary_rules import ExpectedLength, Summary, SummaryRefused
from refold.domain.value import replace

_ABOUT_THE_ANSWER = frozenset({"truncated", "empty", "bad_answer"})
"""Failure reasons that another answer may fix."""


class SummariserCalls:
    """The calls of one compaction, limited to ``most_calls``, with ``repairs`` for refused answers."""

    def __init__(self, summariser: Summariser, policy: CompactionPolicy) -> None:
        self._summariser = summariser
        self._repairs = policy.repairs
        self._most = policy.most_calls
        self.calls = 0
        """Number of calls to the summariser."""
        self.retries = 0
        """Number of retries by the summariser itself."""

    @property
    def model_calls(self) -> int:
        """Number of all model calls, 0 if no model is used."""
        return 0 if self.is_by_code else self.calls + self.retries

    @property
    def is_by_code(self) -> bool:
        """True if no model is called."""
        return is_by_code(self._summariser)

    def check_calls(self, calls: int) -> None:
        """Check that this many further calls are allowed.

        Raises:
            SummariserError: ``too_many_calls``.
        """
        if self.calls + calls > self._most:
            raise SummariserError(
                "too_many_calls",
                f"{self.calls + calls} calls would be needed, {self._most} are allowed (most_calls): "
                "use a summariser with a larger window",
            )

    async def ask(
        self, request: SummaryRequest, judge: Callable[[SummaryDraft], None]
    ) -> SummaryDraft:
        """Ask until ``judge`` accepts an answer, and return it.

        Raises:
            SummaryRefused: the last answer was refused.
            SummariserError: there was no answer.
        """
        while True:
            try:
                draft = await self._once(request)
                judge(draft)
                return draft
            except (SummaryRefused, SummariserError) as refusal:
                if isinstance(refusal, SummariserError) and refusal.reason not in _ABOUT_THE_ANSWER:
                    raise
                if self._repairs == 0:
                    raise
                self._repairs -= 1
                request = replace(request, repair=str(refusal))

    async def _once(self, request: SummaryRequest) -> SummaryDraft:
        self.check_calls(1)
        self.calls += 1
        try:
            with Contained():
                draft = checked_draft(await self._summariser.summarise(request))
        except SummariserError as error:
            self.retries += max(0, error.attempts - 1)
            raise
        self.retries += max(0, draft.attempts - 1)
        return draft


def checked_draft(draft: object) -> SummaryDraft:
    """Return the draft of a summariser.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(draft, SummaryDraft):
        kind = type(draft).__name__
        raise TypeError(f"a summariser must return a SummaryDraft, not a value of type {kind}")
    return draft


logger = plain_logger(__name__)

MOST_MESSAGES = 1_000
"""Maximum number of messages in a trial summary. A summary of more messages has its maximum length anyway."""


class Rehearsal(NamedTuple):
    """A summary that is written only to find out its length."""

    messages: int
    """Number of messages that it would cover."""
    write: Callable[[], Awaitable[Summary]]
    target_tokens: int
    """Target length of the text."""


async def rehearse(
    summariser: Summariser,
    fallback: Summariser,
    rehearsal: Callable[[Summariser], Awaitable[Rehearsal | None]],
) -> ExpectedLength | None:
    """Write a trial summary by code to find out its length, with its ledger and index.

    In place of a model, ``fallback`` writes it; the text of the model is then expected to have its target length.
    Return None for too many messages, or after a failure.
    """
    writer = summariser if is_by_code(summariser) else fallback
    if not is_by_code(writer):
        return None
    try:
        made = await rehearsal(writer)
        if made is None or made.messages > MOST_MESSAGES:
            return None
        summary = await made.write()
    except Exception as error:  # The actual attempt will report the error.
        logger.debug("no summary was rehearsed: %s", raised(error))
        return None
    text = summary.text_tokens if writer is summariser else made.target_tokens
    return ExpectedLength(text, summary.tokens - summary.text_tokens)


Ask = Callable[[Summariser, SummaryRequest], Awaitable[SummaryDraft]]
"""Calls the wrapped summariser."""
AskNotes = Callable[[TakeNotes, NotesRequest], Awaitable[NotesDraft]]
"""Calls the wrapped summariser for notes."""


class Relay:
    """Wraps a summariser, with the same name and abilities."""

    def __init__(self, wrapped: Summariser, ask: Ask, ask_notes: AskNotes | None) -> None:
        self.wrapped = wrapped
        self.ask = ask
        self._ask_notes = ask_notes

    @property
    def name(self) -> str:
        """Name of the wrapped summariser."""
        return self.wrapped.name

    @property
    def signs(self) -> bool:
        """True if the wrapped summariser returns signed blocks."""
        return signs(self.wrapped)

    def for_models(self, asked: str | None, answering: str | None) -> Summariser:
        """Return a wrapper of the wrapped summariser for these models."""
        wrapped = for_models(self.wrapped, asked, answering)
        return self if wrapped is self.wrapped else relay(wrapped, self.ask, self._ask_notes)

    @property
    def by_code(self) -> bool:
        """True if the wrapped summariser calls no model."""
        return is_by_code(self.wrapped)

    @property
    def take_notes(self) -> TakeNotes | None:
        """Note taking of the wrapped summariser through this wrapper, or None if it takes none."""
        wrapped = note_taking(self.wrapped)
        if wrapped is None or self._ask_notes is None:
            return wrapped
        return partial(self._ask_notes, wrapped)

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Ask the wrapped summariser through this wrapper."""
        return await self.ask(self.wrapped, request)


class BoundedRelay(Relay):
    """Wraps a summariser that has its own window."""

    def __init__(
        self,
        wrapped: Summariser,
        bounds: BoundedSummariser,
        ask: Ask,
        ask_notes: AskNotes | None,
    ) -> None:
        super().__init__(wrapped, ask, ask_notes)
        self._bounds = bounds

    @property
    def window(self) -> int:
        """Window of the wrapped summariser."""
        return self._bounds.window

    def measure(self, request: SummaryRequest) -> int:
        """Return the size of a request, as the wrapped summariser measures it."""
        return self._bounds.measure(request)


def relay(wrapped: Summariser, ask: Ask, ask_notes: AskNotes | None = None) -> Relay:
    """Wrap a summariser so that ``ask``, and ``ask_notes`` if given, make its calls."""
    if isinstance(wrapped, BoundedSummariser):
        return BoundedRelay(wrapped, wrapped, ask, ask_notes)
    return Relay(wrapped, ask, ask_notes)
