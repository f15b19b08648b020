"""Finds the version of a conversation that a caller means: by its number, or by a time."""

from datetime import datetime
from typing import TypeAlias

from refold.domain.errors import InvalidSetting

from .core import Core

At: TypeAlias = int | datetime
"""A version of a conversation, or a time with a time zone: then the newest version logged by then."""


def version_at(core: Core, thread_id: str, at: At) -> int:
    """The version that ``at`` means; 0 for a time before the first event.

    Raises:
        InvalidSetting: there is no such version, or the time has no time zone.
    """
    if isinstance(at, datetime):
        if at.tzinfo is None or at.utcoffset() is None:
            raise InvalidSetting(
                f"at={at.isoformat()}: the time has no time zone; add one, such as "
                f"{at.isoformat()}+00:00",
                setting="at",
                value=at,
            )
        return core.log.version_at(thread_id, at)
    # A caller without a type checker may pass anything.
    given: object = at
    if not isinstance(given, int) or isinstance(given, bool):
        raise InvalidSetting(
            f"at={given!r} is neither a version (an int) nor a datetime", setting="at", value=given
        )
    newest = core.log.load(thread_id).state.version
    if not 0 <= at <= newest:
        raise InvalidSetting(
            f"at={at}: the conversation has versions 0 to {newest}", setting="at", value=at
        )
    return at
