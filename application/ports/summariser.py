"""The ports of summarisers, observers, owners, clocks and token counters."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from refold.application.api.results import CompactionResult
from refold.domain.events import GivenInPart, OmittedMessage, Trigger
from refold.domain.messages import Block, Message
from refold.domain.value import Value

Clock = Callable[[], datetime]
"""Function that returns the current time with a time zone."""
NewId = Callable[[], str]
"""Function that returns a unique id of letters, digits, ``-`` and ``_``."""


class SourceMessage(Value, frozen=True):
    """A message to summarise, with its position in the conversation."""

    position: int
    message: Message


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


class Observer(Protocol):
    """An observer of the memory's events. Its exceptions are logged and not raised further."""

    def compaction_ended(self, result: CompactionResult) -> None:
        """Observe a compaction that was performed, failed, reverted, or avoided by the ladder."""
        ...

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        """Observe a new context. Its first ``tokens_repeated`` tokens equal the previous request."""
        ...


@runtime_checkable
class FollowingObserver(Protocol):
    """An observer that also follows a compaction while it runs."""

    def compacting(self, thread_id: str, trigger: Trigger) -> AbstractContextManager[object]:
        """Return a context manager that surrounds one compaction.

        It is entered before the compaction is planned and left after its end; ``compaction_ended`` is
        called within it.
        """
        ...


@runtime_checkable
class ProgressObserver(Protocol):
    """An observer that receives the progress of a summary that takes several calls."""

    def chunk_summarised(self, thread_id: str, done: int, chunks: int) -> None:
        """Observe that ``done`` of ``chunks`` chunks of a summary, or of a part of it, are summarised."""
        ...


@runtime_checkable
class FinishingObserver(Protocol):
    """An observer that may still have work running when the memory closes."""

    async def finish(self) -> None:
        """Wait for the running work; the observer chooses its own time limit."""
        ...


class Owner(Protocol):
    """The identity of a process that works on a compaction.

    The work of a process that is certainly dead can be taken over.
    """

    @property
    def name(self) -> str:
        """Name of this process, unique on this machine."""
        ...

    def is_gone(self, name: str) -> bool:
        """Return whether the process with this name certainly no longer runs; False for ``""``."""
        ...


class UnnamedOwner:
    """An owner without a name; its unfinished work stays locked until its lease expires."""

    name = ""

    def is_gone(self, name: str) -> bool:
        """Return False: the process may still run."""
        del name
        return False


NOBODY = UnnamedOwner()


class TokenCount(Value, frozen=True):
    """The size of a message in tokens."""

    total: int
    """Tokens of the whole message, including what the API adds around it."""
    thinking: int = 0
    """Tokens of thinking blocks in ``total``, saved if they are dropped."""


class TokenCounter(Protocol):
    """A counter of tokens. Pure and fast: it runs on every append.

    Monotone: more content never lowers a count. An image costs the same in any encoding.
    """

    def count_text(self, text: str) -> int:
        """Return the tokens of a text alone."""
        ...

    def count_message(self, message: Message) -> TokenCount:
        """Return the tokens of a message in a request, including its frame."""
        ...

    def count_tools(self, tools: tuple[dict[str, object], ...]) -> int:
        """Return the tokens of tool definitions, including what the API adds if there are any."""
        ...


@runtime_checkable
class RequestCounter(Protocol):
    """A token counter that can also count a whole request exactly, over the network.

    It is used after a compaction, when an exact size matters most, and corrects later estimates. Raises
    ``TokenCountError`` on failure; the estimate is then used.
    """

    async def count_request(
        self,
        *,
        model: str,
        system: str | Sequence[Mapping[str, Any]],
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
    ) -> int:
        """Return the input tokens of a request."""
        ...
