"""What an append must not do: use one key for two messages, or come after what nobody has read."""

from collections.abc import Iterable, Sequence
from typing import cast

from refold.domain.appending import IncomingMessage
from refold.domain.errors import InvalidMessage, KeyReused, VersionConflict
from refold.domain.events import MessageAppended
from refold.domain.messages import Message

from .core import Core
from .loaded import LoadedConversation
from .recordings.transcripts import RecordedMessage

PAGE = 200
"""Events that are looked through together."""


def read_expected_version(given: object) -> int | None:
    """Return the version that was given, or None.

    Raises:
        InvalidMessage: it is no version.
    """
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise InvalidMessage(
            "expected_version", f"must be a whole number of 0 or more, not {given!r}"
        )
    return given


def refuse_conflict(core: Core, loaded: LoadedConversation, expected: int) -> None:
    """Refuse to append where messages were appended after version ``expected``.

    Summaries, pins and other decisions are no conflict: the request says what it said.

    Raises:
        VersionConflict: there are some.
    """
    state = loaded.state
    if state.version == expected:
        return
    is_newer = bool(state.live) and state.live[-1].version > expected
    if expected > state.version or is_newer or _appended_since(core, loaded, expected):
        raise VersionConflict(loaded.thread_id, expected, state.version)


def _appended_since(core: Core, loaded: LoadedConversation, expected: int) -> bool:
    last = loaded.state.version
    return any(
        isinstance(logged.event, MessageAppended)
        for first in range(expected + 1, last + 1, PAGE)
        for logged in core.log.read(loaded.thread_id, first, min(first + PAGE - 1, last))
    )


def refuse_keys_of_two(incoming: Sequence[IncomingMessage]) -> None:
    """Refuse one key for two messages that are given at once and differ.

    Raises:
        KeyReused: names the key.
    """
    seen: dict[str, IncomingMessage] = {}
    for item in incoming:
        if item.key is None:
            continue
        if not _is_same(seen.setdefault(item.key, item).message, item.message):
            raise KeyReused(item.key, None)


def refuse_other(item: IncomingMessage, stored: MessageAppended) -> None:
    """Refuse a message whose key stands for another one.

    Raises:
        KeyReused: names the key and the place of the other.
    """
    if not _is_same(item.message, stored.message):
        raise KeyReused(item.key or "", stored.position)


def _is_same(one: Message, other: Message) -> bool:
    # What only one of both tells is no difference: it was recorded later, or not at all.
    is_same_head = (
        one.role == other.role
        and _agree(one.author, other.author)
        and _agree(_name(one), _name(other))
    )
    return is_same_head and list(one.blocks()) == list(other.blocks())


def _agree(one: object, other: object) -> bool:
    return one is None or other is None or one == other


def _name(message: Message) -> object:
    """Who of several speaks. Other fields (usage, metadata) may be others when a delivery is repeated."""
    return None if message.extra is None else message.extra.get("name")


def read_recorded(messages: object) -> Sequence[RecordedMessage]:
    """Return messages of a transcript.

    Raises:
        InvalidMessage: they are something else.
    """
    given = list(cast(Iterable[object], messages)) if isinstance(messages, Iterable) else [messages]
    if not all(isinstance(one, RecordedMessage) for one in given):
        raise InvalidMessage(
            "messages",
            "must be messages of a transcript, as refold.read_transcript(path) gives them "
            "(others: append(messages, recorded=True))",
        )
    return cast(list[RecordedMessage], given)
