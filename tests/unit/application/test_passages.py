"""How a message is cut into passages: every piece says what it is, and where its words stand."""

from datetime import datetime, timedelta
from typing import Any

import pytest

import refold
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.recall.passages import (
    BEGINNING,
    LONGEST,
    OPEN_CALLS,
    Before,
    Passage,
    passages_of,
)
from refold.domain.events import MessageAppended
from refold.domain.messages import Block, Message, Role, readable

AT = "2026-03-07T10:00:00.000000Z"


def said(
    content: str | list[Block],
    role: Role = "user",
    *,
    before: Before = BEGINNING,
    at: str = AT,
    erased: bool = False,
    written_at: datetime | None = None,
) -> tuple[list[Passage], Before]:
    message = Message(role=role, content=content if isinstance(content, str) else tuple(content))
    event = MessageAppended(
        position=4, message_id="m4", message=message, tokens=1, written_at=written_at
    )
    logged = LoggedEvent(9, "t", 7, at, event, erased)
    assert logged.message is not None
    return passages_of(logged, logged.message, before, 11)


def words(content: str | list[Block], passages: list[Passage]) -> list[str]:
    kept = content if isinstance(content, str) else tuple(content)
    text = readable(Message(role="user", content=kept))
    return [text[p.start : p.stop] for p in passages]


def test_a_short_message_is_one_passage_with_its_place() -> None:
    (passage,), after = said("The port is 5433.")
    assert passage[:6] == (11, "t", 4, 7, 0, "user")
    assert (passage.kind, passage.tool, passage.at, passage.session) == ("text", "", AT, 0)
    assert (passage.start, passage.stop, passage.is_question) == (0, 17, False)
    assert " 5433 " in passage.tokens
    assert after == Before(0, AT)


def test_it_is_found_by_the_day_on_which_it_was_written() -> None:
    (passage,), _ = said("Done.", written_at=datetime(2024, 5, 7, 23, 30))
    assert passage.at == "2024-05-07T23:30:00.000000Z"
    assert passage.tokens.endswith(" 2024 may 7 ")


def test_words_calls_and_results_are_passages_of_their_own() -> None:
    content: list[Block] = [
        {"type": "thinking", "thinking": "secret plan", "signature": "s"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "c1", "name": "bash", "input": {"cmd": "ls"}},
    ]
    found, after = said(content, "assistant")
    assert [(p.role, p.kind, p.tool, p.part) for p in found] == [
        ("assistant", "text", "", 0),
        ("assistant", "call", "bash", 1),
    ]
    assert words(content, found) == ["Let me look.", '→ bash {"cmd": "ls"}']
    assert not any("secret" in p.tokens for p in found)
    assert after.calls == (("c1", "bash"),)


@pytest.mark.parametrize("space", ["\n", "\t", "\r\n", "\f", "\\\\\n"])
def test_white_space_in_a_text_of_a_call_is_between_words(space: str) -> None:
    call: Block = {"type": "tool_use", "id": "c", "name": "w", "input": {"t": f"one{space}two.py"}}
    (passage,), _ = said([call], "assistant")
    assert " one " in passage.tokens
    assert " two py twopi " in passage.tokens
    assert words([call], [passage]) == [readable(Message(role="assistant", content=(call,)))]


def test_a_backslash_in_a_text_of_a_call_is_no_white_space() -> None:
    call: Block = {"type": "tool_use", "id": "c", "name": "w", "input": {"t": r"C:\temp\new"}}
    (passage,), _ = said([call], "assistant")
    assert " c temp new " in passage.tokens


def test_a_result_knows_the_tool_from_its_call_however_much_later_it_comes() -> None:
    call: Block = {"type": "tool_use", "id": "c1", "name": "bash", "input": {}}
    _, before = said([call], "assistant")
    _, before = said("wait", before=before)
    result: Block = {"type": "tool_result", "tool_use_id": "c1", "content": "app.py"}
    (passage,), after = said([result], before=before)
    assert (passage.role, passage.kind, passage.tool) == ("tool", "result", "bash")
    assert after.calls == ()
    (again,), _ = said([result], before=after)
    assert (again.kind, again.tool) == ("result", "")


def test_calls_that_are_never_answered_are_given_up_some_day() -> None:
    before = BEGINNING
    for number in range(OPEN_CALLS + 5):
        call: Block = {"type": "tool_use", "id": f"c{number}", "name": "bash", "input": {}}
        _, before = said([call], "assistant", before=before)
    assert len(before.calls) == OPEN_CALLS
    assert before.calls[-1] == (f"c{OPEN_CALLS + 4}", "bash")


@pytest.mark.parametrize(
    "content",
    [
        "👍",
        "  \n ",
        "",
        [{"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}}],
        [{"type": "thinking", "thinking": "hm", "signature": "s"}],
        [{"type": "tool_result", "tool_use_id": "c9"}],
    ],
)
def test_what_has_no_word_is_no_passage(content: Any) -> None:
    assert said(content)[0] == []


def test_of_an_erased_message_only_the_time_and_the_names_of_calls_count() -> None:
    call: Block = {"type": "tool_use", "id": "c1", "name": "bash", "input": {}}
    found, after = said([call, {"type": "text", "text": "[gone]"}], "assistant", erased=True)
    assert found == []
    assert after == Before(0, AT, (("c1", "bash"),))


@pytest.mark.parametrize(
    ("later", "session"),
    [
        (timedelta(minutes=30), 0),
        (timedelta(minutes=31), 1),
        (timedelta(minutes=-29), 0),
        (timedelta(days=-2), 1),
    ],
)
def test_a_session_begins_after_a_pause(later: timedelta, session: int) -> None:
    _, before = said("one", written_at=datetime(2026, 1, 2, 3))
    (passage,), after = said("two", before=before, written_at=datetime(2026, 1, 2, 3) + later)
    assert passage.session == after.session == session


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Which port?", True),
        ("How are you? I am fine.", True),
        ("（哪个端口？）", True),
        ("你喜欢吗", True),
        ("你呢。", True),
        ("See https://a.example/?page=2", False),
        ("It is so.", False),
        ("呢子大衣", False),
    ],
)
def test_a_question_is_told_by_how_it_ends(text: str, asks: bool) -> None:
    assert said(text)[0][0].is_question is asks


def test_code_that_holds_a_question_mark_asks_nothing() -> None:
    (passage,), _ = said([{"type": "tool_result", "tool_use_id": "c", "content": "a ? b : c"}])
    assert not passage.is_question


def test_a_long_text_is_cut_at_paragraphs_and_lines_and_nothing_is_left_out() -> None:
    text = "\n\n".join(f"Paragraph {n}. " + "many words stand here " * 30 for n in range(9))
    found, _ = said(text)
    pieces = words(text, found)
    assert "".join(pieces) == text
    assert [p.part for p in found] == list(range(len(found)))
    assert [p.number for p in found] == list(range(11, 11 + len(found)))
    assert all(piece.startswith("Paragraph") for piece in pieces)
    assert all(LONGEST // 2 <= len(piece) <= LONGEST for piece in pieces[:-1])


def test_a_line_without_an_end_is_cut_all_the_same() -> None:
    text = "中文没有空格" * 1_000
    found, _ = said(text)
    assert "".join(words(text, found)) == text
    assert max(p.stop - p.start for p in found) == LONGEST


def test_equal_words_have_one_digest_whoever_says_them() -> None:
    (one,), _ = said("The port is 5433.", written_at=datetime(2026, 1, 2))
    (two,), _ = said([{"type": "text", "text": "The port is 5433."}], "assistant")
    (other,), _ = said("The port is 5434.")
    assert one.digest == two.digest != other.digest


def test_broken_text_is_no_trouble() -> None:
    (passage,), _ = said("broken \ud83d text")
    assert passage.tokens.startswith(" broken text ")


def test_documents_and_results_of_server_tools_are_found_by_their_words() -> None:
    lease = {"type": "text", "media_type": "text/plain", "data": "The number is ZK-7741."}
    ran = {"type": "bash_code_execution_result", "stdout": "quokka 42", "stderr": ""}
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("t")
        asked = [{"type": "document", "title": "Lease", "source": lease}]
        call: Block = {
            "type": "server_tool_use",
            "id": "s",
            "name": "bash_code_execution",
            "input": {},
        }
        done: Block = {
            "type": "bash_code_execution_tool_result",
            "tool_use_id": "s",
            "content": ran,
        }
        conversation.append(
            [{"role": "user", "content": asked}, {"role": "assistant", "content": [call, done]}]
        )
        (first, *_) = conversation.recall("number ZK-7741", neighbours=0)
        assert (first.position, first.text) == (0, "Lease\nThe number is ZK-7741.")
        (hit,) = conversation.recall("quokka 42", kinds="result")
        assert (hit.position, hit.role, hit.tool, hit.text) == (
            1,
            "tool",
            "bash_code_execution",
            "quokka 42",
        )
        assert conversation.query(text="ZK-7741").records[0].position == 0
