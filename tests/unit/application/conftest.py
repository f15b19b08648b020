"""A compaction in the background that is under way, for tests of who waits for it and how it ends."""

from collections.abc import Iterator

import pytest

from tests.support.background_desk import WAIT, Desk
from tests.support.fake_summarisers import HeldSummariser


@pytest.fixture
def held() -> Iterator[HeldSummariser]:
    summariser = HeldSummariser()
    yield summariser
    summariser.release()


@pytest.fixture
def at_work(held: HeldSummariser) -> Iterator[Desk]:
    """A desk where a compaction began after an append, and its summariser is writing."""
    desk = Desk(held)
    desk.say(23)
    assert held.started.wait(WAIT)
    yield desk
    held.release()
    desk.memory.close()
