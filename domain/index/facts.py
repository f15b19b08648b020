"""Read the exact values of messages for the index, each message once."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from refold.domain.ledger import cues
from refold.domain.ledger.exact_values import (
    commands_in,
    exact_values,
    is_trivial,
    paths_in,
    says_nothing,
    steps_of,
)
from refold.domain.ledger.gathering import Source as Place
from refold.domain.ledger.quotations import split_quotations
from refold.domain.ledger.quote import Print, print_of
from refold.domain.ledger.speech import is_program_text, sentences, user_words, without_code
from refold.domain.ledger.tool_calls import (
    Action,
    outcome_of,
    parse_call,
    result_text,
)
from refold.domain.ledger.tool_calls import Kind as ActionKind
from refold.domain.messages import Message, strings_in
from refold.domain.text_cuts import last_mark
from refold.domain.value import is_object

from .entry import IndexEntry, Kind, Source, merge_entries

_SCANNED = 24_000
"""Characters of a text that are read from its beginning."""
_SCANNED_END = 6_000
"""Characters of a longer text that are read from its end."""
_TYPED = 1_500
"""Characters of a user's text. A longer one is pasted; the ledger quotes what it asks for."""
_NUMBERS = 4_000
"""The same of a result for numbers; most of its numbers are of no use."""
_LONGEST: Mapping[Kind, int] = {
    "decision": 300,
    "ran": 300,
    "result": 200,
    "file": 200,
    "said": 300,
    "path": 200,
    "command": 1_200,
    "name": 60,
    "value": 240,
}
"""Maximum length of each kind in characters. Of a longer decision or result the beginning is kept."""
_SHORTEST = 4
_SHORTEST_DECISION = 20
_SHORTEST_NAME = 5
_SHORTEST_STEP = 6
_NAME = re.compile(
    r"(?<![\w./@-])(?:_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+_{0,2}|[A-Za-z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+"
    r"|[a-z][a-z0-9]*(?:-[a-z0-9]+){1,5})(?![\w@-]|[./]\w)",
    re.ASCII,
)
_HYPHENS = re.compile(r"[^-]*-[^-]*")
_DEEPEST = 6
_SPACES = re.compile(r"\s+")
_PIPES = re.compile(r"\s*(?:\|\||\|)\s*")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def read_entries(messages: Iterable[Place]) -> tuple[IndexEntry, ...]:
    """Return the exact values of these messages, and where the work stood after them.

    Values that look like credentials are left out.
    """
    reader = _Reader()
    for position, message in messages:
        reader.take(position, message)
    return merge_entries((), reader.found)


_Found = tuple[Kind, str]


class _Call(NamedTuple):
    """A tool call and what it adds to the index once its result shows that it ran."""

    position: int
    action: Action
    ran: Sequence[_Found]
    succeeded: Sequence[_Found]


class _Reader:
    def __init__(self) -> None:
        self.found: list[IndexEntry] = []
        self._open: dict[str, _Call] = {}
        """Calls without a result so far, by their ids."""
        self._here: dict[tuple[Kind, str], IndexEntry] = {}

    def take(self, position: int, message: Message) -> None:
        """Read one message. A text that it has several times counts once."""
        self._here = {}
        for block in message.blocks():
            kind = str(block.get("type", ""))
            if kind == "text":
                self._words(position, message, str(block.get("text", "")))
            elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
                self._call(position, block)
            elif kind.endswith("tool_result"):
                self._result(position, block)
        self.found += self._here.values()

    def _words(self, position: int, message: Message, text: str) -> None:
        if message.role == "assistant":
            self._values(text, position, "model")
            self._mentions(text, position, "model")
            if decision := _newest_decision(text):
                self._add("decision", decision, position, "model")
            return
        by: Source = "person" if message.author == "person" else "unknown"
        if message.role != "user" or message.author in ("program", "tool") or is_program_text(text):
            by = "result"
        self._values(text, position, by)
        if by != "result":
            self._mentions(text, position, by)
        if by != "result" and len(text) <= _TYPED:
            for said in _own_sentences(text):
                self._add("said", said, position, by)

    def _mentions(self, text: str, position: int, by: Source) -> None:
        """Add the commands that a text quotes as values, because they did not run."""
        for command in commands_in(text[:_SCANNED]):
            if not is_trivial(command):
                self._add("value", command, position, by)

    def _call(self, position: int, block: Mapping[str, Any]) -> None:
        action = parse_call(block.get("name"), block.get("input"))
        for text in _texts_of_input(block.get("input")):
            self._values(text, position, "call")
        ran: list[_Found] = []
        succeeded: list[_Found] = []
        if action.kind is ActionKind.COMMAND:
            command = action.verb or action.exact[0]
            ran = [("command", command), ("ran", command)]
            succeeded = [*(("command", step) for step in _steps_and_pipes(command))]
        elif action.kind is ActionKind.MODIFY:
            succeeded = [*(("path", path) for path in action.exact), ("file", action.exact[0])]
        if action.kind in (ActionKind.MODIFY, ActionKind.READ):
            for path in action.exact:
                self._add("path", path, position, "call")
        given = list(strings_in(block.get("input"), deepest=_DEEPEST))
        self._open[str(block.get("id"))] = _Call(
            position, action, _standing_in(given, ran), _standing_in(given, succeeded)
        )

    def _result(self, position: int, block: Mapping[str, Any]) -> None:
        text = result_text(block)
        self._values(text, position, "result")
        call = self._open.pop(str(block.get("tool_use_id")), None)
        if call is None:
            return
        is_command = call.action.kind is ActionKind.COMMAND
        outcome = outcome_of(block, call.action.subjects[0] if is_command else None)
        if outcome.never_ran:
            return
        for kind, found in (*call.ran, *(() if outcome.failed else call.succeeded)):
            entry = _entry(kind, found, call.position, "call", edited=kind == "path")
            if entry is not None:
                # The paths of a call count when it is made.
                self.found.append(entry._replace(messages=0, calls=0) if entry.edited else entry)
        printed = [line for line in text[-2_000:].splitlines() if any(map(str.isalnum, line))]
        shown = strings_in(block, deepest=_DEEPEST)
        if is_command and printed and any(printed[-1] in one for one in shown):
            self._add("result", printed[-1], position, "result")

    def _values(self, text: str, position: int, by: Source) -> None:
        for part in _ends(text, _SCANNED, _SCANNED_END):
            for found in paths_in(part):
                self._add("path", found[0], position, by)
            for found in _NAME.finditer(part):
                if len(found[0]) >= _SHORTEST_NAME and not _HYPHENS.fullmatch(found[0]):
                    self._add("name", found[0], position, by)
        size = _NUMBERS if by == "result" else _SCANNED
        for part in _ends(text, size // 2, size // 2):
            for found in exact_values(part):
                value = found[0].rstrip(".,;:")
                if len(value) >= _SHORTEST and not says_nothing(value, by_tool=by == "result"):
                    self._add("value", value, position, by)

    def _add(self, kind: Kind, text: str, position: int, by: Source) -> None:
        entry = _entry(kind, text, position, by)
        if entry is None:
            return
        known = self._here.get((kind, entry.text))
        if known is None or by == "call":
            by = known.by if known is not None and known.by != "result" else by
            self._here[kind, entry.text] = entry._replace(by=by)


def _entry(
    kind: Kind, text: str, position: int, by: Source, *, edited: bool = False
) -> IndexEntry | None:
    """Return the entry of a text, or None if it is too short, too long, or looks like a credential."""
    text = _SPACES.sub(" ", text).strip()
    if kind in ("decision", "ran", "result"):
        text = _beginning(text, _LONGEST[kind])
    if not _SHORTEST <= len(text) <= _LONGEST[kind] or _UNSAFE.search(text):
        return None
    if "[redacted" in text or cues.redact(text) != text:
        return None
    is_call = by == "call"
    return IndexEntry(
        kind, text, position, 1, int(is_call), position if is_call else -1, by, edited
    )


def _standing_in(texts: Sequence[str], found: Sequence[_Found]) -> list[_Found]:
    """Return what stands in one of the texts, apart from white space; a parser may have put it together."""
    whole = [_SPACES.sub(" ", text) for text in texts]
    return [(k, text) for k, text in found if any(_SPACES.sub(" ", text) in one for one in whole)]


def _texts_of_input(given: object) -> Iterator[str]:
    """Yield the strings of a tool's input, each with its field in front if it has one."""
    if not is_object(given):
        yield from strings_in(given, deepest=_DEEPEST)
        return
    for name, value in given.items():
        if isinstance(value, str):
            labelled = f"{name}={value}"
            yield value if cues.redact(labelled) == labelled else cues.redact(labelled)
        else:
            yield from strings_in(value, deepest=_DEEPEST)


def _own_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a user's text that are neither quoted nor printed by a program.

    A sentence under a heading is left out, because the heading may reverse its meaning, and so is struck text.
    """
    own, _ = split_quotations(user_words(text))
    words = without_code(own)
    for span in sentences(words):
        said = words[span.start : span.stop]
        if not span.under and "~~" not in said and print_of(said) < Print.YES:
            yield said


def _newest_decision(text: str) -> str | None:
    """Return the last sentence that decides something or gives a reason, or None."""
    words = without_code(text[:_SCANNED])
    found = [words[span.start : span.stop] for span in sentences(words)]
    decides = (
        s for s in reversed(found) if cues.ASSISTANT_DECISION.search(s) or cues.REASON.search(s)
    )
    return next((s for s in decides if len(s) >= _SHORTEST_DECISION), None)


def _steps(command: str) -> Iterator[str]:
    """Yield the steps of a command, if there are several. A text in quotes or a document stays whole."""
    steps = [step for line in _shell_lines(command) for step in steps_of(line)]
    if len(steps) > 1:
        yield from steps
    elif steps:
        yield from _piped(steps[0])


def _shell_lines(command: str) -> Iterator[str]:
    """Yield the lines of a command. Lines that a quotation or a document joins are one."""
    if "<<" in command:
        yield command.strip()
        return
    held = ""
    for line in command.splitlines():
        held = f"{held}\n{line}" if held else line.strip()
        if held and held.count('"') % 2 == 0 and held.count("'") % 2 == 0:
            yield held
            held = ""
    if held:
        yield held


def _steps_and_pipes(command: str) -> Iterator[str]:
    """Yield the steps of a command and the commands of their pipes."""
    for step in _steps(command):
        yield from (part for part in (step, *_piped(step)) if len(part) >= _SHORTEST_STEP)


def _piped(step: str) -> Iterator[str]:
    """Yield the commands of a pipe, if there are several."""
    parts = _PIPES.split(step)
    if len(parts) > 1:
        yield from parts


def _ends(text: str, head: int, tail: int) -> tuple[str, ...]:
    # Alone, a value does not show that it is a credential.
    if len(text) <= head + tail:
        return (cues.redact(text),)
    return cues.redacted_beginning(text, head), cues.redacted_end(text, tail)


def _beginning(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: last_mark(text, (" ",), limit // 2, limit)[0]]
