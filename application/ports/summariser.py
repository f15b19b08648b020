"""The ports: what the use cases need from the world, each with what it may raise."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from refold.application.api.results import CompactionResult
from refold.domain.events import GivenInPart, OmittedMessage, Trigger
from refold.domain.messages import Block, Message
from refold.domain.value import Value

Clock = Callable[[], datetime]
"""The time now, time zone aware."""
NewId = Callable[[], str]
"""A new identity: unique, made of letters, digits, ``-`` and ``_``."""


class SourceMessage(Value, frozen=True):
    """A message that is to be summarised, with its position in the conversation."""

    position: int
    message: Message


class SummaryRequest(Value, frozen=True):
    """What a summariser is asked for. All texts in it are data, never instructions, but for ``focus``,
    which is the user's own wish and still quoted as data in a prompt.
    """

    messages: tuple[SourceMessage, ...]
    """What the summary will stand for, oldest first: exactly this is covered."""
    previous: str | None = None
    """What stands for the messages before these: the text of the active summary, or leaf summaries
    where it is built anew. The new text replaces it and must carry what still matters."""
    previous_block: Block | None = None
    """The provider's own signed block, where ``previous`` is just the text of one."""
    focus: str | None = None
    """What the user wants kept above all, if anything."""
    target_tokens: int = 8_000
    """The length to aim at (requirement D5)."""
    limit_tokens: int = 9_600
    """The length that is refused above (requirement D5: 1.2 x the target)."""
    part: Literal["history", "turn_prefix"] = "history"
    """``turn_prefix``: these messages begin a turn whose end stays in the context word for word. The
    summary says what was asked, what was done first, and what is needed to understand the rest."""
    ledger: str = ""
    """What code keeps word for word beside the summary, as it will be rendered: no need to repeat it."""
    omitted: tuple[OmittedMessage, ...] = ()
    """Messages that were too large to be among ``messages``; the text is told apart from this."""
    repair: str | None = None
    """Why the answer before was refused, where this asks again."""


class SummaryDraft(Value, frozen=True):
    """A summariser's answer, not yet accepted."""

    text: str
    complete: bool
    """True only when the summariser finished by itself: not cut off, not refused."""
    model: str
    """The model that wrote it, or the name of the built-in algorithm with its version."""
    prompt_fingerprint: str
    """Names the prompt (or algorithm) exactly: a digest that changes whenever its wording does."""
    stop_reason: str | None = None
    required: tuple[str, ...] = ()
    """Texts without which it is not complete, such as the headings that were asked for."""
    block: Block | None = None
    """The provider's own signed block, where it made the summary; rendered unchanged."""
    attempts: int = 1
    """How often the model was asked, retries included."""
    given_in_part: tuple[GivenInPart, ...] = ()
    """The messages of the request that it was not given whole, such as a tool result that was cut."""
    topics: tuple[str, ...] = ()
    """What the messages are about, in a few words each, the most important first; may be odd or missing:
    then code names them."""


class Summariser(Protocol):
    """Writes summaries.

    Raises ``SummariserError`` (``refold.application.errors``) when it cannot: after its own retries,
    with the vendor's message in it. Never returns an error text as a summary.
    """

    @property
    def name(self) -> str:
        """How settings and results call it."""
        ...

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Summarise ``request.messages``, carrying on ``request.previous``."""
        ...


@runtime_checkable
class BoundedSummariser(Protocol):
    """A summariser whose requests must fit a window of its own (requirements C6 to C8)."""

    @property
    def window(self) -> int:
        """What one request and its answer may have together, in tokens."""
        ...

    def measure(self, request: SummaryRequest) -> int:
        """The tokens of the whole text that would be sent, and of the answer it leaves room for."""
        ...


def signs(summariser: Summariser) -> bool:
    """Whether its summaries are signed blocks (``signs = True``): two of them cannot be joined, so that
    a divided turn is summarised in one text with what stands before it.
    """
    return bool(getattr(summariser, "signs", False))


@runtime_checkable
class ModelSummariser(Protocol):
    """A summariser that asks a model, which a call may choose (requirement D9)."""

    def for_models(self, asked: str | None, answering: str | None) -> "Summariser":
        """Return it as it asks ``asked``; else the model that it was configured with; else ``answering``,
        the model that answers in the conversation, which is asked as well where the other is not usable.
        """
        ...


def for_models(summariser: Summariser, asked: str | None, answering: str | None) -> Summariser:
    """Return the summariser as it asks these models; itself where it asks none, or none is named."""
    if (asked is None and answering is None) or not isinstance(summariser, ModelSummariser):
        return summariser
    return summariser.for_models(asked, answering)


def is_by_code(summariser: Summariser) -> bool:
    """Return whether it asks no model (``by_code = True``): then its work counts as no call of one."""
    return bool(getattr(summariser, "by_code", False))


class Observer(Protocol):
    """Is told what happened. What it raises is logged and goes no further."""

    def compaction_ended(self, result: CompactionResult) -> None:
        """A compaction was performed, failed or reverted, or the ladder was enough without one."""
        ...

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        """A context was made; so many of its tokens begin as the request before did."""
        ...


@runtime_checkable
class FollowingObserver(Protocol):
    """An observer that also follows a compaction while it runs."""

    def compacting(self, thread_id: str, trigger: Trigger) -> AbstractContextManager[object]:
        """Entered before a compaction is planned, left when it has ended, ``compaction_ended`` lies
        within."""
        ...


@runtime_checkable
class ProgressObserver(Protocol):
    """An observer that is told how far a summary is that takes several calls."""

    def chunk_summarised(self, thread_id: str, done: int, chunks: int) -> None:
        """So many of the chunks of a summary, or of one part of it, were summarised."""
        ...


@runtime_checkable
class FinishingObserver(Protocol):
    """An observer that may still have work under way when the memory closes."""

    async def finish(self) -> None:
        """Wait for it; for how long is the observer's own matter."""
        ...


class Owner(Protocol):
    """Who works on a compaction, so that what a dead process left unfinished is not waited for."""

    @property
    def name(self) -> str:
        """Names this process on this machine."""
        ...

    def is_gone(self, name: str) -> bool:
        """Whether the process with this name certainly runs no more; never certain of ``""``."""
        ...


class Nobody:
    """An owner without a name: what it leaves unfinished waits for its lease."""

    name = ""

    def is_gone(self, name: str) -> bool:
        """Never certain."""
        del name
        return False


NOBODY = Nobody()


class TokenCount(Value, frozen=True):
    """The size of a message in tokens."""

    total: int
    """All of it, with what the API adds around a message."""
    thinking: int = 0
    """The share of thinking blocks in ``total``: what dropping them saves."""


class TokenCounter(Protocol):
    """Measures texts and messages in tokens. Pure and quick: it runs on every append.

    Monotone: adding content never lowers a count. An image costs the same in any encoding.
    """

    def count_text(self, text: str) -> int:
        """The tokens of a text by itself."""
        ...

    def count_message(self, message: Message) -> TokenCount:
        """The tokens of a message as a request carries it, a few for its frame included."""
        ...

    def count_tools(self, tools: tuple[dict[str, object], ...]) -> int:
        """The tokens of tool definitions, with what the API adds when there are any."""
        ...


@runtime_checkable
class RequestCounter(Protocol):
    """A token counter that can also have a whole request counted exactly, over the network.

    It is asked after a compaction, when the size matters most; its answer corrects the estimates
    that follow. Raises ``TokenCountError``; then the estimate stands.
    """

    async def count_request(
        self,
        *,
        model: str,
        system: str | Sequence[Mapping[str, Any]],
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
    ) -> int:
        """The input tokens of a request."""
        ...
