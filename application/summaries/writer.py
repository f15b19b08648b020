"""Write the text of a summary by parts and chunks, within one limit."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from refold.application.api.blocking import in_thread
from refold.application.errors import SummariserError
from refold.application.ports.summariser import (
    SourceMessage,
    Summariser,
    SummaryDraft,
    SummaryRequest,
)
from refold.application.runtime.core import Core
from refold.application.runtime.observers import notify_chunk
from refold.domain.compaction.budget import SHORTEST_SUMMARY, Budget
from refold.domain.compaction.summary_rules import judge_length, judge_text
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.events import CompactionPerformed, GivenInPart, LeafSummary, OmittedMessage
from refold.domain.facts.reading import MessagesRead
from refold.domain.messages import Block
from refold.domain.quoted_text import remove_headings
from refold.domain.value import build_in_order, replace

from .chunking import (
    Chunk,
    Weighed,
    capacity_of,
    carried_room,
    fitting_length,
    omission_note,
    rounds_of,
    split_into_chunks,
    split_messages,
)
from .leaves import (
    history_text,
    join_leaves,
    join_parts,
    shorten_text,
    text_of_leaves,
    whole_text,
)
from .summariser_calls import SummariserCalls


class Part(NamedTuple):
    """The source of one part of a summary."""

    kind: Literal["history", "turn_prefix"]
    messages: tuple[SourceMessage, ...] = ()
    previous: str = ""
    """The recorded text that this part continues."""
    previous_block: Block | None = None
    leaves: tuple[LeafSummary, ...] = ()
    """Stored texts to rebuild this part from, used instead of ``previous``."""

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to write about."""
        return not (self.messages or self.previous or self.leaves)


class Divided(NamedTuple):
    """The parts about the history and the split turn; either may be empty."""

    history: Part
    turn: Part
    turn_from: int | None
    """First position of the split turn, or None."""


def divide(
    messages: Sequence[SourceMessage],
    before: CompactionPerformed | None,
    split_at: int | None,
    leaves: Sequence[LeafSummary] = (),
) -> Divided:
    """Divide the source at ``split_at``; leaves replace the previous text.

    If the same turn was split before and continues, its part continues the text about it. If that
    turn ended, the history part continues the whole text.
    """
    if split_at is None:
        block = before.block if before and not leaves else None
        whole = whole_text(before) if before else ""
        history = Part("history", tuple(messages), whole, block, tuple(leaves))
        return Divided(history, Part("turn_prefix"), None)
    turn_from, turn_before = split_at, ""
    history_before = whole_text(before) if before else ""
    if before is not None and before.is_split_turn and split_at <= before.coverage.stop:
        turn_from = split_at if before.split_at is None else min(split_at, before.split_at)
        history_before, turn_before = history_text(before), before.split_turn_prefix or ""
    history = Part(
        "history",
        tuple(m for m in messages if m.position < turn_from),
        history_before,
        leaves=tuple(leaf for leaf in leaves if leaf.start < turn_from),
    )
    turn = Part(
        "turn_prefix",
        tuple(m for m in messages if m.position >= turn_from),
        turn_before,
        leaves=tuple(leaf for leaf in leaves if leaf.stop > turn_from),
    )
    return Divided(history, turn, turn_from)


def share_of(size: int, other: int, room: int) -> int:
    """Return how much of ``room`` a part of ``size`` gets next to another part of size ``other``.

    The share is proportional to the sizes. Each part gets at least the length of the shortest summary, or
    half the room if that is less.
    """
    least = min(SHORTEST_SUMMARY, room // 2)
    wanted = room * size // max(1, size + other)
    return max(least, min(room - least, wanted))


CODE_SHARE = 0.5
"""Share of its length to which a text of code is shortened at most, if ledger and index can use the rest.

On recorded sessions, with a budget of 10 %, ledger and index had the answers to more questions in the same room.
"""
_NAMING_SHARE = 3
"""Divisor of the limit of a summary. The note about omitted messages may use the quotient."""


class Task(NamedTuple):
    """A summary to write, and its limits."""

    plan: CompactionPlan
    budget: Budget
    divided: Divided
    focus: str | None
    ledger: str
    """Text of the ledger, which the summariser may rely on."""
    ledger_tokens: int
    named: tuple[OmittedMessage, ...]
    """Messages that earlier summaries omitted, which this one must name as well."""
    wanted_tokens: int = 0
    """Tokens that ledger and index could use beyond their room."""
    skimming: str = ""
    """Note about skimmed messages at the end of the text."""
    read: MessagesRead | None = None
    """Facts and calls of the messages, or None if they were not read."""


class Written(NamedTuple):
    """A text whose parts were all accepted."""

    text: str
    prefix: str | None
    omitted: tuple[OmittedMessage, ...]
    """Messages omitted by this summary and earlier ones."""
    newest: SummaryDraft | None
    """The last answer, or None if recorded texts were enough."""
    required: tuple[str, ...]
    block: Block | None
    topics: tuple[str, ...]
    """Topics that a model named."""
    given_in_part: tuple[GivenInPart, ...] = ()
    """Messages that no answer received completely."""


class Writer:
    """Writes one summary with one summariser."""

    def __init__(
        self, core: Core, thread_id: str, summariser: Summariser, calls: SummariserCalls, task: Task
    ) -> None:
        self._core = core
        self._count = core.counter.count_text
        self._thread_id = thread_id
        self._capacity = capacity_of(summariser)
        self._has_shrunk = False
        self._calls = calls
        self._task = task
        self._read = task.read
        if task.read is not None and summariser is not core.fallback:
            # Other summarisers than the embedded one get a complete list of facts.
            self._read = task.read.with_named_facts()
        self._overhead = task.budget.summary_overhead + task.ledger_tokens
        most = task.plan.covered_tokens - self._overhead - 1
        self._limit = max(1, min(task.plan.limit_tokens, most))
        if calls.is_by_code:
            self._limit -= min(int(self._limit * (1 - CODE_SHARE)), task.wanted_tokens)
        if self._capacity is not None:
            bare = self._request(task.divided.history, (), "", self._limit)
            self._limit = fitting_length(bare, self._capacity, core.settings.policy)
        self._longest = max(self._limit, min(task.plan.accepted_tokens, most))
        self._omitted = task.named
        self._accepted: list[SummaryDraft] = []
        self._topics: list[str] = []
        self._given_in_part: list[GivenInPart] = []
        self._sizes: dict[str, int] = {}
        """Tokens of the source of each part."""

    async def write(self) -> Written:
        """Write and join both parts, and add the note about omitted messages.

        Raises:
            SummaryRefused, SummariserError: there is no acceptable text.
        """
        history, turn = self._task.divided.history, self._task.divided.turn
        if turn.is_empty:
            text, prefix = remove_headings(await self._part(history, self._room)), None
        else:
            first = ""
            for part in (history, turn):
                self._sizes[part.kind] = await in_thread(self._source, part)
            if not history.is_empty:
                apart = max(0, self._room() - self._share(history, turn))
                written = self._part(history, lambda: self._share(history, turn), apart=apart)
                first = remove_headings(await written)
            before = join_parts(first, " ")
            prefix = remove_headings(
                await self._part(turn, lambda: self._turn_room(turn, before), first)
            )
            text = join_parts(first, prefix)
        return self._build(text, prefix)

    def _build(self, text: str, prefix: str | None) -> Written:
        ending = self._omission_note() + self._task.skimming
        whole = (text + ending).strip() if ending else text
        newest = self._accepted[-1] if self._accepted else None
        return Written(
            text=whole,
            prefix=prefix or None,
            omitted=self._omitted,
            newest=newest,
            required=tuple(remove_headings(r) for draft in self._accepted for r in draft.required),
            block=newest.block if newest and newest.text == whole else None,
            topics=tuple(self._topics),
            given_in_part=tuple(self._given_in_part),
        )

    async def _part(
        self, part: Part, room: Callable[[], int], before: str = "", apart: int = 0
    ) -> str:
        """Write one part after the text ``before``; ``apart`` tokens are reserved for the next part."""
        if not part.messages and part.previous and self._count(part.previous) <= room():
            return part.previous  # Nothing is new, so the recorded text stays word for word.
        text, block = await self._carry(part), part.previous_block
        chunks, omitted = await self._portions(part, part.messages, text, room())
        if not chunks and self._count(text) <= room():
            return text
        chunks = chunks or ((),)
        done = 0
        draft: SummaryDraft | None = None
        while chunks:
            request = self._request(part, chunks[0], text, room())
            request = replace(request, previous_block=block, omitted=omitted)
            # A text carried into another call must fit there; only the last answer may be too long.
            longest = self._longest - apart if len(chunks) == 1 else 0
            try:
                draft = await self._calls.ask(request, self._make_judge(request, before, longest))
            except SummariserError as error:
                if error.reason != "too_large" or self._has_shrunk:
                    raise
                self._shrink()
                rest = tuple(source for chunk in chunks for source in chunk)
                chunks, more = await self._portions(part, rest, text, room())
                omitted += more
                continue
            chunks, text, block = chunks[1:], draft.text, draft.block
            done += 1
            if done + len(chunks) > 1:
                notify_chunk(self._core, self._thread_id, done, done + len(chunks))
            self._topics += draft.topics
            self._given_in_part += draft.given_in_part
        if draft is not None:
            self._accepted.append(draft)
        return text

    async def _carry(self, part: Part) -> str:
        if not part.leaves:
            return await self._shorten(part)
        if self._capacity is None:
            return join_leaves(part.leaves)
        policy = self._core.settings.policy
        room = int(self._capacity.window / policy.chunk_slack * policy.chunk_share)
        return await text_of_leaves(self._core, self._thread_id, part.leaves, room)

    async def _shorten(self, part: Part) -> str:
        """Return the previous text, shortened without a model if the window has no room for it."""
        if self._capacity is None or not part.previous:
            return part.previous
        bare = self._request(part, (), "", self._limit)
        room = carried_room(bare, self._capacity, self._core.settings.policy)
        if self._count(part.previous) <= max(room, SHORTEST_SUMMARY):
            return part.previous
        room = max(room, SHORTEST_SUMMARY)
        return await shorten_text(self._core, self._thread_id, part.previous, room)

    async def _portions(
        self, part: Part, messages: Chunk, text: str, room: int
    ) -> tuple[tuple[Chunk, ...], tuple[OmittedMessage, ...]]:
        if self._capacity is None and not self._has_shrunk:
            return (messages,) if messages else (), ()
        if self._capacity is None:
            return await in_thread(self._guess_chunks, messages), ()
        request = self._request(part, messages, text, room)
        policy = self._core.settings.policy
        chunks, omitted = await in_thread(
            split_messages, self._thread_id, request, self._capacity, policy
        )
        self._calls.check_calls(len(chunks))
        self._omitted += omitted
        return chunks, omitted

    def _request(self, part: Part, chunk: Chunk, text: str, room: int) -> SummaryRequest:
        plan = self._task.plan
        return build_in_order(
            SummaryRequest,
            messages=chunk,
            previous=text or None,
            focus=self._task.focus,
            target_tokens=max(1, plan.target_tokens * room // plan.limit_tokens),
            limit_tokens=room,
            part=part.kind,
            ledger=self._task.ledger,
            read=self._read,
        )

    def _make_judge(
        self, request: SummaryRequest, before: str, longest: int
    ) -> Callable[[SummaryDraft], None]:
        def judge(draft: SummaryDraft) -> None:
            by_code = self._calls.is_by_code
            judge_text(
                draft.text, complete=draft.complete, required=draft.required, by_code=by_code
            )
            tokens = self._count(draft.text)
            rendered = tokens + self._overhead + self._count(before)
            covered = self._task.plan.covered_tokens
            # A complete text that is too long has been paid for, so it is accepted if there is
            # room.
            left = longest - self._count(before) - self._ending()
            judge_length(tokens, max(request.limit_tokens, left), rendered, covered)

        return judge

    def _shrink(self) -> None:
        self._has_shrunk = True
        if self._capacity is not None:
            self._capacity = self._capacity._replace(window=self._capacity.window // 2)

    def _guess_chunks(self, messages: Chunk) -> tuple[Chunk, ...]:
        """Return the messages as several chunks, because one was too large for the unknown window."""
        room = int(self._size(messages) * self._core.settings.policy.chunk_share)
        rounds = [[Weighed(m, self._size((m,))) for m in one] for one in rounds_of(messages)]
        return tuple(split_into_chunks(rounds, room))

    def _size(self, messages: Chunk) -> int:
        return sum(self._core.counter.count_message(source.message).total for source in messages)

    def _share(self, history: Part, turn: Part) -> int:
        """Return the room for the history part, at least half if it has no new messages."""
        room = max(2, self._room() - self._count(join_parts("", " ")))
        share = share_of(self._sizes[history.kind], self._sizes[turn.kind], room)
        return share if history.messages else max(share, room // 2)

    def _source(self, part: Part) -> int:
        leaves = sum(leaf.tokens for leaf in part.leaves)
        return self._size(part.messages) + (leaves or self._count(part.previous))

    def _room(self) -> int:
        return max(1, self._limit - self._ending())

    def _ending(self) -> int:
        return self._count(self._omission_note() + self._task.skimming)

    def _turn_room(self, turn: Part, before: str) -> int:
        """Return the room for the turn part after a text that may be longer than requested."""
        left = self._room() - self._count(before)
        share = share_of(self._source(turn), self._count(before), self._limit)
        return max(1, left, min(share, self._longest - self._count(before) - self._ending()))

    def _omission_note(self) -> str:
        return omission_note(
            self._thread_id, self._omitted, self._limit // _NAMING_SHARE, self._count
        )
