"""Renumber generated histories, so that several of them form one conversation."""

from collections.abc import Sequence
from typing import Any, cast

from refold.testing.history_layout import _MARKER, Message, Step, marker

_IDS = frozenset({"id", "tool_use_id"})
_SEALS = frozenset({"signature", "data"})


def numbered_through(steps: Sequence[Step], first: int, part: int) -> list[Step]:
    """Return the steps as part ``part`` of a conversation whose next message has index ``first``.

    Markers contain the index in the whole conversation. Call ids and signatures of different parts
    differ. Blank ids and signatures stay blank.
    """
    return [[_renumbered(message, first, part) for message in step] for step in steps]


def _renumbered(message: Message, first: int, part: int) -> Message:
    return cast(Message, _changed(message, "", first, part))


def _changed(value: Any, name: str, first: int, part: int) -> Any:
    match value:
        case str() if value and name in _IDS:
            return f"{value}_{part}"
        case str() if value and name in _SEALS and value.startswith("c2ln"):
            return f"{value}{part}"
        case str():
            return _MARKER.sub(lambda found: marker(int(found[1]) + first), value)
        case dict():
            items = cast(Message, value).items()
            return {k: _changed(v, k, first, part) for k, v in items}
        case list() | tuple():
            return [_changed(v, "", first, part) for v in cast("Sequence[Any]", value)]
        case _:
            return value
