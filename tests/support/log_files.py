"""Log files for tests: filled by the use cases, looked into and damaged with plain SQL."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.conversation.appending import append
from refold.application.runtime.core import Core
from refold.infrastructure.event_store.store import SQLiteLog

from .fake_ports import core_of
from .on_postgres import (
    execute_on_postgres,
    is_on_postgres,
    rows_on_postgres,
    set_state_on_postgres,
)

Row = tuple[str, int, str, bytes]
"""Stream, version, name, stored bytes."""


def say(log: SQLiteLog, *words: str, thread_id: str = "t", key: str | None = None) -> None:
    """Append messages of the user, one by one."""
    core = core_of(log)
    for word in words:
        append(core, thread_id, {"role": "user", "content": word}, key=key)


def log_of(path: Path, *words: str, thread_id: str = "t") -> Path:
    """A closed log in which these were said, each under its own key."""
    log = SQLiteLog(path)
    for number, word in enumerate(words):
        say(log, word, thread_id=thread_id, key=f"{thread_id}-{number}")
    log.close()
    return path


def compacted_log(path: Path, turns: int = 30) -> Path:
    """A closed log of a conversation that was compacted, so that it has a snapshot."""
    log = SQLiteLog(path)
    with_chat(core_of(log), lambda conversation: _fill(conversation, turns))
    log.close()
    return path


def _fill(conversation: ConversationMemory, turns: int) -> None:
    for number in range(turns):
        words = f"{number} " + "word " * 20
        conversation.append(
            [{"role": "user", "content": words}, {"role": "assistant", "content": words}]
        )
    assert conversation.compact().outcome == "performed"
    conversation.append({"role": "user", "content": "after"})


def with_chat(core: Core, act: Callable[[ConversationMemory], None]) -> None:
    """Act on conversation ``t`` with a runner that is closed afterwards."""
    runner = Runner()
    try:
        act(ConversationMemory(core, "t", runner))
    finally:
        runner.close()


def words_of(log: SQLiteLog, thread_id: str = "t") -> list[str]:
    """What the messages of a conversation say, as the context would have them."""
    return [str(entry.message.content) for entry in log.load(thread_id).window.entries]


def rows(path: Path, table: str = "stored_events") -> list[Row]:
    """All rows of a table, by stream and version."""
    if is_on_postgres():
        return rows_on_postgres(path, table)
    with closing(sqlite3.connect(path)) as connection:
        found: list[Row] = connection.execute(
            f"SELECT originator_id, originator_version, topic, state FROM {table} "
            "ORDER BY originator_id, originator_version"
        ).fetchall()
        return found


def execute(path: Path, sql: str, values: Sequence[object] = ()) -> None:
    """Change a file behind the log's back."""
    if is_on_postgres():
        execute_on_postgres(path, sql, values)
        return
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, values)


def set_state(path: Path, version: int, state: object, table: str = "stored_events") -> None:
    """Put other bytes into a row."""
    if is_on_postgres():
        set_state_on_postgres(path, version, state, table)
        return
    execute(path, f"UPDATE {table} SET state=? WHERE originator_version=?", (state, version))


def flipped(data: bytes, at: int) -> bytes:
    """The bytes with one bit turned over."""
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
