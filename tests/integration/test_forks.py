"""Processes that fork while a memory is open: nothing is lost, nobody hangs, what was inherited is refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from refold.infrastructure.files.fork_gate import PATIENCE
from tests.support.forking import PAST_PYTHON

ROOT = Path(__file__).resolve().parents[2]
INHERITED = "was opened before this process was forked; call refold.open in this process"
IN_USE = "was in use when this process was forked"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no forks on Windows")


def lines_of(program: str, folder: Path) -> list[str]:
    """What a program says that forks; it runs apart, for the threads of a test runner would fork as well."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.forking_program", program, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.slow
def test_parent_and_child_append_in_turns_and_the_parent_closes_first(tmp_path: Path) -> None:
    assert lines_of("open_again", tmp_path) == ["one child parent c0 c1 c2 c3 c4 True"]


def test_closing_or_collecting_what_was_inherited_touches_no_file(tmp_path: Path) -> None:
    ways = ("fork", *(way.__name__ for way in PAST_PYTHON))
    assert lines_of("let_go", tmp_path) == [f"{way} untouched" for way in ways]


@pytest.mark.slow
def test_a_fork_past_python_is_noticed_and_the_log_refused_under_each_of_its_names(
    tmp_path: Path,
) -> None:
    lines = lines_of("refused", tmp_path)
    assert len(lines) == 5 * len(PAST_PYTHON)
    for first in range(0, len(lines), 5):
        inherited, by_name, by_link, other, closed = lines[first : first + 5]
        assert inherited.startswith("OpenedBeforeFork")
        assert INHERITED in inherited
        assert all(one.startswith("OpenedBeforeFork") for one in (by_name, by_link))
        assert IN_USE in by_name
        assert IN_USE in by_link
        assert (other, closed) == ("stored other", "stored closed")


@pytest.mark.slow
def test_children_of_children_open_their_own(tmp_path: Path) -> None:
    assert lines_of("below", tmp_path) == ["refused", "refused", "one child grandchild again"]


@pytest.mark.slow
def test_a_fork_in_the_middle_of_commits_waits_for_them_and_hangs_nobody(tmp_path: Path) -> None:
    *children, one, other, sound = lines_of("in_commits", tmp_path)
    assert sorted(children) == [f"stored child{n}" for n in range(6)]
    assert (one, other, sound) == ("thread True", "thread True", "True")


@pytest.mark.slow
def test_after_a_commit_that_takes_too_long_the_child_refuses_this_log_alone(
    tmp_path: Path,
) -> None:
    lines = lines_of("long_commit", tmp_path)
    lines.remove(
        f"waited True usually {PATIENCE}"
    )  # It may be told before or after what the child tells.
    other, refused, parent = lines
    assert PATIENCE == 5.0
    assert other == "stored other"
    assert refused.startswith("OpenedBeforeFork")
    assert IN_USE in refused
    assert parent == "one slow"


@pytest.mark.slow
def test_a_writer_that_is_killed_in_the_lock_holds_nobody_up_while_its_child_lives(
    tmp_path: Path,
) -> None:
    assert lines_of("killed_in_the_lock", tmp_path) == ["stored after True"]


@pytest.mark.slow
def test_a_thread_that_forks_in_a_transaction_of_its_own_does_not_wait_for_itself(
    tmp_path: Path,
) -> None:
    refused, at_once, answer, parent = lines_of("within_a_use", tmp_path)
    assert refused.startswith("OpenedBeforeFork")
    assert (at_once, answer, parent) == ("at once True", "answered", "one two")


@pytest.mark.slow
def test_a_log_that_was_replaced_while_a_fork_had_it_closed_is_noticed(tmp_path: Path) -> None:
    assert lines_of("replaced", tmp_path) == ["LogGone"]


@pytest.mark.slow
def test_a_log_in_memory_lives_on_in_the_parent(tmp_path: Path) -> None:
    refused, parent = lines_of("in_memory", tmp_path)
    assert refused == f"OpenedBeforeFork: :memory: {INHERITED}"
    assert parent == "one two 1"


@pytest.mark.slow
def test_children_of_multiprocessing_store_in_each_of_its_ways(tmp_path: Path) -> None:
    lines = [line for line in lines_of("by_multiprocessing", tmp_path) if "stored" not in line]
    assert lines == [f"{way} 0 True" for way in ("fork", "forkserver", "spawn")]


@pytest.mark.slow
def test_the_asynchronous_interface_is_refused_before_it_asks_a_thread(tmp_path: Path) -> None:
    assert lines_of("asynchronous", tmp_path) == ["refused"] * 10 + ["closed"]


@pytest.mark.slow
def test_a_program_that_is_started_waits_for_nothing_and_closes_nothing(tmp_path: Path) -> None:
    assert lines_of("by_subprocess", tmp_path) == ["stored started True True"]


IMPORTING = """
import builtins, os, signal, sys, threading, time
import refold

_, module, inner, opens = sys.argv
if opens:
    refold.open(":memory:").close()
real, began = builtins.__import__, threading.Event()

def slow(name, *given):
    if name == inner and threading.current_thread() is thread:  # The module is half read now.
        began.set()
        time.sleep(1)
    return real(name, *given)

builtins.__import__ = slow
read = (lambda: refold.open(":memory:").close()) if module == "refold" else lambda: __import__(module)
thread = threading.Thread(target=read)
thread.start()
began.wait()
pid = os.fork()
if not pid:
    refold.open(":memory:").close()
    os._exit(7)
for _ in range(500):
    found, status = os.waitpid(pid, os.WNOHANG)
    if found:
        break
    time.sleep(0.01)
else:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    status = None
thread.join()
print("hangs" if status is None else os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize(
    ("module", "inner", "opens"),
    [
        ("ctypes", "_ctypes", "before"),
        ("concurrent.futures.thread", "concurrent.futures", "before"),
        ("refold", "pydantic", ""),
        ("refold", "refold.infrastructure.files.fork_gate", ""),
    ],
)
def test_a_fork_while_another_thread_imports_does_not_hang(
    module: str, inner: str, opens: str
) -> None:
    words = [sys.executable, "-c", IMPORTING, module, inner, opens]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout.split(), ended.stderr) == (["7"], "")


PAUSED = """
import os, sys, threading, time
import refold

def use(name):
    with refold.open(f"{sys.argv[1]}/{name}.db", window=4_000) as memory:
        talk = memory.conversation("t")
        talk.append({"role": "user", "content": "The port of the test server is 5433."})
        talk.append({"role": "assistant", "content": "I see."})
        talk.recall("port")

def pause(frame, event, _):
    if event == "call" and frame.f_code.co_name == "_words":
        sys.setprofile(None)
        paused.set()
        forked.wait()

def use_and_pause():
    sys.setprofile(pause)
    use("parent")

use("child")
paused, forked = threading.Event(), threading.Event()
thread = threading.Thread(target=use_and_pause)
thread.start()
paused.wait()
pid = os.fork()
if not pid:
    use("child")
    os._exit(7)
for _ in range(1_000):
    found, status = os.waitpid(pid, os.WNOHANG)
    if found:
        break
    time.sleep(0.01)
else:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    status = None
forked.set()
thread.join()
print("hangs" if status is None else os.waitstatus_to_exitcode(status))
"""


def test_a_fork_while_another_thread_computes_a_property_does_not_hang(tmp_path: Path) -> None:
    words = [sys.executable, "-c", PAUSED, str(tmp_path)]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout.split() == ["7"], ended.stderr


LOCKED = """
import asyncio, sys, threading, time, warnings
from pathlib import Path
import refold
from refold.adapters.claude_agent import RefoldSessionStore
from refold.adapters.openai_agents import RefoldSession
from refold.application.api.following import FollowingMemory
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from tests.support.forking import ended, in_child

warnings.simplefilter("ignore")
held, forked = threading.Event(), threading.Event()

def hold():
    if not forked.is_set():
        held.set()
        forked.wait(30)

class HoldingCounter(EstimatingTokenCounter):
    def count_message(self, message):
        hold()
        return super().count_message(message)

SAID, KEY = {"role": "user", "content": "hi"}, {"project_key": "p", "session_id": "s"}
memory = refold.open(Path(sys.argv[1]) / "a.db", counter=HoldingCounter(), telemetry=False)
words = Path(sys.argv[1]) / "words.db"
follower = memory.follow("words", lambda event, tables: hold(), into=words)
lists, store, session = FollowingMemory(memory), RefoldSessionStore(memory), RefoldSession("o", memory)
entry = {"type": "user", "uuid": "u1", "message": SAID}
ways = {
    "list": lambda: lists.follow("t", [SAID]),
    "store": lambda: asyncio.run(store.append(KEY, [entry])),
    "session": lambda: asyncio.run(session.add_items([SAID])) or asyncio.run(session.get_items()),
    "update": follower.update,
    "rebuild": follower.rebuild,
    "stop": lambda: follower.stop() or follower.close(),
}
way = sys.argv[2]
if way in ("update", "rebuild", "stop"):
    forked.set()
    memory.conversation("t").append(SAID)
    forked.clear()
thread = threading.Thread(target=follower.update if way == "stop" else ways[way])
thread.start()
held.wait()
child = in_child(ways[way])
ended(child)
forked.set()
thread.join()
memory.close()
"""


@pytest.mark.slow(but=["list", "store"])
@pytest.mark.parametrize("way", ["list", "store", "session", "update", "rebuild", "stop"])
def test_what_another_thread_uses_at_a_fork_is_refused_in_the_child_at_once(
    tmp_path: Path, way: str
) -> None:
    for package in ("claude_agent_sdk", "agents"):
        pytest.importorskip(package)
    words = [sys.executable, "-c", LOCKED, str(tmp_path), way]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    expected = {"stop": "", "session": "[{'role': 'user', 'content': 'hi'}]\n"}
    refused = f"OpenedBeforeFork: {tmp_path / 'a.db'} {INHERITED}\n"
    assert (ended.stdout, ended.stderr) == (expected.get(way, refused), "")
