"""Old payloads in less: everything reads as before, and what was erased is in no dictionary."""

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.errors import LogDamaged
from refold.domain.errors import InvalidSetting
from refold.infrastructure.event_store import encodings as compression
from refold.infrastructure.event_store.encodings import Encodings
from refold.infrastructure.event_store.encryption import Keys
from refold.infrastructure.event_store.envelope import (
    Encoder,
    Place,
    PlainHead,
    parse_frame,
    unseal,
)
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.maintenance import compressed_payloads as compressing
from tests.support.command_line import Refold
from tests.support.log_files import execute, flipped, rows, set_state

KEY = bytes(range(32))
SECRET = "the vault opens with tulip-4711-narcissus"
COUNT = 60
TOLD = range(6, 14)
"""Where the secret is said: so often that a dictionary has some of it."""

keyed = pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])


def said(number: int) -> dict[str, Any]:
    secret = f"{SECRET}. " * 3 if number in TOLD else ""
    words = " ".join(sha256(f"{number} {n}".encode()).hexdigest()[:6] for n in range(40))
    text = f"Step {number}: {secret}I look at the file src/parser.py and run the tests. {words}"
    return {"role": "user" if number % 2 == 0 else "assistant", "content": text}


def fill(path: Path, key: bytes | None = None) -> Path:
    with refold.open(path, encryption_key=key) as memory:
        conversation = memory.conversation("t")
        conversation.append([said(number) for number in range(COUNT)])
        assert conversation.compact().outcome == "performed"
        conversation.append(said(COUNT))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return fill(tmp_path / "agent.db")


def encodings_of(path: Path) -> list[str]:
    return [parse_frame(state).encoding for *_, state in rows(path)]


def links_of(path: Path) -> list[str]:
    return [parse_frame(state).link() for *_, state in rows(path)]


def everything(path: Path, key: bytes | None = None) -> list[object]:
    with refold.open(path, encryption_key=key) as memory:
        conversation = memory.conversation("t")
        contexts = [
            conversation.context(at=v).for_anthropic()
            for v in range(1, conversation.version + 1, 7)
        ]
        return [*contexts, *(m.message.content for m in conversation.messages())]


def dictionaries_in(path: Path) -> list[tuple[int, bytes]]:
    with closing(sqlite3.connect(path)) as connection:
        found: list[tuple[int, bytes]] = connection.execute(
            "SELECT id, content FROM dictionaries"
        ).fetchall()
        return found


class OneDictionary:
    """A shelf of which nothing is asked."""

    def dictionary(self, number: int, encoder: Encoder) -> bytes:
        raise AssertionError((number, encoder))

    def fingerprints(self) -> frozenset[str]:
        return frozenset()

    def plain_head(self, stream: str, encoder: Encoder) -> PlainHead | None:
        raise AssertionError((stream, encoder))

    def newest_key(self) -> str | None:
        return None

    def refuse_unnoted(self) -> None:
        raise AssertionError


def plain_dictionaries(path: Path, key: bytes | None = None) -> list[bytes]:
    encoder = Encodings(Keys(key), OneDictionary())
    return [
        unseal(Place("", number, "dictionary"), content, encoder).payload
        for number, content in dictionaries_in(path)
    ]


@pytest.mark.slow(but="plain")
@keyed
def test_what_is_old_takes_less_and_everything_reads_as_before(
    tmp_path: Path, key: bytes | None
) -> None:
    path = fill(tmp_path / "a.db", key)
    before, links, size = everything(path, key), links_of(path), sum(len(r[3]) for r in rows(path))
    with refold.open(path, encryption_key=key) as memory:
        done = memory.compress()
        assert memory.verify().ok
    assert done.events > 30
    assert done.bytes_after < done.bytes_before * 0.8
    assert sum(len(r[3]) for r in rows(path)) == size - done.bytes_before + done.bytes_after
    assert (everything(path, key), links_of(path)) == (before, links)
    last = "" if key is None else f",aes:{Keys(key).fingerprint}"
    assert f"zstd:{done.dictionary}{last}" in encodings_of(path)
    with refold.open(path, encryption_key=key) as memory:
        again = memory.compress()
    assert again.events == 0


@pytest.mark.slow
def test_what_is_live_and_what_is_new_stays_as_it_is(path: Path) -> None:
    with refold.open(path) as memory:
        memory.compress()
        memory.conversation("t").append(said(COUNT + 1))
    found = encodings_of(path)
    assert found[-1] == ""
    compressed = [version for version, encoding in enumerate(found, 1) if encoding]
    with closing(SQLiteLog(path)) as log:
        state = log.load("t").state
    assert compressed
    assert max(compressed) < state.live_from


def test_any_number_of_newest_events_can_be_kept(path: Path) -> None:
    with refold.open(path) as memory:
        assert memory.compress(keep=10**30).events == 0


@pytest.mark.slow
def test_the_newest_events_can_be_kept_as_they_are(path: Path) -> None:
    with refold.open(path) as memory:
        memory.compress(keep=len(rows(path)) - 10)
    assert [v for v, encoding in enumerate(encodings_of(path), 1) if encoding][-1] <= 10


def test_a_conversation_without_an_old_part_is_left_alone(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db") as memory:
        memory.conversation("t").append([said(number) for number in range(COUNT)])
        assert memory.compress().events == 0
    assert set(encodings_of(tmp_path / "a.db")) == {""}


@pytest.mark.slow
def test_few_payloads_are_compressed_without_a_dictionary(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "FEWEST_SAMPLES", 1_000)
    before = everything(path)
    with refold.open(path) as memory:
        assert memory.compress().dictionary is None
        assert memory.verify().ok
    assert "zstd" in encodings_of(path)
    assert everything(path) == before


class Stopped(BaseException):
    """The process ends here."""


@pytest.mark.slow(but="plain")
@keyed
def test_stopped_anywhere_the_log_is_whole_and_the_next_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: bytes | None
) -> None:
    path = fill(tmp_path / "a.db", key)
    before, written = everything(path, key), 0
    rewrite = compressing.LogCompressor._rewrite_one  # pyright: ignore[reportPrivateUsage]

    def dies(self: Any, *arguments: Any) -> Any:
        nonlocal written
        written += 1
        if written == 17:
            raise Stopped
        return rewrite(self, *arguments)

    monkeypatch.setattr(compressing, "BATCH", 5)
    monkeypatch.setattr(compressing.LogCompressor, "_rewrite_one", dies)
    with refold.open(path, encryption_key=key) as memory, pytest.raises(Stopped):
        memory.compress()
    assert sum("zstd" in encoding for encoding in encodings_of(path)) == 15
    assert everything(path, key) == before
    with refold.open(path, encryption_key=key) as memory:
        assert memory.compress().events > 15
        assert memory.verify().ok
    assert everything(path, key) == before
    assert len(dictionaries_in(path)) == 1


@pytest.mark.slow
@keyed
def test_what_was_erased_is_in_no_dictionary_and_in_no_file(
    tmp_path: Path, key: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What training picks is chance. This takes everything, so that each sample can be seen.
    monkeypatch.setattr(compressing, "train_dictionary", b"".join)
    path = fill(tmp_path / "a.db", key)
    with refold.open(path, encryption_key=key) as memory:
        first = memory.compress().dictionary
        conversation = memory.conversation("t")
        assert any(b"tulip" in dictionary for dictionary in plain_dictionaries(path, key))
        for position in TOLD:
            conversation.erase(position)
        assert memory.verify().ok
    numbers = [number for number, _ in dictionaries_in(path)]
    assert first not in numbers
    assert not any(b"tulip" in d or b"vault" in d for d in plain_dictionaries(path, key))
    assert [f.name for f in path.parent.iterdir() if b"tulip-4711" in f.read_bytes()] == []
    with refold.open(path, encryption_key=key) as memory:
        found = [str(m.message.content) for m in memory.conversation("t").messages()]
        assert memory.verify().ok
    assert [n for n, text in enumerate(found) if n not in TOLD and text != said(n)["content"]] == []


@pytest.mark.slow
def test_an_erasure_without_dictionaries_makes_none(path: Path) -> None:
    with refold.open(path) as memory:
        memory.conversation("t").erase(6)
    assert dictionaries_in(path) == []


@pytest.mark.slow
def test_a_dictionary_that_is_trained_while_something_is_erased_is_trained_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, trained = compression.train_dictionary, list[int]()

    def meanwhile(samples: list[bytes]) -> bytes | None:
        trained.append(len(samples))
        if len(trained) == 1:
            with refold.open(path) as other:
                for position in TOLD:
                    other.conversation("t").erase(position)
        return train(samples)

    monkeypatch.setattr(compressing, "train_dictionary", meanwhile)
    with refold.open(path) as memory:
        memory.compress()
    assert len(trained) == 2
    assert not any(b"tulip" in d for d in plain_dictionaries(path))


def break_dictionary(path: Path) -> None:
    ((number, content),) = dictionaries_in(path)
    execute(path, "UPDATE dictionaries SET content=? WHERE id=?", (flipped(content, 900), number))


def lose_dictionary(path: Path) -> None:
    execute(path, "DELETE FROM dictionaries")


@pytest.mark.slow(but="lose_dictionary")
@pytest.mark.parametrize("damage", [break_dictionary, lose_dictionary])
def test_a_damaged_dictionary_is_damage_that_verify_tells_and_that_reading_refuses(
    path: Path, damage: Any
) -> None:
    with refold.open(path) as memory:
        done = memory.compress()
    damage(path)
    with refold.open(path) as memory:
        (found,) = [d for d in memory.verify().damage if d.place == "log"]
        assert (found.kind, found.thread_id, found.version) == ("dictionary", "", 0)
        assert f"{done.events} compressed events" in found.detail
        assert f"dictionary {done.dictionary} is" in found.detail
        with pytest.raises(LogDamaged, match="its dictionary"):
            memory.conversation("t").messages(0, 5)
        # What is live needs no dictionary.
        assert memory.conversation("t").context().for_anthropic()


@pytest.mark.slow
def test_a_changed_payload_is_damage_and_is_left_for_verify(path: Path) -> None:
    with refold.open(path) as memory:
        memory.compress()
    row = rows(path)[8]
    assert parse_frame(row[3]).encoding
    set_state(path, 9, flipped(row[3], len(row[3]) - 5))
    with refold.open(path) as memory:
        assert ("t", 9, "digest") in {
            (d.thread_id, d.version, d.kind) for d in memory.verify().damage
        }
        memory.compress()
        with pytest.raises(LogDamaged, match="event 9"):
            memory.conversation("t").messages(8, 9)


def test_a_damaged_size_does_not_claim_all_memory() -> None:
    # A frame that says it has 2**60 bytes.
    frame = b"\x28\xb5\x2f\xfd\xe0" + (2**60).to_bytes(8, "little") + b"\x01\x00\x00"
    with pytest.raises(ValueError, match="too many bytes"):
        compression.Compressor(None).decompress(frame)


@pytest.fixture
def without_zstandard(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        del name

    monkeypatch.setattr("importlib.util.find_spec", missing)


@pytest.mark.slow
@pytest.mark.usefixtures("without_zstandard")
def test_without_the_library_the_error_names_the_extra(path: Path) -> None:
    with refold.open(path) as memory, pytest.raises(InvalidSetting, match=r"refold\[compression\]"):
        memory.compress()


@pytest.mark.slow
def test_the_command_tells_what_it_did(refold: Refold, path: Path) -> None:
    assert path.name == "agent.db"
    ran = refold("compress", "--json")
    assert (ran.code, ran.answer["events"] > 0) == (0, True)
    assert refold("verify").code == 0
    again = refold("compress")
    assert "Nothing to compress" in again.out
