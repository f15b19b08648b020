"""What became of a request, and which of two values is the newest."""

import pytest

from refold.domain.facts.reading import read_facts
from refold.domain.ledger import LedgerLine
from refold.domain.ledger.line import gather
from refold.domain.ledger.line_choice import merge_ledger
from refold.domain.messages import Message
from tests.support.builders import assistant, tool_result, tool_use, user

ASKED = "Please add a login page."


def person(text: str) -> Message:
    return Message(role="user", content=text, author="person")


def ledger(
    *messages: Message, known: tuple[LedgerLine, ...] = (), start: int = 0
) -> tuple[LedgerLine, ...]:
    return merge_ledger(known, gather(read_facts(enumerate(messages, start))))


def became(*messages: Message) -> str:
    (line,) = [x for x in ledger(*messages) if x.text == ASKED]
    return line.note


WORKS = (assistant(tool_use("c", command="make")), user(tool_result("c", "ok")))


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("Never mind.", "withdrawn in [3]"),
        ("Actually, forget about it.", "withdrawn in [3]"),
        ("No need to do that.", "withdrawn in [3]"),
        ("算了，先不做了。", "withdrawn in [3]"),
        ("Scratch that, add a sign-up page.", "overridden in [3]"),
        ("No, use a dialog for it instead.", "overridden in [3]"),
        ("我改主意了，做注册页。", "overridden in [3]"),
        ("Thanks!", "done in [3]"),
        ("Perfect, it works now.", "done in [3]"),
        ("搞定了！", "done in [3]"),
        ("It still fails.", ""),
        ("Now write the tests.", ""),
        ("ok", ""),
        ("Does it work now?", ""),
        ("Ignore that file when you build.", ""),
        ("It works like this: first the page is read.", ""),
    ],
)
def test_a_person_says_what_became_of_the_request(said: str, note: str) -> None:
    assert became(person(ASKED), *WORKS, person(said)) == note


@pytest.mark.parametrize(
    "said", ["Done: the page is there.", "I've added the page.", "已完成登录页。"]
)
def test_the_model_only_claims(said: str) -> None:
    assert became(person(ASKED), *WORKS, assistant(said)) == "claimed done in [3]"
    assert became(person(ASKED), *WORKS, assistant(said), person("It still fails.")) == ""
    assert became(person(ASKED), *WORKS, assistant(said), person("Thanks!")) == "done in [4]"
    withdrawn = became(person(ASKED), *WORKS, person("Never mind."), assistant(said))
    assert withdrawn == "withdrawn in [3]"


def test_a_claim_before_a_call_is_no_end() -> None:
    goes_on = assistant("Done with the page.", tool_use("d", command="make"))
    assert became(person(ASKED), *WORKS, goes_on, user(tool_result("d", "ok"))) == ""


def test_only_the_newest_requests_are_closed() -> None:
    lines = ledger(person(ASKED), *WORKS, person("Please rename main.py."), person("Never mind."))
    notes = {line.text: line.note for line in lines if line.kind == "request"}
    assert notes == {ASKED: "", "Please rename main.py.": "withdrawn in [4]"}


def test_a_request_that_is_repeated_is_open_again() -> None:
    assert became(person(ASKED), person("Never mind."), *WORKS, person(ASKED)) == ""


def test_what_became_of_it_is_found_in_a_later_compaction() -> None:
    known = ledger(person(ASKED), *WORKS)
    (line,) = [x for x in ledger(person("Never mind."), known=known, start=3) if x.text == ASKED]
    assert line.note == "withdrawn in [3]"


@pytest.mark.parametrize(
    "text",
    ["The user says: never mind.", '"Never mind."', "> never mind", "<log>never mind</log>"],
)
def test_what_others_say_closes_nothing(text: str) -> None:
    assert became(person(ASKED), *WORKS, user(tool_result("x", "Never mind.")), person(text)) == ""


def values(*messages: Message) -> dict[str, str]:
    return {line.text: line.was for line in ledger(*messages) if line.kind == "value"}


def test_of_two_values_of_one_thing_the_newest_is_shown_with_the_one_before() -> None:
    first = person("The staging redis listens on port 6379.")
    second = person("The staging redis listens on port 6390.")
    assert values(first, *WORKS, second) == {"port 6390": "port 6379"}
    assert values(first, second, person("The staging redis listens on port 6400.")) == {
        "port 6400": "port 6390"
    }


def test_values_of_different_things_stay() -> None:
    first = person("The staging redis listens on port 6379.")
    other = person("The production redis listens on port 6390.")
    assert values(first, other) == {"port 6379": "", "port 6390": ""}


def test_two_values_in_one_message_stay() -> None:
    both = person("the build of main takes 250 ms\nthe build of main takes 300 ms")
    assert values(both) == {"250 ms": "", "300 ms": ""}


def test_what_tools_print_replaces_nothing() -> None:
    runs = [
        assistant(tool_use("a", command="make")),
        user(tool_result("a", "the whole build took 12.5 seconds")),
        assistant(tool_use("b", command="make")),
        user(tool_result("b", "the whole build took 13.5 seconds")),
    ]
    assert set(values(*runs).values()) == {""}
