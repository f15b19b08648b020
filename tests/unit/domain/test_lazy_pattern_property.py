"""Properties that are computed once, without a lock."""

from threading import Barrier, Thread

from refold.domain.lazy_pattern import lazy_property


class Text:
    def __init__(self, text: str) -> None:
        self.text = text
        self.computed = 0

    @lazy_property
    def words(self) -> list[str]:
        """Words of the text."""
        self.computed += 1
        return self.text.split()


def test_it_is_computed_once_for_each_object() -> None:
    one, other = Text("a b"), Text("c")
    assert [one.words, one.words, other.words] == [["a", "b"], ["a", "b"], ["c"]]
    assert (one.computed, other.computed) == (1, 1)


def test_the_class_has_its_description() -> None:
    assert isinstance(Text.words, lazy_property)
    assert Text.words.__doc__ == "Words of the text."


def test_two_objects_compute_at_the_same_time() -> None:
    together = Barrier(2, timeout=10)

    class Waiting:
        @lazy_property
        def value(self) -> int:
            return together.wait()

    found: list[int] = []
    threads = [Thread(target=lambda: found.append(Waiting().value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 1]
