"""Compare the summaries that a recording has with a ledger and an index of the same messages."""

from collections import Counter
from collections.abc import Iterator, Sequence

from refold.application.conversation.transcripts import RecordedConversation, RecordedSummary
from refold.application.runtime.core import Core, Extras
from refold.application.summaries.ledger_and_index import Gathering
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

    The facts are those of the messages before the summary that the rest of the session uses again. The index leaves
    out what the summary says.
    """
    messages = [one.message for one in recorded.messages]
    return tuple(_compare_each(core, recorded.thread_id, recorded.summaries, messages, model))


def _compare_each(
    core: Core,
    thread_id: str,
    summaries: Sequence[RecordedSummary],
    messages: Sequence[Message],
    model: str | None,
) -> Iterator[SummaryCompared]:
    policy, budget = core.settings.for_model(model).policy, core.budget(Extras(model=model))
    gathering, start = Gathering(core, thread_id), 0
    for summary in summaries:
        stop = summary.position
        gathering.take(core.reading.read(enumerate(messages[start:stop], start)).facts)
        ledger = gathering.select(ledger_target(budget, policy))
        visible = f"{summary.text}\n{ledger.text}"
        index = gathering.select_index(
            index_target(budget, policy), visible, has_ledger=bool(ledger.text)
        )
        yield SummaryCompared(
            position=stop,
            messages=stop - start,
            summary_tokens=core.counter.count_text(summary.text),
            ledger_tokens=ledger.tokens + index.tokens,
            reuse=_shares(messages, stop, summary.text, f"{ledger.text}\n{index.text}"),
        )
        # The next one knows what a compaction would have kept.
        gathering, start = Gathering(core, thread_id, ledger.lines, index.entries), stop


def _shares(
    messages: Sequence[Message], stop: int, summary: str, ledger: str
) -> dict[str, SharesOfTexts]:
    reuse = Reuse(messages[stop:])
    facts = set[Fact]().union(*map(facts_of, messages[:stop]))
    shown = Shown([summary]), Shown([ledger])
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for fact in filter(reuse.uses, facts):
        here = [text.has(fact.text) for text in shown]
        counts[fact.kind].update(of=1, summary=here[0], ledger=here[1], together=any(here))
    return {kind: SharesOfTexts(**count) for kind, count in counts.items()}
