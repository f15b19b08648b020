"""Checking a file that is derived from the log: every table against a fresh fold, row by row."""

from collections.abc import Iterable, Iterator
from contextlib import closing

from sqlite_utils import Database

from refold.application.event_log import ConversationLog, Damage, LoggedEvent
from refold.application.plain_lines import plain_logger
from refold.infrastructure.log.file.failures import is_forbidden
from refold.infrastructure.sqlite_connection import open_sqlite

from .content import Comparable, Content, expected_schema, schema_of, wrapped
from .damage import BROKEN, blamed_on_file
from .differing import FinalRows, differences, rows_of
from .file import DerivedFile, begin
from .outdating import Left, is_outdated, nothing_left, was_made_before
from .progress import POSITION_COLUMNS, POSITIONS, has_earlier_fold, nowhere, up_to
from .whose import PlaceTaken

COMPARED_POSITIONS = Comparable(POSITIONS, tuple(POSITION_COLUMNS), ("projection",))

logger = plain_logger(__name__)


def check_file(file: DerivedFile, content: Content, log: ConversationLog) -> Iterator[Damage]:
    """Everything in which the file differs from replay; a file that is not there differs in nothing.

    Both sides are compared at the position that the file has; what came since is no damage. Nor is a file of
    an earlier version, which the next question folds again.
    """
    if taken := tuple(check_place(file, content)):
        yield from taken
        return
    try:
        with blamed_on_file(), file.unchanged() as db:
            if db is not None and not _is_of_before(db, content):
                yield from _damage_of_file(db, content)
                yield from content.damage(db)
                db.conn.execute("BEGIN")
                try:
                    yield from _check_tables(db, content, log)
                finally:
                    db.conn.execute("ROLLBACK")
    except BROKEN as error:
        if is_forbidden(error):
            logger.warning("%s %s cannot be checked: %s", content.title, file.path, error)
            return
        yield Damage(content.name, "", 0, "unreadable", str(error))


def _is_of_before(db: Database, content: Content) -> bool:
    return was_made_before(db) or has_earlier_fold(db, content.projections)


def check_place(file: DerivedFile, content: Content) -> Iterator[Damage]:
    """Whether a file of somebody else lies in the place of ours."""
    try:
        file.refuse_foreign()
    except PlaceTaken as taken:
        yield Damage(content.name, "", 0, "foreign", str(taken))


def _check_tables(db: Database, content: Content, log: ConversationLog) -> Iterator[Damage]:
    number = _position(db)
    if number is not None and is_outdated(db, log.scan(number)):
        return  # Another memory erased since; the next question takes it out.
    events = log.scan() if number is None else up_to(number, log.scan())
    final = [FinalRows(table, db) for table in content.compared if table.is_final]
    others = [table for table in content.compared if not table.is_final]
    with closing(wrapped(open_sqlite(":memory:", isolation_level=None))) as fresh:
        fresh.conn.execute("BEGIN")
        begin(fresh, content)
        progress, rest, more = nowhere(content.projections), iter(events), True
        while more:
            # Everything is read after it was erased.
            progress, more = content.fold(fresh, progress, rest, nothing_left)
            for rows in final:
                yield from _guarded(rows.table, rows.compare(fresh))
            content.forget(fresh)
        for rows in final:
            yield from _guarded(rows.table, rows.unexpected())
        for table in (*others, COMPARED_POSITIONS):
            yield from _guarded(
                table, differences(table, rows_of(table, db), rows_of(table, fresh))
            )


def _guarded(table: Comparable, found: Iterator[Damage]) -> Iterator[Damage]:
    """What is found in a table, and that it cannot be read, if so."""
    try:
        with blamed_on_file():
            yield from found
    except BROKEN as error:
        yield Damage(table.name, "", 0, "unreadable", str(error))


def fold_all(content: Content, db: Database, events: Iterable[LoggedEvent], left: Left) -> None:
    """Fold all events into empty tables, in the transaction that is open."""
    progress, rest, more = nowhere(content.projections), iter(events), True
    while more:
        progress, more = content.fold(db, progress, rest, left)


def _damage_of_file(db: Database, content: Content) -> Iterator[Damage]:
    for (problem,) in db.conn.execute("PRAGMA integrity_check").fetchall():
        if problem != "ok":
            yield Damage(content.name, "", 0, "unreadable", str(problem))
    found, expected = schema_of(db), expected_schema(content)
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) == expected.get(name) or name in content.late:
            continue
        kind = (
            "missing" if name not in found else "unexpected" if name not in expected else "differs"
        )
        yield Damage(name, "", 0, kind, f"the declaration of {name} in the database")


def _position(db: Database) -> int | None:
    """How far the tables claim to be; None where they claim nothing that makes sense."""
    if POSITIONS not in schema_of(db):
        return None
    numbers = {row[0] for row in db.conn.execute(f"SELECT number FROM {POSITIONS}").fetchall()}
    number = numbers.pop() if len(numbers) == 1 else None
    return number if isinstance(number, int) else None
