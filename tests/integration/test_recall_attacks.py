"""Recall under attack: texts that cannot be sent, questions as long as a book, ids that nobody has."""

import pytest

import refold
from refold import UnknownSummary
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.recall.ranking import LONGEST, SHOWN
from refold.application.recall.recall_query import MOST_ASKED, MOST_CHARACTERS, ask
from tests.support.erasing_scenes import Quoting


def fill(conversation: ConversationMemory, turns: int) -> None:
    """Turns of four messages, with a call and its result in between."""
    for turn in range(turns):
        said = f"look at file_{turn}.py"
        call = {"type": "tool_use", "id": f"c{turn}", "name": "bash", "input": {"command": said}}
        result = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": said + " out" * 60}
        conversation.append(
            [
                {"role": "user", "content": f"Please: {said} " + "word " * 30},
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [result]},
                {"role": "assistant", "content": f"Done. {said} " + "blah " * 30},
            ]
        )
        conversation.context()


def tool_text(conversation: ConversationMemory, name: str, **arguments: object) -> str:
    return conversation.tools().call(name, arguments).text


@pytest.mark.parametrize("name", ["query_history", "read_offloaded"])
def test_half_a_character_in_a_record_stops_no_answer_on_its_way(name: str) -> None:
    arguments: dict[str, dict[str, object]] = {
        "query_history": {"start": 0, "stop": 2},
        "read_offloaded": {"address": "0"},
    }
    with refold.open(":memory:", window=6_000, summariser=Quoting()) as memory:
        conversation = memory.conversation("talk")
        conversation.append({"role": "user", "content": "A zebra, cut off: \ud83d"})
        fill(conversation, 12)
        text = tool_text(conversation, name, **arguments[name])
        assert "A zebra, cut off: \ufffd" in text
        assert text.encode()


def test_of_a_question_as_long_as_a_book_beginning_and_end_count() -> None:
    book = " ".join(f"noise{n}" for n in range(100_000))
    question = ask(f"Which port? {book} It was postgres")
    assert len(question.text) <= MOST_CHARACTERS
    assert len(question.tokens) <= MOST_ASKED
    assert {"port", "postgr"} <= set(question.tokens)
    with refold.open(":memory:") as memory:
        conversation = memory.conversation("talk")
        conversation.append({"role": "user", "content": "Postgres listens on 5433."})
        best = conversation.recall(f"{book} postgres")[0]
        assert best.position == 0
        assert all(len(reason) < (LONGEST + 2) * SHOWN + 20 for reason in best.why)


def test_an_id_that_nobody_has_is_not_repeated_at_length() -> None:
    with refold.open(":memory:") as memory:
        memory.conversation("talk").append({"role": "user", "content": "x"})
        with pytest.raises(UnknownSummary) as refused:
            memory.conversation("talk").expand("a" * 1_000_000)
        assert len(str(refused.value)) < 500
