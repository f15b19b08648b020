"""The place of a log on the command line: paths and addresses, what a wrong one says, and no password anywhere."""

from importlib import util
from pathlib import Path

import pytest

import refold as library
from refold.infrastructure.cli.options import threads
from refold.infrastructure.files.log_place import LogPlace, hide_password
from tests.support.command_line import Refold, talk_file
from tests.support.postgres import shared_server

PASSWORD = "hunter2"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://me:hunter2@db:5432/agents", "postgresql://me@db:5432/agents"),
        ("postgres://me@db/agents?sslmode=require", "postgres://me@db/agents?sslmode=require"),
        ("postgresql://db/agents", "postgresql://db/agents"),
        ("postgresql://me:hunt@er2@db/agents", "postgresql://me@db/agents"),
        ("postgresql://me:hu/nter2@db/agents", "postgresql://me@db/agents"),
        ("postgresql://me:hu?nter2@db/agents", "postgresql://me@db/agents"),
        ("postgresql://db/agents?password=hunter2", "postgresql://db/agents"),
        (
            "postgresql://db/a?pass%77ord=hunter2&sslmode=require",
            "postgresql://db/a?sslmode=require",
        ),
        ("postgresql://:hunter2@/agents?host=/run", "postgresql://@/agents?host=/run"),
    ],
)
def test_an_address_is_shown_without_its_password(given: str, shown: str) -> None:
    assert hide_password(given) == shown
    assert str(LogPlace(given)) == shown
    assert PASSWORD not in repr(LogPlace(given))


def test_the_variable_names_an_address(
    refold: Refold, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFOLD_DB", database)
    assert refold("import", talk_file(tmp_path / "talk.json"), "--thread", "t").code == 0
    done = refold("list")
    assert "Next: refold show t\n" in done.out
    assert not list(tmp_path.glob("*postgres*"))


def test_the_next_command_names_the_address_without_its_password(
    refold: Refold, database: str, tmp_path: Path
) -> None:
    place = database.replace("refold@", f"refold:{PASSWORD}@")
    refold("import", talk_file(tmp_path / "talk.json"), "--thread", "t", "--db", place)
    for words in (("list",), ("show", "t"), ("recall", "t", "Question"), ("stats", "--json")):
        done = refold(*words, "--db", place)
        assert done.code == 0
        assert PASSWORD not in done.out + done.err
    assert database.partition("@")[2] in refold("list", "--db", place).out


def test_a_database_without_a_log_is_not_made_into_one(refold: Refold, database: str) -> None:
    done = refold("list", "--db", database, "--json")
    assert (done.code, done.answer["error"]) == (2, "LogNotFound")
    assert "there is no log here" in done.answer["message"]


WRONG = {
    "no server": ("postgresql://me:hunter2@127.0.0.1:1/agents", "LogGone", "cannot be reached"),
    "no host": ("postgresql://me:hunter2@no.invalid/agents", "LogGone", "cannot be reached"),
    "no address": ("postgresql://me:hunter2@[bad", "InvalidSetting", "not a PostgreSQL address"),
    "no database": ("{server}/none?host={folder}", "LogNotFound", "there is no such database"),
    "no role": ("postgresql://nobody:hunter2@/postgres?host={folder}", "LogNotWritable", "refuses"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_place_that_cannot_be_used_is_one_clear_sentence(refold: Refold, case: str) -> None:
    given, error, said = WRONG[case]
    folder = str(shared_server().folder)
    place = given.replace("{folder}", folder).replace("{server}", "postgresql://refold@")
    done = refold("list", "--db", place, "--json")
    assert (done.code, done.answer["error"]) == (2, error)
    assert said in done.answer["message"]
    assert PASSWORD not in done.out + done.err


def test_without_psycopg_the_command_to_install_it_is_said(
    refold: Refold, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = util.find_spec

    def without_psycopg(name: str) -> object:
        return None if name == "psycopg" else found(name)

    monkeypatch.setattr("importlib.util.find_spec", without_psycopg)
    for words in (("list",), ("db", "upgrade")):
        done = refold(*words, "--db", "postgresql://me@db/agents", "--json")
        assert done.code == 2
        assert "pip install 'refold[postgres]'" in done.answer["message"]


def test_thread_ids_are_completed(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with library.open(database) as memory:
        for name in ("alpha", "albatross", "beta"):
            memory.conversation(name).append({"role": "user", "content": "x"})

    class Given:
        params = {"db": LogPlace(database)}  # noqa: RUF012

    assert threads(Given(), "al") == ["albatross", "alpha"]
    Given.params["db"] = LogPlace("postgresql://me@127.0.0.1:1/none")
    assert threads(Given(), "al") == []


def test_claude_code_refuses_to_write_a_password_into_files(
    refold: Refold, tmp_path: Path, database: str
) -> None:
    words = ("claude-code", "install", "--project", tmp_path, "--db")
    done = refold(*words, database.replace("refold@", f"refold:{PASSWORD}@"))
    assert done.code == 2
    assert "~/.pgpass" in done.err
    assert not (tmp_path / ".mcp.json").exists()
    assert refold(*words, database).code == 0
    assert database in (tmp_path / ".mcp.json").read_text("utf-8")
