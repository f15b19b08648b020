"""A liking that is told in one conversation of an owner, and asked for in another."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import refold

LIKING = "I prefer Python, not JavaScript"
ASKED = "Which language do I prefer for scripts?"
FILLER = "Tidying the garden shed, raking leaves and painting the fence white. " * 14

Open = Callable[..., refold.Memory]


def opener(folder: Path) -> Open:
    """Return what opens the log in this folder, with memories that are quoted."""

    def opened(**options: Any) -> refold.Memory:
        made: dict[str, Any] = {"window": 8_000, "memories": 5, **options}
        return refold.open(folder / "agent.db", **made)

    return opened


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}
