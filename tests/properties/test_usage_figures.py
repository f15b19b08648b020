"""What an answer says it has used is never taken for the size of what is sent next."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from refold.application.api.memory import Memory
from refold.application.api.results import CompactionResult
from refold.domain.events import Event, MessageAppended
from refold.domain.value import replace
from tests.support.fake_ports import MemoryLog, core_of

WORDS = "The build failed in step 7, please look at it once more. "
FIGURES = st.integers(0, 10**9)
USAGE = st.fixed_dictionaries(
    {"input_tokens": FIGURES, "output_tokens": FIGURES, "cache_read_input_tokens": FIGURES}
)
Seen = tuple[object, ...]


class Conversation:
    """A conversation whose answers may say what they have used."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.memory = Memory(core_of(self.log, window=3_000))
        self.conversation = self.memory.conversation("t")

    def turn(self, words: int, usage: dict[str, int] | None) -> None:
        answer: dict[str, Any] = {"role": "assistant", "content": WORDS * words}
        self.conversation.append({"role": "user", "content": WORDS * words})
        self.conversation.append(answer if usage is None else {**answer, "usage": usage})

    def look(self, *, compacts: bool) -> Seen:
        outcome: CompactionResult | None = self.conversation.compact() if compacts else None
        self.conversation.append({"role": "user", "content": "And now?"})
        context = self.conversation.context(system="You help.")
        done = [replace(result, seconds=0.0) for result in context.compactions]
        return context.messages, context.tokens, done, outcome and outcome.outcome

    @property
    def events(self) -> Sequence[Event]:
        return self.log.streams["t"]


def without_figures(event: Event) -> Event:
    """The event without what a message came with besides."""
    if not isinstance(event, MessageAppended):
        return event
    return replace(event, message=replace(event.message, extra=None))


@given(turns=st.lists(st.tuples(st.integers(1, 12), USAGE, st.booleans()), min_size=4, max_size=12))
def test_usage_figures_change_neither_a_size_nor_a_compaction(
    turns: list[tuple[int, dict[str, int], bool]],
) -> None:
    """A figure from before a compaction speaks of a request that nobody will send again."""
    plain, told = Conversation(), Conversation()
    with plain.memory, told.memory:
        for words, usage, compacts in turns:
            plain.turn(words, None)
            told.turn(words, usage)
            assert plain.look(compacts=compacts) == told.look(compacts=compacts)
        assert list(map(without_figures, plain.events)) == list(map(without_figures, told.events))


@given(words=st.lists(st.integers(4, 12), min_size=6, max_size=10), usage=USAGE)
def test_after_a_compaction_the_size_is_that_of_what_is_sent(
    words: list[int], usage: dict[str, int]
) -> None:
    told = Conversation()
    with told.memory:
        for count in words:
            told.turn(count, usage)
        before = told.conversation.context(at=told.conversation.version).tokens
        result = told.conversation.compact()
        after = told.conversation.context()
        if result.outcome == "performed":
            assert after.tokens < before
        said = sum(len(str(message["content"])) for message in after.messages)
        assert after.tokens <= said / 2 + 400
