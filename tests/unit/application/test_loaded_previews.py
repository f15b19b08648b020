"""Tool content shown shorter: previews, results cut to their beginning, and bare markers."""

import pytest

from refold.application.conversation.entries import Preview
from refold.application.conversation.loaded import Window, project
from refold.application.rendering import request_blocks as texts
from refold.application.rendering.render import render
from refold.application.rendering.shortened_blocks import shorten_block
from refold.domain.events import Event, MessagesCondensed, ShortenedPart, ToolContentOffloaded
from tests.support.builders import assistant, history, text, tool_result, tool_use, user
from tests.support.fake_ports import PlainCounter

ADDRESS = "refold://t/2"
PICTURE = {"type": "image", "source": {"type": "base64", "data": "A" * 9_000}}
TRIMMED = Preview(200, 0, 0, "soft-trim")
CLEARED = Preview(0, 0, 0, "hard-clear")
LONG = "".join(f"line {i}\n" for i in range(2_000))


def marker(shown: int, whole: str = LONG) -> str:
    return texts.preview_marker(shown, len(whole), ADDRESS)


def test_head_and_tail_are_shown_and_the_marker_says_how_much_is_not() -> None:
    short = shorten_block(tool_result("a", LONG), Preview(100, 50, 0), ADDRESS)
    assert short["content"] == LONG[:100] + marker(150) + LONG[-50:]
    assert short["tool_use_id"] == "a"
    assert f"{len(LONG) - 150:,} of {len(LONG):,} characters" in short["content"]
    assert ADDRESS in short["content"]


def test_without_a_tail_the_marker_ends_the_preview() -> None:
    short = shorten_block(tool_result("a", LONG), Preview(100, 0, 0), ADDRESS)
    assert short["content"] == LONG[:100] + marker(100)


@pytest.mark.parametrize("extra", [0, 1])
def test_a_text_that_a_preview_makes_no_shorter_stays_whole(extra: int) -> None:
    longest = 150 + len(texts.preview_marker(150, 240, ADDRESS))
    whole = "x" * (longest + extra)
    short = shorten_block(tool_result("a", whole), Preview(100, 50, 0), ADDRESS)
    assert (short["content"] == whole) is (extra == 0)


def test_the_blocks_of_a_result_are_shown_as_one_text() -> None:
    block = tool_result("a", [text(LONG), text("end")])
    short = shorten_block(block, Preview(10, 3, 0), ADDRESS)
    assert short["content"].startswith(LONG[:10])
    assert short["content"].endswith("end")


def test_a_result_without_text_names_its_address() -> None:
    short = shorten_block(tool_result("a", [PICTURE]), Preview(10, 3, 0), ADDRESS)
    assert ADDRESS in str(short)
    assert "AAAA" not in str(short)


def test_beside_a_text_a_picture_that_is_not_shown_is_named() -> None:
    short = shorten_block(tool_result("a", [text("A map:"), PICTURE]), Preview(10, 3, 0), ADDRESS)
    note = texts.OTHER_PARTS.format(what="1 image", address=ADDRESS)
    assert short["content"] == "A map:" + note


def test_a_condensed_result_shows_its_beginning_and_says_how_long_it_was() -> None:
    short = shorten_block(tool_result("a", LONG, is_error=True), TRIMMED, ADDRESS)
    assert short["content"] == LONG[:200] + texts.trimmed_marker(200, 0, len(LONG), ADDRESS)
    assert short["is_error"] is True
    for said in ("soft-trim", f"{len(LONG):,} characters", ADDRESS):
        assert said in short["content"]


def test_of_a_condensed_result_with_pictures_the_text_is_left() -> None:
    short = shorten_block(tool_result("a", [text("A map:"), PICTURE, PICTURE]), TRIMMED, ADDRESS)
    assert short["content"] == "A map:\n" + texts.cleared_marker("2 images", ADDRESS)


def test_a_condensed_result_without_text_is_cleared() -> None:
    short = shorten_block(tool_result("a", [PICTURE]), TRIMMED, ADDRESS)
    assert short["content"] == texts.cleared_marker("1 image", ADDRESS)
    assert "hard-clear" in short["content"]


def test_of_a_cleared_result_a_marker_is_left_that_says_what_was_there() -> None:
    unknown = {"type": "future_block", "note": "x"}
    short = shorten_block(tool_result("a", [text(LONG), PICTURE, unknown]), CLEARED, ADDRESS)
    what = f"{len(LONG):,} characters, 1 image, 1 part"
    assert short["content"] == texts.cleared_marker(what, ADDRESS)


@pytest.mark.parametrize("extra", [0, 1])
def test_a_text_that_a_trim_makes_no_shorter_stays_whole(extra: int) -> None:
    longest = 200 + len(texts.trimmed_marker(200, 0, 300, ADDRESS))
    short = shorten_block(tool_result("a", "x" * (longest + extra)), TRIMMED, ADDRESS)
    assert (short["content"] == "x" * longest) is (extra == 0)


def test_of_an_input_every_long_text_is_cut_and_its_shape_stays() -> None:
    block = tool_use("a", path="src/app.py", edits=[{"old": LONG, "line": 5}], ok=True)
    short = shorten_block(block, Preview(10, 0, 0), ADDRESS)
    assert short["input"] == {
        "path": "src/app.py",
        "edits": [{"old": LONG[:10] + marker(10), "line": 5}],
        "ok": True,
    }
    assert block["input"]["edits"][0]["old"] == LONG


def offloaded(side: str, head: int, freed: int) -> ToolContentOffloaded:
    part = ShortenedPart.model_validate(
        {
            "position": 1 if side == "call" else 2,
            "call_id": "a",
            "side": side,
            "tokens_freed": freed,
        }
    )
    return ToolContentOffloaded(parts=(part,), head=head, tail=0)


EVENTS: list[Event] = history(
    user("go"), assistant(tool_use("a", code=LONG)), user(tool_result("a", LONG))
)


def shown(*more: Event) -> tuple[str, str, int]:
    """The input and the result of the call as rendered, and the size of the request."""
    made = render("t", project(Window(), [*EVENTS, *more]), None, PlainCounter().count_text)
    call = made.messages[1]["content"][0]["input"]["code"]
    return call, made.messages[2]["content"][0]["content"], made.tokens


def test_an_offloaded_result_is_shown_as_preview_and_its_call_whole() -> None:
    assert shown(offloaded("result", 10, 60)) == (LONG, LONG[:10] + marker(10), 240)


def test_an_offloaded_input_is_shown_as_preview_and_its_result_whole() -> None:
    at = texts.preview_marker(10, len(LONG), "refold://t/1")
    assert shown(offloaded("call", 10, 60)) == (LONG[:10] + at, LONG, 240)


def test_a_second_decision_shortens_further_and_both_savings_count() -> None:
    twice = shown(offloaded("result", 100, 40), offloaded("result", 10, 20))
    assert twice == (LONG, LONG[:10] + marker(10), 240)


def condensed(characters: int, freed: int) -> MessagesCondensed:
    part = ShortenedPart(position=2, call_id="a", side="result", tokens_freed=freed)
    return MessagesCondensed(parts=(part,), characters=characters)


def test_a_result_that_was_offloaded_is_condensed_later_and_both_savings_count() -> None:
    trimmed = LONG[:50] + texts.trimmed_marker(50, 0, len(LONG), ADDRESS)
    assert shown(offloaded("result", 100, 40), condensed(50, 20)) == (LONG, trimmed, 240)


def test_a_condensed_result_shows_how_it_ended() -> None:
    short = shorten_block(
        tool_result("a", LONG + "\n2 failed"), Preview(20, 9, 0, "soft-trim"), ADDRESS
    )
    marker = texts.trimmed_marker(20, 9, len(LONG) + 9, ADDRESS)
    assert short["content"] == f"{LONG[:20]}{marker}\n2 failed"
    assert "the first 20 and the last 9 of" in marker


def test_without_characters_a_condensed_result_is_cleared() -> None:
    cleared = texts.cleared_marker(f"{len(LONG):,} characters", ADDRESS)
    assert shown(condensed(50, 40), condensed(0, 20)) == (LONG, cleared, 240)
