"""Rebuild the active summary without a model when some of its sources are erased."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from refold.application.api.blocking import in_thread
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.stream_places import StreamPlaces
from refold.application.ports.summariser import SourceMessage, SummaryRequest
from refold.application.rendering.index_text import index_text
from refold.application.rendering.render import topics_tokens
from refold.application.runtime.core import Core, Extras
from refold.application.runtime.foreign_code import run_here
from refold.application.summaries.chunking import omission_note, unread_note
from refold.application.summaries.leaves import (
    GAP,
    NoteSummariser,
    add_heading,
    is_written,
    leaf_within,
    text_of_leaves,
)
from refold.application.summaries.ledger_and_index import (
    Gathering,
    KeptIndex,
    KeptLedger,
    kept_texts,
    read_covered,
)
from refold.application.topics.summary_topics import TopicGathering
from refold.domain.conversation import Coverage
from refold.domain.events import (
    WITHDRAWN,
    CompactionPerformed,
    CompactionRequested,
    Event,
    LeafSummary,
    MessageAppended,
    OmittedMessage,
    SummarySuperseded,
)
from refold.domain.facts.reading import MessagesRead
from refold.domain.ledger import IndexEntry
from refold.domain.messages import gist
from refold.domain.quoted_text import remove_headings
from refold.domain.text_cuts import ends_within
from refold.domain.value import replace

MOST = 1_536
"""Largest number of covered messages to read again completely, at half a millisecond each."""
FIRST = 64
"""Number of oldest messages to read, because they often state the subject."""
NEWEST = 512
"""Number of newest messages to read."""
_BESIDE = 1
"""Number of messages on each side that are read with the source of a ledger line.

These are the call of a result, or the answer to a request.
"""
_APART = 8
"""Maximum number of unwanted positions between two wanted ones that are read in the same query."""


class Stretch(NamedTuple):
    """Positions from ``start`` up to but not including ``stop``."""

    start: int
    stop: int


def reread_positions(
    old: CompactionPerformed, touched: Iterable[Stretch], gone: frozenset[int]
) -> Sequence[int]:
    """Return the covered positions to read again, oldest first.

    ``touched`` are the parts that lose an extract. If there are more than ``MOST`` positions, the result
    has only the beginning and the end of the coverage and of each part, and the sources of ledger lines.
    """
    coverage = old.coverage
    whole = Stretch(coverage.start, coverage.stop)
    if coverage.count <= MOST:
        wanted = set(range(*whole))
    else:
        wanted = _ends(whole).union(*map(_ends, touched))
        for line in old.ledger:
            wanted.update(range(line.position - _BESIDE, line.position + _BESIDE + 1))
    return sorted(p for p in wanted - gone if coverage.covers(p))


def read_again(
    core: Core, loaded: LoadedConversation, positions: Sequence[int]
) -> Iterator[MessageAppended]:
    """Yield the messages at these positions that were not erased before."""
    state, thread_id = loaded.state, loaded.thread_id
    places = StreamPlaces(partial(core.log.read, thread_id), state.version, state.length)
    wanted = frozenset(positions)
    for start, stop in _runs(positions):
        for logged in places.messages(start, stop):
            event = logged.event
            if (
                isinstance(event, MessageAppended)
                and not logged.erased
                and event.position in wanted
            ):
                yield event


def stretch_of(covered: Coverage, before: Coverage | None) -> Stretch:
    """Return the positions that a compaction was the first to cover."""
    return Stretch(before.stop if before else covered.start, covered.stop)


def _ends(part: Stretch) -> set[int]:
    if part.stop - part.start <= FIRST + NEWEST:
        return set(range(*part))
    return {
        *range(part.start, part.start + FIRST),
        *range(part.stop - NEWEST, part.stop),
    }


def _runs(positions: Sequence[int]) -> Iterator[Stretch]:
    start = stop = -1
    for position in positions:
        if start < 0 or position > stop + _APART:
            if start >= 0:
                yield Stretch(start, stop)
            start = position
        stop = position + 1
    if start >= 0:
        yield Stretch(start, stop)


ALGORITHM = "refold-remains-1"
_FINGERPRINT = sha256(ALGORITHM.encode()).hexdigest()
_NOTHING_LEFT = "[Everything that was said here was erased.]"
_SLICE = 40_000
"""Tokens of messages for one extract."""
_NAMING_SHARE = 3


class SummaryRebuild(NamedTuple):
    """A summary that replaces a withdrawn one."""

    replaces: str
    """Id of the withdrawn summary."""
    events: tuple[Event, ...]
    summary: CompactionPerformed


class _Part(NamedTuple):
    """The messages that one compaction was the first to cover."""

    leaf: LeafSummary | None
    covered: Coverage
    before: Coverage | None
    only: Stretch | None = None
    """Positions of an earlier text that is about some of these messages, or None."""

    @property
    def stretch(self) -> Stretch:
        """The positions that lose an extract with this part."""
        return self.only or stretch_of(self.covered, self.before)

    @property
    def is_withdrawn(self) -> bool:
        """True if there is no extract of these messages."""
        return self.leaf is None or self.leaf.text == WITHDRAWN

    def has(self, position: int) -> bool:
        """Return whether a message belongs to this part."""
        if self.only and not self.only.start <= position < self.only.stop:
            return False
        return self.covered.covers(position) and not (self.before and self.before.covers(position))


def rebuild_summary(
    core: Core,
    loaded: LoadedConversation,
    gone: frozenset[int],
    into: str | None = None,
    quoting: frozenset[str] = frozenset(),
) -> SummaryRebuild:
    """Rebuild the active summary without the messages ``gone``, with the same coverage.

    The result is not larger, except that a note takes about 60 tokens. Extracts that do not involve
    ``gone`` are reused; the others and the ledger are rebuilt. ``into`` is the thread id of a copy
    that the summary is for. ``quoting`` are the ids of attempts whose focus quotes ``gone``, and
    of those that continue their summaries. No model is needed. Runs an event loop of its own: call it from a
    thread without one.
    """
    rebuilder = _Rebuilder(core, loaded, gone, into or loaded.thread_id, quoting)
    return run_here(rebuilder.rebuild())


class _Rebuilder:
    def __init__(
        self,
        core: Core,
        loaded: LoadedConversation,
        gone: frozenset[int],
        into: str,
        quoting: frozenset[str],
    ) -> None:
        assert loaded.window.summary is not None
        self._core = core
        self._loaded = loaded
        self._source = loaded.thread_id
        self._thread_id = into
        self._gone = gone
        self._quoting = quoting
        self._old = loaded.window.summary
        self._count = core.counter.count_text
        self._overhead = core.budget(Extras()).summary_overhead
        self._unread = ""

    async def rebuild(self) -> SummaryRebuild:
        parts = self._parts()
        touched = [p for p in parts if p.is_withdrawn or any(map(p.has, self._gone))]
        positions = reread_positions(self._old, [part.stretch for part in touched], self._gone)
        self._unread = self._note_unread(len(positions))
        gathering = Gathering(self._core, self._thread_id, (), self._known_entries())
        fresh = dict[_Part, list[LeafSummary]]()
        topics = TopicGathering(self._core, self._thread_id)
        for messages in _split(read_again(self._core, self._loaded, positions)):
            read = await in_thread(read_covered, self._core, self._thread_id, messages)
            await in_thread(gathering.take, read.facts, read.names)
            await in_thread(topics.take, messages, read.facts)
            for part in touched:
                own = [m for m in messages if part.has(m.position)]
                if own:
                    leaf = await self._leaf(own, read.of({m.position for m in own}))
                    fresh.setdefault(part, []).append(leaf)
        leaves = [leaf for part in parts for leaf in _leaves(part, touched, fresh)]
        room = self._old.tokens - self._overhead - self._limit - self._topics_tokens
        ledger = await in_thread(gathering.select, max(0, room - self._index_tokens))
        text = remove_headings(await self._text(leaves))
        visible = [ledger.text, text, *kept_texts(self._loaded, self._old.coverage)]
        index = await in_thread(
            gathering.select_index,
            max(0, room - ledger.tokens),
            "\n".join(visible),
            has_ledger=bool(ledger.shown),
        )
        return self._build(leaves, text, ledger, index, topics)

    def _known_entries(self) -> tuple[IndexEntry, ...]:
        """Return the entries of the old index that are kept because not all messages are read again.

        Each stands in the message at its position, which was not erased.
        """
        if self._old.coverage.count <= MOST:
            return ()
        return tuple(e for e in self._old.index if e.position not in self._gone)

    @property
    def _index_tokens(self) -> int:
        """Tokens of the index of the old summary."""
        return self._count(index_text(self._old.index[: self._old.index_shown]))

    @property
    def _topics_tokens(self) -> int:
        """Tokens of the topics of the old summary."""
        shown = self._old.topics[: self._old.topics_shown]
        return topics_tokens(
            shown, self._count, apart=self._old.block is not None, ask=self._old.topics_ask
        )

    @property
    def _limit(self) -> int:
        return self._old.text_tokens or self._count(self._old.text)

    def _parts(self) -> list[_Part]:
        state, before = self._loaded.state, None
        parts: list[_Part] = []
        for version in state.summary.leaves if state.summary else ():
            [logged] = self._core.log.read(self._source, version, version)
            made = logged.event
            assert isinstance(made, CompactionPerformed)
            if made.earlier:
                is_quoting = made.attempt_id in self._quoting
                parts = list(_earlier_parts(made, before or made.coverage, is_quoting))
            parts.append(_Part(made.leaf, made.coverage, before))
            before = made.coverage
        return parts or [_Part(None, self._old.coverage, None)]

    def _note_unread(self, read: int) -> str:
        """Return the note about covered messages that were not read again."""
        coverage = self._old.coverage
        left = coverage.count - sum(map(coverage.covers, self._gone)) - read
        return unread_note(self._thread_id, coverage.start, coverage.stop - 1, left)

    async def _leaf(self, messages: Sequence[SourceMessage], read: MessagesRead) -> LeafSummary:
        target = self._core.settings.policy.leaf_tokens
        return await leaf_within(self._core, self._thread_id, messages, target, read)

    async def _text(self, leaves: Sequence[LeafSummary]) -> str:
        if not leaves:
            return _NOTHING_LEFT
        omitted = self._omitted()
        named = omission_note(self._thread_id, omitted, self._limit // _NAMING_SHARE, self._count)
        named = self._unread + named
        room = max(1, self._limit - self._count(named))
        text = await text_of_leaves(self._core, self._thread_id, leaves, room)
        kept = ends_within(text, room, self._count, GAP)
        # This note names the remaining messages itself; with both, the text would grow.
        return (kept + named).strip() if kept else await self._note(leaves)

    async def _note(self, leaves: Sequence[LeafSummary]) -> str:
        # Nothing else fits, so only say where the remaining messages can be read.
        left = tuple(OmittedMessage(position=n.start, tokens=0) for n in leaves) + tuple(
            OmittedMessage(position=n.stop - 1, tokens=0) for n in leaves
        )
        request = SummaryRequest(messages=(), omitted=left, limit_tokens=self._limit)
        return (await NoteSummariser(self._thread_id, self._count).summarise(request)).text

    def _omitted(self) -> tuple[OmittedMessage, ...]:
        return tuple(one for one in self._old.omitted if one.position not in self._gone)

    def _build(
        self,
        leaves: Sequence[LeafSummary],
        text: str,
        ledger: KeptLedger,
        index: KeptIndex,
        gathered: TopicGathering,
    ) -> SummaryRebuild:
        old, before = self._old, self._loaded.state.tokens
        whole = ("\n\n".join(map(add_heading, leaves)) or _NOTHING_LEFT) + self._unread
        digest = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
        requested = _requested_event(self._core, old, before, digest)
        text_tokens = self._count(text)
        tokens = text_tokens + self._overhead + ledger.tokens + index.tokens
        topics = gathered.select(old.tokens - tokens, apart=False, ask=old.topics_ask)
        tokens += topics.tokens
        performed = replace(
            _performed_event(requested, old),
            summary_id=self._core.new_id(),
            text=text,
            text_tokens=text_tokens,
            tokens=tokens,
            tokens_after=before - old.tokens + tokens,
            ledger=ledger.lines,
            ledger_shown=ledger.shown,
            index=index.entries,
            index_shown=index.shown,
            index_left_out=index.left_out,
            leaf=LeafSummary(
                start=old.coverage.start,
                stop=old.coverage.stop,
                text=whole,
                tokens=self._count(whole),
            ),
            omitted=self._omitted(),
            topics=topics.topics,
            topics_shown=topics.shown,
        )
        superseded = SummarySuperseded(summary_id=old.summary_id, by=performed.summary_id)
        return SummaryRebuild(old.summary_id, (requested, performed, superseded), performed)


def _requested_event(
    core: Core, old: CompactionPerformed, tokens_before: int, digest: str
) -> CompactionRequested:
    return CompactionRequested(
        attempt_id=core.new_id(),
        requested_at=core.clock(),
        trigger="erasure",
        coverage=old.coverage,
        supersedes=old.summary_id,
        source_digest=digest,
        summariser=core.fallback.name,
        policy=core.settings.policy,
        tokens_before=tokens_before,
        rebuilds=True,
    )


def _performed_event(
    requested: CompactionRequested, old: CompactionPerformed
) -> CompactionPerformed:
    return replace(
        old,
        attempt_id=requested.attempt_id,
        source_digest=requested.source_digest,
        trigger=requested.trigger,
        policy=requested.policy,
        summariser=requested.summariser,
        model=ALGORITHM,
        prompt_fingerprint=_FINGERPRINT,
        tokens_before=requested.tokens_before,
        focus=None,
        is_split_turn=False,
        split_turn_prefix=None,
        split_at=None,
        generation=0,
        given_in_part=(),
        earlier=(),  # They may quote what was erased. The leaf is about all messages that are covered.
        block=None,
        model_calls=0,
    )


def _earlier_parts(
    made: CompactionPerformed, covered: Coverage, is_quoting: bool
) -> Iterator[_Part]:
    """Yield the parts of the extracts that a rebuilt summary continues. ``covered`` was covered before it.

    An extract of several texts may have words of a model, and so the quotation of a focus.
    """
    if is_quoting or any(leaf.text == WITHDRAWN for leaf in made.earlier):
        yield _Part(None, covered, None)
        return
    for leaf in made.earlier:
        if not is_written(leaf):
            yield _Part(leaf, covered, None, Stretch(leaf.start, leaf.stop))


def _leaves(
    part: _Part, touched: Sequence[_Part], fresh: Mapping[_Part, Sequence[LeafSummary]]
) -> Sequence[LeafSummary]:
    if part in touched:
        return fresh.get(part, ())
    assert part.leaf is not None
    return (part.leaf,)


def _split(events: Iterable[MessageAppended]) -> Iterator[tuple[SourceMessage, ...]]:
    """Yield portions of messages; no portion begins with the result of an earlier call."""
    portion: list[SourceMessage] = []
    size = 0
    for event in events:
        if size >= _SLICE and not gist(event.message).results:
            yield tuple(portion)
            portion, size = [], 0
        portion.append(SourceMessage(position=event.position, message=event.message))
        size += event.tokens
    if portion:
        yield tuple(portion)
