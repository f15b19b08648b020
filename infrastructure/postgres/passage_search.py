"""Search the passages on a server for the tokens of a query, best first, as the index in a file does."""

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from typing import Any, NamedTuple

from refold.application.ports.recall_index import Filters, Found, Visible
from refold.application.recall.passages import Passage
from refold.infrastructure.projection_store.checkpoint import read_progress
from refold.infrastructure.projection_store.row_checksums import open_row, storable
from refold.infrastructure.projection_store.tables import Tables
from refold.infrastructure.recall.index_search import (
    MOST,
    Postings,
    Search,
    Weighed,
    best_first,
    wanted_numbers,
)
from refold.infrastructure.recall.index_tables import (
    PASSAGE_COLUMNS,
    PASSAGES,
    PROJECTIONS,
    numbers_of,
    segment_of,
    term_of,
    thread_token,
)
from refold.infrastructure.recall.posted_runs import Posting, passage_at, place_of
from refold.infrastructure.recall.proved_counts import NEIGHBOUR_PARTS

from .connections import to_text

TOKENS = "string_to_array(btrim(tokens), ' ')"
"""The tokens of a passage as an array. An index has them, so no passage is read to find one."""
COLUMNS = ", ".join(f"p.{column}" for column in PASSAGE_COLUMNS)

FEW = 10_000
"""Number of passages to search up to which every passage with a token is found, by the index of its conversation."""
_HAVING = f"SELECT array_agg(p.number) FROM {{passages}} p WHERE {TOKENS} @> ARRAY[?::text]"
_LAST = "SELECT coalesce(max(number), -1) FROM {passages}"
_FREQUENCIES = "SELECT term, passages FROM {terms} WHERE term = ANY(?::bigint[])"
_COUNTS = "SELECT row_count FROM {threads} WHERE thread = ANY(?::text[])"
# The limits keep the planner from reading all passages of a conversation for a few.
_NEIGHBOURS = f"""
SELECT {COLUMNS} FROM unnest(?::text[], ?::bigint[]) AS wanted(thread, position)
CROSS JOIN LATERAL (
    SELECT * FROM {{passages}} o
    WHERE o.thread = wanted.thread AND o.position = wanted.position AND o.part < {NEIGHBOUR_PARTS}
    ORDER BY o.part LIMIT {NEIGHBOUR_PARTS}
) p
"""
_NUMBERED = f"SELECT {COLUMNS} FROM {{passages}} p WHERE p.number = ANY(?::bigint[])"


class Condition(NamedTuple):
    """A condition on passages, and its values."""

    text: str
    values: tuple[Any, ...]

    def also(self, text: str, *values: Any) -> "Condition":
        """Return the condition with another one."""
        return Condition(f"{self.text} AND {text}", (*self.values, *values))


EVERY = Condition("true", ())


def passing(filters: Filters) -> Condition:
    """Return the condition of passages that pass the filters."""
    found = EVERY
    if filters.thread_id is not None:
        thread_id = filters.thread_id
        found = found.also(
            "p.thread = ? AND p.thread_id = ?", thread_token(thread_id), storable(thread_id)
        )
    for column, names in (
        ("role", filters.roles),
        ("kind", filters.kinds),
        ("tool", filters.tools),
    ):
        if names:
            found = found.also(f"p.{column} = ANY(?::text[])", _names(names))
    if filters.since is not None:
        found = found.also("p.at >= ?", filters.since)
    if filters.until is not None:
        found = found.also("p.at < ?", filters.until)
    if filters.positions is not None:
        found = found.also("p.position >= ? AND p.position < ?", *filters.positions)
    if filters.visible is not None:
        found = found.also(*_visible(filters.visible))
    if filters.leave_out:
        found = found.also("p.position <> ALL(?::bigint[])", sorted(filters.leave_out))
    return found


def _visible(visible: Visible) -> tuple[Any, ...]:
    condition = (
        "(p.thread_id = ?::text OR p.owner = ?::text OR (p.owner = '' AND "
        "(p.thread_id = ANY(?::text[])) = ?::boolean))"
    )
    # An empty owner means that the message has none of its own.
    owner, threads = storable(visible.owner or None), _names(visible.threads)
    return condition, storable(visible.home), owner, threads, visible.owner is not None


def _names(names: Collection[str]) -> list[str]:
    """Return names as they are stored. ``Tables`` converts texts, but not those in a list."""
    return [to_text(str(storable(name))) for name in sorted(names)]


def find(db: Tables, search: Search) -> Found:
    """Find the best passages with these tokens that pass the filters."""
    tokens, filters, limit, also, judge = search
    total = read_progress(db, PROJECTIONS).totals[PASSAGES].rows
    frequencies = _frequencies(db, list(dict.fromkeys(tokens)))
    where = passing(filters)
    scope, count = _scope(db, filters, total)
    postings = ServerPostings(db, frequencies, scope)
    best = partial(best_first, postings, frequencies, None, total, limit)
    numbers = best(None) if count <= FEW else wanted_numbers(best, limit, filters)
    found = _let_through(db, numbers, where, limit)
    there = {passage.number for passage in found}
    others = [number for number in dict.fromkeys(also) if number not in there]
    found += _let_through(db, iter(others), where, len(others))
    without = Found(found, {}, frequencies, total)
    if judge is not None and not judge.wants_neighbours(without):
        return without
    return without._replace(neighbours=_neighbours(db, search.with_neighbours(found)))


def in_order(db: Tables, after: int, limit: int, filters: Filters) -> list[Passage]:
    """Return the next passages after a number that pass the filters."""
    condition, values = passing(filters)
    query = (
        f"SELECT {COLUMNS} FROM {{passages}} p WHERE p.number > ? AND {condition} "
        "ORDER BY p.number LIMIT ?"
    )
    return _passages(run_query(db, query, after, *values, limit))


def every_digest(db: Tables) -> frozenset[str]:
    """Return the digests of all texts."""
    rows = db.execute("SELECT DISTINCT digest FROM {passages}")
    return frozenset(digest for (digest,) in rows)


class ServerPostings(Postings):
    """The passages of a server that have a token, in ``scope``, for a search that is the same as in a file.

    A common token is looked up in the newest segments, and then among the passages that are known, so that the
    passages that are read are bounded.
    """

    knows_whole = False

    def __init__(self, db: Tables, tokens: Iterable[str], scope: Condition) -> None:
        """Create the postings of these tokens."""
        self._tables = db
        self._tokens = {term_of(token): token for token in tokens}
        self._scope = scope

    def of(self, term: int, segments: Collection[int] | None) -> Iterator[Posting]:
        """Yield the postings of a term in these segments, or in all."""
        if segments is None:
            return self._having(term, self._scope)
        first, stop = numbers_of(min(segments))[0], numbers_of(max(segments))[1]
        within = self._scope.also("p.number >= ? AND p.number < ?", first, stop)
        return (one for one in self._having(term, within) if one.segment in segments)

    def among(self, term: int, known: Weighed) -> Iterator[Posting]:
        """Yield the postings of a term, of passages that are known."""
        numbers = [
            passage_at(segment, place) for segment, places in known.items() for place in places
        ]
        return self._having(term, EVERY.also("p.number = ANY(?::bigint[])", numbers))

    def segments(self) -> set[int]:
        """Return all segments up to the newest one."""
        ((last,),) = run_query(self._tables, _LAST)
        return set(range(segment_of(last) + 1))

    def _having(self, term: int, where: Condition) -> Iterator[Posting]:
        query = f"{_HAVING} AND {where.text}"
        ((numbers,),) = run_query(self._tables, query, self._tokens[term], *where.values)
        for segment, some in groupby(sorted(numbers or ()), segment_of):
            yield Posting(segment, array("d", map(place_of, some)))


def _frequencies(db: Tables, tokens: Sequence[str]) -> dict[str, int]:
    terms = {token: term_of(token) for token in tokens}
    found = dict(run_query(db, _FREQUENCIES, [*terms.values()]))
    return {token: found[term] for token, term in terms.items() if term in found}


def _scope(db: Tables, filters: Filters, total: int) -> tuple[Condition, int]:
    """Return the condition of the passages to search, and how many of them there are.

    The filters are applied to what is found.
    """
    visible = filters.visible
    if filters.thread_id is not None:
        threads = {filters.thread_id}
    elif visible is not None and visible.owner is not None:
        threads = {*visible.threads, *filter(None, (visible.home,))}
    else:
        return EVERY, total
    marks = [*map(thread_token, sorted(threads))]
    count = sum(passages for (passages,) in run_query(db, _COUNTS, marks))
    if count >= MOST * total:
        return EVERY, total
    if filters.thread_id is None and visible is not None and visible.owner:
        owner = storable(visible.owner)
        return EVERY.also("(p.thread = ANY(?::text[]) OR p.owner = ?)", marks, owner), count
    return EVERY.also("p.thread = ANY(?::text[])", marks), count


def _let_through(db: Tables, numbers: Iterator[int], where: Condition, limit: int) -> list[Passage]:
    """Return the first ``limit`` passages that pass the filters, in the order of ``numbers``."""
    found: list[Passage] = []
    size = limit
    # In brackets and IS TRUE, so that no index of another column is taken in place of the numbers.
    query = f"{_NUMBERED} AND ({where.text}) IS TRUE"
    while len(found) < limit and (wanted := list(islice(numbers, size))):
        passages = _passages(run_query(db, query, wanted, *where.values))
        by_number = {passage.number: passage for passage in passages}
        found += [by_number[number] for number in wanted if number in by_number]
        size *= 4
    return found[:limit]


Place = tuple[str, int]


def _neighbours(db: Tables, found: Collection[Passage]) -> Mapping[Place, Sequence[Passage]]:
    wanted = {
        (thread_token(passage.thread_id), passage.position + step)
        for passage in found
        for step in (-1, 1)
    }
    threads, positions = [one for one, _ in wanted], [position for _, position in wanted]
    neighbours: dict[Place, list[Passage]] = {}
    for passage in _passages(run_query(db, _NEIGHBOURS, threads, positions)) if wanted else ():
        neighbours.setdefault((passage.thread_id, passage.position), []).append(passage)
    return neighbours


def run_query(db: Tables, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement. Unlike a file, a server takes lists."""
    return db.execute(statement, values).fetchall()


def _passages(rows: Any) -> list[Passage]:
    return [_passage(row) for row in rows]


def _passage(row: Sequence[Any]) -> Passage:
    values: tuple[Any, ...] = open_row(PASSAGES, row)
    return Passage._make((*values[:12], bool(values[12]), *values[13:17]))
