"""Writing the text of a summary: part by part and chunk by chunk, within one limit."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from refold.application.core import Core
from refold.application.errors import SummariserError
from refold.application.ports import (
    SourceMessage,
    Summariser,
    SummaryDraft,
    SummaryRequest,
)
from refold.domain.budget import Budget
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.events import OmittedMessage
from refold.domain.judging import judge_length, judge_text
from refold.domain.messages import Block, Message

from .asking import Asking
from .capacity import Capacity, Portions, capacity_of, portioned
from .chunking import Chunk
from .dividing import Divided, Part, share_of
from .joining import DIVIDER, TURN_HEADING, joined
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


class Writer:
    """Writes one summary with one summariser."""

    def __init__(
        self, core: Core, thread_id: str, summariser: Summariser, asking: Asking, task: Task
    ) -> None:
        self._core = core
        self._count = core.counter.count_text
        self._policy = core.settings.policy
        self._thread_id = thread_id
        self._capacity = capacity_of(summariser)
        self._has_shrunk = False
        self._asking = asking
        self._task = task
        beside = task.budget.summary_overhead + task.ledger_tokens
        self._beside = beside
        self._limit = max(1, min(task.plan.limit_tokens, task.plan.covered_tokens - beside - 1))
        self._omitted: tuple[OmittedMessage, ...] = task.named
        self._drafts: list[SummaryDraft] = []

    async def write(self) -> Written:
        """Both parts, joined, with what was left out named at the end.

        Raises:
            SummaryRefused, SummariserError: there is no text that is fit.
        """
        history, turn, _ = self._task.divided
        if turn.is_empty:
            text, prefix = await self._part(history, 1.0), None
        else:
            share = 0.0 if history.is_empty else self._share(history, turn)
            first = "" if history.is_empty else await self._part(history, share)
            prefix = await self._part(turn, 1.0, spent=first)
            text = joined(first, prefix)
        whole = (text + self._naming()).strip() if self._omitted else text
        newest = self._drafts[-1] if self._drafts else None
        block = newest.block if newest and newest.text == whole else None
        required = tuple(r for draft in self._drafts for r in draft.required)
        return Written(whole, prefix, self._omitted, newest, required, block)
