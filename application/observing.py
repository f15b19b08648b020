"""Telling observers what happened: what they raise is logged and goes no further."""

import logging

from .core import Core
from .results import CompactionResult

logger = logging.getLogger(__name__)


def tell_compaction(core: Core, result: CompactionResult) -> None:
    """Tell every observer how a compaction, an undoing or a ladder without one ended."""
    for observer in core.observers:
        try:
            observer.compaction_ended(result)
        except Exception:  # An observer of the user's own may raise anything.
            logger.exception("an observer failed")
