"""Threads that use a memory for the first time at once: modules, validators and adapters are made for all of them."""

import subprocess
import sys
from pathlib import Path

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
