"""The fakes themselves, as far as other tests lean on them."""

import asyncio

import pytest

from refold.application.errors import SummariserError
from refold.application.ports.summariser import SummaryRequest
from tests.support.fake_summarisers import (
    GoodSummariser,
    LongerThanSourceSummariser,
    RaisingSummariser,
    RecordingSummariser,
    SlowSummariser,
    covered_by,
    every_answering_fake,
    source_text,
)
from tests.support.summarising import request_of


def test_a_good_summary_names_the_positions_of_the_previous_one_too() -> None:
    request = request_of("a", "b", previous="Covers messages 4-6, 9.")
    text = asyncio.run(GoodSummariser().summarise(request)).text
    assert text == "Covers messages 0-1, 4-6, 9."
    assert covered_by(text) == {0, 1, 4, 5, 6, 9}


def test_every_fake_answers_the_same_request_alike() -> None:
    request = request_of("a", "b")
    for fake in every_answering_fake():
        first, second = (asyncio.run(fake.summarise(request)) for _ in range(2))
        assert first == second


def test_a_longer_one_is_longer() -> None:
    request = request_of("word " * 1_000)
    text = asyncio.run(LongerThanSourceSummariser().summarise(request)).text
    assert len(text) > 2 * len(source_text(request))


def test_a_recording_keeps_the_requests_that_failed() -> None:
    recording = RecordingSummariser(RaisingSummariser("timeout"))
    with pytest.raises(SummariserError, match="timeout"):
        asyncio.run(recording.summarise(request_of("a")))
    assert recording.requests == [request_of("a")]


def test_a_slow_one_waits_to_be_released() -> None:
    async def run(request: SummaryRequest) -> bool:
        slow = SlowSummariser()
        task = asyncio.create_task(slow.summarise(request))
        await slow.started.wait()
        waited = not task.done()
        slow.release.set()
        return waited and (await task).complete

    assert asyncio.run(run(request_of("a")))
