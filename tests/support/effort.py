"""How many examples a costly property gets: a share of what the profile says."""

from typing import Any

from hypothesis import settings

LEAST = 2
"""Under the profile ``dev``; every share of ``ci`` is more."""


def one_in(share: int, **changes: Any) -> settings:
    """The settings of the profile with one example in ``share``, at least two."""
    profile: Any = settings()
    return settings(max_examples=max(LEAST, int(profile.max_examples) // share), **changes)


def tenth_unless_all(number: int) -> settings:
    """The settings with ``number`` examples under ``ci``, and as large a part of them as the profile has of 300."""
    profile: Any = settings()
    return settings(max_examples=max(LEAST, number * int(profile.max_examples) // 300))
