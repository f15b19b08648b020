"""Load a conversation as it was at a given version or time."""

from contextlib import suppress
from datetime import datetime
from typing import TypeAlias, cast

from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogDamaged
from refold.application.projections.row_changes import in_utc, utc
from refold.application.runtime.core import Core
from refold.domain.errors import InvalidSetting, UnknownMessage

At: TypeAlias = int | datetime | str
"""A version of a conversation, or a time with a time zone.

A time may be a ``datetime`` or text in ISO 8601, as in results. It selects the newest message that
was written by then, as ``messages`` and ``refold show`` give the times, and the decisions logged by
then.
"""
_MOST = 2**63 - 1
"""Highest version that a store accepts."""


def load_at(core: Core, thread_id: str, at: At) -> LoadedConversation:
    """Return the conversation as it was at a version or a time, empty before its first event.

    Raises:
        InvalidSetting: there is no such version, or the time has no time zone.
        ConversationGone: it was erased.
    """
    with suppress(LogDamaged):  # Events before the damage can still be read.
        core.log.load(thread_id).present()
    return _load_version(core, thread_id, at)


def version_at(core: Core, thread_id: str, at: At) -> int:
    """Return the version that ``at`` selects; the conversation may have been erased.

    Raises:
        InvalidSetting: there is no such version, or the time has no time zone.
    """
    return _load_version(core, thread_id, at).state.version


def _load_version(core: Core, thread_id: str, at: At) -> LoadedConversation:
    version = _version(core, thread_id, at)
    loaded = core.log.load(thread_id, at=min(version, _MOST))
    if version < 0 or loaded.state.version != version:
        newest = core.log.load(thread_id).state.version
        raise InvalidSetting(
            f"at={at}: the conversation has versions 0 to {newest}", setting="at", value=at
        )
    return loaded


def _version(core: Core, thread_id: str, at: At) -> int:
    if isinstance(at, str):
        at = _parse_time(at)
    if isinstance(at, datetime):
        if at.tzinfo is None or at.utcoffset() is None:
            raise InvalidSetting(
                f"at={at.isoformat()}: the time has no time zone; add one, such as "
                f"{at.isoformat()}+00:00",
                setting="at",
                value=at,
            )
        return _version_by(core, thread_id, in_utc(at))
    # A caller without a type checker may pass anything.
    given = cast("object", at)
    if not isinstance(given, int) or isinstance(given, bool):
        raise InvalidSetting(
            f"at={given!r} is not a version (int) or a time (datetime)", setting="at", value=given
        )
    return given


def _version_by(core: Core, thread_id: str, moment: datetime) -> int:
    """Return the version of the newest message written by ``moment``, or of a later decision logged by then.

    An imported recording has old times of writing, although all of it is logged at the import.
    """
    decided = core.log.version_at(thread_id, moment)
    said = core.views.newest_message_by(thread_id, utc(moment))
    return decided if said is None else max(decided, said.version)


def version_of(core: Core, thread_id: str, position: int) -> int:
    """Return the version of the conversation right after the message at this position.

    Raises:
        UnknownMessage: there is no such message, or damage destroyed it.
        InvalidSetting: ``position`` is not an integer.
    """
    state = core.log.load(thread_id).present().state
    check_position(position, state.length)
    for row in core.views.messages(thread_id, position, position + 1):
        return row.version
    from refold.application.conversation.stream_places import unlisted_version  # Rarely needed.

    version = unlisted_version(core, thread_id, state, position)
    if version is None:
        raise UnknownMessage(position, state.length, lost=True)
    return version


def check_position(position: int, length: int) -> None:
    """Raise if none of ``length`` messages is at this position.

    Raises:
        UnknownMessage: there is no such message.
        InvalidSetting: ``position`` is not an integer.
    """
    given = cast("object", position)
    if not isinstance(given, int) or isinstance(given, bool):
        raise InvalidSetting(
            f"position={given!r} is not a position, such as 17", setting="position", value=given
        )
    if not 0 <= given < length:
        raise UnknownMessage(given, length)


def choose_moment(core: Core, thread_id: str, at: At | None, position: int | None) -> At | None:
    """Return the moment that ``at`` or ``position`` selects, or None for the current state.

    Raises:
        InvalidSetting: both are given.
        UnknownMessage: there is no message at the position.
    """
    if position is None:
        return at
    if at is not None:
        raise InvalidSetting(
            f"at={at} and position={position}: give only one of them",
            setting="position",
            value=position,
        )
    return version_of(core, thread_id, position)


def _parse_time(given: str) -> datetime:
    try:
        return datetime.fromisoformat(given.strip())
    except ValueError:
        raise InvalidSetting(
            f"at={given[:80]!r} is not a time with a time zone, such as 2026-01-02T03:04:05Z",
            setting="at",
            value=given,
        ) from None
