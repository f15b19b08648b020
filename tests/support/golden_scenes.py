"""The conversations that newer golden logs have besides those of before: written through the public interface."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import refold

from .builders import text, thinking, tool_result, tool_use

FRAMED = "framed"
SHARED = ("shared", "shared 2")
LARGE = "large text"
AGAIN = "used again"
LONG = "long turn behind others"
SCENES = (FRAMED, LONG, *SHARED, LARGE)
WORKED = "worked on"
ANSWERED, FILES = "answered elsewhere", "memories:ann"
BOUND, MANUAL = "claude-opus-5-5", "claude-opus-4-5"
LOOK: dict[str, Any] = {
    "name": "look",
    "description": "Look at a file.",
    "input_schema": {"type": "object"},
}


def add_scenes(path: Path, window: int) -> None:
    """Play these conversations into the log at ``path``."""
    with refold.open(
        path, window=window, clock=_clock(), new_id=_ids(), memories=3, scrub_megabytes=0
    ) as memory:
        _framed(memory.conversation(FRAMED))
        _long_turn(memory.conversation(LONG))
        _shared(memory)
        _large(memory.conversation(LARGE))
        _again(memory)


def add_work(path: Path, window: int) -> None:
    """Play work with files, commands, decisions and questions about them into the log at ``path``."""
    with refold.open(
        path, window=window, clock=_clock(), new_id=_ids("work"), scrub_megabytes=0
    ) as memory:
        _work(memory.conversation(WORKED))


def add_foreign(path: Path, window: int) -> None:
    """Play answers of another API, and the files of a model, into the log at ``path``."""
    with refold.open(
        path, window=window, clock=_clock(), new_id=_ids("foreign"), scrub_megabytes=0
    ) as memory:
        _answered(memory.conversation(ANSWERED))
        files = refold.MemoryFiles(memory, owner="ann")
        files.create("/memories/notes/a.txt", "the first line of a file that is long enough\n")
        files.rename("/memories/notes", "/memories/kept")
        files.insert("/memories/kept/a.txt", 0, "a line above")
        files.undo()
        files.create("/memories/gone.txt", "it is erased, and its words are gone for good")
        files.erase("/memories/gone.txt", "by request")


REBUILT = "compacted again and again"


def add_rebuilt(path: Path, window: int, first: int, stop: int) -> None:
    """Play the rounds from ``first`` up to ``stop`` into the log: each has four turns and a compaction."""
    with refold.open(
        path,
        window=window,
        clock=_clock(),
        new_id=_ids(f"rebuilt {first}"),
        summariser="extractive",
        scrub_megabytes=0,
    ) as memory:
        conversation = memory.conversation(REBUILT)
        for n in range(4 * first, 4 * stop):
            asked = f"Never touch src/part_{n}.py without asking. The word is fact-{n}. "
            conversation.append(
                [
                    {"role": "user", "content": asked + "The log scrolled by. " * 12},
                    {"role": "assistant", "content": f"I decided to keep {n}. " + "Done. " * 20},
                ]
            )
            if n % 4 == 3:
                assert conversation.compact().outcome == "performed"


def _answered(conversation: refold.ConversationMemory) -> None:
    """Turns of the Responses API; some are covered, and one answer is erased."""
    for number in range(14):
        arguments = f'{{"path":"notes/part-{number}.txt"}}'
        items: list[dict[str, Any]] = [
            {"role": "user", "content": f"Read notes/part-{number}.txt. " + "It matters. " * 20},
            {
                "type": "reasoning",
                "id": f"rs_{number}",
                "summary": [],
                "encrypted_content": "c2VhbA",
            },
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {"type": "output_text", "text": f"I read part {number} now.", "annotations": []}
                ],
            },
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"call_{number}",
                "name": "read_file",
                "arguments": arguments,
            },
            {"type": "function_call_output", "call_id": f"call_{number}", "output": "words " * 60},
        ]
        conversation.append(refold.from_openai(items))
        conversation.context()
    conversation.erase(40)


def _work(conversation: refold.ConversationMemory) -> None:
    """Rounds of work that are covered, with an index, decisions with reasons, and lines that are recalled."""
    for number in range(24):
        asked = (
            f"Please change src/part{number}/main_{number}.py. Port {6_000 + number} stays free."
        )
        conversation.append({"role": "user", "content": asked}, author="person")
        conversation.context()
        words = (
            f"I decided to keep store_{number}, not Redis, because queue_{number} is enough. "
            "This avoids a second server."
        )
        call = tool_use(f"toolu_{number}", command=f"make part_{number} && make test_{number}")
        conversation.append({"role": "assistant", "content": [text(words), call]})
        printed = f"the limit of part {number} is {100 + number} MB\n" + "a line of output\n" * 30
        result = tool_result(f"toolu_{number}", printed)
        conversation.append({"role": "user", "content": [result]}, author="tool")
        conversation.context()
        conversation.append({"role": "assistant", "content": f"Done: part {number} is changed."})
    for number in (3, 7):
        question = f"What was the limit of part {number} in MB?"
        conversation.append({"role": "user", "content": question}, author="person")
        conversation.context()
        conversation.append({"role": "assistant", "content": f"{100 + number} MB."})
    conversation.append({"role": "user", "content": "Never mind."}, author="person")


def _clock() -> Callable[[], datetime]:
    ticks = count()
    begin = datetime(2026, 3, 1, tzinfo=UTC)
    return lambda: begin + timedelta(seconds=next(ticks))


def _ids(kind: str = "scene") -> Callable[[], str]:
    numbers = count()
    return lambda: f"{kind}-{next(numbers):04d}"


def _framed(conversation: refold.ConversationMemory) -> None:
    """A system text that changes, a tool that comes later, two models, loops that think."""
    for number in range(18):
        model = (BOUND, MANUAL)[number // 6 % 2]
        tools = [LOOK] if number > 8 else []
        frame: dict[str, Any] = {
            "system": f"You help.\n\nIt is day {number // 3}.",
            "tools": tools,
            "model": model,
        }
        conversation.append({"role": "user", "content": f"Question {number}: {'some words ' * 30}"})
        if tools:
            conversation.context(**frame)
            call = tool_use(f"toolu_{number}", cmd=f"cat file_{number}.py")
            conversation.append(
                {"role": "assistant", "content": [thinking(f"before {number}"), text("So."), call]}
            )
            result = tool_result(f"toolu_{number}", "a line of the file\n" * 40)
            conversation.append({"role": "user", "content": [result]}, author="tool")
        conversation.context(**frame)
        answer = [thinking(f"thought {number}"), text(f"Answer {number}: {'other words ' * 30}")]
        conversation.append({"role": "assistant", "content": answer})


def _long_turn(conversation: refold.ConversationMemory) -> None:
    """A turn of many tool rounds behind a short one, too large to stay whole."""
    conversation.append({"role": "user", "content": f"Where is the app? {'some words ' * 20}"})
    conversation.append({"role": "assistant", "content": f"In src/app.py. {'other words ' * 20}"})
    conversation.append(
        {"role": "user", "content": "Fix src/app.py and run pytest -q until it passes."}
    )
    for number in range(40):
        call = tool_use(f"toolu_{number}", cmd="pytest -q", note=f"attempt {number}")
        conversation.append({"role": "assistant", "content": [text(f"Once more, {number}."), call]})
        result = tool_result(f"toolu_{number}", f"{number} failed, src/app.py:42\n" * 12)
        conversation.append({"role": "user", "content": [result]}, author="tool")
        conversation.context(model=BOUND)


def _shared(memory: refold.Memory) -> None:
    """Two conversations of one person, and a message of somebody else's in the second."""
    first = memory.conversation(SHARED[0], owner="user-7")
    first.append(
        {"role": "user", "content": "Always write the tests first. I prefer short answers."},
        author="person",
    )
    first.append({"role": "assistant", "content": "Understood."})
    for number in range(12):
        first.append({"role": "user", "content": f"Step {number}: {'go on please ' * 30}"})
        first.context()
        first.append({"role": "assistant", "content": f"Step {number} is done. {'so it is ' * 30}"})
    first.compact(focus="the steps")
    second = memory.conversation(SHARED[1], owner="user-7")
    second.append({"role": "user", "content": "How should the tests be written?"}, author="person")
    second.context(system="You help.", model=BOUND)
    second.append({"role": "assistant", "content": "First, and short."})
    second.append({"role": "user", "content": "I join in here."}, owner="user-8", author="person")
    second.context(system="You help.", model=BOUND)
    second.append({"role": "assistant", "content": "Welcome."})


def _large(conversation: refold.ConversationMemory) -> None:
    """A text of a user that is larger than half the budget."""
    lines = "".join(f"Line {number} of the report says nothing new.\n" for number in range(400))
    conversation.append({"role": "user", "content": f"Please sum this up:\n{lines}"})
    conversation.context()
    conversation.append({"role": "assistant", "content": "Nothing new."})


def _again(memory: refold.Memory) -> None:
    conversation = memory.conversation(AGAIN)
    conversation.append({"role": "user", "content": "the first life"}, key="k")
    conversation.append({"role": "assistant", "content": "yes"})
    memory.erase_conversation(AGAIN, "by request")
    memory.conversation(AGAIN).append({"role": "user", "content": "the second life"}, key="k")
