"""Count and select the topics of a summary."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from math import log2
from typing import NamedTuple

from refold.application.ports.summariser import SourceMessage
from refold.application.recall.tokens import tokens_among, tokens_of
from refold.application.rendering.render import topics_tokens
from refold.application.runtime.core import Core
from refold.application.runtime.plain_lines import conversation, plain_logger, raised
from refold.domain.conversation import Topic
from refold.domain.facts.fact import Fact
from refold.domain.messages import readable
from refold.domain.value import build_in_order, replace

from .frequent_terms import distinct_names

_SCANNED = 4_000
"""Number of characters of a message to search for topics."""
_HORIZON = 200
"""Number of messages after which an unmentioned topic weighs half as much."""
_SPECIFIC = 1.3
"""Factor for the weight of a topic of several words."""
_PLAIN = 0.4
"""Factor for a single word in small letters, which is seldom what a conversation is about."""

_Key = frozenset[str]


class TopicCounts:
    """Counts of topics, continued from known ones.

    A topic occurs in a message that has all its tokens. If no message does, for instance because a
    model worded the name, messages with half of the tokens count. A topic without any message is
    dropped.
    """

    def __init__(self, known: Iterable[Topic] = ()) -> None:
        self._topics = {_key(topic.name): topic for topic in known}

    def take(self, messages: Sequence[SourceMessage], names: Iterable[str]) -> None:
        """Count the known topics and new names in these messages."""
        named = [(_key(name), name) for name in distinct_names(names)]
        wanted = frozenset(chain(*self._topics, *(key for key, _ in named)))
        places = _places(messages, wanted)
        for key, topic in self._topics.items():
            if found := _positions(key, places):
                last = max(topic.last_position, *found)
                self._topics[key] = replace(
                    topic, count=topic.count + len(found), last_position=last
                )
        for key, name in named:
            if not key or key in self._topics:
                continue
            if found := _positions(key, places) or _positions_of_half(key, places):
                self._topics[key] = build_in_order(
                    Topic, name=name, count=len(found), last_position=max(found)
                )

    def select(self, most: int) -> tuple[Topic, ...]:
        """Return up to ``most`` topics, most important first by frequency and recency."""
        newest = max((topic.last_position for topic in self._topics.values()), default=0)
        ranked = sorted(self._topics.values(), key=lambda topic: -_score(topic, newest))
        return tuple(ranked[:most])


def _score(topic: Topic, newest: int) -> float:
    age = (newest - topic.last_position) / _HORIZON
    name = topic.name
    is_plain = name.isascii() and name.isalpha() and name.islower()
    kind = _SPECIFIC if " " in name else _PLAIN if is_plain else 1.0
    return log2(1 + topic.count) * kind / (1 + age)


_Places = Mapping[str, set[int]]
"""Positions of the messages that have a token; of all of them for the empty text."""


def _places(messages: Sequence[SourceMessage], wanted: frozenset[str]) -> _Places:
    """Return the messages that have each of the wanted tokens."""
    places = defaultdict[str, set[int]](set)
    places[""] = {source.position for source in messages}
    for source in messages:
        for token in tokens_among(wanted, readable(source.message)[:_SCANNED]):
            places[token].add(source.position)
    return places


def _positions(key: _Key, places: _Places) -> Set[int]:
    """Return the positions of the messages that have all tokens of a topic."""
    return places[""].intersection(*[places.get(token, ()) for token in key])


def _positions_of_half(key: _Key, places: _Places) -> Set[int]:
    """Return the positions of the messages that have half of the tokens of a topic."""
    times = Counter(chain.from_iterable(places.get(token, ()) for token in key))
    return {position for position, count in times.items() if 2 * count >= len(key)}


def _key(name: str) -> _Key:
    return frozenset(tokens_of(name))


logger = plain_logger(__name__)


class KeptTopics(NamedTuple):
    """The topics of a summary."""

    topics: tuple[Topic, ...] = ()
    """Topics, most important first."""
    shown: int = 0
    """Number of topics that are shown with the summary."""
    tokens: int = 0
    """Tokens of the topics line."""


class TopicGathering:
    """Collects topics from portions of messages, oldest first."""

    def __init__(self, core: Core, thread_id: str, known: Sequence[Topic] = ()) -> None:
        self._core = core
        self._thread_id = thread_id
        self._most = core.settings.policy.topics_kept
        self._counts = TopicCounts(known)

    def take(
        self,
        messages: Sequence[SourceMessage],
        facts: Sequence[Fact],
        named: Sequence[str] = (),
    ) -> None:
        """Count topics in these messages, which have these facts.

        ``named`` are topics from a model, used instead of the extractor.
        """
        if not self._most:
            return
        try:
            names = named or self._core.topics.topics(messages, facts, max(1, self._most // 2))
            self._counts.take(messages, names)
        except (
            Exception
        ) as error:  # A fault in the extraction must not stop the compaction or lose known topics.
            logger.warning("%s: no new topics: %s", conversation(self._thread_id), raised(error))

    def select(self, room: int, *, apart: bool, ask: bool) -> KeptTopics:
        """Return the topics that the settings keep, with those shown that fit ``room`` tokens.

        ``apart`` puts the line of topics into a block of its own, after a signed one. ``ask`` makes it name
        the tool that recalls topics.
        """
        topics = self._counts.select(self._most)
        count = self._core.counter.count_text
        shown = min(len(topics), self._core.settings.policy.topics_shown)
        while shown:
            tokens = topics_tokens(topics[:shown], count, apart=apart, ask=ask)
            if tokens <= room:
                return KeptTopics(topics, shown, tokens)
            shown -= 1
        return KeptTopics(topics)
