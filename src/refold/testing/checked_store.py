"""A store during a check: the place of its log, opened several times, and compared with what was stored."""

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import refold
from refold.application.api.argument_checks import check_path, invalid_argument
from refold.application.api.conversation_memory import ConversationMemory as Conversation
from refold.application.api.memory import Memory
from refold.testing.findings import Findings, show_value
from refold.testing.watched_calls import run_within

Opening = Callable[[], Memory]
"""A function that opens a memory on a log, as another process would."""
Place = str | Path | Opening
"""Place of a log: ``Path("agent.db")``, a folder for a new log, or an ``Opening``."""

Fields = dict[str, Any]

IN_MEMORY = ":memory:"


def opening_of(place: Place, open: Callable[..., Memory] | None = None, **options: Any) -> Opening:
    """Return a function that opens the log at a place. A path is opened with these options.

    ``open`` is called with only the place, instead of ``refold.open``.

    Raises:
        InvalidSetting: the place is not a path, or ``open`` is not a function.
        ValueError: the place is a log in memory, which cannot be opened a second time.

    >>> memory = opening_of(Path("agent.db"), window=8_000)()
    """
    if open is not None:
        if not callable(open):
            raise invalid_argument("open", open, "a function that opens a memory")
        return partial(open, place)
    if callable(place):
        return place
    check_path("place", place)
    if str(place) == IN_MEMORY:
        raise ValueError(
            "a log in memory ends with its memory: give a path, or a callable that opens a store"
        )
    return partial(refold.open, file_at(place), **options)


def file_at(place: str | Path) -> str | Path:
    """Return the path of the log, or the URL unchanged. In a folder, the log is ``check.db``."""
    if isinstance(place, str) and "://" in place:
        return place
    return Path(place) / "check.db" if Path(place).is_dir() else place


class Stored(NamedTuple):
    """A message as it was read."""

    position: int
    role: str
    content: object


class CheckedStore:
    """A place that is opened repeatedly, and the conversations of this check."""

    def __init__(self, opening: Opening, findings: Findings, run: str, timeout: float) -> None:
        self._opening = opening
        self._run = run
        self._timeout = timeout
        self._lock = threading.Lock()
        self._opened: list[Memory] = []
        self.findings = findings

    def open(self) -> Memory:
        """Open another memory, as another process would. It is closed at the end."""
        memory = self._opening()
        with self._lock:
            self._opened.append(memory)
        return memory

    def close(self) -> None:
        """Close all open memories."""
        while self._opened:
            memory = self._opened.pop()
            with suppress(Exception):
                memory.close()

    def thread_id(self, name: str) -> str:
        """Return the thread id of a conversation that only this run uses."""
        return f"refold-check-{self._run}-{name}"

    def conversation(self, name: str, memory: Memory | None = None) -> Conversation:
        """Return a conversation of this run, in a new memory unless one is given."""
        return (memory or self.open()).conversation(self.thread_id(name))

    def probe(self, name: str, work: Callable[["CheckedStore"], None]) -> None:
        """Run one probe in a thread, so that a hanging probe does not block the check."""
        with self.findings.probe(name, advice=_RAISING):
            run_within(lambda: work(self), self._timeout)

    def compare(
        self,
        conversation: Conversation,
        expected: Sequence[Fields],
        *,
        rule: str,
        where: str,
        advice: str,
    ) -> bool:
        """Compare the stored messages with the acknowledged ones, and return whether they are equal."""
        seen = read(conversation)
        found = [one.content for one in seen]
        wanted = [one["content"] for one in expected]
        if as_json(found) == as_json(wanted) and _is_in_order(seen):
            return True
        missing = [one for one in map(as_json, wanted) if one not in {*map(as_json, found)}]
        kind, what = rule, f"{len(found)} messages: {show_value(found)}"
        is_plain = rule in _PLAIN
        if len(found) < len(wanted) or missing:
            what = f"{len(found)} of {len(wanted)}; missing is {show_value(missing[:1])}; there is {show_value(found)}"
        elif len(found) > len(wanted):
            kind = "duplicates" if is_plain else rule
            what = f"{len(found)} messages where {len(wanted)} were appended"
        elif sorted(map(as_json, found)) == sorted(map(as_json, wanted)) or not _is_in_order(seen):
            kind = "order" if is_plain else rule
            what = f"positions {[one.position for one in seen][:20]}: {show_value(found)}"
        self.findings.add(
            kind,
            expected=f"the {len(wanted)} messages that were acknowledged, each once, in order",
            seen=f"{what} ({where})",
            advice=advice,
        )
        return False


def read(conversation: Conversation) -> list[Stored]:
    """Return the messages of a conversation as plain data."""
    return [
        Stored(one.position, one.message.role, one.message.content)
        for one in conversation.messages()
    ]


def text_message(text: str, role: str = "user") -> Fields:
    """Return a message with a text."""
    return {"role": role, "content": text}


def talk(count: int, mark: str) -> list[Fields]:
    """Return ``count`` distinct messages, questions and answers in turn."""
    roles = ("user", "assistant")
    return [text_message(f"{mark} {n}: is step_{n}.py done?", roles[n % 2]) for n in range(count)]


def as_json(value: object) -> str:
    """Return JSON data as text that shows every difference, including the order of keys."""
    return json.dumps(value, ensure_ascii=True)


def _is_in_order(seen: Iterable[Stored]) -> bool:
    return all(one.position == n for n, one in enumerate(seen))


def exception_of(work: Callable[[], object]) -> Exception | None:
    """Return the exception that a call raises, or None."""
    try:
        work()
    except Exception as error:
        return error
    return None


def in_threads(works: Sequence[Callable[[], object]]) -> list[Exception]:
    """Run all functions at once, and return the exceptions."""
    barrier = threading.Barrier(len(works))
    errors: list[Exception] = []

    def run(work: Callable[[], object]) -> None:
        barrier.wait(30)
        if (error := exception_of(work)) is not None:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


_PLAIN = frozenset({"content", "durable", "lost"})
"""Rules whose differences are reported under ``duplicates`` or ``order`` if one of these fits better."""
_RAISING = "Let every valid operation succeed; raise LogError if the store fails."
