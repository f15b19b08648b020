"""The decisions of a conversation as the read models know them: which ones matter, before any event is read."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from refold.application.ports.read_models import RequestSizesRow

from .request_sizes import FINE, OTHER

Step = Mapping[str, Any]
"""A decision as ``request_sizes`` stores it, with its ``kind``, ``version`` and time."""

_MADE = ("compacted", "rebuilt")
_UNFOLDED = ("requested", "recalled")
"""Kinds of steps that change the fate of no message."""


def decisions_of(row: RequestSizesRow, last: int) -> list[Step]:
    """Return the decisions of a row up to version ``last``."""
    found: list[Step] = json.loads(f"[{row.decisions[:-1]}]")
    return [one for one in found if one["version"] <= last]


def versions_about(
    rows: Sequence[RequestSizesRow], positions: range, after: int, newest: int
) -> list[int] | None:
    """Return the versions of the decisions after a version that say how messages are shown, and why.

    These are all but compactions and shortenings that concern none of the positions: by far the largest events.
    Returns None if the rows are those of a conversation so long that they do not tell, or if they lack the newest
    events: a reader of a server may be unable to give these their places in the order of the log.
    """
    if not rows or rows[0].events != FINE:
        return None
    if (len(rows) - 1) * FINE + len(rows[-1].kinds) < newest:
        return None
    rows = rows[after // FINE :]
    steps = [one for row in rows for one in decisions_of(row, newest) if one["version"] > after]
    others = (one for one in _others(rows) if after < one <= newest)
    # The first change of the text before later messages may have invalidated their thinking.
    large = (one["version"] for one in steps if one["kind"] in _MADE or "parts" in one)
    return sorted({*_relevant(steps, positions), *others, *islice(large, 1)})


def steps_about(
    rows: Sequence[RequestSizesRow], position: int, after: int, newest: int
) -> list[int | Step] | None:
    """Return the decisions after a version that say what happened to one message, oldest first.

    Those that must be read are given by their version, other compactions as they are stored here. Returns None as
    ``versions_about`` does.
    """
    versions = versions_about(rows, range(position, position + 1), after, newest)
    if versions is None:
        return None
    found: dict[int, int | Step] = {}
    for step in (one for row in rows for one in decisions_of(row, newest)):
        if step["version"] > after and (step["kind"] in _MADE or step["kind"] == "recalled"):
            found[step["version"]] = step if step["kind"] in _MADE else step["version"]
    found |= {version: version for version in versions}
    return [found[version] for version in sorted(found)]


def _others(rows: Sequence[RequestSizesRow]) -> Iterator[int]:
    """Yield the versions of events that the rows do not describe, such as pins of messages."""
    for row in rows:
        place = row.kinds.find(OTHER)
        while place >= 0:
            yield row.number * FINE + 1 + place
            place = row.kinds.find(OTHER, place + 1)


def _relevant(steps: Sequence[Step], positions: range) -> Iterator[int]:
    undone = {one["id"] for one in steps if one["kind"] == "reverted"}
    uncovered, standing = set(positions), 0
    for step in steps:
        kind, version = step["kind"], step["version"]
        if kind in _MADE:
            if step["id"] in undone:
                yield version
                continue
            standing, covered = version, _covered(step, uncovered)
            uncovered -= covered
            if covered or _names(step.get("part", ()), positions):
                yield version
        elif "parts" in step:
            if _names((position for position, _ in step["parts"]), positions):
                yield version
        elif kind not in _UNFOLDED:
            yield version
    if standing:
        yield standing


def _covered(step: Step, positions: Collection[int]) -> set[int]:
    kept = step.get("kept", ())
    return {one for one in positions if step["start"] <= one < step["stop"] and one not in kept}


def _names(found: Iterable[int], positions: range) -> bool:
    return any(position in positions for position in found)
