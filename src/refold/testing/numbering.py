"""Renumber generated histories, so that several of them form one conversation."""

import re
from collections.abc import Sequence
from typing import Any, cast

from refold.domain.value import is_list, is_object
from refold.testing.history_layout import Message, Step

_MARKER = re.compile(r"⟦m(\d+)⟧")
_IDS = frozenset({"id", "tool_use_id"})
_SEALS = frozenset({"signature", "data"})


def number_through(steps: Sequence[Step], first: int, part: int) -> list[Step]:
    """Return the steps as part ``part`` of a conversation whose next message has index ``first``.

    Markers contain the index in the whole conversation. Call ids and signatures of different parts
    differ. Blank ids and signatures stay blank.
    """
    return [[_renumber(message, first, part) for message in step] for step in steps]


def _renumber(message: Message, first: int, part: int) -> Message:
    return cast(Message, _renumber_value(message, "", first, part))


def _renumber_value(value: Any, name: str, first: int, part: int) -> Any:
    match value:
        case str() if value and name in _IDS:
            return f"{value}_{part}"
        case str() if value and name in _SEALS and value.startswith("c2ln"):
            return f"{value}{part}"
        case str():
            return _MARKER.sub(lambda found: f"⟦m{int(found[1]) + first}⟧", value)
        case _ if is_object(value):
            return {k: _renumber_value(v, k, first, part) for k, v in value.items()}
        case _ if is_list(value):
            return [_renumber_value(v, "", first, part) for v in value]
        case _:
            return value
