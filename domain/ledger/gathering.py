"""Gather the lines of the ledger from facts, oldest first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from refold.domain.facts import cues
from refold.domain.facts.exact_values import (
    can_hide_failure,
    first_real_line,
    has_branches,
    is_trivial,
    steps_of,
)
from refold.domain.facts.fact import STATEMENTS, VALUES, Fact, Source
from refold.domain.facts.speech import is_line, lines
from refold.domain.facts.tool_calls import without_folder
from refold.domain.text_cuts import last_mark
from refold.domain.value import build_unvalidated

from .line import LATER_OK, Kind, LedgerLine, Speaker, Writer, merge_lines

_SCANNED = 8_000
_LONGEST_COMMAND = 240
_LONGEST_VALUE = 200
_SPEAKERS: Mapping[Source, Speaker] = {
    "person": "user",
    "unknown": "user",
    "quoted": "tool",
    "program": "tool",
    "model": "assistant",
    "call": "assistant",
    "result": "tool",
}
_WRITERS: Mapping[Source, Writer] = {"person": "person", "unknown": "unknown", "quoted": "quoted"}


class Gathered(NamedTuple):
    """The lines found in messages, each text once, oldest first."""

    lines: tuple[LedgerLine, ...] = ()
    echoes: tuple[LedgerLine, ...] = ()
    """Values in the bulk of tool results. They are kept only if they are also known from elsewhere."""
    succeeded: Mapping[str, int] = {}
    """Position of the last successful call, by the call's title. A failure of the same call has this title."""


def gather(facts: Iterable[Fact], failure_characters: int = 240) -> Gathered:
    """Return the lines of everything that may be worth keeping, copied word for word."""
    gathering = _Gathering(failure_characters)
    for fact in facts:
        gathering.take(fact)
    return Gathered(
        merge_lines(gathering.found), merge_lines(gathering.echoes), gathering.succeeded
    )


@dataclass(slots=True)
class _Gathering:
    failure_characters: int
    found: list[LedgerLine] = field(default_factory=list[LedgerLine])
    echoes: list[LedgerLine] = field(default_factory=list[LedgerLine])
    succeeded: dict[str, int] = field(default_factory=dict[str, int])

    def take(self, fact: Fact) -> None:
        kind = fact.kind
        if kind in STATEMENTS:
            self._statement(fact)
        elif kind == "error":
            room = self.failure_characters - len(fact.note) - len(LATER_OK)
            self._add("failure", fact, fact.text[: max(0, room)].rstrip(), fact.note)
        elif kind == "outcome" and fact.state == "ok":
            self.succeeded[fact.note] = fact.called_at
        elif kind == "path" and fact.state:
            self._add("modified" if fact.state == "edited" else "read", fact, fact.text)
        elif kind == "command" and fact.state:
            self._command(fact)
        elif kind in VALUES or kind in ("path", "command"):
            self._value(fact)

    def _statement(self, fact: Fact) -> None:
        if not fact.is_main:
            return
        match fact.kind:
            case "request" | "rule" | "prohibition" | "decision":
                by: Speaker = "assistant" if fact.by == "model" else "user"
                line = _line(fact.kind, fact, fact.text, said_by=by, cut=fact.cut)
                self.found.append(line)
            case _:
                pass

    def _command(self, fact: Fact) -> None:
        """Add the steps of the first line of a command, and count the characters that are not shown.

        If the command failed or has branches, it is unknown which steps ran. The line is then added as a
        whole.
        """
        command = without_folder(fact.text)
        begin, end = first_real_line(
            [at for at in lines(command) if command[at[0]] != "#"], command
        )
        if end - begin > _SCANNED:
            return
        line, failed = command[begin:end], fact.state == "failed"
        steps = [line] if failed or has_branches(line) else list(steps_of(line))
        for step in steps:
            if is_trivial(step) or "<<" in step:
                continue
            is_last = step is steps[-1]
            is_unclear = can_hide_failure(step) or (is_last and len(command.rstrip()) > end)
            note = "failed" if failed else "" if is_unclear else "ok"
            text = step if len(step) <= _LONGEST_COMMAND else _head(step, _LONGEST_COMMAND)
            behind = len(command.rstrip()) - end if is_last else 0
            self._add("command", fact, text, note, cut=len(step) - len(text) + behind)

    def _value(self, fact: Fact) -> None:
        if not 2 <= len(fact.text) <= _LONGEST_VALUE:
            return
        if fact.is_main:
            self._add("value", fact, fact.text, fact.note)
        elif fact.by == "result":
            self.echoes.append(_line("value", fact, fact.text, fact.note))

    def _add(self, kind: Kind, fact: Fact, text: str, note: str = "", cut: int = 0) -> None:
        # Part of a text without credentials may look like one.
        if text and is_line(text) and cues.redact(text) == text:
            self.found.append(_line(kind, fact, text, note, cut=cut))


def _line(
    kind: Kind,
    fact: Fact,
    text: str,
    note: str = "",
    *,
    said_by: Speaker | None = None,
    cut: int = 0,
) -> LedgerLine:
    return build_unvalidated(
        LedgerLine,
        kind=kind,
        text=text,
        position=fact.position,
        count=1,
        note=note,
        said_by=said_by or _SPEAKERS[fact.by],
        under=fact.under,
        author=_WRITERS.get(fact.by) if kind in STATEMENTS else None,
        cut=cut,
    )


def _head(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text, cut at a space if possible."""
    return text[: last_mark(text, (" ",), limit // 2, limit)[0]]
