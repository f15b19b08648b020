"""The recall index: followed or rebuilt it is the same, every hit reads back, nothing erased is found."""

import tempfile
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.application.api.memory import Memory
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.recall_index import Filters
from refold.application.recall.tokens import digest_of, pad, tokens_of
from refold.application.runtime.core import Core
from refold.domain.errors import ConversationGone, InvalidMessage
from refold.domain.events import MessageAppended
from refold.domain.messages import readable
from refold.infrastructure.recall import index_tables
from refold.infrastructure.recall import recall_index as folding
from refold.infrastructure.recall.recall_index import SQLiteRecallIndex
from refold.testing.history_layout import Step, marked, marker
from refold.testing.history_strategies import turns
from tests.support.effort import one_in
from tests.support.fake_recall import MemoryIndex
from tests.support.witness import SHM

deeds = st.one_of(
    *[st.tuples(st.just("say"), st.just(0))] * 5,
    st.tuples(st.sampled_from(("ask", "ask", "fork", "restart", "rebuild")), st.integers(0, 9)),
    st.tuples(st.sampled_from(("erase", "erase", "erase all")), st.integers(0, 60)),
)


class Talks:
    """Conversations in a file, looked up from time to time, and what was erased from them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.erased: set[int] = set()
        self.memory = self._opened()

    def _opened(self) -> Memory:
        return refold.open(self.folder / "a.db", window=200_000, scrub_megabytes=0)

    @property
    def core(self) -> Core:
        return self.memory._core  # pyright: ignore[reportPrivateUsage]

    def do(self, kind: str, number: int) -> None:
        conversation = self.memory.conversation("t")
        count = len(conversation.messages())
        match kind:
            case "ask":
                self.core.recall.index.passages(number)
            case "fork" if count:
                conversation.fork()
            case "restart":
                self.memory.close()
                self.memory = self._opened()
            case "rebuild":
                self.core.recall.index.rebuild()
            case "erase" if count:
                self.erased |= marked(conversation.messages()[number % count].text)
                assert conversation.erase(number % count).complete
            case "erase all" if number == 0 and count:
                for message in conversation.messages():
                    self.erased |= marked(message.text)
                self.memory.erase_conversation("t")
            case _:
                pass
        if kind.startswith("erase"):
            # Before anything is asked: an index that is left would be folded anew only then.
            nothing_of(self.folder, self.erased)

    def judge(self) -> None:
        nothing_of(self.folder, self.erased)
        index = self.core.recall.index
        followed = index.passages(0, 10_000)
        with closing(SQLiteRecallIndex(":memory:", self.core.log)) as fresh:
            assert fresh.passages(0, 10_000) == followed
        assert MemoryIndex(self.core.log).passages(0, 10_000) == followed
        assert list(index.check()) == []
        events = list(self.core.log.scan())
        reads_back(self.core, events)
        is_found(self.core, events, self.erased)
        nothing_of(self.folder, self.erased)


def nothing_of(folder: Path, erased: set[int]) -> None:
    for path in folder.iterdir():
        content = path.read_bytes()
        for number in erased:
            for form in (marker(number), pad(tokens_of(marker(number)))):
                assert form.encode() not in content, f"{form} in {path.name}"


def reads_back(core: Core, events: Sequence[LoggedEvent]) -> None:
    by_place = {(e.thread_id, e.version): e for e in events}
    for passage in core.recall.index.passages(0, 10_000):
        logged = by_place[passage.thread_id, passage.version]
        assert isinstance(logged.event, MessageAppended)
        assert not logged.erased
        assert logged.event.position == passage.position
        words = readable(logged.event.message)[passage.start : passage.stop]
        assert digest_of(words) == passage.digest
        assert passage.tokens.startswith(pad(tokens_of(words)))


def is_found(core: Core, events: Sequence[LoggedEvent], erased: set[int]) -> None:
    """Every message by its marker, in each conversation that has it, and none that was erased."""
    index = core.recall.index
    for logged in events:
        event = logged.event
        if not isinstance(event, MessageAppended):
            continue
        for number in marked(readable(event.message)):
            tokens, scope = tokens_of(marker(number)), Filters(thread_id=logged.thread_id)
            found = index.find(tokens, scope, limit=10_000)
            line = pad(tokens)
            where = {p.position for p in found.candidates if line in p.tokens}
            assert where == {event.position}
            assert {p.thread_id for p in found.candidates} == {logged.thread_id}
            assert number not in erased
    for number in erased:
        line = pad(tokens_of(marker(number)))
        everywhere = index.find(tokens_of(marker(number)), limit=10_000).candidates
        assert not any(line in passage.tokens for passage in everywhere)


@contextmanager
def talks() -> Generator[Talks]:
    with tempfile.TemporaryDirectory(dir=SHM) as folder:
        made = Talks(Path(folder))
        try:
            yield made
        finally:
            made.memory.close()


@one_in(3)
@given(
    turns(recorded=True, min_messages=3, max_messages=30),
    st.lists(deeds, max_size=25),
    st.integers(1, 7),
    st.integers(1, 9),
)
def test_followed_or_rebuilt_it_is_the_same_and_nothing_erased_is_in_it(
    steps: Sequence[Step], chosen: Sequence[tuple[str, int]], batch: int, waiting: int
) -> None:
    left = list(steps)
    with pytest.MonkeyPatch.context() as patch, talks() as made:
        patch.setattr(folding, "BATCH", batch)
        patch.setattr(index_tables, "WAITING", waiting)
        for kind, number in (("say", 0), ("say", 0), ("ask", 0), *chosen):
            try:
                if kind == "say" and left:
                    made.memory.conversation("t").append(left.pop(0), recorded=True)
                else:
                    made.do(kind, number)
            except (InvalidMessage, ConversationGone):
                continue
        made.judge()


@given(text=st.text(max_size=60), other=st.text(max_size=60))
def test_no_text_breaks_a_question_and_what_was_said_is_found_by_its_own_words(
    text: str, other: str
) -> None:
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        conversation.append(
            [{"role": "user", "content": f"{text} x"}, {"role": "assistant", "content": "y"}]
        )
        index = memory._core.recall.index  # pyright: ignore[reportPrivateUsage]
        positions = {p.position for p in index.find(tokens_of(text)).candidates}
        assert positions <= {0, 1}
        assert 0 in positions or not tokens_of(text)
        index.find(tokens_of(other))
        # Whatever is handed over in place of tokens.
        index.find([text, other], Filters(thread_id=f"{other}", roles=frozenset({text})))
