"""A log of format 1, kept as it was written once: its contexts are the same bytes for ever."""

from pathlib import Path
from typing import Any

import pytest

from refold.domain.events import CompactionFailed, CompactionPerformed, ToolContentOffloaded
from refold.infrastructure.log.store import SQLiteLog
from tests.support.golden_files import golden_json, golden_text
from tests.support.golden_log import THREADS, as_sql, contexts, from_sql, write_log


@pytest.fixture(scope="module")
def written_now(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("golden") / "now.db"
    write_log(path)
    return path


@pytest.fixture(scope="module")
def kept(written_now: Path) -> Path:
    """The log that was written once."""
    return from_sql(golden_text("log-1.sql", as_sql(written_now)), written_now.with_name("kept.db"))


@pytest.fixture(scope="module")
def expected(written_now: Path) -> Any:
    return golden_json("log-1.contexts.json", contexts(written_now))


def same_bytes(found: Any, wanted: Any) -> None:
    for thread_id in THREADS:
        assert found[thread_id]["newest"] == wanted[thread_id]["newest"]
        pairs = zip(found[thread_id]["digests"], wanted[thread_id]["digests"], strict=True)
        assert [v for v, (now, then) in enumerate(pairs) if now != then] == [], thread_id


def test_the_kept_log_is_whole(kept: Path) -> None:
    log = SQLiteLog(kept)
    assert list(log.check()) == []
    assert len(list(log.scan())) > 40
    log.close()


def test_the_kept_log_holds_what_its_contexts_should_depend_on(kept: Path) -> None:
    log = SQLiteLog(kept)
    kinds = [type(logged.event) for logged in log.scan()]
    log.close()
    assert kinds.count(CompactionPerformed) == 3
    assert {ToolContentOffloaded, CompactionFailed} <= set(kinds)


def test_the_contexts_of_the_kept_log_are_the_golden_ones_at_every_version(
    kept: Path, expected: Any
) -> None:
    same_bytes(contexts(kept), expected)


def test_without_snapshots_the_contexts_are_the_same(kept: Path, expected: Any) -> None:
    sql = [
        x for x in as_sql(kept).splitlines() if not x.startswith('INSERT INTO "stored_snapshots"')
    ]
    bare = from_sql("\n".join(sql), kept.with_name("bare.db"))
    assert len(as_sql(bare)) < len(as_sql(kept))
    same_bytes(contexts(bare), expected)


def test_the_same_conversations_written_again_give_the_same_contexts(
    written_now: Path, tmp_path: Path
) -> None:
    write_log(tmp_path / "again.db")
    same_bytes(contexts(tmp_path / "again.db"), contexts(written_now))
