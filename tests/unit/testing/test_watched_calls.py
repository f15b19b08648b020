"""Calls with a time limit: one whose time is up before it begins leaves nothing behind."""

import asyncio
import gc
import warnings

import pytest

from refold.testing.watched_calls import watch


async def answer() -> object:
    return "done"


def test_a_call_is_watched_to_its_end() -> None:
    done = asyncio.run(watch(answer()))
    assert (done.value, done.error) == ("done", None)


def test_a_call_that_is_stopped_before_it_begins_is_closed() -> None:
    async def stop() -> None:
        watching = asyncio.create_task(watch(answer()))
        await asyncio.sleep(0)
        watching.cancel()
        await watching

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(stop())
        gc.collect()
