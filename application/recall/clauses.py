"""Split a question into its clauses, and merge what was found for each of them."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from .function_words import is_german
from .ranking import Ranked
from .recall_query import Question, ask

MOST_CLAUSES = 3
"""Largest number of clauses to search for by themselves. More of them are divided into as many groups."""

_ENGLISH = r"(?:what|which|who|whom|whose|when|where|why|how)(?:'s|’s)?\b"
_VERBS = r"(?:did|does|do|is|are|was|were|has|have|had|can|could|will|would|should)\b"
_GERMAN = r"(?:was|welche[mnrs]?|wer|wem|wen|wessen|wann|wo(?:hin|her|mit|für|von|zu)?|warum|wieso|weshalb|wie)\b"
_COMMANDS = (
    r"(?:please\s+|bitte\s+)?(?:tell|show|give|find|list|name|remind|sage?|nenne?|zeige?|gib)\b"
)
_CHINESE = "什么|怎么|怎样|如何|哪|谁|几|多少|多大|多久|多长|多远|多高|为何|是否|有没有|是不是|名字是|[吗呢]"
_ASKS = re.compile(
    rf"[?？]|\b(?:{_ENGLISH}|{_GERMAN})|^\W*(?:{_VERBS}|{_COMMANDS})|{_CHINESE}", re.IGNORECASE
)
_ABOUT = re.compile(r"^\W*(?:关于|对于|至于)")
"""Begins a Chinese phrase that only names the subject of the next clause."""
_ENDS = r"(?<=[?？!！。;；\n])|(?<=[a-zà-ÿ0-9]{3}\.)\s+(?=[A-ZÀ-Þ])"
_CHINESE_JOINTS = (
    r"[，,、]?\s*(?:另外|还有|以及|并且|而且|此外|同时|顺便)[，,]?|，|(?<=[\u3400-\u9fff]),"
)
_ENGLISH_JOINTS = re.compile(
    rf"{_ENDS}|,?\s+(?:and|or|but)(?:\s+(?:also|then))?\s+(?=(?:{_ENGLISH}|did\b|does\b|do\b|{_COMMANDS}))"
    rf"|,\s*(?={_ENGLISH})|{_CHINESE_JOINTS}",
    re.IGNORECASE,
)
_GERMAN_JOINTS = re.compile(
    rf"{_ENDS}|,?\s+(?:und|oder|sowie|aber)(?:\s+(?:auch|dann))?\s+(?=(?:{_GERMAN}|{_COMMANDS}))"
    rf"|,\s*(?={_GERMAN})",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\b(?:it|she|he|they|her|his|their|its|them|there|es|er|sie|ihr|ihre|sein|seine|dort)\b",
    re.IGNORECASE,
)
_CHINESE_PRONOUN = re.compile(r"它|(?<!其)他|她")
"""Mean something of the clause before, which a Chinese clause by itself does not name."""

_Place = tuple[str, int]


class _Clause(NamedTuple):
    start: int
    stop: int
    asks: bool
    """True if it asks for something of its own."""


def clauses_of(question: Question) -> tuple[Question, ...]:
    """Return the clauses of a question, or nothing if it has only one.

    A clause asks for something and has words of its own. Any other text belongs to the clause before,
    or at the beginning to the one after. If most sentences ask for nothing, the text is no question of
    several parts.
    """
    parts = list(_parts(question.text))
    clauses: list[_Clause] = []
    for part in parts:
        last = clauses[-1] if clauses else None
        if last is not None and not (part.asks and last.asks):
            clauses[-1] = _Clause(last.start, part.stop, last.asks or part.asks)
        else:
            clauses.append(part)
    if len(clauses) < 2 or len(parts) > 2 * len(clauses):
        return ()
    texts = (question.text[start:stop].strip() for start, stop in _groups(clauses))
    return tuple(_with_names(ask(text), question) for text in texts)


def _parts(text: str) -> Iterator[_Clause]:
    joints = _GERMAN_JOINTS if is_german(text) else _ENGLISH_JOINTS
    start = 0
    for joint in (*joints.finditer(text), None):
        end, after = (len(text), len(text)) if joint is None else joint.span()
        if re.search(r"\w", text[start:end]):
            yield _Clause(start, end, _is_whole(text[start:end]))
        start = after


def _is_whole(text: str) -> bool:
    """Return whether a text asks for something that its own words name."""
    if not _ASKS.search(text) or _ABOUT.match(text):
        return False
    found = ask(text)
    if not found.has_words or _CHINESE_PRONOUN.search(text):
        return False
    return len(found.tokens) > 1 or not _PRONOUN.search(text)


def _groups(clauses: Sequence[_Clause]) -> Iterator[tuple[int, int]]:
    number = min(len(clauses), MOST_CLAUSES)
    for group in range(number):
        begin, end = (len(clauses) * at // number for at in (group, group + 1))
        yield clauses[begin].start, clauses[end - 1].stop


def _with_names(clause: Question, whole: Question) -> Question:
    """Return a clause without a name with those of the whole question, if a pronoun means one of them."""
    if clause.names or not whole.names or not _PRONOUN.search(clause.text):
        return clause
    tokens = tuple(dict.fromkeys((*clause.tokens, *sorted(whole.names))))
    return clause._replace(tokens=tokens, names=whole.names)


def merge(whole: Sequence[Ranked], clauses: Sequence[Sequence[Ranked]], limit: int) -> list[Ranked]:
    """Merge the messages found for a question with those found for each of its clauses.

    The best ``limit // len(clauses)`` messages of every clause come first, in turns. Messages that only
    stand next to a match come last.
    """
    found: dict[_Place, list[Ranked]] = {}
    for one in chain(*clauses, whole):
        found.setdefault(_place(one), []).append(one)
    merged = {place: _merged(same, len(clauses) + 1) for place, same in found.items()}
    best = sorted(merged, key=lambda place: (merged[place].is_neighbour, -merged[place].score))
    order = dict.fromkeys((*_firsts(clauses, max(1, limit // len(clauses))), *best))
    least = min((one.score for one in merged.values() if not one.is_neighbour), default=1.0)
    ranked = (merged[place] for place in order)
    return [
        one._replace(score=min(one.score, least)) if one.is_neighbour else one for one in ranked
    ]


def _firsts(clauses: Sequence[Sequence[Ranked]], share: int) -> Iterator[_Place]:
    for turn in range(share):
        for each in clauses:
            if turn < len(each) and not each[turn].is_neighbour:
                yield _place(each[turn])


def _merged(same: Sequence[Ranked], lists: int) -> Ranked:
    """Return one message of several lists: the likelihood that it answers is the mean over the lists."""
    best = max(same, key=lambda one: (not one.is_neighbour, one.score))
    return best._replace(score=sum(one.score for one in same) / lists)


def _place(one: Ranked) -> _Place:
    return one.passage.thread_id, one.passage.position
