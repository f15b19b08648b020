"""``simulate``: one recording under several policies, with figures that a test can follow."""

from collections.abc import Callable
from datetime import date

import pytest

from refold.application.conversation.transcripts import RecordedConversation, RecordedMessage
from refold.application.lab.playing import Played
from refold.application.lab.pricing import Price, Prices
from refold.application.lab.simulating import (
    PRESETS,
    Contestant,
    Simulated,
    measure_remains,
    simulate,
)
from refold.application.ports.summariser import Summariser
from refold.application.runtime.core import Core
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.messages import Message
from tests.support.builders import assistant, history, performed, requested, user
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.fake_summarisers import GoodSummariser, RaisingSummariser

FREE = Price(input=1, cached_read=0.1, cache_write=2, output=10, least_cached=1)
PRICES = Prices(as_of=date(2026, 1, 2), default="any", models={"any": FREE})


class PaidSummariser(GoodSummariser):
    """A good one that is not the built-in one."""

    name = "paid"


class PaidBoundedSummariser(PaidSummariser):
    """The same with a window of its own."""

    window = 50_000

    def measure(self, request: object) -> int:
        del request
        return 1_000


def recording(turns: int, size: int = 400) -> RecordedConversation:
    """Questions and answers of ``size`` characters: a quarter as many tokens and 4 each."""
    messages: list[Message] = []
    for n in range(turns):
        messages += [user(f"{n:<{size}}".replace(" ", "q")), assistant("a" * size)]
    return RecordedConversation(
        thread_id="t",
        messages=tuple(RecordedMessage(message=m, key=f"k{n}") for n, m in enumerate(messages)),
    )


def core(
    policy: CompactionPolicy | None = None, summariser: Summariser | None = None
) -> Callable[[], Core]:
    return lambda: core_of(window=4_000, policy=policy, summariser=summariser)


def simulated(recorded: RecordedConversation, opens: Callable[[], Core]) -> Simulated:
    (one,) = simulate(recorded, [Contestant("one", opens)], PRICES).policies
    return one


def test_without_compaction_the_figures_are_those_of_the_whole_history() -> None:
    one = simulated(recording(3), core())
    assert [step.tokens for step in one.steps] == [104, 312, 520]
    assert [step.served for step in one.steps] == [0, 104, 312]
    assert [step.index for step in one.steps] == [1, 3, 5]
    assert (one.tokens_sent, one.tokens_served, one.tokens_written) == (936, 416, 520)
    assert one.tokens_answered == 312
    assert one.cost == pytest.approx((416 * 0.1 + 520 * 2 + 312 * 10) / 1e6)
    assert one.cost_without_cache == pytest.approx((936 + 312 * 10) / 1e6)
    assert (one.compactions, one.offloads, one.condensings, one.failures) == (0, 0, 0, {})
    assert one.kept.model_dump() == {
        "messages": {"full": 6},
        "summary_tokens": 0,
        "ledger_lines": 0,
        "user_words": 1.0,
    }
    assert (one.window, one.trigger, one.limit) == (4_000, 2_800, 3_100)
    assert one.priced_as == ("any",)


def test_compactions_are_counted_and_stand_at_the_request_that_they_were_made_for() -> None:
    one = simulated(recording(30), core())
    deeds = [deed for step in one.steps for deed in step.deeds]
    assert one.compactions == deeds.count("compaction") == one.figures.compactions > 1
    assert one.tokens_sent == sum(step.tokens for step in one.steps)
    assert one.tokens_served == sum(step.served for step in one.steps)
    assert sum(step.whole for step in one.steps) == one.figures.tokens_without_compaction
    assert max(step.tokens for step in one.steps) == one.figures.largest_request <= one.limit
    first = next(n for n, step in enumerate(one.steps) if step.deeds)
    assert one.steps[first].tokens < one.steps[first - 1].tokens
    assert one.steps[first].served == 0
    assert one.kept.messages["summarised"] + one.kept.messages["full"] == 60
    assert one.kept.summary_tokens > 0
    assert 0 < one.kept.user_words < 1


def test_policies_are_played_side_by_side_and_differ() -> None:
    contestants = [Contestant("a", core()), Contestant("b", core(PRESETS["early"]))]
    told: list[tuple[str, Played]] = []
    done = simulate(
        recording(30), contestants, PRICES, on_event=lambda name, event: told.append((name, event))
    )
    one, two = done.policies
    assert (one.name, two.name) == ("a", "b")
    assert two.policy == PRESETS["early"]
    assert two.trigger < one.trigger
    assert two.tokens_sent < one.tokens_sent
    assert two.compactions > one.compactions
    assert [name for name, _ in told] == sorted(name for name, _ in told)
    assert {name for name, _ in told} == {"a", "b"}


def test_the_same_simulation_gives_the_same_figures() -> None:
    one, two = (simulated(recording(20), core()) for _ in range(2))
    assert one.model_dump(exclude={"figures"}) == two.model_dump(exclude={"figures"})


@pytest.mark.parametrize("paid", [PaidSummariser, PaidBoundedSummariser])
def test_calls_of_a_model_for_summaries_are_on_the_bill(paid: Callable[[], Summariser]) -> None:
    free = simulated(recording(30), core())
    one = simulated(recording(30), core(summariser=paid()))
    assert (free.summariser_calls, free.summariser_tokens) == (0, 0)
    assert one.compactions > 1
    assert one.summariser_calls >= one.compactions
    assert one.summariser_tokens > 60 * 50
    assert one.cost > free.cost


def test_failures_are_counted_by_their_reason() -> None:
    one = simulated(recording(30), core(summariser=RaisingSummariser()))
    assert sum(one.failures.values()) == one.figures.compactions_failed > 0
    assert all(one.failures)


def test_of_covered_words_only_whole_lines_in_the_summary_count_as_kept() -> None:
    log = MemoryLog()
    log.streams["t"] = [
        *history(
            user("keep this\nand lose that one"), assistant("ok"), user("live"), assistant("x")
        ),
        requested(2),
        performed(2, text="He said: keep this."),
    ]
    kept = measure_remains(core_of(log), "t")
    assert kept.user_words == round((8 + 4) / (8 + 14 + 4), 4)
    assert kept.messages == {"full": 2, "summarised": 2}
    assert kept.summary_tokens == 50
