"""Vectors cannot be folded anew to compare them with: every changed one is found by its checksum."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

import refold
from tests.support.fake_embedders import DigestEmbedder

SAID = tuple(f"Step {number} is done." for number in range(30))
EMBEDDER = DigestEmbedder(dimension=256)
"""Of vectors that fill the pages of the file."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The vectors of some messages."""
    with refold.open(tmp_path / "agent.db", embedder=EMBEDDER) as memory:
        memory.conversation("t").append([{"role": "user", "content": text} for text in SAID])
        progress = memory.embed(30.0)
        assert progress is not None
        assert progress.done == len(SAID)
    return tmp_path / "agent.vectors.db"


def vector_rows_in_bytes(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as other:
        return other.execute(
            "SELECT v.id, name, dimension, CAST(digest AS BLOB), vector, checksum "
            "FROM vectors AS v LEFT JOIN models AS m ON m.id = v.model ORDER BY v.id"
        ).fetchall()


CHANGES = {
    "a vector": "UPDATE vectors SET vector = zeroblob(length(vector)) WHERE id = 2",
    "its length": "UPDATE vectors SET vector = x'00' WHERE id = 2",
    "its type": "UPDATE vectors SET vector = 'text' WHERE id = 2",
    "its text": "UPDATE vectors SET digest = 'another' WHERE id = 2",
    "bytes that are no text": "UPDATE vectors SET digest = CAST(x'ff' AS TEXT) WHERE id = 2",
    "its model": "UPDATE vectors SET model = 7 WHERE id = 2",
    "a checksum": "UPDATE vectors SET checksum = 7 WHERE id = 2",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_verify_finds_a_damaged_vector_and_its_repair_has_it_made_again(
    tmp_path: Path, place: Path, change: str
) -> None:
    with closing(sqlite3.connect(place)) as other, other:
        other.execute(change)
    before = vector_rows_in_bytes(place)
    with refold.open(tmp_path / "agent.db") as memory:  # Whoever verifies needs no embedder.
        (found,) = memory.verify().damage
        assert (found.place, found.kind) == ("vectors", "differs")
        assert "vector 2" in found.detail
        assert "refold verify --repair" in found.remedy
        assert vector_rows_in_bytes(place) == before
        repaired = memory.verify(repair=True)
        assert repaired.ok
        assert "vectors (1 damaged)" in repaired.repaired[0]
    with refold.open(tmp_path / "agent.db", embedder=EMBEDDER) as memory:
        progress = memory.embed(30.0)
        assert progress is not None
        assert (progress.done, progress.total) == (30, 30)
        assert memory.verify().ok


@pytest.mark.slow
def test_no_bit_of_the_vectors_changes_unnoticed(tmp_path: Path, place: Path) -> None:
    with closing(sqlite3.connect(place)) as other:
        other.execute("PRAGMA journal_mode=DELETE")
    whole, right, chance = place.read_bytes(), vector_rows_in_bytes(place), Random(4)
    kinds = Counter[str]()
    for _ in range(60):
        at = chance.randrange(len(whole) * 8)
        changed = bytearray(whole)
        changed[at // 8] ^= 1 << at % 8
        place.write_bytes(bytes(changed))
        with refold.open(tmp_path / "agent.db") as memory:
            found = memory.verify().damage
            kinds["found" if found else "harmless"] += 1
            assert found or vector_rows_in_bytes(place) == right
            assert memory.verify(repair=True).ok
        for beside in tmp_path.glob("agent.vectors.db-*"):
            beside.unlink()
    assert kinds["found"] > 15
