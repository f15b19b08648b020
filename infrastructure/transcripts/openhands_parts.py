"""Convert what events of OpenHands hold: texts, pictures, reasoning, errors."""

import json
from collections.abc import Iterator
from typing import Any

from refold.domain.messages import Block

from .conversation_draft import thinking_block
from .openai import convert_content, convert_tool
from .transcript_source import (
    Content,
    as_blocks,
    as_list,
    as_object,
    objects_in,
    text_block,
    text_or_none,
)


def ending_of(
    blocks: tuple[Block, ...], event: dict[str, Any], args: dict[str, Any]
) -> Iterator[Block]:
    """Yield what an agent says at the end besides what its answer has."""
    known = {str(block.get("text")).strip() for block in blocks}
    said = text_or_none(args.get("final_thought")) or text_or_none(event.get("message"))
    if said is not None and said.strip() not in known:
        yield text_block(said)


def metadata_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return what an event of the first version says about its call."""
    return as_object(event.get("tool_call_metadata")) or {}


def model_of(event: dict[str, Any]) -> str | None:
    """Return the model that an event of the first version names."""
    response = as_object(metadata_of(event).get("model_response")) or {}
    return text_or_none(response.get("model"))


def tools_of_events(given: Any) -> tuple[dict[str, Any], ...]:
    """Return definitions of tools."""
    return tuple(tool for one in objects_in(given) if (tool := convert_tool(one)) is not None)


def parts_of(value: Any) -> tuple[Block, ...]:
    """Return content of a message as blocks. A part with pictures has a list of addresses."""
    if isinstance(value, str):
        return (text_block(value),) if value else ()
    found: list[Block] = []
    for part in as_list(value) or ():
        whole = as_object(part) or {}
        if whole.get("type") == "text":
            found.append(text_block(str(whole.get("text") or "")))
            continue
        urls = as_list(whole.get("image_urls"))
        shown = (
            [part]
            if urls is None
            else [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        )
        found += as_blocks(convert_content(shown) or ())
    return tuple(found)


def thoughts_of(message: dict[str, Any]) -> tuple[Block, ...]:
    """Return the reasoning of an answer: signed blocks, or words."""
    if signed := objects_in(message.get("thinking_blocks")):
        return tuple(signed)
    text = text_or_none(message.get("reasoning_content"))
    item = as_object(message.get("responses_reasoning_item")) or {}
    summary = "\n".join(str(one) for one in as_list(item.get("summary")) or ())
    found = text or text_or_none(summary)
    return (thinking_block(found),) if found is not None else ()


def screen_of(seen: dict[str, Any]) -> tuple[Block, ...]:
    """Return the picture of the screen that an observation of a browser has next to its text."""
    data = text_or_none(seen.get("screenshot_data"))
    if data is None:
        return ()
    url = data if data.startswith("data:") else f"data:image/png;base64,{data}"
    return parts_of([{"type": "image_url", "image_url": {"url": url}}])


def seen_of(event: dict[str, Any], extras: dict[str, Any]) -> Content:
    """Return the content of an observation of the first version, with its pictures."""
    content = event.get("content")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    urls = as_list(extras.get("image_urls")) or ()
    screen = text_or_none(extras.get("screenshot"))
    shown = [*urls, *([screen] if screen is not None and screen.startswith("data:") else [])]
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in shown]
    return (*as_blocks(text), *parts_of(pictures)) if pictures else text


def is_failure(kind: str, event: dict[str, Any], extras: dict[str, Any]) -> bool:
    """Return whether an observation of the first version is of something that failed."""
    code = (as_object(extras.get("metadata")) or extras or event).get("exit_code")
    failed = isinstance(code, int) and code > 0
    text = event.get("content")
    return kind == "error" or failed or (isinstance(text, str) and text.startswith("ERROR:"))


def knowledge_of(extras: dict[str, Any]) -> Iterator[str]:
    """Yield the texts that the program found for the model."""
    for key in ("repo_instructions", "additional_agent_instructions"):
        yield str(extras.get(key) or "")
    for found in objects_in(extras.get("microagent_knowledge")):
        yield str(found.get("content") or "")
