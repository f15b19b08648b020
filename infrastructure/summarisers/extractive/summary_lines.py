"""The lines of a summary: sections, headings, and how lines are formatted and parsed."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Any, cast

from refold.domain.facts import cues
from refold.domain.facts.cues import clean, excerpt, shorten, squeeze
from refold.domain.facts.fact import STATEMENTS, Fact
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.value import is_list, is_object


class Section(Enum):
    """A section of the summary. The value is its heading, and the order is that in the text.

    The headings are a storage format: a later compaction parses them.
    """

    REQUESTS = "Requests"
    DECISIONS = "Decisions and constraints"
    FACTS = "Facts and plans"
    MODIFIED = "Files modified"
    READ = "Files read"
    COMMANDS = "Commands"
    ACTIONS = "Actions"
    FAILURES = "Failures"
    VALUES = "Exact values"
    EARLIER = "Earlier summary"
    TASKS = "Open tasks"
    STATE = "Last state"

    __hash__ = object.__hash__  # That of enumerations is slow.


@dataclass(frozen=True, slots=True)
class Line:
    """One extracted line. ``position`` is that of its source message, or None for carried prose."""

    section: Section
    position: int | None
    text: str
    """Text of one line without control characters."""
    count: int = 1
    """Number of occurrences, written as a suffix if above one."""


REPEATED = {
    Section.MODIFIED,
    Section.READ,
    Section.COMMANDS,
    Section.ACTIONS,
    Section.FAILURES,
    Section.VALUES,
}
"""Sections whose lines represent all occurrences: they have a count and the newest position."""

_WRITTEN = lazy_pattern(r"- \[(-?\d{1,9})\] (.+)")
_COUNT = lazy_pattern(r" \(×(\d{1,6})\)$")
_NOT_WORDS = lazy_pattern(r"[\W_]+")


def format_line(line: Line) -> str:
    """Format a line. Carried prose is quoted, so that it cannot look like a line."""
    if line.position is None:
        return f"> {line.text}"
    suffix = f" (×{line.count})" if line.count > 1 else ""
    return f"- [{line.position}] {line.text}{suffix}"


def read_line(section: Section, raw: str) -> Line | None:
    """Parse a line that ``format_line`` formatted, or return None."""
    if section is Section.EARLIER and raw.startswith("> "):
        return Line(section, None, raw[2:])
    found = _WRITTEN.fullmatch(raw)
    if found is None:
        return None
    text, count = found[2], 1
    if section in REPEATED and (suffix := _COUNT.search(text)):
        text, count = text[: suffix.start()], int(suffix[1])
    return Line(section, int(found[1]), text, max(1, count)) if text.strip() else None


def identity(line: Line) -> str:
    """Return the key that identifies equal lines of a section: the file, command, value or words."""
    match line.section:
        case Section.MODIFIED | Section.READ:
            return line.text.partition(" — ")[0]
        case Section.COMMANDS | Section.ACTIONS:
            return line.text.partition(" → ")[0]
        case Section.FAILURES:
            return line.text.partition(" ⇒ ")[0]
        case Section.VALUES:
            return line.text.partition("` — ")[0].strip("`")
        case _:
            return _words_alone(line.text)


@lru_cache(maxsize=1_024)
def _words_alone(text: str) -> str:
    """Return the words of a line, or the line if it has none. Most lines are carried on from the summary before."""
    return _NOT_WORDS.sub(" ", text).strip().casefold() or text


_REQUEST_ROOM = 6_000
_SCANNED = 60_000
_SCANNED_FOR_STEPS = 24_000
_PER_MESSAGE = 8
_MOST_SAID = 4
_MOST_ADVISED = 2
_TYPED = 1_500  # A longer text was pasted, and is only partly the user's own words.


_FENCE = lazy_pattern(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE = lazy_pattern(r"(?<=[.!?])[\"'”’)]?\s+|(?<=[。！？；])|\s*\n\s*")
_BULLET = lazy_pattern(r"^(?:[-*•>]+|\d{1,2}[.)]|#+|\[[ x]\])\s+")
_CODE = lazy_pattern(
    r"^[+\-|{}<$=@/\\│├└]|[{};]$|^\d+[:\t|→]|^\s*(?:at|func|def|class|import|var|const|let) \S+[(.{=]"
)
_WORDLIKE = lazy_pattern(r"[\w\s]")


def _without_code(text: str) -> str:
    """Return the text without fenced code."""
    return _FENCE.sub("\n", text) if "```" in text else text


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text without bullets. Text that looks like code or output is left out."""
    for raw in _SENTENCE.split(text):
        yield from _prose(raw)


def _prose(raw: str) -> Iterator[str]:
    sentence = _BULLET.sub("", raw.strip()).strip(" *_")
    if not 4 <= len(sentence) <= 1_200 or _CODE.search(sentence):
        return
    if len(_WORDLIKE.findall(sentence[:200])) >= 0.7 * min(len(sentence), 200):
        yield sentence


def handover_lines(position: int, words: str) -> list[Line]:
    """Return the lines of an earlier session's summary, each with the position of its message."""
    body = words.rpartition("\nSummary:\n")[2] if "\nAnalysis:" in words else words
    lines = [excerpt(s, 500) for s in _sentences(_without_code(body[:_SCANNED]))]
    return [Line(Section.EARLIER, position, line) for line in lines if len(line) > 24]


def request_line(position: int, words: str, question: Callable[[], str]) -> Line | None:
    """Return a line with the user's own words, joined into one line. A short answer includes its question."""
    text = clean(words if len(words) < 4 * _REQUEST_ROOM else _ends(words))
    if not text:
        return None
    text = shorten(text, _REQUEST_ROOM)
    if len(text) <= 60 and not text.endswith(("?", "？")) and (asked := question()):
        text = f"{text} ← asked: “{squeeze(asked, 140)}”"
    return Line(Section.REQUESTS, position, text)


_STATED = STATEMENTS - {"request"}


def statement_lines(facts: Iterable[Fact], words: str) -> list[Line]:
    """Return what a user's words demand, forbid, prefer or decide, without requests."""
    stated = [fact for fact in facts if fact.kind in _STATED]
    # A short message that only agrees is kept as a request; a second line would waste room.
    stated = [
        f for f in stated if len(f.text) < 0.9 * len(words) or f.kind not in ("rule", "decision")
    ]
    limit = _PER_MESSAGE if len(words) < _TYPED else _PER_MESSAGE // 2
    best = sorted(stated, key=lambda f: (not f.is_main, -cues.weight(f.text)))[:limit]
    return [_fact_line(Section.DECISIONS, "user", fact) for fact in stated if fact in best]


def decision_lines(facts: Iterable[Fact]) -> list[Line]:
    """Return the assistant's decisions, the strongest of each message."""
    decided = [fact for fact in facts if fact.kind == "decision" and fact.is_main]
    return [_fact_line(Section.DECISIONS, "assistant", fact) for fact in decided]


def personal_lines(facts: Iterable[Fact], *, conversation: bool) -> list[Line]:
    """Return sentences about people, preferences and plans.

    In a conversation without tools, this includes looser ones and recommendations. In a working session,
    only sentences of the user that clearly name something of the user's.
    """
    said = [f for f in facts if f.kind == "said" and len(f.text) > 6 and f.text[-1] not in "?？"]
    if conversation:
        said = [f for f in said if f.by == "model" or cues.has_chat_facts(f.text)]
    else:
        said = [f for f in said if f.by != "model" and cues.IDENTITY.search(f.text)]
    best = sorted(said, key=lambda f: -len(cues.FACT.findall(f.text)))
    best = best[: _MOST_SAID if any(f.by != "model" for f in said) else _MOST_ADVISED]
    speakers = ("user", "assistant")
    return [_fact_line(Section.FACTS, speakers[f.by == "model"], f) for f in said if f in best]


def next_lines(position: int, words: str) -> list[Line]:
    """Return the sentences in which the assistant names next steps."""
    said = _without_code(words[:_SCANNED_FOR_STEPS])
    if not cues.NEXT.search(said):
        return []
    found = [s for s in _sentences(said) if cues.NEXT.search(s) and not s.endswith("?")]
    return [Line(Section.TASKS, position, f"next: {excerpt(s, 300)}") for s in found[-3:]]


def last_question(words: str) -> str:
    """Return the question at the end of an assistant text, or an empty text."""
    said = _without_code(words[:_SCANNED_FOR_STEPS])[-1_500:]
    if "?" not in said and "？" not in said:
        return ""
    ending = [s for s in _sentences(said) if s.endswith(("?", "？"))]
    return excerpt(ending[-1], 300) if ending else ""


def _fact_line(section: Section, speaker: str, fact: Fact) -> Line:
    text = clean(" ".join((*fact.under, fact.text)))
    return Line(section, fact.position, f"{speaker}: {shorten(text, 700)}")


def _ends(words: str) -> str:
    return words[: 3 * _REQUEST_ROOM] + "\n" + words[-_REQUEST_ROOM:]


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
_NUMBER = lazy_pattern(r"#(\d{1,6})\b")
_CARRIED = lazy_pattern(r"todo(?: #(\d{1,6}))? \((\w+)\): ")


@dataclass(slots=True)
class TaskBoard:
    """The newest todo list, and the single tasks that were created in addition to it."""

    _list: list[Line] | None = None
    _tasks: dict[str, Line] = field(default_factory=dict[str, Line])
    _changes: dict[str, str] = field(default_factory=dict[str, str])

    def replace_list(self, position: int, given: object) -> None:
        """Replace the list with that of a call."""
        items = list(_items(given))
        if items:
            self._list = [
                Line(Section.TASKS, position, f"todo ({status}): {words}")
                for words, status in items
                if status not in _CLOSED
            ]

    def create(self, position: int, subject: str, result: str) -> None:
        """Add a task that was created. The result contains its number."""
        number = _NUMBER.search(result[:300])
        key = number[1] if number else f"?{len(self._tasks)}"
        label = f" #{key}" if number else ""
        self._tasks[key] = Line(Section.TASKS, position, f"todo{label} (pending): {subject}")

    def change(self, number: object, status: str) -> None:
        """Update the status of a task. An unknown number may be a task of an earlier summary."""
        if status and isinstance(number, str | int):
            self._changes[str(number).lstrip("#")] = excerpt(status, 30)

    def lines(self, carried: tuple[Line, ...]) -> list[Line]:
        """Return the open tasks. A new list replaces the carried one; single tasks continue by number."""
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
