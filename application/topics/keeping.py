"""Use case: the topics of a summary that is being made, as many as may be kept, and shown."""

from collections.abc import Sequence
from typing import NamedTuple

from refold.application.core import Core
from refold.application.plain_lines import conversation, plain_logger, raised
from refold.application.ports import SourceMessage
from refold.application.rendering.topics import topics_tokens
from refold.domain.facts import Topic

from .counting import TopicCounts

logger = plain_logger(__name__)


class KeptTopics(NamedTuple):
    """The topics of a summary."""

    topics: tuple[Topic, ...] = ()
    """The most important first."""
    shown: int = 0
    """How many of them are named beside it."""
    tokens: int = 0
    """What that costs."""


class TopicGathering:
    """Topics that are being gathered, from portions of messages, oldest first."""

    def __init__(self, core: Core, thread_id: str, known: Sequence[Topic] = ()) -> None:
        self._core = core
        self._thread_id = thread_id
        self._most = core.settings.policy.topics_kept
        self._counts = TopicCounts(known)

    def take(self, messages: Sequence[SourceMessage], named: Sequence[str] = ()) -> None:
        """Count these messages; ``named``: what a model says they are about, else code says it."""
        if not self._most:
            return
        try:
            names = named or self._core.topics.topics(messages, max(1, self._most // 2))
            self._counts.take(messages, names)
        except (
            Exception
        ) as error:  # A fault in labels costs neither the compaction nor what is known.
            logger.warning("%s: no new topics: %s", conversation(self._thread_id), raised(error))

    def kept(self, room: int, *, apart: bool, ask: bool) -> KeptTopics:
        """As many as the settings keep and show, those within ``room`` tokens.

        ``apart``: they stand in a block of their own, beside one that a provider has signed.
        ``ask``: beside them is said which tool to ask.
        """
        topics = self._counts.kept(self._most)
        count = self._core.counter.count_text
        shown = min(len(topics), self._core.settings.policy.topics_shown)
        while shown:
            tokens = topics_tokens(topics[:shown], count, apart=apart, ask=ask)
            if tokens <= room:
                return KeptTopics(topics, shown, tokens)
            shown -= 1
        return KeptTopics(topics)
