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
    """The settings of the profile with ``number`` examples; with a tenth of them, at least two, under ``dev``."""
    profile: Any = settings()
    return settings(
        max_examples=number if profile.max_examples >= 300 else max(LEAST, number // 10)
    )
