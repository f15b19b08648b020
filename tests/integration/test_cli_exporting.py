"""``refold export``: what it writes is read back to the same messages, and writes over nothing."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from refold.application.api.memory import Memory
from refold.infrastructure.bootstrap import open_memory
from refold.infrastructure.event_store.codec import NAMES
from tests.support.command_line import CONTROL, HOSTILE, Refold, talk

SURROGATE = "half \ud83d of a pair"
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "You are brief."},
    *talk(2),
    {"role": "user", "content": [{"type": "text", "text": HOSTILE}]},
    {"role": "assistant", "content": SURROGATE},
    {"role": "system", "content": "Be even briefer."},
    {"role": "user", "content": "你好 🙂"},
]


def filled(path: Path) -> list[dict[str, Any]]:
    """Fill a log with ``MESSAGES``; how they are stored."""
    with open_memory(path) as memory:
        memory.conversation("t").append(MESSAGES, recorded=True)
        return said(memory)


def said(memory: Memory) -> list[dict[str, Any]]:
    return [m.message.model_dump() for m in memory.conversation("t").messages()]


def imported(path: Path, refold: Refold, file: Path) -> list[dict[str, Any]]:
    assert refold("import", file, "--db", path, "--thread", "t").code == 0
    with open_memory(path) as memory:
        return said(memory)


def test_each_message_comes_back_from_json_lines(tmp_path: Path, refold: Refold) -> None:
    messages = filled(tmp_path / "agent.db")
    ran = refold("export", "t", "--out", tmp_path / "t.jsonl")
    assert ran.code == 0, ran.err
    assert imported(tmp_path / "other.db", refold, tmp_path / "t.jsonl") == messages
    lines = exported(refold("export", "t").out)
    assert [line["position"] for line in lines] == list(range(len(messages)))
    assert exported(refold("export", "t", "--db", tmp_path / "other.db").out) == lines


def test_each_message_comes_back_from_the_apis_shape(tmp_path: Path, refold: Refold) -> None:
    messages = filled(tmp_path / "agent.db")
    assert refold("export", "t", "--format", "anthropic", "--out", "t.json").code == 0
    assert imported(tmp_path / "other.db", refold, tmp_path / "t.json") == messages
    (request,) = exported(refold("export", "t", "--format", "anthropic").out)
    assert request["system"] == "You are brief."
    assert request["messages"][0]["role"] == "user"


def test_texts_without_any_block_come_back_too(tmp_path: Path, refold: Refold) -> None:
    with open_memory(tmp_path / "agent.db") as memory:
        for n in range(3):
            memory.conversation("t").append({"role": "user", "content": f"Question {n}?"})
            memory.conversation("t").append({"role": "assistant", "content": f"Answer {n}."})
        messages = said(memory)
    for name, format in (("t.json", "anthropic"), ("t.jsonl", "jsonl")):
        assert refold("export", "t", "--format", format, "--out", name).code == 0
        assert imported(tmp_path / f"{format}.db", refold, tmp_path / name) == messages


def test_our_own_lines_are_told_from_those_of_another_api(tmp_path: Path, refold: Refold) -> None:
    with open_memory(tmp_path / "agent.db") as memory:
        said_before = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi."},
        ]
        memory.conversation("t").append(said_before, recorded=True)
    assert refold("export", "t", "--out", "t.jsonl").code == 0
    answer = refold("import", "t.jsonl", "--db", "other.db", "--json").answer
    assert answer["files"][0]["format"] == "anthropic"
    lines = exported(refold("export", "t", "--db", "other.db").out)
    assert lines == exported(refold("export", "t").out)


def test_the_form_in_which_another_api_gave_a_message_comes_back(
    tmp_path: Path, refold: Refold
) -> None:
    form = {"format": "openai-responses", "data": [{"type": "reasoning", "encrypted_content": "s"}]}
    own = {"original": {"format": "a field of somebody else", "data": 1, "more": 2}}
    given = [
        {"role": "user", "content": "What is seven times six?", "original": form},
        {"role": "assistant", "content": "It is forty-two, as ever.", **own},
    ]
    with open_memory(tmp_path / "agent.db") as memory:
        memory.conversation("t").append(given, recorded=True)
    assert refold("export", "t", "--out", tmp_path / "t.jsonl").code == 0
    imported(tmp_path / "other.db", refold, tmp_path / "t.jsonl")
    with open_memory(tmp_path / "other.db") as memory:
        asked, answered = memory.conversation("t").messages()
    assert asked.original is not None
    assert asked.original.model_dump() == form
    assert asked.message.extra is None
    assert answered.original is None
    assert answered.message.extra == own


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_image", "file_id": "file-1"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "refusal", "refusal": "No."},
    ],
)
def test_a_part_of_another_api_makes_no_export_one_of_that_api(
    tmp_path: Path, refold: Refold, part: dict[str, Any]
) -> None:
    form = {"format": "openai-responses", "data": [{"type": "message", "id": "one"}]}
    given = {"role": "user", "content": [part], "name": "Ada", "original": form}
    with open_memory(tmp_path / "agent.db") as memory:
        memory.conversation("t").append([given], recorded=True)
    assert refold("export", "t", "--out", "t.jsonl").code == 0
    assert refold("import", "t.jsonl", "--db", "other.db").code == 0
    lines = exported(refold("export", "t", "--db", "other.db").out)
    assert lines == exported(refold("export", "t").out)


@pytest.mark.parametrize("words", ["<returncode>1</returncode> What is this?", "API output: 5"])
def test_no_author_is_guessed_for_our_own_lines(tmp_path: Path, refold: Refold, words: str) -> None:
    said_before = [*talk(1), {"role": "user", "content": words}, *talk(1)]
    with open_memory(tmp_path / "agent.db") as memory:
        memory.conversation("t").append(said_before, recorded=True)
        messages = said(memory)
    assert refold("export", "t", "--out", "t.jsonl").code == 0
    assert imported(tmp_path / "other.db", refold, tmp_path / "t.jsonl") == messages


def test_the_events_have_their_stored_names_and_all_fields(tmp_path: Path, refold: Refold) -> None:
    with open_memory(tmp_path / "agent.db", window=8_000) as memory:
        memory.conversation("t").append(talk(40), recorded=True)
        memory.conversation("t").compact()
    lines = exported(refold("export", "t", "--format", "events").out)
    assert [line["version"] for line in lines] == list(range(1, len(lines) + 1))
    assert {line["name"] for line in lines} > {"message_appended", "compaction_performed"}
    for line in lines:
        event = NAMES[line["name"]].model_validate(line["fields"])
        assert event.model_dump(mode="json") == line["fields"]


def test_a_conversation_as_it_was(tmp_path: Path, refold: Refold) -> None:
    filled(tmp_path / "agent.db")
    assert len(exported(refold("export", "t", "--at", "3").out)) == 3
    assert refold("export", "t", "--at", "99").code == 2
    assert refold("export", "t", "--at", "soon").code == 2


def test_nothing_that_moves_a_cursor_is_printed(tmp_path: Path, refold: Refold) -> None:
    filled(tmp_path / "agent.db")
    for format in ("jsonl", "anthropic", "events"):
        assert not CONTROL.search(refold("export", "t", "--format", format).out)


def test_a_file_is_for_its_owner_and_replaced_on_purpose_only(
    tmp_path: Path, refold: Refold
) -> None:
    filled(tmp_path / "agent.db")
    out = tmp_path / "t.jsonl"
    out.write_text("mine")
    refused = refold("export", "t", "--out", out)
    assert refused.code == 2
    assert "TargetExists" in refused.err
    assert out.read_text() == "mine"
    assert refold("export", "t", "--out", out, "--force").code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    own = ("agent.db", "agent.db-wal", "agent.db.anchor", "agent.views.db", "agent.recall.db")
    assert {refold("export", "t", "--out", tmp_path / name, "--force").code for name in own} == {2}
    assert refold("verify").code == 0
    assert refold("export", "nobody").code == 2
    assert refold("export", "t", "--out", tmp_path / "none" / "t.jsonl").code == 2
    assert refold("export", "t", "--out", tmp_path, "--force").code == 2
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def exported(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("formats", [["jsonl"], ["anthropic"], ["jsonl", "anthropic"]])
def test_a_copy_goes_on_after_a_message_was_erased_in_its_source(
    tmp_path: Path, refold: Refold, formats: list[str]
) -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://a.example/1.png"}}
    with open_memory(tmp_path / "agent.db") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "My card is 4711."})
        conversation.append({"role": "assistant", "content": "Noted."})
        conversation.append({"role": "user", "content": [{"type": "text", "text": "!"}, picture]})

    def copied() -> list[str]:
        formats.append(formats.pop(0))
        ran = refold("export", "t", "--format", formats[0], "--out", "t.json", "--force")
        assert ran.code == 0, ran.err
        assert refold("import", "t.json", "--db", "b.db", "--thread", "t").code == 0
        with open_memory(tmp_path / "b.db") as other:
            return [m.text for m in other.conversation("t").messages()]

    before = copied()
    with open_memory(tmp_path / "agent.db") as memory:
        memory.conversation("t").erase(0)
        memory.conversation("t").erase(2)
        memory.conversation("t").append({"role": "assistant", "content": "Done."})
    assert copied() == [*before, "Done."]
    with open_memory(tmp_path / "agent.db") as memory:
        memory.conversation("t").erase(1)
    assert copied() == [*before, "Done."]
