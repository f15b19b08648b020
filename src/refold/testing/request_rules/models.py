"""Properties of models for the judge. Unknown models get the strictest rules."""

import re

_NEW = re.compile(r"claude-([a-z]+)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_OLD = re.compile(r"claude-(\d)(?:[-.](\d))?(?!\d)")
_FAMILIES = frozenset({"opus", "sonnet", "haiku", "fable", "mythos", "instant"})
_FIRST_TO_SIGN_THE_PREFIX = {"fable": (5, 1), "mythos": (5, 2)}
_OTHERS_SIGN_THE_PREFIX = (5, 5)


def generation(model: str) -> tuple[str, tuple[int, int]] | None:
    """Return family and generation of a model id: ``("opus", (4, 5))``, or None if it is unknown."""
    if (new := _NEW.search(model)) and new[1] in _FAMILIES:
        return new[1], (int(new[2]), int(new[3] or 0))
    if old := _OLD.search(model):
        return "", (int(old[1]), int(old[2] or 0))
    return None


def accepts_prefill(model: str) -> bool:
    """Return whether the last message may be the assistant's: only before generation 4.6."""
    known = generation(model)
    return known is not None and known[1] < (4, 6)


def accepts_system_messages(model: str) -> bool:
    """Return whether a message may have the role system: from generation 4.8 on."""
    known = generation(model)
    return known is not None and known[1] >= (4, 8)


def signs_the_prefix(model: str) -> bool:
    """Return whether a thinking block is valid only after the exact content it was written after."""
    known = generation(model)
    if known is None:
        return True
    family, number = known
    return number >= _FIRST_TO_SIGN_THE_PREFIX.get(family, _OTHERS_SIGN_THE_PREFIX)
