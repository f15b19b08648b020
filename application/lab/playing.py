"""Replay a recorded conversation, and measure how much of each request a prompt cache can serve."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.api.results import CompactionResult, Context
from refold.application.conversation.transcripts import RecordedConversation, RecordedMessage
from refold.application.ports.token_counter import TokenCounter
from refold.application.rendering.turn_builder import FRAME_TOKENS
from refold.domain.errors import ContextWindowExceeded
from refold.domain.messages import Message
from refold.domain.value import Value


class Part(NamedTuple):
    """A part of a request, in the order of provider caches: tools, system, messages."""

    kind: Literal["tools", "system", "message"]
    value: Any


Measure = Callable[[Part], int]
"""Returns the size of a part."""


class Repeated(NamedTuple):
    """The size of a request, and of the prefix that it shares with the request before."""

    size: int
    repeated: int


class RepeatedPrefix:
    """Compares each request of a conversation with the one before, part by part."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._parts: list[Part] = []
        self._sizes: list[int] = []

    def compare(self, context: Context) -> Repeated:
        """Return the size of this request and of the prefix shared with the last one."""
        parts = _parts(context)
        same = 0
        for before, now in zip(self._parts, parts, strict=False):
            if before != now:
                break
            same += 1
        repeated = sum(self._sizes[:same])
        sizes = self._sizes[:same] + [self._measure(part) for part in parts[same:]]
        self._parts, self._sizes = parts, sizes
        return Repeated(sum(sizes), repeated)


def count_characters(part: Part) -> int:
    """Return the length of a part as JSON."""
    return len(json.dumps(part.value)) if part.value else 0


def token_measure(counter: TokenCounter) -> Measure:
    """Return a measure that uses a token counter."""

    def measure(part: Part) -> int:
        if not part.value:
            return 0
        match part.kind:
            case "tools":
                return counter.count_tools(tuple(part.value))
            case "system":
                text = part.value if isinstance(part.value, str) else json.dumps(part.value)
                return counter.count_text(text) + FRAME_TOKENS
            case "message":
                content = part.value["content"]
                if not isinstance(content, str):
                    content = tuple(content)
                return counter.count_message(
                    Message(role=part.value["role"], content=content)
                ).total

    return measure


def _parts(context: Context) -> list[Part]:
    head = [Part("tools", context.tools), Part("system", context.system)]
    return head + [Part("message", message) for message in context.messages]


class Played(Value, frozen=True):
    """A progress event of a replay."""

    index: int
    """Index of the message in the recording."""
    total: int
    compaction: CompactionResult | None = None
    refused: str | None = None
    """Reason why a request could not be made, or None."""
    restarted: bool = False


class PlayFigures(Value, frozen=True):
    """Results of a replay. Sizes are estimated tokens; times are milliseconds."""

    thread_id: str
    messages: int
    messages_known: int
    """Number of messages that the store already had; they are not replayed or measured."""
    requests: int
    requests_refused: int
    """Requests that could not be made because content to show word for word does not fit."""
    requests_over_budget: int
    compactions: int
    compactions_failed: int
    splits: int
    """Compactions that split a turn."""
    rebuilds: int
    """Compactions that rebuilt their summary from leaf summaries."""
    results_offloaded: int
    """Tool results and inputs that were replaced by previews."""
    results_condensed: int
    """Older tool results that were cut."""
    restarts: int
    largest_request: int
    budget: int
    tokens_sent: int
    tokens_without_compaction: int
    """Tokens of the same requests with the whole history in each."""
    unchanged_prefix_share: float
    """Share of the sent bytes that repeat the beginning of the request before."""
    append_p50_ms: float
    append_p99_ms: float
    context_p50_ms: float
    context_p99_ms: float


def combine(figures: Sequence[PlayFigures]) -> PlayFigures:
    """Combine the results of several conversations: sums, maxima and weighted mean times."""
    if len(figures) == 1:
        return figures[0]
    requests = max(1, sum(f.requests for f in figures))
    values: dict[str, Any] = {"thread_id": ""}
    for name in PlayFigures.model_fields.keys() - {"thread_id"}:
        column = [getattr(f, name) for f in figures]
        if name in ("largest_request", "budget"):
            values[name] = max(column)
        elif isinstance(column[0], int):
            values[name] = sum(column)
        else:
            weighted = sum(v * f.requests for v, f in zip(column, figures, strict=True))
            values[name] = round(weighted / requests, 4)
    return PlayFigures(**values)


@dataclass
class _Tally:
    known: int = 0
    requests: int = 0
    refused: int = 0
    over_budget: int = 0
    performed: int = 0
    failed: int = 0
    splits: int = 0
    rebuilds: int = 0
    offloaded: int = 0
    condensed: int = 0
    restarts: int = 0
    largest: int = 0
    limit: int = 0
    sent: int = 0
    whole: int = 0
    history: int = 0
    characters_sent: int = 0
    characters_repeated: int = 0
    append_times: list[float] = field(default_factory=list[float])
    context_times: list[float] = field(default_factory=list[float])


class Player:
    """Replays one conversation with a memory that it may close and reopen."""

    def __init__(
        self,
        open_memory: Callable[[], Memory],
        recorded: RecordedConversation,
        *,
        thread_id: str | None = None,
        model: str | None = None,
        restart_every: int = 0,
        on_request: Callable[[int, Context], None] | None = None,
        on_event: Callable[[Played], None] | None = None,
        on_end: Callable[[ConversationMemory], None] | None = None,
    ) -> None:
        """Prepare the replay.

        ``restart_every`` is the number of messages after which the store is reopened, or 0 for
        never. ``on_end`` is called before the store is closed.
        """
        self._open = open_memory
        self._recorded = recorded
        self._thread_id = thread_id or recorded.thread_id
        self._model = model
        self._restart_every = restart_every
        self._on_request = on_request
        self._on_event = on_event
        self._on_end = on_end
        self._tally = _Tally()
        self._prefix = RepeatedPrefix(count_characters)

    def play(self) -> PlayFigures:
        """Replay to the end; messages that the store already has are skipped."""
        memory = self._open()
        since_restart = 0
        try:
            for turn in _turns(self._recorded.messages):
                conversation = memory.conversation(self._thread_id)
                self._play_turn(conversation, turn)
                since_restart += len(turn.messages) + (turn.answer is not None)
                if self._restart_every and since_restart >= self._restart_every:
                    memory.close()
                    memory = self._open()
                    since_restart = 0
                    self._tally.restarts += 1
                    self._notify(turn, restarted=True)
            conversation = memory.conversation(self._thread_id)
            if self._recorded.label:
                conversation.label(self._recorded.label, recorded=True)
            if self._on_end is not None:
                self._on_end(conversation)
        finally:
            memory.close()
        return self._figures()

    def _play_turn(self, conversation: ConversationMemory, turn: "_Turn") -> None:
        fresh = self._append(conversation, turn.messages)
        if turn.answer is None:
            return
        if fresh or not conversation.knows(turn.answer):
            self._request(conversation, turn)
        self._append(conversation, [turn.answer])
        self._notify(turn)

    def _append(
        self, conversation: ConversationMemory, messages: Sequence[RecordedMessage]
    ) -> bool:
        if not messages:
            return False
        start = time.perf_counter()
        appended = conversation.append_recorded(messages)
        seconds, known = time.perf_counter() - start, sum(not m.new for m in appended.messages)
        self._tally.history += sum(m.tokens for m in appended.messages)
        self._tally.known += known
        if known == len(appended.messages):
            return False
        self._tally.append_times.append(seconds)
        return True

    def _request(self, conversation: ConversationMemory, turn: "_Turn") -> None:
        tally = self._tally
        start = time.perf_counter()
        try:
            context = conversation.context(
                tools=self._recorded.tools, model=self._model or turn.model
            )
        except ContextWindowExceeded as error:
            tally.refused += 1
            tally.limit = error.budget
            self._notify(turn, refused=str(error))
            return
        if not context.messages:
            return  # The recording begins with words of the model, so no request came before.
        tally.context_times.append(time.perf_counter() - start)
        tally.requests += 1
        tally.largest = max(tally.largest, context.tokens)
        tally.limit = context.budget.limit
        tally.over_budget += context.tokens > context.budget.limit
        tally.sent += context.tokens
        tally.whole += tally.history + context.budget.fixed
        compared = self._prefix.compare(context)
        tally.characters_sent += compared.size
        tally.characters_repeated += compared.repeated
        for result in context.compactions:
            tally.performed += result.outcome == "performed"
            tally.failed += result.outcome == "failed"
            tally.splits += result.outcome == "performed" and result.is_split_turn
            tally.rebuilds += result.outcome == "performed" and result.rebuilt
            tally.offloaded += result.results_offloaded
            tally.condensed += result.results_condensed
            self._notify(turn, compaction=result)
        if self._on_request is not None:
            self._on_request(turn.index, context)

    def _notify(
        self,
        turn: "_Turn",
        *,
        compaction: CompactionResult | None = None,
        refused: str | None = None,
        restarted: bool = False,
    ) -> None:
        if self._on_event is None:
            return
        self._on_event(
            Played(
                index=turn.index,
                total=len(self._recorded.messages),
                compaction=compaction,
                refused=refused,
                restarted=restarted,
            )
        )

    def _figures(self) -> PlayFigures:
        tally = self._tally
        return PlayFigures(
            thread_id=self._thread_id,
            messages=len(self._recorded.messages),
            messages_known=tally.known,
            requests=tally.requests,
            requests_refused=tally.refused,
            requests_over_budget=tally.over_budget,
            compactions=tally.performed,
            compactions_failed=tally.failed,
            splits=tally.splits,
            rebuilds=tally.rebuilds,
            results_offloaded=tally.offloaded,
            results_condensed=tally.condensed,
            restarts=tally.restarts,
            largest_request=tally.largest,
            budget=tally.limit,
            tokens_sent=tally.sent,
            tokens_without_compaction=tally.whole,
            unchanged_prefix_share=round(
                tally.characters_repeated / max(1, tally.characters_sent), 4
            ),
            append_p50_ms=_quantile(tally.append_times, 0.5),
            append_p99_ms=_quantile(tally.append_times, 0.99),
            context_p50_ms=_quantile(tally.context_times, 0.5),
            context_p99_ms=_quantile(tally.context_times, 0.99),
        )


@dataclass
class _Turn:
    index: int
    messages: list[RecordedMessage]
    answer: RecordedMessage | None

    @property
    def model(self) -> str | None:
        return self.answer.model if self.answer else None


def _turns(messages: Sequence[RecordedMessage]) -> Iterator[_Turn]:
    """Yield the messages between two requests, with the model's recorded answer."""
    waiting: list[RecordedMessage] = []
    for index, message in enumerate(messages):
        if message.message.role == "assistant":
            yield _Turn(index, waiting, message)
            waiting = []
        else:
            waiting.append(message)
    if waiting:
        yield _Turn(len(messages) - 1, waiting, None)


def _quantile(times: Sequence[float], share: float) -> float:
    if not times:
        return 0.0
    ordered = sorted(times)
    return round(1000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))], 3)
