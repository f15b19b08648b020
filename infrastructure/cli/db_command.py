"""``refold db``: create or upgrade the tables of a log on a server."""

from typing import Annotated, Any, Literal

import typer

from refold.infrastructure.files.log_place import LogPlace, require_psycopg

from .options import DEFAULT_DB, Db, Json
from .output import clean, print_json, say

EXAMPLES = {
    "db": "Example: refold db upgrade --db postgresql://me@db/agents. Opening a log does the same, if its role may."
}
Action = Literal["upgrade"]


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
