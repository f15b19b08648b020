"""The port for naming topics without a model."""

from collections.abc import Sequence
from typing import Protocol

from refold.domain.facts.fact import Fact

from .summariser import SourceMessage


class TopicExtractor(Protocol):
    """An extractor of topics.

    The result is approximate: topics are labels and never filter messages.
    """

    def topics(
        self, messages: Sequence[SourceMessage], facts: Sequence[Fact], most: int
    ) -> Sequence[str]:
        """Return at most ``most`` names of 1 to 4 words, the most important first. Pure; never raises.

        ``facts`` are those of the messages.
        """
        ...
