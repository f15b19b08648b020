"""Every version of a conversation is rendered as it was when it was the newest; a copy of it as well."""

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.results import Context
from refold.application.conversation.addresses import address_of
from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.conversation_log import Decision
from refold.application.rendering.render import Rendered, render
from refold.application.runtime.core import Core
from refold.domain.errors import ContextWindowExceeded, InvalidMessage
from refold.domain.events import Event
from refold.infrastructure.event_store.store import SQLiteLog
from tests.properties.test_fates import POLICY, WINDOW, done, moves
from tests.support.builders import NOON
from tests.support.effort import one_in
from tests.support.fake_ports import core_of

SOURCE = "谁 said it"
Moves = Sequence[tuple[str, int, int]]
steps = st.lists(st.integers(-5, 5).filter(bool), min_size=1, max_size=8)


@dataclass
class Jumping:
    """A clock that goes by these seconds in turn, back as well."""

    steps: Sequence[int]
    now: datetime = NOON
    asked: int = 0

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=self.steps[self.asked % len(self.steps)])
        self.asked += 1
        return self.now


@dataclass
class Told:
    """What was rendered when a version was the newest, and when that was logged."""

    at: datetime
    shown: bytes


class RememberingLog(SQLiteLog):
    """Renders the conversation after every transaction, from the state that is kept in memory."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.told: dict[str, dict[int, Told]] = {}
        self.count = core_of().counter.count_text

    def transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        loaded, events = super().transact(thread_id, decide, at=at)
        if events:
            made = render(thread_id, loaded.window, None, self.count)
            known = self.told.setdefault(thread_id, {})
            known[loaded.state.version] = Told(at, as_bytes(made))
        return loaded, events


def as_bytes(made: Rendered | Context, thread_id: str = SOURCE) -> bytes:
    """The request with its size; addresses as those of the source."""
    shown = json.dumps([made.system, made.messages, made.tokens], ensure_ascii=False)
    there, here = (address_of(name, 0).removesuffix("0") for name in (thread_id, SOURCE))
    return shown.replace(there, here).encode("utf-8", "surrogatepass")


@dataclass
class Played:
    """A conversation to which something happened."""

    log: RememberingLog
    core: Core
    runner: Runner

    def conversation(self, thread_id: str = SOURCE) -> ConversationMemory:
        return ConversationMemory(self.core, thread_id, self.runner)

    def every_version(self, thread_id: str = SOURCE, last: int | None = None) -> list[bytes]:
        conversation = self.conversation(thread_id)
        stop = (conversation.version if last is None else last) + 1
        return [as_bytes(conversation.context(at=version), thread_id) for version in range(stop)]

    def go_on(self, done_to: Moves, thread_id: str = SOURCE) -> None:
        conversation = self.conversation(thread_id)
        for move in done_to:
            try:
                done(conversation, *move)
            except (ContextWindowExceeded, InvalidMessage):
                continue


@contextmanager
def played(history: Moves, clock: Sequence[int] = (1,)) -> Generator[Played]:
    log, runner = RememberingLog(), Runner()
    core = replace(core_of(log, window=WINDOW, policy=POLICY), clock=Jumping(clock))
    made = Played(log, core, runner)
    try:
        made.go_on([("talk", 2, 2), *history])
        yield made
        assert list(log.check()) == []
    finally:
        runner.close()
        log.close()


histories = st.lists(moves, min_size=4, max_size=10)


@given(histories, steps)
def test_the_context_of_a_version_or_a_time_is_what_was_rendered_then(
    history: list[tuple[str, int, int]], clock: list[int]
) -> None:
    with played(history, clock) as it:
        conversation, told = it.conversation(), it.log.told[SOURCE]
        for version, then in told.items():
            assert as_bytes(conversation.context(at=version)) == then.shown, version
            newest = max(v for v, other in told.items() if other.at <= then.at)
            found = conversation.context(at=then.at)
            assert (found.version, as_bytes(found)) == (newest, told[newest].shown)
        first = min(then.at for then in told.values())
        assert conversation.context(at=first - timedelta(microseconds=1)).version == 0


@one_in(3)
@given(histories)
def test_a_fork_at_any_version_is_what_the_conversation_was(
    history: list[tuple[str, int, int]],
) -> None:
    with played(history) as it:
        before, newest = it.every_version(), it.conversation().version
        for version in range(1, newest + 1):
            thread_id = f"fork at {version}"
            fork = it.conversation().fork(at=version, thread_id=thread_id)
            is_open = it.log.load(SOURCE, at=version).state.attempt is not None
            assert fork.version == version + 1 + is_open
            assert it.log.load(thread_id).state.attempt is None
            for at in {version, version // 2}:
                there, here = it.log.load(SOURCE, at=at), it.log.load(thread_id, at=at)
                assert (here.state, here.window) == (there.state, there.window)
            assert as_bytes(fork.context(at=fork.version), thread_id) == before[version]
        assert it.every_version(f"fork at {newest}", newest) == before
        logged, copied = (it.log.read(t, 1, newest) for t in (SOURCE, f"fork at {newest}"))
        assert [(e.at, e.event) for e in copied] == [(e.at, e.event) for e in logged]


@one_in(3)
@given(histories, st.integers(1, 100), histories, histories)
def test_what_happens_in_a_fork_or_its_source_does_not_touch_the_other(
    history: list[tuple[str, int, int]],
    share: int,
    there: list[tuple[str, int, int]],
    here: list[tuple[str, int, int]],
) -> None:
    with played(history) as it:
        at = max(1, it.conversation().version * share // 100)
        it.conversation().fork(at=at, thread_id="copy")
        source, copy = it.every_version(), it.every_version("copy")
        it.go_on(there, "copy")
        assert it.every_version() == source
        assert it.every_version("copy")[: len(copy)] == copy
        copy = it.every_version("copy")
        it.go_on(here)
        assert it.every_version("copy") == copy
        assert it.every_version()[: len(source)] == source
