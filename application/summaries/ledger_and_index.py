"""Collect the ledger and the index of the messages that leave the context."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from refold.application.conversation.entries import held_entries
from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.summariser import SourceMessage
from refold.application.rendering.index_text import index_text
from refold.application.rendering.render import (
    heading_text,
    ledger_line,
    ledger_overhead,
    ledger_text,
    render,
)
from refold.application.runtime.core import Core
from refold.application.runtime.plain_lines import conversation, plain_logger, raised
from refold.domain.conversation import Coverage
from refold.domain.facts.fact import Fact, ResultNames
from refold.domain.facts.reading import MessagesRead
from refold.domain.ledger import IndexEntry, LedgerLine
from refold.domain.ledger.index import choose_entries, entries_of, merge_entries
from refold.domain.ledger.line import gather
from refold.domain.ledger.line_choice import Costs, LineChooser, merge_ledger
from refold.domain.messages import strings_in

logger = plain_logger(__name__)

_DEEPEST = 12
"""Levels of a request that are searched for texts."""


class KeptLedger(NamedTuple):
    """The ledger of a compaction in progress."""

    lines: tuple[LedgerLine, ...] = ()
    """Ledger lines, most important first."""
    shown: int = 0
    """Number of lines that are rendered."""
    tokens: int = 0
    """Tokens of the rendered lines with their headings."""
    text: str = ""
    """The rendered lines."""


class KeptIndex(NamedTuple):
    """The index of a compaction in progress."""

    entries: tuple[IndexEntry, ...] = ()
    """Entries of the index: the shown ones, then the others, the most useful first."""
    shown: int = 0
    """Number of entries that are rendered."""
    tokens: int = 0
    """Tokens of the rendered index."""
    left_out: int = 0
    """Tokens of the entries that had no room."""
    text: str = ""
    """The rendered entries."""


class Gathering:
    """Collects ledger and index message by message, oldest first."""

    def __init__(
        self,
        core: Core,
        thread_id: str,
        known: Sequence[LedgerLine] = (),
        entries: Sequence[IndexEntry] = (),
    ) -> None:
        self._core = core
        self._thread_id = thread_id
        self._policy = core.settings.policy
        self._lines = tuple(known)
        self._chooser: LineChooser | None = None
        self._entries = tuple(entries)

    @property
    def is_wanted(self) -> bool:
        """True if the settings ask for a ledger."""
        return bool(self._policy.ledger_tokens and self._policy.ledger_share)

    @property
    def is_index_wanted(self) -> bool:
        """True if the settings ask for an index."""
        return bool(self._policy.index_tokens and self._policy.index_share)

    @property
    def lines(self) -> tuple[LedgerLine, ...]:
        """All lines of the ledger so far."""
        return self._lines

    @property
    def entries(self) -> tuple[IndexEntry, ...]:
        """All entries of the index so far."""
        return self._entries

    def take(self, facts: Sequence[Fact], names: Sequence[ResultNames] = ()) -> None:
        """Add the lines and entries of these facts and names, which come from later messages than those before."""
        # A fault in the rules must not stop the compaction or lose what is known.
        try:
            if self.is_wanted:
                fresh = gather(facts, self._policy.failure_characters)
                self._lines, self._chooser = merge_ledger(self._lines, fresh), None
            if self.is_index_wanted:
                self._entries = merge_entries(self._entries, entries_of(facts, names))
        except Exception as error:
            logger.warning(
                "%s: the ledger or the index could not be extended: %s",
                conversation(self._thread_id),
                raised(error),
            )

    def select_index(self, room: int, visible: str, *, has_ledger: bool) -> KeptIndex:
        """Return the index with at most ``room`` tokens shown, without what ``visible`` has.

        The first text of the block has a heading of its own, if there is no ledger.
        """
        if not self.is_index_wanted:
            return KeptIndex(self._entries)
        count = self._core.counter.count_text
        overhead = count("\n") + (0 if has_ledger else ledger_overhead(count))
        measure = self._core.line_sizes.__getitem__
        chosen = choose_entries(self._entries, room - overhead, measure, visible)
        shown = chosen.shown
        while shown:
            text = index_text(chosen.entries[:shown])
            tokens = count(text) + overhead
            if tokens <= room:
                return KeptIndex(chosen.entries, shown, tokens, chosen.left_out, text)
            shown -= max(1, shown // 16)
        return KeptIndex(chosen.entries, left_out=chosen.left_out)

    def select(self, room: int) -> KeptLedger:
        """Return the ledger, most important lines first, with at most ``room`` tokens shown."""
        if not self.is_wanted:
            return KeptLedger(self._lines)
        count = self._core.counter.count_text
        if self._chooser is None:
            sizes = self._core.line_sizes
            costs = Costs(
                lambda line: sizes[ledger_line(line) + "\n"],
                lambda line: count(heading_text(line)),
            )
            failures, has_index = self._policy.failures_kept, self.is_index_wanted
            self._chooser = LineChooser(self._lines, costs, failures=failures, has_index=has_index)
        fitted = self._chooser.choose(room - ledger_overhead(count))
        shown = fitted.shown
        while shown:
            text = ledger_text(fitted.lines[:shown], ())
            tokens = count(text) + ledger_overhead(count)
            if tokens <= room:
                return KeptLedger(fitted.lines, shown, tokens, text)
            shown -= 1
        return KeptLedger(fitted.lines)


def gather_ledger(core: Core, before: LoadedConversation, read: MessagesRead) -> Gathering:
    """Return the lines and entries that are known after these messages left the context."""
    summary = before.window.summary
    known, entries = (summary.ledger, summary.index) if summary else ((), ())
    gathering = Gathering(core, before.thread_id, known, entries)
    gathering.take(read.facts, read.names)
    return gathering


def read_covered(core: Core, thread_id: str, covered: Sequence[SourceMessage]) -> MessagesRead:
    """Read messages that leave the context. If the rules fail, there are no facts, and the compaction goes on."""
    try:
        return core.reading.read((s.position, s.message) for s in covered)
    except Exception as error:
        logger.warning(
            "%s: nothing could be read from the covered messages: %s",
            conversation(thread_id),
            raised(error),
        )
        return MessagesRead()


def kept_texts(before: LoadedConversation, coverage: Coverage) -> Iterator[str]:
    """Yield the texts of the messages that a compaction leaves in the request, as they are shown."""
    kept = tuple(e for e in held_entries(before.window.entries) if not coverage.covers(e.position))
    window = replace(before.window, entries=kept, summary=None, memories=None)
    shown = render(before.thread_id, window, None, lambda _: 0)
    yield from strings_in([turn["content"] for turn in shown.messages], deepest=_DEEPEST)
