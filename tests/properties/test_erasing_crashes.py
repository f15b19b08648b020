"""A state machine that forks and erases and may die at any moment: what is erased is nowhere (15)."""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,  # pyright: ignore[reportUnknownVariableType]
)

from refold.application.errors import ThreadExists
from refold.domain.errors import ConversationGone, InvalidMessage
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.dying import Moment, torn, traced, watched, write_files
from tests.support.effort import one_in
from tests.support.forgetting import Said, Talk, Talks, World, check, related
from tests.support.witness import SHM

NUMBERS = st.integers(0, 60)
DEATHS = st.lists(NUMBERS, min_size=1, max_size=2)
SHARES = st.sampled_from((0.5, 0.01, 0.99))
WHERE = st.lists(NUMBERS, min_size=1, max_size=3, unique=True)
MOST = 5
"""Conversations: more would only take longer."""


class Forgetting(RuleBasedStateMachine):
    """Some conversations in one log, through many lives, each in a folder of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.root = tempfile.TemporaryDirectory(dir=SHM)
        self.lives = 0
        self.tracing = traced()
        self.tracing.__enter__()

    @initialize(exchanges=st.integers(1, 6))
    def begin(self, exchanges: int) -> None:
        folder = self.next_folder()
        folder.mkdir()
        self.world = World(folder)
        self.world.talks["talk"] = Talk()
        said = [one for _ in range(exchanges) for one in self.world.exchange()]
        _say(self.world, "talk", said)
        self.world.talks["talk"] = Talk(tuple(said))

    def next_folder(self) -> Path:
        self.lives += 1
        return Path(self.root.name) / f"life-{self.lives}"

    def do(
        self, deed: Callable[[World], object], after: Talks, deaths: list[int], share: float
    ) -> None:
        """Do a deed; look at worlds in which it was cut short, and live on in the last of them."""
        before, acknowledged = dict(self.world.talks), list[bool]()
        with watched(self.world.folder, lambda: bool(acknowledged)) as moments:
            deed(self.world)
            acknowledged.append(True)
        self.world.talks = dict(after)
        check(self.world, after)
        possible = [*moments[1:], *torn(moments, share)]
        if len({frozenset(m.files.items()) for m in moments}) == 1:
            return
        for number in deaths:
            moment = possible[number % len(possible)]
            world = self.life_after(moment, deed, before, after)
            self.world.memory.close()
            self.world = world

    def life_after(
        self, moment: Moment[bool], deed: Callable[[World], object], before: Talks, after: Talks
    ) -> World:
        folder = self.next_folder()
        write_files(moment.files, folder)
        world = self.world.after_death(folder)
        try:
            check(world, after if moment.known else _settled(world, before, after))
            # Whoever got no answer asks again.
            with suppress(ThreadExists):
                deed(world)
            check(world, after)
        except BaseException as error:
            error.add_note(f"died before: {moment.before}")
            world.memory.close()
            raise
        world.talks = dict(after)
        return world

    def thread(self, number: int) -> str:
        """One of the conversations that are there."""
        threads = [thread for thread, talk in self.world.talks.items() if not talk.is_gone]
        return threads[number % len(threads)]

    @rule(number=NUMBERS, exchanges=st.integers(1, 4), deaths=DEATHS, share=SHARES)
    def talk(self, number: int, exchanges: int, deaths: list[int], share: float) -> None:
        thread = self.thread(number)
        said = [one for _ in range(exchanges) for one in self.world.exchange()]
        old = self.world.talks[thread]
        after = {**self.world.talks, thread: replace(old, said=(*old.said, *said))}
        self.do(lambda world: _say(world, thread, said), after, deaths, share)

    @rule(number=NUMBERS, deaths=DEATHS, share=SHARES)
    def compact(self, number: int, deaths: list[int], share: float) -> None:
        thread = self.thread(number)
        self.do(
            lambda world: world.memory.conversation(thread).compact(force=True),
            self.world.talks,
            deaths,
            share,
        )

    @rule(number=NUMBERS, where=NUMBERS, undo=st.booleans())
    def pin_and_ask(self, number: int, where: int, undo: bool) -> None:
        thread = self.thread(number)
        conversation = self.world.memory.conversation(thread)
        with suppress(InvalidMessage):
            conversation.pin(where % len(self.world.talks[thread].said))
        conversation.context()
        if undo:
            conversation.revert_compaction()
        check(self.world, self.world.talks)

    @rule(number=NUMBERS, where=WHERE, fork=st.booleans(), deaths=DEATHS, share=SHARES)
    def summarise_and_erase(
        self, number: int, where: list[int], fork: bool, deaths: list[int], share: float
    ) -> None:
        """What is erased is in a summary, a pin, read models and maybe a copy."""
        thread = self.thread(number)
        said = [one for _ in range(3) for one in self.world.exchange()]
        old = self.world.talks[thread]
        _say(self.world, thread, said)
        self.world.talks[thread] = replace(old, said=(*old.said, *said))
        conversation = self.world.memory.conversation(thread)
        with suppress(InvalidMessage):
            conversation.pin(where[0] % len(old.said))
        conversation.compact(force=True)
        conversation.summaries()
        if fork and len(self.world.talks) < MOST:
            into = f"fork-{len(self.world.talks)}"
            conversation.fork(thread_id=into)
            self.world.talks[into] = replace(self.world.talks[thread], source=thread)
        self.erase(number, where, deaths, share)

    @precondition(lambda self: len(self.world.talks) < MOST)
    @rule(number=NUMBERS, back=st.sampled_from((0, 0, 1, 5, 12)), deaths=DEATHS)
    def fork(self, number: int, back: int, deaths: list[int]) -> None:
        source = self.thread(number)
        conversation, into = self.world.memory.conversation(source), f"fork-{len(self.world.talks)}"
        version = max(1, conversation.version - back)
        old = self.world.talks[source]
        said = old.said[: _length_at(self.world, source, version)]
        copied = Talk(said, old.erased & {s.word for s in said}, source)
        self.do(
            lambda world: world.memory.conversation(source).fork(at=version, thread_id=into),
            {**self.world.talks, into: copied},
            deaths,
            0.5,
        )

    @rule(number=NUMBERS, where=WHERE, deaths=DEATHS, share=SHARES)
    def erase(self, number: int, where: list[int], deaths: list[int], share: float) -> None:
        thread = self.thread(number)
        said = self.world.talks[thread].said
        positions = sorted({n % len(said) for n in where})
        words = {said[position].word for position in positions}
        after = {
            other: replace(talk, erased=talk.erased | (words & talk.words))
            for other, talk in self.world.talks.items()
        }

        def erase(world: World) -> None:
            report = world.memory.conversation(thread).erase(positions, "asked to")
            assert report.complete, "nobody is reading, and it is not complete"

        self.do(erase, after, deaths, share)

    @precondition(lambda self: self.living() > 1)
    @rule(number=NUMBERS, deaths=DEATHS, share=SHARES)
    def erase_all(self, number: int, deaths: list[int], share: float) -> None:
        thread = self.thread(number)
        talks = dict(self.world.talks)
        words = talks[thread].words
        for other in related(self.world.talks, thread):
            if not talks[other].is_gone:
                talk = talks[other]
                talks[other] = replace(talk, erased=talk.erased | (words & talk.words))
        talks[thread] = replace(talks[thread], is_gone=True)

        def erase(world: World) -> None:
            assert world.memory.erase_conversation(thread, "asked to").complete

        self.do(erase, talks, deaths, share)

    def living(self) -> int:
        return sum(not talk.is_gone for talk in self.world.talks.values())

    def teardown(self) -> None:
        try:
            if hasattr(self, "world"):
                check(self.world, self.world.talks)
                self.world.memory.close()
        finally:
            self.tracing.__exit__(None, None, None)
            self.root.cleanup()


def _say(world: World, thread: str, said: list[Said]) -> None:
    conversation = world.memory.conversation(thread)
    stored = conversation.append([one.message for one in said], key=[one.key for one in said])
    assert len({m.new for m in stored.messages}) == 1, "a part of them was stored before"


def _settled(world: World, before: Talks, after: Talks) -> Talks:
    """What there is of a deed that nobody acknowledged: all as before it, or all as after."""
    if all(_is_as(world, thread, talk) for thread, talk in after.items()):
        return after
    return before


def _is_as(world: World, thread: str, talk: Talk) -> bool:
    conversation = world.memory.conversation(thread)
    try:
        conversation.context(at=conversation.version)
    except ConversationGone:
        return talk.is_gone
    erased = [said.word in talk.erased for said in talk.said]
    return not talk.is_gone and [found.erased for found in conversation.messages()] == erased


def _length_at(world: World, thread: str, version: int) -> int:
    """How many messages there were at a version."""
    log = SQLiteLog(world.path)
    try:
        return log.load(thread, at=version).state.length
    finally:
        log.close()


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
def test_what_is_erased_is_nowhere_whenever_the_process_dies() -> None:
    # Every file and every conversation is read after each step: 10 examples where the profile says 300.
    run_state_machine_as_test(Forgetting, settings=one_in(30, stateful_step_count=8))
