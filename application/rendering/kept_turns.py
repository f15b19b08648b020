"""Keep the turns of the newest requests, so that the next request of a conversation adds only what is new."""

import threading
from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Generic, NamedTuple, TypeVar, cast

from refold.application.conversation.addresses import address_of
from refold.application.conversation.entries import Entry, LongEntries
from refold.application.conversation.loaded import Window
from refold.domain.messages import Block

from .turn_builder import TurnBuilder

Value = TypeVar("Value")
Size = tuple[int, int]
"""Tokens of a request, and an upper bound of its bytes."""
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


class _Newest(Generic[Value]):
    """A value for each of the conversations that were used last. Threads may share this object."""

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}
        self._threads = threading.Lock()

    def take(self, thread_id: str) -> Value | None:
        """Remove the value of a conversation and return it, or None without one."""
        with self._threads:
            return self._values.pop(thread_id, None)

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
            known = window, make()
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

    def memory(self, thread_id: str, made_of: object, make: Callable[[], Value]) -> Value:
        """Return what ``make`` returned the last time, or call it again if ``made_of`` differs."""
        known = self._memories.take(thread_id)
        if known is None or known[0] != made_of:
            known = made_of, make()
        self._memories.put(thread_id, known)
        return cast(Value, known[1])

    def forget(self, thread_id: str) -> None:
        """Forget the turns of a conversation."""
        self._turns.take(thread_id)
        self._sizes.take(thread_id)
        self._memories.take(thread_id)
