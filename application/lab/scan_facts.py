"""The facts that a scan asks for: what the person said, and the files and commands that a session uses again."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Literal, NamedTuple

from refold.domain.facts.cues import redact
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import Message
from refold.domain.value import is_object

from .exam_facts import (
    Shown,
    asks,
    command_text,
    commands_of,
    inputs_of,
    paths_of,
    said_by_person,
)

LossKind = Literal["requests", "rules", "files", "commands"]
"""Kind of a fact in a scan.

Sentences of the person that ask to do something, sentences of the person that hold from then on, files that tools
were called with or that the person named, and whole shell commands.
"""

LOSS_KINDS: tuple[LossKind, ...] = ("requests", "rules", "files", "commands")
PATH_FIELDS = ("file_path", "path", "filePath", "notebook_path", "absolute_path", "dir_path")
"""Fields of tool inputs that name a file or a folder."""
_PATCHED = lazy_pattern(r"^\*\*\* (?:Update|Add|Delete) File: (.+?)\s*$", re.MULTILINE)
_RULE = lazy_pattern(
    r"\b(?:never|always|must|mustn['’]?t|from now on|make sure|under no circumstances|"
    r"(?:you|we|it|they) (?:should(?: not|n['’]t)|may not|cannot|can['’]t)|"
    r"(?:prefer|avoid)\b(?! (?:to see|seeing))|(?:no|not) (?:new|more) \w+|"
    r"only (?:use|ever|run|touch|change|edit)|without (?:asking|changing|touching|breaking)|"
    r"leave .{1,40} (?:alone|as is|unchanged|untouched))\b"
    r"|(?:^|[.,;:(–—-]\s*|\b(?:please|and|but|so|also|just|then)\s+)(?:do not|don['’]?t)\b"
    r"(?! (?:see|know|think|have|get|understand|mind|worry)\b)"
    r"|不要|不许|禁止|不得|必须|务必|一律|只能|记住",
    re.IGNORECASE,
)
_WORD = lazy_pattern(r"[^\W\d_]{3,}|\d+")
_COMMON_WORDS = """
the and for you are that this with from have has was were will would can could should not but its all any our
your they them then than there here what when which who how why also just let please now does did done into
onto out over about want need make sure
"""
"""Words that are in too many sentences to tell them apart."""
_COMMON = frozenset(_COMMON_WORDS.split())
_STEPS = lazy_pattern(r"\s*(?:&&|\|\||;|\||\n)\s*")
_REDIRECTION = lazy_pattern(r"\s*(?:\d?>>?\s*&?[\w./-]+|<\s*/dev/null)")
_MINOR = ("cd ", "tail", "head", "echo", "sleep", "true", "grep")
_FILE = lazy_pattern(r"\w\.\w+|(?:Make|Docker|Gem|Just)file|LICENSE")
_QUESTION = lazy_pattern(r"[?？]$")
_ASKS_TO_ACT = lazy_pattern(
    r"\b(?:can|could|would|will) (?:you|we)\b|\blet['’]?s\b|\bplease\b|请|帮我", re.IGNORECASE
)
_LEAST_WORDS = 3
"""A sentence with fewer words of its own counts only as a whole."""
_ENOUGH = 2 / 3
_SHORTEST_COMMAND = 12
"""A shorter command, such as ``git status``, needs no memory."""


class Need(NamedTuple):
    """A fact that a session had before a compaction."""

    kind: LossKind
    text: str


def needs_of(message: Message) -> Iterator[Need]:
    """Yield the facts of a message, without those that only results of tools have."""
    for sentence in said_by_person(message):
        is_question = _QUESTION.search(sentence) is not None
        if _RULE.search(sentence) and not is_question:
            yield Need("rules", sentence)
        elif asks(sentence) and (not is_question or _ASKS_TO_ACT.search(sentence)):
            yield Need("requests", sentence)
        yield from (Need("files", path) for path in paths_of(sentence) if is_file(path))
    for fields in inputs(message):
        yield from (Need("files", path) for path in used_paths(fields))
    for command in commands_of(message):
        if len(command) >= _SHORTEST_COMMAND:
            yield Need("commands", command)


def inputs(message: Message) -> Iterator[Mapping[str, Any]]:
    """Yield the inputs of a message's tool calls."""
    for block in message.blocks():
        fields = block.get("input")
        if block.get("type") == "tool_use" and is_object(fields):
            yield fields


def used_paths(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files that a call names in a field for paths, in its command or in its patch."""
    command, patch = command_text(fields), fields.get("input")
    for text in (*(fields.get(name) for name in PATH_FIELDS), command):
        if isinstance(text, str):
            yield from filter(is_file, paths_of(text))
    for text in (command, patch):
        if isinstance(text, str) and "*** " in text:
            yield from _PATCHED.findall(text)


def is_file(path: str) -> bool:
    """Return whether a path ends in the name of a file."""
    return _FILE.search(path.rpartition("/")[2]) is not None


def telling_part(need: Need, most: int) -> str:
    """Return a long text from shortly before the words that make it a rule, else the whole text.

    Credentials are masked first: a part of one would not be recognised.
    """
    text = redact(need.text)
    found = _RULE.search(text) if need.kind == "rules" and len(text) > most else None
    if found is None or found.end() <= most // 2:
        return text
    begin = text.rfind(" ", 0, max(0, found.start() - most // 4)) + 1
    return f"… {text[begin:]}" if begin else text


class LaterUses:
    """The places where the messages after a compaction use facts again."""

    def __init__(self, messages: Sequence[Message], start: int) -> None:
        self._at: dict[Need, int] = {}
        self._goes_on = any(message.role == "assistant" for message in messages[start:])
        own = [place for place in range(start) if any(said_by_person(messages[place]))]
        self._newest = own[-1] if own else None
        self._lines = _LineWords()
        for place, message in enumerate(messages[start:], start):
            for text in (*inputs_of(message), *said_by_person(message)):
                self._lines.add(text, place)
            for fields in inputs(message):
                for path in used_paths(fields):
                    self._at.setdefault(Need("files", path), place)
            for command in commands_of(message):
                self._at.setdefault(Need("commands", command), place)

    def needs(self, need: Need, said_at: int) -> bool:
        """Return whether the session needs a fact again.

        A rule holds as long as the session goes on. A request is needed if the person's newest message before the
        compaction has it, or if one line of a later input or message has two thirds of its words.
        """
        match need.kind:
            case "rules":
                return self._goes_on
            case "requests" if said_at == self._newest:
                return self._goes_on
            case _:
                return self.place(need) is not None

    def place(self, need: Need) -> int | None:
        """Return the position of the message that uses a fact first, or None without one."""
        if need.kind not in ("requests", "rules"):
            return self._at.get(need)
        return self._lines.place(words_in(need.text), _ENOUGH)


class KeptText:
    """A summary or a ledger, to find out which facts it has."""

    def __init__(self, *texts: str) -> None:
        self._shown = Shown(texts)
        self._lines = _LineWords()
        for text in texts:
            self._lines.add(text, 0)

    def has(self, need: Need) -> bool:
        """Return whether the text has a fact.

        A file counts by its path or its name, a command by itself or its longest step, a sentence by itself
        or if one line has two thirds of its words.
        """
        if self._shown.has(need.text):
            return True
        match need.kind:
            case "files":
                return self._shown.names(need.text.rpartition("/")[2])
            case "commands":
                return self._shown.has(main_step(need.text))
            case "requests" | "rules":
                return self._lines.place(words_in(need.text), _ENOUGH) is not None

    def has_exact(self, text: str) -> bool:
        """Return whether the text has another one as whole words, with white space and letters as they are there."""
        return self._shown.has(text)

    def share(self, need: Need) -> float:
        """Return the largest share of the words of a fact that one line has."""
        return self._lines.share(words_in(need.text))


class _LineWords:
    """The words of each line of texts."""

    def __init__(self) -> None:
        self._lines: dict[str, list[int]] = {}
        self._places: list[int] = []

    def add(self, text: str, place: int) -> None:
        """Add the lines of a text that stands at a place."""
        for line in text.splitlines():
            for word in words_in(line):
                self._lines.setdefault(word, []).append(len(self._places))
            self._places.append(place)

    def place(self, words: Set[str], share: float) -> int | None:
        """Return the first place with a line that has this share of the words. A short sentence has none."""
        if len(words) < _LEAST_WORDS:
            return None
        counts = self._counts(words)
        found = [line for line, count in counts.items() if count >= share * len(words)]
        return self._places[min(found)] if found else None

    def share(self, words: Set[str]) -> float:
        """Return the largest share of the words that one line has."""
        return max(self._counts(words).values(), default=0) / max(1, len(words))

    def _counts(self, words: Set[str]) -> Counter[int]:
        return Counter(line for word in words for line in self._lines.get(word, ()))


def words_in(text: str) -> frozenset[str]:
    """Return the words of a text without common ones, in small letters."""
    found = _WORD.findall(text.casefold())
    return frozenset(word for word in found if word not in _COMMON)


def main_step(command: str) -> str:
    """Return the longest step of a command, without redirections and without what only shortens output."""
    steps = [_REDIRECTION.sub("", step).strip() for step in _STEPS.split(command)]
    telling = [step for step in steps if not step.startswith(_MINOR)]
    return max(telling or steps, key=len)
