"""Files of LangGraph's ``SqliteSaver`` as transcripts. The framework is imported when a file has checkpoints."""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refold.application.conversation.transcripts import Skipped, Transcript
from refold.application.errors import LogBusy, TranscriptError
from refold.infrastructure.sqlite.read_only import ReadOnlyPlace
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite

if TYPE_CHECKING:
    from .langgraph_checkpoints import Decoder, SavedState

TABLES = {"checkpoints", "writes"}
_ROWS = """
SELECT thread_id, checkpoint_id, type, checkpoint FROM checkpoints WHERE checkpoint_ns = ''
"""
_WRITES = """
SELECT type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel = 'messages' ORDER BY task_id, idx
"""
_OF_SUBGRAPHS = "SELECT count(*) FROM checkpoints WHERE checkpoint_ns != ''"


def read_checkpoint_file(path: Path) -> Transcript:
    """Read the threads of a file. It is never changed, and no file is left in its folder.

    Commits that are in its write-ahead log only are read as well.

    Raises:
        TranscriptError: the file has no checkpoints, is damaged or in use, or LangGraph is not installed.
    """
    skipped: list[Skipped] = []
    with _opened(path) as connection:
        _require_tables(path, connection)
        conversations_of, decoder = _framework(path)
        found = conversations_of(_states(connection, decoder, skipped))
        (subgraphs,) = connection.execute(_OF_SUBGRAPHS).fetchone()
    skipped += [Skipped(line=None, reason="checkpoint of a subgraph")] * subgraphs
    silent = [one for one in found if not one.messages]
    skipped += [
        Skipped(line=None, reason="thread without messages", detail=one.thread_id) for one in silent
    ]
    return Transcript(
        source=str(path),
        format="langgraph",
        conversations=tuple(one for one in found if one.messages),
        skipped=tuple(skipped),
    )


@contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection]:
    journal = Path(f"{path}-journal")
    try:
        if journal.exists() and journal.stat().st_size:
            raise TranscriptError(
                f"{path} was left in the middle of a write: open it with its own program first"
            )
        place = ReadOnlyPlace(path)
        with closing(open_sqlite(":memory:" if place.in_memory else place.uri, uri=True)) as opened:
            if place.in_memory:
                opened.deserialize(place.content())
            opened.execute("PRAGMA query_only=ON")
            yield opened
        place.check()
    except LogBusy:
        raise TranscriptError(f"{path} was written to meanwhile: import it again") from None
    except (sqlite3.Error, OSError) as error:
        raise TranscriptError(
            f"{path} cannot be read ({error}). If it is damaged, `sqlite3 FILE .recover` saves what is left."
        ) from error


def _require_tables(path: Path, connection: sqlite3.Connection) -> None:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    names = {str(name) for (name,) in rows}
    if names >= TABLES:
        return
    shown = ", ".join(ascii(name)[1:-1] for name in sorted(names)[:6]) or "none"
    raise TranscriptError(
        f"{path} is a SQLite file without conversations: LangGraph's checkpoints are in the tables "
        f"{' and '.join(sorted(TABLES))}, and its tables are: {shown}."
    )


def _framework(path: Path) -> tuple[Any, "Decoder"]:
    try:
        from .langgraph_checkpoints import Decoder, conversations_of
    except ImportError as error:
        raise TranscriptError(
            f"{path} has checkpoints of LangGraph, and langgraph is not installed: pip install 'refold[langchain]'"
        ) from error
    return conversations_of, Decoder()


def _states(
    connection: sqlite3.Connection, decoder: "Decoder", skipped: list[Skipped]
) -> "Iterator[SavedState]":
    for thread_id, checkpoint_id, kind, checkpoint in connection.execute(_ROWS):
        try:
            writes = connection.execute(_WRITES, (thread_id, checkpoint_id))
            yield decoder.state(str(thread_id), kind, checkpoint, writes)
        except sqlite3.Error:
            raise
        except (
            Exception
        ) as error:  # A value of unknown origin: its decoder raises errors of many kinds.
            detail = f"{checkpoint_id}: {error}"[:160]
            reason = "checkpoint that cannot be read"
            skipped.append(Skipped(line=None, reason=reason, detail=detail, damage=True))
