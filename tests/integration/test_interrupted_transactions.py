"""A signal that raises in the middle of a transaction, at any point, leaves the log usable."""

import sys
from collections.abc import Callable
from functools import partial
from inspect import CO_GENERATOR
from pathlib import Path
from threading import Thread
from types import FrameType

import pytest

import refold

POOL = ("connection_pool.py", "sqlite_connection.py")
"""Files whose functions hand out connections and locks."""
IN_TIME = 4.0
"""Seconds that a write may take; a lock that was not released would make it wait for longer."""

TWO: dict[str, object] = {"role": "user", "content": "two"}
OTHER: dict[str, object] = {"role": "user", "content": "x"}


def interrupted(act: Callable[[], object], point: int) -> bool:
    """Act, and interrupt it at a point where Python lets signals in. Return False if it has fewer points."""
    left = point

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        code, caller = frame.f_code, (frame.f_back or frame).f_code
        lets_in = event == "c_return" or (event == "call" and not code.co_flags & CO_GENERATOR)
        if lets_in and code.co_filename.endswith(POOL) | caller.co_filename.endswith(POOL):
            if not left:
                sys.setprofile(None)
                raise KeyboardInterrupt
            left -= 1

    sys.setprofile(profile)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def ends_in_time(act: Callable[[], object]) -> bool:
    """Act in another thread. Return whether it has succeeded in time."""
    done: list[object] = []
    thread = Thread(target=lambda: done.append(act()), daemon=True)
    thread.start()
    thread.join(IN_TIME)
    return bool(done)


@pytest.mark.parametrize("first", range(4))
def test_an_append_that_is_interrupted_anywhere_lets_others_write(
    tmp_path: Path, first: int
) -> None:
    path = tmp_path / "agent.db"
    point, stored = first, 0
    with refold.open(path) as memory, refold.open(path) as other:
        mine, theirs = memory.conversation("t"), other.conversation("t")
        mine.append({"role": "user", "content": "one"})
        while interrupted(partial(mine.append, TWO, key=f"{point}"), point):
            for conversation in (mine, theirs):
                assert ends_in_time(partial(conversation.append, OTHER)), point
            mine.append(TWO, key=f"{point}")
            point, stored = point + 4, stored + 1
        assert stored > 5
        said = [message.message.content for message in mine.messages()]
        assert said == [message.message.content for message in theirs.messages()]
        assert said.count("two") == stored + 1
        assert said.count("x") == 2 * stored
    assert not list(tmp_path.glob("*-wal")), first
