"""What a person wrote beside a conversation goes with a message that it quotes: title, pins, focus."""

from pathlib import Path

import pytest

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.api.results import CompactionResult
from refold.application.ports.summariser import SummaryDraft, SummaryRequest
from refold.domain.events import WITHDRAWN
from refold.domain.pinning import WITHDRAWN_LABEL
from tests.support.command_line import Refold
from tests.support.erasing_scenes import PATH, SECRET, holding, is_sound, opened, talk


def test_a_title_that_quotes_a_message_is_withdrawn_with_it(folder: Path, memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 3, [1])
    conversation.label(f"Please {SECRET}")
    conversation.label(f"{SECRET}: never touch it")
    copy = conversation.fork(thread_id="copy")
    report = conversation.erase(2)
    assert holding(folder) == {}
    labels = {(one.thread_id, one.version) for one in report.removed if one.place == "label"}
    assert labels == {("t", 7), ("t", 8), ("copy", 7), ("copy", 8)}
    assert {row.label for row in memory.conversations()} == {WITHDRAWN_LABEL}
    for one in (conversation, copy):
        is_sound(memory, one)
    conversation.label("Mine")
    assert {row.label for row in memory.conversations()} == {"Mine", WITHDRAWN_LABEL}


def test_an_older_title_is_withdrawn_and_the_present_one_stays(
    folder: Path, memory: Memory
) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 3, [1])
    conversation.label(SECRET)
    conversation.label("About files")
    conversation.erase(2)
    assert holding(folder) == {}
    assert [row.label for row in memory.conversations()] == ["About files"]
    is_sound(memory, conversation)


def test_a_pin_of_its_own_that_quotes_is_withdrawn_and_unpinned(
    folder: Path, memory: Memory
) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 30, [1])
    conversation.pin(f"Never touch {PATH}")
    conversation.pin("Speak kindly to everybody")
    report = conversation.erase(2)
    assert holding(folder) == {}
    assert [pin.text for pin in conversation.pins()] == ["Speak kindly to everybody"]
    assert "pin" in {one.place for one in report.removed}
    is_sound(memory, conversation)


def test_a_focus_that_quotes_is_withdrawn_with_what_was_made_with_it(folder: Path) -> None:
    with opened(folder, summariser="extractive", window=100_000) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 30)
        assert (
            conversation.compact(focus=f"keep all about {PATH}", force=True).outcome == "performed"
        )
        talk(conversation, 2, [1])
        position = len(conversation.messages()) - 2
        assert conversation.explain(position)[0].fate == "full"
        report = conversation.erase(position)
        assert holding(folder) == {}
        assert {"focus", "summary"} <= {one.place for one in report.removed}
        assert len(report.rebuilt) == 1
        assert "file_3.py" in str(conversation.context().summary)
        is_sound(memory, conversation)


@pytest.mark.parametrize("rebuilds", [1, 2])
def test_a_focus_that_quotes_is_withdrawn_from_what_was_rebuilt_of_its_summary(
    folder: Path, rebuilds: int
) -> None:
    """The second time, the texts of models do not all fit, and code shortens them to one."""
    with opened(folder, summariser=RepeatingFocus(), window=8_000) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 1, [0])
        conversation.pin(0)  # No summary covers it.
        made = [_compacted(conversation, f"keep all about {PATH}")]
        while sum(one.rebuilt for one in made) < rebuilds:
            made.append(_compacted(conversation))
        assert PATH in str(conversation.context().summary)
        assert conversation.erase(0).complete
        assert holding(folder) == {}
        assert PATH not in str(conversation.context().memory)
        is_sound(memory, conversation)


@pytest.mark.parametrize(("allowed", "quoted"), [("notes", 1), ("summaries", 2)])
def test_what_is_withdrawn_as_a_quotation_is_withdrawn_where_others_quote_it(
    folder: Path, allowed: str, quoted: int
) -> None:
    """The message is not among those that the summary and the note were made of."""
    how = {"memories": 5, "owner_memories": allowed, "window": 8_000}
    with opened(folder, summariser=RepeatingFocus(), **how) as memory:
        first = memory.conversation("first", owner="ann")
        talk(first, 20)
        tools = first.tools(edits="allow")
        tools.call("remember", {"text": f"They spoke of {PATH} before.", "kind": "decision"})
        talk(first, 1, [0])
        focus = f"keep all about {PATH}"
        assert first.compact(focus=focus, all=True, keep_last=2).outcome == "performed"
        second = memory.conversation("second", owner="ann")
        second.append({"role": "user", "content": "What was it that they spoke of?"})
        assert str(second.context().system).count(PATH) == quoted
        report = first.erase(40)
        assert report.complete
        assert ("second", "quoted memory") in {(one.thread_id, one.place) for one in report.removed}
        assert PATH not in str(second.context().system)
        assert holding(folder) == {}
        is_sound(memory, second)


@pytest.mark.parametrize("owner", [None, "ann"])
def test_a_tool_that_an_erased_message_quotes_keeps_its_name_and_types(
    folder: Path, owner: str | None
) -> None:
    path = {"type": "string", "description": "the path of a file"}
    schema = {"type": "object", "properties": {"path": path}}
    tool = {"name": "count_all_the_lines", "input_schema": schema}
    with opened(folder, window=20_000) as memory:
        conversation = memory.conversation("t", owner=owner)
        said = "Use count_all_the_lines with the path of a file."
        conversation.append({"role": "user", "content": said})
        conversation.context(tools=[tool])
        conversation.append({"role": "assistant", "content": "Which one?"})
        report = memory.erase_owner(owner) if owner else conversation.erase(0)
        assert report.complete
        shown = conversation.context(at=conversation.version).for_anthropic()
    path["description"] = WITHDRAWN
    assert shown["tools"] == [tool]


class RepeatingFocus:
    """Writes paths of the focus and of the text before into long summaries."""

    name = "repeating"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        before = f"{request.focus} {request.previous}"
        kept = f"They spoke of {PATH}. " if PATH in before else "They spoke. "
        parts = (f"Part {n} was looked at. " for n in range(request.target_tokens // 8))
        text = kept + "".join(parts)
        return SummaryDraft(text=text, complete=True, model="r", prompt_fingerprint="r")


def _compacted(conversation: ConversationMemory, focus: str | None = None) -> CompactionResult:
    for n in range(3):
        asked = {"role": "user", "content": f"Go on with part {n}. " * 50}
        conversation.append([asked, {"role": "assistant", "content": "It is done. " * 50}])
    made = conversation.compact(focus=focus, all=True, keep_last=1, force=True)
    assert made.outcome == "performed"
    return made


def test_what_shares_less_than_twelve_characters_stays(memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 3, [1])
    conversation.label("Geheimnis")
    conversation.pin("Geheimnis!")
    assert {one.place for one in conversation.erase(2).removed} == {
        "message",
        "read models",
        "recall index",
    }
    assert [row.label for row in memory.conversations()] == ["Geheimnis"]
    assert len(conversation.pins()) == 1


def test_an_imported_title_does_not_come_back_with_the_next_import(
    refold: Refold, tmp_path: Path
) -> None:
    said = f"{SECRET} is what I want to tell you"
    lines = [
        '{"type":"summary","summary":"' + said + '","leafUuid":"b"}',
        '{"type":"user","uuid":"a","sessionId":"s","timestamp":"2026-01-01T00:00:00Z",'
        '"message":{"role":"user","content":"' + said + '"}}',
        '{"type":"assistant","uuid":"b","parentUuid":"a","sessionId":"s",'
        '"timestamp":"2026-01-01T00:00:01Z",'
        '"message":{"role":"assistant","content":[{"type":"text","text":"Well."}]}}',
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert refold("import", "s.jsonl").code == 0
    [row] = refold("list", "--json").answer["conversations"]
    assert row["label"] == said
    assert refold("erase", row["thread_id"], "0", "--yes").code == 0
    again = refold("import", "s.jsonl")
    assert again.code == 0, again.err
    [row] = refold("list", "--json").answer["conversations"]
    assert row["label"] == WITHDRAWN_LABEL
    (tmp_path / "s.jsonl").unlink()
    assert holding(tmp_path) == {}


@pytest.mark.parametrize("at", [7, 8])
def test_a_copy_from_before_an_erasure_has_the_withdrawn_title(
    folder: Path, memory: Memory, at: int
) -> None:
    conversation = memory.conversation("t")
    conversation.label(f"{SECRET}: never touch it")
    talk(conversation, 4, [3])
    conversation.erase(6)
    copy = conversation.fork(at=at, thread_id="copy")
    assert holding(folder) == {}
    rows = {row.thread_id: row.label for row in memory.conversations()}
    assert rows["copy"] == WITHDRAWN_LABEL
    assert [m.position for m in copy.messages() if m.erased] == ([6] if at == 8 else [])
    assert memory.verify().ok
