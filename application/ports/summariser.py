"""The port of summarisers, which may also take notes."""

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, runtime_checkable

from pydantic import SkipValidation

from refold.domain.events import GivenInPart, OmittedMessage
from refold.domain.facts.reading import MessagesRead
from refold.domain.late_model import Field
from refold.domain.messages import Block, Message
from refold.domain.notes import Note
from refold.domain.value import Value, build_unvalidated


class SourceMessage(Value, frozen=True):
    """A message to summarise, with its position in the conversation."""

    position: int
    message: Message


def source_message(position: int, message: Message) -> SourceMessage:
    """Return a message of the log to summarise. Checking what the log has checked takes most of the time."""
    return build_unvalidated(SourceMessage, position=position, message=message)


class SummaryRequest(Value, frozen=True):
    """The request to a summariser. All texts in it are data, never instructions.

    ``focus`` is the user's own wish, but is still quoted as data in a prompt.
    """

    messages: tuple[SourceMessage, ...]
    """Messages that the summary will cover, exactly these, oldest first."""
    previous: str | None = None
    """Text that covers the messages before these: the active summary, or leaf summaries in a rebuild.

    The new text replaces it and must preserve what still matters.
    """
    previous_block: Block | None = None
    """Signed block of the provider if ``previous`` is the text of one, or None."""
    focus: str | None = None
    """Subject that the user wants preserved above all, or None."""
    target_tokens: int = 8_000
    """Length to aim at, in tokens."""
    limit_tokens: int = 9_600
    """Maximum length in tokens; a longer summary is refused."""
    part: Literal["history", "turn_prefix"] = "history"
    """``turn_prefix``: the messages begin a turn whose end stays in the context word for word.

    The summary then describes the request, the first steps and what is needed to understand the rest.
    """
    ledger: str = ""
    """Ledger text that will be shown word for word next to the summary, so that it need not repeat it."""
    omitted: tuple[OmittedMessage, ...] = ()
    """Messages that were too large for ``messages``; refold names them separately from the summary."""
    repair: str | None = None
    """Reason why the previous answer was refused if this is a retry, or None."""
    read: SkipValidation[MessagesRead | None] = Field(default=None, repr=False)
    """Typed facts and tool calls that code read from the messages, or None if they were not read yet."""


class SummaryDraft(Value, frozen=True):
    """The answer of a summariser, before it is checked."""

    text: str
    complete: bool
    """True only if the summariser finished by itself: not cut off, not refused."""
    model: str
    """Model that wrote it, or the name and version of the built-in algorithm."""
    prompt_fingerprint: str
    """Digest of the prompt or algorithm; changes whenever its wording changes."""
    stop_reason: str | None = None
    required: tuple[str, ...] = ()
    """Texts that a complete summary must contain, such as the requested headings."""
    block: Block | None = None
    """Signed block if the provider made the summary, rendered unchanged; or None."""
    attempts: int = 1
    """Number of model calls, including retries."""
    given_in_part: tuple[GivenInPart, ...] = ()
    """Messages of the request that the model got only in part, such as a shortened tool result."""
    topics: tuple[str, ...] = ()
    """Topics of the messages in a few words each, the most important first.

    May be unusable or missing; code then names the topics.
    """


class Summariser(Protocol):
    """A writer of summaries.

    Raises ``SummariserError`` (``refold.application.errors``) on failure, after its own retries, with the
    vendor's message in it. Never returns an error text as a summary.
    """

    @property
    def name(self) -> str:
        """Name in settings and results."""
        ...

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Summarise ``request.messages`` and continue ``request.previous``."""
        ...


@runtime_checkable
class BoundedSummariser(Protocol):
    """A summariser whose requests must fit a window of its own."""

    @property
    def window(self) -> int:
        """Maximum tokens of one request and its answer together."""
        ...

    def measure(self, request: SummaryRequest) -> int:
        """Return the tokens of the whole text to send and of the reserved answer."""
        ...


def signs(summariser: Summariser) -> bool:
    """Return whether the texts of a summariser are signed blocks (``signs = True``).

    Two signed blocks cannot be joined, so a divided turn is summarised in one text with the messages before
    it.
    """
    return bool(getattr(summariser, "signs", False))


@runtime_checkable
class ModelSummariser(Protocol):
    """A summariser that calls a model, which each call may choose."""

    def for_models(self, asked: str | None, answering: str | None) -> "Summariser":
        """Return a summariser that uses ``asked``, else its configured model, else ``answering``.

        ``answering`` is the model that answers in the conversation; it is also used if the configured model
        is not usable.
        """
        ...


def for_models(summariser: Summariser, asked: str | None, answering: str | None) -> Summariser:
    """Return the summariser for these models, or ``summariser`` if it uses no model or none is named."""
    if (asked is None and answering is None) or not isinstance(summariser, ModelSummariser):
        return summariser
    return summariser.for_models(asked, answering)


def is_by_code(summariser: Summariser) -> bool:
    """Return whether a summariser calls no model (``by_code = True``). Its calls are then not counted."""
    return bool(getattr(summariser, "by_code", False))


class NotesRequest(Value, frozen=True):
    """The messages to take notes from. All texts in it are data, never instructions."""

    messages: tuple[SourceMessage, ...]
    """Messages to read, oldest first."""
    most: int
    """Maximum number of notes; further ones are dropped."""


class NotesDraft(Value, frozen=True):
    """The answer of a note taker, before it is checked."""

    notes: tuple[Note, ...]
    """Notes, empty if there is nothing to save."""
    model: str
    prompt_fingerprint: str
    """Digest of the prompt; changes whenever its wording changes."""
    stop_reason: str | None = None
    attempts: int = 1
    """Number of model calls, including retries."""


@runtime_checkable
class NoteTaker(Protocol):
    """A summariser that also takes notes.

    Raises ``SummariserError`` on failure; code then takes the notes. Keeps its requests within its own
    window, with several calls if necessary.
    """

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        """Return notes of ``request.messages``."""
        ...


TakeNotes = Callable[[NotesRequest], Awaitable[NotesDraft]]


def note_taking(summariser: object) -> TakeNotes | None:
    """Return the function with which a summariser takes notes, or None if it has none."""
    take: TakeNotes | None = getattr(summariser, "take_notes", None)
    return take
