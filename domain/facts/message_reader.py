"""Read the facts of one message after the other."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, repeat
from operator import contains
from typing import Any, NamedTuple

from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import CALLS, Message, strings, strings_in
from refold.domain.value import is_object

from . import cues
from .composed_names import composed_names, distinct_names, facts_of_names, merged_names
from .exact_values import (
    commands_in,
    is_trivial,
    may_have_values,
    recommended_commands,
    says_nothing,
    values_in,
)
from .fact import Fact, Kind, Source, State
from .lasting_facts import lasting_statements
from .speech import Quote, inserted_texts, is_line, is_program_text, lines
from .statements import (
    ModelText,
    Said,
    claim_in,
    closing_of,
    find_assistant_decisions,
    find_user_passages,
    newest_decision,
    own_sentences,
    read_model_text,
    read_user_text,
)
from .tool_calls import (
    Action,
    Outcome,
    begin_of_point,
    find_written_files,
    last_line,
    outcome_of,
    parse_call,
)
from .tool_calls import Kind as ActionKind

_SCANNED = 24_000
"""Characters of a text that are read from its beginning."""
_SCANNED_END = 6_000
"""Characters of a longer text that are read from its end."""
_VALUES_OF_RESULT = 3_000
"""Characters at each end of a result that are read for values; most of its numbers are of no use."""
_MAIN = 8_000
"""Characters from the beginning of words or a command that count as their main part."""
_TYPED = 1_500
"""Characters of a user's text. A longer one is pasted."""
_TITLE = 80
_ABOUT = 40
_DEEPEST = 6
_NO_REASON = lazy_pattern(
    r"exit code:? \d+|error:?|traceback.*|.{0,3}|# \S+(?: \[.*\])?|(?:\[[\w:.-]+\] )?[$>] .*|=== RUN .*|[\^~ ]+|"
    r"[-\d\s:%.kKMG]+",
    re.IGNORECASE,
)
_ENDS_OF_SENTENCES = (". ", "。", "；", "; ", "，", "|")
_LONGEST_VALUE = 240
_UNSAFE = lazy_pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_BLANKS = (" ", "\n", "\t")
_LONGEST_WORD = 400
_FIRST_WORD = lazy_pattern(r"\A\S{1,400}")
_Key = tuple[Kind, str, Source, State, tuple[str, ...]]
_OTHERS: frozenset[Source] = frozenset({"result", "program", "quoted"})


class ReadCall(NamedTuple):
    """A tool call, or a result whose call is unknown."""

    position: int
    """Position of the call; of the result, if the call is unknown."""
    action: Action
    given: object = None
    """Input of the call as JSON."""
    outcome: Outcome | None = None
    """How it ended, or None without a result."""
    answered_at: int = -1
    """Position of the result, or -1 without one."""
    is_known: bool = True
    """False if only the result is there."""


class MessageRead(NamedTuple):
    """Facts and calls that were read from one message."""

    facts: tuple[Fact, ...]
    opened: Mapping[str, ReadCall]
    """The calls of the message, by their ids."""
    answered: tuple[tuple[str, ReadCall], ...]
    """The calls that its results belong to, with their ids."""
    names: Mapping[str, bool]
    """The composed names of its results, which are not in ``facts``, with whether each is in a main part."""


class MessageReader:
    """Reads messages in their order."""

    def __init__(self, *, conversation: bool) -> None:
        """Create a reader. ``conversation`` means that no tools are used: "must" is then mostly small talk."""
        self.open: dict[str, ReadCall] = {}
        """Calls without a result so far, by their ids."""
        self._conversation = conversation
        self._found: list[Fact] = []
        self._opened: dict[str, ReadCall] = {}
        self._answered: list[tuple[str, ReadCall]] = []
        self._here: dict[_Key, int] = {}
        """Places in ``_found`` of the facts of the current message, except names."""
        self._names_here: dict[Source, dict[str, int]] = {}
        """Places in ``_found`` of the names of the current message, except those of results."""
        self._names_of_results: dict[str, bool] = {}
        self._texts: Sequence[str] = ()
        self._is_plain = False  # True if no text of the message has an exact sign of a credential.

    def follow(self, read: MessageRead) -> None:
        """Note which calls a message opens and answers."""
        self.open.update(read.opened)
        for call_id, _ in read.answered:
            self.open.pop(call_id, None)

    def read(self, position: int, message: Message) -> MessageRead:
        """Read one message."""
        self._here, self._found, self._opened, self._answered = {}, [], {}, []
        self._names_here, self._names_of_results = {}, {}
        self._texts = list(strings(message))
        self._is_plain = not cues.has_exact_sign("\n".join(self._texts))
        for block in message.blocks():
            kind, text = str(block.get("type", "")), block.get("text")
            if kind == "text" and isinstance(text, str):
                self._words(position, message, text)
            elif kind in CALLS:
                self._call(position, block)
            elif kind.endswith("tool_result"):
                self._result(position, block)
        answered, names = tuple(self._answered), self._names_of_results
        return MessageRead(tuple(self._found), self._opened, answered, names)

    def _words(self, position: int, message: Message, text: str) -> None:
        if message.role == "assistant":
            read = read_model_text(text)
            self._decisions(position, text, read)
            if not _has_calls(message) and (claim := claim_in(read)):
                self._add(Fact("outcome", claim, position, "model", "done"))
            self._advice(position, text)
            self._mentions(commands_in(text[:_SCANNED]), position, "model")
            self._values(text, position, "model", main=range(_MAIN))
        elif (
            message.role != "user" or message.author in ("program", "tool") or is_program_text(text)
        ):
            self._mentions(commands_in(text[:_SCANNED]), position, "program")
            self._values(text, position, "program", main=range(_MAIN))
        else:
            self._typed(position, text, "person" if message.author == "person" else "unknown")

    def _decisions(self, position: int, text: str, read: ModelText) -> None:
        """Add the strongest decisions of the model and its newest one, in the order of the text."""
        strong = find_assistant_decisions(read, conversation=self._conversation)
        newest = newest_decision(read)
        for said in strong:
            if newest and text.find(newest.text) < text.find(said.text):
                self._say(newest, position, "model", is_main=False)
                newest = None
            self._say(said, position, "model")
        if newest:
            self._say(newest, position, "model", is_main=False)

    def _advice(self, position: int, text: str) -> None:
        """Add what the model says of itself or recommends in a conversation without tools."""
        if not self._conversation:
            return
        for sentence in own_sentences(text[:_SCANNED]):
            if cues.has_chat_advice(sentence):
                self._add(Fact("said", sentence, position, "model"))

    def _typed(self, position: int, text: str, by: Source) -> None:
        read = read_user_text(text)
        for said in find_user_passages(read, conversation=self._conversation):
            self._say(said, position, "quoted" if said.is_quoted else by)
        own = read.own
        for kind, sentence in lasting_statements(own[:_TYPED]):
            self._add(Fact(kind, sentence, position, by, is_main=False))
        for sentence in own_sentences(own) if len(text) <= _TYPED else ():
            self._add(Fact("said", sentence, position, by))
            if closing := closing_of(sentence):
                self._add(Fact("outcome", sentence, position, by, closing))
        quotes = [quote for quote in read.quotes if quote.sort != "code"]
        self._mentions(commands_in(read.words[:_SCANNED]), position, by, quotes)
        self._values(read.words, position, by, main=range(_MAIN), quotes=quotes)
        for inserted in inserted_texts(text):
            self._values(inserted, position, "program", main=range(0))

    def _call(self, position: int, block: Mapping[str, Any]) -> None:
        action = parse_call(block.get("name"), block.get("input"))
        main = range(_MAIN if action.kind is ActionKind.COMMAND else 0)
        if action.kind in (ActionKind.MODIFY, ActionKind.READ):
            for path in action.exact:
                self._add(Fact("path", path.strip(), position, "call"))
        for text in _texts_of_input(block.get("input")):
            self._values(text, position, "call", main=main)
        self._opened[str(block.get("id"))] = ReadCall(position, action, block.get("input"))

    def _result(self, position: int, block: Mapping[str, Any]) -> None:
        call_id = str(block.get("tool_use_id"))
        call = self._opened.get(call_id) or self.open.get(call_id)
        if any(call_id == known for known, _ in self._answered):
            call = None
        action = call.action if call else Action(ActionKind.SILENT, "tool", ())
        is_command = action.kind is ActionKind.COMMAND
        outcome = outcome_of(block, action.subjects[0] if is_command else None)
        unknown = ReadCall(position, action, is_known=False)
        answered = (call or unknown)._replace(outcome=outcome, answered_at=position)
        self._answered.append((call_id, answered))
        title = cues.redact(cues.squeeze(action.title, _TITLE))
        if outcome.failed and not outcome.never_ran:
            telling = outcome.error_excerpt()
            found = [telling[a:b] for a, b in lines(telling)]
            reason = next((t for t in found if not _NO_REASON.fullmatch(t)), "".join(found[:1]))
            self._add(Fact("error", reason, position, "result", note=title))
        if call is not None and not outcome.never_ran:
            self._ran(call, failed=outcome.failed)
            printed = last_line(outcome.text) if is_command else ""
            state: State = "failed" if outcome.failed else "ok"
            self._add(
                Fact("outcome", printed, position, "result", state, title, called_at=call.position)
            )
        if outcome.reply:
            self._typed(position, outcome.reply, "person")
        text = outcome.text
        begin = begin_of_point(text)
        self._mentions(recommended_commands(text, begin), position, "result")
        self._values(text, position, "result", main=range(begin, len(text)))

    def _ran(self, call: ReadCall, *, failed: bool) -> None:
        """Add what a call did. It stands in the message of the call."""
        action, at = call.action, call.position
        here, self._here = self._here, {}
        texts, self._texts = self._texts, list(strings_in(call.given, deepest=_DEEPEST))
        was_plain, self._is_plain = self._is_plain, False
        if action.kind is ActionKind.COMMAND:
            state: State = "failed" if failed else "ok"
            self._add(Fact("command", action.verb or action.exact[0], at, "call", state))
            for path in () if failed else find_written_files(action.verb):
                self._add(Fact("path", path, at, "call", "edited"))
        elif not failed and action.kind is ActionKind.MODIFY:
            for path in action.exact:
                self._add(Fact("path", path, at, "call", "edited"))
        elif not failed and action.kind is ActionKind.READ:
            self._add(Fact("path", action.exact[0], at, "call", "read"))
        self._here, self._texts, self._is_plain = here, texts, was_plain

    def _say(self, said: Said, position: int, by: Source, *, is_main: bool = True) -> None:
        # If a heading contains a credential it cannot be shown, and the text alone could mean the opposite.
        if cues.redact(said.whole) != said.whole:
            return
        reason, *rejected = (
            text if text and is_line(text) and cues.redact(text) == text else ""
            for text in (said.grounds.reason, *said.grounds.rejected)
        )
        fact = Fact(said.kind, said.text, position, by, under=said.under, cut=said.cut)
        self._add(
            fact._replace(reason=reason, rejected=tuple(filter(None, rejected)), is_main=is_main)
        )

    def _mentions(
        self,
        found: Iterable[tuple[str, int]],
        position: int,
        by: Source,
        quotes: Sequence[Quote] = (),
    ) -> None:
        """Add the commands that a text quotes; they did not run."""
        for command, start in found:
            if not is_trivial(command):
                whose = "quoted" if _is_inside(start, quotes) else by
                self._add(Fact("command", command, position, whose, is_main=start < _MAIN))

    def _values(
        self,
        text: str,
        position: int,
        by: Source,
        *,
        main: range,
        quotes: Sequence[Quote] = (),
    ) -> None:
        """Add the paths, names and values of a text; ``main`` is its main part."""
        if not may_have_values(text):
            return
        ends = _VALUES_OF_RESULT if by == "result" else 0
        known_plain = self._is_plain and text in self._texts
        for part, offset, is_plain in _parts(text, known_plain=known_plain):
            found = values_in(part, _value_ranges(len(text), ends, offset, len(part)))
            for kind, value, at, is_clear in found:
                start = offset + at
                whose = "quoted" if quotes and _is_inside(start, quotes) else by
                if says_nothing(value, by_tool=whose in _OTHERS):
                    continue
                if len(value) > _LONGEST_VALUE or not value.isprintable():
                    continue
                if _may_be_secret(value, is_plain):
                    continue
                note = "" if is_clear else _about(part, at)
                if note and (not is_line(note) or _may_be_secret(note, is_plain)):
                    note = ""
                self._keep(Fact(kind, value, position, whose, "", note, is_main=start in main))
            self._names(part, offset, is_plain, position, by, main, quotes)

    def _names(
        self,
        part: str,
        offset: int,
        is_plain: bool,
        position: int,
        by: Source,
        main: range,
        quotes: Sequence[Quote],
    ) -> None:
        """Add the composed names of a part of a text."""
        found, all_found = self._names_here, self._found
        if quotes:
            for name, at in composed_names(part):
                if len(name) <= _LONGEST_VALUE and not _may_be_secret(name, is_plain):
                    start = offset + at
                    whose = "quoted" if _is_inside(start, quotes) else by
                    self._keep_name(Fact("name", name, position, whose, is_main=start in main))
            return
        names = distinct_names(part, range(main.start - offset, main.stop - offset))
        if not is_plain:
            # A name has no sign of an assignment, so it is no credential if the text has no exact sign.
            names = {name: main for name, main in names.items() if cues.redact(name) == name}
        if by == "result":
            self._names_of_results = merged_names(self._names_of_results, names)
            return
        facts = facts_of_names(names, position, by)
        if by in found:
            for fact in facts:
                self._keep_name(fact)
        else:
            found[by] = dict(zip(names, count(len(all_found))))
            all_found += facts

    def _add(self, fact: Fact) -> None:
        """Add a fact, if it stands in the message and does not look like a credential."""
        text = fact.text
        if not text and fact.kind != "outcome":
            return
        if fact.kind == "command":
            if _UNSAFE.search(text):
                return
        elif text and not is_line(text):
            return
        if not _may_be_secret(text, self._is_plain) and any(
            map(contains, self._texts, repeat(text))
        ):
            self._keep(fact)
        elif fact.kind == "outcome":
            self._keep(fact._replace(text=""))

    def _keep(self, fact: Fact) -> None:
        key = (fact.kind, fact.text, fact.by, fact.state, fact.under)
        at = self._here.get(key)
        if at is None or fact.kind in ("outcome", "error"):
            self._here[key] = len(self._found)
            self._found.append(fact)
        elif fact.is_main and not self._found[at].is_main:
            self._found[at] = fact

    def _keep_name(self, fact: Fact) -> None:
        here, found = self._names_here.setdefault(fact.by, {}), self._found
        at = here.setdefault(fact.text, len(found))
        if at == len(found):
            found.append(fact)
        elif fact.is_main and not found[at].is_main:
            found[at] = fact


def _has_calls(message: Message) -> bool:
    return any(str(block.get("type")) in CALLS for block in message.blocks())


def _parts(text: str, *, known_plain: bool) -> Sequence[tuple[str, int, bool]]:
    """Return the parts of a text that are read, without credentials, where they begin, and if they are plain.

    A word that is cut is not read. Nothing in a plain part, or ``known_plain`` text, is a credential without a name.
    """
    if len(text) <= _SCANNED + _SCANNED_END:
        if not known_plain and cues.has_exact_sign(text):
            return ((cues.mask(text), 0, False),)
        return ((cues.mask_named(text) if cues.may_assign(text) else text, 0, True),)
    head, end = cues.masked_beginning(text, _SCANNED), cues.masked_end(text, _SCANNED_END)
    cut = max(map(head.rfind, _BLANKS)) + 1
    tail = _FIRST_WORD.sub("", end)
    whole = head[:cut] if len(head) - cut <= _LONGEST_WORD else head
    return (whole, 0, False), (tail, len(text) - len(tail), False)


def _may_be_secret(text: str, is_plain: bool) -> bool:
    """Return whether a part of a text looks like a credential. In a plain text, only one with a name does."""
    return (not is_plain or cues.may_assign(text)) and cues.redact(text) != text


def _value_ranges(size: int, ends: int, offset: int, length: int) -> Sequence[tuple[int, int]]:
    """Return the ranges of a part that are read for values: all of it, or both ends of the text."""
    if not ends or size <= 2 * ends:
        return ((0, length),)
    ranges = [
        (max(0, a - offset), min(length, b - offset)) for a, b in ((0, ends), (size - ends, size))
    ]
    return [(begin, end) for begin, end in ranges if begin < end]


def _is_inside(start: int, quotes: Sequence[Quote]) -> bool:
    return any(quote.start <= start < quote.stop for quote in quotes)


def _texts_of_input(given: object) -> Iterator[str]:
    """Yield the strings of a tool's input without credentials, which the name of their field may reveal."""
    if not is_object(given):
        yield from strings_in(given, deepest=_DEEPEST)
        return
    for name, value in given.items():
        if isinstance(value, str):
            begin = cues.mask(f"{name}={value[:_SCANNED]}")
            yield begin[len(name) + 1 :] + value[_SCANNED:]
        else:
            yield from strings_in(value, deepest=_DEEPEST)


def _about(text: str, at: int) -> str:
    """Return the words before a value in its sentence, which describe the value."""
    start = max(0, at - _ABOUT, text.rfind("\n", 0, at) + 1)
    words = text[start:at]
    for stop in _ENDS_OF_SENTENCES:
        words = words.rpartition(stop)[2]
    if len(words) == _ABOUT and " " in words:
        words = words.partition(" ")[2]
    return words.strip(" \t*_`\"'([{:=,-–—")
