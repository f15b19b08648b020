"""What the form of another API costs in the log: bytes a message of recorded sessions.

    python benchmarks/originals.py [--write]

Each session is stored three times: as messages of the Messages API; as items of OpenAI's Responses API, with ids,
states, annotations and sealed reasoning; and as messages of LangChain, with ids, metadata and usage. The last column
is what the events would take if the whole form were kept next to the message.
"""

import argparse
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, message_to_dict
from rich.console import Console
from rich.markdown import Markdown

from refold.domain.events import MessageAppended
from refold.domain.messages import Message
from refold.domain.originals import RESPONSES, Original
from refold.domain.value import replace
from refold.infrastructure.event_store.codec import encode
from refold.infrastructure.transcripts.read_transcript import read_transcript

DATA = Path(os.environ.get("REFOLD_X_DATA") or Path(__file__).parents[2] / "shared" / "data")
RESULTS = Path(__file__).with_name("results") / "originals.md"
SESSIONS = 5
SEALED = "gAAAAAB" + "mZlbmRlZCByZWFzb25pbmc" * 20
"""Sealed reasoning of about the length of a short thought."""
USAGE = {"input_tokens": 12_345, "output_tokens": 234, "total_tokens": 12_579}


class Sized(NamedTuple):
    """Bytes of stored events."""

    messages: int
    plain: int
    """Bytes without the form."""
    stored: int
    """Bytes with the form, as it is stored."""
    whole: int
    """Bytes with the whole form."""


def sessions() -> Iterator[list[Message]]:
    """The messages of recorded sessions."""
    for path in sorted(DATA.glob("claude-code-entire/*.jsonl*"))[:SESSIONS]:
        for one in read_transcript(path).conversations:
            yield [recorded.message for recorded in one.messages]


def responses_form(message: Message, number: int) -> list[dict[str, Any]]:
    """The items that the Responses API would have given for an answer."""
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "id": f"rs_{number:048x}", "summary": [], "encrypted_content": SEALED}
    ]
    for at, block in enumerate(message.blocks()):
        if block.get("type") == "text":
            content = [
                {"type": "output_text", "text": block["text"], "annotations": [], "logprobs": []}
            ]
            name = f"msg_{number:046x}{at:02}"
            items.append(
                {
                    "type": "message",
                    "id": name,
                    "role": "assistant",
                    "status": "completed",
                    "content": content,
                }
            )
        elif block.get("type") == "tool_use":
            arguments = json.dumps(block["input"], ensure_ascii=False, separators=(",", ":"))
            call = {"call_id": block["id"], "name": block["name"], "arguments": arguments}
            items.append(
                {"type": "function_call", "id": f"fc_{number:048x}", "status": "completed", **call}
            )
    return items


def langchain_form(message: Message, number: int) -> dict[str, Any]:
    """The message that an agent of LangChain would have in its state."""
    content: Any = message.content if isinstance(message.content, str) else list(message.content)
    name = f"lc_run--{number:032x}"
    result = next((b for b in message.blocks() if b.get("type") == "tool_result"), None)
    if message.role == "assistant":
        calls: Any = [
            {"name": b["name"], "args": b["input"], "id": b["id"], "type": "tool_call"}
            for b in message.blocks()
            if b.get("type") == "tool_use"
        ]
        metadata = {
            "id": name,
            "model_name": "claude-opus-5-5",
            "stop_reason": "tool_use",
            "usage": USAGE,
        }
        return message_to_dict(
            AIMessage(
                content=content,
                id=name,
                tool_calls=calls,
                response_metadata=metadata,
                usage_metadata=USAGE,  # type: ignore[arg-type]
            )
        )
    if result is not None:
        made = ToolMessage(
            content=result.get("content") or "", tool_call_id=result["tool_use_id"], id=name
        )
        return message_to_dict(made)
    return message_to_dict(HumanMessage(content=content, id=name))


def sized(messages: Iterable[Message], form: str) -> Sized:
    """The bytes of these messages with their forms."""
    count = plain = stored = whole = 0
    for number, message in enumerate(messages):
        data: Any = None
        if form == RESPONSES and message.role == "assistant":
            data = responses_form(message, number)
        elif form == "langchain":
            data = langchain_form(message, number)
        event = MessageAppended(
            position=number, message_id=f"m{number}", message=message, tokens=100
        )
        count += 1
        plain += size(event)
        original = None if data is None else Original(format=form, data=data)
        whole += size(event, original)
        stored += size(event, original.shrink(message.content) if original else None)
    return Sized(count, plain, stored, whole)


def size(event: MessageAppended, original: Original | None = None) -> int:
    """The bytes of an event as the log stores it."""
    return len(encode(replace(event, original=original))[2])


def page() -> str:
    """The table."""
    lines = [
        "# The form in which another API gave a message: bytes in the log",
        "",
        "Made by `python benchmarks/originals.py --write`. How: see the script.",
        "",
        "| form | messages | bytes a message without it | with it | × | with the whole form | × |",
        "|---|---|---|---|---|---|---|",
    ]
    recorded = list(sessions())
    for form, name in ((RESPONSES, "OpenAI's Responses API"), ("langchain", "LangChain")):
        found = [sized(messages, form) for messages in recorded]
        count, plain, stored, whole = (sum(column) for column in zip(*found, strict=True))
        lines.append(
            f"| {name} | {count:,} | {plain / count:,.0f} | {stored / count:,.0f} | {stored / plain:.2f} "
            f"| {whole / count:,.0f} | {whole / plain:.2f} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    """Print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the results page")
    report = page()
    Console().print(Markdown(report))
    if parser.parse_args().write:
        RESULTS.write_text(report, "utf-8")


if __name__ == "__main__":
    main()
