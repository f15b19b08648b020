"""The keeper of a log on SQLite: what is done with the file as a whole."""

from .store import SQLiteLog


class SQLiteKeeper:
    """A ``LogKeeper`` of one SQLite file."""

    def __init__(self, log: SQLiteLog) -> None:
        self._log = log
