"""Representations for people: what a value is, never all that it holds."""

import logging
import re
import traceback
import weakref
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Literal, assert_never

from refold.application.conversation.addresses import thread_of
from refold.application.errors import (
    BackendError,
    EmbedderError,
    LogError,
    RaisedOutside,
    SummariserError,
    TokenCountError,
)
from refold.domain.text_cuts import beginning

LONGEST = 80


class ShortRepr:
    """A base for values whose long fields are cut where they are represented."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """What pydantic represents: the fields, long ones in short."""
        return [(name, _Short(value)) for name, value in vars(self).items()]


class _Short:
    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        return beginning(repr(self._value), LONGEST)


ShownThreadIds = Literal["plain", "hashed", "omitted"]

_OF_OTHERS = (SummariserError, EmbedderError, BackendError, TokenCountError, RaisedOutside)
"""Errors whose words are those of code or of a service outside, which may quote what it was given."""
_QUOTED = re.compile(r"(?<!\w)'(?:\\.|[^'\\])*'|(?<!\w)\"(?:\\.|[^\"\\])*\"", re.DOTALL)

_asked: dict[int, ShownThreadIds] = {}
"""What each open memory asks for. Lines in plain words come from code that serves several."""


def show_thread_ids(shown: ShownThreadIds, owner: object) -> None:
    """Show ids no more openly than so, in every line in plain words, as long as ``owner`` is there."""
    _asked[id(owner)] = shown
    weakref.finalize(owner, _asked.pop, id(owner), None).atexit = False


def shown_id(thread_id: str, shown: ShownThreadIds) -> str:
    """What stands for a thread id; empty where nothing does."""
    match shown:
        case "plain":
            return thread_id
        case "hashed":
            return hashed(thread_id)
        case "omitted":
            return ""
        case _:
            assert_never(shown)


def hashed(thread_id: str) -> str:
    """A digest that is the same at any time: lines of one conversation still belong together.

    Who can guess an id can check the guess: this hides names from sight, it does not keep secrets.
    """
    return sha256(thread_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def conversation(thread_id: str) -> str:
    """How a line in plain words calls a conversation, or a stream of it."""
    thread_id = thread_of(thread_id)
    asked = _asked.copy().values()
    if "omitted" in asked:
        return "a conversation"
    return f"conversation {hashed(thread_id) if 'hashed' in asked else repr(thread_id)}"


def raised(error: BaseException) -> str:
    """What code that is not ours raised, and where: its words may quote a message."""
    if isinstance(error, LogError):
        return unquoted(error)  # It is of the log, below whatever was called.
    inner = error.__cause__ if isinstance(error, RaisedOutside) and error.__cause__ else error
    reason = getattr(error, "reason", "") if isinstance(error, _OF_OTHERS) else ""
    kind = f"{type(inner).__name__} {reason}" if reason else type(inner).__name__
    place = traceback.extract_tb(inner.__traceback__)[-1:]
    return f"{kind} ({place[0].filename}:{place[0].lineno})" if place else kind


def unquoted(error: BaseException) -> str:
    """What an error says, without what it quotes, which may be what people said, or an id."""
    if isinstance(error, OSError) and error.errno is not None:
        return str(error)  # What it quotes is a path.
    return _QUOTED.sub("…", str(error))


def plain_logger(name: str) -> logging.Logger:
    """The logger of a module, for lines in plain words: what is said of errors there is made harmless."""
    logger = logging.getLogger(name)
    logger.addFilter(_harmless)
    return logger


def _harmless(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(map(_told, record.args))
    if record.exc_info and (error := record.exc_info[1]) is not None:
        # A traceback ends in the words of the error.
        record.msg, record.args = f"{record.getMessage()}: {raised(error)}", ()
        record.exc_info = record.exc_text = None
    return True


def _told(given: object) -> object:
    if isinstance(given, _OF_OTHERS):
        return raised(given)
    return unquoted(given) if isinstance(given, BaseException) else given
