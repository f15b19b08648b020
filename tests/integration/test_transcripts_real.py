"""Real recordings: what their READMEs count is what the readers find."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from refold.application.conversation.transcripts import Transcript
from refold.application.errors import TranscriptError
from refold.infrastructure.transcripts.read_transcript import read_transcript
from refold.infrastructure.transcripts.transcript_source import read_bytes
from tests.support.real_data import files, needs_data

pytestmark = needs_data

FORMAT_OF = {
    "claude-code-entire": "claude-code",
    "claude-code-episodic-memory": "claude-code",
    "claude-code-log-samples": "claude-code",
    "claude-code-viewer": "claude-code",
    "pi": "pi",
    "openhands-llm-logs": "openai",
    "tau-bench": "openai",
    "mini-swe-agent": "openai",
    "swe-agent": "openai",
    "inspect-ai-images": "openai",
    "openhands-v0": "openhands",
    "agent-tars": "agent-tars",
    "deer-flow-langgraph": "langchain",
}
UNKNOWN = (
    "beam",
    "crosswoz-zh",
    "evermemos-chat",
    "locomo",
    "longmemeval",
    "madial-zh",
    "memorybank",
)
# Here "results" counts texts of the environment, which are plain user messages in the file.
RESULTS_IN_WORDS = ("mini-swe-agent", "swe-agent", "pi", "openhands-v0")


def recordings(*folders: str) -> list[Path]:
    found = files(*(f"{folder}/*" for folder in folders))
    return [path for path in found if path.name != "README.md"]


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def counts_of(path: Path) -> Counter[str]:
    """The counts column that the folder's README has for a file."""
    readme = (path.parent / "README.md").read_text(encoding="utf-8")
    row = next(line for line in readme.splitlines() if line.startswith(f"| {path.name} |"))
    cells = [cell.strip() for cell in row.split("|")]
    named = re.findall(r"([a-z_<>0-9]+) (\d+)", cells[5])
    return Counter({"messages": int(cells[3])} | {name: int(number) for name, number in named})


def calls_of_agents(path: Path) -> int:
    """The calls of sub-agents that records of progress tell, which the README does not count."""
    found: set[str] = set()
    for line in read_bytes(path).splitlines():
        if b'"agent_progress"' in line:
            content = json.loads(line)["data"]["message"]["message"]["content"]
            found |= {block["id"] for block in content if block["type"] == "tool_use"}
    return len(found)


def blocks_of(transcript: Transcript) -> Counter[str]:
    return Counter(
        str(block.get("type"))
        for conversation in transcript.conversations
        for recorded in conversation.messages
        for block in recorded.message.blocks()
    )


@pytest.mark.slow(but="claude-code-entire/6860e2316a8a_0.jsonl.gz")
@pytest.mark.parametrize("path", recordings(*FORMAT_OF), ids=name_of)
def test_a_recording_holds_what_its_readme_counts(path: Path) -> None:
    transcript, expected = read_transcript(path), counts_of(path)
    found = blocks_of(transcript)
    assert transcript.format == FORMAT_OF[path.parent.name]
    agents = calls_of_agents(path) if path.parent.name.startswith("claude-code") else 0
    assert found["tool_use"] == expected["tool_calls"] + agents
    if path.parent.name not in RESULTS_IN_WORDS:
        assert found["tool_result"] == expected["results"] + agents
    if "thinking" in expected:
        assert found["thinking"] == expected["thinking"]
    assert found["image"] == expected["image"]
    assert not any(item.damage for item in transcript.skipped)


@pytest.mark.slow(but="claude-code-entire/6860e2316a8a_0.jsonl.gz")
@pytest.mark.parametrize("path", recordings(*FORMAT_OF), ids=name_of)
def test_two_readings_agree_and_every_key_is_unique(path: Path) -> None:
    transcript = read_transcript(path)
    assert read_transcript(path) == transcript
    for conversation in transcript.conversations:
        keys = [recorded.key for recorded in conversation.messages]
        assert len(set(keys)) == len(keys)
    threads = [conversation.thread_id for conversation in transcript.conversations]
    assert len(set(threads)) == len(threads)


@pytest.mark.parametrize("path", recordings("claude-code-entire"), ids=name_of)
def test_what_claude_code_compacted_is_named_and_kept_in_the_original(path: Path) -> None:
    transcript, expected = read_transcript(path), counts_of(path)
    reasons = Counter(item.reason for item in transcript.skipped)
    assert reasons["compaction boundary"] == expected["compact_boundary"]
    assert reasons["micro compaction boundary"] == expected["microcompact_boundary"]
    summaries = "summary by the recording tool; the original is before it"
    assert reasons[summaries] == expected["compaction"]
    assert reasons["records run together"] == expected["bad_line"]
    assert reasons["API error record"] == expected["api_error"]


@pytest.mark.parametrize(
    "path", recordings("claude-code-entire", "claude-code-viewer"), ids=name_of
)
def test_results_follow_the_message_that_holds_their_call(path: Path) -> None:
    orphans = 0
    for conversation in read_transcript(path).conversations:
        called: set[object] = set()
        for recorded in conversation.messages:
            for block in recorded.message.blocks():
                called |= {block["id"]} if block.get("type") == "tool_use" else set()
                if block.get("type") == "tool_result":
                    orphans += block["tool_use_id"] not in called
    assert orphans == counts_of(path)["result_without_call"]


@pytest.mark.parametrize("path", recordings("claude-code-viewer"), ids=name_of)
def test_each_sub_agent_has_its_own_conversation(path: Path) -> None:
    conversations = read_transcript(path).conversations
    assert len(conversations) == 6
    main = conversations[0].thread_id
    assert all(c.thread_id.startswith(f"{main}:") for c in conversations[1:])


@pytest.mark.parametrize("path", recordings("pi", "tau-bench", "openhands-llm-logs"), ids=name_of)
def test_no_message_of_a_chat_is_missing(path: Path) -> None:
    transcript, expected = read_transcript(path), counts_of(path)
    assert sum(len(c.messages) for c in transcript.conversations) == expected["messages"]
    assert len(transcript.conversations) == (expected["conversations"] or 1)


@pytest.mark.parametrize("path", recordings(*UNKNOWN), ids=name_of)
def test_other_files_are_refused_with_what_they_look_like(path: Path) -> None:
    with pytest.raises(TranscriptError, match="It looks like"):
        read_transcript(path)
