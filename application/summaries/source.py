"""What is read closely of a history too long for that: its beginning, its end, and what a look finds."""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError
from refold.application.ports.summariser import SourceMessage, Summariser, is_by_code, signs
from refold.application.projections.entries import Entries, Entry, LongEntries, Words
from refold.application.runtime.core import Core
from refold.application.runtime.plain_lines import conversation, plain_logger
from refold.domain.compaction.summary_length import must_rebuild
from refold.domain.coverage import Coverage
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.events import CompactionPerformed, LeafSummary, OmittedMessage
from refold.domain.ledger.cues import OTHERS, PROMISES

from .fallbacks import OFF
from .leaves import earlier_texts, is_written, names_of_code

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
