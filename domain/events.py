"""Events of a conversation. The names and fields in this module are the storage format."""

from datetime import datetime
from typing import Literal

from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.ledger import IndexEntry, LedgerLine

from .conversation import ActiveSummary, Coverage, LiveMessage, Topic
from .frames import RequestFrameChanged
from .messages import Block, Message
from .notes import MemoriesChosen, NoteKind, NotesFlushed, Rewritten
from .originals import Original
from .value import Value, replace


class LeafSummary(Value, frozen=True):
    """A summary by code of the messages that one compaction newly covered."""

    start: int
    stop: int
    text: str
    tokens: int


class OmittedMessage(Value, frozen=True):
    """A covered message that was too large to be summarised; it can still be read."""

    position: int
    tokens: int


class GivenInPart(Value, frozen=True):
    """A covered message that the summariser received only in part; all of it can still be read."""

    position: int
    given: int
    """Number of characters that the summariser received."""
    characters: int
    """Number of characters in the whole message."""


ERASED = "erased"
"""Failure reason of an attempt that covered erased content."""
BY_ERASURE = "erasure"
"""Name of who decided a proposed edit that an erasure closed."""
WITHDRAWN = "[Withdrawn: something that this was made from was erased.]"
"""Text in place of one that was made from erased content."""

Trigger = Literal["size", "manual", "background", "erasure"]
"""Reason for a compaction.

``erasure``: something that the previous summary was made from has been erased. Code rebuilds the summary
from the remaining content, with the same coverage.
"""


class MessageAppended(Value, frozen=True):
    """A message was appended."""

    position: int
    """Index of the message in the conversation, from 0."""
    message_id: str
    message: Message
    tokens: int
    thinking_tokens: int = 0
    key: str | None = None
    """Idempotency key that the message was delivered with, or None."""
    written_at: datetime | None = None
    """Time of writing, if a recording states it. The envelope has the time of logging."""
    model: str | None = None
    stop_reason: str | None = None
    stale_thinking: bool = False
    """Whether the thinking may have been signed for a different prefix.

    If so, neither this thinking nor any earlier thinking is shown.
    """
    owner: str | None = None
    """Owner of the message, if it is not the owner of the conversation."""
    conversation_owner: str | None = None
    """Owner of the conversation, recorded by the first message that was appended with an owner."""
    original: Original | None = None
    """Form in which another API gave the message, without what the message has anyway, or None."""

    @property
    def whole_original(self) -> Original | None:
        """The foreign form as it was given, or None."""
        return self.original.restore(self.message.content) if self.original else None


class CompactionRequested(Value, frozen=True):
    """A compaction was started; a performed or failed event must follow."""

    attempt_id: str
    requested_at: datetime
    trigger: Trigger
    coverage: Coverage
    supersedes: str | None
    """Id of the summary that was active when the plan was made, or None."""
    source_digest: str
    """Digest of the summariser's input: the covered messages and the previous summary."""
    summariser: str
    policy: CompactionPolicy
    tokens_before: int
    focus: str | None = None
    split_at: int | None = None
    """Position where the split turn begins, or None if no turn is split."""
    rebuilds: bool = False
    """Whether the summary is rebuilt from leaf summaries instead of extending the previous one."""
    owner: str | None = None
    """Process that runs the compaction. If it ends early, the compaction counts as abandoned."""


class CompactionPerformed(Value, frozen=True):
    """A summary was accepted and replaces the messages it covers."""

    attempt_id: str
    summary_id: str
    text: str
    tokens: int
    """Tokens of the rendered summary, including its topics and ledger."""
    coverage: Coverage
    source_digest: str
    trigger: Trigger
    policy: CompactionPolicy
    summariser: str
    model: str
    prompt_fingerprint: str
    tokens_before: int
    tokens_after: int
    focus: str | None = None
    is_split_turn: bool = False
    split_turn_prefix: str | None = None
    """Part of the text that summarises the beginning of the split turn."""
    split_at: int | None = None
    """Position where the split turn begins."""
    text_tokens: int = 0
    """Tokens of the text alone."""
    target_tokens: int | None = None
    """Intended size of the conversation in tokens, or None."""
    effective: bool = True
    """Whether the conversation reached the intended size."""
    generation: int = 0
    """Number of times the text was carried over since it was last built from leaves or originals."""
    ledger: tuple[LedgerLine, ...] = ()
    """Ledger lines, most important first."""
    ledger_shown: int = 0
    """Number of ledger lines that are rendered; the others are kept for counting."""
    leaf: LeafSummary | None = None
    omitted: tuple[OmittedMessage, ...] = ()
    """Messages that were too large to be summarised; the text names them."""
    given_in_part: tuple[GivenInPart, ...] = ()
    """Newly covered messages that the summariser received only in part."""
    block: Block | None = None
    """Signed compaction block of the provider, rendered unchanged instead of the text."""
    model_calls: int = 1
    """Number of model calls, including retries; 0 if code wrote the summary."""
    topics: tuple[Topic, ...] = ()
    """Topics of the covered messages, most important first. They are only labels."""
    topics_shown: int = 0
    """Number of topics that are rendered with the summary."""
    message_count: int | None = None
    """Number of messages in the conversation when the summary was made."""
    topics_ask: bool = True
    """Whether the line of topics suggests the recall tool. True if requests offered that tool."""
    index: tuple[IndexEntry, ...] = ()
    """Exact values of the covered messages: the shown ones, then the others, the most useful first."""
    index_shown: int = 0
    """Number of entries of the index that are rendered."""
    index_left_out: int = 0
    """Tokens of the entries that had no room."""
    earlier: tuple[LeafSummary, ...] = ()
    """Texts about all that was covered before, if the summary was rebuilt from them.

    The next rebuild continues them, so that it does not read all compactions again.
    """

    def without_lists(self) -> "CompactionPerformed":
        """Return the event with its texts alone: without ledger, topics and index, which are large."""
        return replace(self, ledger=(), topics=(), index=())


class CompactionFailed(Value, frozen=True):
    """A compaction ended without a summary; the context did not change."""

    attempt_id: str
    reason: str
    detail: str = ""
    live_tokens: int = 0
    """Tokens of the conversation at the failure. The next attempt waits until it has grown from here."""
    model_calls: int = 0


class CompactionReverted(Value, frozen=True):
    """The newest compaction was reverted; the messages it covered are in the context again."""

    summary_id: str
    restored: ActiveSummary | None
    """Summary that is active again, or None."""
    messages: tuple[LiveMessage, ...]
    """Messages that are live again, as the state described them."""
    older_live: int
    older_tokens: int
    live_from: int
    reason: str = ""


class SummarySuperseded(Value, frozen=True):
    """A newer summary replaced this one, which stays in the log for audit."""

    summary_id: str
    by: str


class ShortenedPart(Value, frozen=True):
    """One side of a tool call that is shortened."""

    position: int
    call_id: str
    side: Literal["call", "result"]
    """The input of the call, or its result."""
    tokens_freed: int
    """Tokens freed by this decision; a later one may shorten the same part further."""


class ToolContentOffloaded(Value, frozen=True):
    """Large tool results or inputs were replaced by previews; their content stays in the log."""

    parts: tuple[ShortenedPart, ...]
    head: int
    tail: int
    """Number of characters shown from the end of each text. ``head`` counts those from the beginning."""


class MessagesCondensed(Value, frozen=True):
    """Tool results of older messages were cut; their content stays in the log."""

    parts: tuple[ShortenedPart, ...]
    characters: int
    """Number of characters shown from the beginning of each result; with 0 only the marker remains."""
    tail: int = 0
    """Number of characters shown from the end of each result."""


class SaidPart(Value, frozen=True):
    """A text, image or document of a user's message that is shortened."""

    position: int
    block: int
    """Index of the block in the message, from 0."""
    tokens_freed: int


class UserContentShortened(Value, frozen=True):
    """Large content of a user's message was shortened; its content stays in the log."""

    parts: tuple[SaidPart, ...]
    head: int
    tail: int
    """Number of characters shown from the end of a text. ``head`` counts those from the beginning.

    An image or a document is replaced by a marker.
    """
    left_out: bool = False
    """Whether the parts are hidden entirely; adjacent parts then share one marker."""


Shortening = ToolContentOffloaded | MessagesCondensed | UserContentShortened
"""Events that shorten parts of messages."""


Speaker = Literal["user", "assistant", "system", "tool", "program"]
"""Writer of a line: ``program`` for a user message that no person wrote."""


class RecalledLine(Value, frozen=True):
    """A line of an earlier message, named by its place. Its words are read from that message."""

    position: int
    version: int
    """Version of the event that contains the message."""
    start: int
    stop: int
    """First character after the line, which begins at ``start`` in the readable text of the message."""
    digest: str
    """Digest of the words. A line with other words is not shown."""
    speaker: Speaker


class LinesRecalled(Value, frozen=True):
    """Lines of earlier messages that are out of sight were added at the end of a message of the user."""

    position: int
    """Position of the message of the user."""
    message_id: str
    lines: tuple[RecalledLine, ...]
    """Lines, the oldest first."""
    tokens: int
    """Tokens of the added block."""
    asked_at: int
    """Stream version that the first request with these lines showed."""


class MessagePinned(Value, frozen=True):
    """A message or a text was pinned: it is kept word for word until it is unpinned."""

    pin_id: str
    position: int | None
    """Position of the pinned message, or None for a text without a message."""
    text: str
    """Text that the ledger shows; empty if the message itself stays in the context."""
    tokens: int
    """Tokens of the ledger line; 0 if the message itself stays in the context."""


class MessageUnpinned(Value, frozen=True):
    """A pin was removed."""

    pin_id: str


class ConversationLabelled(Value, frozen=True):
    """The conversation was given a name for people to read."""

    label: str


EditAction = Literal["remember", "pin", "forget"]


class EditProposed(Value, frozen=True):
    """A model asked to change its memory; a decision follows, or the proposal stays open."""

    edit_id: str
    """Id of the proposal, and of the pin or the note that it leads to."""
    action: EditAction
    text: str
    """Text to remember or to pin; empty if the edit is about something that exists."""
    position: int | None
    """Position of the message to pin or to erase, or None."""
    kind: NoteKind | None
    """Kind of the note to remember, or None."""
    target: str | None
    """Id of the pin to remove or of the note to withdraw, or None."""
    author: str
    """Name of the agent that asked."""


class EditDecided(Value, frozen=True):
    """A proposed edit was allowed and carried out, or refused."""

    edit_id: str
    allowed: bool
    by: str
    """Name of the decider: ``program``, ``person``, or ``erasure`` if a message that it was about was erased."""
    reason: str = ""


class MessageErased(Value, frozen=True):
    """The content of a message was removed, together with everything copied or derived from it."""

    position: int
    message_id: str
    tokens: int
    """Tokens of the marker that replaces the content."""
    tokens_freed: int
    """Tokens freed in the context, after counting the marker; 0 if a summary covers the message."""
    rewritten: tuple[Rewritten, ...]
    """The message itself, and the summaries, attempts and pins derived from it."""
    reason: str = ""


class ConversationErased(Value, frozen=True):
    """The content of all earlier events was removed; no event may follow."""

    reason: str = ""


class ConversationForked(Value, frozen=True):
    """All earlier events are copies from another conversation."""

    source: str
    """Thread id of the other conversation."""
    version: int
    """Stream version of the other conversation at the fork. This event has the next version."""


class EventLost(Value, frozen=True):
    """A placeholder for an event that was erased with its conversation, or lost by damage."""

    position: int | None = None
    """Position of the message that the event appended, or None if unknown."""


Event = (
    MessageAppended
    | CompactionRequested
    | CompactionPerformed
    | CompactionFailed
    | CompactionReverted
    | SummarySuperseded
    | ToolContentOffloaded
    | MessagesCondensed
    | UserContentShortened
    | LinesRecalled
    | MessagePinned
    | MessageUnpinned
    | NotesFlushed
    | MemoriesChosen
    | ConversationLabelled
    | EditProposed
    | EditDecided
    | MessageErased
    | ConversationErased
    | ConversationForked
    | RequestFrameChanged
    | EventLost
)
