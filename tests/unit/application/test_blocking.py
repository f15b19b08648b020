"""Calls that block, where nobody could ever answer them."""

import threading

import pytest

from refold.application.blocking import Runner
from refold.domain.errors import RefoldError


async def nothing() -> str:
    return "done"


def test_what_runs_in_the_loop_and_waits_for_it_is_refused_instead_of_waiting_for_ever() -> None:
    runner = Runner()

    async def summarise() -> str:
        return runner.run(nothing())

    ended: list[object] = []

    def ask() -> None:
        with pytest.raises(RefoldError, match="to_thread"):
            runner.run(summarise())
        ended.append(runner.run(nothing()))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(20)
    assert ended == ["done"]
    runner.close()
