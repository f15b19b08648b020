"""Follow the message list that an application keeps: store what is new, and fork where it does not continue."""

import copy
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

from refold.application.history.moments import choose_moment
from refold.application.runtime.core import Core
from refold.application.runtime.plain_lines import conversation, plain_logger
from refold.domain.errors import InvalidMessage, UnknownToolCall
from refold.domain.events import MessageAppended
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import THINKING, Message
from refold.domain.value import is_list, is_object

from .appending import Owners, append
from .parsing import read_thread_id

logger = plain_logger(__name__)

REMEMBERED = 64
"""Number of lists that are remembered, to compare the next one with them instead of with the log."""
_NAME = 12
_KEY = lazy_pattern(r"\d+:[0-9a-f]{64}")
"""Key of a message that was stored from a list. Its digest is of all messages before it as well."""
PAGE = 200
"""Number of events that are read at a time."""

Given = dict[str, Any]
"""A message in the form of the Messages API."""
OriginalOf = Callable[[int], Mapping[str, Any] | None]
"""Function that returns the foreign form of the message at an index of a list, or None without one."""


class Followed(NamedTuple):
    """A list, and the conversation that continues with it."""

    thread_id: str
    messages: tuple[Given, ...] = ()
    keys: tuple[str, ...] = ()
    """Key of each message: its position and the digest of it and everything before it."""
    base: int = 0
    """Number of messages that the conversation has from another one. A list with one more continues from here."""


class _Place(NamedTuple):
    """The conversation in which a list goes on."""

    name: str
    stored: int
    """Number of messages of the list that it has."""
    base: int


@dataclass
class _Thread:
    lock: threading.Lock = field(default_factory=threading.Lock)
    followed: Followed | None = None


class FollowedLists:
    """The lists of an application, each with the conversation that has its messages.

    Where a list no longer continues what is stored, because a message was edited or removed or a reply was
    made again, it is continued in a fork. The name of the fork follows from the list, so that every process finds it.
    """

    def __init__(self, core: Core, owner: str | None = None) -> None:
        self._core = core
        self._owner = owner
        self._threads: OrderedDict[str, _Thread] = OrderedDict()
        self._lock = threading.Lock()

    def follow(
        self,
        thread_id: str,
        messages: Sequence[object],
        *,
        start: int = 0,
        name: str | None = None,
        original: OriginalOf | None = None,
    ) -> str:
        """Store the messages that are new, and return the id of the conversation that has exactly these.

        ``start``: number of messages at the beginning that the list has no more, because the conversation ``name``
        has them. ``original``: returns the foreign form of a message of the list, for each that is stored.

        Raises:
            InvalidThreadId: the thread id is blank or not a text.
            InvalidMessage: a message cannot be stored.
            LogError: the log cannot be read or written.
        """
        thread = self._thread(read_thread_id(thread_id))
        with thread.lock:
            before = thread.followed
            given = [*self._beginning(before, start, name or thread_id), *map(_plain, messages)]
            same = _same_beginning(before, given)
            keys = [*(before.keys[:same] if before else ()), *_keys(before, same, given)]
            if before is not None and same == len(before.messages) == self._length(before):
                found = _Place(before.thread_id, same, before.base)
            else:
                # The way from the first conversation to this one is the same, if the list has its own beginning.
                is_own = before is not None and same > before.base
                near = (before.thread_id, before.base) if before and is_own else (thread_id, 0)
                found = self._find(thread_id, near, given, keys)
            fresh = [*given[: found.stored], *_with_originals(given, found.stored, start, original)]
            self._store(found.name, fresh, keys, found.stored)
            known = before.messages[:same] if before else ()
            # The newest form of each is kept: comparing two forms of a message takes its meaning each time.
            kept = (a if a == b else copy.deepcopy(b) for a, b in zip(known, given, strict=False))
            new = (copy.deepcopy(message) for message in given[same:])
            thread.followed = Followed(found.name, (*kept, *new), tuple(keys), found.base)
        return found.name

    def add_reply(
        self,
        thread_id: str,
        reply: Mapping[str, Any],
        to: Sequence[object],
        *,
        start: int = 0,
        name: str | None = None,
    ) -> None:
        """Store a reply to the list ``to``, unless the list was followed to another end since.

        ``start`` and ``name`` are those of ``follow``.

        Raises:
            InvalidMessage: the reply cannot be stored.
            LogError: the log cannot be read or written.
        """
        thread = self._thread(thread_id)
        with thread.lock:
            before = thread.followed
            asked = [*self._beginning(before, start, name or thread_id), *map(_plain, to)]
            if before is None or len(before.messages) != len(asked):
                return
            if _same_beginning(before, asked) < len(asked):
                return
            message = _plain(reply)
            keys = _keys(before, len(asked), [*asked, message])
            append(
                self._core,
                before.thread_id,
                message,
                key=keys,
                owners=Owners(self._owner, None),
            )
            thread.followed = before._replace(
                messages=(*before.messages, copy.deepcopy(message)), keys=(*before.keys, *keys)
            )

    def followed(self, thread_id: str, length: int) -> str | None:
        """Return the conversation that has the last list and nothing else, if its length is this; else None."""
        thread = self._thread(thread_id)
        with thread.lock:
            before = thread.followed
            is_whole = before is not None and len(before.messages) == length == self._length(before)
            return before.thread_id if before is not None and is_whole else None

    def current(self, thread_id: str) -> str:
        """Return the conversation in which the last list went on, or the thread itself without a list."""
        before = self._thread(thread_id).followed
        return before.thread_id if before is not None else thread_id

    def _beginning(self, before: Followed | None, start: int, name: str) -> Sequence[Given]:
        """Return the messages before position ``start``."""
        if before is not None and len(before.messages) >= start:
            return before.messages[:start]
        return [_plain(e.message.model_dump()) for e in _appended(self._core, name, 0, start)]

    def _length(self, followed: Followed) -> int:
        """Return the number of messages in the log: another process may have appended some."""
        return self._core.log.load(followed.thread_id).state.length

    def _thread(self, thread_id: str) -> _Thread:
        with self._lock:
            thread = self._threads.setdefault(thread_id, _Thread())
            self._threads.move_to_end(thread_id)
            while len(self._threads) > REMEMBERED:
                self._threads.popitem(last=False)
            return thread

    def _find(
        self, root: str, near: tuple[str, int], given: Sequence[Given], keys: Sequence[str]
    ) -> _Place:
        """Return the conversation to go on in; fork one if none fits. ``near`` is one on the way, with its base."""
        name, base = near
        stored, length = self._compare(name, given, keys)
        if stored == length:
            return _Place(name, stored, base)
        markers = [f"end {stored}"]
        if stored < len(given):
            markers.insert(0, keys[stored])
        for marker in markers:
            child = _child(root, name, marker)
            has, _ = self._compare(child, given, keys)
            if has > stored or (has == stored and self._core.log.load(child).state.length):
                return self._find(root, (child, stored), given, keys)
        if known := self._find_other(root, given, keys):
            return known
        child = _child(root, name, markers[0])
        logger.info(
            "%s: the list does not continue after message %d, and goes on in %s",
            conversation(name),
            stored,
            conversation(child),
        )
        if stored:
            moment = choose_moment(self._core, name, None, stored - 1)
            from refold.application.history.fork import fork

            fork(self._core, name, moment, child)
        return _Place(child, stored, stored)

    def _find_other(self, root: str, given: Sequence[Given], keys: Sequence[str]) -> _Place | None:
        """Return the fork with the most messages that the list continues, or None.

        A fork may have come from another place: where a list was cut and then went on with the same words.
        """
        rows = self._core.views.conversations()
        forks = [
            r for r in rows if r.thread_id.startswith(f"{root}~") and 0 < r.messages <= len(given)
        ]
        for row in sorted(forks, key=lambda row: (-row.messages, row.thread_id)):
            last = self._key_at(row.thread_id, row.messages - 1)
            if last == keys[row.messages - 1]:
                return _Place(row.thread_id, row.messages, row.messages)
            if _KEY.fullmatch(last):
                continue
            stored, length = self._compare(row.thread_id, given, keys)
            if stored == length:
                return _Place(row.thread_id, stored, stored)
        return None

    def _key_at(self, name: str, position: int) -> str:
        """Return the key of a message, or an empty string if it has none."""
        for row in self._core.views.messages(name, position, position + 1):
            for logged in self._core.log.read(name, row.version, row.version):
                if isinstance(logged.event, MessageAppended):
                    return logged.event.key or ""
        return ""

    def _compare(self, name: str, given: Sequence[Given], keys: Sequence[str]) -> tuple[int, int]:
        """Return how many messages of the list a conversation begins with, and how many it has."""
        state = self._core.log.load(name).state
        most = min(state.length, len(given))
        known = self._core.log.versions_of_keys(name, keys[:most])
        stored = next((n for n, key in enumerate(keys[:most]) if key not in known), most)
        if stored < most:
            # Messages that were stored otherwise have other keys.
            for event in _appended(self._core, name, stored, most):
                if _meaning(event.message.model_dump()) != _meaning(given[event.position]):
                    break
                stored = event.position + 1
        return stored, state.length

    def _store(self, name: str, given: Sequence[Given], keys: Sequence[str], stored: int) -> None:
        """Append the messages from position ``stored`` on."""
        owners = Owners(self._owner, None)
        if not stored and len(given) > 1:
            # A list that began without refold is history.
            append(self._core, name, list(given), key=list(keys), recorded=True, owners=owners)
            return
        for start, stop in _parts(given, stored):
            part, own = list(given[start:stop]), list(keys[start:stop])
            try:
                append(self._core, name, part, key=own, owners=owners)
            except (InvalidMessage, UnknownToolCall):
                without = [_without_thinking(message) for message in part]
                append(self._core, name, without, key=own, recorded=True, owners=owners)


def _with_originals(
    given: Sequence[Given], stored: int, start: int, original: OriginalOf | None
) -> Iterator[Given]:
    for at in range(stored, len(given)):
        form = original(at - start) if original and at >= start else None
        yield given[at] if form is None else {**given[at], "original": form}


def _parts(given: Sequence[Given], start: int) -> Iterator[tuple[int, int]]:
    """Yield ranges that begin with each reply, whose thinking is judged by the state before it."""
    for stop in range(start + 1, len(given) + 1):
        if stop == len(given) or given[stop].get("role") == "assistant":
            yield start, stop
            start = stop


def _appended(core: Core, name: str, first: int, stop: int) -> Iterator[MessageAppended]:
    """Yield the stored messages at these positions, oldest first."""
    version = core.log.load(name).state.version
    for at in range(1, version + 1, PAGE):
        for logged in core.log.read(name, at, min(at + PAGE - 1, version)):
            event = logged.event
            if isinstance(event, MessageAppended) and first <= event.position < stop:
                yield event


def _same_beginning(before: Followed | None, given: Sequence[Given]) -> int:
    """Return how many messages at the beginning are the same."""
    known = before.messages if before else ()
    pairs = enumerate(zip(known, given, strict=False))
    different = (n for n, (a, b) in pairs if a != b and _meaning(a) != _meaning(b))
    return next(different, min(len(known), len(given)))


def same_beginning(stored: Iterable[Message | None], recorded: Iterable[Message]) -> int:
    """Return how many recorded messages a conversation begins with already, also under other keys.

    ``stored`` has None for an erased message: what it was is not known, and it must not come back.
    """
    pairs = enumerate(zip(stored, recorded, strict=False), start=1)
    count = 0
    for count, (known, given) in pairs:
        if known is not None and _meaning(known.model_dump()) != _meaning(given.model_dump()):
            return count - 1
    return count


def _keys(before: Followed | None, start: int, given: Sequence[Given]) -> list[str]:
    """Return the keys of the messages from ``start`` on."""
    digest = before.keys[start - 1].partition(":")[2] if before and start else ""
    keys: list[str] = []
    for position in range(start, len(given)):
        digest = sha256(
            f"{digest}{_meaning(given[position])}".encode("utf-8", "surrogatepass")
        ).hexdigest()
        keys.append(f"{position}:{digest}")
    return keys


def _child(root: str, name: str, marker: str) -> str:
    digest = sha256(f"{name} {marker}".encode()).hexdigest()
    return f"{root}~{digest[:_NAME]}"


def _plain(value: Any) -> Any:
    """Return a value with objects of an SDK as the JSON that the API gets."""
    if is_object(value):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return [_plain(inner) for inner in value]


def _meaning(message: Mapping[str, Any]) -> str:
    """Return what two forms of the same message have in common: role, words, calls and results.

    Thinking is left out, because an application need not send it back.
    """
    parts: list[Any] = []
    for block in _blocks(message.get("content")):
        part = _part(block)
        if part is None:
            continue
        if parts and parts[-1][0] == part[0] == "text":
            parts[-1][1] += part[1]
        else:
            parts.append(part)
    return json.dumps([message.get("role"), parts], sort_keys=True, ensure_ascii=False, default=str)


def _blocks(content: Any) -> Sequence[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if is_object(block)] if is_list(content) else []


def _part(block: Mapping[str, Any]) -> list[Any] | None:
    match block.get("type"):
        case str() as kind if kind in THINKING:
            return None
        case "text":
            return ["text", str(block.get("text"))] if block.get("text") else None
        case "tool_use":
            return ["tool_use", block.get("id"), block.get("name"), block.get("input")]
        case "tool_result":
            inner = [_part(one) for one in _blocks(block.get("content"))]
            return ["tool_result", block.get("tool_use_id"), inner, bool(block.get("is_error"))]
        case kind:
            named = {n: v for n, v in block.items() if v is not None and n != "cache_control"}
            return [kind, named]


def _without_thinking(message: Given) -> Given:
    content = message.get("content")
    if not is_list(content):
        return message
    return {
        **message,
        "content": [b for b in content if not (is_object(b) and b.get("type") in THINKING)],
    }
