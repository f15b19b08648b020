"""Use case: what code keeps word for word beside a summary, as part of making one."""

from collections.abc import Sequence
from typing import NamedTuple

from refold.domain.ledger.fitting import Costs, fit
from refold.domain.ledger.gathering import gather
from refold.domain.ledger.line import LedgerLine
from refold.domain.ledger.merging import merged

from .core import Core
from .loaded import LoadedConversation
from .plain_lines import conversation, plain_logger, raised
from .ports import SourceMessage
from .rendering.ledger import heading_text, ledger_line, ledger_overhead, ledger_text

logger = plain_logger(__name__)


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
            self._lines = merged(self._lines, gather(sources, self._policy.failure_characters))
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
        fitted = fit(self._lines, room_of_lines, costs, failures=self._policy.failures_kept)
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
