"""A recall index in memory: every question folds the log anew, in the plainest way."""

from collections import Counter
from collections.abc import Iterator, Sequence

from refold.application.ports.conversation_log import ConversationLog, Damage, LoggedEvent
from refold.application.ports.recall_index import NO_FILTERS, Filters, Found, Judge
from refold.application.recall.passages import BEGINNING, Before, Passage, first_number, passages_of
from refold.application.runtime.core import RecallParts

SOME_DAY = "2026-01-02T03:04:05.000000Z"
"""When things happened of which a log in memory keeps no time."""


class MemoryIndex:
    """``RecallIndex`` without any cleverness: what an adapter's answers can be compared with."""

    def __init__(self, log: ConversationLog) -> None:
        self._log = log

    def edition(self) -> int:
        return 0

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
        judge: Judge | None = None,
    ) -> Found:
        every = self._every()
        words = {passage.number: set(passage.tokens.split()) for passage in every}
        shared = {
            p.number: len(words[p.number] & set(tokens)) for p in every if _passes(p, filters)
        }
        best = sorted(filter(shared.get, shared), key=lambda n: (shared[n], n), reverse=True)
        numbers = dict.fromkeys([*best[:limit], *(n for n in also if n in shared)])
        by_number = {passage.number: passage for passage in every}
        found = [by_number[number] for number in numbers]
        places = {(p.thread_id, p.position + step) for p in found for step in (-1, 1)}
        beside = {
            place: [p for p in every if (p.thread_id, p.position) == place] for place in places
        }
        counts = Counter(word for passage in words.values() for word in passage)
        frequencies = {token: counts[token] for token in tokens if token in counts}
        without = Found(found, {}, frequencies, len(every))
        if judge is not None and not judge.wants_neighbours(without):
            return without
        return without._replace(
            neighbours={place: passages for place, passages in beside.items() if passages}
        )

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        found = [p for p in self._every() if p.number > after and _passes(p, filters)]
        return found[:limit]

    def digests(self) -> set[str]:
        return {p.digest for p in self._every()}

    def check(self) -> Iterator[Damage]:
        return iter(())

    def rebuild(self) -> int:
        return len(self._every())

    def forget_erased(self) -> bool:
        return self.drop()

    def drop(self) -> bool:
        return True

    def close(self) -> None:
        pass

    def _every(self) -> list[Passage]:
        every: list[Passage] = []
        before: dict[str, Before] = {}
        for logged in self._log.scan():
            if (message := logged.message) is not None:
                known = before.get(logged.thread_id, BEGINNING)
                place = logged.number, logged.thread_id, logged.version
                timed = LoggedEvent(*place, logged.at or SOME_DAY, logged.event, logged.erased)
                new, known = passages_of(timed, message, known, first_number(logged))
                every += new
                before[logged.thread_id] = known
        return every


def _passes(passage: Passage, filters: Filters) -> bool:
    first, stop = filters.positions or (0, passage.position + 1)
    return (
        filters.thread_id in (None, passage.thread_id)
        and (not filters.roles or passage.role in filters.roles)
        and (not filters.kinds or passage.kind in filters.kinds)
        and (not filters.tools or passage.tool in filters.tools)
        and (filters.since is None or passage.at >= filters.since)
        and (filters.until is None or passage.at < filters.until)
        and first <= passage.position < stop
        and passage.position not in filters.leave_out
    )


def recall_of(log: ConversationLog) -> RecallParts:
    """The built-in search over this log, without vectors."""
    return RecallParts(index=MemoryIndex(log))
