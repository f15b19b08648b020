"""A store while it is checked: opened several times, read through each opening, compared with what was said."""

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from refold.application.api.conversation_memory import ConversationMemory as Conversation
from refold.application.api.memory import Memory
from refold.testing.embedder_checks import ended_in
from refold.testing.findings import Findings, shown
from refold.testing.places import Opening

Fields = dict[str, Any]


class Stored(NamedTuple):
    """A message as it was read."""

    position: int
    role: str
    content: object


class CheckedStore:
    """Opens a place again and again, and knows which conversations belong to this check."""

    def __init__(self, opening: Opening, findings: Findings, run: str, timeout: float) -> None:
        self._opening = opening
        self._run = run
        self._timeout = timeout
        self._lock = threading.Lock()
        self._opened: list[Memory] = []
        self.findings = findings

    def open(self) -> Memory:
        """Open another memory, as another process would; it is closed at the end."""
        memory = self._opening()
        with self._lock:
            self._opened.append(memory)
        return memory

    def close(self) -> None:
        """Close what is still open."""
        while self._opened:
            memory = self._opened.pop()
            with suppress(Exception):
                memory.close()

    def thread_id(self, name: str) -> str:
        """Return the id of a conversation that only this run knows."""
        return f"refold-check-{self._run}-{name}"

    def conversation(self, name: str, memory: Memory | None = None) -> Conversation:
        """Return a conversation of this run, in a memory of its own where none is given."""
        return (memory or self.open()).conversation(self.thread_id(name))

    def probe(self, name: str, work: Callable[["CheckedStore"], None]) -> None:
        """Run one probe, in a thread that holds nothing up."""
        with self.findings.probe(name, advice=_RAISING):
            ended_in(lambda: work(self), self._timeout)

    def compare(
        self,
        conversation: Conversation,
        expected: Sequence[Fields],
        *,
        rule: str,
        where: str,
        advice: str,
    ) -> bool:
        """Compare what is stored with what was acknowledged; return whether it is the same."""
        seen = read(conversation)
        found = [one.content for one in seen]
        wanted = [one["content"] for one in expected]
        if as_json(found) == as_json(wanted) and _in_a_row(seen):
            return True
        missing = [one for one in map(as_json, wanted) if one not in {*map(as_json, found)}]
        kind, what = rule, f"{len(found)} messages: {shown(found)}"
        is_plain = rule in _PLAIN
        if len(found) < len(wanted) or missing:
            what = f"{len(found)} of {len(wanted)}; missing is {shown(missing[:1])}; there is {shown(found)}"
        elif len(found) > len(wanted):
            kind = "duplicates" if is_plain else rule
            what = f"{len(found)} messages where {len(wanted)} were appended"
        elif sorted(map(as_json, found)) == sorted(map(as_json, wanted)) or not _in_a_row(seen):
            kind = "order" if is_plain else rule
            what = f"positions {[one.position for one in seen][:20]}: {shown(found)}"
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


def said(text: str, role: str = "user") -> Fields:
    """Return a message with a text."""
    return {"role": role, "content": text}


def talk(count: int, mark: str) -> list[Fields]:
    """Return so many messages, questions and answers, no two alike."""
    roles = ("user", "assistant")
    return [said(f"{mark} {n}: is step_{n}.py done?", roles[n % 2]) for n in range(count)]


def as_json(value: object) -> str:
    """Return JSON data as text, in which every difference shows, the order of keys as well."""
    return json.dumps(value, ensure_ascii=True)


def _in_a_row(seen: Iterable[Stored]) -> bool:
    return all(one.position == n for n, one in enumerate(seen))


def raised(work: Callable[[], object]) -> Exception | None:
    """Return the exception that a call ends with; None where it returns."""
    try:
        work()
    except Exception as error:
        return error
    return None


def in_threads(works: Sequence[Callable[[], object]]) -> list[Exception]:
    """Run all at once, and return what was raised."""
    barrier = threading.Barrier(len(works))
    errors: list[Exception] = []

    def run(work: Callable[[], object]) -> None:
        barrier.wait(30)
        if (error := raised(work)) is not None:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


_PLAIN = frozenset({"content", "durable", "lost"})
"""Rules under which another kind of difference has a rule of its own."""
_RAISING = "Let every operation that is in order succeed; raise LogError where the store fails."
