"""Real recordings with a system text that changes every third turn and a tool that appears half-way."""

from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

import refold
from refold.application.conversation.transcripts import RecordedConversation
from refold.infrastructure.transcripts.read_transcript import read_transcript
from refold.testing.request_judge import preserved_thinking_violations, violations
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
"""Of each recording of the sample; of the others all of them."""
QUICK = "swe-agent/i_got_id"
"""Of the sample, what is not slow in a small window."""


def cases() -> list[ParameterSet]:
    """Recording, window, model and how many messages; all but a few are slow."""
    sample, every = (
        [path for path in recordings(names) if path.stat().st_size < 120_000]
        for names in (SAMPLE, ())
    )
    made = [*((path, MOST_MESSAGES) for path in sample[:4]), *((path, None) for path in every[::4])]
    return [
        pytest.param(path, window, model, most, marks=marks_of(path, window, most))
        for path, most in made
        for window in (8_000, 32_000)
        for model in (BOUND, MANUAL)
    ]


def marks_of(path: Path, window: int, most: int | None) -> tuple[pytest.MarkDecorator, ...]:
    quick = QUICK in str(path) and window == 8_000 and most is not None
    return () if quick else (pytest.mark.slow,)


@pytest.mark.parametrize(("path", "window", "model", "most"), cases(), ids=str)
def test_every_request_is_legal_and_a_version_gives_it_again(
    path: Path, window: int, model: str, most: int | None, tmp_path: Path
) -> None:
    recorded = max(read_transcript(path).conversations, key=lambda c: len(c.messages))
    recorded = recorded.model_copy(update={"messages": recorded.messages[:most]})
    requests, versions, over = played(recorded, tmp_path / "a.db", window, model)
    found = [fault for request in requests for fault in violations(request)]
    assert found == []
    assert preserved_thinking_violations(requests) == []
    assert over == 0
    with refold.open(tmp_path / "a.db", window=window) as memory:
        conversation = memory.conversation("t")
        for request, version in list(zip(requests, versions, strict=True))[::17]:
            again = conversation.context(at=version).for_anthropic()
            assert again == {k: request[k] for k in again}, version
        assert memory.verify().ok


def played(
    recorded: RecordedConversation, path: Path, window: int, model: str
) -> tuple[list[dict[str, Any]], list[int], int]:
    """Each request with the answer that it got, the version it showed, and how many were too large."""
    requests: list[dict[str, Any]] = []
    versions: list[int] = []
    over = 0
    memory = refold.open(path, window=window)
    for number, message in enumerate(recorded.messages):
        conversation, role = memory.conversation("t"), message.message.role
        content: Any = message.message.content
        if role == "assistant" and number:
            content = message.message.blocks()
            thought = {"type": "thinking", "thinking": f"t{number}", "signature": f"s{number}"}
            content = [thought, *(b for b in content if "thinking" not in b["type"])]
            tools = [*recorded.tools, *([TOOL] if number * 2 > len(recorded.messages) else [])]
            system = f"It is day {number // 6}."
            try:
                made = conversation.context(system=system, tools=tools, model=model)
            except refold.ContextWindowExceeded:
                pass
            else:
                over += made.tokens > made.budget.limit
                thinking = {"type": "enabled", "budget_tokens": 1_024} if model == MANUAL else None
                carried = {**made.for_anthropic(), "answer": content, "model": model}
                requests.append(carried | ({"thinking": thinking} if thinking else {}))
                versions.append(made.version)
        conversation.append({"role": role, "content": content}, recorded=True)
        if number % 37 == 36:
            memory.close()
            memory = refold.open(path, window=window)
    memory.close()
    return requests, versions, over
