"""Names of tools: which of them the providers take, and what stands for one that they refuse."""

import re
from hashlib import sha256

LONGEST = 128
"""Characters of a name that the Messages API takes."""
LONGEST_OPENAI = 64
"""The same of the OpenAI API."""
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")


def name_problem(name: str, longest: int = LONGEST) -> str | None:
    """Say what is wrong with the name of a tool; None where providers take it."""
    if name and len(name) <= longest and not _REFUSED.search(name):
        return None
    shown = name if len(name) <= LONGEST else f"{name[:LONGEST]}…"
    return f"{shown!r} cannot be the name of a tool: give 1 to {longest} letters, digits, _ and -"


def legal_name(name: str, longest: int = LONGEST) -> str:
    """Return a name that the providers take; the same for the same name."""
    legal = _REFUSED.sub("_", name) or "_"
    return legal if len(legal) <= longest else _with_digest(legal, name, longest)


class ToolNames:
    """The names of the calls of one request, in their order: two names never become one."""

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}
        """What each name that is shown stands for."""

    def shown(self, name: str) -> str:
        """Return the name to show.

        A legal one is shown as it is, also behind another that became the same: that other was refused in
        every request, so the legal one is what the tool was named then.
        """
        legal = legal_name(name)
        if self._taken.setdefault(legal, name) != name and legal != name:
            return _with_digest(legal, name, LONGEST)
        return legal


def _with_digest(legal: str, name: str, longest: int) -> str:
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{legal[: longest - 9]}_{digest}"
