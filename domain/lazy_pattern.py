"""Regular expressions and properties that are made when they are first used.

Compiling all expressions took a third of the time of importing refold. A program that only appends needs few.
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

if TYPE_CHECKING:
    from typing import Self

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

    __slots__ = ("_flags", "_source", "signs", *_PARTS)

    def __init__(self, source: str, flags: int, signs: str) -> None:
        self._source = source
        self._flags = flags
        self.signs = signs

    def __getattr__(self, name: str) -> Any:
        # Called only while the attribute is not set. Threads that do this at once set the same.
        if name not in _PARTS:
            raise AttributeError(name)
        compiled = re.compile(self._source, self._flags)
        for part in _PARTS:
            setattr(self, part, getattr(compiled, part))
        if self.signs:
            # A text of ASCII characters has none of the others.
            signs = [sign for sign in self.signs.split("|") if sign.isascii()]
            for part in ("search", "match", "fullmatch"):
                setattr(self, part, _only_with_sign(getattr(compiled, part), signs))
            setattr(self, "sub", _with_sign_or_same(compiled.sub, signs))  # noqa: B010
        return getattr(self, name)


def _only_with_sign(find: Callable[..., Any], signs: Sequence[str]) -> Callable[..., Any]:
    def call(text: str, *places: int) -> Any:
        # What ``lacks`` does, without another call: thousands of short texts have no sign.
        if text.isascii() and not any(map(text.lower().__contains__, signs)):
            return None
        return find(text, *places)

    def call_without_ascii(text: str, *places: int) -> Any:
        return None if text.isascii() else find(text, *places)

    return call if signs else call_without_ascii


def _with_sign_or_same(replace: Callable[..., str], signs: Sequence[str]) -> Callable[..., str]:
    def call(replacement: Any, text: str) -> str:
        return text if lacks(text, signs) else replace(replacement, text)

    return call


def lacks(text: str, signs: Sequence[str]) -> bool:
    """Return whether a text has only ASCII characters and none of the signs."""
    return text.isascii() and not any(map(text.lower().__contains__, signs))


def signs_of(*patterns: re.Pattern[str]) -> Sequence[str]:
    """Return the signs of patterns that have some. A text that lacks all of them has no match."""
    given = cast("Sequence[_LazyPattern]", patterns)
    return [*dict.fromkeys(sign for pattern in given for sign in pattern.signs.split("|"))]


def lazy_pattern(source: str, flags: int = 0, signs: str = "") -> re.Pattern[str]:
    """Return a pattern that is compiled when it is first used.

    ``signs`` are parts in small letters with ``|`` between them. Each match in a text of ASCII characters must have
    one of them. A text without a sign is not searched, which is many times faster for a pattern of many words.

    It cannot be given to the functions of ``re``, which compile it again.

    Raises:
        re.error: at the first use, if the source is not a regular expression.
    """
    return cast("re.Pattern[str]", _LazyPattern(source, flags, signs))


_Value = TypeVar("_Value")


class lazy_property(Generic[_Value]):  # noqa: N801 It is used like ``property``.
    """A property whose value is computed once and kept in its object.

    Other than with ``functools.cached_property`` of Python 3.11, no lock is held meanwhile. That lock is one for all
    objects of a class. A process that is forked while another thread computes the value would wait for it for ever.
    """

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> "Self": ...
    @overload
    def __get__(self, instance: object, owner: type) -> _Value: ...
    def __get__(self, instance: object, owner: type) -> "Self | _Value":
        # Called only while the object has no such attribute. Threads that do this at once compute equal values.
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
