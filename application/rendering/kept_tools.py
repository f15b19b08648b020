"""Tool definitions that are checked, and stay the same over many requests."""

import marshal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from .request_blocks import copied

CONTENT_ALONE = 2
"""Version of the format of ``marshal`` in which equal data has equal bytes. It serves as a key and for fast copies."""


class KeptTools(tuple[dict[str, Any], ...]):
    """Checked tool definitions, as plain data that nothing changes. Equal ones of recent calls are one object."""

    packed: bytes
    """The same definitions in one value, which identifies them."""

    @classmethod
    def of(cls, tools: Iterable[Mapping[str, Any]]) -> Self:
        """Keep plain definitions."""
        kept = cls([copied(dict(tool)) for tool in tools])
        kept.packed = marshal.dumps([*kept], CONTENT_ALONE)
        return kept

    def copies(self) -> list[dict[str, Any]]:
        """Return definitions that the caller may change."""
        found: list[dict[str, Any]] = marshal.loads(self.packed)
        return found


def keep_tools(tools: Sequence[Mapping[str, Any]]) -> KeptTools:
    """Return definitions as they are kept; those that are kept already are returned unchanged."""
    return tools if isinstance(tools, KeptTools) else KeptTools.of(tools)
