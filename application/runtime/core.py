"""The core of a memory, which every use case gets: ports, settings, last requests and section vectors."""

from __future__ import annotations

import dataclasses
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from refold.application.compaction.unwritten import UnwrittenWrites
from refold.application.conversation.models import (
    binds_thinking,
    rules_for,
    takes_signed_summaries,
)
from refold.application.conversation.recalled_texts import RecalledTexts
from refold.application.conversation.turn_lock import Turns, TurnsInMemory
from refold.application.errors import EmbedderError
from refold.application.frames.request_frames import Frame, NewestRequests
from refold.application.ports.processes import UNNAMED_OWNER, Clock, NewId, Owner
from refold.application.ports.sdk_tools import NO_SDK, SDKTools
from refold.application.rendering.kept_turns import KeptTurns
from refold.application.rendering.render import System, summary_overhead
from refold.application.rendering.request_blocks import text_block
from refold.application.rendering.turn_builder import FRAME_TOKENS
from refold.domain.compaction.budget import Budget, InstructionFileSize, budget_for
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.frames import SummaryPlace
from refold.domain.value import byte_size, replace

from .memory_settings import Settings
from .opening_process import OpeningProcess, Uncopied

if TYPE_CHECKING:
    from refold.application.api.results import Context
    from refold.application.conversation.entries import PinnedText, Preview, PreviewKey
    from refold.application.conversation.instructions import ShownFile
    from refold.application.conversation.loaded import LoadedConversation
    from refold.application.ports.conversation_log import ConversationLog
    from refold.application.ports.embedder import Embedder, Vector
    from refold.application.ports.follower_store import FollowerParts, UpdatedFollower
    from refold.application.ports.log_keeper import LogKeeper
    from refold.application.ports.markdown_pages import MarkdownPages
    from refold.application.ports.notes_folder import NotesFolder
    from refold.application.ports.observer import Observer
    from refold.application.ports.read_models import ReadModels
    from refold.application.ports.recall_index import RecallIndex
    from refold.application.ports.search_backend import SearchBackend
    from refold.application.ports.summariser import Summariser
    from refold.application.ports.token_counter import TokenCounter
    from refold.application.ports.topic_extractor import TopicExtractor
    from refold.application.ports.vectors import VectorStore
    from refold.application.recall.embedding import Embedding
    from refold.domain.facts.reading import ReadOnce
    from refold.domain.notes import MemoriesChosen


@dataclass(frozen=True, eq=False, repr=False)
class RecallParts:
    """Adapters of recall."""

    index: RecallIndex
    vectors: VectorStore | None = None
    """Vector store; also set without an embedder, so that an erasure reaches older vectors."""
    embedder: Embedder | None = None
    embedding: Embedding | None = None
    """Background embedding, or None if no embedder is configured."""
    backend: SearchBackend | None = None
    """Search backend, or None for the built-in search."""
    drop_handed_over: Callable[[], bool] = lambda: True
    """Deletes the copies that any search backend has of this log, and returns whether none is left."""

    def close(self) -> None:
        """Release files and connections; closing twice is allowed."""
        for part in (self.embedding, self.index, self.vectors, self.backend):
            if part is not None:
                part.close()


KEPT = 5_000
"""Number of vectors to keep; the oldest are dropped."""


class SectionVectors:
    """Vectors of Markdown sections, one for each text.

    They are kept only in memory, because the files change.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Vector] = OrderedDict()

    def cosines(self, embedder: Embedder, query: str, texts: Sequence[str]) -> list[float]:
        """Return the nearness of each text to the question, at least 0.

        Raises:
            EmbedderError: the embedder failed.
        """
        try:
            wanted = embedder.embed_query(query)
            vectors = self._vectors(embedder, texts)
        except EmbedderError:
            raise
        except Exception as error:  # An embedder of the user may raise anything.
            raise EmbedderError("error", f"{type(error).__name__}: {error}") from error
        return [_cosine(wanted, vector) for vector in vectors]

    def _vectors(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        with self._lock:
            missing = [t for t in dict.fromkeys(texts) if (embedder.model, t) not in self._known]
            if missing:
                made = embedder.embed_documents(missing)
                for text, vector in zip(missing, made, strict=True):
                    self._known[embedder.model, text] = vector
            found = [self._known[embedder.model, text] for text in texts]
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return found


def _cosine(one: Vector, other: Vector) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return (
        max(0.0, sum(a * b for a, b in zip(one, other, strict=True)) / lengths) if lengths else 0.0
    )


REMEMBERED = 1_000
"""Number of conversations whose last request is remembered."""


class _Request(NamedTuple):
    model: str | None
    system: str
    fixed: int
    tokens: int
    decisions: int
    """Number of events of the conversation that are not messages."""
    summary_id: str | None
    previews: Mapping[PreviewKey, Preview]
    pins: tuple[PinnedText, ...]
    memories: MemoriesChosen | None

    def is_fixed_like(self, other: _Request) -> bool:
        """Return whether system text, tools and model are the same, as a prompt cache requires."""
        return self[:3] == other[:3]

    def is_decided_like(self, other: _Request) -> bool:
        """Return whether no decision in between changed the rendered content."""
        return self.decisions == other.decisions or self[5:] == other[5:]


class LastRequests:
    """The last request of each conversation."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Request] = OrderedDict()

    def repeated(self, loaded: LoadedConversation, context: Context, system: System) -> int:
        """Return the tokens that ``context`` shares with the previous request, and remember ``context``.

        Without a decision in between, a request begins with the whole previous request. After one, only the
        caller's system text and tools are certainly the same.
        """
        window, state = loaded.window, loaded.state
        now = _Request(
            model=context.model,
            system=system if isinstance(system, str) else json.dumps(system),
            fixed=context.budget.fixed,
            tokens=context.tokens,
            decisions=state.version - state.length,
            summary_id=window.summary.summary_id if window.summary else None,
            previews=window.previews,
            pins=window.pins,
            memories=window.memories,
        )
        before = self._known.pop(context.thread_id, None)
        self._known[context.thread_id] = now
        while len(self._known) > REMEMBERED:
            self._known.pop(next(iter(self._known)), None)
        if before is None or not now.is_fixed_like(before):
            return 0
        return min(before.tokens if now.is_decided_like(before) else now.fixed, now.tokens)

    def forget(self, thread_id: str) -> None:
        """Forget the last request of a conversation after content in it was erased."""
        self._known.pop(thread_id, None)


_MOST_LINES = 10_000
"""Number of lines whose sizes are remembered."""


class LineSizes(dict[str, int]):
    """Tokens of lines. Lines that are not measured again for long are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Callable[[str], int] = len
        self._older: dict[str, int] = {}

    def __missing__(self, text: str) -> int:
        known = self._older.get(text)
        self[text] = size = self.count(text) if known is None else known
        if len(self) > _MOST_LINES // 2:
            self._older = dict(self)
            self.clear()
        return size

    def forget(self) -> None:
        """Forget all lines, because some of them were erased."""
        self._older = {}
        self.clear()


_ENVELOPE_BYTES = 1_000
"""Bytes of a request body for field names, the model and other parameters."""


class Layout(NamedTuple):
    """The parts of a request that callers do not pass."""

    instructions: str
    """Text of the instruction files."""
    place: SummaryPlace
    signed: bool
    """True if the provider's own compaction block is sent."""


class Extras(NamedTuple):
    """The parts of a request apart from the conversation, as passed by the caller."""

    system: System = None
    tools: Sequence[Mapping[str, Any]] = ()
    model: str | None = None
    layout: Layout | None = None
    """Recorded layout, or None for the current one."""


def no_followers(name: str, version: int, fold: Any, into: object) -> Any:
    """Refuse a follower: no adapters for its tables were given."""
    raise NotImplementedError(f"no place for the tables of {name}")


def frequent_terms() -> TopicExtractor:
    """Return the topic extractor without a model."""
    from refold.application.topics.frequent_terms import FrequentTerms

    return FrequentTerms()


def read_once() -> ReadOnce:
    """Return a reader of the facts of messages."""
    from refold.domain.facts.reading import ReadOnce

    return ReadOnce()


@dataclass(frozen=True, eq=False, repr=False)
class Core(Uncopied):
    """Ports and settings that every use case gets."""

    log: ConversationLog
    keeper: LogKeeper
    views: ReadModels
    recall: RecallParts
    counter: TokenCounter
    summariser: Summariser
    fallback: Summariser
    """Summariser without a model, used if the context does not fit and ``summariser`` failed."""
    clock: Clock
    new_id: NewId
    settings: Settings
    notes_folder: NotesFolder | None = None
    """Folder where notes are written as files, or None."""
    markdown: MarkdownPages | None = None
    """Markdown files to search, or None."""
    section_vectors: SectionVectors = field(default_factory=SectionVectors)
    topics: TopicExtractor = field(default_factory=frequent_terms)
    """Topic extractor for summaries without topics of a model."""
    instructions: str = ""
    """Text of the instruction files, which follows the caller's system text in every request."""
    instruction_files: tuple[ShownFile, ...] = ()
    """Instruction files as they are shown."""
    observers: tuple[Observer, ...] = ()
    needs_no_loop: bool = False
    """True if no compaction awaits anything but its own steps, or calls any code of the application but a counter."""
    owner: Owner = UNNAMED_OWNER
    sdk_tools: SDKTools = NO_SDK
    """Factory for tools of an agent SDK."""
    follower_parts: FollowerParts = no_followers
    followers: list[UpdatedFollower] = field(default_factory=list[Any])
    """Followers of the log in this process."""
    process: OpeningProcess = field(default_factory=OpeningProcess)
    """Process that opened the memory; only this process may use it."""
    recalled: RecalledTexts = field(default_factory=RecalledTexts)
    """The words of recalled lines."""
    kept_turns: KeptTurns = field(default_factory=KeptTurns)
    """The turns of the newest requests."""
    reading: ReadOnce = field(default_factory=read_once)
    """Reads the facts of messages, each once."""
    last_requests: LastRequests = field(default_factory=LastRequests)
    asked: NewestRequests = field(default_factory=NewestRequests)
    """Newest requests whose answers are not stored yet."""
    turns: Turns = field(default_factory=TurnsInMemory)
    unwritten: UnwrittenWrites = field(default_factory=UnwrittenWrites)
    """Decisions that could not be written yet; ``log`` writes them with the next transaction."""
    _sizes: dict[str, int] = field(default_factory=dict[str, int])
    _tool_sizes: dict[bytes, tuple[int, int]] = field(default_factory=dict[bytes, tuple[int, int]])
    line_sizes: LineSizes = field(default_factory=LineSizes)
    """Tokens of the newest lines of ledgers and indexes. Looking one up measures it."""
    _file_sizes: dict[str, tuple[InstructionFileSize, ...]] = field(
        default_factory=dict[str, tuple[InstructionFileSize, ...]]
    )

    def __post_init__(self) -> None:
        """Let lines be measured by the counter."""
        self.line_sizes.count = self.counter.count_text

    def close_derived(self) -> None:
        """Release the files and connections of what is derived from the log; closing twice is allowed."""
        self.recall.close()
        self.views.close()

    def for_model(self, model: str | None) -> Core:
        """Return this core with the settings for requests to ``model``, or else to the default model."""
        if not self.settings.models:
            return self
        return dataclasses.replace(
            self, settings=self.settings.for_model(model or self.settings.model)
        )

    def with_policy(self, policy: CompactionPolicy) -> Core:
        """Return this core with another policy."""
        return dataclasses.replace(self, settings=replace(self.settings, policy=policy))

    def with_answering_model(self, model: str | None, asked: str | None = None) -> Core:
        """Return this core with the summariser for answers of ``model``, or else of the default model.

        ``asked``: model to use for summaries regardless of the configuration.
        """
        from refold.application.ports.summariser import for_models

        chosen = for_models(self.summariser, asked, model or self.settings.model)
        return self if chosen is self.summariser else dataclasses.replace(self, summariser=chosen)

    def budget(self, extras: Extras) -> Budget:
        """Return the budget of requests with these extras."""
        from refold.application.agent_tools.tool_names import RECALL_MEMORY

        model = extras.model or self.settings.model
        settings = self.for_model(model).settings
        return replace(
            budget_for(
                settings.window or rules_for(model).window,
                self.extras_tokens(extras),
                settings.policy,
                summary_overhead=summary_overhead(self._size),
                instructions=self._instructions_tokens(extras),
                instruction_files=self._instruction_sizes(self.layout(extras).instructions),
                recalls=any(str(tool.get("name")).endswith(RECALL_MEMORY) for tool in extras.tools),
            ),
            byte_limit=settings.request_bytes,
            fixed_bytes=self._extras_bytes(extras),
            image_limit=rules_for(model).images,
        )

    def layout(self, extras: Extras) -> Layout:
        """Return the recorded layout of the request, or the current one."""
        model, place = extras.model or self.settings.model, self.settings.summary_place
        return extras.layout or Layout(self.instructions, place, takes_signed_summaries(model))

    def frame(self, extras: Extras) -> Frame:
        """Return the frame of a request with these extras."""
        model = extras.model or self.settings.model
        instructions, place, signed = self.layout(extras)
        tools, binds = tuple(extras.tools), binds_thinking(model)
        return Frame(extras.system, instructions, tools, model, place, signed, binds)

    def system_of(self, extras: Extras) -> System:
        """Return the caller's system prompt followed by the instruction files."""
        given, own = extras.system, self.layout(extras).instructions
        if not own:
            return given
        if given is None or isinstance(given, str):
            return f"{given}\n\n{own}" if given and given.strip() else own
        return [*given, text_block(own)]

    def extras_tokens(self, extras: Extras) -> int:
        """Return the tokens of the caller's system prompt, the tools and the instruction files."""
        tokens = self._instructions_tokens(extras)
        if extras.system:
            text = extras.system if isinstance(extras.system, str) else json.dumps(extras.system)
            tokens += self._size(text) + FRAME_TOKENS
        return tokens + (self._size_of_tools(extras.tools)[0] if extras.tools else 0)

    def _instructions_tokens(self, extras: Extras) -> int:
        text = self.layout(extras).instructions
        return self._size(text) + FRAME_TOKENS if text else 0

    def _extras_bytes(self, extras: Extras) -> int:
        given = byte_size(extras.system) if extras.system else 0
        tools = self._size_of_tools(extras.tools)[1] if extras.tools else 0
        own = byte_size(self.layout(extras).instructions)
        return given + tools + own + _ENVELOPE_BYTES

    def _size_of_tools(self, tools: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
        """Return the tokens and the bytes of tool definitions."""
        from refold.application.rendering.kept_tools import keep_tools

        kept = keep_tools(tools)
        known = self._tool_sizes.get(kept.packed)
        if known is None:
            if len(self._tool_sizes) > 32:
                self._tool_sizes.clear()
            given = tuple(kept.copies())
            known = self.counter.count_tools(given), sum(map(byte_size, given))
            self._tool_sizes[kept.packed] = known
        return known

    def _instruction_sizes(self, text: str) -> tuple[InstructionFileSize, ...]:
        from refold.application.conversation.instructions import instruction_sizes

        known = self._file_sizes.get(text)
        if known is None:
            if len(self._file_sizes) > 32:
                self._file_sizes.clear()
            files = self.instruction_files if text == self.instructions else ()
            known = instruction_sizes(text, files, self.counter.count_text)
            self._file_sizes[text] = known
        return known

    def forget_read(self) -> None:
        """Forget what was read from messages, because some of them were erased."""
        self.reading.forget()
        self.line_sizes.forget()

    def _size(self, text: str) -> int:
        # The system prompt is the same in every call of a conversation.
        known = self._sizes.get(text)
        if known is None:
            if len(self._sizes) > 32:
                self._sizes.clear()
            known = self._sizes[text] = self.counter.count_text(text)
        return known
