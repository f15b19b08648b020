"""Lines of the ledger: texts copied from messages, gathered from facts."""

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
    strip_trimming,
)
from refold.domain.facts.fact import STATEMENTS, VALUES, Fact, Source
from refold.domain.facts.fact import Kind as FactKind
from refold.domain.facts.speech import is_line, lines
from refold.domain.facts.tool_calls import without_folder
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.ledger import LedgerLine, LineKind, Speaker, Writer
from refold.domain.text_cuts import last_mark
from refold.domain.value import build_unvalidated, replace

WORDS: frozenset[LineKind] = frozenset({"request", "rule", "prohibition", "decision"})
"""Kinds that quote speech. The other kinds record actions and values."""

Key = tuple[LineKind, str, tuple[str, ...], str | None]
"""Key of a line: kind, text, headings and author. Lines with equal keys are merged."""

LATER_OK = "; later ok"
"""End of the note of a failure whose call has succeeded since."""
# Parts that differ each time the same thing fails: times, durations, line numbers, process ids.
_PASSING = lazy_pattern(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\b|(?<=:)\d+\b|(?<=line )\d+\b"
    r"|\b\d+(?:\.\d+)? ?(?:[mµn]?s|secs?|seconds?|minutes?)\b|\b0x[0-9a-fA-F]+\b|(?<=pid )\d+\b|(?<=pid=)\d+\b"
    r"|(?<=\[)\d+(?=\])",
)
_SPEAKERS: tuple[Speaker, ...] = ("user", "assistant", "tool")
_STRONGER: dict[LineKind, tuple[LineKind, ...]] = {
    "modified": ("read", "value"),
    "read": ("value",),
}


def merge_lines(lines: Iterable[LedgerLine]) -> tuple[LedgerLine, ...]:
    """Merge equal lines, in the order of their newest use. A modified file is not also listed as read."""
    return tuple(merged_lines(lines).values())


def merged_lines(lines: Iterable[LedgerLine]) -> dict[Key, LedgerLine]:
    """Return what ``merge_lines`` does, with the key of each line."""
    kept: dict[Key, LedgerLine] = {}
    for line in lines:
        key = key_of(line)
        known = kept.pop(key, None)
        kept[key] = merge_pair(known, line) if known else line
    for kind, others in _STRONGER.items():
        for text in [key[1] for key in kept if key[0] == kind]:
            for other in others:
                same = kept.pop((other, text, (), None), None)
                if same is not None:
                    kept[kind, text, (), None] = merge_pair(same, kept[kind, text, (), None])
    return kept


def key_of(line: LedgerLine) -> Key:
    """Return the key under which two lines are equal."""
    text = line.text
    if line.kind == "command":
        text = strip_trimming(text)
    elif line.kind == "failure":
        text = _PASSING.sub("…", text)
    return line.kind, text, line.under, line.author


def merge_pair(known: LedgerLine, line: LedgerLine) -> LedgerLine:
    """Merge two equal lines into one with the kind of ``line``. Two in one message count once."""
    count = known.count + line.count - (1 if line.position == known.position else 0)
    newer = line if line.position >= known.position else known
    said_by = min((known.said_by, line.said_by), key=_SPEAKERS.index)
    return replace(
        newer,
        kind=line.kind,
        count=max(1, count),
        # A request that is repeated is open again.
        note=newer.note if line.kind == "request" else line.note or known.note,
        was=newer.was or line.was or known.was,
        said_by=said_by,
    )


_NEVER_LINES: frozenset[FactKind] = frozenset({"name", "said", "preference"})
_SCANNED = 8_000
_LONGEST_COMMAND = 240
_LONGEST_VALUE = 200
_SPEAKER_OF: Mapping[Source, Speaker] = {
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
    closings: tuple[Fact, ...] = ()
    """Sentences that say what became of the request before them."""


def gather(facts: Iterable[Fact], failure_characters: int = 240) -> Gathered:
    """Return the lines of everything that may be worth keeping, copied word for word."""
    gathering = _Gathering(failure_characters)
    for fact in [fact for fact in facts if fact[0] not in _NEVER_LINES]:
        gathering.take(fact)
    return Gathered(
        merge_lines(gathering.found),
        merge_lines(gathering.echoes),
        gathering.succeeded,
        tuple(gathering.closings),
    )


@dataclass(slots=True)
class _Gathering:
    failure_characters: int
    found: list[LedgerLine] = field(default_factory=list[LedgerLine])
    echoes: list[LedgerLine] = field(default_factory=list[LedgerLine])
    succeeded: dict[str, int] = field(default_factory=dict[str, int])
    closings: list[Fact] = field(default_factory=list[Fact])

    def take(self, fact: Fact) -> None:
        kind = fact.kind
        if kind in STATEMENTS:
            self._statement(fact)
        elif kind == "error":
            room = self.failure_characters - len(fact.note) - len(LATER_OK)
            self._add("failure", fact, fact.text[: max(0, room)].rstrip(), fact.note)
        elif kind == "outcome" and fact.called_at < 0:
            self.closings.append(fact)
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
                self.found.append(_with_grounds(line, fact))
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

    def _add(self, kind: LineKind, fact: Fact, text: str, note: str = "", cut: int = 0) -> None:
        # A fact is no credential, but a part of its text may look like one.
        if text and is_line(text) and (text == fact.text or cues.redact(text) == text):
            self.found.append(_line(kind, fact, text, note, cut=cut))


def _line(
    kind: LineKind,
    fact: Fact,
    text: str,
    note: str = "",
    *,
    said_by: Speaker | None = None,
    cut: int = 0,
) -> LedgerLine:
    # All fields, in the order in which they are stored.
    return build_unvalidated(
        LedgerLine,
        count=1,
        note=note,
        said_by=said_by or _SPEAKER_OF[fact.by],
        under=fact.under,
        author=_WRITERS.get(fact.by) if kind in STATEMENTS else None,
        cut=cut,
        was="",
        reason="",
        rejected=(),
        kind=kind,
        text=text,
        position=fact.position,
    )


def _with_grounds(line: LedgerLine, fact: Fact) -> LedgerLine:
    """Return the line with what the message says for it, unless the text shows it."""
    reason = "" if fact.reason in line.text else fact.reason
    rejected = tuple(other for other in fact.rejected if other not in line.text)
    return replace(line, reason=reason, rejected=rejected) if reason or rejected else line


def _head(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text, cut at a space if possible."""
    return text[: last_mark(text, (" ",), limit // 2, limit)[0]]
