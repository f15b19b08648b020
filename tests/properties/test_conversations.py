"""A state machine talks, compacts, asks, crashes and restarts; the invariants hold after each step."""

import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

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
from refold.application.ports import Summariser
from tests.support import deeds
from tests.support.effort import one_in
from tests.support.fake_summarisers import (
    EchoingSummariser,
    EmptySummariser,
    GoodSummariser,
    HostileSummariser,
    LongerThanSourceSummariser,
    RaisingSummariser,
    TruncatedSummariser,
)
from tests.support.histories import Step, turns
from tests.support.invariants.rendered import the_request_fits
from tests.support.invariants.whole import all_hold, all_hold_in_hindsight
from tests.support.numbering import numbered_through
from tests.support.odd_summarisers import WordySummariser
from tests.support.witness import SHM, Witness

SUMMARISERS: st.SearchStrategy[Callable[[], Summariser]] = st.sampled_from(
    (
        GoodSummariser,
        GoodSummariser,
        GoodSummariser,
        GoodSummariser,
        EmptySummariser,
        TruncatedSummariser,
        LongerThanSourceSummariser,
        RaisingSummariser,
        EchoingSummariser,
        HostileSummariser,
        WordySummariser,
    )
)
POLICIES = st.builds(
    refold.CompactionPolicy,
    keep_last=st.sampled_from((1, 1, 2, 5)),
    preview_head=st.just(150),
    preview_tail=st.sampled_from((0, 60)),
    tiny_preview=st.just(50),
    trigger_share=st.sampled_from((0.7, 0.7, 0.4)),
    retry_growth=st.sampled_from((0.02, 0.1)),
)
# Deferred: their descriptions are longer than Hypothesis likes to print.
LIVE = st.deferred(lambda: turns(min_messages=2, max_messages=14, max_text=400, huge=3_000))
LONG = st.deferred(lambda: turns(min_messages=12, max_messages=24, max_text=400, huge=3_000))
RECORDED = st.deferred(
    lambda: turns(recorded=True, min_messages=2, max_messages=14, max_text=400, huge=3_000)
)
WORDS = st.sampled_from(("And now?", "请继续,谢谢 👍", "Look at src/app.py again. " * 12))
LONG_WORDS = "The build failed in step 7, please look at it once more. " * 8


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
        window=st.sampled_from((1_500, 2_000, 3_000, 4_000)),
        policy=POLICIES,
        steps=LONG,
        recorded=st.booleans(),
    )
    def begin(
        self, window: int, policy: refold.CompactionPolicy, steps: list[Step], recorded: bool
    ) -> None:
        self.witness = Witness(Path(self.folder.name), window, policy)
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
        self.script.extend(numbered_through(steps, len(self.witness.spoken), self.parts))
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

    @rule(make=SUMMARISERS, focus=st.sampled_from((None, None, deeds.FOCUS)))
    def compact(self, make: Callable[[], Summariser], focus: str | None) -> None:
        self.witness.summariser.current = make()
        deeds.compact(self.witness, focus)

    @rule(make=SUMMARISERS)
    def ask(self, make: Callable[[], Summariser]) -> None:
        self.witness.summariser.current = make()
        answer = deeds.ask(self.witness)
        if answer.context is not None:
            the_request_fits(self.witness, answer.context)

    @precondition(lambda self: not self.script)
    @rule(generations=st.integers(1, 4))
    def compact_generations(self, generations: int) -> None:
        """Talk and compact, again and again: many summaries on one conversation are common."""
        self.witness.summariser.current = GoodSummariser()
        for _ in range(generations):
            for _ in range(3):
                self.witness.append(deeds.exchange(self.witness, 0.1))
            deeds.compact(self.witness)
            self.all_invariants_hold()

    @precondition(lambda self: not self.script)
    @rule(generations=st.integers(1, 4), share=st.sampled_from((0.2, 0.5)), make=SUMMARISERS)
    def outgrow_the_window(
        self, generations: int, share: float, make: Callable[[], Summariser]
    ) -> None:
        """Talk until the context must be compacted to fit, again and again."""
        for _ in range(generations):
            self.witness.append(deeds.exchange(self.witness, share))
            deeds.append_elsewhere(self.witness, "And now?")
            self.ask(make)
            self.all_invariants_hold()

    @rule()
    def restart(self) -> None:
        self.witness.restart()
        self.checked = -1

    @precondition(lambda self: not self.script)
    @rule(words=WORDS)
    def interrupt(self, words: str) -> None:
        deeds.deliver_twice(self.witness, words)
        deeds.append_elsewhere(self.witness, words)

    @rule(wait=st.booleans())
    def crash_while_compacting(self, wait: bool) -> None:
        deeds.crash_while_compacting(self.witness, wait=wait)

    @rule(make=SUMMARISERS)
    def reject_then_accept(self, make: Callable[[], Summariser]) -> None:
        self.witness.summariser.current = make()
        deeds.reject_then_accept(self.witness)

    @invariant()
    def all_invariants_hold(self) -> None:
        if (version := self.witness.chat.version) != self.checked:
            all_hold(self.witness)
            self.checked = version

    def teardown(self) -> None:
        try:
            if hasattr(self, "witness"):
                all_hold_in_hindsight(self.witness)
                self.witness.close()
        finally:
            self.folder.cleanup()


def test_the_invariants_hold_whatever_is_said_and_done() -> None:
    # A run costs some hundred commits and a thousand loads: half as many as elsewhere.
    run_state_machine_as_test(Talking, settings=one_in(2, stateful_step_count=25))
