"""Use case: what code keeps word for word beside a summary, as part of making one."""

from collections.abc import Sequence
from typing import NamedTuple

from refold.domain.ledger.line import LedgerLine

from .core import Core
from .loaded import LoadedConversation
from .ports import SourceMessage


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
    """The ledger after ``covered`` left the context, at most ``room`` tokens of it shown."""
    del core, before, covered, room
    return KeptLedger()
