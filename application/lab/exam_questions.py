"""Questions of the exam: the facts that an agent needs to go on, and values hidden in old messages."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import Message
from refold.domain.value import is_object

from .exam_facts import commands_of, one_line, said_by_person, texts_of

RESUME_KINDS = ("asked", "command", "result", "decision", "file")
"""Kinds of facts for going on.

What was asked last, the last command, the end of its result, the last decision with its reason, and the
file that was edited last.
"""
_DECIDES = lazy_pattern(
    r"\b(?:because|instead of|rather than|so that|decided|i'?ll use|let'?s use|we(?:'ll| will) use|the reason)\b|"
    r"因为|决定|改用",
    re.IGNORECASE,
)
_SENTENCE = lazy_pattern(r"(?<=[.!?。！？])\s+|\n+")
_EDITS = lazy_pattern(r"edit|write|create|patch|replace", re.IGNORECASE)
_PATHS = ("file_path", "path", "notebook_path", "filename", "target_file")
_MARK = lazy_pattern(r"(?:[-*#>|+•.\s]+|\d+[.)|\s]\s*)*")
"""Marks before an item of a list, which are not part of its words."""
_SHOWN = 200
"""Characters of a fact that must stand in the request."""


class ResumeFacts:
    """The newest fact of each kind for going on."""

    def __init__(self) -> None:
        self._facts: dict[str, str] = {}
        self._calls: set[str] = set()

    def facts(self) -> dict[str, str]:
        """Return the facts by their kind. A kind that did not occur yet is missing."""
        return dict(self._facts)

    def take(self, message: Message) -> None:
        """Read the next message."""
        if message.role == "assistant":
            self._take_answer(message)
            return
        for sentence in said_by_person(message):
            self._facts["asked"] = sentence[:_SHOWN]
            break
        for block in message.blocks():
            if block.get("tool_use_id") in self._calls:
                self._take_result(" ".join(texts_of(Message(role="user", content=(block,)))))

    def _take_answer(self, message: Message) -> None:
        for command in commands_of(message):
            self._facts["command"] = _beginning(command)
            self._facts.pop("result", None)
        for block in message.blocks():
            fields = block.get("input")
            if block.get("type") == "text":
                self._take_words(str(block.get("text", "")))
            elif is_object(fields) and _EDITS.search(str(block.get("name", ""))):
                path = next((str(fields[name]) for name in _PATHS if fields.get(name)), "")
                if path:
                    self._facts["file"] = path
            if is_object(fields) and ("command" in fields or "cmd" in fields):
                self._calls = {str(block.get("id"))}

    def _take_words(self, text: str) -> None:
        decided = [
            _MARK.sub("", one_line(s), count=1) for s in _SENTENCE.split(text) if _DECIDES.search(s)
        ]
        decided = [s for s in decided if len(s) >= 20]
        if decided:
            self._facts["decision"] = _beginning(decided[-1])

    def _take_result(self, text: str) -> None:
        printed = [one_line(line) for line in text.splitlines() if any(map(str.isalnum, line))]
        if printed:
            self._facts["result"] = _beginning(printed[-1])


def _beginning(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN].rsplit(" ", 1)[0]


class Needle(NamedTuple):
    """A question with a literal answer."""

    question: str
    answer: str


MOST_NEEDLES = 20
"""Maximum number of questions for one session."""
_LABELLED = lazy_pattern(
    r"^[\s\-*|#>\"']*([A-Za-z][A-Za-z0-9 _./-]{5,50}?)[\"'`*]*\s*(?::|=|is|are|was)\s+"
    r"[\"'`*]*([^\s\"'`,;|*]{3,60})[\"'`*,;.|]*\s*$"
)
_VALUE = lazy_pattern(r"(?=.*\d)[\w.:/%@+-]+|[\w.-]+(?:[/_][\w.-]+)+")
_WORD = lazy_pattern(r"[A-Za-z][A-Za-z0-9]{2,}")


def needles_in(hidden: Sequence[Message], history: Sequence[Message]) -> list[Needle]:
    """Return questions on labelled values ("timeout: 30s") in hidden messages, spread over the session.

    The label must have one value in the whole session, and a word that few messages have.
    """
    values: dict[str, set[str]] = {}
    for message in history:
        for label, value in _labelled(message):
            values.setdefault(label, set()).add(value)
    common = _common_words(history)
    found = dict[str, Needle]()
    for message in hidden:
        for label, value in _labelled(message):
            words = [word.casefold() for word in _WORD.findall(label)]
            if len(values[label]) == 1 and len(words) > 1 and any(w not in common for w in words):
                found.setdefault(label, Needle(f"What is the value of {label}?", value))
    needles = list(found.values())
    step = max(1, len(needles) // MOST_NEEDLES)
    return needles[::step][:MOST_NEEDLES]


def _labelled(message: Message) -> Iterator[tuple[str, str]]:
    for text in texts_of(message):
        for line in text.splitlines()[:400]:
            found = _LABELLED.match(line[:160])
            if found and _VALUE.fullmatch(found[2].strip(".")):
                yield one_line(found[1]), found[2].strip(".")


def _common_words(history: Sequence[Message]) -> set[str]:
    """Return the words that more than a tenth of the messages have."""
    counts = Counter[str]()
    for message in history:
        counts.update({w.casefold() for text in texts_of(message) for w in _WORD.findall(text)})
    return {word for word, count in counts.items() if count > max(3, len(history) // 10)}
