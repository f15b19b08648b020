"""What can happen to a conversation. Names and fields here are the storage format."""

from datetime import datetime
from typing import Literal

from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.ledger.line import LedgerLine

from .conversation import ActiveSummary, Coverage, LiveMessage, Topic
from .frames import RequestFrameChanged
from .messages import Block, Message
from .notes import MemoriesChosen, NotesFlushed
from .value import Rewritten, Value


class LeafSummary(Value, frozen=True):
    """A summary, made by code, of just those messages that a compaction covered first."""

    start: int
    stop: int
    text: str
    tokens: int


class OmittedMessage(Value, frozen=True):
    """A covered message that was too large to be summarised; it can be read back."""

    position: int
    tokens: int


class GivenInPart(Value, frozen=True):
    """A covered message of which the summariser was given a part only; all of it can be read back."""

    position: int
    given: int
    """Characters of it that the summariser was given."""
    characters: int
    """Characters that it has."""


Trigger = Literal["size", "manual", "background", "erasure"]
"""``erasure``: made anew by code from what remains, because something that the summary before was made
from has been erased; it covers exactly what that one covered."""


class MessageAppended(Value, frozen=True):
    """A message was said."""

    position: int
    """Its place among the conversation's messages, from 0."""
    message_id: str
    message: Message
    tokens: int
    thinking_tokens: int = 0
    key: str | None = None
    """The idempotency key under which it was delivered, if any."""
    written_at: datetime | None = None
    """When it was written, where a recording says so; the envelope has when it was logged."""
    model: str | None = None
    stop_reason: str | None = None
    stale_thinking: bool = False
    """Whether its thinking may have been signed for another request than what stands before it here: neither
    it nor any before it is shown."""
    owner: str | None = None
    """Whose it is, where that is somebody else than the owner of the conversation."""
    conversation_owner: str | None = None
    """Whose the conversation is; said once, by the first message that was appended with an owner."""


class CompactionRequested(Value, frozen=True):
    """A compaction was begun; performed or failed must follow."""

    attempt_id: str
    requested_at: datetime
    trigger: Trigger
    coverage: Coverage
    supersedes: str | None
    """The summary that was active when the plan was made."""
    source_digest: str
    """Of everything handed to the summariser: covered messages and the previous summary."""
    summariser: str
    policy: CompactionPolicy
    tokens_before: int
    focus: str | None = None
    split_at: int | None = None
    """Where the turn begins that is divided, if one is (requirement A5)."""
    rebuilds: bool = False
    """Whether the summary is built anew from leaf summaries, not from the one before."""
    owner: str | None = None
    """The process that works on it: what it leaves unfinished when it ends is abandoned."""


class CompactionPerformed(Value, frozen=True):
    """A summary was accepted and stands for what it covers from now on."""

    attempt_id: str
    summary_id: str
    text: str
    tokens: int
    """The size of the summary as rendered, with the topics that are named and the ledger beside it."""
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
    """The part of the text that stands for the beginning of the divided turn."""
    split_at: int | None = None
    """Where the divided turn begins."""
    text_tokens: int = 0
    """Of the text alone."""
    target_tokens: int | None = None
    """The size of the conversation that was aimed at."""
    effective: bool = True
    """Whether that was reached (invariant 7)."""
    generation: int = 0
    """How often the text was carried over since it was last built from leaves or originals."""
    ledger: tuple[LedgerLine, ...] = ()
    """What code keeps beside the prose, the most important first."""
    ledger_shown: int = 0
    """How many of these lines are rendered; the others are kept to be counted on."""
    leaf: LeafSummary | None = None
    omitted: tuple[OmittedMessage, ...] = ()
    """What was too large to be summarised: named in the text, and recallable."""
    given_in_part: tuple[GivenInPart, ...] = ()
    """What of the messages that it covers first the summariser was not given whole."""
    block: Block | None = None
    """The provider's own signed compaction block, rendered in place of the text, unchanged."""
    model_calls: int = 1
    """How often a model was asked for it, retries included; 0 where code alone wrote it."""
    topics: tuple[Topic, ...] = ()
    """What the covered messages are about, the most important first; labels, never a filter."""
    topics_shown: int = 0
    """How many of these are named beside the summary."""
    message_count: int | None = None
    """How many messages the conversation had then."""
    topics_ask: bool = True
    """Whether the line that names them says to ask the tool that recalls: requests carried it."""


class CompactionFailed(Value, frozen=True):
    """A compaction ended without a summary; the context is as it was."""

    attempt_id: str
    reason: str
    detail: str = ""
    live_tokens: int = 0
    """The size of the conversation when it failed; the guard against useless repetition counts from it."""
    model_calls: int = 0


class CompactionReverted(Value, frozen=True):
    """The newest compaction was undone: what it covered is in the context again."""

    summary_id: str
    restored: ActiveSummary | None
    """The summary that is active again."""
    messages: tuple[LiveMessage, ...]
    """What the state knew of the messages that are live again."""
    older_live: int
    older_tokens: int
    live_from: int
    reason: str = ""


class SummarySuperseded(Value, frozen=True):
    """A newer summary took over; the old one stays for audit."""

    summary_id: str
    by: str


class ShortenedPart(Value, frozen=True):
    """One side of a tool call that is shown shorter from now on."""

    position: int
    call_id: str
    side: Literal["call", "result"]
    """The call's input, or its result."""
    tokens_freed: int
    """What this decision saved; a later one may shorten the same part further."""


class ToolContentOffloaded(Value, frozen=True):
    """Large tool results or inputs were replaced by previews; their content stays in the log."""

    parts: tuple[ShortenedPart, ...]
    head: int
    tail: int
    """Characters shown from the beginning and from the end of each text."""


class MessagesCondensed(Value, frozen=True):
    """Tool results of older messages were cut short; their content stays in the log."""

    parts: tuple[ShortenedPart, ...]
    characters: int
    """Characters shown from the beginning of each result; with 0 only the marker is left."""


class SaidPart(Value, frozen=True):
    """A text, an image or a document of a user's message that is shown shorter from now on."""

    position: int
    block: int
    """Its place among the blocks of the message, from 0."""
    tokens_freed: int


class UserContentShortened(Value, frozen=True):
    """What a user said or showed is too large to stay whole; its content stays in the log."""

    parts: tuple[SaidPart, ...]
    head: int
    tail: int
    """Characters shown from the beginning and from the end of a text; of an image or a document only a
    marker is left."""
    left_out: bool = False
    """Nothing of them is shown: parts next to each other share one marker."""


Shortening = ToolContentOffloaded | MessagesCondensed | UserContentShortened
"""The decisions that show parts of messages shorter."""


class MessagePinned(Value, frozen=True):
    """A message or a text was marked to be kept word for word until it is unpinned."""

    pin_id: str
    position: int | None
    """The message that it comes from; None for a text of its own."""
    text: str
    """What the ledger shows; empty where the message itself stays in the context."""
    tokens: int
    """Of the ledger's line; 0 where the message itself stays."""


class MessageUnpinned(Value, frozen=True):
    """A pin was taken back."""

    pin_id: str


class ConversationLabelled(Value, frozen=True):
    """The conversation was given a name for people."""

    label: str


class MessageErased(Value, frozen=True):
    """The content of a message was removed, with everything that was copied or made from it."""

    position: int
    message_id: str
    tokens: int
    """Of the marker that is shown in its place."""
    tokens_freed: int
    """What it took up in the context until then, less the marker; 0 if a summary covers it."""
    rewritten: tuple[Rewritten, ...]
    """The message itself, and the summaries, attempts and pins that were made from it."""
    reason: str = ""


class ConversationErased(Value, frozen=True):
    """The content of every event before this one was removed; nothing may be appended any more."""

    reason: str = ""


class ConversationForked(Value, frozen=True):
    """All events before this one are copies of those of another conversation."""

    source: str
    """The thread id of the other conversation."""
    version: int
    """Its version then; this event has the next one here."""


class EventLost(Value, frozen=True):
    """Only the place of an event is left: it was erased with its conversation, or lost by damage."""

    position: int | None = None
    """Of the message that it appended, where that is known."""


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
    | MessagePinned
    | MessageUnpinned
    | NotesFlushed
    | MemoriesChosen
    | ConversationLabelled
    | MessageErased
    | ConversationErased
    | ConversationForked
    | RequestFrameChanged
    | EventLost
)
