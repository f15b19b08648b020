"""Gather the lines of the ledger from messages, oldest first."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from refold.domain.messages import Message, strings
from refold.domain.text_cuts import last_mark
from refold.domain.value import build_unvalidated

from .cues import redact, squeeze
from .exact_values import (
    can_hide_failure,
    commands_in,
    first_real_line,
    has_branches,
    is_trivial,
    recommended_commands,
    says_nothing,
    steps_of,
    values_in,
)
from .line import LATER_OK, Kind, LedgerLine, Speaker, Writer, merge_lines
from .quotations import split_quotations
from .speech import is_line, is_program_text, lines, user_words
from .talk import Said, find_assistant_decisions, find_user_passages
from .tool_calls import Action, find_written_files, outcome_of, parse_call
from .tool_calls import Kind as ActionKind

_SCANNED = 8_000
_SCANNED_RESULT = 3_000
_BRIEF = 600  # Number of characters. The main point of a brief result is all of it.
_LONGEST_COMMAND = 240
_LONGEST_VALUE = 200
_ABOUT = 40
_TITLE = 80
_NO_REASON = re.compile(
    r"exit code:? \d+|error:?|traceback.*|.{0,3}|# \S+(?: \[.*\])?|(?:\[[\w:.-]+\] )?[$>] .*|=== RUN .*|[\^~ ]+|"
    r"[-\d\s:%.kKMG]+",
    re.IGNORECASE,
)

Source = tuple[int, Message]
"""A position with its message."""


@dataclass(frozen=True, slots=True)
class _Call:
    position: int
    action: Action


@dataclass(slots=True)
class _Gathering:
    conversation: bool
    failure_characters: int
    found: list[LedgerLine] = field(default_factory=list[LedgerLine])
    echoes: list[LedgerLine] = field(default_factory=list[LedgerLine])
    succeeded: dict[str, int] = field(default_factory=dict[str, int])
    _open: dict[str, _Call] = field(default_factory=dict[str, _Call])

    def take(self, position: int, message: Message) -> None:
        for block in message.blocks():
            kind = str(block.get("type", ""))
            text = block.get("text")
            if kind == "text" and isinstance(text, str):
                self._spoken(position, message, text)
            elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
                self._take_call(position, block)
            elif kind.endswith("tool_result"):
                self._take_result(position, block)

    def _spoken(self, position: int, message: Message, text: str) -> None:
        if message.role == "user" and message.author in ("program", "tool"):
            self._take_quotation(text, position, "tool")
        elif message.role == "user":
            self._take_typed(position, text, "person" if message.author == "person" else "unknown")
        elif message.role == "assistant":
            for said in find_assistant_decisions(text, conversation=self.conversation):
                self._say(said, position, "assistant")
            self._take_quotation(text, position, "assistant")

    def _take_typed(self, position: int, text: str, author: Writer) -> None:
        if is_program_text(text):
            self._take_quotation(text, position, "tool")
            return
        for said in find_user_passages(text, conversation=self.conversation):
            self._say(said, position, "user", "quoted" if said.is_quoted else author)
        own, others = split_quotations(user_words(text)[:_SCANNED])
        self._take_quotation(own, position, "user")
        self._take_quotation(others, position, "tool")

    def _take_call(self, position: int, block: Mapping[str, Any]) -> None:
        action = parse_call(block.get("name"), block.get("input"))
        self._open[str(block.get("id"))] = _Call(position, action)
        if action.kind is ActionKind.COMMAND:
            self._values(action.exact[0][:_SCANNED], position, "assistant")

    def _take_result(self, position: int, block: Mapping[str, Any]) -> None:
        call = self._open.pop(str(block.get("tool_use_id")), None)
        action = call.action if call else Action(ActionKind.SILENT, "tool", ())
        command = action.subjects[0] if action.kind is ActionKind.COMMAND else None
        outcome = outcome_of(block, command)
        if outcome.failed and not outcome.never_ran:
            self._take_failure(position, action, outcome.error_excerpt())
        if call is not None and not outcome.never_ran:
            self._take_success(call, failed=outcome.failed)
        if outcome.reply:
            self._take_typed(position, outcome.reply, "person")
        point = _point(outcome.text)
        for hinted in recommended_commands(point):
            self._take_mention(hinted, position, "tool")
        self._values(point, position, "tool")
        strong, self.found = self.found, []
        self._values(_ends(outcome.text[: -len(point) or None]), position, "tool")
        self.echoes += self.found
        self.found = strong

    def _take_failure(self, position: int, action: Action, telling: str) -> None:
        title = _title(action)
        found = [telling[a:b] for a, b in lines(telling)]
        reason = next((t for t in found if not _NO_REASON.fullmatch(t)), "".join(found[:1]))
        text = reason[: self.failure_characters - len(title) - len(LATER_OK)].rstrip()
        self._add("failure", text, position, "tool", title)

    def _take_success(self, call: _Call, *, failed: bool) -> None:
        action, at = call.action, call.position
        if not failed:
            self.succeeded[_title(action)] = at
        match action.kind:
            case ActionKind.MODIFY if not failed:
                for path in action.exact:
                    self._add("modified", path, at, "assistant")
            case ActionKind.READ if not failed:
                self._add("read", action.exact[0], at, "assistant")
            case ActionKind.COMMAND:
                self._command(action.exact[0], at, failed=failed)
                for path in () if failed else find_written_files(action.verb):
                    self._add("modified", path, at, "assistant")
            case _:
                pass

    def _command(self, command: str, position: int, *, failed: bool) -> None:
        """Add the steps of the first line of a command, and count the characters that are not shown.

        If the command failed or has branches, it is unknown which steps ran. The line is then added as a
        whole.
        """
        begin, end = first_real_line(
            [at for at in lines(command) if command[at[0]] != "#"], command
        )
        if end - begin > _SCANNED:
            return
        line = command[begin:end]
        steps = [line] if failed or has_branches(line) else list(steps_of(line))
        for step in steps:
            if is_trivial(step) or "<<" in step:
                continue
            is_last = step is steps[-1]
            is_unclear = can_hide_failure(step) or (is_last and len(command.rstrip()) > end)
            note = "failed" if failed else "" if is_unclear else "ok"
            text = step if len(step) <= _LONGEST_COMMAND else _head(step, _LONGEST_COMMAND)
            behind = len(command.rstrip()) - end if is_last else 0
            self._add(
                "command", text, position, "assistant", note, cut=len(step) - len(text) + behind
            )

    def _take_quotation(self, text: str, position: int, by: Speaker) -> None:
        text = text[:_SCANNED]
        for command in commands_in(text):
            self._take_mention(command, position, by)
        self._values(text, position, by)

    def _take_mention(self, command: str, position: int, by: Speaker) -> None:
        """Add a command that was written but not run, as a value."""
        if not is_trivial(command):
            self._add("value", command, position, by)

    def _values(self, text: str, position: int, by: Speaker) -> None:
        seen: set[str] = set()
        for start, stop in lines(text):
            line = text[start:stop]
            for value in values_in(line):
                if value.text not in seen and not says_nothing(value.text, by_tool=by == "tool"):
                    seen.add(value.text)
                    about = "" if value.is_clear else _about(line, value.start)
                    self._add("value", value.text, position, by, about)

    def _say(
        self,
        said: Said,
        position: int,
        by: Speaker,
        author: Writer | None = None,
    ) -> None:
        # If a heading contains a credential it cannot be shown, and the text alone could mean the
        # opposite.
        if redact(said.whole) == said.whole:
            self._add(said.kind, said.text, position, by, said=said, author=author)

    def _add(
        self,
        kind: Kind,
        text: str,
        position: int,
        by: Speaker,
        note: str = "",
        *,
        said: Said | None = None,
        author: Writer | None = None,
        cut: int = 0,
    ) -> None:
        if kind == "value" and not 2 <= len(text) <= _LONGEST_VALUE:
            return
        if not is_line(text) or redact(text) != text:
            return
        note = redact(note) if is_line(note) else ""
        self.found.append(
            build_unvalidated(
                LedgerLine,
                kind=kind,
                text=text,
                position=position,
                count=1,
                note=note,
                said_by=by,
                under=said.under if said else (),
                author=author,
                cut=said.cut if said else cut,
            )
        )


class Gathered(NamedTuple):
    """The lines found in messages, each text once, oldest first."""

    lines: tuple[LedgerLine, ...] = ()
    echoes: tuple[LedgerLine, ...] = ()
    """Values in the bulk of tool results. They are kept only if they are also known from elsewhere."""
    succeeded: Mapping[str, int] = {}
    """Position of the last successful call, by the call's title. A failure of the same call has this title."""


def gather(messages: Iterable[Source], failure_characters: int = 240) -> Gathered:
    """Return everything in the messages that may be worth keeping, copied word for word."""
    sources = list(messages)
    calls = (b.get("type") == "tool_use" for _, m in sources for b in m.blocks())
    gathering = _Gathering(conversation=not any(calls), failure_characters=failure_characters)
    for position, message in sources:
        gathering.take(position, message)
    texts = {position: list(strings(m)) for position, m in sources}

    def verbatim(found: Iterable[LedgerLine]) -> tuple[LedgerLine, ...]:
        return merge_lines(x for x in found if any(x.text in text for text in texts[x.position]))

    return Gathered(
        verbatim(gathering.found), verbatim(gathering.echoes), dict(gathering.succeeded)
    )


def _title(action: Action) -> str:
    return redact(squeeze(action.title, _TITLE))


def _head(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text, cut at a space if possible."""
    return text[: last_mark(text, (" ",), limit // 2, limit)[0]]


def _about(line: str, at: int) -> str:
    """Return the words before a value in its sentence, which describe the value."""
    start = max(0, at - _ABOUT)
    words = line[start:at]
    for stop in ". ", "。", "；", "; ", "，", "|":
        words = words.rpartition(stop)[2]
    if len(words) == _ABOUT and " " in words:
        words = words.partition(" ")[2]
    return words.strip(" \t*_`\"'([{:=,-–—")


def _point(text: str) -> str:
    """Return the main part of a tool result: all of a brief one, or else its last lines."""
    if len(text) <= _BRIEF:
        return text
    end = text[-_BRIEF // 2 :]
    return end.partition("\n" if "\n" in end else " ")[2]


def _ends(text: str) -> str:
    if len(text) <= 2 * _SCANNED_RESULT:
        return text
    return text[:_SCANNED_RESULT] + "\n" + text[-_SCANNED_RESULT:]
