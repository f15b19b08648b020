"""Many generations of summaries on one conversation, in one endless turn and in many short ones."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.domain.value import is_object
from refold.testing.history_layout import Message, Step, marker, number_through
from refold.testing.history_strategies import turns
from tests.support import deeds
from tests.support.effort import one_in
from tests.support.invariants.rendered import the_request_fits
from tests.support.invariants.whole import all_hold, all_hold_in_hindsight
from tests.support.odd_summarisers import WordySummariser
from tests.support.witness import SHM, Witness

REQUEST = "Please rename the module, 请保留用户偏好 👍, and run the tests."
SENTENCE = "src/app.py:42: assertion failed, expected 3 but got 4\n"
FEWER = one_in(8)
# Deferred: its description is longer than Hypothesis likes to print.
PART = st.deferred(lambda: turns(min_messages=1, max_messages=5, max_text=200, huge=900))


@contextmanager
def conversation(window: int, **policy: Any) -> Generator[Witness]:
    settings = {"preview_head": 150, "preview_tail": 0, "tiny_preview": 50, "keep_last": 2}
    with tempfile.TemporaryDirectory(dir=SHM) as folder:
        witness = Witness(Path(folder), window, refold.CompactionPolicy(**(settings | policy)))
        try:
            yield witness
            all_hold_in_hindsight(witness)
        finally:
            witness.close()


@FEWER
@given(parts=st.lists(PART, min_size=3, max_size=12))
def test_a_summary_of_summaries_of_summaries_loses_nothing(parts: list[list[Step]]) -> None:
    with conversation(4_000) as witness:
        for number, steps in enumerate(parts, start=1):
            for step in number_through(steps, len(witness.spoken), number):
                witness.append(step)
            for _ in range(3):
                witness.append(deeds.exchange(witness, 0.12))
            assert deeds.compact(witness).outcome == "performed"
            all_hold(witness)
            assert len(witness.conversation.summaries()) == number


def tool_round(witness: Witness, calls: int, lines: int) -> list[Message]:
    """Calls and all their results, ``lines`` long each."""
    first = len(witness.spoken)
    ids = [f"call_{first}_{n}" for n in range(calls)]
    marks = [marker(first) + (f"⟦b{n}⟧" if n else "") for n in range(calls)]
    inputs = [{"command": mark} for mark in marks]
    results = [marker(first + 1) + (f"⟦b{n}⟧" if n else "") for n in range(calls)]
    return [
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": call, "name": "bash", "input": given}
                for call, given in zip(ids, inputs, strict=True)
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": call,
                    "content": f"{mark} {SENTENCE * lines}",
                }
                for call, mark in zip(ids, results, strict=True)
            ],
        },
    ]


ROUNDS = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from((1, 4, 9, 40))), min_size=10, max_size=40
)


@FEWER
@given(rounds=ROUNDS, window=st.sampled_from((1_500, 2_500, 4_000)))
def test_the_request_of_an_endless_turn_stays_word_for_word(
    rounds: list[tuple[int, int]], window: int
) -> None:
    with conversation(window) as witness:
        witness.append(deeds.exchange(witness, 0.1))
        request = f"{marker(len(witness.spoken))} {REQUEST}"
        witness.append([{"role": "user", "content": request}])
        became_smaller = False
        for calls, lines in rounds:
            witness.append(tool_round(witness, calls, lines))
            answer = deeds.ask(witness)
            assert answer.context is not None, answer.error
            became_smaller = became_smaller or bool(answer.context.compactions)
            the_request_fits(witness, answer.context)
            for result in answer.context.compactions[-1:]:
                if not result.results_offloaded:
                    assert result.tokens_after == answer.context.tokens
            said = [
                block.get("text") if is_object(block) else block
                for message in answer.context.messages
                if message["role"] == "user"
                for block in _content(message)
            ]
            assert said.count(request) == 1
            all_hold(witness)
        assert became_smaller or sum(n * m for n, m in rounds) < 60


def _content(message: Message) -> list[Any]:
    content = message["content"]
    return [content] if isinstance(content, str) else content


@FEWER
@given(
    questions=st.lists(st.integers(1, 6), min_size=6, max_size=30),
    window=st.sampled_from((1_500, 2_500)),
)
def test_a_context_that_is_asked_for_in_time_is_never_refused(
    questions: list[int], window: int
) -> None:
    with conversation(window) as witness:
        for size in questions:
            witness.append(deeds.exchange(witness, size / 20))
            witness.append([{"role": "user", "content": f"{marker(len(witness.spoken))} And now?"}])
            answer = deeds.ask(witness)
            assert answer.context is not None, answer.error
            the_request_fits(witness, answer.context)
            all_hold(witness)


@FEWER
@given(size=st.integers(1, 8), system=st.booleans())
def test_a_summary_that_gains_nothing_is_refused(size: int, system: bool) -> None:
    """Invariant 9: smaller than what it stands for; else the context stays as it was."""
    with conversation(4_000, keep_last=1, whole_turn_share=1.0) as witness:
        if system:
            witness.append([{"role": "system", "content": f"{marker(0)} Be brief."}])
        for share in (0.1, 0.1, 0):
            witness.append(deeds.exchange(witness, share))
        assert deeds.compact(witness).outcome == "performed"
        witness.append(deeds.exchange(witness, size / 100))
        witness.summariser.current = WordySummariser()
        result = deeds.compact(witness)
        # In between it depends on the figures of the estimate.
        assert result.outcome == "performed" or size < 8, result
        assert result.outcome == "failed" or result.freed > 0, "longer than asked, but smaller"
        all_hold(witness)
