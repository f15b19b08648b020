"""What a user said and showed and nothing of is shown any more: one marker for a whole run of it."""

from collections import Counter

from refold.domain.messages import Block

from . import texts
from .blocks import text_block


class LeftOut:
    """A run of blocks next to each other that are left out; messages may begin and end in it."""

    def __init__(self) -> None:
        self.block = text_block("")
        """What stands for the run; empty until it is ended."""
        self._kinds: Counter[str] = Counter()
        self._addresses: list[str] = []

    def add(self, block: Block, address: str) -> None:
        """Leave out this one as well."""
        self._kinds[str(block.get("type"))] += 1
        self._addresses = [*self._addresses[:1], address]

    def ended(self) -> str:
        """The marker, which the block now shows."""
        what = ", ".join(f"{n:,} {kind}{'s' * (n > 1)}" for kind, n in self._kinds.items())
        marker = texts.left_out_marker(what, self._addresses[0], self._addresses[-1])
        self.block["text"] = marker
        return marker
