"""What is remembered beside the summary: durable notes, and earlier messages that are quoted. These names
are the storage format, like those in ``events``."""

from collections.abc import Collection
from typing import Literal

from .value import Rewritten, Value

NoteKind = Literal["decision", "preference", "constraint", "task", "fact"]
"""What was decided; what the user likes; what must or must not be; what is left to do; what holds."""


class Note(Value, frozen=True):
    """Something worth knowing for longer than its conversation is in view."""

    kind: NoteKind
    text: str
    positions: tuple[int, ...] = ()
    """The messages that it comes from; none where a model did not say."""


class NotesFlushed(Value, frozen=True):
    """Durable notes were taken of messages before a compaction covers them, or there was nothing to note."""

    flush_id: str
    start: int
    stop: int
    """Of the messages at positions ``start`` up to but not including ``stop``."""
    notes: tuple[Note, ...]
    """Empty where there was nothing to save."""
    taken_by: str
    """``ledger``, where code took them, or the name of the summariser that was asked."""
    model: str = ""
    prompt_fingerprint: str = ""
    model_calls: int = 0
    """How often a model was asked, retries included."""
    reason: str = ""
    """Why code took them in place of a model, or why they were taken anew: a short constant."""
    replaces: str | None = None
    """The flush whose notes these stand for, since something that those were made from was erased."""
    taken_at: str | None = None
    """When the notes were first taken that these stand for: ISO 8601, UTC. None: these were taken when
    they were logged."""


MemoryKind = Literal["message", "note", "summary"]


class ChosenMemory(Value, frozen=True):
    """An excerpt of an earlier message, or of what was noted or summarised in another conversation."""

    position: int
    """Of the message, or of the first one that a note or summary was made of."""
    message_id: str
    """Of the message or summary; of a note the id of its flush, and its number there."""
    role: str
    """Who said it; ``tool`` for the result of a tool, ``note`` and ``summary`` for what was made of several."""
    at: str
    """When it was written, or else logged: ISO 8601, UTC."""
    text: str
    score: float
    """Relative to the best one: over 0, at most 1."""
    thread_id: str | None = None
    """The conversation that it comes from, where that is another one."""
    kind: MemoryKind = "message"
    start: int = 0
    """Of another conversation: it was made of messages at positions ``start`` …"""
    stop: int = 0
    """… up to but not including this one."""

    def is_made_of(self, thread_id: str, positions: Collection[int]) -> bool:
        """Whether it comes from one of these messages of another conversation."""
        return self.thread_id == thread_id and any(self.start <= p < self.stop for p in positions)


class MemoriesChosen(Value, frozen=True):
    """Earlier messages were chosen to be quoted in the system text, in place of those before."""

    query_position: int
    """The message that they were looked up for."""
    memories: tuple[ChosenMemory, ...]
    """The best first; none takes back those before."""
    tokens: int
    """As rendered, with heading and guidance."""
    rewritten: tuple[Rewritten, ...] = ()
    """Earlier choices of this conversation that lost their content, since what they quoted of another
    conversation was erased there."""
