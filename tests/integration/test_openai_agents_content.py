"""Files, audio and pictures in sessions of the OpenAI Agents SDK: counted as a line, and sent as they were."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import refold

agents = pytest.importorskip("agents")

from agents.run_config import CallModelData, ModelInputData  # noqa: E402

from refold.adapters.openai_agents import RefoldSession  # noqa: E402

Item = dict[str, Any]
WINDOW = 12_000
DATA = "UklGRiQAAABXQVZF" * 20_000


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[refold.Memory]:
    with refold.open(tmp_path / "agent.db", window=WINDOW, telemetry=False) as opened:
        yield opened


def sent(memory: refold.Memory, items: list[Item]) -> list[Item]:
    """Return what a model gets for a long session that ends with these items."""
    session = RefoldSession("t", memory)
    before: list[Item] = []
    for number in range(30):
        before.append({"role": "user", "content": f"Question {number}. " * 60})
        before.append({"role": "assistant", "content": "It is so. " * 60})

    async def ask() -> list[Item]:
        await session.add_items([*before, *items])
        data = ModelInputData(input=await session.get_items(), instructions="You help.")
        agent = agents.Agent(name="helper", model="gpt-5.2")
        made: Any = await session.input_filter(CallModelData(data, agent, None))
        return list(made.input)

    found = asyncio.run(ask())
    assert len(found) < len(before)
    assert memory.conversation("t").context().tokens < WINDOW
    return found


PARTS: dict[str, Item] = {
    "file by id": {"type": "input_file", "file_id": "file-1"},
    "file by address": {"type": "input_file", "file_url": "https://example.com/a.pdf"},
    "table": {"type": "input_file", "file_data": f"data:text/csv;base64,{DATA}", "filename": "a.csv"},
    "picture by id": {"type": "input_image", "file_id": "file-2", "detail": "high"},
    "audio": {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}},
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("by_tool", [False, True], ids=["person", "tool"])
def test_files_are_counted_as_a_line_and_sent_as_they_were(
    memory: refold.Memory, part: Item, by_tool: bool
) -> None:
    said = [{"type": "input_text", "text": "Look at\nthis."}, part]
    items: list[Item] = [{"role": "user", "content": said}]
    if by_tool:
        call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
        result = {"type": "function_call_output", "call_id": "c1", "output": said}
        items = [{"role": "user", "content": "Fetch it."}, call, result]
    assert sent(memory, items)[-len(items) :] == items


def test_a_file_in_the_first_message_after_the_summary_is_sent_as_it_was(
    memory: refold.Memory,
) -> None:
    said = [{"type": "input_text", "text": "Look at this. " * 200}, PARTS["file by id"]]
    work: list[Item] = []
    for number in range(12):
        call_id = f"c{number}"
        work.append({"type": "function_call", "call_id": call_id, "name": "run", "arguments": "{}"})
        done = "went well. " * 250
        work.append({"type": "function_call_output", "call_id": call_id, "output": done})
    found = sent(memory, [{"role": "user", "content": said}, *work])
    first = next(item for item in found if item.get("role") == "user")
    assert "[Conversation Summary]" in first["content"][0]["text"]
    assert [one for item in found for one in item.get("content", ()) if one == said[1]]


DRAWN: Item = {
    "type": "image_generation_call",
    "id": "ig_1",
    "status": "completed",
    "result": DATA,
}


def test_a_picture_that_the_model_made_is_counted_as_a_line(memory: refold.Memory) -> None:
    items: list[Item] = [
        {"role": "user", "content": "Draw a house."},
        DRAWN,
        {"role": "user", "content": "Thank you."},
    ]
    assert sent(memory, items)[-3:] == items
    assert DATA[:100] not in str(memory.conversation("t").messages()[-2].message.content)


@pytest.mark.parametrize(
    "output",
    ["\u9910\u5385\u5728\u6cb3\u8fb9\u3002" * 300, '{"street":"Quay","town":"Bonn"},' * 60],
)
def test_a_long_result_of_a_server_without_spaces_is_a_text(
    memory: refold.Memory, output: str
) -> None:
    """Chinese has no spaces between words, and compact JSON has none at all."""
    call: Item = {
        "type": "mcp_call",
        "id": "m1",
        "name": "look",
        "arguments": "{}",
        "server_label": "s",
    }
    session = RefoldSession("t", memory)
    asyncio.run(
        session.add_items([{"role": "user", "content": "Look."}, {**call, "output": output}])
    )
    stored = memory.conversation("t").messages()[-1].message.content
    assert output[:50] in str(stored).replace("\\", "")
