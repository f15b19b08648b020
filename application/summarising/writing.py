"""Writing the text of a summary: part by part and chunk by chunk, within one limit."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from refold.application.core import Core
from refold.application.errors import SummariserError
from refold.application.ports import Summariser, SummaryDraft, SummaryRequest
from refold.domain.budget import Budget
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.events import OmittedMessage
from refold.domain.judging import judge_length, judge_text
from refold.domain.messages import Block

from .asking import Asking
from .capacity import capacity_of, portioned
from .chunking import Chunk, Weighed, chunked, rounds_of
from .dividing import Divided, Part, share_of
from .joining import joined
from .leaves import text_of_leaves
from .leaving_out import naming

_NAMING_SHARE = 3
"""Naming what was left out takes at most a third of a text."""
_LEAVES_ROOM = 4
"""Leaves may be so many times longer than the summary made of them, for a summariser whose window
is not known."""


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
        self._omitted = task.named
        self._accepted: list[SummaryDraft] = []
        self._topics: list[str] = []
        self._sizes: dict[str, int] = {}
        """Of what each part is made from."""

    async def write(self) -> Written:
        """Both parts, joined, with what was left out named at the end.

        Raises:
            SummaryRefused, SummariserError: there is no text that is fit.
        """
        history, turn = self._task.divided.history, self._task.divided.turn
        if turn.is_empty:
            text, prefix = await self._part(history, self._room), None
        else:
            first = ""
            for part in (history, turn):
                self._sizes[part.kind] = await asyncio.to_thread(self._source, part)
            if not history.is_empty:
                first = await self._part(history, lambda: self._share(history, turn))
            before = joined(first, " ")
            prefix = await self._part(
                turn, lambda: max(1, self._room() - self._count(before)), first
            )
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
            required=tuple(part for draft in self._accepted for part in draft.required),
            block=newest.block if newest and newest.text == whole else None,
            topics=tuple(self._topics),
        )

    async def _part(self, part: Part, room: Callable[[], int], beside: str = "") -> str:
        if not part.messages and part.previous and self._count(part.previous) <= room():
            return part.previous  # Nothing is new: what was recorded stays word for word.
        text, block = await self._carried(part), part.previous_block
        chunks, omitted = await self._portions(part, part.messages, text, room())
        if not chunks and self._count(text) <= room():
            return text
        chunks = chunks or ((),)
        draft: SummaryDraft | None = None
        while chunks:
            request = self._request(part, chunks[0], text, room())
            request = request.replaced(previous_block=block, omitted=omitted)
            try:
                draft = await self._asking.ask(request, self._judging(request, beside))
            except SummariserError as error:
                if error.reason != "too_large" or self._has_shrunk:
                    raise
                self._shrink()
                rest = tuple(source for chunk in chunks for source in chunk)
                chunks, more = await self._portions(part, rest, text, room())
                omitted += more
                continue
            chunks, text, block = chunks[1:], draft.text, draft.block
            self._topics += draft.topics
        if draft is not None:
            self._accepted.append(draft)
        return text

    async def _carried(self, part: Part) -> str:
        if not part.leaves:
            return part.previous
        room = _LEAVES_ROOM * self._task.plan.limit_tokens
        if self._capacity is not None:
            policy = self._core.settings.policy
            room = int(self._capacity.window / policy.chunk_slack * policy.chunk_share)
        return await text_of_leaves(self._core, self._thread_id, part.leaves, room)

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

    def _judging(self, request: SummaryRequest, beside: str) -> Callable[[SummaryDraft], None]:
        def judge(draft: SummaryDraft) -> None:
            judge_text(draft.text, complete=draft.complete, required=draft.required)
            tokens = self._count(draft.text)
            rendered = tokens + self._beside + self._count(beside)
            covered = self._task.plan.covered_tokens
            judge_length(tokens, request.limit_tokens, rendered, covered)

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
        ending = self._naming() + self._task.skimming
        return max(1, self._limit - self._count(ending))

    def _naming(self) -> str:
        return naming(self._thread_id, self._omitted, self._limit // _NAMING_SHARE, self._count)
