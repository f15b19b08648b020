"""What is left of a conversation in its context: by fate, and of the user's own words."""

from collections import Counter
from typing import get_args

from refold.application.contexts import context_at
from refold.application.core import Core, Extras
from refold.application.explaining import MessageFate, explain
from refold.application.loaded import LoadedConversation
from refold.application.projections.seen import Fate
from refold.application.reading import stored_messages
from refold.domain.messages import said, text_of
from refold.domain.value import Value

COVERED: tuple[Fate, ...] = ("summarised", "omitted")


class Remains(Value, frozen=True):
    """What the context still holds of all that was said."""

    messages: dict[Fate, int]
    """How many messages have which fate."""
    summary_tokens: int
    """The size of the active summary with the ledger beside it; 0 without one."""
    ledger_lines: int
    """Lines that the ledger shows, pinned texts included."""
    user_words: float
    """The share of what users wrote, by characters, that stands in the context word for word: all
    of a message that is shown, of a covered one each line that is in the summary or the ledger."""


def remains(core: Core, thread_id: str) -> Remains:
    """What is left now."""
    fates = explain(core, thread_id)
    loaded = core.log.load(thread_id)
    summary, pins = loaded.window.summary, loaded.window.pins
    counts = Counter(fate.fate for fate in fates)
    return Remains(
        messages={fate: counts[fate] for fate in get_args(Fate) if counts[fate]},
        summary_tokens=summary.tokens if summary else 0,
        ledger_lines=(summary.ledger_shown if summary else 0) + len(pins),
        user_words=_user_words(core, loaded, fates),
    )


def _user_words(core: Core, loaded: LoadedConversation, fates: tuple[MessageFate, ...]) -> float:
    covered = {fate.position for fate in fates if fate.fate in COVERED}
    standing = _opening(core, loaded) if covered else ""
    written = kept = 0
    for stored in stored_messages(core, loaded.thread_id):
        if stored.message.role != "user":
            continue
        for line in said(stored.message).splitlines():
            weight = len("".join(line.split()))
            written += weight
            if stored.position not in covered or line.strip() in standing:
                kept += weight
    return round(kept / written, 4) if written else 1.0


def _opening(core: Core, loaded: LoadedConversation) -> str:
    """The first turn of the context, where summary and ledger stand."""
    messages = context_at(core, loaded.thread_id, Extras(), loaded.state.version).messages
    return text_of(messages[0]) if messages else ""
