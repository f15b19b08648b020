"""Follow the message list that an application keeps: store what is new, and fork where it does not continue."""

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

from refold.application.history.moments import choose_moment
from refold.application.ports.read_models import ConversationRow
from refold.application.runtime.core import Core
from refold.application.runtime.plain_lines import conversation, plain_logger
from refold.domain.errors import InvalidMessage, UnknownToolCall
from refold.domain.events import MessageAppended
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import THINKING
from refold.domain.value import is_list, is_object

from .appending import Owners, append
from .message_meaning import is_same, meaning
from .parsing import read_thread_id

logger = plain_logger(__name__)

REMEMBERED = 64
"""Number of lists that are remembered, to compare the next one with them instead of with the log."""
_NAME = 12
_CHILD = lazy_pattern(rf"[0-9a-f]{{{_NAME}}}")
"""End of the id of a fork, after the id of its thread and a tilde."""
_KEY = lazy_pattern(r"\d+:[0-9a-f]{64}")
"""Key of a message that was stored from a list. Its digest is of all messages before it as well."""
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
    first: int = 0
    """Position of the first of ``messages``. Those before it are in the log only."""
    link: str = ""
    """Key of the message before ``first``."""

    @property
    def length(self) -> int:
        """Number of messages of the whole list."""
        return self.first + len(self.messages)

    @property
    def last_key(self) -> str:
        """Key of the last message."""
        return self.keys[-1] if self.keys else self.link

    def beginning_at(self, start: int) -> "Followed | None":
        """Return the list without the messages before a position, or None if that is not in it."""
        skip = start - self.first
        if not 0 <= skip <= len(self.messages):
            return None
        link = self.keys[skip - 1] if skip else self.link
        left, keys = self.messages[skip:], self.keys[skip:]
        return self._replace(messages=left, keys=keys, first=start, link=link)


@dataclass
class _List:
    """A list as an application gives it. Its beginning is read from the log when it is needed."""

    first: int
    """Position of the first of ``messages``."""
    messages: list[Given]
    keys: list[str]
    read: Callable[[], Iterable[MessageAppended]]
    """Function that reads the messages before ``first``."""
    link: str = ""
    """Key of the message before ``first``. It depends on all messages before it."""

    def __len__(self) -> int:
        return self.first + len(self.messages)

    def read_beginning(self) -> None:
        """Read the messages before ``first``, if there are any."""
        if not self.first:
            return
        earlier, keys = list[Given](), list[str]()
        for event in self.read():
            message, stored = _plain(event.message.model_dump()), event.key or ""
            link, place = keys[-1] if keys else "", len(keys)
            keys += [stored] if _is_chained(stored, place) else _keys(link, place, [message])
            earlier.append(message)
        self.keys = [*keys, *_keys(keys[-1] if keys else "", len(keys), self.messages)]
        self.messages = [*earlier, *self.messages]
        self.first, self.link = 0, ""

    def followed(self, place: "_Place", own: tuple[Given, ...]) -> Followed:
        """Return the list as it is remembered: with the messages at the end that the application has."""
        first = len(self) - len(own)
        link = self.keys[first - self.first - 1] if first > self.first else self.link
        keys = tuple(self.keys[first - self.first :])
        return Followed(place.name, own, keys, place.base, first, link)


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
            own = list(map(_plain, messages))
            before = self._before(thread, thread_id, start, name or thread_id)
            same = _same_beginning(before, own)
            given = self._list(before, same, own, start, name or thread_id)
            is_same = before is not None and same == len(before.messages)
            if before is not None and is_same and start + same == self._length(before):
                found = _Place(before.thread_id, start + same, before.base)
            else:
                # The way from the first conversation to this one is the same, if the list has its own beginning.
                is_own = before is not None and start + same > before.base
                near = (before.thread_id, before.base) if before and is_own else (thread_id, 0)
                found = self._find(thread_id, near, given)
            self._store(found, given, len(given) - len(own), original)
            known = before.messages[:same] if before else ()
            # The newest form of each is kept: comparing two forms of a message takes its meaning each time.
            kept = (a if a == b else copy.deepcopy(b) for a, b in zip(known, own, strict=False))
            new = (copy.deepcopy(message) for message in own[same:])
            thread.followed = given.followed(found, (*kept, *new))
        return found.name

    def add_reply(
        self, thread_id: str, reply: Mapping[str, Any], to: Sequence[object], *, start: int = 0
    ) -> None:
        """Store a reply to the list ``to``, unless the list was followed to another end since.

        ``start`` is that of ``follow``.

        Raises:
            InvalidMessage: the reply cannot be stored.
            LogError: the log cannot be read or written.
        """
        thread = self._thread(thread_id)
        with thread.lock:
            known = thread.followed
            before = known.beginning_at(start) if known else None
            asked = list(map(_plain, to))
            if before is None or len(before.messages) != len(asked):
                return
            if _same_beginning(before, asked) < len(asked):
                return
            message, owners = _plain(reply), Owners(self._owner, None)
            keys = _keys(before.last_key, before.length, [message])
            append(self._core, before.thread_id, message, key=keys, owners=owners)
            thread.followed = before._replace(
                messages=(*before.messages, copy.deepcopy(message)), keys=(*before.keys, *keys)
            )

    def followed(self, thread_id: str, length: int) -> str | None:
        """Return the conversation that has the last list and nothing else, if its length is this; else None."""
        thread = self._thread(thread_id)
        with thread.lock:
            before = thread.followed
            is_whole = before is not None and before.length == length == self._length(before)
            return before.thread_id if before is not None and is_whole else None

    def current(self, thread_id: str) -> str:
        """Return the conversation in which the last list went on, or the thread itself without a list."""
        before = self._thread(thread_id).followed
        return before.thread_id if before is not None else thread_id

    def _before(self, thread: _Thread, thread_id: str, start: int, name: str) -> Followed | None:
        """Return the last list from a position on, or what the log has of a list that begins there; else None."""
        before = thread.followed.beginning_at(start) if thread.followed else None
        if before is not None and self._begins_with(name, before):
            return before
        link = self._key_at(name, start - 1) if start else ""
        if not _is_chained(link, start - 1):
            return None
        row = self._core.views.conversation(name)
        at = row.forked_at if row and name != thread_id else None
        base = 0 if at is None else self._core.log.load(name, at=at).state.length
        return Followed(name, base=base, first=start, link=link)

    def _begins_with(self, name: str, before: Followed) -> bool:
        """Return whether a conversation has the beginning of this list. An application may go back to another one."""
        if not before.first or before.thread_id == name:
            return True
        return bool(self._core.log.versions_of_keys(name, [before.link]))

    def _list(
        self, before: Followed | None, same: int, own: list[Given], start: int, name: str
    ) -> _List:
        """Return the list that was given, of which ``same`` messages are those of the last one."""
        source = before.thread_id if before else name
        link, keys = (before.link, before.keys[:same]) if before else ("", ())
        new = _keys(keys[-1] if keys else link, start + same, own[same:])
        read = partial(_appended, self._core, source, 0, start)
        given = _List(start, own, [*keys, *new], read, link)
        if before is None:
            given.read_beginning()
        return given

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

    def _find(self, root: str, near: tuple[str, int], given: _List) -> _Place:
        """Return the conversation to go on in; fork one if none fits. ``near`` is one on the way, with its base."""
        name, base = near
        stored, length = self._compare(name, given)
        if stored == length:
            return _Place(name, stored, base)
        markers = [f"end {stored}"]
        if stored < len(given):
            markers.insert(0, given.keys[stored - given.first])
        for marker in markers:
            child = _child(root, name, marker)
            has, _ = self._compare(child, given)
            if has > stored or (has == stored and self._core.log.load(child).state.length):
                return self._find(root, (child, stored), given)
        if known := self._find_other(root, given):
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

    def _find_other(self, root: str, given: _List) -> _Place | None:
        """Return the fork with the most messages that the list continues, or None.

        A fork may have come from another place: where a list was cut and then went on with the same words.
        """
        given.read_beginning()
        forks = [row for row in self.forks(root) if 0 < row.messages <= len(given)]
        for row in sorted(forks, key=lambda row: (-row.messages, row.thread_id)):
            last = self._key_at(row.thread_id, row.messages - 1)
            if last == given.keys[row.messages - 1]:
                return _Place(row.thread_id, row.messages, row.messages)
            if _KEY.fullmatch(last):
                continue
            stored, length = self._compare(row.thread_id, given)
            if stored == length:
                return _Place(row.thread_id, stored, stored)
        return None

    def forks(self, root: str) -> list[ConversationRow]:
        """Return the forks in which lists of a thread went on."""
        return [
            r for r in self._core.views.iter_conversations(f"{root}~") if self._is_fork(root, r)
        ]

    def _is_fork(self, root: str, row: ConversationRow) -> bool:
        """Return whether a conversation is a fork of a thread, and not a thread of its own that is named like one."""
        if not _CHILD.fullmatch(row.thread_id[len(root) + 1 :]):
            return False
        if row.forked_from is not None:
            return row.forked_from == root or row.forked_from.startswith(f"{root}~")
        firsts = (self._key_at(row.thread_id, 0), "end 0")  # It shares no message with the thread.
        return row.thread_id in [_child(root, root, first) for first in firsts]

    def _key_at(self, name: str, position: int) -> str:
        """Return the key of a message, or an empty string if it has none."""
        for row in self._core.views.messages(name, position, position + 1):
            for logged in self._core.log.read(name, row.version, row.version):
                if isinstance(logged.event, MessageAppended):
                    return logged.event.key or ""
        return ""

    def _compare(self, name: str, given: _List) -> tuple[int, int]:
        """Return how many messages of the list a conversation begins with, and how many it has."""
        log, state = self._core.log, self._core.log.load(name).state
        most = min(state.length, len(given))
        # A key is of all messages before it as well.
        is_before = given.first and not log.versions_of_keys(name, [given.link])
        if is_before or most < given.first:
            given.read_beginning()
        keys = given.keys[: most - given.first]
        known = log.versions_of_keys(name, keys)
        same = (n for n, key in enumerate(keys, given.first) if key not in known)
        stored = next(same, most)
        if stored < most:
            # Messages that were stored otherwise have other keys.
            for event in _appended(self._core, name, stored, most):
                at = event.position - given.first
                is_keyed = _is_chained(event.key or "", event.position)
                is_known = given.keys[at] in known
                if not (is_known or is_same(event.message, given.messages[at], is_keyed)):
                    break
                stored = event.position + 1
        return stored, state.length

    def _store(self, place: _Place, given: _List, start: int, original: OriginalOf | None) -> None:
        """Append the messages that a conversation lacks. ``start``: position of the first with a foreign form."""
        name, stored, owners = place.name, place.stored, Owners(self._owner, None)
        new, keys = given.messages[stored - given.first :], given.keys[stored - given.first :]
        forms = list(_with_originals(new, stored, start, original))
        if not stored and len(forms) > 1:
            # A list that began without refold is history.
            append(self._core, name, forms, key=keys, recorded=True, owners=owners)
            return
        for begin, stop in _parts(forms):
            part, own = forms[begin:stop], keys[begin:stop]
            try:
                append(self._core, name, part, key=own, owners=owners)
            except (InvalidMessage, UnknownToolCall):
                without = [_without_thinking(message) for message in part]
                append(self._core, name, without, key=own, recorded=True, owners=owners)


def _with_originals(
    new: Sequence[Given], stored: int, start: int, original: OriginalOf | None
) -> Iterator[Given]:
    for at, message in enumerate(new, stored):
        form = original(at - start) if original and at >= start else None
        yield message if form is None else {**message, "original": form}


def _parts(new: Sequence[Given]) -> Iterator[tuple[int, int]]:
    """Yield ranges that begin with each reply, whose thinking is judged by the state before it."""
    start = 0
    for stop in range(1, len(new) + 1):
        if stop == len(new) or new[stop].get("role") == "assistant":
            yield start, stop
            start = stop


def _appended(core: Core, name: str, first: int, stop: int) -> Iterator[MessageAppended]:
    """Yield the stored messages at these positions, oldest first."""
    rows = core.views.messages(name, first, first + 1) if first else ()
    version = core.log.load(name).state.version
    for page in core.log.pages(name, rows[0].version if rows else 1, version):
        for event in (logged.event for logged in page):
            if isinstance(event, MessageAppended) and first <= event.position < stop:
                yield event
                if event.position == stop - 1:
                    return


def _same_beginning(before: Followed | None, given: Sequence[Given]) -> int:
    """Return how many messages at the beginning are the same."""
    known = before.messages if before else ()
    pairs = enumerate(zip(known, given, strict=False))
    different = (n for n, (a, b) in pairs if a != b and meaning(a) != meaning(b))
    return next(different, min(len(known), len(given)))


def _keys(link: str, start: int, given: Sequence[Given]) -> list[str]:
    """Return the keys of messages from position ``start`` on. ``link``: key of the message before them."""
    digest, keys = link.partition(":")[2], list[str]()
    for position, message in enumerate(given, start):
        digest = sha256(f"{digest}{meaning(message)}".encode("utf-8", "surrogatepass")).hexdigest()
        keys.append(f"{position}:{digest}")
    return keys


def _is_chained(key: str, position: int) -> bool:
    """Return whether a key is that of the message at a position, made of all messages before it as well."""
    return _KEY.fullmatch(key) is not None and key.startswith(f"{position}:")


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


def _without_thinking(message: Given) -> Given:
    content = message.get("content")
    if not is_list(content):
        return message
    kept = [b for b in content if not (is_object(b) and b.get("type") in THINKING)]
    return {**message, "content": kept}
