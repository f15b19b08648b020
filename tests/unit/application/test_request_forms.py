"""A context as one string, and a summary at either of its places."""

import pytest

from refold.application.conversation.loaded import Window, project
from refold.application.rendering import request_blocks as texts
from refold.application.rendering.render import Rendered, render
from refold.application.rendering.request_forms import (
    openai_request,
    responses_request,
    text_form,
)
from refold.domain.events import Event, MessagePinned
from refold.domain.frames import SummaryPlace
from refold.domain.ledger import LedgerLine
from refold.testing.request_judge import violations
from tests.support.builders import assistant, calls, history, performed, results, talk, user
from tests.support.fake_ports import PlainCounter

LINE = LedgerLine(kind="rule", text="never on Fridays", position=0)
SUMMARY = performed(4, text="They met.", ledger=(LINE,), ledger_shown=1)
LATER = history(user("look"), calls("c1"), results("c1"), assistant("fine"), user("on"), start=4)
EVENTS: list[Event] = [*history(*talk(2)), SUMMARY, *LATER]


def rendered(
    events: list[Event], place: SummaryPlace = "user", system: str = "Be brief."
) -> Rendered:
    window = project(Window(), events)
    return render("t", window, system, PlainCounter().count_text, place=place)


def as_text(made: Rendered) -> str:
    return text_form(made.messages, made.opening, made.memory)


@pytest.mark.parametrize("place", ["user", "system"])
def test_a_context_as_one_string_has_the_summary_apart_from_the_messages(
    place: SummaryPlace,
) -> None:
    text = as_text(rendered(EVENTS, place))
    before, _, recent = text.partition("## RECENT MESSAGES")
    assert before.startswith("## PREVIOUS CONTEXT SUMMARY\n\n[Conversation Summary]\nThey met.")
    assert "never on Fridays" in before
    assert "They met." not in recent
    assert recent.index("User: look") < recent.index("Assistant: → bash") < recent.index("fine")


def test_without_a_summary_there_are_only_messages() -> None:
    text = as_text(rendered(list(history(user("hello"), assistant("hi"), user("so?")))))
    assert text == "## RECENT MESSAGES\n\nUser: hello\n\nAssistant: hi\n\nUser: so?"


def test_the_summary_can_stand_in_the_system_text() -> None:
    made = rendered(EVENTS, "system")
    assert isinstance(made.system, str)
    assert made.system.startswith("Be brief.")
    assert texts.SUMMARY_GUIDANCE in made.system
    assert "[Conversation Summary]\nThey met." in made.system
    assert made.system.index("They met.") < made.system.index("never on Fridays")
    assert made.messages[0] == {"role": "user", "content": "look"}
    assert made.opening == 0
    assert violations({"messages": made.messages, "system": made.system}) == []


def test_both_places_have_the_same_size() -> None:
    assert rendered(EVENTS, "system").tokens == rendered(EVENTS, "user").tokens


def test_pins_without_a_summary_stand_there_too() -> None:
    pin = MessagePinned(pin_id="p1", position=None, text="never on Mondays", tokens=9)
    made = rendered([*history(user("hello")), pin], "system")
    assert "never on Mondays" in str(made.system)
    assert "never on Mondays" not in str(made.messages)


@pytest.mark.parametrize(("api", "longest"), [("chat", 40), ("responses", 64)])
def test_ids_that_openai_finds_too_long_are_shortened_and_stay_paired(
    api: str, longest: int
) -> None:
    ids = ["a" * longest, "b" * 70, "b" * 71]
    made = rendered(history(user("hello"), calls(*ids), results(*ids)))
    if api == "chat":
        _, answer, *answers = openai_request("", made.messages, ())["messages"]
        called = [call["id"] for call in answer["tool_calls"]]
        answered = [one["tool_call_id"] for one in answers]
    else:
        _, *items = responses_request("", made.messages, ())["input"]
        called = [one["call_id"] for one in items if one["type"] == "function_call"]
        answered = [one["call_id"] for one in items if one["type"] == "function_call_output"]
    assert called == answered
    assert called[0] == ids[0]
    assert len(set(called)) == len(ids)
    assert max(map(len, called)) == longest
