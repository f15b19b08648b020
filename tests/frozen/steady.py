"""A clock, ids and salts that are the same in every run."""

import contextlib
import datetime
import hashlib
import io
import itertools
import os
import runpy
import secrets
import sys
import uuid
from typing import Any, Self

BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
_drawn = itertools.count()


class SteadyDatetime(datetime.datetime):
    """A datetime whose clock stands still."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Self:
        """Return the one time."""
        return cls.fromtimestamp(BEGIN.timestamp(), tz)


def drawn_bytes(size: int | None = None) -> bytes:
    """Return bytes that follow from how many were drawn before."""
    wanted = 32 if size is None else size
    found = b""
    while len(found) < wanted:
        found += hashlib.sha256(f"{next(_drawn)}".encode()).digest()
    return found[:wanted]


def _drawn_hex(size: int | None = None) -> str:
    return drawn_bytes(size).hex()


def _drawn_below(limit: int) -> int:
    return int.from_bytes(drawn_bytes(8)) % limit


_DRAWN = {
    "token_bytes": drawn_bytes,
    "token_hex": _drawn_hex,
    "randbelow": _drawn_below,
}


def hold_steady() -> None:
    """Replace the clock, ids and salts of this process; call it before refold is imported."""
    modules: Any = (datetime, uuid)
    modules[0].datetime = SteadyDatetime
    for name, value in _DRAWN.items():
        setattr(secrets, name, value)
    setattr(os, "urandom", drawn_bytes)  # noqa: B010
    modules[1].uuid4 = lambda: uuid.UUID(bytes=drawn_bytes(16), version=4)
    # Imported only now, so that it sees the clock above.
    from refold.infrastructure.files.processes import ThisProcess

    setattr(ThisProcess, "name", "this process")  # noqa: B010


def run(*words: str) -> tuple[int, str]:
    """Run a command in this process; return its exit code and what it printed on standard output."""
    global _drawn
    seed = hashlib.sha256(" ".join(words).encode()).digest()
    _drawn = itertools.count(int.from_bytes(seed[:3]))
    printed, code = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), 0
    sys.argv = ["refold", *words]
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            runpy.run_module("refold", run_name="__main__")
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed.seek(0)
    return code, printed.read()
