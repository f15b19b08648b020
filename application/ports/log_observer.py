"""The port for observers of stored events."""

from collections.abc import Sequence
from typing import Protocol

from refold.application.errors import LogBehindAnchor, LogDamaged
from refold.domain.conversation import Conversation
from refold.domain.events import Event


class LogObserver(Protocol):
    """An observer of stored decisions and damage. Never raises."""

    def stored(
        self, thread_id: str, before: Conversation, after: Conversation, events: Sequence[Event]
    ) -> None:
        """Observe a stored decision; decisions that only append messages are not reported."""
        ...

    def damaged(self, error: LogDamaged | LogBehindAnchor) -> None:
        """Observe damage that stopped an operation on the log."""
        ...
