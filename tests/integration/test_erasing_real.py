"""Messages of real recordings, erased after compactions: their words are in no file any more."""

import json
from pathlib import Path
from typing import cast

import pytest

import refold
from refold.application.conversation.transcripts import RecordedConversation
from refold.domain.messages import Message
from refold.infrastructure.transcripts.read_transcript import read_transcript
from refold.testing.request_judge import violations
from tests.support.judged_play import recordings
from tests.support.real_data import needs_data

pytestmark = needs_data

WINDOW = 32_000
SAMPLE = ("claude-code-entire/6860e2316a8a", "pi/", "swe-agent/i_got_id", "openhands-llm-logs")
LONGEST = 400
"""Messages that are played of a recording."""

STAYS = ("id", "tool_use_id", "name", "type")
"""What tool rounds are told by."""


def texts(message: Message) -> set[str]:
    """Everything in a message that is erased: its strings, line by line."""
    found: set[str] = set()
    left: list[object] = [message.content]
    while left:
        value = left.pop()
        if isinstance(value, str):
            found |= {line.strip() for line in value.splitlines() if len(line.strip()) >= 12}
        elif isinstance(value, dict):
            fields = cast("dict[str, object]", value)
            left += [v for k, v in fields.items() if k not in STAYS]
        elif isinstance(value, list | tuple):
            left += value  # pyright: ignore[reportUnknownArgumentType]
    return found


def own_words(messages: dict[int, Message], position: int) -> list[str]:
    """The lines of a message that stand in no other one."""
    others = json.dumps(
        [m.model_dump() for p, m in messages.items() if p != position], ensure_ascii=False
    )
    return [
        t
        for t in texts(messages[position])
        if json.dumps(t, ensure_ascii=False)[1:-1] not in others
    ]


@pytest.mark.slow(but="i_got_id_demo.traj")
@pytest.mark.parametrize("path", recordings(SAMPLE), ids=lambda path: path.name)
def test_erased_words_of_a_recording_are_in_no_file(path: Path, tmp_path: Path) -> None:
    conversation: RecordedConversation = read_transcript(path).conversations[0]
    folder = tmp_path / "log"
    folder.mkdir()
    with refold.open(folder / "a.db", window=WINDOW) as memory:
        chat = memory.conversation("t")
        played = conversation.messages[:LONGEST]
        for start in range(0, len(played), 4):
            chat.append_recorded(played[start : start + 4])
            chat.context()
        messages = {m.position: m.message for m in chat.messages()}
        wanted = sorted({len(messages) * n // 7 for n in range(7)})
        words = {p: own_words(messages, p) for p in wanted}
        assert any(words.values())
        report = chat.erase(wanted)
        assert report.complete
        for version in range(1, chat.version + 1, 11):
            request = chat.context(at=version).for_anthropic()
            assert violations(request, allow_pending_at_end=True) == []
        chat.context()
        found = memory.verify()
        assert found.ok, found.damage
        is_gone(folder, words)
    is_gone(folder, words)


def is_gone(folder: Path, words: dict[int, list[str]]) -> None:
    for file in folder.iterdir():
        content = file.read_bytes()
        for position, said in words.items():
            for text in said:
                for form in (json.dumps(text, ensure_ascii=False), json.dumps(text)):
                    sought = form[1:-1].encode("utf-8", "surrogatepass")
                    assert sought not in content, (
                        f"{file.name} holds words of message {position}: {text!r}"
                    )
