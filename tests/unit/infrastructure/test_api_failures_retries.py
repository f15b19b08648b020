"""Retries: what is asked again, how often, after what delay, and what is counted."""

import asyncio
from collections.abc import Sequence

import pytest

from refold.application.errors import SummariserError
from refold.application.ports.summariser import (
    BoundedSummariser,
    Summariser,
    SummaryDraft,
    SummaryRequest,
    signs,
)
from refold.application.summaries.summariser_calls import relay
from refold.domain.value import replace
from refold.infrastructure.api_failures import TEMPORARY
from refold.infrastructure.summarisers.named_summarisers import retrying
from refold.infrastructure.summarisers.server_compaction import ServerCompactionSummariser
from tests.support.summarising import Naps, half_a_second, request_of

GOOD = SummaryDraft(text="Good.", complete=True, model="m", prompt_fingerprint="1")


class Scripted:
    """Answers from a script: a draft is returned, an error raised."""

    name = "scripted"

    def __init__(self, *script: SummaryDraft | Exception) -> None:
        self.script = list(script)
        self.asked: list[SummaryRequest] = []

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        self.asked.append(request)
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Bounded(Scripted):
    """The same with a window."""

    window = 4_000

    def measure(self, request: SummaryRequest) -> int:
        return 100 * len(request.messages)


def trouble(reason: str, *, attempts: int = 1, retry_after: float | None = None) -> SummariserError:
    return SummariserError(reason, f"{reason}.", attempts=attempts, retry_after=retry_after)


def asked(summariser: Scripted, tries: int = 3, naps: Naps | None = None) -> SummaryDraft:
    again = retrying(summariser, tries, backoff=half_a_second, sleep=naps or Naps())
    return asyncio.run(again.summarise(request_of()))


@pytest.mark.parametrize("reason", sorted(TEMPORARY))
def test_a_passing_trouble_is_asked_again_and_the_calls_are_counted(reason: str) -> None:
    summariser = Scripted(trouble(reason), trouble(reason), GOOD)
    assert asked(summariser) == replace(GOOD, attempts=3)
    assert len({id(request) for request in summariser.asked}) == 1


def test_a_success_at_once_is_handed_on_as_it_is() -> None:
    assert asked(Scripted(replace(GOOD, attempts=2))).attempts == 2


@pytest.mark.parametrize("tries", [1, 2, 5])
def test_after_so_many_tries_the_last_error_is_raised(tries: int) -> None:
    summariser = Scripted(trouble("overloaded"))
    with pytest.raises(SummariserError) as caught:
        asked(summariser, tries)
    assert (caught.value.reason, caught.value.attempts) == ("overloaded", tries)
    assert len(summariser.asked) == tries
    assert ("attempts" in str(caught.value)) == (tries > 1)


def test_calls_that_the_summariser_made_by_itself_count() -> None:
    summariser = Scripted(trouble("timeout", attempts=2), replace(GOOD, attempts=2))
    assert asked(summariser).attempts == 4


@pytest.mark.parametrize(
    "error",
    [
        trouble("authentication"),
        trouble("refused"),
        trouble("of its own"),
        ValueError("something else"),
        TimeoutError(),
    ],
)
def test_other_troubles_are_not_asked_again(error: Exception) -> None:
    summariser = Scripted(error, GOOD)
    with pytest.raises(type(error)):
        asked(summariser)
    assert len(summariser.asked) == 1


def test_the_delay_grows() -> None:
    naps = Naps()
    again = retrying(Scripted(trouble("overloaded")), 5, sleep=naps)
    with pytest.raises(SummariserError):
        asyncio.run(again.summarise(request_of()))
    assert len(naps.seconds) == 4
    assert naps.seconds == sorted(naps.seconds)
    assert 1 <= naps.seconds[0] <= 2 < naps.seconds[-1] <= 20


@pytest.mark.parametrize(("wished", "naps"), [(7.0, [7.0]), (0.1, [0.5]), (None, [0.5])])
def test_the_wish_to_be_left_alone_is_kept(wished: float | None, naps: Sequence[float]) -> None:
    slept = Naps()
    asked(Scripted(trouble("rate_limited", retry_after=wished), GOOD), naps=slept)
    assert slept.seconds == naps


@pytest.mark.parametrize("wished", [61.0, float("inf")])
def test_who_asks_for_more_than_a_minute_is_not_waited_for(wished: float) -> None:
    summariser = Scripted(trouble("rate_limited", retry_after=wished), GOOD)
    with pytest.raises(SummariserError):
        asked(summariser)
    assert len(summariser.asked) == 1


def test_a_wrapped_summariser_keeps_its_name_and_what_it_can_do() -> None:
    bounded = retrying(Bounded(GOOD))
    assert bounded.name == "scripted"
    assert isinstance(bounded, BoundedSummariser)
    assert (bounded.window, bounded.measure(request_of("a", "b"))) == (4_000, 200)
    assert not isinstance(retrying(Scripted(GOOD)), BoundedSummariser)
    assert not signs(bounded)
    assert signs(retrying(ServerCompactionSummariser()))


def test_wrapping_twice_does_not_multiply_the_tries() -> None:
    summariser = Scripted(trouble("overloaded"))
    once = retrying(summariser, 2, backoff=half_a_second, sleep=Naps())
    with pytest.raises(SummariserError):
        asyncio.run(retrying(once, 3).summarise(request_of()))
    assert len(summariser.asked) == 2


def test_what_stands_before_each_call_sees_it_and_the_tries_stay_as_they_were() -> None:
    summariser, seen = Scripted(trouble("timeout")), list[str]()

    async def ask(behind: Summariser, request: SummaryRequest) -> SummaryDraft:
        seen.append(behind.name)
        return await behind.summarise(request)

    def eyed(one: Summariser) -> Summariser:
        return relay(one, ask)

    once = retrying(summariser, 2, backoff=half_a_second, sleep=Naps())
    for wrapped in (
        retrying(once, 5, each=eyed),
        retrying(summariser, 2, backoff=half_a_second, sleep=Naps(), each=eyed),
    ):
        seen.clear()
        with pytest.raises(SummariserError):
            asyncio.run(wrapped.summarise(request_of()))
        assert seen == ["scripted", "scripted"]


def test_no_try_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="tries is 0"):
        retrying(Scripted(GOOD), 0)


def test_cancellation_while_waiting_passes_through() -> None:
    asleep = asyncio.Event()

    async def sleep_for_ever(seconds: float) -> None:
        asleep.set()
        await asyncio.sleep(seconds + 60)

    async def run() -> None:
        summariser = retrying(Scripted(trouble("overloaded")), sleep=sleep_for_ever)
        task = asyncio.create_task(summariser.summarise(request_of()))
        await asyncio.wait_for(asleep.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
