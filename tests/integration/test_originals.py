"""The form in which another API gave a message: kept, returned, sent to that API, and erased with its message."""

import json
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.conversation.transcripts import RecordedMessage
from refold.domain.messages import Message
from refold.domain.originals import Original

SEALED = "gAAAAB" + "c2VhbGVk" * 12


def turn(number: int) -> list[dict[str, Any]]:
    """A turn of the Responses API with reasoning before a text and before a call."""
    path = f"notes/part-{number}.txt"
    return [
        {"role": "user", "content": f"Read {path} and tell me what it says."},
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": SEALED},
        {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": f"I read {path} first.", "annotations": []}
            ],
        },
        {
            "type": "reasoning",
            "id": f"rs_{number}b",
            "summary": [{"type": "summary_text", "text": "hm"}],
        },
        {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": "read_file",
            "arguments": json.dumps({"path": path, "为": "什么"}, separators=(",", ":")),
            "status": "completed",
        },
        {"type": "function_call_output", "call_id": f"call_{number}", "output": "words " * 40},
        {
            "type": "message",
            "id": f"msg_{number}b",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": f"It says words ({number}).", "annotations": []}
            ],
        },
    ]


def test_items_of_the_responses_api_come_back_with_their_reasoning(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    items = [*turn(1), *turn(2), {"role": "user", "content": "thanks"}]
    conversation.append(refold.from_openai(items))
    assert conversation.context().for_openai(api="responses")["input"] == items
    chat = conversation.context().for_openai()["messages"]
    assert "rs_1" not in json.dumps(chat)
    assert "rs_1" not in json.dumps(conversation.context().messages)


def test_a_response_of_the_sdk_is_taken_as_it_is(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    asked, *answer = turn(1)[:5]
    conversation.append(refold.from_openai([asked]))
    response = {"id": "resp_1", "object": "response", "model": "gpt-5.5", "output": answer}
    (reply,) = refold.from_openai(response)
    assert reply["model"] == "gpt-5.5"
    conversation.append(reply)
    sent = conversation.context().for_openai(api="responses")["input"]
    assert sent[:5] == [asked, *answer]


def test_reasoning_without_the_item_after_it_is_left_out(memory: refold.Memory) -> None:
    """The API refuses it."""
    conversation = memory.conversation("t")
    asked, reasoning, *_ = turn(1)
    conversation.append(
        refold.from_openai([asked, reasoning, {"role": "user", "content": "go on"}])
    )
    assert "rs_1" not in json.dumps(conversation.context().for_openai(api="responses"))


def test_each_item_of_reasoning_is_sent_with_the_items_after_it_or_not_at_all() -> None:
    with refold.open(":memory:", telemetry=False, window=4_000) as memory:
        conversation = memory.conversation("t")
        context, shown = conversation.context(), set[str]()
        for number in range(30):
            conversation.append(refold.from_openai(turn(number)))
            context = conversation.context()
            sent = context.for_openai(api="responses")["input"]
            shown = {item["id"] for item in sent if item.get("type") == "reasoning"}
            for one in range(number + 1):
                whole = turn(one)[1:5]
                if f"rs_{one}" in shown:
                    at = sent.index(whole[0])
                    assert sent[at : at + 4] == whole
                else:
                    assert f"rs_{one}b" not in shown
            assert context.tokens <= context.budget.limit
        assert context.summary is not None
        assert "rs_29" in shown
        assert "rs_0" not in shown


def test_it_is_counted(memory: refold.Memory) -> None:
    one, other = memory.conversation("one"), memory.conversation("other")
    one.append(refold.from_openai(turn(1)))
    other.append(refold.from_openai([item for item in turn(1) if item.get("type") != "reasoning"]))
    assert one.context().tokens > other.context().tokens + 20


def test_it_is_erased_with_its_message(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with refold.open(path, telemetry=False) as memory:
        conversation = memory.conversation("t")
        conversation.append(refold.from_openai([*turn(1), *turn(2)]))
        conversation.fork(thread_id="copy")
        conversation.erase(1)
        assert conversation.messages()[1].original is None
        assert memory.conversation("copy").messages()[1].original is None
        assert conversation.messages()[5].original is not None
    for file in tmp_path.iterdir():
        assert b"rs_1" not in file.read_bytes(), file.name


def test_it_is_in_an_export_and_comes_in_again(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    conversation.append(refold.from_openai(turn(1)))
    copy = memory.conversation("copy")
    copy.append(list(conversation.export()), recorded=True)
    before, after = conversation.messages(), copy.messages()
    assert [m.original for m in after] == [m.original for m in before]
    assert any(m.original for m in after)


@pytest.mark.parametrize("kept", [5, {"format": "f"}, {"format": "f", "data": 1, "more": 2}])
def test_a_field_of_that_name_with_other_contents_is_kept_with_the_message(
    memory: refold.Memory, kept: object
) -> None:
    conversation = memory.conversation("t")
    conversation.append({"role": "user", "content": "hi", "original": kept})
    (stored,) = conversation.messages()
    assert stored.original is None
    assert stored.message.extra == {"original": kept}


def test_a_recorded_message_may_have_one(memory: refold.Memory) -> None:
    form = Original(format="mine", data={"id": 7, "said": "hello, hello, hello, hello"})
    recorded = RecordedMessage(
        message=Message(role="user", content="hello, hello, hello, hello"), key="1", original=form
    )
    conversation = memory.conversation("t")
    conversation.append_recorded([recorded])
    assert conversation.messages()[0].original == form
