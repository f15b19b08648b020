"""Decisions that another writer makes stale."""

from pathlib import Path

from refold.application.errors import LogError

CONFLICTS = 20
"""How often a decision is made again when a writer without the lock was quicker."""


def overtaken(path: Path) -> LogError:
    """The error for a decision that was stale each time."""
    return LogError(f"{path}: {CONFLICTS} times another writer was quicker; nothing was stored")
