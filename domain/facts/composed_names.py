"""Find names that are composed of several words, such as ``retry_policy`` and ``RetryPolicy``."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, repeat, takewhile
from typing import Any

from refold.domain.lazy_pattern import lazy_pattern

from .fact import Fact, Source

_NAME = lazy_pattern(
    r"[A-Za-z_](?<![\w./@-][A-Za-z_])(?:(?<=_)_?[A-Za-z][A-Za-z0-9]*+(?:_[A-Za-z0-9]++)++_{0,2}+"
    r"|(?<!_)(?:[A-Za-z0-9]*+(?:_[A-Za-z0-9]++)++_{0,2}+|[a-z0-9]++(?:[A-Z][A-Za-z0-9]*+)++"
    r"|(?<=[a-z])[a-z0-9]*+(?:-[a-z0-9]++){1,5}+))(?![\w@-]|[./]\w)",
    re.ASCII,
)
_SHORTEST_NAME = 5
_LONGEST_NAME = 240
_NAMES_APART = bytes(
    byte if byte > 127 or chr(byte).isalnum() or chr(byte) in "_./@-" else 32 for byte in range(256)
)
"""Translation that replaces each character that is in no name and in nothing next to which none begins or ends."""
_MOST_KNOWN, _LONGEST_KNOWN = 20_000, 100


def composed_names(text: str) -> Iterator[tuple[str, int]]:
    """Yield the names that are composed of several words, with their starts. Two words with a hyphen are none."""
    for found in _NAME.finditer(text):
        if _is_name(found[0]):
            yield found[0], found.start()


def _is_name(text: str) -> bool:
    return len(text) >= _SHORTEST_NAME and text.count("-") != 1


class _KnownNames(dict[bytes, tuple[str, ...]]):
    """Names of texts without white space. Looking one up finds them."""

    def __missing__(self, text: bytes) -> tuple[str, ...]:
        names = tuple(name for name, _ in composed_names(text.decode()))
        if len(text) <= _LONGEST_KNOWN:
            if len(self) >= _MOST_KNOWN:
                self.clear()
            self[text] = names
        return names


known_names = _KnownNames()


def forget_names() -> None:
    """Forget the names that were found, because some of them were erased."""
    known_names.clear()


def distinct_names(text: str, main: range) -> dict[str, bool]:
    """Return the different names of ``composed_names``, and whether one of each begins in the main part.

    Names that are too long to keep are left out.
    """
    is_all = main.start <= 0 and main.stop >= len(text)
    names = dict.fromkeys(_names_in(text), is_all)
    if names and not is_all and main.stop > max(0, main.start):
        names |= dict.fromkeys(_names_from(text, max(0, main.start), main.stop), True)
    if any(map(_LONGEST_NAME.__lt__, map(len, names))):
        return {name: is_main for name, is_main in names.items() if len(name) <= _LONGEST_NAME}
    return names


def _names_in(text: str) -> Iterable[str]:
    """Return the names of a text in their order. Many come more than once."""
    if not text.isascii():
        return [name for name, _ in composed_names(text)]
    words = dict.fromkeys(text.encode().translate(_NAMES_APART).split())
    return chain.from_iterable(map(known_names.__getitem__, words))


def _names_from(text: str, start: int, stop: int) -> Iterable[str]:
    """Return the names that begin in a part of a text."""
    if text[start - 1 : start].strip() or text[stop : stop + 1].strip():
        # No name begins inside of another one, so that the search may begin anywhere.
        found = takewhile(lambda one: one.start() < stop, _NAME.finditer(text, start))
        return [one[0] for one in found if _is_name(one[0])]
    return _names_in(text[start:stop])


def merged_names(known: dict[str, bool], names: dict[str, bool]) -> dict[str, bool]:
    """Return names of two parts of a message, and whether each is in the main part of one of them."""
    if not known:
        return names
    return known | {name: is_main or known.get(name, False) for name, is_main in names.items()}


_as_fact: Callable[[tuple[Any, ...]], Fact] = partial(tuple.__dict__["__new__"], Fact)


def facts_of_names(names: Mapping[str, bool], position: int, by: Source) -> Iterator[Fact]:
    """Yield the facts of the names of a message, with whether each is in its main part.

    Most facts are names in results, so they are made without a call of Python for each.
    """
    first = repeat("name"), names, repeat(position), repeat(by), repeat(""), repeat(""), repeat(())
    last = repeat(0), names.values(), repeat(-1), repeat(""), repeat(())
    return map(_as_fact, zip(*first, *last, strict=False))
