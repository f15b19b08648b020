"""An encrypted log: nothing that was said lies in any file, and only the right key opens it."""

import json
import logging
import pickle
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.persistence import StoredEvent

import refold
from refold.application.errors import LogDamaged, LogLocked
from refold.domain.errors import InvalidSetting
from refold.infrastructure.event_store.encodings import Encodings
from refold.infrastructure.event_store.encryption import Keys, key_of
from refold.infrastructure.event_store.envelope import (
    Encoder,
    EnvelopeError,
    Place,
    PlainHead,
    parse_frame,
)
from refold.infrastructure.event_store.shelf import SQLiteShelf
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.command_line import Refold
from tests.support.log_files import execute, flipped, rows, set_state

KEY = bytes(range(32))
OTHER = bytes(range(1, 33))
FINGERPRINT = key_of(KEY).fingerprint
SAID = "the tulips are in the shed"
Change = Callable[[Path], None]


def said(number: int) -> dict[str, Any]:
    return {"role": "user" if number % 2 == 0 else "assistant", "content": f"{number} {SAID} " * 20}


def fill(path: Path, key: object, count: int = 16) -> None:
    with refold.open(path, encryption_key=key) as memory:  # type: ignore[arg-type]  # pyright: ignore
        conversation = memory.conversation("t")
        for number in range(count):
            conversation.append(said(number))
        assert conversation.compact().outcome == "performed"
        conversation.append(said(count))
        memory.conversations()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "agent.db", KEY)
    return tmp_path / "agent.db"


def request_of(path: Path, key: object) -> str:
    with refold.open(path, encryption_key=key) as memory:  # type: ignore[arg-type]  # pyright: ignore
        return json.dumps(memory.conversation("t").context().for_anthropic())


def test_nothing_that_was_said_lies_in_any_file(path: Path) -> None:
    with refold.open(path, encryption_key=KEY) as memory:
        memory.conversation("t").append(said(99))
        memory.conversations()
        files = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert "agent.db-wal" in files
    assert [name for name, data in files.items() if SAID.encode() in data] == []
    assert "agent.views.db" not in files


def test_with_its_key_it_reads_as_a_plain_one(path: Path, tmp_path: Path) -> None:
    fill(tmp_path / "plain.db", None)
    assert SAID.encode() in (tmp_path / "plain.db").read_bytes()
    assert request_of(path, KEY) == request_of(tmp_path / "plain.db", None)
    with refold.open(path, encryption_key=KEY) as memory:
        assert memory.verify().ok
        assert [m.message.content for m in memory.conversation("t").messages(3, 4)] == [
            said(3)["content"]
        ]


def gives_it(asked: str | None) -> bytes:
    del asked
    return KEY


def gives_another(asked: str | None) -> bytes:
    del asked
    return OTHER


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (None, f"encrypted with the key {FINGERPRINT}, but no key was given"),
        (
            OTHER,
            f"the key {FINGERPRINT}, but the given key is {key_of(OTHER).fingerprint}",
        ),
        (gives_another, "the callback encryption_key returned"),
    ],
    ids=["none", "another", "callback"],
)
def test_without_its_key_it_is_locked_before_anything_is_read(
    path: Path, key: object, says: str
) -> None:
    before = path.read_bytes()
    with pytest.raises(LogLocked, match=says) as caught:
        refold.open(path, encryption_key=key)  # type: ignore[arg-type]  # pyright: ignore
    assert "REFOLD_ENCRYPTION_KEY" in str(caught.value) or callable(key)
    assert path.read_bytes() == before
    assert not path.with_name("agent.views.db").exists()


def test_verify_without_the_key_is_one_clear_error(
    refold: Refold, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = refold("verify", "--db", path, "--json")
    assert (ran.code, ran.answer["error"]) == (2, "LogLocked")
    assert FINGERPRINT in ran.answer["message"]
    monkeypatch.setenv("REFOLD_ENCRYPTION_KEY", KEY.hex())
    assert refold("verify", "--db", path).code == 0


@pytest.mark.slow(but=["callback", "urlsafe"])
@pytest.mark.parametrize(
    "key",
    [
        KEY,
        KEY.hex(),
        KEY.hex().upper().encode(),
        b64encode(KEY).decode(),
        urlsafe_b64encode(KEY).decode().rstrip("=") + "\n",
        gives_it,
    ],
    ids=["bytes", "hex", "HEX", "base64", "urlsafe", "callback"],
)
def test_a_key_may_be_said_in_several_forms(path: Path, key: object) -> None:
    assert SAID in request_of(path, key)


@pytest.mark.parametrize("key", ["", "secret", b"secret", "g" * 64, "x" * 43 + "!", KEY.hex()[:-1]])
def test_what_is_no_key_is_refused_without_being_shown(tmp_path: Path, key: Any) -> None:
    with pytest.raises(InvalidSetting, match="32 bytes") as caught:
        refold.open(tmp_path / "a.db", encryption_key=key)
    assert caught.value.setting == "encryption_key"
    assert not key or str(key) not in f"{caught.value} {caught.value.value!r}"
    assert list(tmp_path.iterdir()) == []


def test_a_key_is_in_no_text_that_anybody_sees(
    refold: Refold,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("REFOLD_ENCRYPTION_KEY", KEY.hex())
    caplog.set_level(logging.DEBUG)
    texts: list[str] = []
    for words in (["settings"], ["settings", "--json"], ["-vv", "list", "--db", str(path)]):
        ran = refold(*words)
        assert ran.code == 0
        texts += [ran.out, ran.err]
    assert "**********" in texts[0]
    assert "environment variable REFOLD_ENCRYPTION_KEY" in texts[0].replace("\n", " ")
    monkeypatch.setenv("REFOLD_ENCRYPTION_KEY", f"{KEY.hex()}00")
    ran = refold("list", "--db", path)
    assert ran.code == 2
    monkeypatch.delenv("REFOLD_ENCRYPTION_KEY")
    policy = tmp_path / "policy.toml"
    policy.write_text(f'encryption_key = "{KEY.hex()}"\n')
    refused = refold("settings", "--policy", policy)
    assert (refused.code, "does not belong in a policy file" in refused.err) == (2, True)
    seen = " ".join([*texts, ran.out, ran.err, refused.out, refused.err, caplog.text])
    assert KEY.hex() not in seen


def test_no_part_of_an_open_memory_shows_the_key(path: Path) -> None:
    from refold.infrastructure.bootstrap import configuration_of, open_core

    core = open_core(path, encryption_key=KEY)
    shown = (
        f"{core!r} {core.settings!r} {configuration_of({'encryption_key': KEY})!r} {Keys(KEY)!r}"
    )
    core.views.close()
    core.log.close()
    assert KEY.hex() not in shown
    assert repr(KEY)[2:-1] not in shown


def test_a_failing_callback_is_told_without_its_words(path: Path) -> None:
    def fails(asked: str | None) -> bytes:
        raise RuntimeError(f"could not use {KEY.hex()} for {asked}")

    with pytest.raises(LogLocked, match="callback encryption_key failed") as caught:
        refold.open(path, encryption_key=fails)
    assert KEY.hex() not in str(caught.value)


def test_keys_can_be_changed_with_a_callback_that_knows_both(path: Path) -> None:
    asked: list[str | None] = []
    keys = {None: OTHER, FINGERPRINT: KEY, key_of(OTHER).fingerprint: OTHER}

    def ask(fingerprint: str | None) -> bytes:
        asked.append(fingerprint)
        return keys[fingerprint]

    with refold.open(path, encryption_key=ask) as memory:
        memory.conversation("t").append(said(41))
        assert memory.verify().ok
    assert asked == [None, FINGERPRINT]
    used = {parse_frame(state).encoding for *_, state in rows(path)}
    assert used == {f"aes:{FINGERPRINT}", f"aes:{key_of(OTHER).fingerprint}"}
    for key in (KEY, OTHER):
        with pytest.raises(LogLocked, match="a callback that returns both"):
            refold.open(path, encryption_key=key)


def test_a_plain_log_that_is_given_a_key_encrypts_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    fill(path, None)
    assert path.with_name("agent.views.db").exists()
    refold.open(path, encryption_key=KEY).close()
    assert not path.with_name("agent.views.db").exists()
    refold.open(path).close()  # Nothing is encrypted yet.
    with refold.open(path, encryption_key=KEY) as memory:
        memory.conversation("t").append({"role": "assistant", "content": "quite another thing"})
        assert memory.verify().ok
    assert b"quite another thing" not in path.read_bytes()
    with pytest.raises(LogLocked):
        refold.open(path)


def move(path: Path) -> None:
    """The third event in the place of the fifth, as if it had always been there."""
    set_state(path, 5, rows(path)[2][3])


def rename(path: Path) -> None:
    execute(
        path, "UPDATE stored_events SET topic='conversation_labelled' WHERE originator_version=5"
    )


def flip(path: Path) -> None:
    state = rows(path)[4][3]
    set_state(path, 5, flipped(state, len(state) - 20))


def cut(path: Path) -> None:
    set_state(path, 5, rows(path)[4][3][:-1])


def other_time(path: Path) -> None:
    head, _, payload = rows(path)[4][3].partition(b"\n")
    set_state(path, 5, head.replace(b":", b";", 1) + b"\n" + payload)


def other_key(path: Path) -> None:
    set_state(path, 5, rows(path)[4][3].replace(FINGERPRINT.encode(), b"0" * 16, 1))


def no_encoding(path: Path) -> None:
    set_state(path, 5, rows(path)[4][3].replace(f" aes:{FINGERPRINT}".encode(), b"", 1))


def empty(path: Path) -> None:
    set_state(path, 5, rows(path)[4][3].partition(b"\n")[0] + b"\n")


@pytest.mark.slow(but=["other_key", "cut"])
@pytest.mark.parametrize(
    "change", [move, rename, flip, cut, other_time, other_key, no_encoding, empty]
)
def test_a_changed_or_moved_ciphertext_is_damage_and_names_its_place(
    path: Path, change: Change
) -> None:
    change(path)
    with refold.open(path, encryption_key=KEY) as memory:
        damage = memory.verify().damage
        assert ("t", 5) in {(d.thread_id, d.version) for d in damage}
        with pytest.raises(LogDamaged, match="event 5"):
            memory.conversation("t").context(at=10)


def test_a_bit_turned_over_anywhere_in_a_row_is_noticed(path: Path) -> None:
    row = StoredEvent(*rows(path)[4])
    log = SQLiteLog(path, key=KEY)
    _, mapper = log.parts()
    whole = mapper.to_domain_event(row)
    for place in range(len(row.state)):
        changed = StoredEvent(
            row.originator_id, row.originator_version, row.topic, flipped(row.state, place)
        )
        with suppress(EnvelopeError):
            # The link before is in the chain, not in the digest of the row.
            assert mapper.to_domain_event(changed).link != whole.link
    log.close()


def test_snapshots_are_sealed_the_same_way_and_hide_their_digest_from_guessing(path: Path) -> None:
    (snapshot,) = rows(path, "stored_snapshots")
    frame = parse_frame(snapshot[3])
    assert frame.encoding == f"aes:{FINGERPRINT}"
    assert frame.salt == "-"
    assert b"live_from" not in snapshot[3]


def test_no_two_events_share_a_nonce(path: Path) -> None:
    nonces = [parse_frame(state).payload[:12] for *_, state in rows(path)]
    assert len(set(nonces)) == len(nonces)


def test_a_log_in_memory_can_have_a_key_and_be_compressed() -> None:
    with refold.open(":memory:", encryption_key=secrets.token_bytes(32)) as memory:
        conversation = memory.conversation("t")
        for number in range(60):
            conversation.append(said(number))
        conversation.compact()
        before = conversation.context().for_anthropic()
        assert memory.compress().events > 10
        assert conversation.context().for_anthropic() == before
        assert memory.verify().ok


def test_keys_are_not_copied_by_accident() -> None:
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(Keys(KEY))


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"stream": "u"},
        {"version": 6},
        {"name": "conversation_labelled"},
        {"shape": 1},
        {"at": "2026-01-02T03:04:05.000000Z"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_the_cipher_itself_binds_an_event_to_its_place(
    path: Path, elsewhere: dict[str, Any]
) -> None:
    place, envelope = Place(*rows(path)[4][:3]), parse_frame(rows(path)[4][3])
    in_place = {name: value for name, value in elsewhere.items() if name in Place._fields}
    in_frame = {name: value for name, value in elsewhere.items() if name not in in_place}
    encoder = Encodings(Keys(KEY), NoShelf())
    assert SAID.encode() in encoder.decode(place, envelope).payload
    with pytest.raises(EnvelopeError, match="encrypted content was changed"):
        encoder.decode(place._replace(**in_place), envelope._replace(**in_frame))


class NoShelf:
    """A shelf of which nothing is asked."""

    def dictionary(self, number: int, encoder: Encoder) -> bytes:
        raise AssertionError((number, encoder))

    def fingerprints(self) -> frozenset[str]:
        raise AssertionError

    def plain_head(self, stream: str, encoder: Encoder) -> PlainHead | None:
        raise AssertionError((stream, encoder))

    def newest_key(self) -> str | None:
        return None

    def refuse_unnoted(self) -> None:
        raise AssertionError


@pytest.mark.parametrize("earlier", [None, OTHER], ids=["the first key", "another key"])
def test_a_log_that_another_begins_to_encrypt_meanwhile_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: bytes | None
) -> None:
    path, read = tmp_path / "agent.db", SQLiteShelf.fingerprints

    def key(fingerprint: str | None) -> bytes:
        return KEY if fingerprint in (None, FINGERPRINT) else OTHER

    def read_and_wait(shelf: SQLiteShelf) -> frozenset[str]:
        found = read(shelf)
        monkeypatch.setattr(SQLiteShelf, "fingerprints", read)
        with refold.open(path, encryption_key=key) as other:
            other.conversation("t").append(said(0))
        return found

    if earlier is not None:
        with refold.open(path, encryption_key=earlier) as memory:
            memory.conversation("earlier").append(said(0))
    monkeypatch.setattr(SQLiteShelf, "fingerprints", read_and_wait)
    with refold.open(path, encryption_key=key) as memory:
        assert len(memory.conversation("t").messages()) == 1
        assert memory.verify().ok
