"""Counts rows of read models, decoded events, read messages and rendered requests while something is done."""

from collections import Counter
from typing import Any

import pytest

from refold.application.rendering.turn_builder import TurnBuilder
from refold.infrastructure.event_store import codec, stream_reads
from refold.infrastructure.projection_store import view_answers

_COUNTED: dict[str, tuple[object, str]] = {
    "rows": (view_answers, "_rows"),
    "events": (codec, "decode"),
    "messages": (stream_reads, "open_plain_message"),
    "renders": (TurnBuilder, "add"),
}


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return the counts from now on; clear them to begin again."""
    counts = Counter[str]()

    def count(name: str, owner: Any, function: str) -> None:
        original = getattr(owner, function)

        def counting(*args: Any, **options: Any) -> Any:
            found = original(*args, **options)
            counts[name] += len(found) if name == "rows" else 1
            return found

        monkeypatch.setattr(owner, function, counting)

    for name, (owner, function) in _COUNTED.items():
        count(name, owner, function)
    return counts


def decoded_events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the name of each stored event that is decoded from now on."""
    names: list[str] = []
    decode = codec.decode

    def note(name: str, *args: Any) -> Any:
        names.append(name)
        return decode(name, *args)

    monkeypatch.setattr(codec, "decode", note)
    return names
