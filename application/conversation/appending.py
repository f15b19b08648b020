"""Append messages in one transaction; a message with a known key is stored once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from refold.application.api.results import Appended, AppendedMessage
from refold.application.compaction.next_request import end_abandoned
from refold.application.errors import LogDamaged
from refold.application.ports.token_counter import TokenCount
from refold.application.runtime.core import Core
from refold.domain.appending import IncomingMessage, append_messages
from refold.domain.errors import KeyReused, VersionConflict
from refold.domain.events import Event, MessageAppended
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import Author, Block, Message, gist, has_thinking
from refold.domain.originals import Original, items_after
from refold.domain.turns import is_after_answer, is_bound
from refold.domain.value import build_unvalidated, replace

from .loaded import LoadedConversation
from .parsing import (
    Keys,
    ParsedMessage,
    parse_recorded,
    read_author,
    read_expected_version,
    read_keys,
    read_messages,
    read_recorded,
)

if TYPE_CHECKING:
    from .transcripts import RecordedMessage

PAGE = 200
"""Number of events to read at a time."""


def refuse_conflict(core: Core, loaded: LoadedConversation, expected: int) -> None:
    """Raise if messages were appended after version ``expected``.

    Summaries, pins and other decisions do not conflict: the request still has the same content.

    Raises:
        VersionConflict: messages were appended.
    """
    state = loaded.state
    if state.version == expected:
        return
    is_newer = bool(state.live) and state.live[-1].version > expected
    if expected > state.version or is_newer or _has_newer_messages(core, loaded, expected):
        raise VersionConflict(loaded.thread_id, expected, state.version)


def _has_newer_messages(core: Core, loaded: LoadedConversation, expected: int) -> bool:
    last = loaded.state.version
    return any(
        isinstance(logged.event, MessageAppended)
        for first in range(expected + 1, last + 1, PAGE)
        for logged in core.log.read(loaded.thread_id, first, min(first + PAGE - 1, last))
    )


def refuse_duplicate_keys(incoming: Sequence[IncomingMessage]) -> None:
    """Raise if two different messages of one call have the same key.

    Raises:
        KeyReused: names the key.
    """
    seen: dict[str, IncomingMessage] = {}
    for item in incoming:
        if item.key is None:
            continue
        first = seen.setdefault(item.key, item)
        if first is not item and not _is_same(first.message, item.message):
            raise KeyReused(item.key, None)


def refuse_other(item: IncomingMessage, stored: MessageAppended) -> None:
    """Raise if a message differs from the stored one with the same key.

    Raises:
        KeyReused: names the key and the position of the stored message.
    """
    if not _is_same(item.message, stored.message):
        raise KeyReused(item.key or "", stored.position)


def _is_same(one: Message, other: Message) -> bool:
    # A field that only one of them has is not a difference: it was recorded later, or not at all.
    is_same_head = (
        one.role == other.role
        and _agree(one.author, other.author)
        and _agree(_name(one), _name(other))
    )
    return is_same_head and list(one.blocks()) == list(other.blocks())


def _agree(one: object, other: object) -> bool:
    return one is None or other is None or one == other


def _name(message: Message) -> object:
    """Return the name of the speaker.

    A repeated delivery must have the same name. Other fields (usage, metadata) may differ.
    """
    return None if message.extra is None else message.extra.get("name")


class Owners(NamedTuple):
    """Owner of the conversation, and owner of the messages if it differs."""

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
        OwnerConflict: the conversation has another owner; nothing is stored.
        LogError: nothing is stored.
    """
    expected = read_expected_version(expected_version)
    taken = read_messages(given, recorded=recorded, author=read_author(author))
    keys = _own_keys(taken, recorded) if key is None else read_keys(key, len(taken))
    incoming = [
        _measure(core, item, k, owner=owners.messages) for item, k in zip(taken, keys, strict=True)
    ]
    owner = owners.conversation
    return store(core, thread_id, incoming, recorded=recorded, expected=expected, owner=owner)


def append_recorded(
    core: Core,
    thread_id: str,
    messages: Sequence[RecordedMessage],
    owner: str | None = None,
    expected_version: int | None = None,
) -> Appended:
    """Append messages of a transcript unchanged; each is stored once.

    If one of the newest stored messages has grown since, because its session goes on, the rest of it is stored as a
    message of its own.

    Raises:
        InvalidMessage: a message is not from a transcript, or JSON cannot represent it.
        VersionConflict: messages were appended after this version.
    """
    expected = read_expected_version(expected_version)
    incoming = [
        _measure(core, parse_recorded(m), recorded_key(m), m.at) for m in read_recorded(messages)
    ]
    # A later version may parse a recording differently: stored messages stay unchanged.
    return store(
        core,
        thread_id,
        incoming,
        recorded=True,
        expected=expected,
        compares=False,
        grows=True,
        owner=owner,
    )


_PART = lazy_pattern(r"(.*)#\+(\d+)", re.DOTALL)
"""Key of a later part of a message: the key of the message, and the number of blocks before the part."""
GROWING = 16
"""Newest stored messages that may have grown: calls at the same time are written one by one, between results."""


def _with_rest_of_newest(
    core: Core, loaded: LoadedConversation, thread_id: str, incoming: Sequence[IncomingMessage]
) -> tuple[Sequence[IncomingMessage], bool]:
    """Return the messages with what the newest stored ones lack, and whether some of these are among them."""
    newest = [one.version for one in loaded.state.live[-GROWING:]]
    places = {item.key: at for at, item in enumerate(incoming)}
    rest, last = list[IncomingMessage](), -1
    kept: dict[str, list[Original | None]] = {}
    known: dict[str, list[Block]] = {}
    ends: dict[str, int] = {}
    for logged in core.log.read_at(thread_id, newest):
        event = logged.event
        if logged.erased or not isinstance(event, MessageAppended) or event.key is None:
            continue
        part = _PART.fullmatch(event.key)
        key, begin = (str(part[1]), int(part[2])) if part else (event.key, 0)
        if key not in places:
            continue
        last = max(last, places[key])
        kept.setdefault(key, []).append(event.whole_original)
        known.setdefault(key, []).extend(event.message.blocks())
        end = begin + len(event.message.blocks())
        if begin == ends.get(key, 0):
            ends[key] = end  # No part before it is erased or too old to be among the newest.
        parts = known[key] if ends.get(key) == end else None
        grown = _rest_of(incoming[places[key]], event.message, end, kept[key], parts)
        if grown is not None:
            rest.append(_measure(core, grown, f"{key}#+{end}", incoming[places[key]].written_at))
    return [*incoming[: last + 1], *rest, *incoming[last + 1 :]], last >= 0


def _rest_of(
    item: IncomingMessage,
    part: Message,
    end: int,
    kept: Sequence[Original | None],
    whole: Sequence[Block] | None,
) -> ParsedMessage | None:
    """Return what a stored part lacks, or None if it lacks nothing.

    ``kept``: the foreign forms of the parts up to it. ``whole``: the blocks of these parts, or None if one is missing.
    """
    from .message_meaning import added_blocks, identity

    blocks, own = item.message.blocks(), [*map(identity, part.blocks())]
    added = added_blocks(blocks, whole) if whole and item.original is None else ()
    if not added and [*map(identity, blocks[end - len(own) : end])] == own:
        added = blocks[end:]
    if not added:
        return None
    rest = replace(item.message, content=added)
    are_all = whole is not None
    form = items_after(kept, item.original, item.message.content, rest.content, are_all=are_all)
    return ParsedMessage(rest, None, item.model, item.stop_reason, form)


def recorded_key(message: RecordedMessage) -> str:
    """Return the idempotency key of a transcript message, distinct from all keys that agents choose."""
    return f"recorded:{message.key}"


def store(
    core: Core,
    thread_id: str,
    incoming: Sequence[IncomingMessage],
    *,
    recorded: bool,
    expected: int | None = None,
    compares: bool = True,
    grows: bool = False,
    owner: str | None = None,
) -> Appended:
    """Store parsed and measured messages.

    ``expected``: version after which no messages may have been appended. ``compares``: whether messages
    with the same key must be equal. ``grows``: whether the newest stored messages may have grown since. Then all
    are taken for new if the first is, until the log refuses their keys. ``owner``: owner of the conversation, if known.

    Raises:
        OwnerConflict: the conversation has another owner; nothing is stored.
    """
    if compares:
        refuse_duplicate_keys(incoming)
    known: dict[str, AppendedMessage] = {}
    whole, presumes, seen = incoming, grows, -1

    def decide(loaded: LoadedConversation) -> Sequence[Event]:
        nonlocal known, presumes, whole, seen
        loaded.present().check_owner(owner)
        if grows and loaded.state.version != seen:  # Another process may have stored a part.
            seen = loaded.state.version
            whole, has_newest = _with_rest_of_newest(core, loaded, thread_id, incoming)
            presumes = presumes and not has_newest
        is_new = presumes and _is_first_new(core, loaded, whole)
        presumes = False
        known = {} if is_new else _find_stored(core, thread_id, whole, compares=compares)
        fresh = _select_new(whole, known)
        if fresh and expected is not None:
            refuse_conflict(core, loaded, expected)
        fresh = fresh if recorded else _mark_stale(core, loaded, fresh)
        appended = append_messages(loaded.state, fresh, recorded=recorded, owner=owner)
        return (*end_abandoned(core, loaded), *appended) if loaded.state.attempt else appended

    loaded, events = core.log.transact(thread_id, decide, at=core.clock())
    stored = [e for e in events if isinstance(e, MessageAppended)]
    _notify_waiting(core, thread_id, stored)
    answer = tuple(_merge_known(whole, stored, known))
    return build_unvalidated(
        Appended, thread_id=thread_id, version=loaded.state.version, messages=answer
    )


def _merge_known(
    incoming: Sequence[IncomingMessage],
    stored: Sequence[MessageAppended],
    known: dict[str, AppendedMessage],
) -> list[AppendedMessage]:
    if len(stored) == len(incoming):
        return [_appended_message(event, new=True) for event in stored]
    new = iter(stored)
    answer: list[AppendedMessage] = []
    for item in incoming:
        if item.key is not None and item.key in known:
            answer.append(known[item.key])
            continue
        first = _appended_message(next(new), new=True)
        if item.key is not None:
            known[item.key] = replace(first, new=False)
        answer.append(first)
    return answer


def _mark_stale(
    core: Core, loaded: LoadedConversation, fresh: list[IncomingMessage]
) -> list[IncomingMessage]:
    """Return the messages, with answers marked whose thinking may belong to a different request."""
    state, thinks = loaded.state, any([one.thinking_tokens for one in fresh])  # noqa: C419 (faster)
    if not thinks or fresh[0].message.role != "assistant" or not is_bound(state):
        return fresh
    if not is_after_answer(state) and core.asked.is_answer(loaded.thread_id, state):
        return fresh
    # What continues an answer in doubt was signed for a request that shows its thinking.
    return [one._replace(stale_thinking=one.thinking_tokens > 0) for one in fresh]


def _notify_waiting(core: Core, thread_id: str, stored: Sequence[MessageAppended]) -> None:
    """Schedule embedding of the messages, and record them for the newest requests."""
    if core.recall.embedding is not None:
        core.recall.embedding.appended()
    if not stored:
        return
    first, end = stored[0], stored[-1].position + 1
    if first.message.role == "assistant":
        stale = any(one.stale_thinking for one in stored)
        core.asked.answered(thread_id, first.position, end, stale=stale)
    else:
        does = gist(first.message)
        core.asked.said(thread_id, first.position, end, speaks=does.speaks or not does.results)


def _own_keys(taken: Sequence[ParsedMessage], recorded: bool) -> Sequence[str | None]:
    """Return the keys of messages: the id that the API gave a live reply, so that it is stored once."""
    return [
        item.message_id
        if not recorded and item.message.role == "assistant" and _REPLY.match(item.message_id or "")
        else None
        for item in taken
    ]


_REPLY = lazy_pattern("msg_|chatcmpl-[A-Za-z0-9-]{16}")
"""Reply ids that are unique. Some servers with the OpenAI API use ids of three digits, which are not."""


def _measure(
    core: Core,
    item: ParsedMessage,
    key: str | None,
    written_at: datetime | None = None,
    owner: str | None = None,
) -> IncomingMessage:
    size = core.counter.count_message(item.message)
    if not size.thinking and has_thinking(item.message):
        # Thinking too short for a token counts as one: a message with thinking has a size above 0.
        size = TokenCount(total=size.total + 1, thinking=1)
    reasoning = item.original.reasoning if item.original else None
    sent = core.counter.count_text(json.dumps(reasoning)) if reasoning else 0
    return IncomingMessage(
        item.message,
        item.message_id or core.new_id(),
        size.total + sent,
        size.thinking,
        key,
        written_at,
        item.model,
        item.stop_reason,
        False,
        owner,
        item.original,
    )


def _is_first_new(
    core: Core, loaded: LoadedConversation, incoming: Sequence[IncomingMessage]
) -> bool:
    """Return whether the first message is not stored."""
    keys = [item.key for item in incoming[:1] if item.key is not None]
    return not loaded.state.version or not core.log.versions_of_keys(loaded.thread_id, keys)


def _find_stored(
    core: Core, thread_id: str, incoming: Sequence[IncomingMessage], *, compares: bool
) -> dict[str, AppendedMessage]:
    keys = {item.key: item for item in incoming if item.key is not None}
    if not keys:
        return {}
    found: dict[str, AppendedMessage] = {}
    places = [*core.log.versions_of_keys(thread_id, list(keys)).items()]
    for first in range(0, len(places), PAGE):
        page = places[first : first + PAGE]
        stored = {one.version: one for one in core.log.read_at(thread_id, [v for _, v in page])}
        for key, version in page:
            logged = stored.get(version)
            event = logged and logged.event
            if logged is None or not isinstance(event, MessageAppended) or event.key != key:
                raise LogDamaged(thread_id, version, f"the message with key {key!r} is missing")
            # Nothing remains of an erased message to compare with.
            if compares and not logged.erased:
                refuse_other(keys[key], event)
            found[key] = _appended_message(event, new=False)
    return found


def _appended_message(event: MessageAppended, *, new: bool) -> AppendedMessage:
    return build_unvalidated(
        AppendedMessage,
        position=event.position,
        message_id=event.message_id,
        tokens=event.tokens,
        new=new,
    )


def _select_new(
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
