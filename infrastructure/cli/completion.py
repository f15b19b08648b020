"""What a shell offers when Tab is pressed: thread ids, pins and names of settings, quickly or not at all."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

MOST = 200
"""Names that are offered at once."""

# Each name is looked up by the index, so that it takes as long with ten events as with a million.
_NAMES = """
WITH RECURSIVE names(name) AS (
    SELECT min(originator_id) FROM stored_events WHERE originator_id >= ?
    UNION ALL
    SELECT (SELECT min(originator_id) FROM stored_events WHERE originator_id > name)
    FROM names WHERE name IS NOT NULL
)
SELECT name FROM names WHERE name IS NOT NULL LIMIT ?
"""


def threads(ctx: Any, incomplete: str) -> list[str]:
    """The ids of conversations that begin so."""
    return [name for name in _stored_names(_log_of(ctx), incomplete) if name.startswith(incomplete)]


def pins_of(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """The pins of the conversation that was named, with what each keeps."""
    thread = str(ctx.params.get("thread") or "")
    found = list(threads(ctx, thread))
    if not found:
        return []
    from refold.domain.errors import RefoldError
    from refold.infrastructure.bootstrap import open_memory

    with suppress(RefoldError, OSError), open_memory(_log_of(ctx), create=False) as memory:
        pins = memory.conversation(found[0]).pins()
        return [
            (pin.pin_id, " ".join(pin.text.split())[:60])
            for pin in pins
            if pin.pin_id.startswith(incomplete)
        ]
    return []


def setting_names(incomplete: str) -> list[str]:
    """The names of settings that begin so."""
    from refold.infrastructure.settings.settings_model import RefoldSettings

    return sorted(name for name in RefoldSettings.model_fields if name.startswith(incomplete))


def _log_of(ctx: Any) -> Path:
    return Path(ctx.params.get("db") or os.environ.get("REFOLD_DB") or "agent.db")


def _stored_names(log: Path, begin: str) -> Iterator[str]:
    """Names of streams from ``begin`` on. What cannot be read offers nothing: no message helps there."""
    from refold.infrastructure.sqlite.sqlite_connection import open_sqlite

    if not log.is_file():
        return
    with suppress(sqlite3.Error, UnicodeError):
        place = f"{log.absolute().as_uri()}?mode=ro"
        with closing(open_sqlite(place, uri=True, timeout=0.2)) as connection:
            yield from (row[0] for row in connection.execute(_NAMES, (begin, MOST)))
