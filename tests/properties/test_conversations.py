"""A state machine talks, pins, compacts, erases, forks, crashes; the invariants hold after each step."""

import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,  # pyright: ignore[reportUnknownVariableType]
)

import refold
from refold.application.ports.summariser import Summariser
from refold.testing.history_layout import Step, number_through
from refold.testing.history_strategies import turns
from tests.support import deeds, erasing_deeds, lasting_deeds, overlapping_deeds
from tests.support.drawn_settings import (
    BOUNDED,
    MOMENTS,
    PINNED_TEXTS,
    POLICIES,
    SETTINGS,
    SUMMARISERS,
    WINDOWS,
    WORDS,
)
from tests.support.effort import one_in
from tests.support.fake_summarisers import GoodSummariser
from tests.support.invariants.rendered import the_request_fits
from tests.support.invariants.whole import all_hold, all_hold_in_hindsight
from tests.support.surroundings import Setting
from tests.support.witness import SHM, THREAD, Witness

# Deferred: their descriptions are longer than Hypothesis likes to print.
LIVE = st.deferred(lambda: turns(min_messages=2, max_messages=14, max_text=400, huge=3_000))
LONG = st.deferred(lambda: turns(min_messages=12, max_messages=24, max_text=400, huge=3_000))
RECORDED = st.deferred(
    lambda: turns(recorded=True, min_messages=2, max_messages=14, max_text=400, huge=3_000)
)
FOCI = st.sampled_from((None, deeds.FOCUS))
Make = Callable[[], Summariser]


class Talking(RuleBasedStateMachine):
    """One conversation with a small window in a file of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=SHM)
        self.script: deque[Step] = deque()
        self.recorded = False
        self.parts = 0
        self.checked = -1

    @initialize(
        window=WINDOWS, policy=POLICIES, setting=SETTINGS, steps=LONG, recorded=st.booleans()
    )
    def begin(
        self,
        window: int,
        policy: refold.CompactionPolicy,
        setting: Setting,
        steps: list[Step],
        recorded: bool,
    ) -> None:
        self.witness = Witness(Path(self.folder.name), window, policy, setting)
        self._play(steps, recorded=recorded, later=0)

    @precondition(lambda self: not self.script)
    @rule(steps=LIVE, later=st.sampled_from((0, 1, 2, 5)))
    def talk(self, steps: list[Step], later: int) -> None:
        self._play(steps, recorded=False, later=later)

    @precondition(lambda self: not self.script)
    @rule(steps=RECORDED, later=st.sampled_from((0, 1, 2, 5)))
    def replay_a_recording(self, steps: list[Step], later: int) -> None:
        self._play(steps, recorded=True, later=later)

    def _play(self, steps: list[Step], *, recorded: bool, later: int) -> None:
        """Append the steps but the last ones, which ``go_on`` appends one by one."""
        self.parts += 1
        self.script.extend(number_through(steps, len(self.witness.spoken), self.parts))
        self.recorded = recorded
        while len(self.script) > later:
            self.go_on()

    @precondition(lambda self: self.script)
    @rule()
    def go_on(self) -> None:
        step = self.script.popleft()
        if self.recorded:
            self.witness.append_recorded(step)
        else:
            self.witness.append(step)

    @rule(make=SUMMARISERS, focus=FOCI, force=st.booleans())
    def compact(self, make: Make, focus: str | None, force: bool) -> None:
        self.witness.summariser.current = make()
        deeds.compact(self.witness, focus, force=force)

    @rule(make=SUMMARISERS, elsewhere=st.booleans())
    def ask(self, make: Make, elsewhere: bool) -> None:
        self.witness.summariser.current = make()
        answer = deeds.ask(self.witness, elsewhere=elsewhere)
        if answer.context is not None:
            the_request_fits(self.witness, answer.context)

    @precondition(lambda self: not self.script)
    @rule(generations=st.integers(1, 4), make=SUMMARISERS, focus=FOCI)
    def compact_generations(self, generations: int, make: Make, focus: str | None) -> None:
        """Talk and compact, again and again: many summaries on one conversation are common."""
        for number in range(generations):
            self.witness.summariser.current = make() if number == 1 else GoodSummariser()
            for _ in range(3):
                self.witness.append(deeds.exchange(self.witness, 0.1))
            deeds.compact(self.witness, focus)
            self.all_invariants_hold()

    @precondition(lambda self: not self.script)
    @rule(generations=st.integers(1, 4), share=st.sampled_from((0.2, 0.5)), make=SUMMARISERS)
    def outgrow_the_window(self, generations: int, share: float, make: Make) -> None:
        """Talk until the context must be compacted to fit, again and again."""
        for _ in range(generations):
            self.witness.append(deeds.exchange(self.witness, share))
            deeds.append_elsewhere(self.witness, "And now?")
            self.ask(make, False)
            self.all_invariants_hold()

    @rule(again=st.booleans())
    def undo(self, again: bool) -> None:
        lasting_deeds.revert(self.witness)
        self.all_invariants_hold()
        if again:
            lasting_deeds.revert(self.witness)

    @precondition(lambda self: len(self.witness.pins) < lasting_deeds.MOST)
    @rule(where=st.integers(0, 200), result=st.booleans())
    def pin_a_message(self, where: int, result: bool) -> None:
        """Pin any message, or a tool result: that one the ladder would like to shorten."""
        results = [s.position for s in self.witness.spoken if result and s.results]
        among = results or range(len(self.witness.spoken))
        lasting_deeds.pin_message(self.witness, among[where % len(among)])

    @precondition(lambda self: len(self.witness.pins) < lasting_deeds.MOST)
    @rule(text=PINNED_TEXTS)
    def pin_a_text(self, text: str) -> None:
        lasting_deeds.pin_text(self.witness, text)

    @precondition(lambda self: self.witness.pins)
    @rule(number=st.integers(0, lasting_deeds.MOST))
    def unpin(self, number: int) -> None:
        lasting_deeds.unpin(self.witness, number)

    @precondition(lambda self: len(self.witness.pins) < lasting_deeds.MOST)
    @rule(
        tool=st.sampled_from(("remember", "quote", "pin", "forget")),
        where=st.integers(0, 200),
        decision=st.sampled_from(("at once", "allowed", "refused", "later")),
    )
    def edit(self, tool: str, where: int, decision: lasting_deeds.Decision) -> None:
        """A model edits its memory; it erases nothing at once, which ``erase`` does."""
        decision = "later" if tool == "forget" and decision == "at once" else decision
        lasting_deeds.edit(self.witness, tool, where % len(self.witness.spoken), decision)

    @rule(
        aim=st.sampled_from(("covered", "covered", "pinned", "any")),
        numbers=st.lists(st.integers(0, 200), min_size=1, max_size=3),
        copy=st.booleans(),
    )
    def erase(self, aim: erasing_deeds.Aim, numbers: list[int], copy: bool) -> None:
        """Erase messages, here or through a copy that has them as well."""
        positions = erasing_deeds.aimed_at(self.witness, aim, numbers)
        fork = [THREAD, *self.witness.forks][-1 if copy else 0]
        shared = erasing_deeds.shared_with(self.witness, fork)
        through = fork if max(positions) < shared else THREAD
        erasing_deeds.erase(self.witness, positions, through=through)

    @precondition(lambda self: not self.script)
    @rule(make=SUMMARISERS)
    def erase_while_compacting(self, make: Make) -> None:
        """What the summariser is at work on is erased: its answer comes too late."""
        for _ in range(3):
            self.witness.append(deeds.exchange(self.witness, 0.1))
        overlapping_deeds.meanwhile(self.witness, make, ["erase"])

    @precondition(lambda self: len(self.witness.forks) < erasing_deeds.MOST_FORKS)
    @rule(back=st.sampled_from((0, 0, 3, 20)))
    def fork(self, back: int) -> None:
        erasing_deeds.fork(self.witness, back)

    @rule()
    def restart(self) -> None:
        self.witness.restart()
        self.checked = -1

    @rule()
    def change_places(self) -> None:
        """Another memory on the same file takes over."""
        self.witness.change_places()
        self.checked = -1

    @precondition(lambda self: not self.script)
    @rule(words=WORDS)
    def interrupt(self, words: str) -> None:
        deeds.deliver_twice(self.witness, words)
        deeds.append_elsewhere(self.witness, words)

    @rule(then=st.sampled_from(("gone", "wait", "")))
    def crash_while_compacting(self, then: str) -> None:
        overlapping_deeds.crash_while_compacting(self.witness, then)

    @rule(make=SUMMARISERS)
    def fill_the_disk(self, make: Make) -> None:
        self.witness.summariser.current = make()
        overlapping_deeds.fill_the_disk(self.witness)

    @precondition(lambda self: not self.script)
    @rule(make=SUMMARISERS, moments=MOMENTS)
    def do_more_while_compacting(self, make: Make, moments: list[str]) -> None:
        overlapping_deeds.meanwhile(self.witness, make, moments)

    @precondition(lambda self: not self.script)
    @rule(make=SUMMARISERS, moments=MOMENTS, close=st.booleans())
    def compact_in_the_background(self, make: Make, moments: list[str], close: bool) -> None:
        overlapping_deeds.compact_in_the_background(self.witness, make, moments, close=close)

    @rule(make=SUMMARISERS)
    def reject_then_accept(self, make: Make) -> None:
        self.witness.summariser.current = make()
        deeds.reject_then_accept(self.witness)

    @invariant()
    def all_invariants_hold(self) -> None:
        if (version := self.witness.conversation.version) != self.checked:
            all_hold(self.witness)
            self.checked = version

    def teardown(self) -> None:
        try:
            if hasattr(self, "witness"):
                all_hold_in_hindsight(self.witness)
                self.witness.close()
        finally:
            self.folder.cleanup()


class TalkingToASmallSummariser(Talking):
    """The same with a summariser that does not take everything at once (requirements C6 to C8)."""

    @initialize(
        window=WINDOWS, policy=POLICIES, setting=BOUNDED, steps=LONG, recorded=st.booleans()
    )
    def begin(
        self,
        window: int,
        policy: refold.CompactionPolicy,
        setting: Setting,
        steps: list[Step],
        recorded: bool,
    ) -> None:
        self.witness = Witness(Path(self.folder.name), window, policy, setting)
        self._play(steps, recorded=recorded, later=0)


# The steps of a failing example are long; they are what one wants to see then.
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("talking", [Talking, TalkingToASmallSummariser])
def test_the_invariants_hold_whatever_is_said_and_done(talking: type[Talking]) -> None:
    # A run costs some hundred commits and a thousand loads, a second or so: 30 where the profile says 300.
    run_state_machine_as_test(talking, settings=one_in(10, stateful_step_count=25))
