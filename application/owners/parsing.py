"""The edge where owners come in: the id of a person, and whether a conversation is theirs."""

from refold.domain.conversation import Conversation
from refold.domain.errors import InvalidOwner, OwnerConflict

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
