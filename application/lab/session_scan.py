"""Find what the compactions of a recorded session lost, and what they cost."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from refold.application.conversation.transcripts import RecordedConversation, RecordedSummary
from refold.application.ports.token_counter import TokenCounter
from refold.application.runtime.core import Core
from refold.domain.facts.cues import clean, excerpt, redact
from refold.domain.facts.speech import user_words
from refold.domain.messages import Message, said
from refold.domain.text_cuts import beginning
from refold.domain.value import Value, replace

from .recorded_summaries import ledgers_of
from .scan_facts import KeptText, LaterUses, LossKind, Need, needs_of, telling_part
from .tool_actions import PaidTwice, actions_of, before_first_edit, paid_twice

SHOWN_TEXT, SHOWN_LABEL = 160, 60
"""Longest texts of a session that a scan shows."""
READ_FOR_LABEL = 600
"""Characters that are read for a label, so that half a credential is recognised as one."""


class LostFact(Value, frozen=True):
    """A fact that the session had before a compaction, needed after it, and did not find in the summary."""

    kind: LossKind
    text: str
    """The fact on one line, without credentials and control characters."""
    position: int
    """Position of the newest message before the compaction that has it."""
    needed_at: int | None
    """Position of the first later call that uses it, or None for words of the person."""
    words_kept: float
    """Largest share of its words in one line of the summary."""
    kept: bool | None = None
    """Whether refold's ledger and index have it, or None if that was not looked at."""
    kept_short: bool | None = None
    """The same for a ledger and an index that are not larger than the summary."""


class ScannedCompaction(Value, frozen=True):
    """One compaction of a session."""

    number: int
    """Number in the session, from 1."""
    key: str
    """The same in each file that repeats this compaction."""
    at: datetime | None
    position: int
    """Number of messages before it in the file."""
    needed: dict[LossKind, int]
    """Facts from before that the session needs after it."""
    lost: tuple[LostFact, ...]
    """Those that are not in the summary."""
    actions: int
    """Tool calls after it, up to the next compaction."""
    actions_before_edit: int | None
    """Tool calls before the first edit among them, or None without an edit."""
    twice: PaidTwice
    ledger_tokens: int | None = None
    """Tokens of refold's ledger and index, or None if they were not made."""

    def lost_of(self, kind: LossKind) -> int:
        """Return how many facts of a kind were lost."""
        return sum(fact.kind == kind for fact in self.lost)


class ScannedSession(Value, frozen=True):
    """The compactions of one session."""

    thread_id: str
    label: str
    messages: int
    compactions: tuple[ScannedCompaction, ...]


class _Loss(NamedTuple):
    summary: RecordedSummary
    number: int
    needed: dict[LossKind, int]
    lost: tuple[tuple[Need, int, int | None], ...]
    """Each lost fact with the position of its message and of its first later use."""
    text: KeptText


def scan_session(recorded: RecordedConversation, counter: TokenCounter) -> ScannedSession:
    """Return what the compactions of a session lost, and what they cost."""
    messages = [one.message for one in recorded.messages]
    actions = actions_of(messages)
    stops = [summary.position for summary in recorded.summaries[1:]] + [len(messages)]
    compactions: list[ScannedCompaction] = []
    for loss, stop in zip(_losses(recorded, messages), stops, strict=True):
        start = loss.summary.position
        before = [action for action in actions if action.position < start]
        after = [action for action in actions if start <= action.position < stop]
        twice = paid_twice(before, after, counter)
        compactions.append(
            ScannedCompaction(
                number=loss.number,
                key=loss.summary.key or _key(loss.summary),
                at=loss.summary.at,
                position=start,
                needed=loss.needed,
                lost=tuple(_lost_fact(*fact, loss.text) for fact in loss.lost),
                actions=len(after),
                actions_before_edit=before_first_edit(after),
                twice=replace(twice, summary_tokens=counter.count_text(loss.summary.text)),
            )
        )
    return ScannedSession(
        thread_id=recorded.thread_id,
        label=_label(recorded, messages),
        messages=len(messages),
        compactions=tuple(compactions),
    )


def mark_kept(
    core: Core, recorded: RecordedConversation, scanned: ScannedSession
) -> ScannedSession:
    """Mark which lost facts stand in the ledger and index that refold shows at the same place."""
    messages = [one.message for one in recorded.messages]
    losses = {loss.number: loss for loss in _losses(recorded, messages)}
    last = max((compaction.number for compaction in scanned.compactions), default=0)
    numbers = [n for n, one in enumerate(recorded.summaries[:last], 1) if one.position]
    # The ledgers after the last one that is asked for are not made.
    made = dict(zip(numbers, ledgers_of(core, recorded, short=True), strict=False))
    marked: list[ScannedCompaction] = []
    for compaction in scanned.compactions:
        ledger = made.get(compaction.number)
        if ledger is not None:
            text, short = KeptText(ledger.text), KeptText(ledger.short_text)
            facts = zip(compaction.lost, losses[compaction.number].lost, strict=True)
            lost = tuple(
                replace(fact, kept=text.has(raw), kept_short=short.has(raw))
                for fact, (raw, _, _) in facts
            )
            compaction = replace(compaction, lost=lost, ledger_tokens=ledger.tokens)
        marked.append(compaction)
    return replace(scanned, compactions=tuple(marked))


def _losses(recorded: RecordedConversation, messages: Sequence[Message]) -> Iterator[_Loss]:
    """Yield what each compaction lost. A fact that left the context earlier does not count once more."""
    context: dict[Need, int] = {}
    start = 0
    for number, summary in enumerate(recorded.summaries, 1):
        stop = summary.position
        for place, message in enumerate(messages[start:stop], start):
            context.update((need, place) for need in needs_of(message))
        text, uses = KeptText(summary.text, summary.kept), LaterUses(messages, stop)
        needed = [need for need, place in context.items() if uses.needs(need, place)]
        missing = {need for need in context if not text.has(need)}
        counts: Counter[LossKind] = Counter(need.kind for need in needed)
        lost = [(need, context[need], uses.place(need)) for need in needed if need in missing]
        yield _Loss(summary, number, dict(counts), tuple(lost), text)
        context = {need: place for need, place in context.items() if need not in missing}
        start = stop


def _lost_fact(need: Need, position: int, needed_at: int | None, text: KeptText) -> LostFact:
    return LostFact(
        kind=need.kind,
        text=excerpt(telling_part(need, SHOWN_TEXT), SHOWN_TEXT),
        position=position,
        needed_at=needed_at,
        words_kept=round(text.share(need), 2),
    )


def _key(summary: RecordedSummary) -> str:
    """Return a name for a compaction without an id: copies have the same time, text and place."""
    words = (summary.text + summary.kept).encode("utf-8", "surrogatepass")
    at = summary.at.isoformat() if summary.at else summary.position
    return f"{at}:{sha256(words).hexdigest()[:16]}"


def _label(recorded: RecordedConversation, messages: Sequence[Message]) -> str:
    own = (user_words(said(m)) for m in messages if m.role == "user" and m.author == "person")
    text = recorded.label or next((words for words in own if words), "") or recorded.thread_id
    return beginning(redact(clean(text[:READ_FOR_LABEL])), SHOWN_LABEL, trim=True)
