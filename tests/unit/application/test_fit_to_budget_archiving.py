"""Long conversations of small messages are archived by number: once, by a summary, also in the background."""

from collections.abc import Sequence
from typing import Any

from refold.application.api.blocking import Runner
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.ports.summariser import Summariser
from refold.domain.compaction.budget import live_messages
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import CompactionPerformed, CompactionRequested, Event
from refold.testing.request_judge import violations
from tests.support.background_desk import WAIT
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.fake_summarisers import RaisingSummariser, RecordingSummariser

POLICY = CompactionPolicy(archive_over=50, archive_buffer=10)
WORDS = "a word or two about the garden and the shed and the fence and what else there is to do "


class Talk:
    """Small messages in a window of 200,000 tokens: size never matters."""

    def __init__(
        self, policy: CompactionPolicy = POLICY, summariser: Summariser | None = None
    ) -> None:
        self.log = MemoryLog()
        self.summariser = RecordingSummariser(summariser)
        self.core = core_of(self.log, window=200_000, policy=policy, summariser=self.summariser)

    def says(self, count: int, role: str | None = None) -> None:
        start = self.state.length
        for n in range(start, start + count):
            speaker = role or ("user", "assistant")[n % 2]
            self.conversation.append({"role": speaker, "content": WORDS * 2})

    @property
    def conversation(self) -> ConversationMemory:
        return ConversationMemory(self.core, "t", Runner())

    @property
    def state(self) -> Any:
        return self.log.load("t").state

    def context(self) -> Context:
        runner = Runner()
        try:
            context = ConversationMemory(self.core, "t", runner).context()
        finally:
            runner.close()
        assert violations(context.for_anthropic()) == []
        return context

    def events(self, kind: type[Event]) -> Sequence[Event]:
        return [event for event in self.log.streams["t"] if isinstance(event, kind)]


def test_up_to_the_limit_nothing_happens() -> None:
    talk = Talk()
    talk.says(50)
    assert talk.context().compactions == ()


def test_one_more_and_the_oldest_are_archived_with_a_buffer() -> None:
    talk = Talk()
    talk.says(51)
    context = talk.context()
    assert [(c.outcome, c.effective) for c in context.compactions] == [("performed", True)]
    assert live_messages(talk.state) <= 40
    assert len(context.messages) <= 41
    assert context.compactions[0].tokens_after < context.compactions[0].tokens_before


def test_asked_again_nothing_is_done_again() -> None:
    talk = Talk()
    talk.says(51)
    first, second = talk.context(), talk.context()
    assert second.compactions == ()
    assert (second.system, second.messages) == (first.system, first.messages)


def test_after_it_the_buffer_fills_before_the_next_one() -> None:
    talk = Talk()
    for _ in range(150):
        talk.says(1)
        talk.context()
    made = talk.events(CompactionPerformed)
    assert len(made) == 1 + (150 - 51) // 12  # Whole turns: eleven messages over forty are twelve.
    assert live_messages(talk.state) <= 50


def test_without_the_setting_nothing_is_decided_while_the_whole_fits() -> None:
    talk = Talk(CompactionPolicy())
    talk.says(400)
    assert talk.context().compactions == ()


def test_where_nothing_legal_can_be_covered_nothing_is_recorded_and_nobody_is_asked() -> None:
    talk = Talk()
    talk.says(60, "user")
    version = talk.state.version
    assert talk.context().compactions == ()
    assert talk.state.version == version
    assert talk.summariser.requests == []


def test_a_failure_is_tried_again_when_the_buffer_has_filled() -> None:
    raising = RaisingSummariser()
    talk = Talk(summariser=raising)
    talk.says(51)
    assert [c.outcome for c in talk.context().compactions] == ["failed"]
    calls = raising.calls
    for _ in range(9):
        talk.says(1)
        assert talk.context().compactions == ()
    assert raising.calls == calls
    talk.says(1)
    assert [c.outcome for c in talk.context().compactions] == ["failed"]


def test_pins_that_leave_more_than_the_limit_cost_one_attempt_for_each_buffer() -> None:
    talk = Talk()
    talk.says(60)
    for position in range(45):
        talk.conversation.pin(position)
    for _ in range(30):
        talk.says(1)
        talk.context()
    assert len(talk.events(CompactionRequested)) <= 4


def test_tool_content_is_not_shortened_for_the_number_alone() -> None:
    talk = Talk(CompactionPolicy(archive_over=50, archive_buffer=10, offload_tokens=50))
    call: dict[str, object] = {"type": "tool_use", "id": "c1", "name": "bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": WORDS * 40}
    talk.says(48)
    talk.conversation.append(
        [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    )
    talk.says(2, "user")
    context = talk.context()
    assert [c.outcome for c in context.compactions] == ["performed"]
    assert context.compactions[0].results_offloaded == 0
    assert talk.log.load("t").window.previews == {}


def test_it_begins_in_the_background_after_the_append_that_is_too_many() -> None:
    log = MemoryLog()
    core = core_of(log, window=200_000, policy=POLICY, background=True)
    with Memory(core) as memory:
        conversation = memory.conversation("t")

        def say(count: int) -> list[Event]:
            for n in range(count):
                conversation.append({"role": ("user", "assistant")[n % 2], "content": WORDS * 2})
                assert memory.drain(WAIT)
            return [e for e in log.streams["t"] if isinstance(e, CompactionPerformed)]

        assert say(50) == []
        assert len(say(1)) == 1
        assert len(say(9)) == 1
        assert live_messages(log.load("t").state) <= 50
        assert conversation.context().compactions == ()
        assert len(say(30)) >= 3
