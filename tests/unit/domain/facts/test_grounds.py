"""The reason for a decision and what it rejects are found where a reader would find them."""

import pytest

from refold.domain.facts.fact import Fact
from refold.domain.facts.reading import read_facts
from refold.domain.ledger import LedgerLine
from refold.domain.ledger.line import gather
from refold.domain.messages import Message
from tests.support.builders import assistant, tool_use


def decision_in(text: str) -> Fact:
    """Return the decision of a model that works with tools."""
    calls = assistant(tool_use("c", command="make"))
    (found,) = [f for f in read_facts([(0, calls), (1, assistant(text))]) if f.kind == "decision"]
    return found


@pytest.mark.parametrize(
    ("text", "reason", "rejected"),
    [
        (
            "I decided to use SQLite because it needs no server, not Postgres.",
            "because it needs no server, not Postgres",
            (),
        ),
        ("We'll use SQLite instead of Postgres.", "", ("Postgres",)),
        (
            "We'll use SQLite, not Postgres, because it needs no server.",
            "because it needs no server",
            ("Postgres",),
        ),
        (
            "Since the tests run in parallel, we'll use one file per test rather than a shared one.",
            "Since the tests run in parallel",
            ("a shared one",),
        ),
        (
            "I decided to go with option B. This avoids a second lock.",
            "This avoids a second lock",
            (),
        ),
        ("Two writers lock the file. So we'll use a queue here.", "Two writers lock the file", ()),
        (
            "We'll use a queue here for now. Ruled out polling: it wakes the disk.",
            "",
            ("polling",),
        ),
        ("We decided on tabs because:\n- the linter wants them", "the linter wants them", ()),
        ("决定采用 SQLite 而不是 Postgres，因为不需要服务器。", "因为不需要服务器", ("Postgres",)),
        ("We'll use SQLite for this one.\n\nThis avoids a server.", "", ()),
    ],
)
def test_the_grounds_of_a_decision(text: str, reason: str, rejected: tuple[str, ...]) -> None:
    found = decision_in(text)
    assert (found.reason, found.rejected) == (reason, rejected)


def test_a_decision_of_a_person_has_grounds_too() -> None:
    text = "We agreed on trunk-based work instead of long branches, so that merges stay small."
    said = Message(role="user", content=text, author="person")
    (found,) = [f for f in read_facts([(0, said)]) if f.kind == "decision" and f.is_main]
    assert found.rejected == ("long branches",)
    assert found.reason == "so that merges stay small"


def test_grounds_with_a_credential_are_left_out() -> None:
    found = decision_in(
        "I decided to keep the old key. This avoids password=hunter2secret9 in the log."
    )
    assert (found.text, found.reason) == ("I decided to keep the old key.", "")


def decision_line(text: str) -> LedgerLine:
    calls = assistant(tool_use("c", command="make"))
    lines = gather(read_facts([(0, calls), (1, assistant(text))])).lines
    (found,) = [line for line in lines if line.kind == "decision"]
    return found


def test_the_ledger_has_grounds_that_stand_outside_of_the_decision() -> None:
    line = decision_line("We'll use a queue here for now. Ruled out polling: it wakes the disk.")
    assert (line.reason, line.rejected) == ("", ("polling",))
    line = decision_line("I decided to go with option B. This avoids a second lock.")
    assert line.reason == "This avoids a second lock"


def test_the_ledger_does_not_repeat_what_the_decision_says() -> None:
    line = decision_line("We'll use SQLite, not Postgres, because it needs no server.")
    assert (line.reason, line.rejected) == ("", ())
