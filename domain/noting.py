"""Take durable notes: remove leftover Markdown, choose what to note by code, and record a flush."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Literal

from refold.domain.facts.cues import clean, redact, squeeze
from refold.domain.facts.fact import Fact
from refold.domain.facts.quotations import own_words, quotes_in
from refold.domain.facts.reading import Place, ReadOnce
from refold.domain.facts.speech import sentences, user_words
from refold.domain.ledger import LedgerLine
from refold.domain.ledger.line import gather
from refold.domain.ledger.line_choice import Ranking, merge_ledger

from .conversation import Conversation
from .facts import cues
from .facts import lasting_facts as lasting
from .lazy_pattern import lazy_pattern
from .messages import Message, said
from .notes import Note, NotesFlushed
from .quoted_text import remove_headings
from .value import build_in_order, replace

LONGEST = 4_000
"""Maximum number of characters to clean. Notes are far shorter, but a model may write text of any length."""

_CODE = lazy_pattern(r"`[^`]*`")
# Does not match path patterns (`src/**`), Python's `**kwargs`, or a power.
_BOLD = lazy_pattern(
    r"(?<![\\/*])\*{2,3}(?![*/]|\.\w|kw)(?!(?<=[A-Za-z0-9]\*\*)[A-Za-z0-9])(?!(?<=\s\*\*)\s)"
)
_CLOSING = lazy_pattern(r"(?<=[.!?:。！？：])(?:__|[*_])(?=\s|\Z)|(?<=\w)__(?=\s|\Z)")
_HEADING = lazy_pattern(r"#{1,6}\s+")
_MARKS = ("*", "_", "#")
_LINE = lazy_pattern(
    r"^[ \t>]*(#{1,6}[ \t]+\S.*|\*\*[^*\n]*[^*\n.!?。！？]\*\*)[ \t]*$",
    re.MULTILINE,
)
_PAUSES = frozenset(":：.。!！?？,，;；")


def remove_lone_marks(text: str) -> str:
    """Return the text without emphasis marks that have no partner and without a leading heading mark.

    A text longer than ``LONGEST`` is returned unchanged.
    """
    if len(text) > LONGEST:
        return text
    if not any(map(text.__contains__, _MARKS)):
        return text.strip()
    if heading := _HEADING.match(text):
        text = text[heading.end() :]
    quoted = [found.span() for found in _CODE.finditer(text)]
    bold = [m for m in _BOLD.finditer(text) if not any(a <= m.start() < b for a, b in quoted)]
    for mark in reversed(_lone_marks(text, bold)):
        text = text[: mark.start()] + text[mark.end() :]
    for mark in reversed(list(_CLOSING.finditer(text))):
        if text.count(mark[0]) == 1:
            text = text[: mark.start()] + text[mark.end() :]
    return text.strip()


def strip_marks(text: str) -> str:
    """Return the text without Markdown marks around it, for comparing headings."""
    return text.strip(" \t\n#*_")


def headings(text: str) -> frozenset[str]:
    """Return the headings of a text without marks: marked headings, and lines with only bold words."""
    if "#" not in text and "**" not in text:
        return frozenset()
    return frozenset(strip_marks(found[1]) for found in _LINE.finditer(text))


def _lone_marks(text: str, marks: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the marks that neither close an earlier mark nor are closed by a later one."""
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
"""Value of ``taken_by`` if code took the notes."""
LONGEST_NOTE = 400
"""Maximum number of characters of a note. The middle of a longer one is cut out."""
MOST_NOTES = 24
"""Maximum number of notes in one flush."""
MOST_MESSAGES = 2_000
"""Maximum number of messages that one flush covers. The newest ones are used."""

_MOST: dict[str, int] = {"prohibition": 8, "rule": 8, "decision": 8, "request": 3, "value": 5}
_STATED = frozenset({"prohibition", "rule", "decision"})
_MOST_TYPED = 16
"""Maximum number of typed notes of each stated kind."""
_TYPED_FIRST = 1_000.0
"""Score added to typed lines. It is larger than any other score."""
_TYPED = 1_500
"""Number of characters above which a text counts as pasted, which is only partly the user's own words."""


def notes_start(state: Conversation, stop: int) -> int:
    """Return the position of the first message without notes, for a flush that ends at ``stop``."""
    return max(state.notes_to, stop - MOST_MESSAGES)


def flush_notes(state: Conversation, flush: NotesFlushed) -> tuple[NotesFlushed, ...]:
    """Record notes, or do nothing if notes of these messages or since this compaction exist already."""
    if state.erased or state.has_notes or flush.start != notes_start(state, flush.stop):
        return ()
    return (flush,) if flush.start < flush.stop <= state.length else ()


def fitting_notes(
    notes: Iterable[Note], known: Iterable[Note], sources: frozenset[int]
) -> tuple[Note, ...]:
    """Return the notes to record: one line each, without credentials, and without ``known`` ones.

    ``sources`` are the positions that the notes were taken from. Other positions are dropped from the
    notes.
    """
    seen = {_comparable(note.text) for note in known}
    kept: list[Note] = []
    for note in notes:
        text = squeeze(redact(remove_lone_marks(clean(remove_headings(note.text)))), LONGEST_NOTE)
        if not (said := _comparable(text)) or said in seen or _is_announcement(text):
            continue
        seen.add(said)
        positions = sorted(sources.intersection(note.positions))
        kept.append(replace(note, text=text, positions=tuple(positions)))
    return tuple(kept[:MOST_NOTES])


_APART = bytes(n for n in range(128) if not chr(n).isalnum())


@lru_cache(maxsize=4_096)
def _comparable(text: str) -> bytes:
    """Return the letters and digits of a text, for comparing notes. Each compaction compares hundreds of old ones."""
    if text.isascii():
        return text.lower().encode().translate(None, _APART)
    return "".join(filter(str.isalnum, text.casefold())).encode("utf-8", "surrogatepass")


def _is_announcement(text: str) -> bool:
    """Return whether a text ends with a colon, before the content that it announces."""
    if ":" not in text and "：" not in text:
        return False
    return remove_lone_marks(text).rstrip("*_ ").endswith((":", "："))


def notes_by_code(messages: Iterable[Place], reading: ReadOnce | None = None) -> tuple[Note, ...]:
    """Choose rules, decisions, open tasks and exact values of the user, oldest first.

    ``reading`` reads the messages, so that none of them is read twice.
    """
    heard = list(messages)
    facts = [fact for fact in (reading or ReadOnce()).read(heard).facts if fact.by != "result"]
    said_at = dict(heard)
    titles, own = cache(partial(_titles_at, said_at)), cache(partial(_own_words_at, said_at))
    gathered = [
        line
        for line in merge_ledger((), gather(facts))
        if line.author != "quoted" and _is_whole(line, titles)
    ]
    gathered = [_expand_to_sentence(line, own) for line in gathered]
    statements = list(_lasting_statements(facts))
    weak = ("request", "value")
    known = {line.text for line in gathered if line.kind not in weak}
    texts = {line.text for line in statements}
    lines = [line for line in gathered if line.kind not in weak or line.text not in texts]
    lines += [line for line in statements if line.text not in known and _is_whole(line, titles)]
    ranking = Ranking(lines)
    # Typed text comes first, because a pasted page can contain many rules.
    typed = {position for position, message in heard if _is_typed(message)}

    def score(line: LedgerLine) -> float:
        return ranking.score(line) + _TYPED_FIRST * (line.position in typed)

    latest = max((line.position for line in gathered if line.kind == "request"), default=-1)
    chosen = [
        line
        for kind, most in _MOST.items()
        for number, line in enumerate(
            _best([x for x in lines if x.kind == kind and _is_lasting(x, latest)], score)
        )
        if number < (_MOST_TYPED if kind in _STATED and line.position in typed else most)
    ]
    if len(chosen) > MOST_NOTES:
        chosen = list(_best(chosen, score))[:MOST_NOTES]
    return tuple(_note(line) for line in sorted(chosen, key=lambda line: line.position))


def _titles_at(messages: Mapping[int, Message], position: int) -> frozenset[str]:
    return headings(said(messages[position]))


def _own_words_at(messages: Mapping[int, Message], position: int) -> str:
    """Return the beginning of a person's own words in a message, without quoted text."""
    message = messages[position]
    if not _is_persons(message):
        return ""
    words = user_words(said(message))[:_TYPED]
    return own_words(words, quotes_in(words))


def _lasting_statements(facts: Iterable[Fact]) -> Iterator[LedgerLine]:
    """Yield sentences with lasting orders, preferences, facts and decisions of a user.

    The ledger leaves them out in a conversation without tools.
    """
    for fact in facts:
        if fact.kind not in ("preference", "decision") or fact.is_main or fact.by == "model":
            continue
        kind: Literal["rule", "value", "decision"] = "decision"
        if fact.kind == "preference":
            kind = "rule" if lasting.is_preference(fact.text) else "value"
        yield build_in_order(
            LedgerLine, kind=kind, text=fact.text, position=fact.position, said_by="user"
        )


def _expand_to_sentence(line: LedgerLine, own_words_at: Callable[[int], str]) -> LedgerLine:
    """Return a value line with its whole sentence if that is short. A part of a sentence may mean the
    opposite."""
    if line.kind != "value" or not line.note:
        return line
    own = own_words_at(line.position)
    for span in sentences(own):
        found = own[span.start : span.stop]
        if line.text in found and len(found) <= lasting.LONGEST:
            return replace(line, text=found, note="")
    return line


def _is_persons(message: Message) -> bool:
    return message.role == "user" and message.author not in ("program", "tool")


def _is_typed(message: Message) -> bool:
    """Return whether a person typed the message. A longer message than ``_TYPED`` counts as pasted."""
    return _is_persons(message) and 0 < len(user_words(said(message))) <= _TYPED


def _is_whole(line: LedgerLine, titles: Callable[[int], frozenset[str]]) -> bool:
    """Return whether a line makes sense alone. A heading or an announcement does not."""
    about = line.note or line.text
    if about.startswith("#") or (
        strip_marks(line.text) in titles(line.position) and not _orders(line)
    ):
        return False
    return not _is_announcement(line.text)


def _orders(line: LedgerLine) -> bool:
    return lasting.is_order(strip_marks(line.text))


def _best(
    lines: Sequence[LedgerLine], score: Callable[[LedgerLine], float]
) -> Sequence[LedgerLine]:
    return sorted(lines, key=lambda line: -score(line))


def _is_lasting(line: LedgerLine, latest: int) -> bool:
    """Return whether a line stays true for longer than the moment."""
    match line.kind:
        case "request":
            is_newest = line.position == latest or cues.DEFERRED.search(line.text) is not None
            asks = (
                cues.ASKING.search(line.text)
                or cues.ORDER.match(line.text)
                or _REMINDS.search(line.text)
            )
            is_open = is_newest and asks is not None and not line.note
            return is_open and not lasting.is_question(line.text)
        case "rule":
            return _ASKS_ONCE.match(line.text) is None
        case "value":
            return line.said_by == "user" and _states_something(line)
        case _:
            return True


_REMINDS = lazy_pattern(
    r"\b(?:forget|remember to|to[- ]?do|follow[- ]?up|still (?:need|have|missing|open)|later|eventually|let['’]?s)\b"
    r"|别忘|记得|待办|还要|还需要|回头|稍后|之后|以后|完成后",
    re.IGNORECASE,
)
_ASKS_ONCE = lazy_pattern(
    r"(?:yes|ok(?:ay)?|so|and|but|also|now|then)?[,.]? ?(?:i(?: just)? (?:want|need)|i(?:['’]d| would) like) you to\b"
    r"(?!.*\b(?:always|never)\b)",
    re.IGNORECASE,
)
"""A wish for one thing to be done now."""
_STATES = lazy_pattern(
    r"\b(?:is|are|was|were|has|have|had|costs?|runs?|listens?|uses?|lives?|called|named|weighs?|starts?|ends?|born)\b"
    r"|[是为在有叫共]|[:：=]",
    re.IGNORECASE,
)
_DRAWN = lazy_pattern(r"[→├└│|#`]")


def _states_something(line: LedgerLine) -> bool:
    """Return whether a value stands in a short sentence that says what it is."""
    text = line.text
    if lasting.is_about_self(text):
        return True
    return not line.note and _STATES.search(text) is not None and _DRAWN.search(text) is None


def _note(line: LedgerLine) -> Note:
    at, text = (line.position,), " ".join((*line.under, line.text))
    match line.kind:
        case "prohibition":
            return build_in_order(Note, kind="constraint", text=text, positions=at)
        case "rule" if cues.PROHIBITION.search(line.text) and not lasting.is_liking(line.text):
            return build_in_order(Note, kind="constraint", text=text, positions=at)
        case "rule":
            return build_in_order(Note, kind="preference", text=text, positions=at)
        case "decision":
            return build_in_order(Note, kind="decision", text=text, positions=at)
        case "request":
            return build_in_order(Note, kind="task", text=text, positions=at)
        case _:
            return build_in_order(
                Note, kind="fact", text=f"{line.note} {text}".strip(), positions=at
            )
