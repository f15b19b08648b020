"""The core that all use cases share: the ports, the settings, and how a request is measured."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from refold.domain.budget import Budget, InstructionFileSize, budget_for
from refold.domain.policy import CompactionPolicy
from refold.domain.value import Value

from .event_log import ConversationLog
from .instructions import ShownFile, instruction_sizes
from .models import longest_prefix, rules_for
from .notes.folder import NotesFolder
from .opening_process import OpeningProcess
from .ports import NOBODY, Clock, NewId, Observer, Owner, Summariser, TokenCounter
from .read_models import ReadModels
from .recall.parts import RecallParts
from .rendering.blocks import text_block
from .rendering.render import SummaryPlace, System, summary_overhead
from .rendering.turns import FRAME_TOKENS
from .repeating import LastRequests
from .tools.sdk import NO_SDK, SDKTools
from .topics.extractor import TopicExtractor
from .topics.frequent import FrequentTerms
from .upkeep.log_keeping import LogKeeper


class ModelSettings(Value, frozen=True):
    """What holds for requests to some models in place of the general settings."""

    prefix: str
    """How the names of these models begin; the longest prefix that fits counts, alone."""
    window: int | None
    policy: CompactionPolicy


class NotesSettings(Value, frozen=True):
    """When durable notes are taken, by whom, and where they are written."""

    by: Literal["auto", "ledger", "off"] = "auto"
    """``auto``: the summariser's model where one makes summaries, else code, from the ledger."""
    folder: Path | None = None
    """Where ``MEMORY.md`` and ``memory/YYYY-MM-DD.md`` are kept; None: nowhere."""
    reserve_tokens: int = 20_000
    soft_tokens: int = 4_000
    """Notes are taken when a request is larger than the window less both (requirement C1)."""
    timeout: float = 3.0
    """Seconds that a turn waits for notes by a model beyond what else it waits for (requirement C10)."""
    timezone: str | None = None
    """Whose days the daily files are of: a name or an offset; None: the zone of this machine."""


class MemoriesSettings(Value, frozen=True):
    """Which earlier messages are quoted in the system text (requirement C4)."""

    most: int = 0
    """How many at most; 0: none are."""
    least_score: float = 0.4
    """Relative to the best one."""
    tokens: int = 1_500
    """All of them together."""


class InstructionSettings(Value, frozen=True):
    """Which files of instructions are part of the system text (requirement C5)."""

    files: tuple[Path, ...] = ()
    characters: int = 20_000
    """Of one file."""
    total: int = 24_000
    """Of all together."""


class Settings(Value, frozen=True):
    """What an agent configures."""

    window: int | None = None
    """The context window in tokens; None: the window that is known for the model."""
    model: str | None = None
    """The model that answers, unless a call names another."""
    policy: CompactionPolicy = CompactionPolicy()
    background: bool = False
    """Whether a compaction that is due begins after an append, without anybody waiting for it."""
    close_wait: float = 5.0
    """Seconds that closing waits for compactions in the background before it gives them up."""
    compaction_wait: float = 30.0
    """Seconds that a request which does not fit waits for a compaction that is under way elsewhere."""
    summary_place: SummaryPlace = "user"
    recall_tokens: int = 4_000
    """The room of one answer of recall: hits and their neighbours."""
    notes: NotesSettings = NotesSettings()
    memories: MemoriesSettings = MemoriesSettings()
    instructions: InstructionSettings = InstructionSettings()
    models: tuple[ModelSettings, ...] = ()

    def for_model(self, model: str | None) -> "Settings":
        """These settings as they are for requests to ``model``."""
        found = longest_prefix(model, (own.prefix for own in self.models))
        if found is None:
            return self
        own = next(own for own in self.models if own.prefix == found)
        return self.replaced(window=own.window, policy=own.policy)


class Extras(NamedTuple):
    """What a request carries besides the conversation."""

    system: System = None
    tools: Sequence[Mapping[str, Any]] = ()
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Core:
    """Ports and settings, handed to every use case."""

    log: ConversationLog
    keeper: LogKeeper
    views: ReadModels
    recall: RecallParts
    counter: TokenCounter
    summariser: Summariser
    fallback: Summariser
    """Asked when the context does not fit and ``summariser`` could not help: needs no model."""
    clock: Clock
    new_id: NewId
    settings: Settings
    notes_folder: NotesFolder | None = None
    """Where notes are written as files; None: nowhere."""
    topics: TopicExtractor = field(default_factory=FrequentTerms)
    """Names topics where no model does."""
    instructions: str = ""
    """The text of the instruction files, as every request carries it behind the caller's system text."""
    instruction_files: tuple[ShownFile, ...] = ()
    """What became of each of these files."""
    observers: tuple[Observer, ...] = ()
    owner: Owner = NOBODY
    sdk_tools: SDKTools = NO_SDK
    """Makes tools for agents of an SDK's own kind."""
    process: OpeningProcess = field(default_factory=OpeningProcess)
    """Has opened all of this, and is the only one that may use it."""
    last_requests: LastRequests = field(default_factory=LastRequests)
    _sizes: dict[str, int] = field(default_factory=dict[str, int])
    _file_sizes: dict[str, tuple[InstructionFileSize, ...]] = field(
        default_factory=dict[str, tuple[InstructionFileSize, ...]]
    )

    def here(self) -> "Core":
        """This core, in the process that opened it.

        Raises:
            OpenedBeforeFork: this process was forked from that one.
        """
        self.process.check()
        return self

    def for_model(self, model: str | None) -> "Core":
        """This core with the settings for requests to ``model``, or else to the usual one."""
        if not self.settings.models:
            return self
        return replace(self, settings=self.settings.for_model(model or self.settings.model))

    def budget(self, extras: Extras) -> Budget:
        """The budget of requests that carry these extras."""
        model = extras.model or self.settings.model
        settings = self.settings.for_model(model)
        return budget_for(
            settings.window or rules_for(model).window,
            self.extras_tokens(extras),
            settings.policy,
            summary_overhead=summary_overhead(self._size),
            instructions=self._instructions_tokens,
            instruction_files=self._instruction_sizes(self.instructions),
        )

    def system_of(self, extras: Extras) -> System:
        """The caller's system prompt with the instruction files behind it."""
        given, own = extras.system, self.instructions
        if not own:
            return given
        if given is None or isinstance(given, str):
            return f"{given}\n\n{own}" if given and given.strip() else own
        return [*given, text_block(own)]

    def extras_tokens(self, extras: Extras) -> int:
        """The size of the caller's system prompt and tools, and of the instruction files."""
        tokens = self._instructions_tokens
        if extras.system:
            text = extras.system if isinstance(extras.system, str) else json.dumps(extras.system)
            tokens += self._size(text) + FRAME_TOKENS
        if extras.tools:
            tokens += self.counter.count_tools(tuple(dict(tool) for tool in extras.tools))
        return tokens

    @property
    def _instructions_tokens(self) -> int:
        return self._size(self.instructions) + FRAME_TOKENS if self.instructions else 0

    def _instruction_sizes(self, text: str) -> tuple[InstructionFileSize, ...]:
        known = self._file_sizes.get(text)
        if known is None:
            if len(self._file_sizes) > 32:
                self._file_sizes.clear()
            files = self.instruction_files if text == self.instructions else ()
            known = instruction_sizes(text, files, self.counter.count_text)
            self._file_sizes[text] = known
        return known

    def _size(self, text: str) -> int:
        # The system prompt is the same at every call of a conversation.
        known = self._sizes.get(text)
        if known is None:
            if len(self._sizes) > 32:
                self._sizes.clear()
            known = self._sizes[text] = self.counter.count_text(text)
        return known
