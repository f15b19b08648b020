"""The work of each operation, counted, is the same in a short conversation and in a long one."""

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.conversation.entries import Entry
from refold.application.rendering.turn_builder import TurnBuilder
from refold.infrastructure.event_store import codec, stream_reads
from refold.infrastructure.sqlite.sqlite_connection import ProcessCursor
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from tests.support.fake_summarisers import RecordingSummariser

SHORT, LONG = 100, 10_000
LIVE = 20
"""Messages after the summary, at both lengths."""
SMALL, WINDOW = 20_000, 200_000
"""Windows in tokens. In the small one, a compaction leaves the same messages of both conversations."""
REPEATS = 40
TOLERANCE = 0.25
"""Share of bytes that SQLite may write more: it moves entries between pages of an index now and then, at any length."""
WORDS = "The parser reads a token, looks at the next one and decides what it has to do. " * 7
WRITTEN = Path("/proc/self/io")
Act = Callable[[refold.Memory], object]


class CountedWork:
    """Counts statements, decoded events, rendered messages, counted tokens and written bytes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._count: Counter[str] = Counter()
        self._note_calls(patch, ProcessCursor, "execute", "statements")
        self._note_calls(patch, ProcessCursor, "executemany", "statements")
        self._note_calls(patch, codec, "decode", "events decoded")
        self._note_calls(patch, stream_reads, "open_plain_message", "events decoded")
        self._note_calls(patch, EstimatingTokenCounter, "count_message", "messages counted")
        self._note_calls(patch, EstimatingTokenCounter, "count_text", "texts counted")
        add = TurnBuilder.add

        def counted(builder: TurnBuilder, entries: Iterable[Entry]) -> None:
            shown = list(entries)
            self._count["messages rendered"] += len(shown)
            add(builder, shown)

        patch.setattr(TurnBuilder, "add", counted)

    def _note_calls(self, patch: pytest.MonkeyPatch, owner: Any, name: str, what: str) -> None:
        original = getattr(owner, name)

        def counted(*args: Any, **options: Any) -> Any:
            self._count[what] += 1
            return original(*args, **options)

        patch.setattr(owner, name, counted)

    def of(self, act: Callable[[], object]) -> Counter[str]:
        """The work of one call."""
        self._count.clear()
        before = written()
        act()
        return self._count + Counter({"bytes written": written() - before})


def written() -> int:
    """Bytes that this process has written."""
    lines = WRITTEN.read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("wchar")))


def said(number: int) -> dict[str, Any]:
    return {"role": "assistant" if number % 2 else "user", "content": f"{number % 50:02d} {WORDS}"}


def opened(path: Path, window: int = WINDOW) -> refold.Memory:
    return refold.open(
        path,
        window=window,
        summariser=RecordingSummariser(),
        scrub_megabytes=0,
        standing_recall=0,
    )


def filled(path: Path, size: int) -> None:
    with opened(path, SMALL) as memory:
        conversation = memory.conversation("t")
        conversation.append([said(n) for n in range(size - LIVE)], recorded=True)
        assert conversation.compact().outcome == "performed"
        conversation.append([said(n) for n in range(size - LIVE, size)], recorded=True)
        conversation.context()
        memory.conversations()


def append(memory: refold.Memory) -> None:
    memory.conversation("t").append(said(2))


def append_turn(memory: refold.Memory) -> None:
    memory.conversation("t").append([said(2), said(3), said(4)])


def ask(memory: refold.Memory) -> None:
    memory.conversation("t").context()


def say_and_ask(memory: refold.Memory) -> None:
    append(memory)
    ask(memory)


def list_after_append(memory: refold.Memory) -> None:
    append(memory)
    memory.conversations()


def pin(memory: refold.Memory) -> None:
    memory.conversation("t").pin("Keep the API stable.")


ACTS: dict[str, Act] = {
    "an append": append,
    "a turn of three": append_turn,
    "a request": ask,
    "an append and a request": say_and_ask,
    "a list after an append": list_after_append,
    "a pin": pin,
}


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grown")
    for size in (SHORT, LONG):
        filled(folder / f"{size}.db", size)
    return folder


@pytest.fixture
def logs(grown: Path, tmp_path: Path) -> dict[int, Path]:
    folder = tmp_path / "logs"
    shutil.copytree(grown, folder)
    return {size: folder / f"{size}.db" for size in (SHORT, LONG)}


needs_counts = pytest.mark.skipif(sys.platform != "linux", reason="Linux counts written bytes")


@needs_counts
@pytest.mark.parametrize("name", ACTS)
def test_the_work_is_the_same_at_both_lengths(
    logs: dict[int, Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    act, counted, found = ACTS[name], CountedWork(monkeypatch), dict[int, Counter[str]]()
    for size, path in logs.items():
        with opened(path) as memory:
            say_and_ask(memory)
            list_after_append(memory)
            for _ in range(REPEATS):
                found[size] = found.get(size, Counter()) + counted.of(partial(act, memory))
    short, long = (found[size].pop("bytes written", 0) for size in (SHORT, LONG))
    assert found[SHORT] == found[LONG]
    assert long <= (1 + TOLERANCE) * short


@needs_counts
def test_a_new_process_does_the_same_work_for_its_first_request(
    logs: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, found = CountedWork(monkeypatch), dict[int, Counter[str]]()

    def begin(path: Path) -> None:
        with opened(path) as memory:
            ask(memory)

    for size, path in logs.items():
        with opened(path) as memory:
            # The messages that are shown are read; a compaction of few messages leaves some more of them.
            shown = len(memory.conversation("t").context().messages)
        work = counted.of(partial(begin, path))
        found[size] = work - Counter({"events decoded": shown, "messages rendered": shown})
    assert found[LONG] <= found[SHORT]


@needs_counts
def test_the_counts_notice_work(logs: dict[int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    counted = CountedWork(monkeypatch)
    with opened(logs[SHORT]) as memory:
        work = counted.of(partial(say_and_ask, memory))
        whole = counted.of(lambda: list(memory.conversation("t").messages()))
    assert work["bytes written"] > 4_096
    assert all(work[what] for what in ("statements", "messages counted", "messages rendered"))
    assert whole["events decoded"] > SHORT
