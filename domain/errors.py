"""Every error that refold raises on purpose, and the rule that each says what to do next.

::

    RefoldError
    ├── InvalidThreadId (ValueError)        the thread id is missing, blank or unusable
    ├── InvalidMessage (ValueError)         a message is not one: names the field
    │   ├── UnknownToolCall                 a tool result answers no open call
    │   └── KeyReused                       a key stands for another message already
    ├── InvalidSetting (ValueError)         a setting is out of range: names itself
    ├── UnknownMessage (LookupError)        no message has this position
    ├── UnknownSummary (LookupError)        no summary has this id
    ├── AmbiguousId (LookupError)           several ids begin so (application.errors)
    ├── ConversationGone                    the conversation was erased
    ├── InvalidOwner (ValueError)           the id of an owner is blank or unusable
    ├── OwnerConflict                       the conversation is somebody else's
    ├── VersionConflict                     somebody else has appended meanwhile
    ├── TurnTaken                           somebody else has the turn of the conversation (application.errors)
    ├── InvalidAddress (ValueError)         this is no address of a message (application.errors)
    │   └── ForeignAddress                  it is one of another conversation
    ├── ContextWindowExceeded               what must be in the context does not fit
    │   ├── PinnedContentTooLarge           what is pinned does not fit, even alone
    │   └── RequestTooLarge                 the same in bytes, not in tokens
    ├── EmptyConversation                   there is no message to send yet
    ├── SummariserError                     a summariser could not answer (application.errors)
    ├── EmbedderError                       an embedder could not answer (application.errors)
    ├── BackendError                        a search program could not answer (application.errors)
    ├── TokenCountError                     a request was not counted exactly (application.errors)
    ├── TranscriptError (ValueError)        a transcript file cannot be read (application.errors)
    ├── TargetExists                        a file that is to be written is there already
    └── LogError                            the store of events (application.errors)
        ├── LogNotFound, LogNotWritable, LogFull, LogBusy, LogGone
        ├── LogLocked                       the key of an encrypted log is missing or another one
        ├── BackupDamaged                   a backup, or the log that it is made of
        ├── OpenedBeforeFork                the memory belongs to the process that this one was forked from
        ├── LogBehindAnchor                 the log was put back to an earlier day, or cut
        ├── ThreadExists (ValueError)       a conversation with this id is there already
        ├── NotARefoldLog, NewerLog
        └── LogDamaged                      content differs from its digest, a gap, a broken chain
            └── WriteAheadDamaged           a bad frame in the write-ahead log, intact ones behind it
"""

from collections.abc import Sequence


class RefoldError(Exception):
    """Base class of all errors that refold raises on purpose."""


class InvalidThreadId(RefoldError, ValueError):
    """The thread id is missing, blank or unusable."""


class InvalidSetting(RefoldError, ValueError):
    """A setting has an invalid value.

    The message states the setting, the source of the value, the value, and the allowed range. ``setting``
    and ``value`` give the same facts to programs.
    """

    def __init__(self, message: str, *, setting: str = "", value: object = None) -> None:
        super().__init__(message)
        self.setting = setting
        self.value = value


class InvalidMessage(RefoldError, ValueError):
    """A message is not valid. ``field`` is the path of the invalid part, such as ``content[2].input``."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class UnknownToolCall(InvalidMessage):
    """A tool result answers a call that is not open in this conversation."""

    def __init__(self, field: str, call_id: str, problem: str) -> None:
        super().__init__(field, problem)
        self.call_id = call_id


class KeyReused(InvalidMessage):
    """An idempotency key already belongs to a different message; nothing is stored.

    ``key`` is the key. ``position`` is the position of the message with this key, or None if both messages
    were given in one call.
    """

    def __init__(self, key: str, position: int | None) -> None:
        where = "two messages that are given" if position is None else f"message {position} as well"
        super().__init__(
            "key",
            f"{key!r} stands for {where}, and they say different things: give each message a key of its own",
        )
        self.key = key
        self.position = position


class VersionConflict(RefoldError):
    """Another writer has appended to the conversation since it was read; nothing is stored.

    ``expected`` is the version that the caller gave, ``actual`` is the current version.
    """

    def __init__(self, thread_id: str, expected: int, actual: int) -> None:
        how = (
            "somebody else has appended to it since: read what is new, make the context again"
            if actual > expected
            else "it never had that version: take the one of a context or of an append"
        )
        super().__init__(
            f"conversation {thread_id!r} is at version {actual} and {expected} was expected: {how}, and "
            "append with the new version"
        )
        self.thread_id = thread_id
        self.expected = expected
        self.actual = actual


class UnknownMessage(RefoldError, LookupError):
    """The conversation has no message at this position, or the message was lost by damage."""

    def __init__(self, position: int, length: int, *, lost: bool = False) -> None:
        known = f"positions 0 to {length - 1}" if length else "no messages yet"
        super().__init__(
            f"the message at position {position} was lost when the log was damaged; a backup may have it"
            if lost
            else f"there is no message at position {position}: the conversation has {known}"
        )
        self.position = position
        self.length = length


class UnknownSummary(RefoldError, LookupError):
    """No summary has this id.

    ``thread_id`` is the conversation that was searched, or None for all conversations. ``newest`` are the
    ids of existing summaries, newest first.
    """

    def __init__(self, summary_id: str, thread_id: str | None, newest: Sequence[str]) -> None:
        where = "the log" if thread_id is None else f"conversation {thread_id!r}"
        known = f"has {', '.join(newest)}" if newest else "has none yet: nothing was compacted"
        super().__init__(f"there is no summary {summary_id[:200]!r}: {where} {known}")
        self.summary_id = summary_id
        self.thread_id = thread_id
        self.newest = tuple(newest)


class ConversationGone(RefoldError):
    """The conversation was erased and cannot be read. Appending a message starts a new one."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"conversation {thread_id!r} was erased; append a message to begin a new one with this id, or "
            "use another id"
        )
        self.thread_id = thread_id


class EmptyConversation(RefoldError):
    """The conversation has no messages, so no request can be built."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"conversation {thread_id!r} has no message to send yet: append what the user says first"
        )
        self.thread_id = thread_id


class InvalidOwner(RefoldError, ValueError):
    """The id of an owner is blank or unusable."""


class OwnerConflict(RefoldError):
    """The conversation has a different owner; nothing was read or stored.

    The message names neither owner, because the wrong one of the two may read it.
    """

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"conversation {thread_id!r} belongs to another owner, and that never changes: give that "
            "owner, or another thread id"
        )
        self.thread_id = thread_id


class ContextWindowExceeded(RefoldError):
    """Content that must stay word for word does not fit the budget.

    ``needed`` and ``budget`` are tokens. ``instructions`` is the part of ``needed`` that instruction files
    use.
    """

    unit = "tokens"

    def __init__(
        self, needed: int, budget: int, explanation: str, *, instructions: int = 0
    ) -> None:
        super().__init__(
            f"the context needs {needed:,} {self.unit} and the budget is {budget:,}: {explanation}"
        )
        self.needed = needed
        self.budget = budget
        self.instructions = instructions


class RequestTooLarge(ContextWindowExceeded):
    """Content that must stay has more bytes than a request may have. ``needed`` and ``budget`` are bytes."""

    unit = "bytes"


class PinnedContentTooLarge(ContextWindowExceeded):
    """Pinned content does not fit the budget, even without the rest of the conversation.

    ``pins`` are the ids of all pins. ``pinned`` is their total size in tokens.
    """

    def __init__(
        self,
        needed: int,
        budget: int,
        explanation: str,
        *,
        pins: tuple[str, ...],
        pinned: int,
        instructions: int = 0,
    ) -> None:
        super().__init__(needed, budget, explanation, instructions=instructions)
        self.pins = pins
        self.pinned = pinned
