"""What a request carries besides the conversation: recorded when it changes, and legal whatever changes."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.domain.events import Event, MessageAppended
from refold.domain.frames import RequestFrameChanged
from refold.infrastructure.event_store.store import SQLiteLog
from refold.testing.request_judge import preserved_thinking_violations, violations

BOUND = "claude-opus-5-5"
"""A model that refuses thinking behind another prefix."""
MANUAL = "claude-opus-4-5"
"""A model that may be asked to think before each call, and does not look at the prefix."""
LOOK = {"name": "look", "description": "Look at a file.", "input_schema": {"type": "object"}}
WRITE = {"name": "write", "description": "Write a file.", "input_schema": {"type": "object"}}


class Agent:
    """An agent whose every answer thinks, and whose every request is kept for the judge."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path = path
        self.requests: list[dict[str, Any]] = []
        self.versions: list[int] = []
        self.options = options
        self.memory = refold.open(path, **options)
        self.number = 0

    @property
    def conversation(self) -> refold.ConversationMemory:
        return self.memory.conversation("t")

    def restart(self, **options: Any) -> None:
        self.memory.close()
        self.options |= options
        self.memory = refold.open(self.path, **self.options)

    def ask(self, **frame: Any) -> dict[str, Any]:
        """The next request, with the answer that it gets; the answer is not stored."""
        made = self.conversation.context(**frame)
        self.number += 1
        thought = {
            "type": "thinking",
            "thinking": f"t{self.number}",
            "signature": f"s{self.number}",
        }
        answer = [thought, {"type": "text", "text": f"answer {self.number}"}]
        request = {"model": frame.get("model", BOUND), **made.for_anthropic(), "answer": answer}
        self.requests.append(json.loads(json.dumps(request)))
        self.versions.append(made.version)
        return {"role": "assistant", "content": answer}

    def turn(self, **frame: Any) -> None:
        self.conversation.append({"role": "user", "content": f"question {self.number}"})
        self.conversation.append(self.ask(**frame))

    def loop(self, size: int, *, text: str, **frame: Any) -> None:
        """One call of a tool with its result, inside of a turn."""
        answer = self.ask(**frame)
        thought = answer["content"][0]
        call: dict[str, Any] = {
            "type": "tool_use",
            "id": f"call_{self.number}",
            "name": "look",
            "input": {},
        }
        self.requests[-1]["answer"] = [thought, call]
        self.conversation.append({"role": "assistant", "content": [thought, call]})
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": call["id"],
            "content": text * size,
        }
        self.conversation.append({"role": "user", "content": [result]})

    def illegal(self) -> list[str]:
        found = [fault for request in self.requests for fault in violations(request)]
        return found + preserved_thinking_violations(self.requests)

    def events(self) -> list[Event]:
        log = SQLiteLog(self.path)
        try:
            return [one.event for one in log.read("t", 1, log.load("t").state.version)]
        finally:
            log.close()

    def changes(self) -> list[RequestFrameChanged]:
        return [event for event in self.events() if isinstance(event, RequestFrameChanged)]

    def thoughts(self) -> int:
        """How much thinking the newest request shows."""
        shown = self.requests[-1]["messages"]
        blocks = [b for m in shown if isinstance(m["content"], list) for b in m["content"]]
        return sum(1 for block in blocks if block["type"] == "thinking")


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path / "agent.db", window=32_000)
    yield made
    made.memory.close()


def test_thinking_stays_while_nothing_changes(agent: Agent) -> None:
    for _ in range(5):
        agent.turn(model=BOUND, system="A", tools=[LOOK])
    assert agent.thoughts() == 4
    assert agent.illegal() == []


@pytest.mark.parametrize(
    "later",
    [
        {"system": "B"},
        {"system": None},
        {"system": [{"type": "text", "text": "A"}]},
        {"tools": [LOOK, WRITE]},
        {"tools": []},
        {"tools": [{**LOOK, "description": "Look at it."}]},
        {"model": "claude-sonnet-5-5"},
    ],
)
def test_a_changed_frame_drops_what_was_signed_for_another(
    agent: Agent, later: dict[str, Any]
) -> None:
    frame = {"model": BOUND, "system": "A", "tools": [LOOK]}
    for number in range(6):
        agent.turn(**(frame if number < 3 else frame | later))
    assert agent.illegal() == []
    assert agent.thoughts() == 2  # What was thought since then is shown.


def test_a_system_text_that_changes_each_third_turn_and_a_tool_that_comes_later(
    agent: Agent,
) -> None:
    for number in range(30):
        tools = [LOOK, WRITE] if number >= 15 else [LOOK]
        agent.turn(model=BOUND, system=f"It is day {number // 3}.", tools=tools)
    assert agent.illegal() == []
    assert len(agent.changes()) == 10


def test_after_a_restart_thinking_stays_or_goes_as_before(agent: Agent) -> None:
    for number in range(6):
        agent.restart()
        agent.turn(model=BOUND, system="A" if number < 4 else "B")
        assert agent.thoughts() == (number if number < 4 else number - 4)
    assert agent.illegal() == []


def test_an_edited_instruction_file_is_another_system_text(agent: Agent, tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text("Be brief.")
    agent.restart(instruction_files=[file])
    agent.turn(model=BOUND)
    agent.turn(model=BOUND)
    file.write_text("Be very brief.")
    agent.restart()
    agent.turn(model=BOUND)
    assert agent.illegal() == []
    for request, version in zip(agent.requests, agent.versions, strict=True):
        assert agent.conversation.context(at=version).for_anthropic()["system"] == request["system"]


def test_the_change_comes_with_the_next_append_and_without_a_commit_of_its_own(
    agent: Agent,
) -> None:
    conversation = agent.conversation
    assert conversation.append({"role": "user", "content": "hello"}).version == 1
    for _ in range(3):
        assert conversation.context(model=BOUND, system="A").version == 1
    assert agent.changes() == []
    assert conversation.append({"role": "assistant", "content": "hi"}).version == 3
    assert [type(event) for event in agent.events()] == [
        MessageAppended,
        RequestFrameChanged,
        MessageAppended,
    ]
    conversation.append({"role": "user", "content": "more"})
    conversation.context(model=BOUND, system="A")
    assert conversation.append({"role": "assistant", "content": "yes"}).version == 5


def test_a_request_that_carries_nothing_leaves_no_event(agent: Agent) -> None:
    for number in range(3):
        agent.conversation.append({"role": "user", "content": f"q{number}"})
        agent.conversation.context()
        agent.conversation.append({"role": "assistant", "content": "a"})
    assert agent.changes() == []


def test_each_text_is_recorded_once(agent: Agent) -> None:
    long = "\n\n".join(f"Rule {n}: " + "be careful. " * 40 for n in range(20))
    for number in range(12):
        agent.turn(model=BOUND, system=f"{long}\n\nMode {number % 2}.", tools=[LOOK, WRITE])
    parts = [json.dumps(part.value) for event in agent.changes() for part in event.parts]
    assert len(agent.changes()) == 12
    assert len(parts) == len(set(parts))
    assert sum(map(len, parts)) < 2 * len(long)


def test_a_version_alone_gives_the_bytes_that_were_sent(agent: Agent) -> None:
    frames: Sequence[dict[str, Any]] = (
        {"model": BOUND, "system": "It is Monday.\n\n" * 200, "tools": [LOOK]},
        {
            "model": BOUND,
            "system": [{"type": "text", "text": "规则\ud83d"}, {"type": "text", "text": "b"}],
        },
        {"model": MANUAL, "tools": [WRITE, LOOK]},
        {"model": BOUND, "system": "  \n"},
        {"model": None, "system": "It is Monday.\n\n" * 200},
    )
    for number in range(25):
        agent.turn(**frames[number // 2 % len(frames)])
    agent.restart(summary_place="system", model="claude-haiku-5-5", window=16_000)
    for request, version in zip(agent.requests, agent.versions, strict=True):
        again = agent.conversation.context(at=version).for_anthropic()
        sent = {k: v for k, v in request.items() if k not in ("answer", "model")}
        assert json.loads(json.dumps(again)) == sent, version


def test_what_is_given_counts_before_what_is_recorded(agent: Agent) -> None:
    agent.turn(model=BOUND, system="A", tools=[LOOK])
    version = agent.versions[0]
    then = agent.conversation.context(at=version, system="B")
    assert (then.system, then.tools, then.model) == ("B", [LOOK], BOUND)
    assert agent.conversation.context(at=version, system="").system == ""


def test_a_diff_shows_that_the_system_text_was_another(agent: Agent) -> None:
    agent.turn(model=BOUND, system="It is Monday.")
    agent.turn(model=BOUND, system="It is Tuesday.")
    told = agent.conversation.diff(agent.versions[0], agent.versions[1])
    assert "-system: It is Monday." in told.unified
    assert "+system: It is Tuesday." in told.unified


def test_of_two_requests_at_once_nobody_knows_whose_answer_comes_first(agent: Agent) -> None:
    agent.turn(model=BOUND, system="A")
    for _ in range(3):
        agent.conversation.append({"role": "user", "content": "one of three"})
        agent.ask(model=BOUND, system="A")
    answers = [r["answer"] for r in agent.requests[-3:]]
    for answer in answers:
        agent.conversation.append({"role": "assistant", "content": answer})
    for _ in range(3):
        agent.turn(model=BOUND, system="A")
    assert agent.illegal() == []
    assert agent.thoughts() == 2


def test_two_processes_with_two_system_texts(agent: Agent) -> None:
    other = Agent(agent.path, window=32_000)
    other.requests, other.number = agent.requests, 100
    try:
        for _ in range(4):
            agent.turn(model=BOUND, system="A")
            other.turn(model=BOUND, system="B")
            # Both ask before either answer is stored.
            agent.conversation.append({"role": "user", "content": "both"})
            first, second = agent.ask(model=BOUND, system="A"), other.ask(model=BOUND, system="B")
            other.conversation.append(second)
            agent.conversation.append(first)
    finally:
        other.memory.close()
    agent.turn(model=BOUND, system="A")
    assert preserved_thinking_violations(agent.requests) == []


def test_an_answer_that_another_process_stores(agent: Agent) -> None:
    writer = refold.open(agent.path, window=32_000)
    try:
        for number in range(8):
            agent.conversation.append({"role": "user", "content": "q"})
            answer = agent.ask(model=BOUND, system="AABABBAB"[number])
            writer.conversation("t").append(answer)
    finally:
        writer.close()
    assert agent.illegal() == []


def test_who_is_overtaken_by_another_process_thinks_again_from_its_next_turn_on(
    agent: Agent,
) -> None:
    other = Agent(agent.path, window=32_000)
    other.requests, other.number = agent.requests, 100
    agent.conversation.append({"role": "user", "content": "both"})
    late = agent.ask(model=BOUND, system="A")
    other.conversation.append(other.ask(model=BOUND, system="A"))
    other.memory.close()
    agent.conversation.append({"role": "user", "content": "and?"})
    agent.ask(model=BOUND, system="A")
    agent.conversation.append(late)
    for _ in range(3):
        agent.turn(model=BOUND, system="A")
    assert agent.thoughts() == 2
    assert agent.illegal() == []


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("asks", [True, False])
def test_calls_after_one_request_think_where_its_process_stores_them(
    agent: Agent, *, asks: bool, at_once: bool
) -> None:
    agent.turn(model=BOUND, system="A")
    agent.conversation.append({"role": "user", "content": "do it"})
    agent.ask(model=BOUND, system="A")
    if not asks:
        agent.restart()
    messages: list[dict[str, Any]] = []
    for name in ("a", "b", "c"):
        thought = {"type": "thinking", "thinking": name, "signature": name}
        call: dict[str, Any] = {"type": "tool_use", "id": name, "name": "look", "input": {}}
        result = {"type": "tool_result", "tool_use_id": name, "content": "out"}
        messages.append({"role": "assistant", "content": [thought, call]})
        messages.append({"role": "user", "content": [result]})
    for some in [messages] if at_once else messages:
        agent.conversation.append(some)
    agent.ask(model=BOUND, system="A")
    assert agent.thoughts() == (4 if asks else 0)


def test_the_same_answer_stored_twice_thinks_once(agent: Agent) -> None:
    agent.turn(model=BOUND, system="A")
    for _ in range(3):
        agent.conversation.append({"role": "user", "content": "again"})
        agent.conversation.append({"role": "assistant", "content": agent.requests[0]["answer"]})
        agent.ask(model=BOUND, system="A")
    agent.turn(model=BOUND, system="A")
    assert agent.illegal() == []


@pytest.mark.parametrize("model", [MANUAL, "us.anthropic.claude-sonnet-4-5-20250929-v1:0"])
def test_with_manual_thinking_a_running_loop_keeps_its_thinking(tmp_path: Path, model: str) -> None:
    agent = Agent(tmp_path / "loop.db", window=16_000)
    agent.turn(model=model, system="S")
    agent.conversation.append({"role": "user", "content": "do it"})
    for _ in range(40):
        agent.loop(1_500, text="out ", model=model, system="S", tools=[LOOK])
        agent.requests[-1]["thinking"] = {"type": "enabled", "budget_tokens": 4_000}
    kinds = {type(event).__name__ for event in agent.events()}
    assert {"ToolContentOffloaded", "CompactionPerformed"} <= kinds
    assert [fault for request in agent.requests for fault in violations(request)] == []
    loaded = agent.memory.conversation("t").context(at=agent.versions[-1]).for_anthropic()
    agent.restart()
    again = agent.conversation.context(at=agent.versions[-1]).for_anthropic()
    assert again == loaded
    agent.memory.close()


@pytest.mark.slow
def test_the_conversation_is_the_same_after_a_restart_wherever_it_happens(tmp_path: Path) -> None:
    once, often = (Agent(tmp_path / f"{name}.db", window=12_000) for name in ("once", "often"))
    for agent in (once, often):
        agent.conversation.append({"role": "user", "content": "do it"})
        for number in range(30):
            if agent is often:
                agent.restart()
            model = (MANUAL, BOUND)[number // 10 % 2]
            agent.loop(900, text="out ", model=model, system=f"S{number // 7}", tools=[LOOK])
    assert once.requests == often.requests
    for agent in (once, often):
        agent.memory.close()


def test_erasing_a_message_takes_what_quotes_it_from_the_recorded_system_text(agent: Agent) -> None:
    agent.conversation.append({"role": "user", "content": "My number is 0151-4711-2233, call me."})
    profile = "You are kind.\nThe user said: My number is 0151-4711-2233, call me.\nBe brief."
    agent.conversation.append(agent.ask(model=BOUND, system=profile, tools=[LOOK]))
    agent.conversation.erase(0)
    system = agent.conversation.context(at=agent.versions[0]).system
    assert isinstance(system, str)
    assert "4711" not in system
    assert system.startswith("You are kind.\n")
    assert system.endswith("\nBe brief.")
    agent.memory.close()
    for file in agent.path.parent.iterdir():
        # With its hyphens: four digits alone are in one of fifty logs by chance, as part of a digest.
        assert b"0151-4711-2233" not in file.read_bytes(), file.name
        assert b"4711-2233" not in file.read_bytes(), file.name
    agent.restart()


def test_a_fork_knows_what_was_sent(agent: Agent) -> None:
    agent.turn(model=BOUND, system="A", tools=[LOOK])
    agent.turn(model=BOUND, system="B", tools=[LOOK])
    copy = agent.conversation.fork(thread_id="copy")
    for version in agent.versions:
        then, here = (c.context(at=version).for_anthropic() for c in (agent.conversation, copy))
        assert then == here


def test_callers_may_change_their_lists_in_place(agent: Agent) -> None:
    tools = [dict(LOOK)]
    agent.turn(model=BOUND, tools=tools)
    tools.append(dict(WRITE))
    agent.turn(model=BOUND, tools=tools)
    tools[0]["description"] = "Another one."
    agent.turn(model=BOUND, tools=tools)
    assert agent.illegal() == []
    assert len(agent.changes()) == 3


def test_an_answer_that_is_stored_after_a_restart_answers_what_was_sent(agent: Agent) -> None:
    agent.turn(model=BOUND, system="A")
    agent.conversation.append({"role": "user", "content": "question"})
    answer = agent.ask(model=BOUND, system="B")
    agent.restart()  # Nothing was stored since the system text changed.
    agent.conversation.append(answer)
    agent.turn(model=BOUND, system="A")
    assert agent.illegal() == []
    assert agent.conversation.context(at=agent.versions[1]).system == "B"


def test_closing_records_no_frame_that_an_event_holds_already(agent: Agent) -> None:
    agent.turn(model=BOUND, system="A")
    agent.conversation.append({"role": "user", "content": "question"})
    agent.ask(model=BOUND, system="A")
    before = len(agent.events())
    agent.restart()
    assert len(agent.events()) == before


@pytest.mark.slow
def test_a_fork_with_quoted_memories_shows_no_thinking_of_its_source(tmp_path: Path) -> None:
    agent = Agent(tmp_path / "agent.db", window=8_000, memories=5)
    for number in range(45):
        agent.conversation.append(
            {"role": "user", "content": f"{number}: which port? " + "words " * 60}
        )
        answer = agent.ask(model=BOUND, system="SYS")
        answer["content"][1]["text"] = f"It listens on 5433 in case {number}." + " fine" * 40
        agent.conversation.append(answer)
    assert "Relevant Memories" in str(agent.conversation.context(model=BOUND, system="SYS").system)
    for source, copy in (("t", "b"), ("b", "c")):
        forked = agent.memory.conversation(source).fork(thread_id=copy)
        forked.append({"role": "user", "content": "which port did postgres use?"})
        made = forked.context(model=BOUND, system="SYS").for_anthropic()
        agent.requests.append({"model": BOUND, **made, "answer": []})
        assert agent.illegal() == []
    agent.memory.close()


def test_the_newest_request_is_shown_again_before_its_frame_is_recorded(
    memory: refold.Memory,
) -> None:
    conversation = memory.conversation("t")
    thought = {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"}
    conversation.append({"role": "user", "content": "Hello"})
    answer = [thought, {"type": "text", "text": "Here."}]
    conversation.append({"role": "assistant", "content": answer})
    for system in (None, "Be brief.", "Be kind."):
        sent = conversation.context(system=system)
        again = conversation.context(at=sent.version)
        assert (again.system, again.messages) == (sent.system, sent.messages)
    conversation.append({"role": "user", "content": "And then?"})
    later = conversation.context(at=sent.version)
    assert (later.system, later.messages) == (sent.system, sent.messages)
