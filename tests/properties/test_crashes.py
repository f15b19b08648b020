"""A state machine whose process may die at any moment of any deed: nothing acknowledged is lost."""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
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

import refold
from refold.application.ports.summariser import Summariser
from refold.infrastructure.summarisers.extractive.summariser import ExtractiveSummariser
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.testing.history_layout import Step, number_through
from refold.testing.history_strategies import turns
from tests.support import deeds, lasting_deeds
from tests.support.drawn_settings import PINNED_TEXTS, POLICIES, SETTINGS, WINDOWS
from tests.support.dying import traced
from tests.support.effort import one_in
from tests.support.fake_summarisers import EchoingSummariser, GoodSummariser
from tests.support.invariants.whole import all_hold, all_hold_in_hindsight
from tests.support.odd_summarisers import FaultySummariser, LearningSummariser, SigningSummariser
from tests.support.surroundings import Setting
from tests.support.surviving import Lived, deliver, judge, live, reborn, settle
from tests.support.witness import SHM, Witness

STEPS = st.deferred(lambda: turns(min_messages=2, max_messages=10, max_text=300, huge=3_000))
LONG = st.deferred(lambda: turns(min_messages=8, max_messages=20, max_text=300, huge=3_000))
ENDS = st.tuples(st.integers(0, 60), st.integers(0, 60), st.booleans())
"""Two moments of a deed, and whether the process dies at the second one or lives on."""
SHARES = st.sampled_from((0.5, 0.01, 0.99))
SUMMARISERS = st.sampled_from(
    (
        *(GoodSummariser,) * 6,
        *(partial(ExtractiveSummariser, EstimatingTokenCounter()),) * 2,
        SigningSummariser,
        LearningSummariser,
        EchoingSummariser,
        FaultySummariser,
    )
)
Make = Callable[[], Summariser]
Ends = tuple[int, int, bool]


class Crashing(RuleBasedStateMachine):
    """One conversation through many lives, each in a folder of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=SHM)
        self.lives = 0
        self.parts = 0
        self.tracing = traced()
        self.tracing.__enter__()

    @initialize(window=WINDOWS, policy=POLICIES, setting=SETTINGS, steps=LONG)
    def begin(
        self, window: int, policy: refold.CompactionPolicy, setting: Setting, steps: list[Step]
    ) -> None:
        self.witness = Witness(self.new_folder(made=True), window, policy, setting)
        for step in self.numbered(steps):
            self.witness.append(step)
        all_hold(self.witness)

    def new_folder(self, *, made: bool = False) -> Path:
        self.lives += 1
        folder = Path(self.folder.name) / f"life-{self.lives}"
        if made:
            folder.mkdir()
        return folder

    def numbered(self, steps: Sequence[Step]) -> list[Step]:
        self.parts += 1
        return number_through(steps, len(self.witness.spoken), self.parts)

    def die_in(
        self, deed: Callable[[Witness], object], ends: Ends, share: float, *, same: bool = False
    ) -> None:
        """Do a deed, look at two worlds in which it was cut short, and go on in one of three."""
        lived = live(self.witness, lambda: deed(self.witness), share)
        first, second, survives = ends
        if not lived.moments:
            return
        self.bury(self.life_after(lived, first, deed, same=same))
        other = self.life_after(lived, second, deed, same=same)
        if not survives:
            self.witness, other = other, self.witness
        self.bury(other)
        all_hold(self.witness)

    def life_after(
        self, lived: Lived, number: int, deed: Callable[[Witness], object], *, same: bool
    ) -> Witness:
        moment = lived.moments[number % len(lived.moments)]
        witness = reborn(lived, moment, self.new_folder())
        try:
            judge(witness, lived.books)
            settle(witness)
            # Whoever got no answer asks again.
            deed(witness)
            if same:
                assert witness.spoken == lived.after.spoken, "delivered again, and not the same"
            all_hold(witness)
        except BaseException:
            witness.close()
            raise
        return witness

    def bury(self, witness: Witness) -> None:
        witness.close()

    @rule(steps=STEPS, ends=ENDS, share=SHARES)
    def talk(self, steps: list[Step], ends: Ends, share: float) -> None:
        """Each step is delivered with keys, so that it can be delivered again."""
        numbered = self.numbered(steps)
        self.die_in(partial(deliver, steps=numbered, part=self.parts), ends, share, same=True)

    @rule(
        make=SUMMARISERS,
        force=st.booleans(),
        more=st.sampled_from((0, 2, 5)),
        ends=ENDS,
        share=SHARES,
    )
    def compact(self, make: Make, force: bool, more: int, ends: Ends, share: float) -> None:
        for _ in range(more):
            self.witness.append(deeds.exchange(self.witness, 0.12))
        self.witness.summariser.current = make()
        self.die_in(lambda witness: deeds.compact(witness, force=force), ends, share)

    @rule(make=SUMMARISERS, ends=ENDS, share=SHARES)
    def ask(self, make: Make, ends: Ends, share: float) -> None:
        self.witness.summariser.current = make()
        self.die_in(deeds.ask, ends, share)

    @rule(ends=ENDS, share=SHARES)
    def undo(self, ends: Ends, share: float) -> None:
        self.die_in(lasting_deeds.revert, ends, share)

    @precondition(lambda self: len(self.witness.pins) < lasting_deeds.MOST)
    @rule(text=PINNED_TEXTS, ends=ENDS, share=SHARES)
    def pin(self, text: str, ends: Ends, share: float) -> None:
        self.die_in(lambda witness: lasting_deeds.pin_text(witness, text), ends, share)

    @rule(ends=ENDS, share=SHARES)
    def look_and_restart(self, ends: Ends, share: float) -> None:
        """Read models are caught up, the memory is closed and opened again."""

        def restart(witness: Witness) -> None:
            witness.memory.replay()
            witness.conversation.summaries()
            witness.restart()

        self.die_in(restart, ends, share)

    def teardown(self) -> None:
        try:
            if hasattr(self, "witness"):
                all_hold_in_hindsight(self.witness)
                self.witness.close()
        finally:
            self.tracing.__exit__(None, None, None)
            self.folder.cleanup()


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
def test_nothing_acknowledged_is_lost_whenever_the_process_dies() -> None:
    # Each step is looked at in three worlds: 12 examples where the profile says 300.
    run_state_machine_as_test(Crashing, settings=one_in(25, stateful_step_count=8))
