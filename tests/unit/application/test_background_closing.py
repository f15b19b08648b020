"""Closing while a compaction runs: it is waited for or given up, and has one end in the log."""

import asyncio
import threading

import pytest

from refold.application.api import blocking
from refold.application.api.memory import Memory
from refold.application.compaction import background
from refold.application.compaction.background import Background
from refold.domain.events import CompactionPerformed
from tests.support.background_desk import WAIT, Desk
from tests.support.fake_ports import core_of
from tests.support.fake_summarisers import HeldSummariser, StubbornSummariser


def test_draining_says_whether_anything_still_runs(at_work: Desk, held: HeldSummariser) -> None:
    assert not at_work.memory.drain(0)
    assert not at_work.memory.drain(0.01)
    held.release()
    assert at_work.memory.drain()


def test_closing_waits_for_what_runs(at_work: Desk, held: HeldSummariser) -> None:
    closing = threading.Thread(target=at_work.memory.close, args=[WAIT], daemon=True)
    closing.start()
    closing.join(0.05)
    assert closing.is_alive()
    held.release()
    closing.join(WAIT)
    assert [type(end) for end in at_work.ends] == [CompactionPerformed]


def test_closing_gives_up_what_does_not_end_and_records_it_once(at_work: Desk) -> None:
    at_work.memory.close(0)
    assert at_work.failures() == ["abandoned"]
    assert len(at_work.ends) == 1
    at_work.memory.close()
    assert len(at_work.ends) == 1


def test_what_was_given_up_stands_in_nobodys_way(at_work: Desk) -> None:
    at_work.memory.close(0)
    with Memory(core_of(at_work.log)) as memory:
        assert memory.conversation("t").compact().outcome == "performed"


def test_a_summariser_that_cannot_be_stopped_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (background, blocking):
        monkeypatch.setattr(module, "GRACE", 0.05)
    others = set(threading.enumerate())
    stubborn = StubbornSummariser()
    desk = Desk(stubborn)
    desk.say(23)
    assert stubborn.started.wait(WAIT)
    [loop] = [t for t in threading.enumerate() if t.name == "refold" and t not in others]
    desk.memory.close(0)
    assert desk.failures() == ["abandoned"]
    stubborn.release()
    loop.join(WAIT)
    assert len(desk.ends) == 1, "what came too late was recorded"


def test_nothing_begins_after_closing(at_work: Desk, held: HeldSummariser) -> None:
    at_work.memory.close(0)
    at_work.say(20)
    assert held.calls == 1


def test_what_was_to_begin_when_it_was_closed_does_not_begin() -> None:
    async def scene() -> bool:
        background = Background(core_of(background=True))
        await background.finish(0)
        background.begin("t")
        return await background.drain(0)

    assert asyncio.run(scene())


def test_an_interrupted_program_does_not_wait(held: HeldSummariser) -> None:
    desk = Desk(held)
    desk.say(23)
    assert held.started.wait(WAIT)
    with pytest.raises(KeyboardInterrupt), desk.memory:
        raise KeyboardInterrupt
    assert desk.failures() == ["abandoned"]
