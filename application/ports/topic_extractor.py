"""The port for naming what messages are about where no model does."""

from collections.abc import Sequence
from typing import Protocol

from .summariser import SourceMessage


class TopicExtractor(Protocol):
    """Names topics. Weak by nature: what it finds are labels, and nothing is ever filtered by them."""

    def topics(self, messages: Sequence[SourceMessage], most: int) -> Sequence[str]:
        """At most ``most`` names of 1 to 4 words, the most important first. Pure; never raises."""
        ...
