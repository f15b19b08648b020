"""Owners of conversations, and the filter for messages that may be found."""

from typing import NamedTuple

from refold.domain.conversation import Conversation
from refold.domain.errors import InvalidOwner, OwnerConflict


class Visible(NamedTuple):
    """Filter for messages that may be found. Messages belong to the conversation's owner by default."""

    owner: str | None
    """Owner whose messages may be found, or None for messages without an owner."""
    threads: frozenset[str]
    """Conversations of this owner. If ``owner`` is None, conversations that have an owner and are excluded."""
    home: str | None = None
    """Conversation whose messages may all be found as well, or None."""

    def lets(self, owner: str | None, thread_id: str) -> bool:
        """Return whether a message may be found; ``owner``: its own owner, if it has one."""
        if thread_id == self.home:
            return True
        if owner:
            return owner == self.owner
        return self.lets_conversation(thread_id)

    def lets_conversation(self, thread_id: str) -> bool:
        """Return whether messages without an owner of their own may be found in a conversation."""
        if thread_id == self.home:
            return True
        return (thread_id in self.threads) == (self.owner is not None)


LONGEST_OWNER = 500


def read_owner(owner: object) -> str | None:
    """Return a valid owner id, or None if none was given.

    Raises:
        InvalidOwner: the id is not text, is blank or too long, or has control characters.
    """
    if owner is None:
        return None
    if not isinstance(owner, str) or not owner.strip():
        raise InvalidOwner(
            f'owner must be the id of a person, such as "user-7", not {owner!r}; leave it out where '
            "a conversation belongs to nobody"
        )
    if len(owner) > LONGEST_OWNER or not owner.isprintable():
        raise InvalidOwner(
            f"owner {owner[:40]!r}… must be printable text of at most {LONGEST_OWNER} characters"
        )
    return owner


def require_owner(owner: object) -> str:
    """Return a valid owner id.

    Raises:
        InvalidOwner: the id is missing, blank or invalid.
    """
    found = read_owner(owner)
    if found is None:
        raise InvalidOwner('an owner is required: give the id of a person, such as "user-7"')
    return found


def refuse_other_owner(thread_id: str, state: Conversation, owner: str | None) -> None:
    """Raise if a conversation belongs to another owner.

    Raises:
        OwnerConflict: the conversation has another owner than the given one.
    """
    if owner is not None and state.owner is not None and state.owner != owner:
        raise OwnerConflict(thread_id)
