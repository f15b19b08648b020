"""Run tests that are written for log files on a PostgreSQL server: ``pytest --store=postgres``.

Each path stands for a database of its own. Tests of what only files have are left out by name.
"""

import re
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.files import log_place
from refold.infrastructure.postgres.connections import Address, Store, from_text
from refold.infrastructure.postgres.log import PostgresLog
from refold.infrastructure.postgres.sealing import open_state, seal_state

from .postgres import shared_server

ON_BOTH = frozenset(
    {
        "test_check_store.py",
        "test_compacting_on_demand.py",
        "test_concurrency.py",
        "test_erasing.py",
        "test_erasing_and_forks.py",
        "test_erasing_conversations.py",
        "test_expanding.py",
        "test_forks.py",
        "test_growing_sessions.py",
        "test_old_places.py",
        "test_log_damage.py",
        "test_log_reading.py",
        "test_log_snapshots.py",
        "test_log_storing.py",
        "test_memory_tool.py",
        "test_model_edits.py",
        "test_originals.py",
        "test_owner_scopes.py",
        "test_owners.py",
        "test_pins_and_undo.py",
        "test_recalling_topics.py",
        "test_size_pictures.py",
        "test_standing_recall.py",
        "test_time_travel.py",
        "test_turns.py",
        "test_versions_and_times.py",
    }
)
"""Files whose tests hold for both stores."""
OF_FILES = frozenset(
    {
        # They look into the file of a log, or change its rows by their numbers.
        "test_the_file_waits_for_the_disk_at_every_commit",
        "test_a_snapshot_that_does_not_fit_the_log_is_not_used[empty_snapshot]",
        "test_the_check_names_the_first_event_that_is_wrong_and_goes_on[null]",
        "test_the_check_notices_an_index_of_keys_that_differs",
        "test_a_live_message_is_gone_from_every_file_at_once",
        "test_nothing_is_left_of_an_erased_conversation",
        "test_nothing_is_left_in_files_that_a_user_moved_and_linked",
        "test_an_event_that_was_changed_is_not_copied",
        "test_erased_text_is_in_no_fork_made_before_or_after",
        "test_a_death_leaves_it_erased_in_all_copies_or_in_none[True]",
        "test_whether_a_message_is_archived_stands_at_the_message",
        # It opens the path in a process of its own.
        "test_the_store_on_sqlite_passes",
    }
)
"""Tests in these files that only a file of SQLite can pass."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only files have."""
    if any("::" in argument for argument in config.args):
        return
    kept = [i for i in items if i.path.name in ON_BOTH and i.name not in OF_FILES]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


_databases: dict[str, str] = {}
_threads = threading.Lock()


def database_for(path: object) -> str:
    """Return the address of the database that stands for a path."""
    given = str(path)
    if log_place.is_address(given):
        return given
    name = given if given == ":memory:" else str(Path(given).absolute())
    with _threads:
        if name not in _databases:
            _databases[name] = shared_server().new_database()
        return _databases[name]


def put_logs_on_postgres(patch: pytest.MonkeyPatch) -> None:
    """Let every log that is opened by its path be one on the server."""

    def real_place(path: Any) -> Any:
        return path if str(path) == ":memory:" else database_for(path)

    def new_log(cls: type[SQLiteLog], path: Any, **options: Any) -> object:
        if str(path) == ":memory:":
            return object.__new__(cls)
        for only_for_files in ("anchor", "checkpoints"):
            options.pop(only_for_files, None)
        return PostgresLog(Address.of(database_for(path)), **options)

    patch.setattr(log_place, "real_place", real_place)
    patch.setattr(SQLiteLog, "__new__", new_log)


def drop_databases() -> None:
    """Delete the databases that stand for paths."""
    with _threads:
        places = list(_databases.values())
        _databases.clear()
    for place in places:
        shared_server().drop(place)


_is_on = False


def is_on_postgres() -> bool:
    """Return whether paths stand for databases now."""
    return _is_on


@contextmanager
def store_of(path: object) -> Generator[Store]:
    """Open the tables of the database that stands for a path."""
    with closing(Store(Address.of(database_for(path)))) as store:
        yield store


def rows_on_postgres(path: object, table: str) -> list[tuple[str, int, str, bytes]]:
    """All rows of a table, by stream and version, as a file would have them."""
    sign = "-" if table == "stored_snapshots" else ""
    with store_of(path) as store:
        found = store.rows(
            f"SELECT e.originator_id, e.originator_version, e.topic, e.state, k.key FROM {{{table}}} e "
            "LEFT JOIN {payload_keys} k ON k.originator_id = e.originator_id "
            f"AND k.originator_version = {sign}e.originator_version "
            "ORDER BY e.originator_id, e.originator_version"
        )
    return [
        (
            from_text(stream),
            version,
            topic,
            open_state(from_text(stream), int(f"{sign}{version}"), state, key),
        )
        for stream, version, topic, state, key in found
    ]


def execute_on_postgres(path: object, statement: str, values: Sequence[object]) -> None:
    """Change the tables behind the log's back, by a statement that is written for a file."""
    for table in ("stored_events", "stored_snapshots", "message_keys"):
        statement = re.sub(rf"\b{table}\b", f"{{{table}}}", statement)
    with store_of(path) as store:
        store.run(statement.replace("?", "%s"), list(values))


def set_state_on_postgres(path: object, version: int, state: object, table: str) -> None:
    """Put other bytes into the rows of a version, sealed by a new key."""
    assert isinstance(state, bytes)
    sign = -1 if table == "stored_snapshots" else 1
    with store_of(path) as store:
        streams = store.rows(
            f"SELECT originator_id FROM {{{table}}} WHERE originator_version = %s", (version,)
        )
        for (stream,) in streams:
            sealed = seal_state(from_text(stream), sign * version, state)
            for one, column, new, at in (
                (table, "state", sealed.state, version),
                ("payload_keys", "key", sealed.key, sign * version),
            ):
                store.run(
                    f"UPDATE {{{one}}} SET {column} = %s WHERE originator_id = %s AND originator_version = %s",
                    (new, stream, at),
                )


@pytest.fixture(scope="module", autouse=True)
def _on_postgres() -> Iterator[None]:
    global _is_on
    with pytest.MonkeyPatch.context() as patch:
        put_logs_on_postgres(patch)
        _is_on = True
        yield
        _is_on = False
    drop_databases()
