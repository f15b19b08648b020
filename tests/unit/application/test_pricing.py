"""Prices: what a prompt cache serves of a run of requests, and what it all costs, by hand."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest

from refold.application.api.results import Context
from refold.application.lab.pricing import CostMeter, Price, Prices, Sent
from refold.domain.compaction.budget import budget_for
from refold.domain.compaction.policy import CompactionPolicy
from tests.support.builders import NOON
from tests.support.fake_ports import PlainCounter

CHEAP = Price(input=1, cached_read=0.1, cache_write=2, output=10, least_cached=50)
DEAR = Price(input=100, cached_read=10, cache_write=200, output=1_000, least_cached=50)


def prices(**more: Any) -> Prices:
    models = {"cheap": CHEAP, "cheap-but-new": DEAR, "dear": DEAR}
    return Prices(as_of=date(2026, 1, 2), default="cheap", models=models, **more)


def request(
    *said: str, system: str = "", tools: Sequence[str] = (), model: str | None = None
) -> Context:
    """A request with these messages in turn; each character is a quarter of a token."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
    tokens = sum(len(text) // 4 + 4 for text in said)
    tokens += len(system) // 4 + 40 if system else 0
    definitions: list[dict[str, Any]] = [{"name": name} for name in tools]
    return Context(
        thread_id="t",
        version=1,
        model=model,
        system=system,
        messages=messages,
        tools=definitions,
        tokens=tokens + PlainCounter().count_tools(tuple(definitions)),
        budget=budget_for(8_000, 0, CompactionPolicy()),
        summary=None,
    )


def sent(*requests: Context, **more: Any) -> list[Sent]:
    meter = CostMeter(prices(**more), PlainCounter())
    return [meter.request(one) for one in requests]


A, B, C = "a" * 400, "b" * 400, "c" * 400  # 104 tokens each


def test_what_repeats_the_request_before_is_served_and_the_rest_written() -> None:
    assert sent(request(A), request(A, B, C), request(A, B, C)) == [
        Sent(104, 0, 104),
        Sent(312, 104, 208),
        Sent(312, 312, 0),
    ]


def test_from_the_first_change_on_nothing_is_served() -> None:
    assert sent(request(A, B, C), request(A, C, B))[1] == Sent(312, 104, 208)
    assert sent(request(A, B), request(B, B))[1] == Sent(208, 0, 208)


def test_tools_come_before_the_system_text_and_that_before_messages() -> None:
    tools = ["t" * 387]
    whole = request(A, system="s" * 400, tools=tools)
    assert whole.tokens == 104 + 140 + 100
    assert sent(whole, request(B, system="s" * 400, tools=tools))[1].served == 240
    assert sent(whole, request(A, system="z" * 400, tools=tools))[1].served == 100
    assert sent(whole, request(A, system="s" * 400, tools=["u" * 387]))[1].served == 0


def test_a_prefix_below_the_least_length_is_not_cached() -> None:
    assert sent(request("a" * 80), request("a" * 80, B)) == [Sent(24, 0, 0), Sent(128, 0, 128)]


def test_another_model_has_a_cache_of_its_own() -> None:
    assert sent(request(A, model="cheap"), request(A, model="dear"))[1] == Sent(104, 0, 104)


@pytest.mark.parametrize(("seconds", "served"), [(299, 104), (300, 104), (301, 0), (None, 104)])
def test_a_cache_that_forgets_serves_nothing_after_a_while(
    seconds: int | None, served: int
) -> None:
    meter = CostMeter(prices(cache_seconds=300), PlainCounter())
    meter.request(request(A), NOON)
    later = None if seconds is None else NOON + timedelta(seconds=seconds)
    assert meter.request(request(A), later).served == served


def test_the_bill_is_what_the_table_says() -> None:
    meter = CostMeter(prices(), PlainCounter())
    meter.request(request(A))
    meter.request(request(A, B, C))
    meter.answer(1_000, None)
    meter.summariser(500, 50, "dear-2")
    bill = meter.bill
    assert (bill.sent, bill.served, bill.written) == (416, 104, 312)
    assert (bill.answered, bill.summariser_calls, bill.summariser_tokens) == (1_000, 1, 550)
    beside = 1_000 * 10 + 500 * 100 + 50 * 1_000
    assert bill.cost == pytest.approx((104 * 0.1 + 312 * 2 + beside) / 1e6)
    assert bill.cost_without_cache == pytest.approx((416 * 1 + beside) / 1e6)
    assert meter.entries == {"cheap", "dear"}


@pytest.mark.parametrize(
    ("model", "entry"),
    [
        (None, "cheap"),
        ("unheard-of", "cheap"),
        ("vendor/Dear-5", "dear"),
        ("cheap-but-old", "cheap"),
        ("cheap-but-newer", "cheap-but-new"),
    ],
)
def test_the_longest_beginning_that_fits_gives_the_price(model: str | None, entry: str) -> None:
    assert prices().entry_of(model) == entry
