"""Connections to a file are given out and taken back, even when memory runs out in between."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from refold.infrastructure.sqlite.connection_pool import SteadyPool

_testcapi = pytest.importorskip(
    "_testcapi", reason="this CPython has no hooks for failing allocations"
)

FAILING = range(1, 400)
"""Taking a connection and returning it makes fewer allocations than this."""


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[SteadyPool]:
    pool = SteadyPool(db_name=str(tmp_path / "log.db"))
    yield pool
    pool.close()


@pytest.mark.parametrize("is_writer", [True, False])
@pytest.mark.parametrize("count", [1, 3, 50])
def test_no_lock_stays_held_after_memory_ran_out(
    pool: SteadyPool, count: int, is_writer: bool
) -> None:
    failures = 0
    for allocation in FAILING:
        connection = None
        _testcapi.set_nomemory(allocation, allocation + count)
        try:
            connection = pool.get_connection(1, is_writer=is_writer)
        except MemoryError:
            failures += 1
        finally:
            _testcapi.remove_mem_hooks()
        if connection is not None:
            pool.put_connection(connection)
        with suppress(MemoryError):
            connection = pool.get_connection(1, is_writer=is_writer)
            pool.put_connection(connection)
    assert failures
    other = Thread(
        target=lambda: pool.put_connection(pool.get_connection(1, is_writer=is_writer)), daemon=True
    )
    other.start()
    other.join(5)
    assert not other.is_alive()
