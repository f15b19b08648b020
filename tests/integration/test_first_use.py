"""Threads that use a memory for the first time at once: modules, validators and adapters are made for all of them."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys, threading
import refold

memory = refold.open(sys.argv[1])
together, failed = threading.Barrier(8), []

def use(number):
    talk = memory.conversation(f"talk-{number % 4}")
    try:
        together.wait()
        talk.append({"role": "user", "content": f"question {number} about src/a.py"}, key=f"{number}")
        talk.context()
        memory.conversations()
        talk.recall("question")
        talk.explain()
        talk.summaries()
        talk.query(limit=1)
        memory.stats()
    except BaseException as error:
        failed.append(f"{type(error).__name__}: {error}")

threads = [threading.Thread(target=use, args=[number]) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed, sum(row.messages for row in memory.conversations()))
memory.close()
"""
FORKS = """
import os, sys, threading, time
import refold

memory = refold.open(sys.argv[1])
begun = threading.Event()

def use():
    begun.set()
    memory.conversation("talk").recall("question")
    memory.stats()

thread = threading.Thread(target=use)
thread.start()
begun.wait()
time.sleep(float(sys.argv[2]))
pid = os.fork()
if not pid:
    # The child has every module whole, or imports it itself.
    with refold.open(sys.argv[1] + ".child") as own:
        own.conversation("talk").recall("question")
        own.stats()
    os._exit(0)
thread.join()
_, status = os.waitpid(pid, 0)
memory.close()
sys.exit(status)
"""

BUILDS = """
import os, sys, threading, time
import refold
from pydantic import BaseModel
from pydantic_core import core_schema
from refold.domain.late_model import LateBase

begun, finished = threading.Event(), []

class Slow:
    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        begun.set()
        time.sleep(0.5)
        finished.append(cls)
        return core_schema.any_schema()

class Value({base}, defer_build=True):
    slow: Slow

refold.open(sys.argv[1]).close()
thread = threading.Thread(target=Value, kwargs={{"slow": 1}})
thread.start()
begun.wait()
pid = os.fork()
if not pid:
    os._exit(0 if finished and Value(slow=2).slow == 2 else 5)
thread.join()
_, status = os.waitpid(pid, 0)
other = threading.Thread(target=type("Value", ({base},), {{"__annotations__": {{"n": int}}}}), kwargs={{"n": 1}})
other.start()
other.join(20)
sys.exit(os.waitstatus_to_exitcode(status) or other.is_alive())
"""

INTERRUPTED = """
import _imp, sys
import refold

with refold.open(sys.argv[1], window=8_000) as memory:
    talk = memory.conversation("talk")
    for number in range(40):
        talk.append({"role": "user", "content": f"question {number} " * 100})
    # As Ctrl-C leaves it if it arrives while Python looks for a module.
    _imp.acquire_lock()
    print(talk.compact())
    assert not _imp.lock_held()
"""


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


def test_eight_threads_use_a_memory_for_the_first_time_at_once(tmp_path: Path) -> None:
    for attempt in range(3):
        done = run(PROGRAM, str(tmp_path / f"{attempt}.db"))
        assert (done.returncode, done.stdout.strip()) == (0, "[] 8"), done.stderr


def test_a_process_that_is_forked_during_an_import_can_import_as_well(tmp_path: Path) -> None:
    for attempt in range(4):
        done = run(FORKS, str(tmp_path / f"{attempt}.db"), f"{attempt * 0.01}")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("base", ["BaseModel", "LateBase"])
def test_a_process_is_not_forked_while_another_thread_builds_a_class(
    tmp_path: Path, base: str
) -> None:
    done = run(BUILDS.format(base=base), str(tmp_path / "log.db"))
    assert done.returncode == 0, done.stderr


def test_a_compaction_goes_on_after_an_interrupted_import(tmp_path: Path) -> None:
    done = run(INTERRUPTED, str(tmp_path / "log.db"))
    assert done.returncode == 0, done.stderr
