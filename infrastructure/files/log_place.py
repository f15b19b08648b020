"""The place of a log, as a path or an address, and commands that a user can type."""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote_plus

from refold.application.errors import LogError, LogNotFound
from refold.domain.errors import InvalidSetting

_SCHEMES = ("postgresql://", "postgres://")
MEMORY = ":memory:"
DERIVED = ("views", "recall", "vectors")
"""Names of all files that are derived from a log, as part of their paths."""


def is_address(place: object) -> bool:
    """Return whether a place is the address of a PostgreSQL server and not a path."""
    return isinstance(place, str) and place.startswith(_SCHEMES)


def derived_path(log: str | Path, name: str) -> str | Path:
    """Return the path of a file next to a log: ``agent.views.db`` next to ``agent.db``."""
    if str(log) == MEMORY:
        return MEMORY
    path = Path(log)
    return path.with_name(f"{path.stem}.{name}{path.suffix or '.db'}")


def real_place(path: str | Path) -> str | Path:
    """Return the place of a log that stays the same, also if the program changes its folder.

    A link is resolved, because locks and derived files are next to the log itself.

    Raises:
        LogNotFound: the link leads back to itself, or the current folder was deleted.
    """
    if is_address(path) or str(path) in ("", ".", MEMORY):
        return path
    try:
        return Path(path).resolve() if os.path.islink(path) else Path(path).absolute()  # noqa: PTH114
    except (OSError, RuntimeError) as error:
        raise LogNotFound(f"{path} leads to no file: {error}") from error


ON_A_SERVER: Mapping[str, str] = {
    "anchor": "a server needs no anchor; to prove that nothing was lost, compare with a replica or a backup",
    "verify --anchor": "a server has no anchor; `refold copy` to a file compares every event",
    "salvage": "restore with pg_restore or point-in-time recovery",
    "backup": "use pg_dump or pg_basebackup; `refold copy` writes the log to a file",
    "restore": "use pg_restore; `refold copy` writes a file to a server",
    "compress": "sealed payloads cannot be compressed; put the server's data on a compressed file system",
    "demo": "it damages files on purpose; give the path of a file",
}
"""Commands that need a log file, and what does their work on a server."""


def not_on_a_server(command: str) -> LogError:
    """Return the error of a command that needs a log file."""
    return LogError(
        f"{command} needs a log file, and this log is on a PostgreSQL server: {ON_A_SERVER[command]}"
    )


class LogPlace(NamedTuple):
    """The place of a log as a user typed it. Its text form has no password."""

    given: str

    @classmethod
    def parse(cls, text: object) -> "LogPlace":
        """Return the place that a text names. A place is returned unchanged."""
        return text if isinstance(text, LogPlace) else cls(str(text))

    @property
    def is_address(self) -> bool:
        """True if it is the address of a server."""
        return is_address(self.given)

    @property
    def has_password(self) -> bool:
        """True if it is an address with a password in it."""
        return self.is_address and hide_password(self.given) != self.given

    @property
    def path(self) -> Path | None:
        """Path of the log file, or None if the log is on a server."""
        return None if self.is_address else Path(self.given)

    def file_for(self, command: str) -> Path:
        """Return the path of the log file, which the command needs.

        Raises:
            LogError: it is the address of a server; the message says what to use instead.
        """
        if self.is_address:
            raise not_on_a_server(command)
        return Path(self.given)

    def __str__(self) -> str:
        """Return the place for people and for the next command: an address without its password."""
        return hide_password(self.given) if self.is_address else str(Path(self.given))

    def __repr__(self) -> str:
        """Return the place without its password."""
        return f"LogPlace({str(self)!r})"


@lru_cache(maxsize=64)
def hide_password(address: str) -> str:
    """Return an address without its passwords. An address that cannot be read loses too much, not too little."""
    scheme, _, rest = address.partition("://")
    credentials, at, rest = rest.rpartition("@")
    user = credentials
    for end in ":/?":
        user = user.partition(end)[0]
    place, mark, query = rest.partition("?")
    parts = [part for part in query.split("&") if "password" not in _name_of(part)]
    return f"{scheme}://{user}{at}{place}{mark if query and parts else ''}{'&'.join(parts)}"


def _name_of(part: str) -> str:
    return unquote_plus(part.partition("=")[0]).lower()


def require_psycopg() -> None:
    """Check that the libraries for PostgreSQL are installed.

    Raises:
        InvalidSetting: a library is missing; the message names the extra to install.
    """
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("psycopg", "psycopg_pool", "cryptography")):
        raise InvalidSetting(
            "a log on a PostgreSQL server needs psycopg, which is not installed: pip install 'refold[postgres]'"
        )


_ARGUMENTS = {"inspect": 0, "recall": 2, "why": 2, "diff": 3}
"""Number of arguments before the options in suggested commands; of other commands it is one."""


def typed_command(*words: object, more: Sequence[str] = (), count: int | None = None) -> str:
    """Return a command of this program, ready to be typed. Arguments come before options in ``words``.

    ``more``: further options. ``count``: number of arguments, if it is not the usual one of the command.
    """
    import shlex

    command, *texts = map(str, words)
    count = _ARGUMENTS.get(command, 1) if count is None else count
    given, options = texts[:count], [*texts[count:], *more]
    if any(text.startswith("-") for text in given):  # It would be read as an option.
        return f"refold {shlex.join([command, *options, '--', *given])}"
    return f"refold {shlex.join([command, *given, *options])}"
