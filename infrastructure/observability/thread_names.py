"""How conversations are named to the outside: by their id, by a digest of it, or not at all."""

from collections.abc import Callable
from functools import partial

from refold.application.runtime.plain_lines import ShownThreadIds, shown_id

Naming = Callable[[str], str]
"""What stands for a thread id; empty where nothing does."""


def naming(shown: ShownThreadIds) -> Naming:
    """The way to name conversations that a setting asks for."""
    return partial(shown_id, shown=shown)
