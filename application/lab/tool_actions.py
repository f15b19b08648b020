"""The tool calls of a recorded session: edits, and files and commands whose result the session had before."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from refold.application.ports.token_counter import TokenCounter
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import Message, text_of
from refold.domain.value import Value, is_object

from .exam_facts import command_text, one_line
from .scan_facts import PATH_FIELDS

_EDITS = frozenset(
    {
        *("edit", "multiedit", "write", "notebookedit", "update", "writefile", "editfile"),
        *("createfile", "replace", "applypatch", "strreplace", "strreplaceeditor"),
    }
)
"""Names of editing tools, in small letters and without underscores."""
_READS = frozenset({"read", "readfile", "view", "viewfile", "notebookread"})
_SHELLS_FOR_EDITS = frozenset(
    {"shell", "shellcommand", "execcommand", "localshell", "container.exec"}
)
"""Shells of tools that have no other tool for editing."""
_SHELL_EDIT = lazy_pattern(
    r"\bapply_patch\b|\*\*\* Begin Patch|\bsed\s+(?:-\w+\s+)*-i|\b(?:cat|tee)\b[^|;&\n]*<<|"
    r"\b(?:cat|printf|echo)\b[^|;&\n]*[^\d&]>>?\s*(?!/dev/null)[\w./~-]"
)
_TO_THE_END = 1_000_000_000


@dataclass
class Action:
    """A tool call with its result."""

    position: int
    name: str
    fields: Mapping[str, Any]
    result: str | None = None
    """Text of the result, or None without one."""
    failed: bool = False

    @property
    def is_edit(self) -> bool:
        """True if the call changes a file by an editing tool, or by the shell of a tool that has only that."""
        if _plain(self.name) in _EDITS:
            return True
        if _plain(self.name) not in _SHELLS_FOR_EDITS:
            return False
        return _SHELL_EDIT.search(command_text(self.fields)) is not None

    @property
    def command(self) -> str:
        """The shell command, or an empty text."""
        return one_line(command_text(self.fields))

    @property
    def lines_read(self) -> "LinesRead | None":
        """The file and lines that the call reads, or None."""
        path = next((p for f in PATH_FIELDS if isinstance(p := self.fields.get(f), str)), None)
        if path is None or _plain(self.name) not in _READS:
            return None
        first = _number(self.fields.get("offset")) or 0
        count = _number(self.fields.get("limit"))
        return LinesRead(path, first, _TO_THE_END if count is None else first + count)


class LinesRead(NamedTuple):
    """Lines of a file, from ``start`` up to but not including ``stop``."""

    path: str
    start: int
    stop: int


class PaidTwice(Value, frozen=True):
    """Tokens that a session paid a second time because of one compaction."""

    files: int = 0
    """Calls that read lines of a file again whose content came before the compaction."""
    file_tokens: int = 0
    commands: int = 0
    """Calls that ran a command again whose result came before the compaction."""
    command_tokens: int = 0
    summary_tokens: int = 0
    """Tokens of the summary, which tells again what was there."""

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.file_tokens + self.command_tokens + self.summary_tokens


def actions_of(messages: Sequence[Message]) -> list[Action]:
    """Return the tool calls of messages in order, each with its result."""
    actions: list[Action] = []
    waiting: dict[str, Action] = {}
    for position, message in enumerate(messages):
        for block in message.blocks():
            kind, fields = block.get("type"), block.get("input")
            if kind == "tool_use":
                given = fields if is_object(fields) else {}
                actions.append(Action(position, str(block.get("name")), given))
                waiting[str(block.get("id"))] = actions[-1]
            elif kind == "tool_result":
                action = waiting.pop(str(block.get("tool_use_id")), None)
                if action is not None:
                    action.result, action.failed = text_of(block), block.get("is_error") is True
    return actions


def before_first_edit(actions: Sequence[Action]) -> int | None:
    """Return how many calls came before the first edit, or None without an edit."""
    return next((number for number, action in enumerate(actions) if action.is_edit), None)


def paid_twice(
    before: Sequence[Action], after: Sequence[Action], counter: TokenCounter
) -> PaidTwice:
    """Count calls after a compaction that repeat a call from before it, each line and command once."""
    known = _Known(before)
    files = [action for action in after if known.reads_again(action)]
    commands = [action for action in after if known.runs_again(action)]
    return PaidTwice(
        files=len(files),
        file_tokens=sum(_tokens(action, counter) for action in files),
        commands=len(commands),
        command_tokens=sum(_tokens(action, counter) for action in commands),
    )


class _Known:
    """Results that came before a compaction. What is repeated after it counts once."""

    def __init__(self, before: Sequence[Action]) -> None:
        self._files: dict[str, list[LinesRead]] = defaultdict(list)
        self._commands: set[str] = set()
        for action in _answered(before):
            if (lines := action.lines_read) is not None:
                self._files[lines.path].append(lines)
            elif action.command:
                self._commands.add(action.command)
        self._read: list[LinesRead] = []
        self._run: set[str] = set()

    def reads_again(self, action: Action) -> bool:
        lines = action.lines_read
        if lines is None or not any(_overlap(lines, one) for one in self._files[lines.path]):
            return False
        is_first = not any(_overlap(lines, one) for one in self._read)
        self._read.append(lines)
        return is_first

    def runs_again(self, action: Action) -> bool:
        command = action.command
        if command not in self._commands or command in self._run:
            return False
        self._run.add(command)
        return True


def _answered(actions: Sequence[Action]) -> Iterator[Action]:
    return (action for action in actions if action.result is not None and not action.failed)


def _overlap(one: LinesRead, other: LinesRead) -> bool:
    return one.path == other.path and one.start < other.stop and other.start < one.stop


def _tokens(action: Action, counter: TokenCounter) -> int:
    written = json.dumps(action.fields, ensure_ascii=False, default=str)
    return counter.count_text(written) + counter.count_text(action.result or "")


def _plain(name: str) -> str:
    return name.casefold().replace("_", "")


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
