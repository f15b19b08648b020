"""Tokens of replies, in the forms in which providers state them."""

from typing import Any

import pytest

from refold.application.inspection.token_use import Stated, TokenUse, UseSums, stated_use
from refold.domain.events import MessageAppended
from refold.domain.originals import Original
from refold.domain.value import replace
from tests.support.builders import appended, assistant


def reply(usage: object, **more: Any) -> MessageAppended:
    said = replace(assistant("yes"), extra={"usage": usage})
    return appended(1, said, tokens=7, **more)


@pytest.mark.parametrize(
    ("usage", "stated"),
    [
        (
            {
                "input_tokens": 10,
                "cache_read_input_tokens": 900,
                "cache_creation_input_tokens": 90,
                "output_tokens": 5,
            },
            Stated(10, 900, 90, 5),
        ),
        ({"input_tokens": 10, "cache_read_input_tokens": None}, Stated(10, 0, 0, 0)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 64},
            },
            Stated(36, 64, 0, 5),
        ),
        ({"prompt_tokens": 100, "completion_tokens": 5}, Stated(100, 0, 0, 5)),
        (
            {
                "input_tokens": 100,
                "output_tokens": 5,
                "input_tokens_details": {"cached_tokens": 64},
            },
            Stated(36, 64, 0, 5),
        ),
        ({"input_tokens": "many", "output_tokens": True}, Stated(0, 0, 0, 0)),
    ],
)
def test_each_form_is_read(usage: object, stated: Stated) -> None:
    assert stated_use(reply(usage)) == stated


@pytest.mark.parametrize("usage", [None, "much", [1], {}, {"total_tokens": 7}])
def test_an_unknown_form_states_nothing(usage: object) -> None:
    assert stated_use(reply(usage)) is None


def test_the_form_of_langchain_is_read_from_the_original() -> None:
    usage = {
        "input_tokens": 1_000,
        "output_tokens": 5,
        "input_token_details": {"cache_read": 900, "cache_creation": 90},
    }
    data = {"type": "ai", "data": {"usage_metadata": usage}}
    original = Original(format="langchain", data=data)
    stated = stated_use(appended(1, assistant("yes"), original=original))
    assert stated == Stated(10, 900, 90, 5)
    nothing = Original(format="openai-responses", data=[{"type": "message"}])
    assert stated_use(appended(1, assistant("yes"), original=nothing)) is None


def test_stated_and_estimated_tokens_are_summed_apart() -> None:
    sums = UseSums()
    for _ in range(2):
        sums.add(reply({"input_tokens": 3, "output_tokens": 4}), "m", read=100, written=50)
    sums.add(reply(None), "m", read=100, written=50)
    stated, estimated = sums.sums()
    assert stated == TokenUse(
        model="m", is_estimate=False, replies=2, input=6, read=0, written=0, output=8
    )
    assert estimated == TokenUse(
        model="m", is_estimate=True, replies=1, input=0, read=100, written=50, output=7
    )
    assert (stated.sent, estimated.sent) == (6, 150)
