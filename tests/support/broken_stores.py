"""Stores that break one thing each: in a conversation, in a memory, or in the log."""

import dataclasses
import threading
import time
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import refold
from refold.application.ports.conversation_log import ConversationLog, Decision
from refold.domain.value import replace
from refold.infrastructure.bootstrap import open_core


def is_list(value: object) -> bool:
    return isinstance(value, list)


def as_list(value: object) -> list[Any]:
    """What is a list already, for type checkers."""
    return cast("list[Any]", value)


class Talk:
    """A conversation in another's place; subclasses break one thing."""

    def __init__(self, inner: Any, store: "Store") -> None:
        self.inner = inner
        self.store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def version(self) -> int:
        return cast("int", self.inner.version)

    def append(self, message: Any, **how: Any) -> Any:
        return self.inner.append(message, **how)

    def messages(self) -> Any:
        return self.inner.messages()


class Store:
    """A memory in another's place."""

    talk: type[Talk] = Talk

    def __init__(self, inner: refold.Memory) -> None:
        self.inner = inner
        self.state: dict[str, Any] = {}
        """What a broken one keeps in this memory alone."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def conversation(self, thread_id: str) -> Any:
        return self.talk(self.inner.conversation(thread_id), self)


def changed(message: Any, change: Callable[[Any], Any]) -> Any:
    """A message, or a list of them, with its texts changed."""
    if is_list(message):
        return [changed(one, change) for one in as_list(message)]
    if isinstance(message["content"], str):
        return {**message, "content": change(message["content"])}
    return message


def fake(talk: Any, message: Any) -> refold.Appended:
    """What an append would answer that is not stored."""
    count = len(as_list(message)) if is_list(message) else 1
    first = len(talk.inner.messages())
    stored = tuple(
        refold.AppendedMessage(position=first + n, message_id=f"m-{n}", tokens=5, new=True)
        for n in range(count)
    )
    version = talk.inner.version + count
    return refold.Appended(thread_id=talk.inner.thread_id, version=version, messages=stored)


class Losing(Talk):
    count = 0

    def append(self, message: Any, **how: Any) -> Any:
        Losing.count += 1
        return fake(self, message) if Losing.count % 7 == 0 else super().append(message, **how)


class Buffered(Talk):
    """Acknowledges first, and stores what was acknowledged when it is asked or closed."""

    def append(self, message: Any, **how: Any) -> Any:
        waiting = self.store.state.setdefault(self.inner.thread_id, [])
        if waiting:
            self.flush()
        waiting.append((message, how))
        return fake(self, message)

    def flush(self) -> None:
        waiting = self.store.state.get(self.inner.thread_id, [])
        while waiting:
            message, how = waiting.pop(0)
            self.inner.append(message, **how)

    @property
    def version(self) -> int:
        self.flush()
        return super().version

    def messages(self) -> Any:
        self.flush()
        return super().messages()


class Stale(Talk):
    def messages(self) -> Any:
        seen = self.store.state.setdefault(self.inner.thread_id, super().messages())
        return seen if len(seen) % 2 else super().messages()


class StaleVersion(Talk):
    @property
    def version(self) -> int:
        return cast("int", self.store.state.setdefault(self.inner.thread_id, self.inner.version))


class WithoutKeys(Talk):
    def append(self, message: Any, **how: Any) -> Any:
        return super().append(message, **{**how, "key": None})


class GlobalKeys(Talk):
    known: ClassVar[dict[Any, Any]] = {}

    def append(self, message: Any, **how: Any) -> Any:
        key = how.get("key")
        if not isinstance(key, str):
            return super().append(message, **how)
        if key not in self.known:
            self.known[key] = super().append(message, **how)
        first = self.known[key].messages[0]
        return replace(self.known[key], messages=(replace(first, new=False),))


class FirstKeyAlone(Talk):
    """Takes another message with a known key for the same one."""

    def append(self, message: Any, **how: Any) -> Any:
        try:
            return super().append(message, **how)
        except refold.KeyReused:
            return fake(self, message)


class WithoutVersions(Talk):
    def append(self, message: Any, **how: Any) -> Any:
        return super().append(message, **{**how, "expected_version": None})


class Truncating(Talk):
    def append(self, message: Any, **how: Any) -> Any:
        return super().append(changed(message, lambda text: text[:65_535]), **how)


class Ascii(Talk):
    def append(self, message: Any, **how: Any) -> Any:
        plain = changed(message, lambda text: text.encode("ascii", "replace").decode())
        return super().append(plain, **how)


class Normalising(Talk):
    def append(self, message: Any, **how: Any) -> Any:
        plain = changed(message, lambda text: unicodedata.normalize("NFC", text))
        return super().append(plain, **how)


class Stripping(Talk):
    def append(self, message: Any, **how: Any) -> Any:
        return super().append(changed(message, lambda text: text.strip() or text), **how)


class Sorting(Talk):
    """Keeps JSON with its keys sorted."""

    def append(self, message: Any, **how: Any) -> Any:
        if is_list(message):
            return super().append([self.sorted(one) for one in as_list(message)], **how)
        return super().append(self.sorted(message), **how)

    def sorted(self, value: Any) -> Any:
        if isinstance(value, dict):
            pairs = cast("dict[str, Any]", value).items()
            return {key: self.sorted(inner) for key, inner in sorted(pairs)}
        if is_list(value):
            return [self.sorted(inner) for inner in as_list(value)]
        return value


class Reordering(Talk):
    def messages(self) -> Any:
        found = super().messages()
        return found[::-1] if len(found) > 9 else found


class OneByOne(Talk):
    def append(self, message: Any, **how: Any) -> Any:
        if not is_list(message) or how:
            return super().append(message, **how)
        answers = [self.inner.append(one) for one in as_list(message)]
        return replace(answers[-1], messages=tuple(m for a in answers for m in a.messages))


class Doubling(Talk):
    def append(self, message: Any, **how: Any) -> Any:
        appended = super().append(message, **how)
        if how.get("expected_version") is not None:
            super().append({"role": "user", "content": "again"})
        return appended


class WithoutExtras(Talk):
    def append(self, message: Any, **how: Any) -> Any:
        return super().append(message, **{**how, "author": None})


class Aliasing(Talk):
    def messages(self) -> Any:
        kept = self.store.state.setdefault(self.inner.thread_id, {})
        return [kept.setdefault(one.position, one) for one in super().messages()]


class Swallowing(Talk):
    """Says that all is well, whatever happens."""

    def append(self, message: Any, **how: Any) -> Any:
        try:
            return super().append(message, **how)
        except refold.RefoldError:
            return fake(self, message)


class PresentAlone(Talk):
    def context(self, *, at: object = None, **how: Any) -> Any:
        return self.inner.context(**how)


class NeverErasing(Talk):
    def erase(self, where: object) -> None:
        del where


class NeverPinning(Talk):
    def pins(self) -> Sequence[Any]:
        return ()


class ForkingIntoItself(Talk):
    def fork(self, **how: Any) -> Any:
        self.inner.fork(**how)
        return self.inner


class NoSummaries(Talk):
    def summaries(self) -> Sequence[Any]:
        return ()


class Hanging(Talk):
    def append(self, message: Any, **how: Any) -> Any:
        threading.Event().wait(2.5)
        return super().append(message, **how)


class Failing(Talk):
    def append(self, message: Any, **how: Any) -> Any:
        if "🇨🇳" in str(message):
            raise ValueError("bad character")
        return super().append(message, **how)


def by_talk(talk: type[Talk]) -> Callable[[Path], Any]:
    class Broken(Store):
        pass

    Broken.talk = talk
    Broken.__name__ = talk.__name__
    return lambda place: Broken(refold.open(place, window=8_000, scrub_megabytes=0))


class Lowering(Store):
    """Keeps ids as a column without case."""

    def conversation(self, thread_id: str) -> Any:
        return self.inner.conversation(thread_id.lower())


class Trimming(Store):
    def conversation(self, thread_id: str) -> Any:
        return self.inner.conversation(thread_id.strip())


class Listing(Store):
    def conversations(self) -> Sequence[Any]:
        return cast("Sequence[Any]", self.inner.conversations()[:3])


class RacingLog:
    """Decides on what it loaded, and stores what was decided whatever happened since."""

    def __init__(self, inner: ConversationLog) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def transact(self, thread_id: str, decide: Decision, *, at: Any) -> Any:
        events = decide(self.inner.load(thread_id))
        time.sleep(0.003)
        return self.inner.transact(thread_id, lambda _: events, at=at)


class SkippingLog(RacingLog):
    """Gives back all events of a stream but the third."""

    def load(self, thread_id: str, *, at: int | None = None) -> Any:
        version = at if at is not None else self.inner.load(thread_id).state.version
        return self.inner.load(thread_id, at=version - 1 if version > 3 else version)

    def transact(self, thread_id: str, decide: Decision, *, at: Any) -> Any:
        return self.inner.transact(thread_id, decide, at=at)


def by_log(log: Callable[[ConversationLog], Any]) -> Callable[[Path], refold.Memory]:
    def open_memory(place: Path) -> refold.Memory:
        core = open_core(place, window=8_000, scrub_megabytes=0)
        return refold.Memory(dataclasses.replace(core, log=log(core.log)))

    return open_memory


def by_store(store: type[Store]) -> Callable[[Path], Any]:
    return lambda place: store(refold.open(place, window=8_000, scrub_megabytes=0))


def elsewhere(place: Path) -> Any:
    return refold.open(place.with_name(f"{time.time_ns()}.db"), window=8_000)
