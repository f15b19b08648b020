"""A database file is made whole, found replaced, dropped where it is ours, and closed before a fork."""

import sqlite3
from collections.abc import Generator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from refold.infrastructure.projection_store.database_file import DatabaseFile, FileKind
from refold.infrastructure.projection_store.ownership import PlaceTaken
from refold.infrastructure.projection_store.projection import place_of
from refold.infrastructure.projection_store.row_checksums import FoldDamaged

SQL = "CREATE TABLE words (word TEXT)"


def begin(connection: sqlite3.Connection) -> None:
    connection.execute(SQL)


def declared() -> Mapping[str, str]:
    return {"words": SQL}


def check(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA user_version").fetchone() != (0,):
        raise FoldDamaged("another version")


KIND = FileKind("views", "the words", ("PRAGMA synchronous=OFF",), begin, declared, check)


def fill(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO words VALUES ('first')")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "words.db"


@pytest.fixture
def file(path: Path) -> Generator[DatabaseFile]:
    with closing(DatabaseFile(path, KIND, fill)) as made:
        yield made


def words(file: DatabaseFile) -> list[str]:
    return [word for (word,) in file.connection().execute("SELECT word FROM words")]


def change_in_vain(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM words")
    connection.execute("DELETE FROM nothing")


def replace(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))  # A deleted one would give its number to the next.
    with closing(DatabaseFile(path, KIND)) as other:
        other.connection()


def test_a_new_file_begins_with_what_fills_it(file: DatabaseFile, path: Path) -> None:
    assert not file.is_there
    assert words(file) == ["first"]
    assert file.is_there
    assert file.is_alone
    assert file.connection().execute("PRAGMA application_id").fetchone() == (KIND.mark,)
    with closing(DatabaseFile(None, KIND, fill)) as in_memory:
        assert words(in_memory) == ["first"]


def test_what_cannot_be_filled_leaves_no_file(path: Path) -> None:
    def fail(_: sqlite3.Connection) -> None:
        raise OSError("no more")

    with closing(DatabaseFile(path, KIND, fail)) as broken, pytest.raises(OSError, match="no more"):
        broken.connection()
    assert [one.name for one in path.parent.iterdir()] == ["words.db.lock"]


def test_an_empty_file_is_made_again(
    file: DatabaseFile, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.touch()
    assert words(file) == ["first"]
    assert "is empty" in caplog.text


def test_each_use_checks_the_file(file: DatabaseFile) -> None:
    file.connection().execute("PRAGMA user_version=7")
    with pytest.raises(FoldDamaged):
        file.connection()


def test_the_file_in_the_place_of_another_is_opened(file: DatabaseFile, path: Path) -> None:
    assert words(file) == ["first"]
    assert not file.is_replaced
    replace(path)
    assert file.is_replaced
    assert words(file) == []
    assert (file.is_replaced, file.times_opened) == (False, 2)


def test_a_replacement_is_dropped_only_on_demand(file: DatabaseFile, path: Path) -> None:
    words(file)
    replace(path)
    file.drop()
    assert path.exists()
    words(file)
    replace(path)
    file.drop(any_file=True)
    assert not path.exists()


def test_a_replacement_is_known_after_the_connection_was_let_go(
    file: DatabaseFile, path: Path
) -> None:
    words(file)
    file.let_go()
    assert not file.is_open
    replace(path)
    assert file.is_replaced
    file.drop()
    assert path.exists()


def test_the_file_of_another_program_stays_and_only_our_unfinished_one_goes(
    file: DatabaseFile, path: Path
) -> None:
    path.write_text("precious\n" * 1_000)
    unfinished = path.with_name("words.db.new")
    unfinished.write_text("ours")
    with pytest.raises(PlaceTaken):
        file.connection()
    assert not file.is_there
    file.drop(any_file=True)
    assert path.read_text().startswith("precious")
    assert not unfinished.exists()


def test_a_file_that_is_made_again_holds_only_what_fills_it(file: DatabaseFile, path: Path) -> None:
    with file.writing() as connection:
        connection.execute("INSERT INTO words VALUES ('second')")
    file.make_again(lambda new: None)
    assert words(file) == []
    assert not file.is_replaced


def test_what_is_left_of_a_deleted_file_goes_where_it_is_made_again(
    file: DatabaseFile, path: Path
) -> None:
    left = [path.with_name("words.db-wal"), path.with_name("words.db.new")]
    for one in left:
        one.write_text("secret")
    file.make_again(fill)
    assert not any(one.exists() for one in left)


def test_writing_is_all_or_nothing(file: DatabaseFile) -> None:
    with pytest.raises(sqlite3.OperationalError), file.writing() as connection:
        change_in_vain(connection)
    assert words(file) == ["first"]


def test_looking_at_it_makes_no_file(file: DatabaseFile, path: Path) -> None:
    with file.unchanged() as nothing:
        assert nothing is None
    assert not path.exists()
    words(file)
    with file.unchanged() as connection:
        assert connection is not None
        assert connection.execute("SELECT count(*) FROM words").fetchone() == (1,)


def test_what_must_last_is_synced_and_the_usual_mode_comes_back(file: DatabaseFile) -> None:
    def mode() -> object:
        return file.connection().execute("PRAGMA synchronous").fetchone()

    with file.lasting():
        assert mode() == (2,)
    assert mode() == (0,)


def test_emptying_waits_briefly_for_a_reader(file: DatabaseFile, path: Path) -> None:
    words(file)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM words").fetchall()
        with file.writing() as connection:
            connection.execute("INSERT INTO words VALUES ('second')")
        assert not file.empty_ahead()
    assert file.connection().execute("PRAGMA busy_timeout").fetchone() == (30_000,)
    assert file.empty_ahead()


def test_nothing_in_plain_text_stays_next_to_an_encrypted_log(tmp_path: Path) -> None:
    log = tmp_path / "agent.db"
    for name in ("agent.views.db", "agent.views.db.new", "agent.views.db-wal"):
        tmp_path.joinpath(name).write_text("")
    assert place_of(log, KIND, encrypted=True) == ":memory:"
    assert [one.name for one in tmp_path.iterdir()] == ["agent.views.db.lock"]
    assert place_of(log, KIND, encrypted=False) == tmp_path / "agent.views.db"
