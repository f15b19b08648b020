"""Recall without an index: finds nothing."""

from refold.application.recall.parts import RecallParts
from refold.infrastructure.recall.index import SQLiteRecallIndex


def no_recall() -> RecallParts:
    """Parts that find nothing."""
    return RecallParts(index=SQLiteRecallIndex())
