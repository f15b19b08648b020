"""MemoryError at the n-th allocation: of a load, a fold, a recall, a compaction, an append; and what holds afterwards.

python -m tests.faults.no_memory [--rounds N] [--seed N] [--case CASE]

The allocations are CPython's own, made to fail by ``_testcapi.set_nomemory``. Where a build has no
``_testcapi``, the error is raised at the n-th line of refold's code instead.
"""

import argparse
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import refold

from .children import Ended, import_everything, run_apart
from .commands import Scene
from .reading_back import problems_of, read_back
from .sample_store import Store, make_store, mark_of, open_store

CRASHES = (-6, -11)
"""SIGABRT and SIGSEGV: CPython itself does not survive every failed allocation. Then it is a kill."""

MOST = 5.0
"""The largest deeds make about 10 to the power of this allocations."""

Deed = Callable[[refold.Memory], Any]


def _append(memory: refold.Memory) -> object:
    message = {"role": "user", "content": f"{mark_of(8_000)} was said without memory"}
    return memory.conversation("three").append(message).positions


def _append_keyed(memory: refold.Memory) -> object:
    messages = [{"role": "user", "content": f"{mark_of(n)} and this"} for n in (8_001, 8_002)]
    return memory.conversation("three").append(messages, key=["n-1", "n-2"]).positions


DEEDS: dict[str, Deed] = {
    "append": _append,
    "append keyed": _append_keyed,
    "load": lambda m: m.conversation("one").version,
    "context": lambda m: m.conversation("one").context().tokens,
    "context at": lambda m: m.conversation("one").context(at=60).tokens,
    "list": lambda m: len(m.conversations()),
    "recall": lambda m: len(m.conversation("one").recall("faults of file_20.py").hits),
    "compact": lambda m: m.conversation("three").compact().outcome,
    "fork": lambda m: m.conversation("three").fork(thread_id="forked").thread_id,
    "erase": lambda m: m.conversation("three").erase(2).complete,
    "verify": lambda m: m.verify().ok,
    "replay": lambda m: m.replay().events,
    "open and list": lambda m: 0,
}


LOCK_STAYED_HELD = re.compile(
    r'threading\.py", line \d+, in (__exit__|release|notify)\n(\s.*\n)*MemoryError'
)
"""An allocation failed where the standard library lets go of a lock, which is written in Python: whoever needs this
lock waits in vain until the process ends. What is stored is judged all the same."""


class Case(NamedTuple):
    """A deed, and the allocation that fails in it."""

    store: str
    deed: str
    allocation: int
    in_a_row: int
    """How many allocations fail."""

    def __str__(self) -> str:
        return "/".join(map(str, self))


@contextmanager
def failing(allocation: int, count: int) -> Generator[None]:
    """Let allocations fail from the n-th on."""
    try:
        capi: Any = import_module("_testcapi")
    except ImportError:
        with _failing_lines(allocation):
            yield
        return
    capi.set_nomemory(allocation, allocation + count)
    try:
        yield
    finally:
        capi.remove_mem_hooks()


@contextmanager
def _failing_lines(line: int) -> Generator[None]:
    left = [line]

    def trace(frame: FrameType, event: str, _arg: object) -> Any:
        if "/refold/" not in frame.f_code.co_filename:
            return None
        left[0] -= event == "line"
        if not left[0]:
            raise MemoryError
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


def _struck(folder: Path, deed: str, allocation: int, count: int) -> str:
    """Do a deed without memory; then what a program does next, with the same memory."""
    memory = open_store(folder)
    if deed != "load":
        memory.conversation("one").context()
    told = "unnoticed"
    try:
        with failing(allocation, count):
            DEEDS[deed](memory)
    except MemoryError:
        told = "raised"
        traceback.print_exc()
    except refold.RefoldError as error:
        told = f"refused: {type(error).__name__}: {error}"
    except BaseException as error:
        # CPython and pydantic make other errors of some failed allocations; what holds afterwards counts.
        told = f"raised as {type(error).__name__}"
        traceback.print_exc()
    _go_on(memory)
    memory.close()
    return told


def _go_on(memory: refold.Memory) -> None:
    conversation = memory.conversation("after")
    assert conversation.append(
        {"role": "user", "content": mark_of(8_100)}, key="after"
    ).positions == (0,)
    assert len(conversation.context().messages) == 1
    assert any(row.thread_id == "after" for row in memory.conversations())
    memory.conversation("one").context()
    memory.conversation("one").recall("faults of file_8.py")
    found = memory.verify()
    assert found.ok, found.damage[:2]


def tried(store: Store, folder: Path, case: Case) -> tuple[str, list[str]]:
    """What the failing allocation led to, and everything that is not as it must be."""
    scene = _scene(store, folder)
    ended = run_apart(lambda: _struck(scene.folder, case.deed, case.allocation, case.in_a_row))
    found = list(_problems(ended))
    told = str(ended.answer or f"ended with {ended.status}")
    if "LogDamaged" in told or "LogGone" in told:
        found.append(told)
    found += _lost(scene, case)
    return told.partition(":")[0], found


def _problems(ended: Ended) -> Iterator[str]:
    # What CPython prints of destructors that fail without memory is no find by itself.
    # Waiting for a lock that stays held is all that is excused.
    waits = ended.hung or "LogBusy" in ended.err.strip().rpartition("\n")[2]
    if waits and LOCK_STAYED_HELD.search(ended.err):
        return
    if ended.hung and not _thread_never_began(ended):
        yield from problems_of(ended)
    elif ended.status != 0 and not ended.hung and ended.status not in CRASHES:
        yield f"exit code {ended.status}: {ended.err.strip()[:1500]} … {ended.err.strip()[-700:]}"


def _thread_never_began(ended: Ended) -> bool:
    """Whether a thread died before it began its work: ``Thread.start`` and executors wait for it then, for ever."""
    in_start = 'threading.py", line' in ended.err and " in start\n" in ended.err
    died = "Exception ignored in thread started by" in ended.err
    return "Exception in thread refold_" in ended.err or (in_start and died)


def _lost(scene: Scene, case: Case) -> Iterator[str]:
    back = read_back(scene, salvage=False)
    yield from back.wrong
    yield from (f"refused afterwards: {what}" for what in back.refused.values())
    expected = scene.store.marks
    if case.deed == "erase":
        expected -= {s.mark for s in scene.store.said if (s.thread_id, s.position) == ("three", 2)}
    if gone := sorted(expected - back.read):
        yield f"LOST: {gone[:5]}"
    if len({mark_of(8_001), mark_of(8_002)} & back.read) == 1:
        yield "half of an append is stored"
    yield from (f"stored more than once: {mark}" for mark in back.doubled)


def _scene(store: Store, folder: Path) -> Scene:
    place = folder / "case"
    shutil.rmtree(place, ignore_errors=True)
    (place / "out").mkdir(parents=True)
    return Scene(store, Path(shutil.copytree(store.folder, place / "store")), place / "out")


def cases(stores: list[Store], seed: int) -> Iterator[Case]:
    """Each deed in turn; the allocation is drawn so that each order of magnitude comes as often."""
    draw = random.Random(seed)
    while True:
        for store in stores:
            for deed in draw.sample(sorted(DEEDS), len(DEEDS)):
                allocation = int(10 ** draw.uniform(0, MOST))
                yield Case(store.name, deed, allocation, draw.choice((1, 1, 3, 50, 1_000)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="how many cases")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only cases with this in their text")
    parser.add_argument("--case", help="try this case alone")
    options = parser.parse_args()
    import_everything()
    with tempfile.TemporaryDirectory(prefix="no-memory-") as name:
        sys.exit(run(Path(name), options))


def run(folder: Path, options: Any) -> bool:
    """Try the cases and print what is found; whether anything was."""
    stores = [make_store(folder, name) for name in ("closed", "encrypted")]
    by_name = {store.name: store for store in stores}
    until = time.monotonic() + options.seconds
    outcomes, bad = Counter[str](), 0
    chosen = [_parsed(options.case)] if options.case else cases(stores, options.seed)
    for case in chosen:
        if outcomes.total() >= options.rounds or time.monotonic() > until:
            break
        if options.only not in str(case):
            continue
        told, found = tried(by_name[case.store], folder, case)
        outcomes[told] += 1
        bad += bool(found)
        if found or options.case:
            print(f"CASE {case} ({told})", *(f"  {what}" for what in found), sep="\n", flush=True)
    print(f"no memory: {outcomes.total()} cases, {bad} of them bad ({dict(outcomes)})")
    return bool(bad)


def _parsed(text: str) -> Case:
    store, deed, allocation, count = text.split("/")
    return Case(store, deed, int(allocation), int(count))


if __name__ == "__main__":
    main()
