"""Find the facts of covered messages that the text of their summary does not have."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from refold.application.lab.exam_facts import one_line
from refold.application.lab.scan_facts import KeptText, LossKind, Need
from refold.domain.facts.fact import STATEMENTS, VALUES, Fact, Kind, Source
from refold.domain.ledger.line import gather
from refold.domain.ledger.line_choice import LineState, merge_ledger, state_of
from refold.domain.value import Value

MOST_MISSING = 200
"""Number of missing facts that are returned; all are counted."""
COMPARED = (
    "A request, rule, decision or other sentence, and an error, counts as taken over if the summary's text, its "
    "ledger or its index has it word for word, or if one of their lines has two thirds of its words; words are "
    "compared in small letters, and common ones do not count. A path counts by itself or by the name of its file, a "
    "command by itself or by its longest step, any other value by itself: as whole words, in the same letters. White "
    "space is compared as single spaces. Words that say the same in another way are not recognised."
)
"""Rules of the comparison, for people."""

EXACT: frozenset[Kind] = frozenset({*VALUES, "path", "command", "name"})
"""Kinds of facts that are exact values."""
_COMPARED_AS: Mapping[Kind, LossKind] = {
    "request": "requests",
    "path": "files",
    "command": "commands",
}
"""Kind of the comparison for a fact that is no value; sentences are compared as rules are."""
_BY_PERSON: frozenset[Source] = frozenset({"person", "unknown"})
_TELLING: tuple[Kind, ...] = ("request", "prohibition", "rule", "decision", "preference", "said")
_SOURCES: tuple[Source, ...] = (
    "person",
    "unknown",
    "call",
    "model",
    "quoted",
    "program",
    "result",
)


class MissingFact(Value, frozen=True):
    """A fact of covered messages that neither the summary's text nor its shown ledger and index has."""

    kind: Kind
    text: str
    """Text as it stands in the message."""
    position: int
    """Position of the newest examined message with the text."""
    by: Source
    """Where it stands: in words of a person, of the model, in a tool call, and so on."""
    uses: int
    """Number of examined messages with it."""
    state: LineState = ""
    """For a request: whether it is open after the examined messages."""
    is_kept_unseen: bool = False
    """Whether the log keeps it as a line of the ledger or the index that had no room, so that it may return."""


class Missing(NamedTuple):
    """Facts that a text does not have."""

    facts: tuple[MissingFact, ...]
    """The most telling ones, at most ``MOST_MISSING``."""
    counts: tuple[tuple[Kind, int], ...]
    """Number of all missing facts of each kind, the most frequent first."""
    examined: int
    """Number of different facts that were compared."""


def find_missing(facts: Sequence[Fact], kept: KeptText, unseen: Collection[str]) -> Missing:
    """Return the facts that ``kept`` does not have, the most telling first.

    Open requests, rules, prohibitions and decisions of persons come before values, values that several messages have
    before values of a single one. ``unseen``: texts that are kept without being shown.
    """
    newest: dict[tuple[Kind, str], Fact] = {}
    places: dict[tuple[Kind, str], set[int]] = {}
    for fact in _telling(facts):
        key = fact.kind, fact.text
        newest[key] = fact
        places.setdefault(key, set()).add(fact.position)
    missing = [fact for fact in newest.values() if not has_fact(kept, fact)]
    states = _states_of_requests(facts)
    found = [
        MissingFact(
            kind=fact.kind,
            text=fact.text,
            position=fact.position,
            by=fact.by,
            uses=len(places[fact.kind, fact.text]),
            state=states.get(fact.text, "") if fact.kind == "request" else "",
            is_kept_unseen=one_line(fact.text) in unseen,
        )
        for fact in missing
    ]
    found.sort(key=_rank)
    kinds: Counter[Kind] = Counter()
    for one in found:
        kinds[one.kind] += 1
    return Missing(tuple(found[:MOST_MISSING]), tuple(kinds.most_common()), len(newest))


def has_fact(kept: KeptText, fact: Fact) -> bool:
    """Return whether a text has a fact, as ``COMPARED`` says."""
    text = one_line(fact.text)
    if fact.kind in VALUES or fact.kind == "name":
        return kept.has_exact(text)
    return kept.has(Need(_COMPARED_AS.get(fact.kind, "rules"), text))


def _telling(facts: Sequence[Fact]) -> Iterable[Fact]:
    """Yield the facts to compare: no outcomes, and no sentence that is also a statement of its message."""
    stated: dict[int, list[str]] = {}
    for fact in facts:
        if fact.kind in STATEMENTS:
            stated.setdefault(fact.position, []).append(fact.text)
    for fact in facts:
        is_repeated = fact.kind == "said" and any(
            fact.text in text or text in fact.text for text in stated.get(fact.position, ())
        )
        if fact.kind != "outcome" and not is_repeated:
            yield fact


def _states_of_requests(facts: Sequence[Fact]) -> Mapping[str, LineState]:
    lines = merge_ledger((), gather(facts))
    return {line.text: state_of(line)[0] for line in lines if line.kind == "request"}


def _rank(fact: MissingFact) -> tuple[int, ...]:
    by = _SOURCES.index(fact.by)
    if fact.kind not in _TELLING:
        return 4, int(fact.kind == "name"), int(fact.uses == 1), by, -fact.uses, -fact.position
    is_over = fact.state not in ("", "open")
    group = 0 if fact.by in _BY_PERSON else 1
    if fact.kind == "said" or is_over:
        group += 2
    return group, _TELLING.index(fact.kind), -fact.uses, by, -fact.position
