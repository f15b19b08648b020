"""``check_store`` finds each way in which a store can be broken, and passes the one on SQLite."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.testing.findings import CheckFailed
from refold.testing.store_checks import check_store
from tests.support.broken_stores import (
    Aliasing,
    Ascii,
    Buffered,
    Doubling,
    Failing,
    FirstKeyAlone,
    ForkingIntoItself,
    GlobalKeys,
    Hanging,
    Listing,
    Losing,
    Lowering,
    NeverErasing,
    NeverPinning,
    Normalising,
    NoSummaries,
    OneByOne,
    PresentAlone,
    RacingLog,
    Reordering,
    SkippingLog,
    Sorting,
    Stale,
    StaleVersion,
    Stripping,
    Swallowing,
    Talk,
    Trimming,
    Truncating,
    WithoutExtras,
    WithoutKeys,
    WithoutVersions,
    by_log,
    by_store,
    by_talk,
    elsewhere,
)
from tests.support.witness import SHM


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=SHM) as name:
        yield Path(name)


SEEN, KEPT = "appends are seen at once", "nothing is lost without closing"
TEXTS, BLOCKS = "texts are read back", "blocks are read back"
KEYS, VERSIONS = "keys are stored once", "conflicts are refused"
ALL_OR_NONE, APART = "several are stored all or none", "conversations are apart"
BROKEN: list[tuple[Callable[[Path], Any], str, str, str]] = [
    (by_talk(Losing), "durable", "Losing", SEEN),
    (by_talk(Buffered), "durable", "Buffered", KEPT),
    (elsewhere, "durable", "elsewhere", KEPT),
    (by_talk(Stale), "stale", "Stale", SEEN),
    (by_talk(StaleVersion), "stale", "StaleVersion", SEEN),
    (by_log(SkippingLog), "stale", "SkippingLog", SEEN),
    (by_talk(WithoutKeys), "keys", "WithoutKeys", KEYS),
    (by_talk(GlobalKeys), "keys", "GlobalKeys", KEYS),
    (by_talk(FirstKeyAlone), "keys", "FirstKeyAlone", "a key names one message"),
    (by_talk(WithoutVersions), "conflict", "WithoutVersions", VERSIONS),
    (by_log(RacingLog), "raises", "RacingLog", "one of several wins"),
    (by_log(RacingLog), "raises", "RacingLog", "writers lose nothing"),
    (by_talk(Truncating), "content", "Truncating", "large texts are whole"),
    (by_talk(Ascii), "content", "Ascii", TEXTS),
    (by_talk(Normalising), "content", "Normalising", TEXTS),
    (by_talk(Stripping), "content", "Stripping", TEXTS),
    (by_talk(Sorting), "content", "Sorting", BLOCKS),
    (by_talk(WithoutExtras), "content", "WithoutExtras", "extras are kept"),
    (by_talk(Reordering), "order", "Reordering", KEPT),
    (by_talk(OneByOne), "atomic", "OneByOne", ALL_OR_NONE),
    (by_talk(Swallowing), "atomic", "Swallowing", ALL_OR_NONE),
    (by_talk(Doubling), "duplicates", "Doubling", VERSIONS),
    (by_talk(Aliasing), "aliasing", "Aliasing", "nothing changes behind"),
    (by_store(Lowering), "apart", "Lowering", APART),
    (by_store(Trimming), "apart", "Trimming", APART),
    (by_talk(ForkingIntoItself), "apart", "ForkingIntoItself", "decisions last"),
    (by_store(Listing), "lists", "Listing", "lists are complete"),
    (by_talk(PresentAlone), "past", "PresentAlone", "the past stays"),
    (by_talk(NeverErasing), "erased", "NeverErasing", "erased is gone"),
    (by_talk(NeverPinning), "decisions", "NeverPinning", "decisions last"),
    (by_talk(NoSummaries), "compaction", "NoSummaries", "compactions last"),
    (by_talk(Failing), "raises", "Failing", TEXTS),
    (by_talk(Hanging), "timeout", "Hanging", KEPT),
]


@pytest.mark.parametrize(
    ("open_store", "rule", "name", "probe"),
    BROKEN,
    ids=[f"{c[2]}-{c[1]}-{n}" for n, c in enumerate(BROKEN)],
)
def test_what_is_broken_is_found(
    open_store: Callable[[Path], Any], rule: str, name: str, probe: str, folder: Path
) -> None:
    patience = 1.0 if name == "Hanging" else 30.0
    with pytest.raises(CheckFailed) as failed:
        check_store(folder / "agent.db", open=open_store, only={probe}, timeout=patience)
    assert rule in failed.value.rules, str(failed.value)


@pytest.mark.parametrize("talk", [Losing, WithoutKeys, Stripping])
def test_a_store_that_breaks_one_thing_is_found_by_the_whole_check(
    talk: type[Talk], folder: Path
) -> None:
    with pytest.raises(CheckFailed):
        check_store(folder / "agent.db", open=by_talk(talk))


@pytest.mark.slow
def test_the_store_on_a_server_passes(database: str) -> None:
    report = check_store(database)
    assert "a killed process lost nothing" in report.probes


def test_the_store_on_sqlite_passes(folder: Path) -> None:
    assert "a killed process lost nothing" in check_store(folder).probes
    assert (folder / "check.db").exists()


def test_a_callable_opens_the_store_as_another_process_would(folder: Path) -> None:
    check_store(lambda: refold.open(folder / "agent.db", encryption_key=b"k" * 32))


def test_what_is_stored_already_stays(folder: Path) -> None:
    with refold.open(folder / "agent.db") as memory:
        memory.conversation("mine").append({"role": "user", "content": "Hello."})
    check_store(str(folder / "agent.db"), only={KEPT, KEYS})
    with refold.open(folder / "agent.db") as memory:
        assert [one.text for one in memory.conversation("mine").messages()] == ["Hello."]


def test_a_log_in_memory_is_no_store() -> None:
    with pytest.raises(ValueError, match="ends with its memory"):
        check_store(":memory:")
