"""Ask a summariser: every answer is judged, a refused one is asked for again, every call is counted."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from refold.application.errors import SummariserError
from refold.application.ports.note_taker import NotesDraft, NotesRequest, TakeNotes, note_taking
from refold.application.ports.summariser import (
    BoundedSummariser,
    Summariser,
    SummaryDraft,
    SummaryRequest,
    for_models,
    is_by_code,
    signs,
)
from refold.application.runtime.foreign_code import Contained
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.compaction.summary_rules import ExpectedLength, Summary, SummaryRefused
from refold.domain.value import replace

_ABOUT_THE_ANSWER = frozenset({"truncated", "empty", "bad_answer"})
"""Reasons of a summariser's own that another answer may mend."""


class Asking:
    """The calls of one compaction: at most ``most_calls``, ``repairs`` of them for refused answers."""

    def __init__(self, summariser: Summariser, policy: CompactionPolicy) -> None:
        self._summariser = summariser
        self._repairs = policy.repairs
        self._most = policy.most_calls
        self.calls = 0
        """How often the summariser was asked."""
        self.retries = 0
        """How often it tried again by itself."""

    @property
    def model_calls(self) -> int:
        """All calls of a model together; none where code alone is asked."""
        return 0 if self.is_by_code else self.calls + self.retries

    @property
    def is_by_code(self) -> bool:
        """Whether no model is asked."""
        return is_by_code(self._summariser)

    def needs(self, calls: int) -> None:
        """Refuse before the first of so many calls what cannot come to an end.

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
        """An answer that ``judge`` accepts.

        Raises:
            SummaryRefused: the last answer was not fit.
            SummariserError: there was none.
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
        self.needs(1)
        self.calls += 1
        try:
            with Contained():
                draft = await self._summariser.summarise(request)
        except SummariserError as error:
            self.retries += max(0, error.attempts - 1)
            raise
        self.retries += max(0, draft.attempts - 1)
        return draft


logger = plain_logger(__name__)

MOST_MESSAGES = 1_000
"""Of a longer history a summary fills its room, and is not worth writing twice."""


class Rehearsal(NamedTuple):
    """A summary that could be written."""

    messages: int
    """What it would cover."""
    write: Callable[[], Awaitable[Summary]]


async def rehearsed(
    summariser: Summariser, rehearsal: Callable[[], Awaitable[Rehearsal | None]]
) -> ExpectedLength | None:
    """Return how long a summary by code comes out; None where that is not to be found out."""
    if not is_by_code(summariser):
        return None
    try:
        made = await rehearsal()
        if made is None or made.messages > MOST_MESSAGES:
            return None
        summary = await made.write()
    except Exception as error:  # The attempt itself will tell what is wrong.
        logger.debug("no summary was rehearsed: %s", raised(error))
        return None
    return ExpectedLength(summary.text_tokens, summary.tokens - summary.text_tokens)


Ask = Callable[[Summariser, SummaryRequest], Awaitable[SummaryDraft]]
"""How the one behind is asked."""
AskNotes = Callable[[TakeNotes, NotesRequest], Awaitable[NotesDraft]]
"""How it is asked for notes, where it takes some."""


class Relay:
    """Has the name of the summariser behind it, and can do what that one can."""

    def __init__(self, behind: Summariser, ask: Ask, ask_notes: AskNotes | None) -> None:
        self.behind = behind
        self.ask = ask
        self._ask_notes = ask_notes

    @property
    def name(self) -> str:
        """The name of the one behind."""
        return self.behind.name

    @property
    def signs(self) -> bool:
        """Whether the one behind signs what it writes."""
        return signs(self.behind)

    def for_models(self, asked: str | None, answering: str | None) -> Summariser:
        """Return a relay before the one behind, as that asks these models."""
        behind = for_models(self.behind, asked, answering)
        return self if behind is self.behind else relayed(behind, self.ask, self._ask_notes)

    @property
    def by_code(self) -> bool:
        """Return whether the one behind asks no model."""
        return is_by_code(self.behind)

    @property
    def take_notes(self) -> TakeNotes | None:
        """How the one behind takes notes, in the way of this relay; None where it takes none."""
        behind = note_taking(self.behind)
        if behind is None or self._ask_notes is None:
            return behind
        return partial(self._ask_notes, behind)

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Ask the one behind, in the way of this relay."""
        return await self.ask(self.behind, request)


class BoundedRelay(Relay):
    """The same before one with a window of its own."""

    def __init__(
        self,
        behind: Summariser,
        bounds: BoundedSummariser,
        ask: Ask,
        ask_notes: AskNotes | None,
    ) -> None:
        super().__init__(behind, ask, ask_notes)
        self._bounds = bounds

    @property
    def window(self) -> int:
        """The window of the one behind."""
        return self._bounds.window

    def measure(self, request: SummaryRequest) -> int:
        """The size of a request, as the one behind measures it."""
        return self._bounds.measure(request)


def relayed(behind: Summariser, ask: Ask, ask_notes: AskNotes | None = None) -> Relay:
    """``behind``, asked by ``ask``, and for notes by ``ask_notes`` or as it is."""
    if isinstance(behind, BoundedSummariser):
        return BoundedRelay(behind, behind, ask, ask_notes)
    return Relay(behind, ask, ask_notes)
