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
chat = memory.conversation("t")
chat.append({"role": "user", "content": "first"})
os.write(1, b"before\\n")
chat.append({"role": "user", "content": "second"})
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
