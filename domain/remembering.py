"""What is remembered beside the summary: durable notes, and earlier messages that are quoted. These names
are the storage format, like those in ``events``."""

from typing import Literal

from .value import Value

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


class ChosenMemory(Value, frozen=True):
    """An excerpt of an earlier message of the same conversation."""

    position: int
    message_id: str
    role: str
    """Who said it; ``tool`` for the result of a tool."""
    at: str
    """When it was written, or else logged: ISO 8601, UTC."""
    text: str
    score: float
    """Relative to the best one: over 0, at most 1."""


class MemoriesChosen(Value, frozen=True):
    """Earlier messages were chosen to be quoted in the system text, in place of those before."""

    query_position: int
    """The message that they were looked up for."""
    memories: tuple[ChosenMemory, ...]
    """The best first; none takes back those before."""
    tokens: int
    """As rendered, with heading and guidance."""
