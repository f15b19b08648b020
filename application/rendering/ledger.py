"""The ledger as it is rendered after the summary: data, each line with its source."""

from collections.abc import Sequence

from refold.application.projections.window import PinnedText
from refold.domain.ledger.line import LedgerLine


def ledger_text(lines: Sequence[LedgerLine], pins: Sequence[PinnedText]) -> str:
    """The block that stands after the summary; empty where there is nothing to keep."""
    del lines, pins
    return ""
