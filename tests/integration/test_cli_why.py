"""``refold why``: where a value went, and what brings it back."""

import re
from pathlib import Path

import pytest

import refold as refold_package
from tests.support.command_line import Refold

pytestmark = pytest.mark.usefixtures("stored")


def test_a_newcomer_reads_where_a_value_went(refold: Refold) -> None:
    done = refold("why", "talk", "Question 3:")
    assert done.code == 0
    assert "the only one: message 12, user" in done.out
    assert "it came in, word for word" in done.out
    assert "a compaction (manual) wrote summary" in done.out
    assert "refold read talk/12" in done.out


def test_a_command_that_brings_it_back_does(refold: Refold) -> None:
    before = refold("why", "talk", "Question 3:", "--json").answer
    assert before["standing"] != "message"
    ways = {way["kind"]: way for way in before["ways"]}
    assert ways["recall"]["works"]
    for kind in ("recall", "query", "read", "pin", "fork"):
        assert refold(*ways[kind]["command"]).code == 0, kind
    assert "pin" in [
        place["kind"] for place in refold("why", "talk", "Question 3:", "--json").answer["places"]
    ]
    assert ways["revert"]["works"]
    assert refold(*ways["revert"]["command"]).code == 0
    after = refold("why", "talk", "Question 3:", "--json").answer
    assert after["standing"] == "message"
    assert [change["cause"] for change in after["changes"]][-1] == "reverted"


def test_a_revert_after_which_the_next_request_is_compacted_again_says_so(
    tmp_path: Path,
) -> None:
    with refold_package.open(tmp_path / "small.db", window=4_000) as memory:
        conversation = memory.conversation("t")
        for n in range(80):
            conversation.append(
                [
                    {"role": "user", "content": f"Question {n}: some words of the talk. " * 5},
                    {"role": "assistant", "content": f"Answer {n}: some words of it. " * 5},
                ]
            )
            conversation.context()
        (way,) = (one for one in conversation.why("Answer 70:").ways if one.kind == "revert")
        assert way.works
        said = re.search(r"with ([0-9,]+) tokens, the next request is due for another", way.why)
        assert said is not None
        assert conversation.revert_compaction().tokens_after == int(said[1].replace(",", ""))
        compactions = len(conversation.compactions())
        conversation.context()
        assert len(conversation.compactions()) > compactions


def test_the_request_of_an_earlier_version_has_its_own_answer(refold: Refold) -> None:
    done = refold("why", "talk", "Question 3:", "--at", "20", "--json")
    assert (done.answer["version"], done.answer["standing"]) == (20, "message")
    shown = refold("why", "talk", "Question 3:", "--at", "20")
    assert "word for word in a message of the request of talk (version 20)" in shown.out


def test_a_value_that_never_occurred_is_a_no_with_similar_lines(refold: Refold) -> None:
    done = refold("why", "talk", "Question number 3")
    assert done.code == 1
    assert "no message has it" in done.out
    assert "Similar lines" in done.out
    answer = refold("why", "talk", "Question number 3", "--json")
    assert (answer.code, answer.answer["is_known"]) == (1, False)
    assert answer.answer["similar"]


def test_what_cannot_be_searched_for_is_wrong_use(refold: Refold) -> None:
    assert refold("why", "talk", "").code == 2
    assert refold("why", "talk", " ").code == 2
    assert refold("why", "talk", "x" * 20_000).code == 2
    assert refold("why", "none", "6390").code == 2
    assert refold("why", "talk", "6390", "--at", "9999").code == 2


def test_an_erased_value_is_gone_for_good(refold: Refold) -> None:
    assert refold("erase", "talk/12", "--yes").code == 0
    done = refold("why", "talk", "Question 3:")
    assert done.code == 1
    assert "1 message was erased" in done.out
