"""Use case: append messages. One transaction for all of them; a known key is stored once."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from refold.domain.appending import IncomingMessage, append_messages
from refold.domain.errors import InvalidMessage
from refold.domain.events import Event, MessageAppended
from refold.domain.messages import Author, gist, thinks
from refold.domain.thinking import follows_an_answer, is_bound

from .abandoning import settle_left_behind
from .core import Core
from .errors import LogDamaged
from .event_log import LoggedEvent
from .guarding import (
    read_expected_version,
    read_recorded,
    refuse_conflict,
    refuse_keys_of_two,
    refuse_other,
)
from .intake import Intake, is_utf8, plain_message, read_author, read_messages
from .loaded import LoadedConversation
from .owners.parsing import refuse_other_owner
from .ports import TokenCount
from .recordings.transcripts import RecordedMessage
from .results import Appended, AppendedMessage

Keys = str | Sequence[str | None] | None


class Owners(NamedTuple):
    """Whose the conversation is, and whose the messages are where that is somebody else."""

    conversation: str | None = None
    messages: str | None = None


NO_OWNERS = Owners()


def append(
    core: Core,
    thread_id: str,
    given: object,
    *,
    key: Keys = None,
    recorded: bool = False,
    author: Author | None = None,
    expected_version: int | None = None,
    owners: Owners = NO_OWNERS,
) -> Appended:
    """Append one message or several.

    Raises:
        InvalidMessage, UnknownToolCall, KeyReused, VersionConflict: nothing is stored.
        OwnerConflict: the conversation is somebody else's; nothing is stored.
        LogError: nothing is stored.
    """
    expected = read_expected_version(expected_version)
    taken = read_messages(given, recorded=recorded, author=read_author(author))
    keys = _own_keys(taken, recorded) if key is None else _keys(key, len(taken))
    incoming = [
        _measured(core, item, k, owner=owners.messages) for item, k in zip(taken, keys, strict=True)
    ]
    owner = owners.conversation
    return store(core, thread_id, incoming, recorded=recorded, expected=expected, owner=owner)


def append_recorded(
    core: Core, thread_id: str, messages: Sequence[RecordedMessage], owner: str | None = None
) -> Appended:
    """Append messages of a transcript, kept as they came; each is stored once.

    Raises:
        InvalidMessage: they are no messages of a transcript, or not what JSON can hold.
    """
    incoming = [
        _measured(
            core,
            Intake(plain_message(m.message), m.message_id, m.model, m.stop_reason),
            recorded_key(m),
            m.at,
        )
        for m in read_recorded(messages)
    ]
    # A later version may read a recording otherwise: what is stored stays as it is.
    return store(core, thread_id, incoming, recorded=True, compares=False, owner=owner)


def recorded_key(message: RecordedMessage) -> str:
    """The idempotency key of a message of a transcript; apart from the keys that agents choose."""
    return f"recorded:{message.key}"


def store(
    core: Core,
    thread_id: str,
    incoming: Sequence[IncomingMessage],
    *,
    recorded: bool,
    expected: int | None = None,
    compares: bool = True,
    owner: str | None = None,
) -> Appended:
    """Store messages that are read and measured.

    ``expected``: the version after which nobody else may have appended. ``compares``: whether messages
    with the same key must be the same. ``owner``: whose the conversation is, if that is known.

    Raises:
        OwnerConflict: it is somebody else's; nothing is stored.
    """
    if compares:
        refuse_keys_of_two(incoming)
    known: dict[str, AppendedMessage] = {}

    def decide(loaded: LoadedConversation) -> Sequence[Event]:
        refuse_other_owner(thread_id, loaded.present().state, owner)
        known.clear()
        known.update(_stored_before(core, thread_id, incoming, compares=compares))
        fresh = _fresh(incoming, known)
        if fresh and expected is not None:
            refuse_conflict(core, loaded, expected)
        fresh = fresh if recorded else _marked_stale(core, loaded, fresh)
        appended = append_messages(loaded.state, fresh, recorded=recorded, owner=owner)
        return (*settle_left_behind(core, loaded), *appended)

    loaded, events = core.log.transact(thread_id, decide, at=core.clock())
    stored = [e for e in events if isinstance(e, MessageAppended)]
    _tell_of(core, thread_id, stored)
    answer = tuple(_answered(incoming, stored, known))
    return Appended.trusted(
        {"thread_id": thread_id, "version": loaded.state.version, "messages": answer}
    )


def _answered(
    incoming: Sequence[IncomingMessage],
    stored: Sequence[MessageAppended],
    known: dict[str, AppendedMessage],
) -> list[AppendedMessage]:
    new = iter(stored)
    answer: list[AppendedMessage] = []
    for item in incoming:
        if item.key is not None and item.key in known:
            answer.append(known[item.key])
            continue
        told = _appended(next(new), new=True)
        if item.key is not None:
            known[item.key] = told.replaced(new=False)
        answer.append(told)
    return answer


def _marked_stale(
    core: Core, loaded: LoadedConversation, fresh: list[IncomingMessage]
) -> list[IncomingMessage]:
    """The messages; an answer that thinks is marked where it may be to another request than it follows here."""
    if not fresh or fresh[0].message.role != "assistant" or not fresh[0].thinking_tokens:
        return fresh
    state = loaded.state
    answers = core.asked.is_answer(loaded.thread_id, state.length)
    if not is_bound(state) or (answers and not follows_an_answer(state)):
        return fresh
    return [fresh[0].replaced(stale_thinking=True), *fresh[1:]]


def _tell_of(core: Core, thread_id: str, stored: Sequence[MessageAppended]) -> None:
    """Tell those who wait for messages, and those who remember what requests are open."""
    if core.recall.embedding is not None:
        core.recall.embedding.appended()
    if not stored:
        return
    first, end = stored[0], stored[-1].position + 1
    if first.message.role == "assistant":
        core.asked.answered(thread_id, end)
    else:
        does = gist(first.message)
        core.asked.said(thread_id, first.position, end, speaks=does.speaks or not does.results)


def _own_keys(taken: Sequence[Intake], recorded: bool) -> Sequence[str | None]:
    """The id that the API gave a reply is its key, so that it is stored once; history is taken as it is."""
    return [
        item.message_id
        if not recorded and item.message.role == "assistant" and _REPLY.match(item.message_id or "")
        else None
        for item in taken
    ]


_REPLY = re.compile("msg_|chatcmpl-[A-Za-z0-9-]{16}")
"""Some servers that speak the OpenAI API draw ids of three digits: what is that short is no key."""


def _keys(key: Keys, count: int) -> Sequence[str | None]:
    if key is None:
        return [None] * count
    keys = [key] if isinstance(key, str) else _several(key)
    if len(keys) != count:
        raise InvalidMessage("key", f"{len(keys)} keys for {count} messages; give one for each")
    for k in keys:
        if k is not None and not _is_key(k):
            raise InvalidMessage("key", f"{k!r} must be text that is not blank")
    return keys


def _several(keys: Sequence[str | None]) -> list[str | None]:
    if not _is_sequence(keys):
        kind = type(keys).__name__
        raise InvalidMessage(
            "key", f"is of the type {kind}; give text, or a list with one for each message"
        )
    return list(keys)


def _is_sequence(given: object) -> bool:
    is_bytes = isinstance(given, bytes | bytearray | memoryview)
    return not is_bytes and isinstance(given, Sequence)


def _is_key(key: object) -> bool:
    return isinstance(key, str) and bool(key.strip()) and is_utf8(key)


def _measured(
    core: Core,
    item: Intake,
    key: str | None,
    written_at: datetime | None = None,
    owner: str | None = None,
) -> IncomingMessage:
    size = core.counter.count_message(item.message)
    if not size.thinking and thinks(item.message):
        # A message thinks if its thinking has a size: thinking too short for a token counts as one.
        size = TokenCount(total=size.total + 1, thinking=1)
    return IncomingMessage.trusted(
        {
            "message": item.message,
            "message_id": item.message_id or core.new_id(),
            "tokens": size.total,
            "thinking_tokens": size.thinking,
            "key": key,
            "written_at": written_at,
            "model": item.model,
            "stop_reason": item.stop_reason,
            "stale_thinking": False,
            "owner": owner,
        }
    )


def _stored_before(
    core: Core, thread_id: str, incoming: Sequence[IncomingMessage], *, compares: bool
) -> Mapping[str, AppendedMessage]:
    keys = {item.key: item for item in incoming if item.key is not None}
    if not keys:
        return {}
    found: dict[str, AppendedMessage] = {}
    for key, version in core.log.versions_of_keys(thread_id, list(keys)).items():
        match core.log.read(thread_id, version, version):
            case [LoggedEvent(event=MessageAppended() as event) as logged] if event.key == key:
                # Of an erased message nothing is left to compare with.
                if compares and not logged.erased:
                    refuse_other(keys[key], event)
                found[key] = _appended(event, new=False)
            case _:
                raise LogDamaged(thread_id, version, f"the message with key {key!r} is missing")
    return found


def _appended(event: MessageAppended, *, new: bool) -> AppendedMessage:
    return AppendedMessage.trusted(
        {
            "position": event.position,
            "message_id": event.message_id,
            "tokens": event.tokens,
            "new": new,
        }
    )


def _fresh(
    incoming: Sequence[IncomingMessage], known: Mapping[str, AppendedMessage]
) -> list[IncomingMessage]:
    seen = set(known)
    fresh: list[IncomingMessage] = []
    for item in incoming:
        if item.key is not None:
            if item.key in seen:
                continue
            seen.add(item.key)
        fresh.append(item)
    return fresh
