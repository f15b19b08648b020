"""How conversations are named to the outside: by their id, by a digest of it, or not at all."""

from collections.abc import Callable
from hashlib import sha256
from typing import assert_never

from refold.infrastructure.settings.model import ShownThreadIds

Naming = Callable[[str], str]
"""What stands for a thread id; empty where nothing does."""


def naming(shown: ShownThreadIds) -> Naming:
    """The way to name conversations that a setting asks for."""
    match shown:
        case "plain":
            return str
        case "hashed":
            return hashed
        case "omitted":
            return lambda thread_id: ""
        case _:
            assert_never(shown)


def hashed(thread_id: str) -> str:
    """A digest that is the same at any time: lines of one conversation still belong together.

    Who can guess an id can check the guess: this hides names from sight, it does not keep secrets.
    """
    return sha256(thread_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
