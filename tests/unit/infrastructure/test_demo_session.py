"""The shipped conversation has what the demo needs, is legal, and comes from its generator."""

import base64
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from refold.application.conversation.transcripts import RecordedConversation
from refold.domain.messages import Message, gist, said, text_of
from refold.infrastructure.cli.demo_session import demo_conversation

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ROOT / "infrastructure" / "cli" / "session.jsonl"
GENERATOR = ROOT / "examples" / "write_demo_session.py"


@pytest.fixture(scope="module")
def demo() -> RecordedConversation:
    return demo_conversation()


@pytest.fixture(scope="module")
def messages(demo: RecordedConversation) -> tuple[Message, ...]:
    return tuple(recorded.message for recorded in demo.messages)


def blocks(messages: tuple[Message, ...], kind: str) -> Iterator[dict[str, Any]]:
    return (b for m in messages for b in m.blocks() if b["type"] == kind)


def characters(messages: tuple[Message, ...]) -> int:
    """What the messages carry, without the names of fields: texts, arguments and results."""
    total = sum(len(text_of(b)) for m in messages for b in m.blocks())
    total += sum(len(b["thinking"]) + len(b["signature"]) for b in blocks(messages, "thinking"))
    calls = blocks(messages, "tool_use")
    return total + sum(len(json.dumps(call["input"], ensure_ascii=False)) for call in calls)


def written(target: Path, seed: str) -> bytes:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, str(GENERATOR), str(target)], check=True, env=environment)
    return target.read_bytes()


def test_it_has_a_few_hundred_messages(messages: tuple[Message, ...]) -> None:
    assert 300 <= len(messages) <= 420


def test_it_is_long_enough_for_several_compactions(messages: tuple[Message, ...]) -> None:
    assert 150_000 <= characters(messages) // 4 <= 220_000


def test_roles_alternate_and_the_user_begins(messages: tuple[Message, ...]) -> None:
    assert [m.role for m in messages] == ["user", "assistant"] * (len(messages) // 2)


def test_every_message_has_an_id_and_a_time_that_only_grows(demo: RecordedConversation) -> None:
    times = [recorded.at for recorded in demo.messages]
    assert len({recorded.key for recorded in demo.messages}) == len(demo.messages)
    assert [r.line for r in demo.messages] == list(range(1, len(demo.messages) + 1))
    assert all(a and b and a < b for a, b in pairwise(times))
    assert {at.date().isoformat() for at in times if at} == {"2026-03-10", "2026-03-11"}


def test_results_follow_their_calls_but_for_one_aborted_turn(messages: tuple[Message, ...]) -> None:
    unanswered = list[str]()
    for spoken, answer in pairwise(messages):
        if not gist(spoken).calls:
            assert not gist(answer).results
        elif gist(answer).results:
            assert gist(answer).results == gist(spoken).calls
            leading = answer.blocks()[: len(gist(spoken).calls)]
            assert {b["type"] for b in leading} == {"tool_result"}
        else:
            unanswered += gist(spoken).calls
    assert len(unanswered) == 1


def test_ids_of_calls_are_unique_and_well_formed(messages: tuple[Message, ...]) -> None:
    ids = [call for m in messages for call in gist(m).calls]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"toolu_[A-Za-z0-9]{24}", call) for call in ids)


def test_every_call_uses_a_tool_and_its_arguments_as_defined(demo: RecordedConversation) -> None:
    schemas = {tool["name"]: tool["input_schema"] for tool in demo.tools}
    calls = list(blocks(tuple(r.message for r in demo.messages), "tool_use"))
    assert {call["name"] for call in calls} == schemas.keys()
    for call in calls:
        schema = schemas[call["name"]]
        assert set(schema["required"]) <= call["input"].keys() <= schema["properties"].keys()


def test_no_text_is_blank_and_no_turn_ends_in_thinking(messages: tuple[Message, ...]) -> None:
    assert all(b["text"].strip() for b in blocks(messages, "text"))
    assert all(b["content"].strip() for b in blocks(messages, "tool_result"))
    assert all(m.blocks()[-1]["type"] != "thinking" for m in messages)


def test_it_has_what_makes_memory_hard(messages: tuple[Message, ...]) -> None:
    parallel = [m for m in messages if len(gist(m).calls) >= 2]
    results = list(blocks(messages, "tool_result"))
    assert len(parallel) >= 15
    assert sum(1 for b in results if b.get("is_error")) >= 10
    assert sum(50_000 < len(text_of(b)) < 80_000 for b in results) == 1
    assert len(list(blocks(messages, "image"))) == 1
    asides = [m for m in messages if gist(m).results and said(m)]
    assert len(asides) >= 2


def test_thinking_is_signed_with_base64(messages: tuple[Message, ...]) -> None:
    thinking = list(blocks(messages, "thinking"))
    assert len(thinking) >= len(messages) // 8
    assert all(base64.b64decode(b["signature"], validate=True) for b in thinking)


def test_people_write_chinese_and_emoji(messages: tuple[Message, ...]) -> None:
    typed = "".join(said(m) for m in messages if m.role == "user")
    assert len(re.findall(r"[\u4e00-\u9fff]", typed)) >= 30
    assert len(re.findall(r"[\U0001f300-\U0001faff]", typed)) >= 5


@pytest.mark.parametrize(
    "fact",
    [
        "不要用 ORM",
        "never touch `teahouse/legacy/settlement.py`",
        "Never run load or soak tests against `var/teahouse.db`",
        "lease 45 s, with a heartbeat every 15 s",
        "Make it 90 s, heartbeat every 25 s",
        "one posting per job id",
        "`award:<order>` and `refund:<order>:<n>`",
        "四舍五入",
        "no web framework before ten routes",
    ],
)
def test_the_user_says_what_a_memory_must_keep(messages: tuple[Message, ...], fact: str) -> None:
    assert Counter(fact in said(m) for m in messages if m.role == "user")[True] == 1


def test_it_names_no_outside_host(messages: tuple[Message, ...]) -> None:
    text = SHIPPED.read_text(encoding="utf-8")
    hosts = set(re.findall(r"https?://([A-Za-z0-9.-]+)", text))
    assert hosts <= {"127.0.0.1", "example.org"}


def test_the_generator_writes_the_shipped_file(tmp_path: Path) -> None:
    shipped = SHIPPED.read_bytes()
    assert written(tmp_path / "one.jsonl", "1") == shipped
    assert written(tmp_path / "two.jsonl", "2") == shipped


def test_the_file_is_small_enough_to_ship() -> None:
    assert SHIPPED.stat().st_size < 1_500_000
