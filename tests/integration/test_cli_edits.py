"""``refold proposals``, ``allow`` and ``refuse``, as people and programs use them."""

import re
import shlex
from pathlib import Path

import pytest

import refold as library
from tests.support.command_line import CONTROL, HOSTILE, Refold


@pytest.fixture
def edits(stored: Path) -> dict[str, str]:
    """The ids of three proposals in the log, by what they ask for."""
    with library.open(stored) as memory:
        conversation = memory.conversation("talk")
        tools = conversation.tools(edits="propose", author="planner")
        assert not tools.call("pin", {"message": "4"}).is_error
        note = {"text": f"The harbour {HOSTILE} is closed.", "kind": "fact"}
        assert not tools.call("remember", note).is_error
        assert not tools.call("forget", {"target": "8"}).is_error
        return {one.action: one.edit_id for one in conversation.proposals()}


def test_proposals_are_listed_with_what_they_are_about(
    refold: Refold, edits: dict[str, str]
) -> None:
    shown = refold("proposals", "talk")
    assert shown.code == 0
    assert all(edit_id in shown.out for edit_id in edits.values())
    assert "message 4: Question 1" in shown.out
    assert "The harbour" in shown.out
    assert "planner" in shown.out
    assert CONTROL.search(shown.out) is None
    answer = refold("proposals", "talk", "--json").answer
    assert [one["edit_id"] for one in answer["proposals"]] == list(edits.values())
    assert [one["position"] for one in answer["proposals"]] == [4, None, 8]


def test_a_person_allows_and_refuses(refold: Refold, edits: dict[str, str]) -> None:
    done = refold("allow", "talk", edits["remember"][:8])
    assert done.out == f"remember {edits['remember']} is carried out.\n"
    again = refold("allow", "talk", edits["remember"])
    assert (again.code, "nothing changed" in again.out) == (0, True)
    assert refold("notes", "talk", "--json").answer["notes"][-1]["flush_id"] == edits["remember"]
    (line,) = (one for one in refold("notes", "talk").out.splitlines() if "The harbour" in one)
    assert line.split()[:2] == ["–", "fact"]
    refused = refold("refuse", "talk", edits["pin"], "--reason", "no")
    assert refused.out == f"{edits['pin']} is refused.\n"
    assert refold("refuse", "talk", edits["pin"], "--json").answer["changed"] is False
    closed = refold("allow", "talk", edits["pin"], "--json")
    assert (closed.code, closed.answer["error"]) == (2, "EditClosed")
    assert "was refused by person" in closed.answer["message"]
    assert refold("allow", "talk", "none", "--json").answer["error"] == "UnknownEdit"
    assert refold("verify").code == 0


def test_an_erasure_is_asked_about_and_reported(refold: Refold, edits: dict[str, str]) -> None:
    asked = refold("allow", "talk", edits["forget"])
    assert asked.code == 2
    assert "--yes" in asked.err
    assert "Question 2" in refold("read", "talk/8").out
    done = refold("allow", "talk", edits["forget"], "--yes")
    assert done.code == 0
    assert "No file of the log contains it any more" in done.out
    assert "Content unavailable" in refold("read", "talk/8").out
    assert refold("proposals", "talk", "--json").answer["proposals"][0]["edit_id"] == edits["pin"]


@pytest.mark.usefixtures("stored")
def test_without_a_proposal_the_list_says_so(refold: Refold) -> None:
    assert refold("proposals", "talk").out == "No edit waits for a decision in talk.\n"


def test_what_a_proposal_takes_back_is_shown(refold: Refold, stored: Path) -> None:
    with library.open(stored) as memory:
        conversation = memory.conversation("talk")
        pin_id = conversation.pin("never on Mondays")
        own = conversation.tools(edits="allow")
        assert not own.call("remember", {"text": "Ports begin at 5400.", "kind": "fact"}).is_error
        note_id = conversation.notes()[-1].flush_id
        tools = conversation.tools(edits="propose")
        for target in (pin_id, note_id):
            assert not tools.call("forget", {"target": target}).is_error
        shown = [one.edit_id for one in conversation.proposals()]
    out = refold("proposals", "talk").out
    assert f"pin {pin_id}: never on Mondays" in out
    assert f"note {note_id}: Ports begin at 5400." in out
    assert refold("unpin", "talk", pin_id).code == 0
    assert "gone already" in refold("proposals", "talk").out
    assert refold("allow", "talk", shown[0], "--json").answer["changed"] is False
    assert refold("allow", "talk", shown[1], "--json").answer["changed"] is True
    assert note_id not in str(refold("notes", "talk", "--json").answer)


@pytest.mark.parametrize(
    "command",
    [
        ("pin", "--", "-x", "0"),
        ("pins", "--", "-x"),
        ("topics", "--", "-x"),
        ("fork", "--", "t", "-y"),
        ("recall", "--", "-x", "quokka"),
    ],
    ids=lambda words: words[0],
)
def test_what_an_output_suggests_can_be_typed_for_an_id_that_looks_like_an_option(
    refold: Refold, stored: Path, command: tuple[str, ...]
) -> None:
    with library.open(stored) as memory:
        for name in ("-x", "t"):
            memory.conversation(name).append({"role": "user", "content": "hello"})
    said = " ".join(refold(*command).out.split())
    found = re.findall(r"refold ((?:unpin|pin|compact|context|query) [^`]*)(?:`|$)", said)
    assert found, said
    for one in found:
        words = ["0" if word == "POSITION" else word for word in shlex.split(one.strip("` "))]
        assert "option" not in refold(*words).err, words
