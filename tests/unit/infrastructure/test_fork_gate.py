"""An adapter that is made on first use: once, by one thread, and ended as if it had been made before."""

import threading

import pytest

from refold.infrastructure.files.fork_gate import deferred


class Adapter:
    def __init__(self, made: list["Adapter"]) -> None:
        made.append(self)
        self.closed = False

    def answer(self) -> str:
        if self.closed:
            raise RuntimeError("closed")
        return "yes"

    def close(self) -> None:
        self.closed = True


def test_it_is_made_by_its_first_use_and_once() -> None:
    made: list[Adapter] = []
    adapter = deferred(lambda: Adapter(made))
    assert not made
    assert (adapter.answer(), adapter.answer(), len(made)) == ("yes", "yes", 1)
    adapter.close()
    assert made[0].closed


def test_closing_makes_nothing_and_a_later_use_is_refused() -> None:
    made: list[Adapter] = []
    adapter = deferred(lambda: Adapter(made))
    adapter.close()
    assert not made
    with pytest.raises(RuntimeError, match="closed"):
        adapter.answer()


def test_a_failure_is_raised_and_the_next_use_tries_again() -> None:
    made: list[Adapter] = []
    failures = [OSError("no space")]

    def make() -> Adapter:
        if failures:
            raise failures.pop()
        return Adapter(made)

    adapter = deferred(make)
    with pytest.raises(OSError, match="no space"):
        adapter.answer()
    assert adapter.answer() == "yes"


def test_eight_threads_at_once_make_one() -> None:
    made: list[Adapter] = []
    adapter = deferred(lambda: Adapter(made))
    together, answers = threading.Barrier(8), list[str]()

    def use() -> None:
        together.wait()
        answers.append(adapter.answer())

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(answers), len(made)) == (8, 1)
