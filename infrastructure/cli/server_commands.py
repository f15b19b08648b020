"""``refold copy`` and ``refold db``: copy a log between files and servers, and prepare a server."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from refold.application.maintenance.copying import Progress as Watch
from refold.application.maintenance.copying import ignore_progress
from refold.application.maintenance.maintenance_results import Copied
from refold.infrastructure.files.log_place import LogPlace, require_psycopg

from .options import DEFAULT_DB, Db, Json
from .output import clean, errors, print_json, say

EXAMPLES = {
    "copy": "Examples: refold copy agent.db postgresql://me@db/agents, and back: refold copy "
    "postgresql://me@db/agents copy.db. Copying again copies what is new, and continues what was interrupted.",
    "db": "Example: refold db upgrade --db postgresql://me@db/agents. Opening a log does the same, if its role may.",
}
Action = Literal["upgrade"]

Source = Annotated[
    LogPlace,
    typer.Argument(
        metavar="SOURCE",
        help="The log to copy: a file or an address. It is only read, and may be in use.",
        parser=LogPlace.parse,
    ),
]
Target = Annotated[
    LogPlace,
    typer.Argument(
        metavar="TARGET",
        help="The log to copy into: a file or an address. It is created if it is missing.",
        parser=LogPlace.parse,
    ),
]


def copy(source: Source, target: Target, json: Json = False) -> None:
    """Copy a log between files and PostgreSQL servers, and compare every event.

    The copy has the same events, byte for byte and in the same order. What was erased is erased in it too.
    """
    from refold.infrastructure.maintenance.copy_log import copy_log

    with _progress(quiet=json) as watch:
        copied = copy_log(source.given, target.given, progress=watch)
    if json:
        print_json(copied.model_dump())
    else:
        _print_copied(copied)


@contextmanager
def _progress(*, quiet: bool) -> Generator[Watch]:
    """Show the progress on standard error if it is a terminal."""
    if quiet or not errors.is_terminal:
        yield ignore_progress
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=errors, transient=True) as progress:
        task = progress.add_task("copying")

        def watch(step: str, position: int, last: int) -> None:
            progress.update(task, description=step, completed=position, total=last)

        yield watch


def _print_copied(copied: Copied) -> None:
    say(
        f"{clean(copied.target)} has all {copied.events:,} events of {copied.conversations:,} conversations in "
        f"{clean(copied.source)}: every event was compared."
    )
    say(f"{copied.copied:,} of them were new.")
    if copied.rewritten:
        say(f"{copied.rewritten:,} were erased, because they were erased in the source.")
    if not copied.same_positions:
        say("The order is kept; the log positions differ, because the target has other events too.")


def db_command(
    action: Annotated[Action, typer.Argument(metavar="ACTION", help="upgrade.")],
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Create or upgrade the tables of a log on a PostgreSQL server."""
    del action
    done = _upgrade(db)
    if json:
        print_json(done)
    elif db.path is not None:
        say(f"{clean(db)} is a file: nothing to do, files are upgraded when they are opened.")
    else:
        _print_upgraded(done)


def _upgrade(db: LogPlace) -> dict[str, Any]:
    if db.path is not None:
        return {"db": str(db), "version": None, "before": None, "applied": []}
    require_psycopg()
    from refold.infrastructure.bootstrap import configuration_of
    from refold.infrastructure.postgres.connections import Address
    from refold.infrastructure.postgres.schema import upgrade_schema

    schema = configuration_of({}).settings.postgres_schema
    done = upgrade_schema(Address.of(db.given, schema=schema))
    return {
        "db": done.shown,
        "version": done.version,
        "before": done.before,
        "applied": list(done.applied),
    }


def _print_upgraded(done: dict[str, Any]) -> None:
    where, version = clean(done["db"]), done["version"]
    if not done["applied"]:
        say(f"{where}: nothing to do, the tables have version {version} already.")
    elif done["before"]:
        say(f"{where}: upgraded from version {done['before']} to version {version}.")
    else:
        say(f"{where}: created the tables of version {version}.")
