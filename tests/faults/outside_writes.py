"""Watches every write of every command: none goes outside of the folder, none carries text of an encrypted log.

python -m tests.faults.outside_writes [--only WORD] [--megabytes N] [--store encrypted|plain]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .children import PLACE, import_everything
from .commands import Scene, commands
from .reading_back import MARK, problems_of
from .sample_store import Said, Store, make_large_store
from .striking import ROOT, missing

CALLS = (
    "open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,link,linkat,"
    "symlink,symlinkat,truncate,write,pwrite64,writev,pwritev,pwritev2,sendfile,copy_file_range"
)
WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TMPFILE|O_TRUNC")
OPENED = re.compile(r'^(?:openat2?|open|creat)\((?:AT_FDCWD<[^>]*>, |AT_FDCWD, )?"([^"]*)", (.*)')
CHANGED = re.compile(r'^(?:unlink|rename|mkdir|link|symlink|truncate)\w*\(.*?"([^"]*)"')
WRITTEN = re.compile(r"^(?:p?write\w*|p?writev\w*)\(\d+<([^>]*)>")
SHORT = ("long life", "verify", "salvage", "backup", "compress", "recall", "erase")
"""Commands that fold or copy all there is."""


class Watched(NamedTuple):
    """The folders in which files may be written."""

    store: Path
    out: Path
    place: Path

    def allows(self, path: str) -> bool:
        """Whether a file may be written there."""
        if path.startswith(("/dev/", "/proc/", "pipe:", "socket:", "anon_inode:")):
            return True
        return any(path.startswith(f"{folder}") for folder in self)


def faults_in(lines: Iterator[str], watched: Watched, *, encrypted: bool) -> Iterator[str]:
    """What was written where it must not be; each kind of place once."""
    told: set[str] = set()
    for line in lines:
        call = line.split(None, 1)[-1]
        for what in _wrong(call, watched, encrypted):
            kind = re.sub(r"[0-9a-f]{6,}|[A-Za-z0-9_]{16,}", "…", what)
            if kind not in told:
                told.add(kind)
                yield what


def _wrong(call: str, watched: Watched, encrypted: bool) -> Iterator[str]:
    if "ENOENT" in call[-80:]:
        return
    if found := OPENED.match(call):
        path, rest = found[1], found[2]
        is_change = call.startswith("creat") or WRITING.search(rest)
        if is_change and not watched.allows(_absolute(path, watched)):
            yield f"OUTSIDE: {path} was opened for writing"
    elif found := CHANGED.match(call):
        if not watched.allows(_absolute(found[1], watched)):
            yield f"OUTSIDE: {call.split('(')[0]} {found[1]}"
    elif encrypted and (found := WRITTEN.match(call)):
        path = found[1].removesuffix(" (deleted)")
        if MARK.search(call) and not path.startswith((str(watched.out), str(watched.place))):
            yield f"PLAIN TEXT of an encrypted log was written to {path}"


def _absolute(path: str, watched: Watched) -> str:
    return path if path.startswith("/") else str(watched.out / path)


class Server:
    """Commands that run one after another under ``strace``, each in a fork."""

    def __init__(self, process: "subprocess.Popen[str]", trace: Path) -> None:
        self._process = process
        self._trace = trace
        self._read = trace.stat().st_size if trace.exists() else 0

    def run(self, name: str) -> tuple[list[str], list[str]]:
        """Run a command; what went wrong in it, and the calls of the system that it made."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        problem = self._process.stdout.readline()
        if not problem:
            raise RuntimeError(f"the server ended at {name}")
        with self._trace.open("rb") as file:
            file.seek(self._read)
            content = file.read()
        self._read += len(content)
        problems = [problem.strip()] if problem.strip() != "ran" else []
        return problems, content.decode("ascii", "replace").splitlines()


@contextmanager
def served(store: Store, watched: Watched) -> Generator[Server]:
    """A server of commands on this store."""
    trace = watched.place / "trace"
    command = ["strace", "-f", "-qq", "-y", "-s", "70000", "--seccomp-bpf", "-o", str(trace)]
    command += ["-e", f"trace={CALLS}", "-e", "signal=none", sys.executable, "-m", __spec__.name]
    command += ["--serve", store.name, str(watched.store), str(watched.out)]
    environment = {k: v for k, v in os.environ.items() if k not in ("TMPDIR", "SQLITE_TMPDIR")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", PLACE: str(watched.place)}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        facts = {"said": list(store.said), "facts": store.facts}
        process.stdin.write(json.dumps(facts) + "\n")
        process.stdin.flush()
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the server of commands did not start")
        yield Server(process, trace)
        process.stdin.close()
        process.wait(60)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def serve(name: str, folder: Path, out: Path) -> None:
    """Run the commands that standard input names."""
    told = json.loads(sys.stdin.readline())
    store = Store(name, folder, tuple(Said(*row) for row in told["said"]), told["facts"])
    import_everything()
    print("ready", flush=True)
    for line in sys.stdin:
        run = commands()[line.strip()](Scene(store, folder, out))
        problems = problems_of(run.ended)
        print(" ".join(problems[0].split())[-400:] if problems else "ran", flush=True)


def watch(name: str, names: list[str], size: int, until: float) -> Iterator[str]:
    """Run these commands on a new store and tell of every wrong write."""
    with tempfile.TemporaryDirectory(prefix="watched-") as folder:
        watched = Watched(Path(folder, name), Path(folder, "out"), Path(folder, "place"))
        watched.out.mkdir()
        watched.place.mkdir()
        store = make_large_store(Path(folder), name, size)
        (Path(folder, f"{name}-backup.db")).touch()
        with served(store, watched) as server:
            for command in names:
                if time.monotonic() > until:
                    return
                problems, lines = server.run(command)
                yield from (f"{name}: {command}: {what}" for what in problems)
                wrong = faults_in(iter(lines), watched, encrypted=name == "encrypted")
                yield from (f"{name}: {command}: {what}" for what in wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="only commands that read all there is")
    parser.add_argument("--only", default="", help="only commands with this in their name")
    parser.add_argument("--megabytes", type=float, default=6.0, help="how much text the log has")
    parser.add_argument("--store", choices=("encrypted", "plain"))
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no command after so long")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], Path(options.serve[1]), Path(options.serve[2]))
        return
    if reason := missing():
        sys.exit(reason)
    until = time.monotonic() + options.seconds
    # Restoring needs a backup and erases nothing: last, as it moves the log away.
    names = [n for n in commands() if options.only in n and n != "restore"]
    names = [n for n in names if n in SHORT] if options.short else names
    found = 0
    for store in [options.store] if options.store else ["encrypted", "plain"]:
        for what in watch(store, names, int(options.megabytes * 1e6), until):
            found += 1
            print(what, flush=True)
    print(f"writes: {len(names)} commands watched on each store, {found} finds")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
