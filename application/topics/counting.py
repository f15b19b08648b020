"""Counts topics over covered messages, and says which of them matter most."""

from collections.abc import Iterable, Sequence
from math import ceil, log2
from typing import NamedTuple

from refold.application.ports import SourceMessage
from refold.application.projections.messages import readable
from refold.application.recall.tokens import tokens_of
from refold.domain.facts import Topic

from .names import distinct

_SCANNED = 4_000
"""Characters of a message in which a topic comes up."""
_HORIZON = 200
"""Messages after which a topic that did not come up again matters half as much."""
_SPECIFIC = 1.3
"""How much more a topic of several words says than one of a single word."""

_Key = frozenset[str]


class _Place(NamedTuple):
    position: int
    tokens: _Key


class TopicCounts:
    """How often topics come up, carried on from those that are known.

    A topic comes up in a message that has all its tokens. One that no message has, for a model put it
    in words of its own, counts where half of them are, and is left out where that is nowhere.
    """

    def __init__(self, known: Iterable[Topic] = ()) -> None:
        self._topics = {_key(topic.name): topic for topic in known}

    def take(self, messages: Sequence[SourceMessage], names: Iterable[str]) -> None:
        """Count these messages for what is known and for new names."""
        places = [_place(source) for source in messages]
        for key, topic in self._topics.items():
            found = [p.position for p in places if key <= p.tokens]
            if found:
                last = max(topic.last_position, *found)
                self._topics[key] = topic.replaced(
                    count=topic.count + len(found), last_position=last
                )
        for name in distinct(names):
            key = _key(name)
            if key and key not in self._topics and (found := _positions(key, places)):
                self._topics[key] = Topic(name=name, count=len(found), last_position=max(found))

    def kept(self, most: int) -> tuple[Topic, ...]:
        """At most so many, the most important first: by use, and by how long ago that was."""
        newest = max((topic.last_position for topic in self._topics.values()), default=0)
        ranked = sorted(self._topics.values(), key=lambda topic: -_score(topic, newest))
        return tuple(ranked[:most])


def _score(topic: Topic, newest: int) -> float:
    age = (newest - topic.last_position) / _HORIZON
    return log2(1 + topic.count) * (_SPECIFIC if " " in topic.name else 1.0) / (1 + age)


def _positions(key: _Key, places: Sequence[_Place]) -> list[int]:
    whole = [place.position for place in places if key <= place.tokens]
    if whole:
        return whole
    least = ceil(len(key) / 2)
    return [place.position for place in places if len(key & place.tokens) >= least]


def _place(source: SourceMessage) -> _Place:
    return _Place(source.position, frozenset(tokens_of(readable(source.message)[:_SCANNED])))


def _key(name: str) -> _Key:
    return frozenset(tokens_of(name))
