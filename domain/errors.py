"""Errors that refold raises on purpose. Each message states what happened and what to do next.

::

    RefoldError
    ├── InvalidThreadId (ValueError)        the thread id is missing, blank or unusable
    ├── InvalidMessage (ValueError)         a message is not valid; the error names the field
    │   ├── UnknownToolCall                 a tool result answers no open call
    │   └── KeyReused                       the key belongs to another message
    ├── InvalidSetting (ValueError)         a setting is not valid; the error names it
    ├── UnknownMessage (LookupError)        no message has this position
    ├── UnknownSummary (LookupError)        no summary has this id
    ├── UnknownEdit (LookupError)           no proposed edit has this id
    ├── EditClosed                          the proposed edit was decided otherwise already
    ├── AmbiguousId (LookupError)           several ids have this prefix (application.errors)
    ├── ConversationGone                    the conversation was erased
    ├── InvalidOwner (ValueError)           the id of an owner is blank or unusable
    ├── OwnerConflict                       the conversation belongs to another owner
    ├── VersionConflict                     another writer has appended to the conversation
    ├── TurnTaken                           another process is in its turn (application.errors)
    ├── InvalidAddress (ValueError)         not the address of a message (application.errors)
    │   └── ForeignAddress                  the address is of another conversation
    ├── ContextWindowExceeded               required content does not fit the context
    │   ├── PinnedContentTooLarge           pinned content does not fit, even alone
    │   └── RequestTooLarge                 required content has too many bytes
    ├── EmptyConversation                   the conversation has no messages to send
    ├── SummariserError                     a summariser could not answer (application.errors)
    ├── EmbedderError                       an embedder could not answer (application.errors)
    ├── BackendError                        a search program could not answer (application.errors)
    ├── TokenCountError                     a request was not counted exactly (application.errors)
    ├── TranscriptError (ValueError)        a transcript file cannot be read (application.errors)
    ├── TargetExists                        the file to write already exists
    ├── FileRefused (ValueError)            a command on memory files failed (domain.memory_files)
    ├── FoldError                           the function of a follower failed (application.errors)
    └── LogError                            a problem with the log (application.errors)
        ├── LogNotFound, LogNotWritable, LogFull, LogBusy, LogGone
        ├── LogLocked                       the key of an encrypted log is missing or wrong
        ├── BackupDamaged                   a backup or its source is damaged
        ├── OtherHistory                    the target of a copy has other events
        ├── OpenedBeforeFork                the memory was opened before the process forked
        ├── LogBehindAnchor                 the log was rolled back or truncated
        ├── ThreadExists (ValueError)       a conversation with this id already exists
        ├── NotARefoldLog, NewerLog
        └── LogDamaged                      a wrong digest, a gap or a broken hash chain
            └── WriteAheadDamaged           a bad frame in the write-ahead log before intact ones
"""

from collections.abc import Sequence


class RefoldError(Exception):
    """Base class of all errors that refold raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to copy the error. Its text is copied as it is, because ``__init__`` takes other arguments."""
        return _copied, (type(self), *self.args), self.__dict__


def _copied(kind: type[RefoldError], *args: object) -> RefoldError:
    return kind.__new__(kind, *args)


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
        where = "two messages of this call" if position is None else f"message {position}"
        super().__init__(
            "key",
            f"{key!r} is already the key of {where} with different content: use a new key for each message",
        )
        self.key = key
        self.position = position


class VersionConflict(RefoldError):
    """Another writer has appended to the conversation since it was read; nothing is stored.

    ``expected`` is the version that the caller gave, ``actual`` is the current version: 0 for a conversation that is
    empty or was erased, because a message begins it again.
    """

    def __init__(self, thread_id: str, expected: int, actual: int) -> None:
        is_at = f"conversation {thread_id!r} is at version {actual}"
        if not actual:
            is_at = f"conversation {thread_id!r} has no messages, or was erased"
            how = "append with version 0 to begin it"
        elif actual > expected:
            how = "another writer has appended to it: read the new messages and build a new context, then "
            how += "append with the new version"
        else:
            how = "it never had that version, or had it before it was erased: use the version of a context or "
            how += "of an append, then append with the new version"
        super().__init__(f"{is_at}, but version {expected} was expected: {how}")
        self.thread_id = thread_id
        self.expected = expected
        self.actual = actual


UNLISTED = (
    "has no place in the order of the log yet, which a replica and a role that may only read cannot give; "
    "`refold list` on the primary gives it"
)


class UnknownMessage(RefoldError, LookupError):
    """The conversation has no message at this position, or the message was lost by damage.

    On a replica of a server, the message may also have no place in the order of the log yet.
    """

    def __init__(
        self, position: int, length: int, *, lost: bool = False, unlisted: bool = False
    ) -> None:
        known = f"positions 0 to {length - 1}" if length else "no messages yet"
        why = f"there is no message at position {position}: the conversation has {known}"
        if lost:
            why = f"the message at position {position} was lost when the log was damaged; a backup may have it"
        if unlisted:
            why = f"the message at position {position} {UNLISTED}"
        super().__init__(why)
        self.position = position
        self.length = length


class UnknownSummary(RefoldError, LookupError):
    """No summary has this id.

    On a replica of a server, the summary may also have no place in the order of the log yet.
    ``thread_id`` is the conversation that was searched, or None for all conversations. ``newest`` are the
    ids of existing summaries, newest first.
    """

    def __init__(
        self,
        summary_id: str,
        thread_id: str | None,
        newest: Sequence[str],
        *,
        unlisted: bool = False,
    ) -> None:
        where = "the log" if thread_id is None else f"conversation {thread_id!r}"
        known = (
            f"has {', '.join(newest)}"
            if newest
            else "has no summaries, because nothing was compacted"
        )
        why = f"there is no summary {summary_id[:200]!r}: {where} {known}"
        super().__init__(f"summary {summary_id[:200]!r} {UNLISTED}" if unlisted else why)
        self.summary_id = summary_id
        self.thread_id = thread_id
        self.newest = tuple(newest)


class UnknownEdit(RefoldError, LookupError):
    """No edit of this id was proposed in the conversation. ``waiting`` are the ids of those that wait."""

    def __init__(self, edit_id: str, thread_id: str, waiting: Sequence[str]) -> None:
        known = f"these wait: {', '.join(waiting)}" if waiting else "no proposal waits"
        super().__init__(
            f"there is no proposed edit {edit_id[:200]!r} in conversation {thread_id!r}: {known}"
        )
        self.edit_id = edit_id
        self.thread_id = thread_id
        self.waiting = tuple(waiting)


class EditClosed(RefoldError):
    """The proposed edit was decided otherwise already, which cannot be changed; nothing was done.

    ``allowed`` and ``by`` are those of the decision.
    """

    def __init__(self, edit_id: str, *, allowed: bool, by: str) -> None:
        if allowed:
            what = (
                f"was allowed by {by} and carried out: take a pin back with unpin(), a note with "
                "withdraw_note(); what was erased is gone"
            )
        elif by == "erasure":
            what = "was withdrawn, because a message that it was about was erased"
        else:
            what = f"was refused by {by}: make the change yourself if you want it"
        super().__init__(f"the proposed edit {edit_id[:200]!r} {what}")
        self.edit_id = edit_id
        self.allowed = allowed
        self.by = by


class ConversationGone(RefoldError):
    """The conversation was erased and cannot be read. Appending a message starts a new one."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"conversation {thread_id!r} was erased: append a message to start a new one with this id, or "
            "use another id"
        )
        self.thread_id = thread_id


class EmptyConversation(RefoldError):
    """The conversation has no messages, so no request can be built."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"conversation {thread_id!r} has no messages to send: append a user message first"
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
            f"conversation {thread_id!r} belongs to another owner, which cannot change: use that owner or "
            "another thread id"
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
