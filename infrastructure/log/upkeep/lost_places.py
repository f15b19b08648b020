"""Telling which of the lost events were messages, and at what positions, from their neighbours."""

from collections.abc import Container, Mapping

MESSAGE = "message_appended"


def lost_positions(
    messages: Mapping[int, int], good: Container[int], names: Mapping[int, str], last: int
) -> dict[int, int]:
    """The positions of lost messages by their versions.

    ``messages``: versions and positions of those that are intact; ``good``: the versions of all intact
    events; ``names``: what the columns beside damaged contents call them.
    """
    found: dict[int, int] = {}
    version, position = 0, -1
    ends = [(v, p) for v, p in sorted(messages.items()) if v <= last]
    for upper, following in ends:
        lost = [v for v in range(version + 1, upper) if v not in good]
        found |= _shared_out(lost, range(position + 1, following), names)
        version, position = upper, following
    # After the last intact message, only a name tells.
    at = position
    for lost_version in range(version + 1, last + 1):
        if lost_version not in good and names.get(lost_version) == MESSAGE:
            at += 1
            found[lost_version] = at
    return found


def _shared_out(lost: list[int], positions: range, names: Mapping[int, str]) -> dict[int, int]:
    """As many of the lost events as there are positions: those that are called messages first."""
    named = [v for v in lost if names.get(v) == MESSAGE]
    unknown = [v for v in lost if v not in names]
    other = [v for v in lost if v in names and v not in named]
    chosen = sorted([*named, *unknown, *other][: len(positions)])
    return dict(zip(chosen, positions, strict=False))
