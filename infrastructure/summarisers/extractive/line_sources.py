"""Collect the lines of a summary from messages, and from the facts and calls that were read from them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from refold.application.ports.summariser import SourceMessage
from refold.domain.facts.cues import clean, excerpt, redact, squeeze
from refold.domain.facts.fact import VALUES, Fact
from refold.domain.facts.message_reader import ReadCall
from refold.domain.facts.reading import MessagesRead
from refold.domain.facts.speech import is_handover, is_program_text, join_words, user_words
from refold.domain.facts.tool_calls import Action, Kind, Outcome, find_written_files
from refold.domain.value import is_object

from . import summary_lines as speech
from .summary_lines import Line, Section, TaskBoard, identity

_TYPED = 1_500  # A longer text was pasted, so its values count only if they recur.


@dataclass(slots=True)
class _Seen:
    position: int
    text: str
    """Text in which the value stands."""
    count: int = 0
    by_user: bool = False


@dataclass(slots=True)
class Quantities:
    """A tally of the values found so far: addresses, versions, identifiers, ports and amounts."""

    _seen: dict[str, _Seen] = field(default_factory=dict[str, _Seen])

    def note(self, fact: Fact, text: str, *, by_user: bool = False) -> None:
        """Add a value that stands in a text."""
        if "`" in fact.text:
            return
        seen = self._seen.setdefault(fact.text, _Seen(fact.position, text))
        seen.count += text.count(fact.text) or 1
        seen.by_user = seen.by_user or (by_user and len(text) < _TYPED)

    def lines(self) -> list[Line]:
        """Return lines for the values that the user named or that recur, each with the words around it."""
        return [
            Line(Section.VALUES, s.position, f"`{value}` — {_around(s.text, value)}", s.count)
            for value, s in self._seen.items()
            if s.by_user or s.count > 1
        ]


def _around(text: str, value: str) -> str:
    start = max(0, text.find(value))
    end = start + len(value)
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    left, right = max(line_start, start - 60), min(line_end, end + 40)
    # Cut only between words: half a credential would not be recognised.
    if left > line_start:
        left = text.find(" ", left, start) + 1 or start
    if right < line_end:
        right = max(end, text.rfind(" ", end, right))
    return squeeze(redact(clean(text[left:right])), 130)


_SHORT = 60
_FAILURE_ROOM = 240  # Maximum number of failures.


@dataclass(slots=True)
class Gathering:
    """The lines that one pass collects. Texts are data and never control the collection."""

    read: MessagesRead
    goes_on: bool = False
    """True if later messages stay visible, so that open tasks need no lines."""
    tasks: TaskBoard = field(default_factory=TaskBoard)
    _lines: list[Line] = field(default_factory=list[Line])
    _tally: dict[tuple[Section, str], Line] = field(default_factory=dict[tuple[Section, str], Line])
    _failed: dict[str, tuple[int, Line]] = field(default_factory=dict[str, tuple[int, Line]])
    _values: Quantities = field(default_factory=Quantities)
    _plans: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Words of the assistant since the user's last words, which may name next steps."""
    _asked: str = ""
    """Words of the assistant whose last question is not answered."""
    _question: str = ""
    """Question that a tool asked, instead of words."""
    _asked_at: int = 0
    _unanswered: int | None = None
    _turn: int = 0
    _after_user: bool = True
    _said: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    _done_last: tuple[int, Action, Outcome] | None = None
    _facts: defaultdict[int, list[Fact]] = field(default_factory=lambda: defaultdict(list))
    _calls: defaultdict[int, list[ReadCall]] = field(default_factory=lambda: defaultdict(list))
    _answered: defaultdict[int, list[ReadCall]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for fact in self.read.facts:
            self._facts[fact.position].append(fact)
        for call in self.read.calls:
            if call.is_known:
                self._calls[call.position].append(call)
            self._answered[call.answered_at].append(call)

    def take(self, source: SourceMessage) -> None:
        """Add a message. Messages come oldest first."""
        position = source.position
        words = join_words(iter(source.message.blocks()))
        match source.message.role:
            case "assistant":
                if self._after_user:
                    self._turn, self._after_user = position, False
                self._assistant(position, words)
                for call in self._calls[position]:
                    self._call(call)
                for call in self._answered[position]:
                    self._result(call)
            case "user":
                self._after_user = True
                for call in self._answered[position]:
                    self._result(call)
                by_program = source.message.author in ("program", "tool")
                self._user(position, words, by_program=by_program)
            case "system":
                pass  # Standing instructions are sent with every request anyway.

    def lines(self) -> list[Line]:
        """Return all collected lines except tasks, which need the earlier summary."""
        failures = [line for _, line in self._failed.values()]
        values = self._values.lines()
        return [*self._lines, *self._tally.values(), *failures, *values, *self._state()]

    def plans(self) -> list[Line]:
        """Return next steps named by the assistant, and questions without an answer."""
        lines = [line for plan in self._plans for line in speech.next_lines(*plan)]
        if question := self._open_question():
            asked = f"asked the user, no answer yet: {squeeze(question, 300)}"
            lines.append(Line(Section.TASKS, self._asked_at, asked))
        return lines

    def _user(self, position: int, raw: str, *, by_program: bool = False) -> None:
        words = user_words(raw)
        if not words:
            return
        if is_handover(words):
            self._lines += speech.handover_lines(position, words)
            return
        if by_program or is_program_text(words):
            return
        line = speech.request_line(position, words, self._open_question)
        if line is None:
            return
        self._question, self._asked, self._unanswered = "", "", position
        self._plans.clear()
        self._lines.append(line)
        facts = [fact for fact in self._facts[position] if fact.by in ("person", "unknown")]
        self._lines += speech.statement_lines(facts, words)
        self._lines += speech.personal_lines(facts, conversation=not self.read.has_tools)
        for fact in self._values_at(position):
            if fact.by in ("person", "unknown", "quoted"):
                self._values.note(fact, words, by_user=fact.by != "quoted")

    def _assistant(self, position: int, words: str) -> None:
        if not words.strip():
            return
        facts = [fact for fact in self._facts[position] if fact.by == "model"]
        self._lines += speech.decision_lines(facts)
        self._lines += speech.personal_lines(facts, conversation=not self.read.has_tools)
        for fact in self._values_at(position):
            if fact.by == "model":
                self._values.note(fact, words)
        self._plans = [*self._plans[-1:], (position, words)]
        self._question, self._asked, self._asked_at = "", words, position
        self._unanswered = None
        self._said = [*self._said[-1:], (position, words)]

    def _values_at(self, position: int) -> Iterator[Fact]:
        return (fact for fact in self._facts[position] if fact.kind in VALUES)

    def _open_question(self) -> str:
        return self._question or speech.last_question(self._asked)

    def _call(self, call: ReadCall) -> None:
        deed, position = call.action, call.position
        self._unanswered = None
        match deed.kind:
            case Kind.TODOS:
                self.tasks.replace_list(position, call.given)
            case Kind.TASK_CHANGE:
                fields = call.given if is_object(call.given) else {}
                self.tasks.change(fields.get("taskId", fields.get("id")), deed.verb)
            case Kind.ASK:
                self._question, self._asked_at = deed.subjects[0], position
            case _:
                pass

    def _result(self, call: ReadCall) -> None:
        outcome, position = call.outcome, call.answered_at
        if outcome is None:
            return
        self._settle(call, position, outcome)
        if outcome.reply:
            self._user(position, outcome.reply)
        if call.action.kind is Kind.NEW_TASK:
            self.tasks.create(call.position, call.action.subjects[0], outcome.text)
        if call.action.kind not in (Kind.SILENT, Kind.TODOS, Kind.NEW_TASK, Kind.TASK_CHANGE):
            self._done_last = (position, call.action, outcome)

    def _settle(self, call: ReadCall, position: int, outcome: Outcome) -> None:
        deed = call.action
        what = _name_of(deed)
        if outcome.failed:
            self._fail(what, position, outcome)
        elif what in self._failed and self._failed[what][0] < position:
            failed_at, line = self._failed[what]
            if " ⇒ later ok" not in line.text:
                self._failed[what] = (failed_at, _failure(line, f" ⇒ later ok at {position}"))
        ended = "failed" if outcome.failed else "ok"
        match deed.kind:
            case Kind.MODIFY if not outcome.failed:
                for path in deed.subjects:
                    self._count(Line(Section.MODIFIED, call.position, f"{path} — {deed.verb}"))
            case Kind.READ if not outcome.failed:
                self._count(Line(Section.READ, call.position, deed.subjects[0]))
            case Kind.COMMAND:
                self._count(Line(Section.COMMANDS, call.position, f"{deed.title} → {ended}"))
                for path in () if outcome.failed else find_written_files(deed.verb):
                    self._count(Line(Section.MODIFIED, call.position, f"{path} — by a command"))
                for fact in self._values_at(call.position):
                    if fact.by == "call" and fact.text in deed.subjects[0]:
                        self._values.note(fact, deed.subjects[0])
            case Kind.ACT | Kind.ASK:
                gist = squeeze(outcome.gist(), 160)
                shown_outcome = f"{ended}: {gist}" if gist else ended
                self._count(Line(Section.ACTIONS, call.position, f"{deed.title} → {shown_outcome}"))
            case Kind.LOOK:
                self._count(Line(Section.ACTIONS, call.position, f"{deed.title} → {ended}"))
            case _:
                pass

    def _fail(self, what: str, position: int, outcome: Outcome) -> None:
        before = self._failed.pop(what, None)
        count = before[1].count + 1 if before else 1
        line = Line(Section.FAILURES, position, f"{squeeze(what, 110)}: {outcome.gist()}", count)
        self._failed[what] = (position, _failure(line, ""))

    def _count(self, line: Line) -> None:
        key = (line.section, identity(line))
        before = self._tally.pop(key, None)
        self._tally[key] = replace(line, count=before.count + 1) if before else line

    def _state(self) -> list[Line]:
        # If the last word is just "done", the text before it is included as well.
        said = self._said if self._said and len(self._said[-1][1]) < _SHORT else self._said[-1:]
        lines = [
            Line(Section.STATE, p, f"assistant said: {excerpt(words, 2_400)}") for p, words in said
        ]
        if self._done_last:
            position, deed, outcome = self._done_last
            ended = "failed" if outcome.failed else "ok"
            shown_outcome = f"{squeeze(_name_of(deed), 240)} → {ended}: {outcome.gist()}"
            lines.append(Line(Section.STATE, position, f"last result: {shown_outcome}"))
        if self.goes_on:
            return lines
        # An earlier call without a result was abandoned.
        lines += [
            Line(Section.STATE, c.position, f"no result yet: {squeeze(_name_of(c.action), 300)}")
            for c in self._answered[-1][-4:]
            if c.position >= self._turn
        ]
        if self._unanswered is not None:
            shown_outcome = "the user's latest message is not answered yet"
            lines.append(Line(Section.STATE, self._unanswered, shown_outcome))
        return lines


def gather(
    messages: Sequence[SourceMessage], read: MessagesRead, *, goes_on: bool = False
) -> Gathering:
    """Collect lines from all messages, oldest first. ``read`` is what was read from them."""
    gathering = Gathering(read, goes_on)
    for source in messages:
        gathering.take(source)
    return gathering


def _name_of(deed: Action) -> str:
    return f"{deed.tool} {deed.title}" if deed.kind is Kind.COMMAND else deed.title


def _failure(line: Line, suffix: str) -> Line:
    text = squeeze(line.text, _FAILURE_ROOM - len(suffix) - 8)
    return replace(line, text=text + suffix)
