"""The summariser without a model, on real recordings."""

import re
import time
from pathlib import Path

import pytest

from refold.application.ports.summariser import SourceMessage, SummaryRequest
from refold.domain.messages import Message
from refold.infrastructure.summarisers.extractive.summariser import ExtractiveSummariser
from refold.infrastructure.transcripts.read_transcript import read_transcript
from tests.support.real_data import files, needs_data

pytestmark = needs_data

RECORDINGS = files(
    "claude-code-entire/*.jsonl.gz",
    "claude-code-episodic-memory/*.jsonl*",
    "pi/*.jsonl.gz",
    "swe-agent/*.traj*",
    "openhands-llm-logs/*.json",
)
LINE = re.compile(r"- \[\d+\] \S.*|> \S.*|## [A-Z][a-z ]+|Extracted by code from messages .*|")


def messages_of(path: Path) -> tuple[Message, ...]:
    """The longest conversation of a file."""
    conversations = read_transcript(path).conversations
    longest = max(conversations, key=lambda c: len(c.messages))
    return tuple(recorded.message for recorded in longest.messages)


def sources(messages: tuple[Message, ...], start: int = 0) -> tuple[SourceMessage, ...]:
    return tuple(SourceMessage(position=start + i, message=m) for i, m in enumerate(messages))


def summary(
    messages: tuple[Message, ...], target: int, start: int = 0, previous: str | None = None
) -> str:
    return ExtractiveSummariser().extract(
        SummaryRequest(
            messages=sources(messages, start),
            previous=previous,
            target_tokens=target,
            limit_tokens=target * 6 // 5,
        )
    )


@pytest.mark.slow(but="2000-swe-agent/i_got_id_demo.traj")
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda p: f"{p.parent.name}/{p.name}")
@pytest.mark.parametrize("target", [150, 2_000, 8_000])
def test_every_recording_is_summarised_in_form_and_within_its_length(
    path: Path, target: int
) -> None:
    try:
        messages = messages_of(path)
    except ValueError:
        pytest.skip("no conversation in this file")
    text = summary(messages, target)
    assert len(text.encode()) <= 3 * (target * 6 // 5)
    assert all(LINE.fullmatch(line) for line in text.splitlines()), text
    positions = [int(n) for n in re.findall(r"^- \[(\d+)\]", text, re.MULTILINE)]
    assert positions
    assert max(positions) < len(messages)
    assert text == summary(messages, target)


@pytest.mark.parametrize("path", files("pi/*.jsonl.gz"), ids=lambda p: p.name)
def test_ten_compactions_of_a_long_session_keep_the_first_request_and_the_files(path: Path) -> None:
    messages = messages_of(path)
    step = -(-len(messages) // 10)
    text: str | None = None
    for start in range(0, len(messages), step):
        text = summary(messages[start : start + step], 4_000, start, text)
    assert text is not None
    whole = summary(messages, 4_000)
    first = re.search(r"^## Requests\n- \[(\d+)\] (.{60})", whole, re.MULTILINE)
    assert first
    assert f"- [{first[1]}] {first[2]}" in text
    modified = re.findall(r"^- \[\d+\] (\S+) — ", whole, re.MULTILINE)
    assert modified
    # What is made in one go has no earlier lines to carry, and so more room for files.
    assert len([path for path in modified if path in text]) >= 0.9 * len(modified)


def test_two_thousand_messages_take_two_milliseconds_each_at_most() -> None:
    found = files("pi/*.jsonl.gz", "claude-code-entire/*.jsonl.gz")
    messages = tuple(m for path in found for m in messages_of(path))[:2_000]
    if len(messages) < 2_000:
        pytest.skip("not enough recordings")
    began = time.process_time()
    summary(messages, 8_000)
    # All facts are read, which a compaction does once for ledger, index and summary.
    assert time.process_time() - began < 4.0
