"""Whatever requests carry, and whoever makes them: thinking is valid, and a version gives what was sent."""

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

import refold
from refold.testing.request_judge import preserved_thinking_violations, violations
from tests.support.effort import one_in
from tests.support.witness import SHM

BOUND, MANUAL = "claude-opus-5-5", "claude-opus-4-5"
LOOK = {"name": "look", "description": "Look.", "input_schema": {"type": "object"}}
FRAMES: tuple[dict[str, Any], ...] = (
    {"model": BOUND, "system": "A"},
    {"model": BOUND, "system": "B\n\n" + "rule " * 300},
    {"model": BOUND, "system": "A", "tools": [LOOK]},
    {"model": MANUAL, "system": "A", "tools": [LOOK]},
    {"model": BOUND},
)
FRAME = st.sampled_from((0, 0, 0, 1, 2, 3, 4)).map(FRAMES.__getitem__)
MEMORY = st.sampled_from((0, 0, 0, 1))


class Say(NamedTuple):
    """Somebody says something."""

    memory: int
    size: int


class Ask(NamedTuple):
    """A request is made; nobody has answered yet."""

    memory: int
    frame: dict[str, Any]


class Answer(NamedTuple):
    """The oldest request without an answer gets one, which calls a tool or not."""

    calls: bool
    elsewhere: bool
    """Whether another process stores it than the one that asked."""


class Turn(NamedTuple):
    """A question, its request and its answer, with nobody in between; the frame is the one before."""

    memory: int
    loops: int


class Restart(NamedTuple):
    """A process ends, and another opens the log."""

    memory: int


STEPS = st.lists(
    st.one_of(
        st.builds(Turn, MEMORY, st.integers(0, 3)),
        st.builds(Turn, MEMORY, st.integers(0, 3)),
        st.builds(Say, MEMORY, st.sampled_from((1, 60))),
        st.builds(Ask, MEMORY, FRAME),
        st.builds(Answer, st.booleans(), st.sampled_from((False, False, True))),
        st.builds(Restart, MEMORY),
    ),
    min_size=4,
    max_size=40,
)


class _Open(NamedTuple):
    request: dict[str, Any]
    memory: int
    frame: dict[str, Any]


class Talk:
    """One conversation, two processes, and every request with the answer that it got."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.memories = [self._opened(), self._opened()]
        self.requests: list[dict[str, Any]] = []
        self.versions: dict[int, dict[str, Any]] = {}
        """What was sent of each version, where its frame is recorded."""
        self.open: list[_Open] = []
        self.answered: set[int] = set()
        """The processes that stored an answer since they said something."""
        self.calling: int | None = None
        """The process that stored the newest message, if that is a call with its result."""
        self.frame = FRAMES[0]
        self.number = 0

    def _opened(self) -> refold.Memory:
        return refold.open(self.path, window=3_000, scrub_megabytes=0)

    def conversation(self, memory: int) -> refold.ConversationMemory:
        return self.memories[memory].conversation("t")

    def take(self, step: Any) -> None:
        match step:
            case Say():
                self.say(step.memory, step.size)
            case Ask():
                self.ask(step.memory, step.frame)
            case Answer():
                self.answer(calls=step.calls, elsewhere=step.elsewhere)
            case Turn():
                self.say(step.memory, 1)
                for _ in range(step.loops):
                    self.ask(step.memory, self.frame)
                    self.answer(calls=True, elsewhere=False)
                self.ask(step.memory, self.frame)
                self.answer(calls=False, elsewhere=False)
            case Restart():
                self.memories[step.memory].close()
                self.memories[step.memory] = self._opened()
                self.open = [one for one in self.open if one.memory != step.memory]
                self.calling = None if self.calling == step.memory else self.calling
            case _:
                raise AssertionError(step)

    def say(self, memory: int, size: int) -> None:
        self.number += 1
        self.calling = None
        self.conversation(memory).append(
            {"role": "user", "content": f"question {self.number} " * size}
        )
        if memory in self.answered:
            # Whoever speaks after an answer waits for none of those before.
            self.open = [one for one in self.open if one.memory != memory]
            self.answered.discard(memory)

    def ask(self, memory: int, frame: dict[str, Any]) -> None:
        conversation = self.conversation(memory)
        if not conversation.version:
            self.say(memory, 1)
        try:
            made = conversation.context(**frame)
        except refold.ContextWindowExceeded:
            return
        self.frame = frame
        request = {"model": frame["model"], **json.loads(json.dumps(made.for_anthropic()))}
        self.open.append(_Open({**request, "version": made.version}, memory, frame))
        assert not violations(request)

    def answer(self, *, calls: bool, elsewhere: bool) -> None:
        if not self.open:
            return
        asked = self.open.pop(0)
        self.number += 1
        blocks: list[dict[str, Any]] = [
            {"type": "thinking", "thinking": f"t{self.number}", "signature": f"s{self.number}"}
        ]
        if calls:
            call = f"call_{self.number}"
            blocks.append({"type": "tool_use", "id": call, "name": "look", "input": {}})
        else:
            blocks.append({"type": "text", "text": f"answer {self.number}"})
        # A process with a request of its own cannot know of another's: the answer seems to be to its own. Behind
        # its own call it seems to go on from there, as if several calls were made after one request.
        other = 1 - asked.memory
        elsewhere = elsewhere and self.calling != other
        elsewhere = elsewhere and all(one.memory == asked.memory for one in self.open)
        memory = other if elsewhere else asked.memory
        version = asked.request.pop("version")
        self.requests.append({**asked.request, "answer": blocks})
        conversation = self.conversation(memory)
        is_next = conversation.version == version
        conversation.append({"role": "assistant", "content": blocks})
        self.answered.add(memory)
        self.calling = memory if calls else None
        if is_next and not elsewhere and not self.open:
            self.versions[version] = asked.request
        if calls:
            result = {
                "type": "tool_result",
                "tool_use_id": f"call_{self.number}",
                "content": "out " * 40,
            }
            conversation.append({"role": "user", "content": [result]}, recorded=True)

    def close(self) -> None:
        for memory in self.memories:
            memory.close()


ANSWERED_ELSEWHERE = [
    Turn(0, 0),
    Say(0, 1),
    Ask(0, FRAMES[1]),
    Answer(calls=False, elsewhere=True),
    Ask(0, FRAMES[0]),
    Turn(0, 0),
]
"""Another process stores the answer to a changed frame, and the next request has the frame before."""
SPOKEN_MEANWHILE = [
    Turn(0, 0),
    Say(0, 1),
    Ask(0, FRAMES[0]),
    Say(0, 1),
    Answer(calls=False, elsewhere=True),
    Turn(1, 0),
]
"""The user speaks before another process stores the answer, which then seems to be to both messages."""
ANSWERED_TO_AN_OLDER_REQUEST = [
    Ask(1, FRAMES[0]),
    Ask(0, FRAMES[0]),
    Answer(calls=False, elsewhere=False),
    Turn(0, 2),
]
"""Two processes ask the same, and one stores its answer. The other goes on speaking, and only then gets the answer to
its old request. It seems to be one to the new request, and its thinking must not be shown there.
"""


@one_in(1)
@given(STEPS)
@example(ANSWERED_ELSEWHERE)
@example(SPOKEN_MEANWHILE)
@example(ANSWERED_TO_AN_OLDER_REQUEST)
def test_thinking_is_valid_and_a_version_gives_what_was_sent(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory(dir=SHM) as folder:
        talk = Talk(Path(folder) / "talk.db")
        try:
            for step in steps:
                talk.take(step)
            assert preserved_thinking_violations(talk.requests) == []
            for version, sent in talk.versions.items():
                again = talk.conversation(1).context(at=version)
                assert {"model": again.model, **again.for_anthropic()} == sent
            assert talk.memories[0].verify().ok
        finally:
            talk.close()
