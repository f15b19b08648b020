"""Compare the summaries that a recording has with a ledger and an index of the same messages."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from refold.application.conversation.transcripts import RecordedConversation, RecordedSummary
from refold.application.runtime.core import Core, Extras
from refold.application.summaries.ledger_and_index import Gathering, KeptIndex, KeptLedger
from refold.domain.compaction.budget import index_target, ledger_target
from refold.domain.messages import Message
from refold.domain.value import Value

from .exam_facts import KINDS, Fact, Reuse, Shown, facts_of


class SharesOfTexts(Value, frozen=True):
    """How many facts of one kind stand in which text, of those that the session uses again."""

    of: int = 0
    """Facts that the session uses again after the summary."""
    summary: int = 0
    """Facts in the recorded summary."""
    ledger: int = 0
    """Facts in the ledger and the index."""
    together: int = 0
    """Facts in one of them or in both."""


class SummaryCompared(Value, frozen=True):
    """One recorded summary, and the ledger and index that refold shows with it."""

    position: int
    """Number of messages before the summary."""
    messages: int
    """Number of these messages since the summary before."""
    summary_tokens: int
    ledger_tokens: int
    """Tokens of ledger and index."""
    reuse: dict[str, SharesOfTexts]
    """By kind of fact, as in ``refold exam``."""


def compare_summaries(
    core: Core, recorded: RecordedConversation, model: str | None = None
) -> tuple[SummaryCompared, ...]:
    """Compare each recorded summary with the ledger and index for the window of ``model``.

    The facts are those of the messages before the summary that the rest of the session uses again, without those
    that the tool kept in full messages. The index leaves out what the summary says.
    """
    messages = [one.message for one in recorded.messages]
    return tuple(
        SummaryCompared(
            position=made.summary.position,
            messages=made.summary.position - made.start,
            summary_tokens=core.counter.count_text(made.summary.text),
            ledger_tokens=made.tokens,
            reuse=_shares(messages, made.summary, made.text),
        )
        for made in ledgers_of(core, recorded, model)
    )


class LedgerOfSummary(NamedTuple):
    """The ledger and index that refold shows with a recorded summary."""

    summary: RecordedSummary
    start: int
    """Number of messages before the summary that an earlier summary covers."""
    text: str
    tokens: int
    short_text: str
    """The same with at most as many tokens as the summary, or an empty text if it was not asked for."""


def ledgers_of(
    core: Core, recorded: RecordedConversation, model: str | None = None, *, short: bool = False
) -> Iterator[LedgerOfSummary]:
    """Yield ledger and index for each recorded summary of messages in the file, for the window of ``model``.

    With ``short``, they are also made in the size of the summary.
    """
    policy, budget = core.settings.for_model(model).policy, core.budget(Extras(model=model))
    messages = [one.message for one in recorded.messages]
    rooms = ledger_target(budget, policy), index_target(budget, policy)
    gathering, start = Gathering(core, recorded.thread_id), 0
    for summary in recorded.summaries:
        if not (stop := summary.position):
            continue  # The messages before it are in the file of another session.
        read = core.reading.read(enumerate(messages[start:stop], start))
        gathering.take(read.facts, read.names)
        ledger, index = _select(gathering, summary, *rooms)
        text, short_text = f"{ledger.text}\n{index.text}", ""
        if short:
            size = core.counter.count_text(summary.text)
            for_ledger = size * rooms[0] // max(1, sum(rooms))
            short_ledger, short_index = _select(gathering, summary, for_ledger, size - for_ledger)
            short_text = f"{short_ledger.text}\n{short_index.text}"
        yield LedgerOfSummary(summary, start, text, ledger.tokens + index.tokens, short_text)
        # The next one knows what a compaction would have kept.
        gathering, start = Gathering(core, recorded.thread_id, ledger.lines, index.entries), stop


def _select(
    gathering: Gathering, summary: RecordedSummary, for_ledger: int, for_index: int
) -> tuple[KeptLedger, KeptIndex]:
    """Return ledger and index. The index leaves out what the summary and the ledger say."""
    ledger = gathering.select(for_ledger)
    visible = f"{summary.text}\n{ledger.text}"
    return ledger, gathering.select_index(for_index, visible, has_ledger=bool(ledger.text))


def _shares(
    messages: Sequence[Message], summary: RecordedSummary, ledger: str
) -> dict[str, SharesOfTexts]:
    reuse, kept = Reuse(messages[summary.position :]), Shown([summary.kept])
    facts = set[Fact]().union(*map(facts_of, messages[: summary.position]))
    facts = {fact for fact in facts if not kept.has(fact.text)}
    shown = Shown([summary.text]), Shown([ledger])
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for fact in filter(reuse.uses, facts):
        here = [text.has(fact.text) for text in shown]
        counts[fact.kind].update(of=1, summary=here[0], ledger=here[1], together=any(here))
    return {kind: SharesOfTexts(**count) for kind, count in counts.items()}
