"""A log of 0.8.0, in which each rebuild read all compactions, goes on with bounded rebuilds."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import refold
from refold.domain.events import CompactionPerformed, CompactionRequested, Event
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.golden_files import golden_json, golden_text
from tests.support.golden_log import WINDOW, as_sql, contexts, from_sql
from tests.support.golden_scenes import REBUILT, add_rebuilt

OLD = 8
"""Rounds that 0.8.0 played. It rebuilt the summary in the fourth."""
NEW = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return from_sql(golden_text("rebuilt-by-0.8.0.sql"), tmp_path / "old.db")


def events_of(path: Path) -> Sequence[Event]:
    log = SQLiteLog(path)
    assert list(log.check()) == []
    events = [logged.event for logged in log.scan()]
    log.close()
    return events


def performed(events: Sequence[Event]) -> list[CompactionPerformed]:
    return [event for event in events if isinstance(event, CompactionPerformed)]


def rebuilt(events: Sequence[Event]) -> list[bool]:
    return [event.rebuilds for event in events if isinstance(event, CompactionRequested)]


def digests(path: Path) -> list[str]:
    found: list[str] = contexts(path, (REBUILT,))[REBUILT]["digests"]
    return found


def test_its_contexts_stay_the_same_when_it_goes_on(path: Path) -> None:
    kept = golden_json("rebuilt-by-0.8.0.contexts.json", dict)[REBUILT]["digests"]
    assert digests(path) == kept
    add_rebuilt(path, WINDOW, OLD, NEW)
    assert digests(path)[: len(kept)] == kept


def test_the_next_rebuild_has_the_texts_of_all_its_compactions(path: Path) -> None:
    old = performed(events_of(path))
    assert [event.earlier for event in old] == [()] * OLD
    add_rebuilt(path, WINDOW, OLD, NEW)
    events = events_of(path)
    places = [n for n, is_rebuilt in enumerate(rebuilt(events)) if is_rebuilt]
    assert places == [3, 8, 13, 18]
    first, second, _ = (performed(events)[place] for place in places[1:])
    ends = (first.earlier[0].start, first.earlier[-1].stop)
    assert ends == (0, performed(events)[7].coverage.stop)
    assert first.earlier[-1] == performed(events)[7].leaf
    assert second.earlier[0].start == 0
    assert len(second.earlier) <= len(first.earlier)
    kept = "\n".join(leaf.text for leaf in first.earlier)
    for event in old[4:]:
        assert event.leaf is not None
        assert event.leaf.text in kept


def test_without_snapshots_its_contexts_are_the_same(path: Path) -> None:
    add_rebuilt(path, WINDOW, OLD, NEW)
    bare = [x for x in as_sql(path).splitlines() if not x.startswith('INSERT INTO "stored_snap')]
    assert digests(from_sql("\n".join(bare), path.with_name("bare.db"))) == digests(path)


@pytest.mark.parametrize("position", [0, 70, 130])
def test_a_word_that_is_erased_from_it_is_in_no_event_and_no_context(
    path: Path, position: int
) -> None:
    word = f"src/part_{position // 2}.py"
    add_rebuilt(path, WINDOW, OLD, NEW)
    assert any(word in str(event.earlier) for event in performed(events_of(path)))
    with refold.open(path, window=WINDOW, scrub_megabytes=0) as memory:
        conversation = memory.conversation(REBUILT)
        assert conversation.erase([position], "by request").complete
        version = conversation.version
        shown = [conversation.context(at=at).messages for at in range(1, version + 1)]
        assert word not in str(shown)
        assert f"src/part_{NEW * 4 - 1}.py" in str(shown[-1])
    assert not any(word in str(event) for event in events_of(path))
    add_rebuilt(path, WINDOW, NEW, NEW + 6)
    assert not any(word in str(event) for event in events_of(path))
