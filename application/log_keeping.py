"""The port of the keeper: what is done with a log as a whole, outside of any conversation."""

from typing import Protocol


class LogKeeper(Protocol):
    """Keeps a log: its anchor, its repair, its backups, its sizes. May raise ``LogError``."""
