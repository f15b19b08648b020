"""Use case: what code keeps word for word beside a summary, as part of making one."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from refold.domain.ledger.fitting import Costs, fit
from refold.domain.ledger.gathering import gather
from refold.domain.ledger.line import LedgerLine
from refold.domain.ledger.merging import merged

from .core import Core
from .loaded import LoadedConversation
from .ports import SourceMessage
from .rendering.ledger import kind_heading, ledger_line, ledger_overhead, ledger_text

logger = logging.getLogger(__name__)


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


def kept_ledger(
    core: Core, before: LoadedConversation, covered: Sequence[SourceMessage], room: int
) -> KeptLedger:
    """The ledger after ``covered`` left the context, at most ``room`` tokens of it shown.

    Without room nothing is shown, and what is known is kept for the next time; so it is where the
    settings turn the ledger off.
    """
    policy, count = core.settings.policy, core.counter.count_text
    if not policy.ledger_tokens or not policy.ledger_share:
        return KeptLedger(before.window.summary.ledger if before.window.summary else ())
    summary = before.window.summary
    known = summary.ledger if summary else ()
    try:
        fresh = gather(((s.position, s.message) for s in covered), policy.failure_characters)
        lines = merged(known, fresh)
    except Exception:  # A fault in recognising costs neither the compaction nor what is kept.
        logger.exception("conversation %r: nothing new for the ledger", before.thread_id)
        lines = known
    costs = Costs(
        lambda line: count(ledger_line(line) + "\n"), lambda kind: count(kind_heading(kind))
    )
    fitted = fit(lines, room - ledger_overhead(count), costs, failures=policy.failures_kept)
    shown = fitted.shown
    while shown:
        text = ledger_text(fitted.lines[:shown], ())
        tokens = count(text) + ledger_overhead(count)
        if tokens <= room:
            return KeptLedger(fitted.lines, shown, tokens, text)
        shown -= 1
    return KeptLedger(fitted.lines)
