"""Make a summary: its source, the calls that write it, and its checks."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError
from refold.application.ports.summariser import SourceMessage, Summariser, is_by_code, signs
from refold.application.projections.entries import Entries, Entry, LongEntries, Words
from refold.application.rendering.render import (
    heading_text,
    ledger_line,
    ledger_overhead,
    ledger_text,
)
from refold.application.runtime.core import Core
from refold.application.runtime.plain_lines import conversation, plain_logger, raised
from refold.application.topics.summary_topics import KeptTopics, TopicGathering
from refold.domain.compaction.budget import SHORTEST_SUMMARY, Budget, ledger_target
from refold.domain.compaction.summary_rules import Summary, must_rebuild
from refold.domain.conversation import Coverage
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.events import CompactionPerformed, LeafSummary, OmittedMessage
from refold.domain.ledger.cues import OTHERS, PROMISES
from refold.domain.ledger.gathering import gather
from refold.domain.ledger.line import LedgerLine
from refold.domain.ledger.line_choice import Costs, choose_lines, merge_ledger
from refold.domain.value import replace

from .chunking import skimming
from .leaves import OFF, earlier_texts, is_written, leaf_of, names_of_code
from .summariser_calls import Asking
from .writer import Task, Writer, Written, divided

FIRST = 64
"""So many of the oldest messages are read: what a conversation is about stands there."""
TELLING = 1_024
"""So many messages are read between the oldest and the newest: those that promise most."""
NEWEST = 2_048
"""So many of the newest messages are read."""


WORDS = Words(
    {word.encode(): promise for word, promise in PROMISES.items()},
    tuple((word.encode(), promise) for word, promise in OTHERS),
)


class Selected(NamedTuple):
    """The covered messages that are read closely."""

    messages: tuple[SourceMessage, ...]
    skimmed: int = 0
    """How many more are covered, which were only looked through."""
    digest: str = ""
    """Names all of those that were looked through; empty where none were."""


def selected(entries: Entries, coverage: Coverage) -> Selected:
    """Choose what is read closely of the messages that a plan covers."""
    if not isinstance(entries, LongEntries):
        return Selected(_sources(iter(entries), coverage))
    run, end = entries.stored, _newest_from(entries, coverage)
    begin = min(run.start + FIRST, end)
    looked = run.log.look_through(begin, end, WORDS, TELLING)
    read = [*entries.kept, *entries.between(run.start, begin)]
    for position in sorted(p for p in looked.telling if p < run.stop):
        read += run.read(position, position + 1)
    read += [e for e in entries.newest if e.position >= end or e.position in looked.telling]
    messages = _sources(iter(read), coverage)
    return Selected(messages, _covered(entries, coverage) - len(messages), looked.digest)


def _newest_from(entries: LongEntries, coverage: Coverage) -> int:
    """From which position on all covered messages are read."""
    covered = [e.position for e in entries.newest if e.position < coverage.stop]
    return covered[-NEWEST] if len(covered) >= NEWEST else entries.stored.stop


def _covered(entries: LongEntries, coverage: Coverage) -> int:
    """How many of the entries are covered."""
    run = entries.stored
    held = sum(1 for entry in entries.held if coverage.covers(entry.position))
    kept = [p for p in coverage.exclusions if run.start <= p < run.stop]
    before = max(0, min(run.stop, coverage.start) - run.start)
    return held + run.count - len(kept) - before


def _sources(entries: Iterator[Entry], coverage: Coverage) -> tuple[SourceMessage, ...]:
    return tuple(
        SourceMessage(position=entry.position, message=entry.message)
        for entry in entries
        if coverage.covers(entry.position)
    )


logger = plain_logger(__name__)


class Source(NamedTuple):
    """What a summary stands for."""

    messages: tuple[SourceMessage, ...] = ()
    """What no summary covered before, whole: nothing of it is shortened (requirement D4). Of a history
    too long for that, what is read closely."""
    before: CompactionPerformed | None = None
    leaves: tuple[LeafSummary, ...] = ()
    """What the summary is built from in place of the one before, where it is built anew: texts that a
    model wrote before, and extracts by code."""
    focus: str | None = None
    skimmed: int = 0
    """How many more messages were only looked through."""
    looked: str = ""
    """Names exactly those that were looked through."""

    def digest(self, omitted: Sequence[OmittedMessage] = ()) -> str:
        """Names exactly what is handed to a summariser, but for what was left out."""
        gone = {one.position for one in omitted}
        carried = [self.before.text] if self.before else []
        texts = [leaf.text for leaf in self.leaves] or carried
        sent = [[m.position, m.message.content] for m in self.messages if m.position not in gone]
        named = sorted(gone.intersection(m.position for m in self.messages))
        looked = [self.looked] if self.looked else []
        data = json.dumps([texts, self.focus, sent, named, *looked])
        return sha256(data.encode("ascii")).hexdigest()


def source_of(
    core: Core,
    loaded: LoadedConversation,
    plan: CompactionPlan,
    focus: str | None,
    summariser: Summariser,
) -> Source:
    """The source of a plan that was made on this very conversation."""
    read = selected(loaded.window.entries, plan.coverage)
    return Source(
        messages=read.messages,
        before=loaded.window.summary,
        leaves=_leaves(core, loaded, plan, summariser),
        focus=focus,
        skimmed=read.skimmed,
        looked=read.digest,
    )


def _leaves(
    core: Core, loaded: LoadedConversation, plan: CompactionPlan, summariser: Summariser
) -> tuple[LeafSummary, ...]:
    before = loaded.window.summary
    if before is not None and before.block is not None and signs(summariser):
        return ()  # A signed block is carried on by its provider: texts in its place would lose it.
    if summariser.name == OFF:
        return ()  # Its note stands for all; extracts would be a summary.
    must = must_rebuild(loaded.state.summary, core.settings.policy, plan.target_tokens)
    by_code = before is not None and before.summariser in names_of_code(core)
    stepped_in = by_code and not is_by_code(summariser)
    if not must and not stepped_in:
        return ()
    try:
        texts = earlier_texts(core, loaded)
        # Where code stepped in for a model, what the model wrote before is carried on by the next one.
        return texts if must or any(map(is_written, texts)) else ()
    except LogError as error:
        logger.warning("%s: the summary is carried on: %s", conversation(loaded.thread_id), error)
        return ()


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
            self._lines = merge_ledger(
                self._lines, gather(sources, self._policy.failure_characters)
            )
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
        fitted = choose_lines(
            self._lines, room_of_lines, costs, failures=self._policy.failures_kept
        )
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
