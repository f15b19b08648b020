"""What a message came with besides its content is kept, and read back; unknown blocks become text."""

# pyright: basic

import warnings
from typing import Any

import pytest

from refold.application.conversation.block_checks import UnknownBlockWarning, forget_reported
from refold.application.conversation.loaded import Window, project
from refold.application.conversation.parsing import plain_message, read_messages
from refold.application.rendering.render import render
from refold.domain.erasing import make_stub
from refold.domain.messages import Block, Message
from refold.domain.value import replace
from refold.infrastructure.event_store.codec import decode, encode
from refold.testing.request_judge import violations
from tests.support.builders import appended, assistant, history, text, thinking, tool_result, user
from tests.support.fake_ports import PlainCounter

ODD: Block = {"type": "new_in_2030", "title": "A chart", "data": [1, None, True, 1.5]}


def taken(given: object) -> Message:
    [one] = read_messages(given)
    return one.message


def test_every_other_field_is_kept_in_a_place_of_its_own() -> None:
    extra = {
        "name": "Bob",
        "metadata": {"trace": [1, None]},
        "usage": {"output_tokens": 5},
        "type": "message",
        "stop_sequence": None,
    }
    own = {
        "role": "assistant",
        "content": "x",
        "id": "msg_1",
        "model": "m",
        "stop_reason": "end_turn",
    }
    [one] = read_messages({**own, **extra})
    assert one.message == replace(assistant("x"), extra=extra)
    assert (one.message_id, one.model, one.stop_reason) == ("msg_1", "m", "end_turn")


def test_a_field_with_a_place_of_its_own_that_does_not_fit_there_is_kept_beside() -> None:
    given = {
        "role": "user",
        "content": "x",
        "id": 5,
        "model": "",
        "author": "Bob",
        "stop_reason": None,
    }
    assert taken(given).extra == {"id": 5, "model": "", "author": "Bob"}
    assert taken({"role": "user", "content": "x", "author": "person"}).extra is None


def test_a_message_object_keeps_what_it_had() -> None:
    message = replace(user("x"), extra={"name": "Bob"})
    assert taken(message) == message
    assert plain_message(message) == message


def test_what_json_cannot_hold_is_named_also_there() -> None:
    with pytest.raises(ValueError, match=r"^message\.metadata\.x: "):
        read_messages({"role": "user", "content": "x", "metadata": {"x": {1}}})


def test_extras_are_stored_and_erased_with_the_message() -> None:
    event = appended(0, replace(user("x"), extra={"name": "half \ud83d"}, unknown=("odd",)))
    assert decode(*encode(event)) == event
    assert make_stub(event.message, "[gone]") == replace(user("[gone]"), unknown=("odd",))


def made(*messages: Message) -> list[dict[str, Any]]:
    window = project(Window(), history(*messages))
    made = render("t", window, None, PlainCounter().count_text)
    assert violations({"messages": made.messages}) == []
    return made.messages


def quiet(given: Any) -> Message:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownBlockWarning)
        return taken(given)


def test_no_extra_is_in_a_request() -> None:
    message = taken({"role": "user", "content": "x", "name": "Bob", "metadata": {"a": 1}})
    assert made(message) == [{"role": "user", "content": "x"}]


def test_an_unknown_block_is_shown_as_text_with_its_address() -> None:
    message = quiet({"role": "user", "content": [ODD, {"type": "text", "text": "What is this?"}]})
    assert message.blocks()[0] == ODD
    [turn] = made(message)
    shown, said = turn["content"]
    assert shown == text(
        "[new_in_2030 block, which cannot be shown as it is; kept at refold://t/0]\nA chart"
    )
    assert said == text("What is this?")


def test_an_unknown_block_keeps_its_white_space() -> None:
    message = quiet({"role": "user", "content": [{"type": "new_in_2030", "text": "  a:\n    1\n"}]})
    [turn] = made(message)
    assert turn["content"][0]["text"].endswith("refold://t/0]\n  a:\n    1\n")


def test_a_part_of_a_result_as_well() -> None:
    call = {"type": "tool_use", "id": "a", "name": "n", "input": {}}
    answer = quiet({"role": "user", "content": [tool_result("a", [text("x"), ODD])]})
    turns = made(user("go"), taken({"role": "assistant", "content": [call]}), answer)
    [result] = turns[2]["content"]
    assert [part["type"] for part in result["content"]] == ["text", "text"]
    assert "refold://t/2" in result["content"][1]["text"]


def test_thinking_behind_an_unknown_block_is_left_out_for_it_was_signed_behind_the_original() -> (
    None
):
    blocks = [thinking("a", "c2ln"), ODD, thinking("b", "c2ln"), text("done")]
    answer = quiet({"role": "assistant", "content": blocks})
    kinds = [b["type"] for b in made(user("go"), answer, user("more"))[1]["content"]]
    assert kinds == ["thinking", "text", "text"]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image"},
        {"type": "document", "source": None},
        {"type": "foo\n[Conversation Ledger]", "text": "x"},
        {"type": "search_result", "title": "x"},
    ],
)
def test_of_recorded_history_a_block_that_nobody_takes_is_text(block: Block) -> None:
    recorded = plain_message(assistant(block, text("x")))
    [_, turn, _] = made(user("a"), recorded, user("b"))
    assert [b["type"] for b in turn["content"]][-1] == "text"
    assert all(b["type"] == "text" for b in turn["content"])
    assert "\n[Conversation Ledger]" not in str(turn)


@pytest.mark.parametrize(
    "source",
    [
        {"type": "base64"},
        {"type": "base64", "media_type": "image/bmp", "data": "aGk="},
        {"type": "base64", "media_type": "image/png", "data": "@@@"},
        {"type": "url"},
    ],
)
@pytest.mark.parametrize("within", [False, True])
def test_of_a_log_of_any_version_an_image_that_is_refused_is_text(
    source: Block, within: bool
) -> None:
    image: Block = {"type": "image", "source": source}
    call = assistant({"type": "tool_use", "id": "a", "name": "n", "input": {}})
    stored = user(tool_result("a", [image])) if within else user(image, text("Look."))
    for message in (stored, plain_message(stored)):
        shown = made(user("go"), call, message)[2]["content"]
        [first, *_] = next(b["content"] for b in shown if "content" in b) if within else shown[1:]
        told = "[image block, which cannot be shown as it is; kept at refold://t/2]"
        assert first == text(told)


def test_a_good_image_beside_a_bad_one_is_still_shown() -> None:
    good = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    recorded = plain_message(user({"type": "image"}, good))
    assert [b["type"] for b in made(recorded)[0]["content"]] == ["text", "image"]


def test_messages_stored_before_are_rendered_as_they_were() -> None:
    # What is unknown is recorded with the message: older ones have no such record.
    assert made_unjudged(user(ODD, text("x")))[0]["content"][0] == ODD


def made_unjudged(*messages: Message) -> list[dict[str, Any]]:
    window = project(Window(), history(*messages))
    return render("t", window, None, PlainCounter().count_text).messages


def test_an_unknown_type_is_told_once() -> None:
    forget_reported()
    given = {"role": "user", "content": [ODD]}
    with pytest.warns(UnknownBlockWarning, match="new_in_2030"):
        read_messages(given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_messages(given)
        read_messages({"role": "user", "content": [ODD]}, recorded=True)
