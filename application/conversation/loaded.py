"""A loaded conversation: the state for decisions and the window for rendering."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from refold.application.projections.entries import LongEntries
from refold.application.projections.window import Window, project
from refold.domain.compaction.budget import Budget
from refold.domain.conversation import Conversation
from refold.domain.errors import ConversationGone
from refold.domain.events import Event
from refold.domain.evolve import fold


@dataclass(frozen=True, slots=True)
class LoadedConversation:
    """State and window of one conversation at one version."""

    thread_id: str
    state: Conversation = field(default_factory=Conversation)
    window: Window = field(default_factory=Window)

    def __post_init__(self) -> None:
        """Set the shown thinking of the window to that of the state."""
        window, first = self.window, self.state.thinking_from
        once = self.state.frame is not None
        if (window.thinking_from, window.thoughts_once) != (first, once):
            shown = replace(window, thinking_from=first, thoughts_once=once)
            object.__setattr__(self, "window", shown)

    def present(self) -> "LoadedConversation":
        """Return this conversation, or raise if it was erased.

        Raises:
            ConversationGone: it was erased.
        """
        if self.state.erased:
            raise ConversationGone(self.thread_id)
        return self

    def is_too_long_to_render(self, budget: Budget) -> bool:
        """Return whether the conversation does not fit and is so long that not all of it is in memory."""
        is_long = isinstance(self.window.entries, LongEntries)
        return is_long and self.state.tokens + budget.fixed > budget.limit

    def after(self, events: Sequence[Event]) -> "LoadedConversation":
        """Return the conversation after these events, none of which may revert a compaction.

        If one does, ``must_reload`` returns True for the events, and the conversation must be loaded from
        the log.
        """
        return LoadedConversation(
            self.thread_id, fold(events, self.state), project(self.window, events)
        )
