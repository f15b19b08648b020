"""Texts without what is left of Markdown where a sentence is cut out: marks without their partner."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from refold.domain.ledger.cues import clean, redact, squeeze
from refold.domain.ledger.gathering import Source, gather
from refold.domain.ledger.headings import sense_of, shown
from refold.domain.ledger.line import LedgerLine
from refold.domain.ledger.line_choice import Ranking
from refold.domain.ledger.quotations import own_words, quotes_in
from refold.domain.ledger.speech import sentences, user_words

from . import lasting_facts as lasting
from .conversation import Conversation
from .lasting_facts import stated
from .ledger import cues
from .messages import Message, said
from .notes import Note, NotesFlushed
from .quoted_text import broken_up
from .value import replace

LONGEST = 4_000
"""Characters; far more than a note has, and what a model writes may be of any length."""

_CODE = re.compile(r"`[^`]*`")
# Not a pattern of paths (`src/**`), Python's `**kwargs`, or a power.
_BOLD = re.compile(
    r"(?<![\\/*])\*{2,3}(?![*/]|\.\w|kw)(?!(?<=[A-Za-z0-9]\*\*)[A-Za-z0-9])(?!(?<=\s\*\*)\s)"
)
_CLOSING = re.compile(r"(?<=[.!?:。！？：])(?:__|[*_])(?=\s|\Z)|(?<=\w)__(?=\s|\Z)")
_HEADING = re.compile(r"#{1,6}\s+")
_LINE = re.compile(
    r"^[ \t>]*(#{1,6}[ \t]+\S.*|\*\*[^*\n]*[^*\n.!?。！？]\*\*)[ \t]*$",
    re.MULTILINE,
)
_PAUSES = frozenset(":：.。!！?？,，;；")


def plain(text: str) -> str:
    """The text without emphasis marks that have no partner, and without a heading's mark before it. A
    text longer than ``LONGEST`` stays as it is.
    """
    if len(text) > LONGEST:
        return text
    if heading := _HEADING.match(text):
        text = text[heading.end() :]
    quoted = [found.span() for found in _CODE.finditer(text)]
    bold = [m for m in _BOLD.finditer(text) if not any(a <= m.start() < b for a, b in quoted)]
    for mark in reversed(_without_partner(text, bold)):
        text = text[: mark.start()] + text[mark.end() :]
    for mark in reversed(list(_CLOSING.finditer(text))):
        if text.count(mark[0]) == 1:
            text = text[: mark.start()] + text[mark.end() :]
    return text.strip()


def bare(text: str) -> str:
    """The text without marks around it: as headings are compared."""
    return text.strip(" \t\n#*_")


def headings(text: str) -> frozenset[str]:
    """The headings of a text, bare: lines that are marked as one, and lines of nothing but bold words."""
    return frozenset(bare(found[1]) for found in _LINE.finditer(text))


def _without_partner(text: str, marks: list[re.Match[str]]) -> list[re.Match[str]]:
    """Of these marks those that neither end what one before begins, nor begin what one behind ends."""
    lone: list[re.Match[str]] = []
    opened: re.Match[str] | None = None
    for mark in marks:
        before, behind = text[: mark.start()][-1:], text[mark.end() :][:1]
        if opened is not None and mark[0] == opened[0] and before.strip():
            opened = None
        elif behind.strip() and not {before, behind} & _PAUSES:
            lone += [opened] if opened else []
            opened = mark
        else:
            lone.append(mark)
    return sorted([*lone, *([opened] if opened else [])], key=lambda mark: mark.start())


LEDGER = "ledger"
"""Who took notes where code did."""
LONGEST_NOTE = 400
"""Characters; of what is longer, beginning and end are kept."""
MOST_NOTES = 24
"""Of one flush."""
MOST_MESSAGES = 2_000
"""Notes are taken of so many messages at once at most, the newest."""

_MOST: dict[str, int] = {"prohibition": 8, "rule": 8, "decision": 8, "request": 3, "value": 5}
_STATED = frozenset({"prohibition", "rule", "decision"})
_MOST_TYPED = 16
"""Of each of these kinds, of what a person typed."""
_HEARD = frozenset({"text", "tool_use"})
"""What people and models say, and that tools are used at all; what tools return is not noted."""

_TYPED_FIRST = 1_000.0
"""More than a line can score without having been typed."""
_TYPED = 1_500
"""Characters: a longer text is pasted, and only partly the user's own words."""


def is_noted(state: Conversation) -> bool:
    """Whether notes were taken since the last compaction."""
    return state.notes_at == state.compactions


def notes_start(state: Conversation, stop: int) -> int:
    """The first message that notes are still to be taken of, where they are taken up to ``stop``."""
    return max(state.notes_to, stop - MOST_MESSAGES)


def flush_notes(state: Conversation, flush: NotesFlushed) -> tuple[NotesFlushed, ...]:
    """Record notes; nothing if they were taken meanwhile, of these messages or in this cycle."""
    if state.erased or is_noted(state) or flush.start != notes_start(state, flush.stop):
        return ()
    return (flush,) if flush.start < flush.stop <= state.length else ()


def fitting_notes(
    notes: Iterable[Note], known: Iterable[Note], sources: frozenset[int]
) -> tuple[Note, ...]:
    """What can be recorded: each on one line, without credentials, and nothing that is ``known``.

    ``sources``: the messages that they were taken of; a position that is none of them is dropped.
    """
    seen = {_said(note.text) for note in known}
    kept: list[Note] = []
    for note in notes:
        text = squeeze(redact(plain(clean(broken_up(note.text)))), LONGEST_NOTE)
        if not (said := _said(text)) or said in seen or _leads_in(text):
            continue
        seen.add(said)
        positions = sorted(sources.intersection(note.positions))
        kept.append(replace(note, text=text, positions=tuple(positions)))
    return tuple(kept[:MOST_NOTES])


def _said(text: str) -> str:
    """A text as it is compared: its letters and digits alone."""
    return "".join(filter(str.isalnum, text.casefold()))


def _leads_in(text: str) -> bool:
    """Whether a text ends before what it is about."""
    return plain(text).rstrip("*_ ").endswith((":", "："))


def notes_by_code(messages: Iterable[Source]) -> tuple[Note, ...]:
    """Rules, decisions, what is left to do and exact values of the user's, oldest first."""
    heard = [(position, _heard(message)) for position, message in messages]
    titles = {position: headings(said(message)) for position, message in heard}
    gathered = [
        line for line in gather(heard).lines if line.author != "quoted" and _is_whole(line, titles)
    ]
    own = {position: _own(message) for position, message in heard}
    told = list(_told(own))
    known = {line.text for line in gathered if line.kind != "request"}
    texts = {line.text for line in told}
    lines = [line for line in gathered if line.kind != "request" or line.text not in texts]
    lines += [line for line in told if line.text not in known and _is_whole(line, titles)]
    ranking = Ranking(lines)
    # What a person typed goes before what else sounds like it: a pasted page is full of rules.
    typed = {position for position, message in heard if _is_typed(message)}

    def score(line: LedgerLine) -> float:
        return ranking.score(line) + _TYPED_FIRST * (line.position in typed)

    latest = max((line.position for line in gathered if line.kind == "request"), default=-1)
    chosen = [
        line
        for kind, most in _MOST.items()
        for number, line in enumerate(
            _best([x for x in lines if x.kind == kind and _lasts(x, latest)], score)
        )
        if number < (_MOST_TYPED if kind in _STATED and line.position in typed else most)
    ]
    if len(chosen) > MOST_NOTES:
        chosen = list(_best(chosen, score))[:MOST_NOTES]
    chosen = [_in_sentence(line, own[line.position]) for line in chosen]
    return tuple(_note(line) for line in sorted(chosen, key=lambda line: line.position))


def _own(message: Message) -> str:
    """What a person says in a message, without what it quotes; of what is long the beginning."""
    if not _is_persons(message):
        return ""
    words = user_words(said(message))[:_TYPED]
    return own_words(words, quotes_in(words))


def _told(own: Mapping[int, str]) -> Iterator[LedgerLine]:
    """Sentences in which a user tells once and for all, or of what that person likes or has: in a chat
    these are not in the ledger.
    """
    for position, text in own.items():
        for span in sentences(text):
            found, under = text[span.start : span.stop], shown(text, span.under)
            kind = _kind(found)
            if kind and (sense_of(under) != "forbids" or lasting.is_order(found)):
                yield LedgerLine(kind=kind, text=found, position=position, said_by="user")


def _in_sentence(line: LedgerLine, own: str) -> LedgerLine:
    """A value in the whole sentence that tells it, where that is short: a part of one can say the opposite."""
    if line.kind != "value" or not line.note:
        return line
    for span in sentences(own):
        found = own[span.start : span.stop]
        if line.text in found and len(found) <= lasting.LONGEST:
            return replace(line, text=found, note="")
    return line


def _is_persons(message: Message) -> bool:
    return message.role == "user" and message.author not in ("program", "tool")


def _is_typed(message: Message) -> bool:
    """Whether a person wrote the message, and no more than people type."""
    return _is_persons(message) and 0 < len(user_words(said(message))) <= _TYPED


def _kind(found: str) -> Literal["rule", "value", "decision"] | None:
    if lasting.is_order(found) or lasting.is_liking(found):
        return "rule"
    return "value" if lasting.is_about_self(found) else stated(found)


def _is_whole(line: LedgerLine, titles: Mapping[int, frozenset[str]]) -> bool:
    """Whether a line says something by itself: it is no mere heading, and does not end before that."""
    about = line.note or line.text
    if about.startswith("#") or (bare(line.text) in titles[line.position] and not _orders(line)):
        return False
    return not _leads_in(line.text)


def _orders(line: LedgerLine) -> bool:
    return lasting.is_order(bare(line.text))


def _heard(message: Message) -> Message:
    if isinstance(message.content, str):
        return message
    kept = tuple(block for block in message.content if block.get("type") in _HEARD)
    return replace(message, content=kept)


def _best(
    lines: Sequence[LedgerLine], score: Callable[[LedgerLine], float]
) -> Sequence[LedgerLine]:
    return sorted(lines, key=lambda line: -score(line))


def _lasts(line: LedgerLine, latest: int) -> bool:
    """Whether a line says something for longer than the moment."""
    match line.kind:
        case "request":
            is_open = line.position == latest or cues.DEFERRED.search(line.text) is not None
            return is_open and not lasting.is_question(line.text)
        case "value":
            # A file that nothing is said about is worth no note.
            return line.said_by == "user" and (bool(line.note) or not lasting.is_path(line.text))
        case _:
            return True


def _note(line: LedgerLine) -> Note:
    at, text = (line.position,), " ".join((*line.under, line.text))
    match line.kind:
        case "prohibition":
            return Note(kind="constraint", text=text, positions=at)
        case "rule" if cues.PROHIBITION.search(line.text) and not lasting.is_liking(line.text):
            return Note(kind="constraint", text=text, positions=at)
        case "rule":
            return Note(kind="preference", text=text, positions=at)
        case "decision":
            return Note(kind="decision", text=text, positions=at)
        case "request":
            return Note(kind="task", text=text, positions=at)
        case _:
            return Note(kind="fact", text=f"{line.note} {text}".strip(), positions=at)
