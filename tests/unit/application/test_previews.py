"""Previews: what is shown of an offloaded result or input, and how to get at the rest."""

import pytest

from refold.application.projections.window import Preview, Window, project
from refold.application.rendering import texts
from refold.application.rendering.preview import shortened
from refold.application.rendering.render import render
from refold.domain.events import Event, ShortenedPart, ToolContentOffloaded
from tests.support.builders import assistant, history, text, tool_result, tool_use, user
from tests.support.fake_ports import PlainCounter

ADDRESS = "refold://t/2"
LONG = "".join(f"line {i}\n" for i in range(2_000))


def marker(shown: int, whole: str = LONG) -> str:
    return texts.preview_marker(shown, len(whole), ADDRESS)


def test_head_and_tail_are_shown_and_the_marker_says_how_much_is_not() -> None:
    short = shortened(tool_result("a", LONG), Preview(100, 50, 0), ADDRESS)
    assert short["content"] == LONG[:100] + marker(150) + LONG[-50:]
    assert short["tool_use_id"] == "a"
    assert f"{len(LONG) - 150:,} of {len(LONG):,} characters" in short["content"]
    assert ADDRESS in short["content"]


def test_without_a_tail_the_marker_ends_the_preview() -> None:
    short = shortened(tool_result("a", LONG), Preview(100, 0, 0), ADDRESS)
    assert short["content"] == LONG[:100] + marker(100)


@pytest.mark.parametrize("extra", [0, 1])
def test_a_text_that_a_preview_makes_no_shorter_stays_whole(extra: int) -> None:
    longest = 150 + len(texts.preview_marker(150, 240, ADDRESS))
    whole = "x" * (longest + extra)
    short = shortened(tool_result("a", whole), Preview(100, 50, 0), ADDRESS)
    assert (short["content"] == whole) is (extra == 0)


def test_the_blocks_of_a_result_are_shown_as_one_text() -> None:
    block = tool_result("a", [text(LONG), text("end")])
    short = shortened(block, Preview(10, 3, 0), ADDRESS)
    assert short["content"].startswith(LONG[:10])
    assert short["content"].endswith("end")


def test_a_result_without_text_names_its_address() -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": "A" * 9_000}}
    short = shortened(tool_result("a", [picture]), Preview(10, 3, 0), ADDRESS)
    assert ADDRESS in str(short)
    assert "AAAA" not in str(short)


def test_of_an_input_every_long_text_is_cut_and_its_shape_stays() -> None:
    block = tool_use("a", path="src/app.py", edits=[{"old": LONG, "line": 5}], ok=True)
    short = shortened(block, Preview(10, 0, 0), ADDRESS)
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
