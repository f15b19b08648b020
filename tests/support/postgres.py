"""A private PostgreSQL server in a folder, reached by a socket in it alone."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

SWITCH = "REFOLD_X_POSTGRES"
"""Variable with the folder of the server's programs. If it is set, the server must be there."""
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")


def server_programs() -> Path | None:
    """Return the folder of ``initdb`` and ``pg_ctl``, or None if no server is installed."""
    if given := os.environ.get(SWITCH):
        assert (Path(given) / "pg_ctl").is_file(), f"{SWITCH}={given}: pg_ctl is not there"
        return Path(given)
    if found := shutil.which("pg_ctl"):
        return Path(found).parent
    folders = [one for place in _PLACES for one in Path("/").glob(place[1:])]
    return next((one for one in sorted(folders, reverse=True) if (one / "pg_ctl").is_file()), None)


@contextmanager
def postgres(programs: Path) -> Generator[str]:
    """Run a server, and return how to connect to it."""
    # The path of a socket must be short.
    with TemporaryDirectory(prefix="pg") as made:
        folder, data = Path(made), Path(made) / "data"
        user = _not_root(folder)
        _run(programs / "initdb", "-D", data, "-U", "refold", "-A", "trust", "--no-sync", user=user)
        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        control = (programs / "pg_ctl", "-D", data, "-w")
        _run(*control, "-l", folder / "log", "-o", options, "start", user=user)
        try:
            yield f"host={folder} user=refold dbname=postgres"
        finally:
            _run(*control, "-m", "immediate", "stop", user=user)


def _not_root(folder: Path) -> str | None:
    """Return the user who runs the server, which refuses root; the folder becomes theirs."""
    if os.geteuid() != 0:
        return None
    names = {one.pw_name for one in pwd.getpwall()}
    name = "postgres" if "postgres" in names else "nobody"
    shutil.chown(folder, name)
    return name


def _run(*words: object, user: str | None) -> None:
    # The server would keep an inherited pipe open as long as it runs.
    done = subprocess.run(
        [*map(str, words)],
        user=user,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, f"{words[0]} ended with {done.returncode}"
