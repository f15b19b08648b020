"""Follows todo lists and tasks, whatever tool keeps them, and says which are open."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from refold.domain.json_data import is_list, is_object
from refold.domain.ledger.wording import excerpt

from .lines import Line, Section

_CLOSED = {
    "completed",
    "complete",
    "done",
    "deleted",
    "cancelled",
    "canceled",
    "finished",
    "closed",
}
_NUMBER = re.compile(r"#(\d{1,6})\b")
_CARRIED = re.compile(r"todo(?: #(\d{1,6}))? \((\w+)\): ")


@dataclass(slots=True)
class TaskBoard:
    """The newest todo list and the single tasks that were created beside it."""

    _list: list[Line] | None = None
    _tasks: dict[str, Line] = field(default_factory=dict[str, Line])
    _changes: dict[str, str] = field(default_factory=dict[str, str])

    def replace_list(self, position: int, given: object) -> None:
        """Takes in a call that states the whole list."""
        items = list(_items(given))
        if items:
            self._list = [
                Line(Section.TASKS, position, f"todo ({status}): {words}")
                for words, status in items
                if status not in _CLOSED
            ]

    def create(self, position: int, subject: str, result: str) -> None:
        """Takes in a task that was created; the result tells its number."""
        number = _NUMBER.search(result[:300])
        key = number[1] if number else f"?{len(self._tasks)}"
        label = f" #{key}" if number else ""
        self._tasks[key] = Line(Section.TASKS, position, f"todo{label} (pending): {subject}")

    def change(self, number: object, status: str) -> None:
        """Takes in a task's new status; an unknown number may be a task of an earlier summary."""
        if status and isinstance(number, str | int):
            self._changes[str(number).lstrip("#")] = excerpt(status, 30)

    def lines(self, carried: tuple[Line, ...]) -> list[Line]:
        """What is open now. A new list replaces the carried one; single tasks carry on by number."""
        kept: dict[str, Line] = {}
        for line in carried:
            found = _CARRIED.match(line.text)
            if found and (found[1] or self._list is None):
                kept[found[1] or line.text] = line
        kept |= self._tasks
        open_now: list[Line] = []
        for key, line in kept.items():
            status = self._changes.get(key, "")
            if status in _CLOSED:
                continue
            text = _CARRIED.sub(f"todo #{key} ({status}): ", line.text) if status else line.text
            open_now.append(replace(line, text=text))
        return open_now + (self._list or [])


def _items(given: object) -> Iterator[tuple[str, str]]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return
    for value in list(given.values())[:8] if is_object(given) else ():
        if isinstance(value, list | str):
            yield from _items(cast("object", value))
    for item in given[:60] if is_list(given) else ():
        if is_object(item) and (words := _words(item)):
            yield excerpt(words, 200), excerpt(str(item.get("status", "pending")), 30).casefold()


def _words(item: Mapping[str, Any]) -> str:
    for name in ("content", "step", "title", "task", "text", "subject", "description"):
        if isinstance(value := item.get(name), str) and value.strip():
            return value
    return ""
