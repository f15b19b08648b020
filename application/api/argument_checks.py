"""Checks of public method arguments, selected by argument name."""

import functools
import inspect
import math
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from os import PathLike
from typing import Any, TypeVar, cast

from refold.application.conversation.parsing import is_utf8
from refold.application.runtime.opening_process import refuse_limit
from refold.domain.errors import InvalidOwner, InvalidSetting

from .results import Context

_ENCODED = sys.getfilesystemencoding()
A_PATH = (
    "a path"
    if _ENCODED == "utf-8"
    else f"a path in {_ENCODED}, in which this process encodes names of files (PYTHONUTF8=1 changes that)"
)
"""Description of a valid path, for errors."""
LONGEST_OWNER = 500
"""Most characters of an owner's id."""
_Class = TypeVar("_Class", bound=type)
_Check = tuple[Callable[[Any], bool], str]


def checked(kind: _Class) -> _Class:
    """Check the arguments of all public methods of a class.

    An invalid argument raises an ``InvalidSetting`` that names it, before the method runs. A method that cannot open a
    file, such as a module that it needs, because too many are open raises a ``LogError``.
    """
    for name, method in list(vars(kind).items()):
        if not name.startswith("_") and inspect.isfunction(method):
            setattr(kind, name, _check_calls(method))
    return kind


def check(name: str, value: object) -> None:
    """Raise if a value is not valid for the argument of this name.

    Raises:
        InvalidSetting: names the argument and says what it must be.
    """
    known = _CHECKS.get(name)
    if known is not None and not known[0](value):
        raise invalid_argument(name, value, known[1])


def check_path(name: str, value: object) -> None:
    """Raise if a value is not a path.

    Raises:
        InvalidSetting: names the argument and says what it must be.
    """
    if not is_path(value):
        raise invalid_argument(name, value, A_PATH)


def read_owner(owner: object) -> str | None:
    """Return a valid owner id, or None if none was given.

    Raises:
        InvalidOwner: the id is not text, is blank or too long, or has control characters.
    """
    if owner is None:
        return None
    if not isinstance(owner, str) or not owner.strip():
        raise InvalidOwner(
            f'owner must be the id of a person, such as "user-7", not {owner!r}; leave it out where '
            "a conversation belongs to nobody"
        )
    if len(owner) > LONGEST_OWNER or not owner.isprintable():
        raise InvalidOwner(
            f"owner {owner[:40]!r}… must be printable text of at most {LONGEST_OWNER} characters"
        )
    return str.__str__(owner)


def require_owner(owner: object) -> str:
    """Return a valid owner id.

    Raises:
        InvalidOwner: the id is missing, blank or invalid.
    """
    found = read_owner(owner)
    if found is None:
        raise InvalidOwner('an owner is required: give the id of a person, such as "user-7"')
    return found


def invalid_argument(name: str, value: object, wanted: str) -> InvalidSetting:
    """Return the error for an invalid argument."""
    shown = repr(value)[:60] if isinstance(value, str | int | float) else type(value).__name__
    kind = "" if isinstance(value, str | int | float) else "a value of type "
    return InvalidSetting(f"{name}: must be {wanted}, not {kind}{shown}", setting=name, value=value)


def unknown_argument(method: str, given: str, known: Iterable[str]) -> TypeError:
    """Return the error for an unknown argument."""
    import difflib

    alike = difflib.get_close_matches(given, list(known), n=1)
    hint = f" (did you mean {alike[0]}?)" if alike else ""
    return TypeError(f"{method}() has no argument {given!r}{hint}")


def _parameters(method: Any) -> tuple[tuple[str, ...], frozenset[str], bool]:
    """Return the names of the arguments, the names of the optional ones, and whether other names are accepted.

    An argument is optional if its default is None. The code object is read, because calling ``inspect.signature``
    for every method would take longer than the import of this module.
    """
    code = method.__code__
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    given: tuple[object, ...] = method.__defaults__ or ()
    named: dict[str, object] = method.__kwdefaults__ or {}
    last = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    defaults = {**dict(zip(last, given, strict=True)), **named}
    optional = frozenset(name for name, default in defaults.items() if default is None)
    return names, optional, bool(code.co_flags & inspect.CO_VARKEYWORDS)


def _check_calls(method: Callable[..., Any]) -> Callable[..., Any]:
    names, optional, options = _parameters(inspect.unwrap(method))

    def check_all(given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        # Positional arguments first: most calls have none or one.
        for name, value in (*zip(names[1:], given[1:], strict=False), *named.items()):
            if options and name not in names and name not in (known := _recall_options(names)):
                raise unknown_argument(method.__name__, name, known)
            if value is not None or name not in optional:
                check(name, value)

    if inspect.iscoroutinefunction(method):
        waiting = cast("Callable[..., Awaitable[Any]]", method)

        @functools.wraps(method)
        async def call_async(*given: Any, **named: Any) -> Any:
            check_all(given, named)
            try:
                return await waiting(*given, **named)
            except OSError as error:
                refuse_limit(error)
                raise

        return call_async

    @functools.wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        check_all(given, named)
        try:
            return method(*given, **named)
        except OSError as error:
            refuse_limit(error)
            raise

    return call


def _recall_options(names: Iterable[str]) -> set[str]:
    """Return the options of a search, with the other arguments of a method."""
    from refold.application.recall.recall_query import RecallOptions

    return {*names, *RecallOptions.__annotations__} - {"self", "how"}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_utf8(value)


def _is_name(value: object) -> bool:
    return _is_text(value) and bool(cast(str, value).strip())


def _is_path(value: object) -> bool:
    return is_path(value)


def is_path(value: object) -> bool:
    """Return whether a value is a file path that this process can write as the name of a file."""
    if isinstance(value, PathLike):
        value = cast("PathLike[str]", value).__fspath__()
    if not (isinstance(value, str) and is_utf8(value) and "\0" not in value and value):
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def _is_question(value: object) -> bool:
    # Half of a surrogate pair is searched for as well: a model may have sent it.
    return isinstance(value, str)


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def _is_context(value: object) -> bool:
    return isinstance(value, Context)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return _is_number(value) and cast(int, value) >= 0


def _is_period(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _is_wait(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and cast(float, value) >= 0


def _is_system(value: object) -> bool:
    if value is None or isinstance(value, str):
        return True
    return isinstance(value, list | tuple) and all(map(_is_text_block, cast("list[object]", value)))


def _is_text_block(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(
        cast("Mapping[str, object]", value).get("text"), str
    )


def _is_where(value: object) -> bool:
    if isinstance(value, str | bytes | Mapping):
        return isinstance(value, str)
    return _is_number(value) or isinstance(value, Iterable)


def _is_moment(value: object) -> bool:
    return _is_number(value) or isinstance(value, datetime | str)


_TEXT: _Check = (_is_text, "text")
_NAME: _Check = (_is_name, "text that is not blank")
_PATH: _Check = (_is_path, A_PATH)
_FLAG: _Check = (_is_flag, "True or False")
_NUMBER: _Check = (_is_number, "a whole number")
_AT: _Check = (_is_moment, "a version (a whole number) or a time with a time zone")
_CHECKS: Mapping[str, _Check] = {
    **dict.fromkeys(("focus", "reason", "label", "summary_id", "pin_id", "edit_id"), _TEXT),
    **dict.fromkeys(("out", "to", "anchor"), _PATH),
    **dict.fromkeys(
        ("force", "recorded", "accept", "repair", "replace", "all_conversations"), _FLAG
    ),
    **dict.fromkeys(("before", "after", "at"), _AT),
    **dict.fromkeys(("start", "stop"), _NUMBER),
    "model": _NAME,
    "query": (_is_question, "a question as text"),
    "min_score": (_is_share, "a number from 0 to 1, relative to the best hit"),
    "context": (_is_context, "a context, as context() gives it"),
    "keep": (_is_count, "a whole number from 0"),
    "wait": (_is_wait, "a number of seconds"),
    "every": (_is_period, "a number of seconds above 0"),
    "system": (_is_system, "text, or a list of text blocks as the Messages API takes them"),
    "where": (_is_where, "a position, an address, or several of them"),
}
"""Check and description of the valid values, by argument name. None is valid if it is the default."""
