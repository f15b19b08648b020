"""The settings of a memory, in the form that use cases need."""

from pathlib import Path
from typing import Literal

from refold.application.conversation.models import longest_prefix
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.frames import SummaryPlace
from refold.domain.value import Value, build_unvalidated, replace

RecallMode = Literal["keyword", "vector", "hybrid"]
"""Search mode: by words, by meaning, or by both."""


class ModelSettings(Value, frozen=True):
    """Settings for requests to some models that override the general ones."""

    prefix: str
    """Prefix of the names of these models; only the longest matching prefix applies."""
    window: int | None
    policy: CompactionPolicy
    request_bytes: int = 32_000_000


class NotesSettings(Value, frozen=True):
    """Settings for durable notes: when they are taken, by what, and where they are written."""

    by: Literal["auto", "ledger", "off"] = "auto"
    """``auto``: the summariser's model if it has one, else code, from the ledger."""
    folder: Path | None = None
    """Folder for ``MEMORY.md`` and ``memory/YYYY-MM-DD.md``, or None to write no files."""
    searched: Path | None = None
    """Folder in which Markdown notes are searched, or None for ``folder``."""
    reserve_tokens: int = 20_000
    soft_tokens: int = 4_000
    """Notes are taken when a request exceeds the window less ``reserve_tokens`` and ``soft_tokens``."""
    timeout: float = 3.0
    """Additional seconds that a turn waits for notes by a model."""
    timezone: str | None = None
    """Time zone of the daily files as a name or an offset, or None for that of this machine."""


OwnerMemories = Literal["notes", "summaries", "off"]


class MemoriesSettings(Value, frozen=True):
    """Settings for earlier messages that are quoted in the system text."""

    most: int = 0
    """Maximum number of quoted messages; 0 quotes none."""
    least_score: float = 0.4
    """Minimum score relative to the best message."""
    tokens: int = 1_500
    """Maximum tokens of all quoted messages together."""
    of_owner: OwnerMemories = "notes"
    """Content of the owner's other conversations that may be quoted: notes, summaries as well, or nothing."""


class InstructionSettings(Value, frozen=True):
    """Settings for instruction files in the system text."""

    files: tuple[Path, ...] = ()
    characters: int = 20_000
    """Maximum characters of one file."""
    total: int = 24_000
    """Maximum characters of all files together."""


class Settings(Value, frozen=True):
    """The settings of a memory."""

    window: int | None = None
    """Context window in tokens, or None for the known window of the model."""
    model: str | None = None
    """Model that answers, unless a call names another."""
    policy: CompactionPolicy = build_unvalidated(CompactionPolicy)
    background: bool = False
    """True if a due compaction begins in the background after an append."""
    close_wait: float = 5.0
    """Seconds that closing waits for background compactions before it cancels them."""
    compaction_wait: float = 30.0
    """Seconds that a request which does not fit waits for a compaction of another caller."""
    summary_place: SummaryPlace = "user"
    request_bytes: int = 32_000_000
    """Maximum bytes of a request body."""
    shorten_texts: bool = True
    """True if a user's text that is too large is shortened to its beginning and end."""
    recall_tokens: int = 4_000
    """Maximum tokens of a recall answer: hits and their neighbours."""
    recall_hits: int = 5
    recall_least_score: float = 0.0
    recall_mode: RecallMode | None = None
    standing_recall: int = 400
    """Maximum tokens of the lines that are recalled for a message of the user; 0 recalls none."""
    notes: NotesSettings = build_unvalidated(NotesSettings)
    memories: MemoriesSettings = build_unvalidated(MemoriesSettings)
    instructions: InstructionSettings = build_unvalidated(InstructionSettings)
    models: tuple[ModelSettings, ...] = ()

    def for_model(self, model: str | None) -> "Settings":
        """Return these settings as they apply to requests to ``model``."""
        found = longest_prefix(model, (own.prefix for own in self.models))
        if found is None:
            return self
        own = next(own for own in self.models if own.prefix == found)
        return replace(self, window=own.window, policy=own.policy, request_bytes=own.request_bytes)
