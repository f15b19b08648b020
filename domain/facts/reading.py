"""Read the facts of messages: one pass over each message."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from operator import attrgetter
from typing import NamedTuple
from weakref import ref

from refold.domain.messages import Message

from .composed_names import facts_of_names, forget_names
from .cues import forget_judged
from .fact import Fact, ResultNames
from .message_reader import MessageRead, MessageReader, ReadCall
from .speech import forget_sentences
from .statements import closing_of

Place = tuple[int, Message]
"""A position with its message."""


class MessagesRead(NamedTuple):
    """Facts and calls that were read from messages, oldest first."""

    has_tools: bool = False
    """Whether tools are used. If not, "must" and "always" are mostly small talk."""
    facts: tuple[Fact, ...] = ()
    """All facts but ``names``."""
    calls: tuple[ReadCall, ...] = ()
    """Calls in the order of their results; those without a result last."""
    names: tuple[ResultNames, ...] = ()
    """Names in tool results, most of what is read. A request to a summariser has them among its ``facts``."""

    def of(self, positions: Collection[int]) -> "MessagesRead":
        """Return the facts and calls of the messages at these positions."""
        return MessagesRead(
            self.has_tools,
            tuple([fact for fact in self.facts if fact.position in positions]),
            tuple([call for call in self.calls if call.position in positions]),
            tuple([names for names in self.names if names.position in positions]),
        )

    def with_named_facts(self) -> "MessagesRead":
        """Return the same with the names as facts. Those of a message follow its other facts."""
        named = [facts_of_names(names, position, "result") for position, names in self.names]
        facts = sorted(chain(self.facts, *named), key=attrgetter("position"))
        return MessagesRead(self.has_tools, tuple(facts), self.calls)


def read_messages(messages: Iterable[Place]) -> MessagesRead:
    """Read messages, oldest first. Calls and their results must be together.

    Texts that look like credentials become no facts. Each message has a fact once.
    """
    return ReadOnce().read(messages)


def read_facts(messages: Iterable[Place]) -> tuple[Fact, ...]:
    """Return all facts of these messages, oldest first. Calls and their results must be together."""
    return read_messages(messages).with_named_facts().facts


Rules = Callable[[Iterable[Place]], Sequence[Fact]]
"""Rules that read facts from messages, oldest first."""

RELEASED: dict[str, Rules] = {"1": read_facts}
"""Rules of each version of the extractor, the newest last. Decisions store what they show, so that rules may change."""


def uses_tools(messages: Iterable[Message]) -> bool:
    """Return whether one of these messages calls a tool."""
    return any(b.get("type") == "tool_use" for message in messages for b in message.blocks())


class _Read(ref[Message]):
    """A reference to a message that was read."""

    __slots__ = ("key",)
    key: int


class _Known(NamedTuple):
    message: _Read
    position: int
    has_tools: bool
    read: MessageRead


class ReadOnce:
    """Reads messages, and remembers what it read.

    What was read from a message that is no longer in memory is forgotten with the next reading.
    """

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        self._gone: deque[_Read] = deque()
        """References whose messages are no longer in memory. Only the next reading looks at them."""

    def read(self, messages: Iterable[Place]) -> MessagesRead:
        """Return the facts and calls of messages, as ``read_messages`` does."""
        sources = list(messages)
        self._forget_gone()
        has_tools = uses_tools(message for _, message in sources)
        reader = MessageReader(conversation=not has_tools)
        facts, names, calls = list[Fact](), list[ResultNames](), list[ReadCall]()
        for position, message in sources:
            read = self._find(position, message, has_tools)
            if read is None:
                read = reader.read(position, message)
                self._remember(position, message, has_tools, read)
            if read.opened or read.answered:
                reader.follow(read)
                calls += [call for _, call in read.answered]
            facts += read.facts
            if read.names:
                names.append(ResultNames(position, read.names))
        calls += reader.open.values()
        return MessagesRead(has_tools, tuple(facts), tuple(calls), tuple(names))

    def read_ahead(self, messages: Iterable[Place], span: range) -> None:
        """Read the messages at positions ``span``, so that a later reading of all these messages is faster."""
        sources = list(messages)
        self._forget_gone()
        has_tools = uses_tools(message for _, message in sources)
        reader = MessageReader(conversation=not has_tools)
        for position, message in sources:
            if position >= span.stop:
                break
            read = self._find(position, message, has_tools)
            if read is None and position in span:
                read = reader.read(position, message)
                # Calls before the span may be unknown here, but not to a later reading.
                if all(call.is_known for _, call in read.answered):
                    self._remember(position, message, has_tools, read)
            if read is not None:
                reader.follow(read)

    def _find(self, position: int, message: Message, has_tools: bool) -> MessageRead | None:
        known = self._known.get(id(message))
        if known is None or known.position != position or known.has_tools != has_tools:
            return None
        return known.read if known.message() is message else None

    def _remember(
        self, position: int, message: Message, has_tools: bool, read: MessageRead
    ) -> None:
        # A callback of Python code would run in the thread that drops the message, such as an event loop's.
        known = _Read(message, self._gone.append)
        known.key = id(message)
        self._known[known.key] = _Known(known, position, has_tools, read)

    def _forget_gone(self) -> None:
        """Forget messages that are no longer in memory. The others are not looked at: they may be many."""
        with suppress(IndexError):  # Another thread may have taken the last one.
            while self._gone:
                gone = self._gone.popleft()
                known = self._known.get(gone.key)
                # A new message may have the same address.
                if known is not None and known.message is gone:
                    self._known.pop(gone.key, None)

    def forget(self) -> None:
        """Forget everything that was read."""
        self._known.clear()
        forget_sentences()
        forget_judged()
        forget_names()
        closing_of.cache_clear()
