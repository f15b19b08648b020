"""An append is acknowledged only after the disk has confirmed it: seen in the system calls."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

APPENDING = """
import os, sys
import refold

memory = refold.open(sys.argv[1])
conversation = memory.conversation("t")
conversation.append({"role": "user", "content": "first"})
os.write(1, b"before\\n")
conversation.append({"role": "user", "content": "second"})
os.write(1, b"after\\n")
os._exit(0)
"""
CALLS = "trace=write,pwrite64,pwritev,writev,fdatasync,fsync,sync_file_range"
WRITTEN = re.compile(r"p?writev?(?:64)?\(\d+<[^>]*-wal>")
SYNCED = re.compile(r"f(?:data)?sync\(\d+<[^>]*-wal>\)\s+= 0")


def traced(folder: Path) -> list[str]:
    """The system calls of an append, in their order."""
    trace = folder / "calls"
    command = ["strace", "-f", "-y", "-o", str(trace), "-e", CALLS]
    program = [sys.executable, "-c", APPENDING, str(folder / "a.db")]
    done = subprocess.run([*command, *program], capture_output=True, check=False, timeout=120)
    if done.returncode != 0 and not trace.exists():
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr.decode()
    calls = trace.read_text("utf-8", "replace").splitlines()
    first = next(n for n, call in enumerate(calls) if '"before\\n"' in call)
    last = next(n for n, call in enumerate(calls) if '"after\\n"' in call)
    return calls[first + 1 : last]


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_an_append_returns_after_the_disk_has_confirmed_what_was_written(tmp_path: Path) -> None:
    calls = traced(tmp_path)
    written = [n for n, call in enumerate(calls) if WRITTEN.search(call)]
    synced = [n for n, call in enumerate(calls) if SYNCED.search(call)]
    assert written, "nothing was written to the log: the test looks at the wrong calls"
    assert synced, "the log was not synced"
    assert max(written) < max(synced), "something was written after the last sync"


KEEPING = """
import os, sys
from pathlib import Path
import refold
from refold.infrastructure.maintenance.restore import restore_log

folder = Path(sys.argv[1])
with refold.open(folder / "a.db") as memory:
    memory.conversation("t").append({"role": "user", "content": "first"})
    os.write(1, b"before\\n")
    memory.anchor(folder / "exported")
    os.write(1, b"exported\\n")
    memory.backup(folder / "copy.db")
    os.write(1, b"backed up\\n")
    memory.salvage(folder / "salvaged.db")
    os.write(1, b"salvaged\\n")
    memory.anchor(accept=True)
    os.write(1, b"accepted\\n")
restore_log(folder / "copy.db", folder / "restored.db")
os.write(1, b"restored\\n")
"""
STEPS = {
    "exported": ["exported"],
    "backed up": ["copy.db", "copy.db.anchor"],
    "salvaged": ["salvaged.db", "salvaged.db.anchor"],
    "accepted": ["a.db.anchor"],
    "restored": ["restored.db", "restored.db.anchor"],
}
"""What somebody relies on after each of these returned."""
NAMED = re.compile(r'(?:link|linkat|rename|renameat|renameat2)\(.*"([^"]+)"(?:, \w+)?\)\s+= 0')


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_what_is_kept_outside_of_the_log_is_on_the_disk_when_it_is_told(tmp_path: Path) -> None:
    trace = tmp_path / "calls"
    calls = f"{CALLS},link,linkat,rename,renameat,renameat2"
    command = ["strace", "-f", "-y", "-s", "200", "-o", str(trace), "-e", calls]
    program = [sys.executable, "-c", KEEPING, str(tmp_path)]
    done = subprocess.run([*command, *program], capture_output=True, check=False, timeout=120)
    if done.returncode != 0 and not trace.exists():
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr.decode()
    seen = trace.read_text("utf-8", "replace").splitlines()
    at = {name: next(n for n, c in enumerate(seen) if f'"{name}\\n"' in c) for name in STEPS}
    for name, files in STEPS.items():
        for file in files:
            assert is_kept(seen[: at[name]], tmp_path, file), (name, file)


def is_kept(calls: list[str], folder: Path, name: str) -> bool:
    """Whether content and name of a file would outlive a loss of power after these calls.

    It was made under another name, or in another folder: the file is followed by its names.
    """
    lasts = {name, f"{name}.new"}
    of_file = [n for n, c in enumerate(calls) if any(f"/{last}>" in c for last in lasts)]
    written = max((n for n in of_file if "write" in calls[n]), default=-1)
    synced = max((n for n in of_file if "sync(" in calls[n]), default=-1)
    found = ((n, NAMED.search(call)) for n, call in enumerate(calls))
    named = max((n for n, m in found if m and Path(m[1]) == folder / name), default=-1)
    folders = max(
        (n for n, c in enumerate(calls) if f"<{folder}>" in c and "sync(" in c), default=-1
    )
    return written < synced < named < folders
