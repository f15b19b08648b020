"""How many examples a costly property gets: a share of what the profile says."""

from typing import Any

from hypothesis import settings

LEAST = 5


def one_in(share: int, **changes: Any) -> settings:
    """The settings of the profile with one example in ``share``, at least five."""
    profile: Any = settings()
    return settings(max_examples=max(LEAST, int(profile.max_examples) // share), **changes)
