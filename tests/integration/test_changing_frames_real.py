"""Real recordings with a system text that changes every third turn and a tool that appears half-way."""

import os
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.conversation.transcripts import RecordedConversation
from refold.infrastructure.transcripts.read_transcript import read_transcript
from refold.testing.request_judge import violations
from refold.testing.request_rules.sequences import preserved_thinking_violations
from tests.support.judged_play import recordings
from tests.support.real_data import needs_data

pytestmark = needs_data

BOUND, MANUAL = "claude-opus-5-5", "claude-opus-4-5"
TOOL = {"name": "late", "description": "Comes later.", "input_schema": {"type": "object"}}
SAMPLE = (
    "claude-code-entire/6860e2316a8a",
    "claude-code-episodic-memory/long",
    "pi/",
    "swe-agent/i_got_id",
)
MOST_MESSAGES = 400
"""Of each recording; all of it with ``CI``."""


def cases() -> list[tuple[Path, int, str]]:
    """Recording, window and model."""
    everything = bool(os.environ.get("CI"))
    found = [p for p in recordings(() if everything else SAMPLE) if p.stat().st_size < 120_000]
    some = found[::4] if everything else found[:4]
    return [
        (path, window, m) for path in some for window in (8_000, 32_000) for m in (BOUND, MANUAL)
    ]


@pytest.mark.parametrize(("path", "window", "model"), cases(), ids=str)
def test_every_request_is_legal_and_a_version_gives_it_again(
    path: Path, window: int, model: str, tmp_path: Path
) -> None:
    recorded = max(read_transcript(path).conversations, key=lambda c: len(c.messages))
    requests, versions, over = played(recorded, tmp_path / "a.db", window, model)
    found = [fault for request in requests for fault in violations(request)]
    assert found == []
    assert preserved_thinking_violations(requests) == []
    assert over == 0
    with refold.open(tmp_path / "a.db", window=window) as memory:
        chat = memory.conversation("t")
        for request, version in list(zip(requests, versions, strict=True))[::17]:
            again = chat.context(at=version).for_anthropic()
            assert again == {k: request[k] for k in again}, version
        assert memory.verify().ok


def played(
    recorded: RecordedConversation, path: Path, window: int, model: str
) -> tuple[list[dict[str, Any]], list[int], int]:
    """Each request with the answer that it got, the version it showed, and how many were too large."""
    requests: list[dict[str, Any]] = []
    versions: list[int] = []
    over = 0
    messages = recorded.messages if os.environ.get("CI") else recorded.messages[:MOST_MESSAGES]
    memory = refold.open(path, window=window)
    for number, message in enumerate(messages):
        chat, role = memory.conversation("t"), message.message.role
        content: Any = message.message.content
        if role == "assistant" and number:
            content = message.message.blocks()
            thought = {"type": "thinking", "thinking": f"t{number}", "signature": f"s{number}"}
            content = [thought, *(b for b in content if "thinking" not in b["type"])]
            tools = [*recorded.tools, *([TOOL] if number * 2 > len(messages) else [])]
            system = f"It is day {number // 6}."
            try:
                made = chat.context(system=system, tools=tools, model=model)
            except refold.ContextWindowExceeded:
                pass
            else:
                over += made.tokens > made.budget.limit
                thinking = {"type": "enabled", "budget_tokens": 1_024} if model == MANUAL else None
                carried = {**made.for_anthropic(), "answer": content, "model": model}
                requests.append(carried | ({"thinking": thinking} if thinking else {}))
                versions.append(made.version)
        chat.append({"role": role, "content": content}, recorded=True)
        if number % 37 == 36:
            memory.close()
            memory = refold.open(path, window=window)
    memory.close()
    return requests, versions, over
