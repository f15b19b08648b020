"""The port of those who observe what is stored in the log."""

from collections.abc import Sequence
from typing import Protocol

from refold.application.errors import LogBehindAnchor, LogDamaged
from refold.domain.conversation import Conversation
from refold.domain.events import Event


class LogObserver(Protocol):
    """Observes decisions that are stored, and damage that is found. Never raises."""

    def stored(
        self, thread_id: str, before: Conversation, after: Conversation, events: Sequence[Event]
    ) -> None:
        """Take note of a decision; messages alone are not reported."""
        ...

    def damaged(self, error: LogDamaged | LogBehindAnchor) -> None:
        """Take note of damage that stopped a use of the log."""
        ...
