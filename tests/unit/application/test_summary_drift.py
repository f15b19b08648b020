"""Against drift: leaves of what each compaction covered are kept, and a worn summary is built from them."""

import asyncio
import re
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.summariser import Summariser, SummaryDraft, SummaryRequest
from refold.application.summaries.leaves import keep_within, stored_leaves, text_of_leaves
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import CompactionPerformed, CompactionRequested, LeafSummary
from refold.infrastructure.summarisers.extractive.summariser import ExtractiveSummariser
from tests.support.bounded_summarisers import Attentive, Bounded, Forgetful
from tests.support.builders import performed, talk
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.fake_summarisers import RaisingSummariser, RecordingSummariser
from tests.support.summary_scenes import Scene

FILLER = "Then the build went on and the log scrolled by without a word of interest. " * 8


class Worker:
    """An agent that is compacted again and again, with a log in memory to look into."""

    def __init__(
        self,
        summariser: Summariser,
        fallback: Summariser | None = None,
        policy: CompactionPolicy | None = None,
        log: MemoryLog | None = None,
    ) -> None:
        self.log = log or MemoryLog()
        fallback = fallback or ExtractiveSummariser()
        self.core = core_of(self.log, summariser=summariser, fallback=fallback, policy=policy)
        self.runner = Runner()
        self.conversation = ConversationMemory(self.core, "t", self.runner)
        self.turn = 0

    def compacted(self, times: int) -> list[CompactionPerformed]:
        try:
            for _ in range(times):
                for _ in range(4):
                    self._turn()
                assert self.conversation.compact().outcome == "performed"
        finally:
            self.runner.close()
        return [e for e in self.log.streams["t"] if isinstance(e, CompactionPerformed)]

    def _turn(self) -> None:
        n, self.turn = self.turn, self.turn + 1
        asked = f"Never touch src/part_{n}.py without asking. It is fact-{n}. {FILLER}"
        self.conversation.append(
            [
                {"role": "user", "content": asked},
                {"role": "assistant", "content": f"Done. {FILLER}"},
            ]
        )

    def requests(self) -> list[CompactionRequested]:
        return [e for e in self.log.streams["t"] if isinstance(e, CompactionRequested)]


def test_each_compaction_keeps_a_leaf_of_just_what_it_covered_first() -> None:
    events = Worker(Forgetful()).compacted(3)
    leaves = [event.leaf for event in events]
    ranges = [(leaf.start, leaf.stop) for leaf in leaves if leaf]
    assert ranges[0][0] == 0
    assert [stop for _, stop in ranges] == [event.coverage.stop for event in events]
    assert [start for start, _ in ranges[1:]] == [stop for _, stop in ranges[:-1]]
    for leaf in leaves:
        assert leaf is not None
        assert f"src/part_{leaf.start // 2}.py" in leaf.text
        assert leaf.tokens <= 1_200


def test_the_length_of_a_leaf_is_a_setting_and_no_more_than_that_of_a_summary() -> None:
    recording = RecordingSummariser(ExtractiveSummariser())
    worker = Worker(Forgetful(), recording, CompactionPolicy(leaf_tokens=200))
    worker.compacted(1)
    assert [r.target_tokens for r in recording.requests] == [200]
    forgetful, recording = Forgetful(), RecordingSummariser(ExtractiveSummariser())
    Worker(forgetful, recording).compacted(1)
    assert forgetful.requests[0].target_tokens <= recording.requests[0].target_tokens < 1_000


def test_the_fifth_generation_is_built_from_all_that_was_written_before() -> None:
    forgetful = Forgetful()
    worker = Worker(forgetful)
    events = worker.compacted(12)
    assert [e.generation for e in events] == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]
    assert [r.rebuilds for r in worker.requests()] == [
        e.generation == 0 and n > 0 for n, e in enumerate(events)
    ]
    for number in (5, 10):
        previous = str(forgetful.requests[number].previous)
        assert "Extracted by code from messages 0 to" in previous
        for event in events[:number]:
            covered = f"about messages 0 to {event.coverage.stop - 1}"
            assert f"Written by {event.model} {covered}:\n\n{event.text}" in previous


def test_a_text_that_grew_too_long_is_built_anew_at_the_next_compaction() -> None:
    worker = Worker(Attentive(), policy=CompactionPolicy(rebuild_over_tokens=3))
    events = worker.compacted(3)
    assert [e.generation for e in events] == [0, 0, 0]
    assert [r.rebuilds for r in worker.requests()] == [False, True, True]


class ForgetfulAtFirst:
    """Forgets everything four times, then does its work."""

    name = "forgetful at first"

    def __init__(self) -> None:
        self.calls = 0

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        self.calls += 1
        worker = Forgetful() if self.calls <= 5 else Attentive()
        return await worker.summarise(request)


def test_what_earlier_generations_lost_comes_back() -> None:
    events = Worker(ForgetfulAtFirst()).compacted(6)
    assert "fact-0" not in events[4].text
    held = {fact for e in events[:5] if e.leaf for fact in re.findall(r"fact-\d+", e.leaf.text)}
    assert "fact-0" in held
    assert held <= set(re.findall(r"fact-\d+", events[5].text))


@pytest.mark.parametrize("summariser", [ExtractiveSummariser(), Forgetful()], ids=lambda s: s.name)
def test_ten_compactions_in_a_row_lose_nothing_that_the_first_ones_ledger_and_leaf_held(
    summariser: Summariser,
) -> None:
    worker = Worker(summariser, policy=CompactionPolicy(rebuild_after=3))
    events = worker.compacted(10)
    first, last = events[0], events[-1]
    assert len(events) == 10
    assert first.leaf is not None
    kept = {(line.kind, line.text) for line in last.ledger}
    assert {(line.kind, line.text) for line in first.ledger} <= kept
    loaded = worker.log.load("t")
    assert stored_leaves(worker.core, loaded) == tuple(e.leaf for e in events)
    assert loaded.state.summary is not None
    assert len(loaded.state.summary.leaves) <= 4, "it has to be read to build from all leaves"


def leaves_of(count: int, size: int = 40) -> list[LeafSummary]:
    return [
        LeafSummary(
            start=10 * n,
            stop=10 * n + 10,
            text=f"## Requests\n- [{10 * n}] " + f"fact-{n} " * size,
            tokens=3 * size,
        )
        for n in range(count)
    ]


def test_leaves_are_headed_by_their_ranges_in_order() -> None:
    text = run(text_of_leaves(core_of(), "t", leaves_of(2, 1), 1_000))
    assert text == (
        "Extracted by code from messages 0 to 9:\n\n## Requests\n- [0] fact-0 \n\n"
        "Extracted by code from messages 10 to 19:\n\n## Requests\n- [10] fact-1 "
    )


def test_of_too_many_leaves_the_newest_stay_whole_and_the_older_ones_are_shortened() -> None:
    recording = RecordingSummariser(ExtractiveSummariser())
    core = core_of(fallback=recording)
    leaves = leaves_of(20)
    text = run(text_of_leaves(core, "t", leaves, 1_000))
    assert core.counter.count_text(text) <= 1_100
    assert leaves[-1].text in text
    assert leaves[0].text not in text
    [request] = recording.requests
    assert request.messages == ()
    assert leaves[0].text in str(request.previous)
    assert request.target_tokens == 500


def test_the_texts_that_a_rebuilt_summary_passes_on_stay_within_their_room() -> None:
    """The older ones are shortened again each time, to the same length: they do not dwindle."""
    core = core_of(fallback=ExtractiveSummariser())
    count = core.counter.count_text
    kept, lengths = tuple[LeafSummary, ...](), list[int]()
    for n in range(0, 100, 5):
        kept = asyncio.run(keep_within(core, "t", (*kept, *leaves_of(100)[n : n + 5]), 1_000))
        lengths.append(sum(count(leaf.text) for leaf in kept))
        assert kept[-1] == leaves_of(100)[n + 4]
        assert (kept[0].start, kept[-1].stop) == (0, 10 * n + 50)
        assert all(before.stop == leaf.start for before, leaf in pairwise(kept))
    assert max(lengths) <= 1_100
    assert min(lengths[5:]) >= 500


def test_an_embedded_summariser_that_fails_leaves_a_note_as_leaf_and_the_chain_whole() -> None:
    events = Worker(Forgetful(), RaisingSummariser()).compacted(2)
    assert all(event.leaf and "could not be summarised" in event.leaf.text for event in events)
    assert "refold://t/0" in str(events[0].leaf)


def test_a_leaf_that_cannot_be_read_leaves_the_summary_as_it_was_to_be_carried_on() -> None:
    class Unreadable(MemoryLog):
        def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
            raise LogError("damaged on purpose")

        def load(self, thread_id: str, *, at: int | None = None) -> LoadedConversation:
            """Load it as in a new process, which keeps no texts."""
            loaded = super().load(thread_id, at=at)
            return replace(loaded, window=replace(loaded.window, texts={}))

    worker = Worker(Attentive(), policy=CompactionPolicy(rebuild_after=1))
    unreadable = Unreadable()
    worker.core = core_of(
        unreadable, summariser=Attentive(), policy=CompactionPolicy(rebuild_after=1)
    )
    worker.conversation = ConversationMemory(worker.core, "t", worker.runner)
    worker.log = unreadable
    events = worker.compacted(2)
    assert [e.generation for e in events] == [0, 1]


def test_a_bounded_summariser_gets_leaves_that_fit_its_window() -> None:
    bounded = Bounded(4_000, Attentive())
    before = performed(200, text="so far")
    Scene(*talk(2), summariser=bounded, start=200, before=before, leaves=leaves_of(20)).written()
    [request] = bounded.requests
    assert bounded.measure(request) * 1.2 <= 4_000


def run(writing: Coroutine[Any, Any, str]) -> str:
    return asyncio.run(writing)
