"""Which messages may be found at all: those of one owner, or those that are nobody's."""

from typing import NamedTuple


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
