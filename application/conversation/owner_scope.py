"""Scopes of a search: one conversation, those of an owner, those without an owner, or all."""

from dataclasses import dataclass
from typing import Literal, get_args

from refold.application.ports.recall_index import Visible
from refold.application.runtime.core import Core
from refold.domain.errors import InvalidSetting

Scope = Literal["conversation", "owner", "all"]
"""``conversation``: this conversation only. ``owner``: content of the same owner in all conversations.

``all``: the whole log, regardless of owner.
"""


def read_scope(scope: object) -> Scope:
    """Return a valid scope.

    Raises:
        InvalidSetting: there is no such scope.
    """
    for known in get_args(Scope):
        if scope == known:
            return known  # type: ignore[no-any-return]
    raise InvalidSetting(
        f"scope={str(scope)[:80]!r} is invalid: it must be one of {', '.join(get_args(Scope))}",
        setting="scope",
        value=scope,
    )


@dataclass(frozen=True, slots=True)
class OwnerScope:
    """The reach of a caller that belongs to a conversation (``home``), to an owner, or to neither.

    ``scope``: None reaches only content without an owner.
    """

    core: Core
    scope: Scope | None
    home: str | None = None
    owner: str | None = None
    """Given owner of the conversation, or of a caller without a conversation."""

    def check_owner(self) -> None:
        """Raise if the conversation belongs to another owner.

        Raises:
            OwnerConflict: the conversation has another owner than the given one.
        """
        if self.home is not None and self.owner is not None:
            self.core.log.load(self.home).check_owner(self.owner)

    @property
    def is_wide(self) -> bool:
        """True if more than one conversation can be within reach."""
        return self.scope != "conversation"

    def visible(self) -> Visible | None:
        """Return the filter for visible messages, or None if the whole log is visible."""
        if self.scope == "all":
            return None
        owner = self.owner
        if self.home is not None:
            owner = self.core.log.load(self.home).state.owner
            if owner is None or self.scope == "conversation":
                # A conversation without an owner shares nothing; no thread can have an empty id.
                return Visible("", frozenset(), self.home)
        if owner is not None:
            threads = self.core.views.owned_conversations(owner)
            return Visible(owner, frozenset(threads), self.home)
        return Visible(None, frozenset(self.core.views.owned_conversations()))

    def reaches(self, thread_id: str) -> bool:
        """Return whether anything in a conversation is within reach."""
        visible = self.visible()
        if visible is None or visible.lets_conversation(thread_id):
            return True
        return any(
            visible.lets(o, thread_id) for o in self.core.views.owners_of(thread_id).values()
        )

    def hidden(self, thread_id: str) -> frozenset[int]:
        """Return the positions of messages of a conversation that are out of reach."""
        visible = self.visible()
        if visible is None or thread_id == self.home:
            return frozenset()
        owners = self.core.views.owners_of(thread_id)
        own = frozenset(at for at, owner in owners.items() if visible.lets(owner, thread_id))
        if visible.lets_conversation(thread_id):
            return frozenset(owners) - own
        return frozenset(range(self.core.log.load(thread_id).state.length)) - own

    def hides(self, thread_id: str, start: int, stop: int) -> bool:
        """Return whether a message at these positions is out of reach."""
        return any(start <= position < stop for position in self.hidden(thread_id))
