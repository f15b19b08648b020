"""Regular expressions that are compiled when they are first used.

Compiling all of them took a third of the time of importing refold. A program that only appends needs few.
"""

import re
from typing import Any, cast

_PARTS = (
    "search",
    "match",
    "fullmatch",
    "finditer",
    "findall",
    "sub",
    "subn",
    "split",
    "pattern",
    "flags",
    "groups",
    "groupindex",
)


class _LazyPattern:
    """Stand-in for a compiled pattern. After the first use its methods are those of the compiled one."""

    __slots__ = ("_flags", "_source", *_PARTS)

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        # Called only while the attribute is not set. Threads that do this at once set the same.
        if name not in _PARTS:
            raise AttributeError(name)
        compiled = re.compile(self._source, self._flags)
        for part in _PARTS:
            setattr(self, part, getattr(compiled, part))
        return getattr(compiled, name)


def lazy_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when it is first used.

    It cannot be given to the functions of ``re``, which compile it again.

    Raises:
        re.error: at the first use, if the source is not a regular expression.
    """
    return cast("re.Pattern[str]", _LazyPattern(source, flags))
