"""Keep the turns of the newest requests, so that the next request of a conversation adds only what is new."""

import threading
from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Generic, NamedTuple, TypeVar, cast

from refold.application.conversation.addresses import address_of
from refold.application.conversation.entries import Entry, LongEntries, Preview, PreviewKey
from refold.application.conversation.loaded import Window
from refold.application.conversation.recalled_texts import RecalledText
from refold.domain.messages import THINKING, Block, text_of
from refold.domain.value import byte_size, is_list, is_object

from .shortened_blocks import shorten_block
from .turn_builder import TurnBuilder

Value = TypeVar("Value")
Size = tuple[int, int, int]
"""Tokens of a request, an upper bound of its bytes, and the number of its images and documents."""
MOST = 32
"""Number of conversations whose turns are kept."""


class Shown(NamedTuple):
    """All that the turns of a request are made of."""

    window: Window
    entries: Sequence[Entry]
    """Messages that become turns: those of the window without its preamble."""
    opening: Sequence[Block]
    """Blocks that the first turn begins with."""
    lines: Mapping[int, str]
    """Texts of recalled lines by position."""
    measure: Callable[[str], int]
    """Counts the tokens of a text that rendering adds."""

    def build(self, thread_id: str) -> TurnBuilder:
        """Return a builder that has everything."""
        builder = TurnBuilder(
            self.window, lambda position: address_of(thread_id, position), self.measure, self.lines
        )
        builder.open(self.opening)
        builder.add(self.entries)
        return builder


class _Kept(NamedTuple):
    shown: Shown
    """The content of the builder."""
    builder: TurnBuilder

    def go_on(self, now: Shown) -> TurnBuilder | None:
        """Return the builder with what ``now`` has in addition, or None if anything else differs."""
        was, length = self.shown, len(self.shown.entries)
        if not 0 < length <= len(now.entries) or not _agree(was, now):
            return None
        if not all(map(is_, was.entries, now.entries)):
            return None
        newest = was.entries[-1]
        lines = {at: text for at, text in now.lines.items() if at <= newest.position}
        # Only the newest message can have got lines since then: its turn is still open.
        added = None if newest.position in was.lines else lines.pop(newest.position, None)
        if lines != was.lines or (added and newest.message.role != "user"):
            return None
        self.builder.go_on(now.window, now.lines)
        if added:
            self.builder.add_lines(added)
        self.builder.add(now.entries[length:])
        return self.builder


def _agree(was: Shown, now: Shown) -> bool:
    """Return whether these make the same turns of the same messages."""
    return (
        was.window.thinking_from == now.window.thinking_from
        and was.window.thoughts_once == now.window.thoughts_once
        and (
            was.window.previews is now.window.previews or was.window.previews == now.window.previews
        )
        and was.opening == now.opening
        and was.measure == now.measure
    )


_Lines = tuple[Sequence[RecalledText], str]
"""Recalled lines of a message, and how they are shown."""


class _Newest(Generic[Value]):
    """A value for each of the conversations that were used last. Threads may share this object."""

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}
        self._threads = threading.Lock()

    def take(self, thread_id: str) -> Value | None:
        """Remove the value of a conversation and return it, or None without one."""
        with self._threads:
            return self._values.pop(thread_id, None)

    def has(self, thread_id: str) -> bool:
        """Return whether there is a value for a conversation."""
        return thread_id in self._values

    def put(self, thread_id: str, value: Value) -> None:
        """Keep a value. Drop the one that was kept longest if there are too many."""
        with self._threads:
            self._values[thread_id] = value
            if len(self._values) > MOST:
                del self._values[next(iter(self._values))]


class KeptTurns:
    """The unfinished turns of the newest request of each conversation, and what replaces older messages in it."""

    def __init__(self) -> None:
        self._turns = _Newest[_Kept]()
        self._memories = _Newest[tuple[object, object]]()
        self._lines = _Newest[dict[int, _Lines]]()
        self._sizes = _Newest[tuple[Window, Size]]()
        self._gives = True

    def measuring(self) -> "KeptTurns":
        """Return the same for requests that are only measured. Their turns must not be given away."""
        measuring = KeptTurns.__new__(KeptTurns)
        measuring.__dict__.update(self.__dict__, _gives=False)
        return measuring

    def size(self, thread_id: str, window: Window, make: Callable[[], Size]) -> Size:
        """Return the size of the request for a window, which ``make`` returns if it is not known."""
        if window.recalled or isinstance(window.entries, LongEntries):
            return make()
        known = self._sizes.take(thread_id)
        if known is None or known[0] is not window:
            size = None if known is None else resize(thread_id, known[1], known[0], window)
            known = window, make() if size is None else size
        self._sizes.put(thread_id, known)
        return known[1]

    def build(self, thread_id: str, shown: Shown) -> TurnBuilder:
        """Return a builder that has everything and may be finished. Its turns belong to the caller."""
        kept = self._turns.take(thread_id)
        builder = kept and kept.go_on(shown)
        if builder is None:
            builder = shown.build(thread_id)
        # Messages that are not in memory must not stay there.
        if not builder.may_go_on or isinstance(shown.window.entries, LongEntries):
            return builder
        fork = builder.fork() if self._gives else builder.measured()
        self._turns.put(thread_id, _Kept(shown, builder))
        return fork

    def has(self, thread_id: str) -> bool:
        """Return whether the turns of a conversation are kept, so that its next request is made fast."""
        return self._turns.has(thread_id)

    def memory(self, thread_id: str, made_of: object, make: Callable[[], Value]) -> Value:
        """Return what ``make`` returned the last time, or call it again if ``made_of`` differs."""
        known = self._memories.take(thread_id)
        if known is None or known[0] != made_of:
            known = made_of, make()
        self._memories.put(thread_id, known)
        return cast(Value, known[1])

    def lines(
        self,
        thread_id: str,
        recalled: Mapping[int, Sequence[RecalledText]],
        make: Callable[[Sequence[RecalledText]], str],
    ) -> dict[int, str]:
        """Return the texts of recalled lines. ``make`` is called for those that the last request did not have."""
        before = self._lines.take(thread_id) or {}
        if not recalled:
            return {}
        now: dict[int, _Lines] = {}
        for at, found in recalled.items():
            known = before.get(at)
            now[at] = known if known and known[0] is found else (found, make(found))
        self._lines.put(thread_id, now)
        return {at: text for at, (_, text) in now.items() if text}

    def forget(self, thread_id: str) -> None:
        """Forget the turns of a conversation."""
        self._lines.take(thread_id)
        self._turns.take(thread_id)
        self._sizes.take(thread_id)
        self._memories.take(thread_id)


def resize(thread_id: str, size: Size, was: Window, now: Window) -> Size | None:
    """Return the size of a request from that of one that shows only parts of tool calls in another length.

    Return None if anything else differs, or if it is not certain that nothing else is shown in another way.
    """
    if not _have_same_texts(was, now):
        return None
    before, after = was.previews, now.previews
    changed = {key for key in {**before, **after} if _look(before, key) != _look(after, key)}
    left, weight = set(changed), size[1]
    at = {position for position, _, _ in changed}
    for entry in [entry for entry in now.entries if entry.position in at]:
        address = address_of(thread_id, entry.position)
        for block in entry.message.blocks():
            key = _plain_part(entry, block)
            if key in changed:
                left.discard(key)
                weight += _bytes_of(block, after.get(key), address)
                weight -= _bytes_of(block, before.get(key), address)
    return None if left else (size[0] + _freed(before) - _freed(after), weight, size[2])


def _have_same_texts(was: Window, now: Window) -> bool:
    """Return whether two windows differ at most in how parts are shortened, and in thinking that no message has."""
    shows_thinking = was.thinking_from, was.thoughts_once
    return (
        was.summary is now.summary
        and was.pins == now.pins
        and was.memories is now.memories
        and not was.recalled
        and len(was.entries) == len(now.entries)
        and all(map(is_, was.entries, now.entries))
        and (
            shows_thinking == (now.thinking_from, now.thoughts_once)
            or not any(map(_has_thinking, now.entries))
        )
    )


def _has_thinking(entry: Entry) -> bool:
    return entry.thinking > 0 or any(b.get("type") in THINKING for b in entry.message.blocks())


def _look(previews: Mapping[PreviewKey, Preview], key: PreviewKey) -> Preview | None:
    preview = previews.get(key)
    return preview and preview._replace(tokens_freed=0)


def _plain_part(entry: Entry, block: Block) -> PreviewKey | None:
    """Return the key of a call, or of a result that is only text, or None for other blocks."""
    kind, role = block.get("type"), entry.message.role
    if entry.message.unknown:
        return None
    if (kind, role) == ("tool_use", "assistant"):
        return entry.position, str(block.get("id")), "call"
    content = block.get("content")
    parts = content if is_list(content) else ()
    is_text = all(is_object(part) and part.get("type") == "text" for part in parts)
    if (kind, role) == ("tool_result", "user") and is_text and text_of(block).strip():
        return entry.position, str(block.get("tool_use_id")), "result"
    return None


def _bytes_of(block: Block, preview: Preview | None, address: str) -> int:
    return byte_size(block if preview is None else shorten_block(block, preview, address))


def _freed(previews: Mapping[PreviewKey, Preview]) -> int:
    return sum([preview.tokens_freed for preview in previews.values()])
