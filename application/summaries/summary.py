"""Make a summary: collect its source, have it written, and check it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from refold.application.api.blocking import in_thread
from refold.application.conversation.entries import Entries, Entry, LongEntries, Words
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError
from refold.application.ports.summariser import SourceMessage, Summariser, is_by_code, signs
from refold.application.runtime.core import Core
from refold.application.runtime.plain_lines import conversation, plain_logger
from refold.application.topics.summary_topics import KeptTopics, TopicGathering
from refold.domain.compaction.budget import (
    SHORTEST_SUMMARY,
    Budget,
    index_target,
    ledger_target,
    most_index,
)
from refold.domain.compaction.summary_rules import Summary, must_rebuild
from refold.domain.conversation import Coverage
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.events import CompactionPerformed, LeafSummary, OmittedMessage
from refold.domain.facts.lasting_facts import OTHERS, PROMISES
from refold.domain.facts.reading import MessagesRead
from refold.domain.value import build_unvalidated, replace

from .chunking import skimming_note
from .leaves import (
    LEAVES_ROOM,
    OFF,
    earlier_texts,
    is_written,
    keep_within,
    leaf_of,
    names_of_code,
)
from .ledger_and_index import (
    Gathering,
    KeptIndex,
    KeptLedger,
    gather_ledger,
    kept_texts,
    read_covered,
)
from .summariser_calls import SummariserCalls
from .writer import Divided, Task, Writer, Written, divide

FIRST = 64
"""Number of oldest messages to read, because they often state the subject."""
TELLING = 1_024
"""Number of most promising messages to read between the oldest and the newest."""
NEWEST = 2_048
"""Number of newest messages to read."""


WORDS = Words(
    {word.encode(): promise for word, promise in PROMISES.items()},
    tuple((word.encode(), promise) for word, promise in OTHERS),
)


class Selected(NamedTuple):
    """The covered messages that are read closely."""

    messages: tuple[SourceMessage, ...]
    skimmed: int = 0
    """Number of further covered messages that were only skimmed."""
    digest: str = ""
    """Digest of the skimmed messages, or empty without any."""


def select_messages(entries: Entries, coverage: Coverage) -> Selected:
    """Select the messages to read closely from those that a plan covers."""
    if not isinstance(entries, LongEntries):
        return Selected(_sources(iter(entries), coverage))
    run, end = entries.stored, _newest_from(entries, coverage)
    begin = min(run.start + FIRST, end)
    looked = run.log.scan(begin, end, WORDS, TELLING)
    read = [*entries.kept, *entries.between(run.start, begin)]
    for position in sorted(p for p in looked.telling if p < run.stop):
        read += run.read(position, position + 1)
    read += [e for e in entries.newest if e.position >= end or e.position in looked.telling]
    messages = _sources(iter(read), coverage)
    return Selected(messages, _count_covered(entries, coverage) - len(messages), looked.digest)


def _newest_from(entries: LongEntries, coverage: Coverage) -> int:
    """Return the position from which all covered messages are read."""
    covered = [e.position for e in entries.newest if e.position < coverage.stop]
    return covered[-NEWEST] if len(covered) >= NEWEST else entries.stored.stop


def _count_covered(entries: LongEntries, coverage: Coverage) -> int:
    """Return the number of covered entries."""
    run = entries.stored
    held = sum(1 for entry in entries.held if coverage.covers(entry.position))
    kept = [p for p in coverage.exclusions if run.start <= p < run.stop]
    before = max(0, min(run.stop, coverage.start) - run.start)
    return held + run.count - len(kept) - before


def _sources(entries: Iterator[Entry], coverage: Coverage) -> tuple[SourceMessage, ...]:
    return tuple(
        build_unvalidated(SourceMessage, position=entry.position, message=entry.message)
        for entry in entries
        if coverage.covers(entry.position)
    )


logger = plain_logger(__name__)


class Source(NamedTuple):
    """The source of a summary."""

    messages: tuple[SourceMessage, ...] = ()
    """Messages that no summary covered before, unshortened. If there are very many, only the selected ones."""
    before: CompactionPerformed | None = None
    leaves: tuple[LeafSummary, ...] = ()
    """Stored texts to build the summary from, used instead of the previous summary when rebuilding."""
    focus: str | None = None
    skimmed: int = 0
    """Number of further messages that were only skimmed."""
    looked: str = ""
    """Digest of the skimmed messages."""
    earlier: tuple[LeafSummary, ...] = ()
    """Texts that the replaced summary was rebuilt from, if it is written again for the same messages."""
    whole: str = ""  # The digest without omitted messages, if it is known.

    def digest(self, omitted: Sequence[OmittedMessage] = ()) -> str:
        """Return the digest of what a summariser receives, without omitted messages."""
        gone = {one.position for one in omitted}
        if self.whole and not gone:
            return self.whole
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
    """Return the source of a plan that was made for this state of the conversation."""
    read = select_messages(loaded.window.entries, plan.coverage)
    source = Source(
        messages=read.messages,
        before=loaded.window.summary,
        leaves=_leaves(core, loaded, plan, summariser),
        focus=focus,
        skimmed=read.skimmed,
        looked=read.digest,
    )
    return source._replace(whole=source.digest())


def _leaves(
    core: Core, loaded: LoadedConversation, plan: CompactionPlan, summariser: Summariser
) -> tuple[LeafSummary, ...]:
    before = loaded.window.summary
    if before is not None and before.block is not None and signs(summariser):
        return ()  # The provider continues its signed block; texts in its place would lose it.
    if summariser.name == OFF:
        return ()  # One note covers everything; extracts would be a summary.
    must = must_rebuild(loaded.state.summary, core.settings.policy, plan.target_tokens)
    by_code = before is not None and before.summariser in names_of_code(core)
    stepped_in = by_code and not is_by_code(summariser)
    if not must and not stepped_in:
        return ()
    try:
        texts = earlier_texts(core, loaded)
        # If the built-in summariser replaced a model, the next model continues from the model's
        # text.
        return texts if must or any(map(is_written, texts)) else ()
    except LogError as error:
        logger.warning(
            "%s: the previous summary is continued instead of rebuilt: %s",
            conversation(loaded.thread_id),
            error,
        )
        return ()


_TOPICAL = 1_000
_CHARACTERS = 3
"""Characters of a token, about."""
_ROOM_FOR_TOPICS = 200
"""Tokens reserved for topics when the ledger uses room that the text left free."""
_MOST_CARRIED = 100
"""Number of omitted messages to carry from summary to summary; leaves have them all."""


async def write_summary(
    core: Core,
    before: LoadedConversation,
    source: Source,
    plan: CompactionPlan,
    budget: Budget,
    summariser: Summariser,
    calls: SummariserCalls,
) -> Summary:
    """Have the text written part by part, and add ledger and topics.

    Raises:
        SummaryRefused, SummariserError: there is no acceptable text.
    """
    rooms = _Rooms(core, plan, budget)
    gathered = await in_thread(_gather, before, source, rooms, summariser)
    leaves = await keep_within(
        core, before.thread_id, source.leaves, LEAVES_ROOM * plan.limit_tokens
    )
    split_at = None if signs(summariser) else plan.split_at
    divided = divide(source.messages, source.before, split_at, leaves)
    task = _task_of(before, source, rooms, gathered, divided)
    written = await Writer(core, before.thread_id, summariser, calls, task).write()
    messages, skimming = source.messages, task.skimming
    leaf = await leaf_of(core, before.thread_id, messages, plan, skimming, gathered.read)
    made = await in_thread(
        _build_summary, before, source, rooms, gathered, task, written, summariser.name
    )
    earlier = leaves or source.earlier
    return replace(made, model_calls=calls.model_calls, leaf=leaf, earlier=earlier)


class _Gathered(NamedTuple):
    """Facts, ledger and index of the newly covered messages, before the text is written."""

    read: MessagesRead
    gathering: Gathering
    ledger: KeptLedger
    planned: KeptIndex
    """The part of the index that a model may rely on."""


def _gather(
    before: LoadedConversation, source: Source, rooms: "_Rooms", summariser: Summariser
) -> _Gathered:
    read = read_covered(rooms.core, before.thread_id, source.messages)
    gathering = gather_ledger(rooms.core, before, read)
    ledger = gathering.select(rooms.ledger)
    # Code leaves out what the ledger has by itself.
    by_code = is_by_code(summariser)
    planned = KeptIndex() if by_code else _select_index(before, gathering, ledger, rooms, None)
    return _Gathered(read, gathering, ledger, planned)


def _task_of(
    before: LoadedConversation,
    source: Source,
    rooms: "_Rooms",
    gathered: _Gathered,
    divided: Divided,
) -> Task:
    return Task(
        plan=rooms.plan,
        budget=rooms.budget,
        divided=divided,
        focus=source.focus,
        ledger="\n".join(filter(None, (gathered.ledger.text, gathered.planned.text))),
        ledger_tokens=gathered.ledger.tokens,
        named=source.before.omitted[-_MOST_CARRIED:] if source.before else (),
        wanted_tokens=rooms.wanted(gathered.gathering),
        skimming=_skimming_note(before.thread_id, source),
        read=gathered.read,
    )


@dataclass(frozen=True, slots=True)
class _Rooms:
    """The room of a summary's parts, in tokens."""

    core: Core
    plan: CompactionPlan
    budget: Budget

    @property
    def ledger(self) -> int:
        """Room of the ledger before the text is written; the index needs its share as well."""
        plan, overhead = self.plan, self.budget.summary_overhead
        return self._share(
            min(plan.beside_tokens, plan.covered_tokens - overhead - SHORTEST_SUMMARY)
        )

    def enlarged_ledger(self, written: Written) -> int:
        """Return the room of the ledger with what the text left."""
        spare = self._room_with_rest(written) - self.plan.beside_tokens
        most = ledger_target(self.budget, self.core.settings.policy)
        return min(self._share(self.plan.beside_tokens) + spare, self._smaller(written), most)

    def wanted(self, gathering: Gathering) -> int:
        """Return about how many tokens ledger and index could use beyond their room."""
        texts = [line.text for line in gathering.lines]
        texts += [entry.text for entry in gathering.entries]
        policy = self.core.settings.policy
        most = ledger_target(self.budget, policy) + most_index(self.budget, policy)
        wanted = min(most, sum(map(len, texts)) // _CHARACTERS)
        return max(0, wanted - self.plan.beside_tokens)

    def index(self, written: Written | None, ledger: KeptLedger) -> int:
        """Return the room of the index with what the text and the ledger left.

        Before the text is written, it is the room that is certain.
        """
        room = self.plan.beside_tokens
        if written is not None:
            room = min(self._room_with_rest(written), self._smaller(written))
        room -= ledger.tokens
        return max(0, min(room, most_index(self.budget, self.core.settings.policy)))

    def _share(self, room: int) -> int:
        """Return how much of the room for ledger and index the ledger may take.

        Half of its target comes before everything else, because it has what binds the agent.
        """
        policy = self.core.settings.policy
        ledger, index = ledger_target(self.budget, policy), index_target(self.budget, policy)
        least = max(room * ledger // max(1, ledger + index), min(room, ledger // 2))
        return max(0, min(ledger, max(least, room - index)))

    def _room_with_rest(self, written: Written) -> int:
        """Return the room for ledger and index with what the text left, except some room for topics."""
        longest = self.plan.covered_tokens - self.budget.summary_overhead - 1
        spare = min(self.plan.limit_tokens, longest) - self._tokens(written)
        return self.plan.beside_tokens + spare - min(_ROOM_FOR_TOPICS, spare // 2)

    def _smaller(self, written: Written) -> int:
        """Return the room that leaves the summary smaller than the messages it covers."""
        overhead = self.budget.summary_overhead
        return self.plan.covered_tokens - overhead - self._tokens(written) - 1

    def _tokens(self, written: Written) -> int:
        return self.core.counter.count_text(written.text)


def _enlarge_ledger(
    gathering: Gathering, ledger: KeptLedger, rooms: _Rooms, written: Written
) -> KeptLedger:
    """Return a larger ledger if the text left room and some lines were not shown."""
    room = rooms.enlarged_ledger(written)
    if ledger.shown == len(ledger.lines) or room <= rooms.ledger:
        return ledger
    return gathering.select(room)


def _select_index(
    before: LoadedConversation,
    gathering: Gathering,
    ledger: KeptLedger,
    rooms: _Rooms,
    written: Written | None,
) -> KeptIndex:
    shown = kept_texts(before, rooms.plan.coverage)
    visible = "\n".join([ledger.text, written.text if written else "", *shown])
    room = rooms.index(written, ledger)
    return gathering.select_index(room, visible, has_ledger=bool(ledger.shown))


def _skimming_note(thread_id: str, source: Source) -> str:
    positions = [one.position for one in source.messages]
    first, last = min(positions, default=0), max(positions, default=0)
    return skimming_note(thread_id, first, last, source.skimmed)


def _topics(
    core: Core,
    before: LoadedConversation,
    source: Source,
    task: Task,
    written: Written,
    made: Summary,
) -> KeptTopics:
    known = source.before.topics if source.before else ()
    gathering = TopicGathering(core, before.thread_id, known)
    # For a history that is too long to read closely, use the topics of its newest part.
    messages = source.messages[-_TOPICAL:] if source.skimmed else source.messages
    gathering.take(messages, task.read.facts if task.read else (), written.topics)
    # Topics only use room that the rest left, so that the target size is not exceeded.
    plan, overhead = task.plan, task.budget.summary_overhead
    left = plan.limit_tokens + plan.beside_tokens + overhead - made.tokens
    room = min(left, plan.covered_tokens - made.tokens - 1)
    return gathering.select(room, apart=made.block is not None, ask=made.topics_ask)


def _build_summary(
    before: LoadedConversation,
    source: Source,
    rooms: _Rooms,
    gathered: _Gathered,
    task: Task,
    written: Written,
    summariser: str,
) -> Summary:
    gathering = gathered.gathering
    ledger = _enlarge_ledger(gathering, gathered.ledger, rooms, written)
    index = _select_index(before, gathering, ledger, rooms, written)
    made = _join_parts(rooms.core, summariser, task, written, ledger, index)
    made = replace(made, source_digest=source.digest(written.omitted))
    topics = _topics(rooms.core, before, source, task, written, made)
    return replace(
        made, topics=topics.topics, topics_shown=topics.shown, tokens=made.tokens + topics.tokens
    )


def _join_parts(
    core: Core,
    summariser: str,
    task: Task,
    written: Written,
    ledger: KeptLedger,
    index: KeptIndex,
) -> Summary:
    newest, tokens = written.newest, core.counter.count_text(written.text)
    divides = written.prefix is not None
    # Its parts were checked, and checking hundreds of entries again takes a while.
    return build_unvalidated(
        Summary,
        summary_id=core.new_id(),
        text=written.text,
        text_tokens=tokens,
        tokens=tokens + task.budget.summary_overhead + ledger.tokens + index.tokens,
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
        index=index.entries,
        index_shown=index.shown,
        index_left_out=index.left_out,
        omitted=written.omitted,
        given_in_part=written.given_in_part,
        block=written.block,
        topics_ask=task.budget.recalls,
    )
