"""The middleware of the anthropic client: the application's list goes in, the compacted request goes out."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import refold

anthropic = pytest.importorskip("anthropic", minversion="2.12")

from refold.adapters.anthropic import MemoryMiddleware  # noqa: E402
from refold.application.api.following import FollowingMemory  # noqa: E402
from refold.application.conversation.followed_lists import FollowedLists  # noqa: E402
from tests.support.adapter_pages import assert_page_runs  # noqa: E402
from tests.support.log_faults import FAULTS  # noqa: E402
from tests.support.other_agents import ANSWER, answer_in_between  # noqa: E402
from tests.support.prefixes import prefix_breaks, recorded_changes  # noqa: E402
from tests.support.strict_server import TOOLS, StrictServer  # noqa: E402

MODELS = ("claude-opus-4-8", "claude-opus-5-5")
THINKING = {
    "claude-opus-4-8": {"type": "enabled", "budget_tokens": 1_024},
    "claude-opus-5-5": {"type": "adaptive"},
}
WINDOW = 12_000


@pytest.fixture
def server() -> Iterator[StrictServer]:
    with StrictServer() as running:
        yield running


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[refold.Memory]:
    with refold.open(tmp_path / "agent.db", window=WINDOW, telemetry=False) as opened:
        yield opened


def nothing() -> None:
    """Do nothing."""


class Agent:
    """An application that keeps its own list and runs its tools."""

    def __init__(self, server: StrictServer, middleware: Any, model: str = MODELS[1]) -> None:
        self.client = anthropic.Anthropic(
            api_key="key", base_url=server.base_url, middleware=[middleware], max_retries=2
        )
        self.model = model
        self.messages: list[Any] = []

        self.before_request: Callable[[], None] = nothing
        self.after_request: Callable[[], None] = nothing

    def ask(self, question: str, *, stream: bool = False) -> str:
        self.messages.append({"role": "user", "content": question})
        while True:
            self.before_request()
            reply = self._request(stream=stream)
            self.after_request()
            self.messages.append({"role": "assistant", "content": reply.content})
            calls = [block for block in reply.content if block.type == "tool_use"]
            if not calls:
                return "".join(b.text for b in reply.content if b.type == "text")
            results = [
                {"type": "tool_result", "tool_use_id": c.id, "content": f"{c.input} " * 30}
                for c in calls
            ]
            self.messages.append({"role": "user", "content": results})

    def _request(self, *, stream: bool) -> Any:
        given: dict[str, Any] = {
            "model": self.model,
            "max_tokens": 2_000,
            "system": "You help.",
            "tools": TOOLS,
            "thinking": THINKING[self.model],
            "messages": self.messages,
        }
        if not stream:
            return self.client.messages.create(**given)
        with self.client.messages.stream(**given) as events:
            return events.get_final_message()


def texts(conversation: refold.ConversationMemory) -> list[str]:
    return [
        json.dumps(m.message.model_dump(mode="json")["content"]) for m in conversation.messages()
    ]


@pytest.mark.slow(but="claude-opus-5-5-stream")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", MODELS)
def test_sixty_turns_are_never_refused_and_all_of_it_is_stored(
    server: StrictServer, memory: refold.Memory, model: str, stream: bool
) -> None:
    agent = Agent(server, MemoryMiddleware(memory, thread="t"), model)
    for number in range(60):
        agent.ask(f"Question {number}: please build part {number}. " * 3, stream=stream)
    assert server.refused == []
    assert len(server.bodies) >= 180
    conversation = memory.conversation("t")
    assert len(conversation.messages()) == len(agent.messages)
    assert len(conversation.summaries()) >= 3
    assert max(len(json.dumps(body)) for body in server.bodies) < 3.2 * WINDOW
    assert len(memory.conversations()) == 1, "nothing was forked"
    assert prefix_breaks(server.bodies) <= recorded_changes(conversation) < 30


def test_the_tool_runner_of_the_client(server: StrictServer, memory: refold.Memory) -> None:
    @anthropic.beta_tool  # type: ignore[untyped-decorator]
    def run(command: str) -> str:
        """Run a command.

        Args:
            command: the command
        """
        return f"{command} went well. " * 20

    client = Agent(server, MemoryMiddleware(memory, thread="t")).client
    messages: list[Any] = []
    for number in range(15):
        messages.append({"role": "user", "content": f"Question {number} " * 30})
        runner = client.beta.messages.tool_runner(
            model=MODELS[1], max_tokens=1_000, tools=[run], messages=messages, thread=False
        )
        for reply in runner:
            messages.append({"role": "assistant", "content": reply.content})
            if (results := runner.generate_tool_call_response()) is not None:
                messages.append(results)
    assert server.refused == []
    assert len(memory.conversation("t").messages()) == len(messages) == 90
    assert memory.conversation("t").summaries()


def test_events_that_the_application_reads_itself(
    server: StrictServer, memory: refold.Memory
) -> None:
    client = Agent(server, MemoryMiddleware(memory, thread="t")).client
    messages = [{"role": "user", "content": "Tell me."}]
    given: dict[str, Any] = {"model": MODELS[1], "max_tokens": 100, "messages": messages}
    kinds = [event.type for event in client.messages.create(**given, stream=True)]
    assert kinds[-1] == "message_stop"
    raw = client.messages.with_raw_response.create(**given)
    assert raw.status_code == 200
    assert raw.parse().content
    lengths = [len(memory.conversation(r.thread_id).messages()) for r in memory.conversations()]
    assert lengths == [2, 2], "the reply was made again"


def test_a_reply_is_stored_when_it_ends(server: StrictServer, memory: refold.Memory) -> None:
    agent = Agent(server, MemoryMiddleware(memory, thread="t"))
    agent.ask("Build it.")
    assert "Done in request 2" in texts(memory.conversation("t"))[-1]


def test_a_retry_stores_nothing_twice(server: StrictServer, memory: refold.Memory) -> None:
    agent = Agent(server, MemoryMiddleware(memory, thread="t"))
    server.fails = [529, 500]
    agent.ask("Build it.")
    assert len(memory.conversation("t").messages()) == len(agent.messages) == 6


def test_the_same_words_said_again_are_stored_again(
    server: StrictServer, memory: refold.Memory
) -> None:
    agent = Agent(server, MemoryMiddleware(memory, thread="t"))
    for _ in range(3):
        agent.ask("go on")
    said = [m.message.content for m in memory.conversation("t").messages()]
    assert said.count("go on") == 3


def test_one_client_serves_many_conversations(server: StrictServer, memory: refold.Memory) -> None:
    middleware = MemoryMiddleware(memory, thread=lambda body: body["metadata"]["user_id"])
    client = anthropic.Anthropic(api_key="key", base_url=server.base_url, middleware=[middleware])
    lists: dict[str, list[Any]] = {"a": [], "b": []}
    for number in range(3):
        for name, messages in lists.items():
            messages.append({"role": "user", "content": f"{name}{number}"})
            while messages[-1]["role"] == "user":
                reply = client.messages.create(
                    model=MODELS[1], max_tokens=100, messages=messages, metadata={"user_id": name}
                )
                messages.append({"role": "assistant", "content": reply.content})
                if reply.stop_reason == "tool_use":
                    call_id = reply.content[-1].id
                    result = {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}
                    messages.append({"role": "user", "content": [result]})
    assert server.refused == []
    for name, messages in lists.items():
        said = [m.message.content for m in memory.conversation(name).messages()]
        assert len(said) == len(messages) == 18
        assert [words for words in said if isinstance(words, str)] == [
            f"{name}{n}" for n in range(3)
        ]


@pytest.mark.parametrize("deed", ["edit", "delete", "cut"])
@pytest.mark.parametrize("at", [0, 6])
def test_a_list_that_does_not_continue_goes_on_in_a_fork(
    server: StrictServer, memory: refold.Memory, deed: str, at: int
) -> None:
    agent = Agent(server, MemoryMiddleware(memory, thread="t"))
    agent.ask("first")
    agent.ask("second")
    before = texts(memory.conversation("t"))
    match deed:
        case "edit":
            agent.messages[at] = {"role": "user", "content": f"edited {at}"}
        case "delete":
            del agent.messages[at : at + 6]
        case _:
            del agent.messages[at:]
    agent.ask("third")
    assert server.refused == []
    assert texts(memory.conversation("t")) == before
    (fork,) = [row.thread_id for row in memory.conversations() if row.thread_id != "t"]
    assert len(memory.conversation(fork).messages()) == len(agent.messages)


@pytest.mark.parametrize("name", ["t~other", "t~0123456789ab"])
def test_a_list_never_goes_on_in_a_thread_that_is_named_like_its_forks(
    server: StrictServer, memory: refold.Memory, name: str
) -> None:
    other = memory.conversation(name)
    other.append({"role": "user", "content": "first"})
    agent = Agent(server, MemoryMiddleware(memory, thread="t"))
    agent.ask("before")
    agent.messages.clear()
    agent.ask("first")
    assert [m.message.content for m in other.messages()] == ["first"]


def test_a_reply_that_is_made_again_goes_on_in_a_fork(
    server: StrictServer, memory: refold.Memory
) -> None:
    agent = Agent(server, MemoryMiddleware(memory, thread="t"))
    agent.ask("first")
    for _ in range(3):
        del agent.messages[1:]
        question = agent.messages.pop()["content"]
        agent.ask(question)
    assert server.refused == []
    lengths = sorted(
        len(memory.conversation(r.thread_id).messages()) for r in memory.conversations()
    )
    assert lengths == [6, 6, 6, 6]
    agent.ask("second")
    lengths = sorted(
        len(memory.conversation(r.thread_id).messages()) for r in memory.conversations()
    )
    assert lengths == [6, 6, 6, 12]


def test_the_answer_of_another_agent_to_the_same_list_is_not_sent(
    server: StrictServer, memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(server, MemoryMiddleware(memory, thread="t"))
    answer_in_between(monkeypatch, memory)
    agent.ask("first")
    assert ANSWER not in str(server.bodies)
    assert server.refused == []
    assert sorted(row.messages for row in memory.conversations()) == [2, 6]


def test_another_process_goes_on_where_the_list_continues(
    server: StrictServer, tmp_path: Path
) -> None:
    path = tmp_path / "agent.db"
    messages: list[Any] = []
    rows = dict[str, int]()
    for number in range(4):
        with refold.open(path, window=WINDOW, telemetry=False) as memory:
            agent = Agent(server, MemoryMiddleware(memory, thread="t"))
            agent.messages = messages
            agent.ask(f"Question {number}")
            if number == 1:
                del messages[6:]  # The second turn is taken back.
                agent.ask("Question 1 in other words")
            rows = {row.thread_id: row.messages for row in memory.conversations()}
    assert server.refused == []
    assert len(rows) == 2
    assert sorted(rows.values()) == [12, len(messages)]


def test_an_unchanged_prefix_is_not_hashed_again(
    server: StrictServer, memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed = list[int]()

    def count(data: bytes) -> Any:
        hashed.append(len(data))
        return sha256(data)

    monkeypatch.setattr("refold.application.conversation.followed_lists.sha256", count)
    agent = Agent(server, MemoryMiddleware(memory, thread="t"))
    for number in range(10):
        agent.ask(f"Question {number}")
    assert len(hashed) == len(agent.messages)


def test_other_calls_pass_untouched(server: StrictServer, memory: refold.Memory) -> None:
    middleware = MemoryMiddleware(memory, thread=lambda body: None)
    client = anthropic.Anthropic(api_key="key", base_url=server.base_url, middleware=[middleware])
    messages = [{"role": "user", "content": "hello"}]
    client.messages.create(model=MODELS[1], max_tokens=10, messages=messages)
    client.messages.count_tokens(model=MODELS[1], messages=messages)
    assert server.bodies[0]["messages"] == messages
    assert server.others == ["/v1/messages/count_tokens"]
    assert memory.conversations() == []


def test_a_stream_that_is_left_is_stored_as_far_as_it_was_read(
    server: StrictServer, memory: refold.Memory
) -> None:
    agent = Agent(server, MemoryMiddleware(memory, thread="t"))
    given: dict[str, Any] = {
        "model": MODELS[1],
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Tell me."}],
    }
    with agent.client.messages.stream(**given) as events:
        for event in events:
            if event.type == "text":
                break
    (*_, stored) = memory.conversation("t").export("events")
    assert stored["fields"]["stop_reason"] == "aborted"
    assert stored["fields"]["message"]["content"][-1]["text"] == "I run p"


@pytest.mark.slow(but="claude-opus-5-5-deleted")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("model", MODELS)
def test_a_log_that_fails_costs_no_request_and_no_message(
    server: StrictServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    model: str,
    fault: str,
) -> None:
    path = tmp_path / "agent.db"
    with refold.open(path, window=WINDOW, telemetry=False, scrub_megabytes=0) as memory:
        agent = Agent(server, MemoryMiddleware(memory, thread="t", lock_wait=0.05), model)
        while not memory.conversation("t").summaries():
            agent.ask("Please build another part. " * 6)
        count = itertools.count()
        undo: list[Callable[[], object]] = []

        def before() -> None:
            if next(count) % 3 == 0:
                undo.append(FAULTS[fault](path, monkeypatch, memory))

        def after() -> None:
            while undo:
                undo.pop()()

        agent.before_request, agent.after_request = before, after
        for number in range(20):
            agent.ask(f"Question {number}: please build part {number}.")
        agent.before_request = nothing
        agent.ask("the last one")
        assert server.refused == []
        stored = memory.conversation("t").messages()
        assert len(stored) == len(agent.messages)
        assert len(memory.conversations()) == 1
        assert memory.verify().ok
    warnings = [r for r in caplog.records if "cannot be used" in r.message]
    assert 1 <= len(warnings) <= 25


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_asynchronous_client(server: StrictServer, tmp_path: Path, stream: bool) -> None:
    async def play() -> tuple[int, int]:
        async with refold.aopen(tmp_path / "a.db", window=WINDOW, telemetry=False) as memory:
            client = anthropic.AsyncAnthropic(
                api_key="key",
                base_url=server.base_url,
                middleware=[MemoryMiddleware(memory, thread="t")],
            )
            messages: list[Any] = []
            for number in range(20):
                messages.append({"role": "user", "content": f"Question {number} " * 40})
                for _ in range(3):
                    given: dict[str, Any] = {
                        "model": MODELS[1],
                        "max_tokens": 500,
                        "tools": TOOLS,
                        "messages": messages,
                    }
                    if stream:
                        async with client.messages.stream(**given) as events:
                            reply = await events.get_final_message()
                    else:
                        reply = await client.messages.create(**given)
                    messages.append({"role": "assistant", "content": reply.content})
                    calls = [b for b in reply.content if b.type == "tool_use"]
                    if calls:
                        result = {
                            "type": "tool_result",
                            "tool_use_id": calls[0].id,
                            "content": "a line " * 40,
                        }
                        messages.append({"role": "user", "content": [result]})
            stored = await memory.conversation("t").messages()
            return len(stored), len(messages)

    stored, kept = asyncio.run(play())
    assert server.refused == []
    assert stored == kept


def test_the_code_of_the_page_runs_and_prints_what_it_shows(tmp_path: Path) -> None:
    assert_page_runs("anthropic.md", tmp_path)


def test_a_list_that_is_edited_at_each_turn_is_not_compared_with_all_its_forks(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = list[str]()
    compare: Any = FollowedLists.__dict__["_compare"]

    def count(self: FollowedLists, name: str, *given: Any) -> Any:
        compared.append(name)
        return compare(self, name, *given)

    monkeypatch.setattr(FollowedLists, "_compare", count)
    lists, name = FollowingMemory(memory), "t"
    messages, counts = list[dict[str, Any]](), list[int]()
    for turn in range(20):
        asked = {"role": "user", "content": f"question {turn}"}
        messages = [*messages[:-2], *({**one, "content": f"other {turn}"} for one in messages[-2:])]
        messages += [asked, {"role": "assistant", "content": f"answer {turn}"}]
        compared.clear()
        name = lists.follow("t", messages)
        counts.append(len(compared))
        assert [m.text for m in memory.conversation(name).messages()] == [
            m["content"] for m in messages
        ]
    assert max(counts[10:]) <= max(counts[2:5])
    assert FollowingMemory(memory).follow("t", messages) == name


@pytest.mark.parametrize("thread", ["", "a/b c\n", 42])
def test_an_invalid_thread_id_stores_nothing(
    server: StrictServer,
    memory: refold.Memory,
    caplog: pytest.LogCaptureFixture,
    thread: Any,
) -> None:
    with pytest.raises(refold.InvalidThreadId):
        MemoryMiddleware(memory, thread=thread)
    agent = Agent(server, MemoryMiddleware(memory, thread=lambda _: thread))
    agent.ask("one")
    assert memory.conversations() == []
    assert server.refused == []
    lines = [r.getMessage() for r in caplog.records]
    assert any("memory cannot be used" in line and "id" in line for line in lines)


def test_a_function_for_the_thread_that_fails_leaves_the_request(
    server: StrictServer, memory: refold.Memory, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent(server, MemoryMiddleware(memory, thread=lambda body: body["metadata"]["user"]))
    agent.ask("one")
    assert memory.conversations() == []
    assert any("memory cannot be used" in r.getMessage() for r in caplog.records)


def test_a_request_whose_history_the_api_keeps_is_left_alone(
    server: StrictServer, memory: refold.Memory, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent(server, MemoryMiddleware(memory, thread="t"))
    for _ in range(2):
        agent.client.beta.messages.create(
            model=MODELS[1],
            max_tokens=100,
            messages=[{"role": "user", "content": "hi"}],
            extra_body={"thread": {"type": "create"}},
        )
    assert memory.conversations() == []
    assert sum("thread=False" in r.getMessage() for r in caplog.records) == 1


def test_what_is_no_memory_is_refused() -> None:
    wrong: Any = "agent.db"
    with pytest.raises(refold.InvalidSetting, match=r"refold\.open"):
        MemoryMiddleware(wrong, thread="t")
