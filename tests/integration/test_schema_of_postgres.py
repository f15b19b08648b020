"""The tables of a log on a server: created once by whoever comes first, and usable by the code of today tomorrow."""

import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest

import refold as library
from tests.support.command_line import Refold, talk
from tests.support.postgres import database_of

OPEN = "import sys, refold; refold.open(sys.argv[1]).conversation('t').append({'role': 'user', 'content': 'x'})"


def change(place: str, *statements: str) -> None:
    with psycopg.connect(place, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.mark.slow
def test_eight_processes_prepare_an_empty_database_at_once(database: str) -> None:
    words = [sys.executable, "-c", OPEN, database]
    started = [subprocess.Popen(words, stderr=subprocess.PIPE) for _ in range(8)]
    ended = [(child.communicate(timeout=120)[1], child.returncode) for child in started]
    assert [code for _, code in ended] == [0] * 8, ended
    with library.open(database) as memory:
        assert len(memory.conversation("t").messages()) == 8
        assert memory.verify().ok


def tomorrow(place: str, oldest_code: int) -> None:
    """Upgrade the tables as a later version may do: a nullable column and a table more."""
    change(
        place,
        "ALTER TABLE refold.stored_events ADD COLUMN tenant text",
        "CREATE TABLE refold.of_tomorrow (id bigint PRIMARY KEY)",
        f"INSERT INTO refold.schema_versions (version, oldest_code) VALUES (1000, {oldest_code})",
    )


def test_the_code_of_today_uses_the_tables_of_tomorrow(database: str, refold: Refold) -> None:
    begin(database)
    tomorrow(database, oldest_code=1)
    use(database)
    done = refold("db", "upgrade", "--db", database, "--json")
    assert (done.code, done.answer["version"], done.answer["applied"]) == (0, 1000, [])
    assert refold("stats", "--db", database).code == 0
    assert refold("copy", database, "copied.db").code == 0


def begin(place: str) -> None:
    with library.open(place, window=8_000) as memory:
        memory.conversation("one").append(talk(30, "Some words of it. " * 12), recorded=True)


def use(place: str) -> None:
    """Do what changes or reads tables."""
    with library.open(place, window=8_000) as memory:
        one = memory.conversation("one")
        with one.turn():
            one.append({"role": "user", "content": "More quokkas."}, key="k")
        assert one.compact().outcome == "performed"
        one.pin(2)
        one.fork(thread_id="two")
        one.erase(3)
        memory.erase_conversation("two")
        assert one.recall("quokkas").hits
        assert memory.conversations()
        memory.replay()
        assert memory.verify().ok


def test_tables_that_need_later_code_are_refused(database: str, refold: Refold) -> None:
    begin(database)
    tomorrow(database, oldest_code=1000)
    for words in (("list",), ("db", "upgrade")):
        done = refold(*words, "--db", database, "--json")
        assert (done.code, done.answer["error"]) == (2, "NewerLog")
        assert "install a newer refold" in done.answer["message"]


def test_db_upgrade_says_what_it_did(database: str, refold: Refold) -> None:
    assert "created the tables of version" in refold("db", "upgrade", "--db", database).out
    assert "nothing to do" in refold("db", "upgrade", "--db", database).out
    assert "files are upgraded when they are opened" in refold("db", "upgrade").out


def test_tables_of_another_program_are_refused(database: str, refold: Refold) -> None:
    change(database, "CREATE SCHEMA refold", "CREATE TABLE refold.others (id bigint)")
    done = refold("db", "upgrade", "--db", database, "--json")
    assert (done.code, done.answer["error"]) == (2, "NotARefoldLog")


@pytest.mark.parametrize("name", ['a"b', "a'b", "{a}", "a%b", "a?b", "a\0b", "é" * 40])
def test_a_schema_that_cannot_have_its_name_is_refused_before_anything_is_stored(
    database: str, name: str
) -> None:
    with pytest.raises(library.InvalidSetting, match="postgres_schema"):
        library.open(database, postgres_schema=name)


@pytest.mark.parametrize("name", ["with space", "a.b", "a\\b", "select", "☃", "x" * 63])
def test_a_schema_may_have_any_other_name(database: str, name: str) -> None:
    for _ in range(2):
        with library.open(database, postgres_schema=name) as memory:
            conversation = memory.conversation("t")
            conversation.append({"role": "user", "content": "The port is 5433."})
            assert conversation.recall("port")
            assert memory.verify().ok


@pytest.fixture
def encoded(database: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a database with this encoding."""
    name = f"{database_of(database)}_encoded"
    options = f"ENCODING '{request.param}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    change(database, f"CREATE DATABASE {name} {options}")
    yield database.replace(database_of(database), name)
    change(database, f"DROP DATABASE {name} WITH (FORCE)")


def keep_every_text(place: str) -> None:
    with library.open(place) as memory:
        conversation = memory.conversation("漢字")
        conversation.append({"role": "user", "content": "Grüße ☃, the port is 5433."})
        assert conversation.recall("Grüße")[0].text.startswith("Grüße ☃")
        assert [one.thread_id for one in memory.conversations()] == ["漢字"]
        assert memory.verify().ok


@pytest.mark.parametrize("encoded", ["LATIN1", "EUC_JP"], indirect=True)
def test_a_database_that_cannot_store_every_text_is_refused(encoded: str) -> None:
    with pytest.raises(library.LogNotWritable, match="--encoding=UTF8"):
        library.open(encoded)


@pytest.mark.parametrize("encoded", ["SQL_ASCII"], indirect=True)
def test_a_database_without_an_encoding_stores_every_text(encoded: str) -> None:
    keep_every_text(encoded)


def test_the_encoding_of_the_client_does_not_matter(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    keep_every_text(database)


def test_a_server_with_escapes_in_strings_stores_every_event(database: str) -> None:
    texts = ["Grüße ☃", "a\\b 'c'", "5433"]
    messages = [{"role": "user", "content": text} for text in texts]
    with library.open(f"{database}&options=-c%20standard_conforming_strings%3Doff") as memory:
        memory.conversation("t").append(messages)
        memory.conversation("u").append(messages[0], key="k")
    with library.open(database) as memory:
        assert [m.message.content for m in memory.conversation("t").messages()] == texts
        assert [m.message.content for m in memory.conversation("u").messages()] == texts[:1]
        assert memory.verify().ok
