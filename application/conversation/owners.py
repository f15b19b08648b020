"""Owners: whose a conversation is, and which messages may be found at all."""

from typing import NamedTuple

from refold.domain.conversation import Conversation
from refold.domain.errors import InvalidOwner, OwnerConflict


class Visible(NamedTuple):
    """What may be found. A message without an owner of its own is that of the conversation's owner."""

    owner: str | None
    """Messages of this owner; None: those that are nobody's."""
    threads: frozenset[str]
    """The conversations of this owner; of nobody: those that have an owner, and are left out."""
    home: str | None = None
    """All of this conversation may be found as well."""

    def lets(self, owner: str | None, thread_id: str) -> bool:
        """Whether a message may be found; ``owner``: its own, if it has one."""
        if thread_id == self.home:
            return True
        if owner:
            return owner == self.owner
        return self.lets_conversation(thread_id)

    def lets_conversation(self, thread_id: str) -> bool:
        """Whether what names no owner of its own in a conversation may be found."""
        if thread_id == self.home:
            return True
        return (thread_id in self.threads) == (self.owner is not None)


LONGEST_OWNER = 500


def read_owner(owner: object) -> str | None:
    """Return a usable id of an owner, or None if none was given.

    Raises:
        InvalidOwner: the id is no text, blank, too long, or has control characters.
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
    """Return a usable id of an owner.

    Raises:
        InvalidOwner: the id is missing, blank or unusable.
    """
    found = read_owner(owner)
    if found is None:
        raise InvalidOwner('an owner is required: give the id of a person, such as "user-7"')
    return found


def refuse_other_owner(thread_id: str, state: Conversation, owner: str | None) -> None:
    """Refuse a conversation that belongs to somebody else.

    Raises:
        OwnerConflict: it has an owner, and another one was given.
    """
    if owner is not None and state.owner is not None and state.owner != owner:
        raise OwnerConflict(thread_id)
