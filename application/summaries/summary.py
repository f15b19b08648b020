"""The finished summary of a plan: text, ledger and leaf, measured and ready to be recorded."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.summariser import SourceMessage, Summariser, signs
from refold.application.rendering.context_blocks import (
    heading_text,
    ledger_line,
    ledger_overhead,
    ledger_text,
)
from refold.application.runtime.core import Core
from refold.application.runtime.plain_lines import conversation, plain_logger, raised
from refold.application.topics.summary_topics import KeptTopics, TopicGathering
from refold.domain.compaction.budget import SHORTEST_SUMMARY, Budget, ledger_target
from refold.domain.compaction.summary_rules import Summary
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.ledger.gathering import gather
from refold.domain.ledger.line import LedgerLine
from refold.domain.ledger.line_choice import Costs, fit, merged
from refold.domain.value import replace

from .asking import Asking
from .chunking import skimming
from .leaves import leaf_of
from .source import Source
from .writer import Task, Writer, Written, divided

logger = plain_logger(__name__)


class KeptLedger(NamedTuple):
    """The ledger of a compaction that is being made."""

    lines: tuple[LedgerLine, ...] = ()
    """The most important first."""
    shown: int = 0
    """How many of them are rendered."""
    tokens: int = 0
    """What the rendered ones cost, with their headings."""
    text: str = ""
    """As they will be rendered."""


class Gathering:
    """A ledger that is being gathered, message by message, oldest first."""

    def __init__(self, core: Core, thread_id: str, known: Sequence[LedgerLine] = ()) -> None:
        self._core = core
        self._thread_id = thread_id
        self._policy = core.settings.policy
        self._lines = tuple(known)

    @property
    def is_wanted(self) -> bool:
        """Whether the settings ask for a ledger at all."""
        return bool(self._policy.ledger_tokens and self._policy.ledger_share)

    def take(self, covered: Sequence[SourceMessage]) -> None:
        """Gather from these messages, calls together with their results."""
        if not self.is_wanted:
            return
        try:
            sources = ((s.position, s.message) for s in covered)
            self._lines = merged(self._lines, gather(sources, self._policy.failure_characters))
        except (
            Exception
        ) as error:  # A fault in recognising costs neither the compaction nor what is kept.
            logger.warning(
                "%s: nothing new for the ledger: %s", conversation(self._thread_id), raised(error)
            )

    def kept(self, room: int) -> KeptLedger:
        """The most important lines first, at most ``room`` tokens of them shown."""
        if not self.is_wanted:
            return KeptLedger(self._lines)
        count = self._core.counter.count_text
        costs = Costs(
            lambda line: count(ledger_line(line) + "\n"), lambda line: count(heading_text(line))
        )
        room_of_lines = room - ledger_overhead(count)
        fitted = fit(self._lines, room_of_lines, costs, failures=self._policy.failures_kept)
        shown = fitted.shown
        while shown:
            text = ledger_text(fitted.lines[:shown], ())
            tokens = count(text) + ledger_overhead(count)
            if tokens <= room:
                return KeptLedger(fitted.lines, shown, tokens, text)
            shown -= 1
        return KeptLedger(fitted.lines)


def kept_ledger(
    core: Core, before: LoadedConversation, covered: Sequence[SourceMessage], room: int
) -> KeptLedger:
    """The ledger after ``covered`` left the context, at most ``room`` tokens of it shown.

    Without room nothing is shown, and what is known is kept for the next time; so it is where the
    settings turn the ledger off.
    """
    return gathered(core, before, covered).kept(room)


def gathered(core: Core, before: LoadedConversation, covered: Sequence[SourceMessage]) -> Gathering:
    """All that the ledger knows after ``covered`` left the context."""
    summary = before.window.summary
    gathering = Gathering(core, before.thread_id, summary.ledger if summary else ())
    gathering.take(covered)
    return gathering


_TOPICAL = 1_000
_ROOM_FOR_TOPICS = 200
"""Tokens that the ledger leaves to the topics, where it takes room that a text left free."""
_MOST_CARRIED = 100
"""So many messages that were left out stay on record from summary to summary; leaves hold them all."""


async def summarised(
    core: Core,
    before: LoadedConversation,
    source: Source,
    plan: CompactionPlan,
    budget: Budget,
    summariser: Summariser,
    asking: Asking,
) -> Summary:
    """Ask for the text, part by part, and put beside it what code keeps.

    Raises:
        SummaryRefused, SummariserError: there is no text that is fit.
    """
    room = min(plan.ledger_tokens, plan.covered_tokens - budget.summary_overhead - SHORTEST_SUMMARY)
    gathering = await asyncio.to_thread(gathered, core, before, source.messages)
    ledger = await asyncio.to_thread(gathering.kept, max(0, room))
    split_at = None if signs(summariser) else plan.split_at
    task = Task(
        plan=plan,
        budget=budget,
        divided=divided(source.messages, source.before, split_at, source.leaves),
        focus=source.focus,
        ledger=ledger.text,
        ledger_tokens=ledger.tokens,
        named=source.before.omitted[-_MOST_CARRIED:] if source.before else (),
        skimming=_skimming(before.thread_id, source),
    )
    written = await Writer(core, before.thread_id, summariser, asking, task).write()
    ledger = await asyncio.to_thread(_roomier, core, gathering, ledger, plan, budget, written)
    leaf = await leaf_of(core, before.thread_id, source.messages, plan, task.skimming)
    made = await asyncio.to_thread(_finished, core, summariser.name, task, written, ledger)
    digest = await asyncio.to_thread(source.digest, written.omitted)
    made = replace(made, model_calls=asking.model_calls, source_digest=digest, leaf=leaf)
    topics = await asyncio.to_thread(_topics, core, before, source, plan, written, made, ledger)
    return replace(
        made, topics=topics.topics, topics_shown=topics.shown, tokens=made.tokens + topics.tokens
    )


def _roomier(
    core: Core,
    gathering: Gathering,
    ledger: KeptLedger,
    plan: CompactionPlan,
    budget: Budget,
    written: Written,
) -> KeptLedger:
    """The ledger with the room that the text left free, where not all of it could be shown."""
    text = core.counter.count_text(written.text)
    spare = min(plan.limit_tokens, plan.covered_tokens - budget.summary_overhead - 1) - text
    room = plan.ledger_tokens + spare - min(_ROOM_FOR_TOPICS, spare // 2)
    room = min(room, ledger_target(budget, core.settings.policy))
    if ledger.shown == len(ledger.lines) or room <= plan.ledger_tokens:
        return ledger
    return gathering.kept(room)


def _skimming(thread_id: str, source: Source) -> str:
    positions = [one.position for one in source.messages]
    first, last = min(positions, default=0), max(positions, default=0)
    return skimming(thread_id, first, last, source.skimmed)


def _topics(
    core: Core,
    before: LoadedConversation,
    source: Source,
    plan: CompactionPlan,
    written: Written,
    made: Summary,
    ledger: KeptLedger,
) -> KeptTopics:
    known = source.before.topics if source.before else ()
    gathering = TopicGathering(core, before.thread_id, known)
    # Of a history too long to be read closely, topics are those of its newest part.
    gathering.take(
        source.messages[-_TOPICAL:] if source.skimmed else source.messages, written.topics
    )
    # They stand where text and ledger leave room: the size that was aimed at is not theirs to exceed.
    left = plan.limit_tokens - made.text_tokens + plan.ledger_tokens - ledger.tokens
    room = min(left, plan.covered_tokens - made.tokens - 1)
    return gathering.kept(room, apart=made.block is not None, ask=made.topics_ask)


def _finished(
    core: Core, summariser: str, task: Task, written: Written, ledger: KeptLedger
) -> Summary:
    newest, tokens = written.newest, core.counter.count_text(written.text)
    divides = written.prefix is not None
    return Summary(
        summary_id=core.new_id(),
        text=written.text,
        text_tokens=tokens,
        tokens=tokens + task.budget.summary_overhead + ledger.tokens,
        complete=True,
        summariser=summariser,
        model=newest.model if newest else summariser,
        prompt_fingerprint=newest.prompt_fingerprint if newest else "",
        required=written.required,
        is_split_turn=divides,
        split_turn_prefix=written.prefix,
        split_at=task.divided.turn_from if divides else None,
        ledger=ledger.lines,
        ledger_shown=ledger.shown,
        omitted=written.omitted,
        given_in_part=written.given_in_part,
        block=written.block,
        topics_ask=task.budget.recalls,
    )
