"""An index of passages that a test writes down, and changes as it likes."""

from collections.abc import Iterator, Sequence

from refold.application.ports.conversation_log import Damage
from refold.application.ports.recall_index import NO_FILTERS, Filters, Found, Judge
from refold.application.recall.passages import Passage
from refold.application.recall.tokens import digest_of


def passage(number: int, text: str, thread_id: str = "t", **changes: object) -> Passage:
    made = Passage(
        number=number,
        thread_id=thread_id,
        position=number,
        version=number,
        part=0,
        role="user" if number % 2 else "assistant",
        kind="text",
        tool="",
        at=f"2026-01-{1 + number % 28:02}T00:00:00+00:00",
        session=0,
        start=0,
        stop=len(text),
        is_question=False,
        tokens=f" {text} ",
        token_count=len(text.split()),
        digest=digest_of(text),
    )
    return made._replace(**changes)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


class PassageList:
    """``RecallIndex`` over a list. ``erase`` begins a new edition, in which numbers are others."""

    def __init__(self, *texts: str, thread_id: str = "t") -> None:
        self.texts: list[tuple[str, str]] = [(thread_id, text) for text in texts]
        self.current = 1

    def say(self, *texts: str, thread_id: str = "t") -> None:
        self.texts += [(thread_id, text) for text in texts]

    def erase(self, text: str) -> None:
        self.texts = [one for one in self.texts if one[1] != text]
        self.current += 1

    def words(self, passages: Sequence[Passage]) -> dict[int, str]:
        """What passages say, as far as it was not erased."""
        known = {digest_of(text): text for _, text in self.texts}
        return {p.number: known[p.digest] for p in passages if p.digest in known}

    def edition(self) -> int:
        return self.current

    def all(self) -> list[Passage]:
        return [passage(n, text, thread) for n, (thread, text) in enumerate(self.texts, 1)]

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        return [p for p in self.all()[after:] if filters.thread_id in (None, p.thread_id)][:limit]

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
        judge: Judge | None = None,
    ) -> Found:
        raise AssertionError((tokens, filters, limit, also, judge))

    def digests(self) -> set[str]:
        return {p.digest for p in self.all()}

    def check(self) -> Iterator[Damage]:
        return iter(())

    def rebuild(self) -> int:
        return len(self.texts)

    def forget_erased(self) -> bool:
        return self.drop()

    def drop(self) -> bool:
        return True

    def close(self) -> None:
        pass
