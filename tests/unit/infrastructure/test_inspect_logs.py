"""Logs of Inspect: each sample of an evaluation is a conversation."""

import json
import zlib
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import zstandard

from refold.application.errors import TranscriptError
from refold.domain.messages import gist, readable
from refold.infrastructure.transcripts.read_transcript import read_transcript
from tests.support.transcript_files import contents, keys, only, read_json, result, text

URL = "data:image/png;base64,QQ=="
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}}
MESSAGES: list[dict[str, Any]] = [
    {"id": "m0", "role": "system", "content": "Be brief"},
    {"id": "m1", "role": "user", "source": "input", "content": [
        text("What is it?"), {"type": "image", "image": "attachment://abc", "detail": "auto"}]},
    {"id": "m2", "role": "assistant", "model": "m", "content": [
        {"type": "reasoning", "reasoning": "Hm", "signature": "s"},
        {"type": "reasoning", "reasoning": "sealed", "redacted": True},
        {"type": "reasoning", "reasoning": "Aha"}, text("I zoom.")],
     "tool_calls": [{"id": "c1", "function": "zoom", "type": "function", "arguments": {"by": 2}}]},
    {"id": "m3", "role": "tool", "tool_call_id": "c1", "function": "zoom", "content": "",
     "error": {"type": "timeout", "message": "took too long"}},
    {"id": "m4", "role": "user", "content": "Go on"},
    {"id": "m5", "role": "assistant", "content": "A hedgehog."},
]  # fmt: skip


def log(*samples: Any) -> dict[str, Any]:
    header = {"task": "pictures", "task_id": "t-1", "model": "openai/m"}
    return {"version": 2, "status": "success", "eval": header, "samples": list(samples)}


def sample(epoch: int = 1, **more: Any) -> dict[str, Any]:
    return {"id": 1, "epoch": epoch, "input": "?", "target": "!", "messages": MESSAGES,
            "attachments": {"abc": URL}, **more}  # fmt: skip


SAID = [
    "Be brief",
    [text("What is it?"), PICTURE],
    [
        {"type": "thinking", "thinking": "Hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "sealed"},
        {"type": "thinking", "thinking": "Aha"},
        text("I zoom."),
        {"type": "tool_use", "id": "c1", "name": "zoom", "input": {"by": 2}},
    ],
    [result("c1", "took too long") | {"is_error": True}],
    "Go on",
    "A hedgehog.",
]


def test_each_sample_and_epoch_is_a_conversation(tmp_path: Path) -> None:
    talk = read_json(tmp_path, log(sample(1), sample(2)))
    assert talk.format == "inspect"
    assert [one.thread_id for one in talk.conversations] == ["t-1:1:epoch-1", "t-1:1:epoch-2"]
    for one in talk.conversations:
        assert contents(one) == SAID
        assert keys(one) == ["m0", "m1", "m2", "m3", "m4", "m5"]
        assert one.label == "pictures"
    assert talk.skipped == ()


def test_who_said_it_and_when_and_with_which_tools(tmp_path: Path) -> None:
    answer = {"message": {"id": "m2"}, "stop_reason": "stop"}
    event: dict[str, Any] = {"event": "model", "timestamp": "2026-02-01T10:00:00+00:00",
             "tools": [{"name": "zoom", "parameters": {"type": "object", "properties": {}}}],
             "output": {"choices": [answer]}}  # fmt: skip
    one = only(read_json(tmp_path, log(sample(events=[event]))))
    assert [m.message.author for m in one.messages] == [None, "person", None, None, "program", None]
    assert [m.model for m in one.messages if m.model] == ["m", "openai/m"]
    assert [str(m.at) for m in one.messages if m.at] == ["2026-02-01 10:00:00+00:00"]
    assert [tool["name"] for tool in one.tools] == ["zoom"]


def test_results_and_what_was_said_first_have_their_times(tmp_path: Path) -> None:
    events = [
        {"event": "sample_init", "timestamp": "2026-02-01T09:00:00+00:00"},
        {"event": "tool", "id": "c1", "timestamp": "2026-02-01T11:00:00+00:00",
         "completed": "2026-02-01T12:00:00+00:00"},
    ]  # fmt: skip
    one = only(read_json(tmp_path, log(sample(events=events))))
    assert [m.at and m.at.hour for m in one.messages] == [9, 9, None, 12, None, None]


def test_a_call_that_the_provider_answered_is_no_call_of_the_agent(tmp_path: Path) -> None:
    used = {"type": "tool_use", "tool_type": "web_search", "id": "w1", "name": "web_search",
            "arguments": '{"query": "hedgehog"}', "result": "small and brown"}  # fmt: skip
    answer = {"id": "m1", "role": "assistant", "content": [used, text("Brown.")]}
    (message,) = only(read_json(tmp_path, log(sample(messages=[answer])))).messages
    assert gist(message.message).calls == ()
    shown = 'web_search {"query": "hedgehog"}\nsmall and brown\nBrown.'
    assert readable(message.message) == shown


def test_a_document_keeps_its_data_and_name(tmp_path: Path) -> None:
    paper = {
        "type": "document",
        "document": "data:application/pdf;base64,QQ==",
        "filename": "a.pdf",
    }
    asked = {"id": "m1", "role": "user", "source": "input", "content": [paper]}
    source = {"type": "base64", "media_type": "application/pdf", "data": "QQ=="}
    document = {"type": "document", "source": source, "title": "a.pdf"}
    assert contents(only(read_json(tmp_path, log(sample(messages=[asked]))))) == [[document]]


def archive(path: Path, **files: Any) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as made:
        for name, value in files.items():
            made.writestr(name, value if isinstance(value, str) else json.dumps(value))
    return path


@pytest.mark.parametrize("header", ["header.json", "_journal/start.json"])
def test_a_log_in_the_format_eval(tmp_path: Path, header: str) -> None:
    whole = log()
    del whole["samples"]
    samples = {f"samples/1_epoch_{n}.json": sample(n) for n in (1, 2)}
    talk = read_transcript(archive(tmp_path / "a.eval", **{header: whole, **samples}))
    assert talk.format == "inspect"
    assert [one.thread_id for one in talk.conversations] == ["t-1:1:epoch-1", "t-1:1:epoch-2"]
    assert [contents(one) for one in talk.conversations] == [SAID, SAID]


def pack_with_zstd(path: Path) -> Path:
    """Write a zip file again with parts that are packed as Inspect packs them."""
    packer = zstandard.ZstdCompressor()
    with ZipFile(path) as made:
        parts = {one.filename: made.read(one) for one in made.infolist()}
    packed = {name: packer.compress(part) for name, part in parts.items()}
    with ZipFile(path, "w") as made:
        for name, part in packed.items():
            made.writestr(name, part)
    whole = path.read_bytes()
    for name, part in packed.items():
        old = zlib.crc32(part).to_bytes(4, "little") + 2 * len(part).to_bytes(4, "little")
        sizes = len(part).to_bytes(4, "little") + len(parts[name]).to_bytes(4, "little")
        new = zlib.crc32(parts[name]).to_bytes(4, "little") + sizes
        assert whole.count(old) == 2
        whole = whole.replace(old, new)
    for head, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        pieces = whole.split(head)
        whole = head.join(
            [pieces[0], *(one[: offset - 4] + b"\x5d\0" + one[offset - 2 :] for one in pieces[1:])]
        )
    path.write_bytes(whole)
    return path


def test_a_log_that_is_packed_with_zstd(tmp_path: Path) -> None:
    whole = log()
    del whole["samples"]
    path = archive(
        tmp_path / "a.eval", **{"header.json": whole, "samples/1_epoch_1.json": sample()}
    )
    talk = read_transcript(pack_with_zstd(path))
    assert contents(only(talk)) == SAID
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(b"\x28\xb5\x2f\xfd") + 12] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(TranscriptError, match="broken or cut off"):
        read_transcript(path)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"notes.txt": "x"}, "no log of Inspect"),
        ({"header.json": "{broken"}, "not JSON"),
        ({"header.json": log(), "samples/1_epoch_1.json": "["}, "not JSON"),
    ],
)
def test_another_zip_file_is_refused(tmp_path: Path, files: dict[str, Any], problem: str) -> None:
    with pytest.raises(TranscriptError, match=problem):
        read_transcript(archive(tmp_path / "a.zip", **files))


def test_a_log_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.eval", **{"header.json": log()})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(TranscriptError, match="broken or cut off"):
        read_transcript(path)


def test_a_sample_by_itself(tmp_path: Path) -> None:
    talk = read_json(tmp_path, sample())
    assert talk.format == "inspect"
    assert contents(only(talk)) == SAID


def test_the_input_of_a_sample_is_a_persons_without_a_source_too(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": one} for one in ("What is it?", "Look again")]
    talk = read_json(tmp_path, log(sample(messages=asked, input="What is it?")))
    assert [m.message.author for m in only(talk).messages] == ["person", "program"]
    talk = read_json(tmp_path, log(sample(messages=asked, input=asked[1:])))
    assert [m.message.author for m in only(talk).messages] == ["program", "person"]
