"""Write the text of a summary: part by part and chunk by chunk, within one limit."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

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
from refold.domain.messages import Block
from refold.domain.quoted_text import broken_up
from refold.domain.value import replace

from .chunking import (
    Chunk,
    Weighed,
    capacity_of,
    carried_room,
    chunked,
    fitting_length,
    naming,
    portioned,
    rounds_of,
)
from .leaves import history_text, joined, text_of_leaves, text_within, whole_text
from .summariser_calls import Asking


class Part(NamedTuple):
    """What one text is made from."""

    kind: Literal["history", "turn_prefix"]
    messages: tuple[SourceMessage, ...] = ()
    previous: str = ""
    """The recorded text that it carries on."""
    previous_block: Block | None = None
    leaves: tuple[LeafSummary, ...] = ()
    """What it is built from in place of ``previous``, where it is built anew."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that a text could be made from."""
        return not (self.messages or self.previous or self.leaves)


class Divided(NamedTuple):
    """History and turn, either of which may be empty."""

    history: Part
    turn: Part
    turn_from: int | None
    """Where the divided turn begins."""


def divided(
    messages: Sequence[SourceMessage],
    before: CompactionPerformed | None,
    split_at: int | None,
    leaves: Sequence[LeafSummary] = (),
) -> Divided:
    """Divide at ``split_at``. With leaves, these take the place of the text ``before``.

    Where the same turn was divided before and goes on, its part carries on the text about it; where
    that turn has ended, history carries on the whole text.
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
    """What a part of ``size`` gets of ``room`` beside another: in proportion, and no less than the
    shortest summary, or half of what there is.
    """
    least = min(SHORTEST_SUMMARY, room // 2)
    wanted = room * size // max(1, size + other)
    return max(least, min(room - least, wanted))


_NAMING_SHARE = 3
"""Naming what was left out takes at most a third of a text."""
_LEAVES_ROOM = 8
"""Texts from before may be so many times longer than the summary made of them; less in a small window."""


class Task(NamedTuple):
    """What is to be written, and within which bounds."""

    plan: CompactionPlan
    budget: Budget
    divided: Divided
    focus: str | None
    ledger: str
    """The ledger's text, for the summariser to rely on."""
    ledger_tokens: int
    named: tuple[OmittedMessage, ...]
    """What earlier summaries left out, and this one must name as well."""
    skimming: str = ""
    """What the text says at its end of messages that were only looked through."""


class Written(NamedTuple):
    """A text that was accepted part by part."""

    text: str
    prefix: str | None
    omitted: tuple[OmittedMessage, ...]
    """All that was left out, by this summary and those before it."""
    newest: SummaryDraft | None
    """The last answer; None where recorded texts were enough."""
    required: tuple[str, ...]
    block: Block | None
    topics: tuple[str, ...]
    """What a model says that it is about."""
    given_in_part: tuple[GivenInPart, ...] = ()
    """What no answer was made from as a whole."""


class Writer:
    """Writes one summary with one summariser."""

    def __init__(
        self, core: Core, thread_id: str, summariser: Summariser, asking: Asking, task: Task
    ) -> None:
        self._core = core
        self._count = core.counter.count_text
        self._thread_id = thread_id
        self._capacity = capacity_of(summariser)
        self._has_shrunk = False
        self._asking = asking
        self._task = task
        self._beside = task.budget.summary_overhead + task.ledger_tokens
        most = task.plan.covered_tokens - self._beside - 1
        self._limit = max(1, min(task.plan.limit_tokens, most))
        if self._capacity is not None:
            bare = self._request(task.divided.history, (), "", self._limit)
            self._limit = fitting_length(bare, self._capacity, core.settings.policy)
        self._longest = max(self._limit, min(task.plan.accepted_tokens, most))
        self._omitted = task.named
        self._accepted: list[SummaryDraft] = []
        self._topics: list[str] = []
        self._given_in_part: list[GivenInPart] = []
        self._sizes: dict[str, int] = {}
        """Of what each part is made from."""

    async def write(self) -> Written:
        """Both parts, joined, with what was left out named at the end.

        Raises:
            SummaryRefused, SummariserError: there is no text that is fit.
        """
        history, turn = self._task.divided.history, self._task.divided.turn
        if turn.is_empty:
            text, prefix = broken_up(await self._part(history, self._room)), None
        else:
            first = ""
            for part in (history, turn):
                self._sizes[part.kind] = await asyncio.to_thread(self._source, part)
            if not history.is_empty:
                apart = max(0, self._room() - self._share(history, turn))
                written = self._part(history, lambda: self._share(history, turn), apart=apart)
                first = broken_up(await written)
            before = joined(first, " ")
            prefix = broken_up(await self._part(turn, lambda: self._turn_room(turn, before), first))
            text = joined(first, prefix)
        return self._written(text, prefix)

    def _written(self, text: str, prefix: str | None) -> Written:
        ending = self._naming() + self._task.skimming
        whole = (text + ending).strip() if ending else text
        newest = self._accepted[-1] if self._accepted else None
        return Written(
            text=whole,
            prefix=prefix or None,
            omitted=self._omitted,
            newest=newest,
            required=tuple(broken_up(r) for draft in self._accepted for r in draft.required),
            block=newest.block if newest and newest.text == whole else None,
            topics=tuple(self._topics),
            given_in_part=tuple(self._given_in_part),
        )

    async def _part(
        self, part: Part, room: Callable[[], int], beside: str = "", apart: int = 0
    ) -> str:
        """Write one part beside another; ``apart``: tokens that are set apart for the one to come."""
        if not part.messages and part.previous and self._count(part.previous) <= room():
            return part.previous  # Nothing is new: what was recorded stays word for word.
        text, block = await self._carried(part), part.previous_block
        chunks, omitted = await self._portions(part, part.messages, text, room())
        if not chunks and self._count(text) <= room():
            return text
        chunks = chunks or ((),)
        done = 0
        draft: SummaryDraft | None = None
        while chunks:
            request = self._request(part, chunks[0], text, room())
            request = replace(request, previous_block=block, omitted=omitted)
            # What is carried into another call must fit there; the last answer may be longer than asked.
            longest = self._longest - apart if len(chunks) == 1 else 0
            try:
                draft = await self._asking.ask(request, self._judging(request, beside, longest))
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

    async def _carried(self, part: Part) -> str:
        if not part.leaves:
            return await self._shortened(part)
        room = _LEAVES_ROOM * self._task.plan.limit_tokens
        if self._capacity is not None:
            policy = self._core.settings.policy
            own = int(self._capacity.window / policy.chunk_slack * policy.chunk_share)
            room = min(room, own)
        return await text_of_leaves(self._core, self._thread_id, part.leaves, room)

    async def _shortened(self, part: Part) -> str:
        """Return the text before, in a window that has no room for it shortened by code."""
        if self._capacity is None or not part.previous:
            return part.previous
        bare = self._request(part, (), "", self._limit)
        room = carried_room(bare, self._capacity, self._core.settings.policy)
        if self._count(part.previous) <= max(room, SHORTEST_SUMMARY):
            return part.previous
        room = max(room, SHORTEST_SUMMARY)
        return await text_within(self._core, self._thread_id, part.previous, room)

    async def _portions(
        self, part: Part, messages: Chunk, text: str, room: int
    ) -> tuple[tuple[Chunk, ...], tuple[OmittedMessage, ...]]:
        if self._capacity is None:
            return await asyncio.to_thread(self._by_guess, messages), ()
        request = self._request(part, messages, text, room)
        policy = self._core.settings.policy
        chunks, omitted = await asyncio.to_thread(
            portioned, self._thread_id, request, self._capacity, policy
        )
        self._asking.needs(len(chunks))
        self._omitted += omitted
        return chunks, omitted

    def _request(self, part: Part, chunk: Chunk, text: str, room: int) -> SummaryRequest:
        plan = self._task.plan
        return SummaryRequest(
            messages=chunk,
            previous=text or None,
            focus=self._task.focus,
            target_tokens=max(1, plan.target_tokens * room // plan.limit_tokens),
            limit_tokens=room,
            part=part.kind,
            ledger=self._task.ledger,
        )

    def _judging(
        self, request: SummaryRequest, beside: str, longest: int
    ) -> Callable[[SummaryDraft], None]:
        def judge(draft: SummaryDraft) -> None:
            by_code = self._asking.is_by_code
            judge_text(
                draft.text, complete=draft.complete, required=draft.required, by_code=by_code
            )
            tokens = self._count(draft.text)
            rendered = tokens + self._beside + self._count(beside)
            covered = self._task.plan.covered_tokens
            # A complete text that is longer than asked is paid for: it is taken where there is room.
            left = longest - self._count(beside) - self._ending()
            judge_length(tokens, max(request.limit_tokens, left), rendered, covered)

        return judge

    def _shrink(self) -> None:
        self._has_shrunk = True
        if self._capacity is not None:
            self._capacity = self._capacity._replace(window=self._capacity.window // 2)

    def _by_guess(self, messages: Chunk) -> tuple[Chunk, ...]:
        """All at once for a window that is not known; a share of it where that was too large."""
        if not self._has_shrunk:
            return (messages,) if messages else ()
        room = int(self._size(messages) * self._core.settings.policy.chunk_share)
        rounds = [[Weighed(m, self._size((m,))) for m in one] for one in rounds_of(messages)]
        return tuple(chunked(rounds, room))

    def _size(self, messages: Chunk) -> int:
        return sum(self._core.counter.count_message(source.message).total for source in messages)

    def _share(self, history: Part, turn: Part) -> int:
        """What the history may take beside the turn; half of it, if nothing about it is new."""
        room = max(2, self._room() - self._count(joined("", " ")))
        share = share_of(self._sizes[history.kind], self._sizes[turn.kind], room)
        return share if history.messages else max(share, room // 2)

    def _source(self, part: Part) -> int:
        leaves = sum(leaf.tokens for leaf in part.leaves)
        return self._size(part.messages) + (leaves or self._count(part.previous))

    def _room(self) -> int:
        return max(1, self._limit - self._ending())

    def _ending(self) -> int:
        return self._count(self._naming() + self._task.skimming)

    def _turn_room(self, turn: Part, before: str) -> int:
        """Return what a turn's part may take behind a text, which may be longer than it was asked to be."""
        left = self._room() - self._count(before)
        share = share_of(self._source(turn), self._count(before), self._limit)
        return max(1, left, min(share, self._longest - self._count(before) - self._ending()))

    def _naming(self) -> str:
        return naming(self._thread_id, self._omitted, self._limit // _NAMING_SHARE, self._count)
