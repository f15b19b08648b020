"""Short representations and plain log messages, without conversation content."""

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
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.text_cuts import beginning

LONGEST = 80


class ShortRepr:
    """A mixin for values whose long fields are shortened in their representation."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Return the fields for the representation, long ones shortened."""
        return [(name, _Short(value)) for name, value in vars(self).items()]


class _Short:
    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        return beginning(repr(self._value), LONGEST)


ShownThreadIds = Literal["plain", "hashed", "omitted"]

_OF_OTHERS = (SummariserError, EmbedderError, BackendError, TokenCountError, RaisedOutside)
"""Errors whose text comes from user code or external services and may quote its input."""
_QUOTED = lazy_pattern(r"(?<!\w)'(?:\\.|[^'\\])*'|(?<!\w)\"(?:\\.|[^\"\\])*\"", re.DOTALL)

_settings: dict[int, ShownThreadIds] = {}
"""Setting of each open memory, by its id.

All of them apply to log messages, because these come from code that serves several memories.
"""


def show_thread_ids(shown: ShownThreadIds, owner: object) -> None:
    """Limit how thread ids appear in all log messages while ``owner`` exists."""
    _settings[id(owner)] = shown
    weakref.finalize(owner, _settings.pop, id(owner), None).atexit = False


def shown_id(thread_id: str, shown: ShownThreadIds) -> str:
    """Return the text to show for a thread id; empty if none is shown."""
    match shown:
        case "plain":
            return thread_id
        case "hashed":
            return hash_id(thread_id)
        case "omitted":
            return ""
        case _:
            assert_never(shown)


def hash_id(thread_id: str) -> str:
    """Return a stable digest, so that log messages of one conversation can be grouped.

    A guessed id can be verified: the digest hides names, but does not keep them secret.
    """
    return sha256(thread_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def conversation(thread_id: str) -> str:
    """Return the name of a conversation, or of a stream of it, for log messages."""
    thread_id = thread_of(thread_id)
    asked = _settings.copy().values()
    if "omitted" in asked:
        return "a conversation"
    return f"conversation {hash_id(thread_id) if 'hashed' in asked else repr(thread_id)}"


def raised(error: BaseException) -> str:
    """Return type and location of an exception from user code; its text may quote a message."""
    if isinstance(error, LogError):
        return strip_quotations(error)  # A subclass of LogError from below the called code.
    inner = error.__cause__ if isinstance(error, RaisedOutside) and error.__cause__ else error
    reason = getattr(error, "reason", "") if isinstance(error, _OF_OTHERS) else ""
    kind = f"{type(inner).__name__} {reason}" if reason else type(inner).__name__
    place = traceback.extract_tb(inner.__traceback__)[-1:]
    return f"{kind} ({place[0].filename}:{place[0].lineno})" if place else kind


def strip_quotations(error: BaseException) -> str:
    """Return the text of an error without quotations, which may be user content or an id."""
    if isinstance(error, OSError) and error.errno is not None:
        return str(error)  # It quotes only a path.
    return _QUOTED.sub("…", str(error))


def plain_logger(name: str) -> logging.Logger:
    """Return the logger of a module; errors in its messages are stripped of quoted content."""
    logger = logging.getLogger(name)
    logger.addFilter(_harmless)
    return logger


def _harmless(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(map(_plain_argument, record.args))
    if record.exc_info and (error := record.exc_info[1]) is not None:
        # A traceback ends with the text of the error.
        record.msg, record.args = f"{record.getMessage()}: {raised(error)}", ()
        record.exc_info = record.exc_text = None
    return True


def _plain_argument(given: object) -> object:
    if isinstance(given, _OF_OTHERS):
        return raised(given)
    return strip_quotations(given) if isinstance(given, BaseException) else given
