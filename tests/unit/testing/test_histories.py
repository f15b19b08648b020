"""``histories()`` draws what it says, and its legal ones are taken by every append."""

import json
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings

import refold
from refold.testing.history_strategies import histories
from refold.testing.request_judge import violations

History = list[dict[str, Any]]
FEW = settings(max_examples=15, deadline=None)
FIRST = settings(max_examples=400, database=None, phases=[Phase.generate])
"""For tests that a thing is drawn at all: the find is not shrunk, which takes most of the time."""


@FEW
@given(histories(max_messages=10))
def test_legal_ones_are_appended_and_make_legal_requests(history: History) -> None:
    with refold.open(":memory:", window=50_000) as memory:
        conversation = memory.conversation("t")
        conversation.append(history)
        request = conversation.context().for_anthropic()
        assert violations(request, allow_pending_at_end=True) == []


@FEW
@given(histories(damaged=True, max_messages=10))
def test_damaged_ones_are_appended_as_recordings(history: History) -> None:
    with refold.open(":memory:", window=50_000) as memory:
        conversation = memory.conversation("t")
        kept = [one for one in history if one["content"]]
        if kept:
            conversation.append(kept, recorded=True)
            assert len(conversation.messages()) == len(kept)


@FEW
@given(histories(multilingual=False, tools=False, thinking=False, images=False, max_messages=12))
def test_what_is_not_wanted_is_not_in_it(history: History) -> None:
    written = json.dumps(history, ensure_ascii=False)
    markers = "⟦⟧"
    assert written.translate(dict.fromkeys(map(ord, markers))).isascii()
    for kind in ("tool_use", "tool_result", "thinking", "image"):
        assert f'"type": "{kind}"' not in written


@pytest.mark.parametrize(
    "sought", ['"tool_use"', '"thinking"', '"image"', "请", "👍"], ids=lambda s: s.strip('"')
)
def test_every_kind_is_drawn(sought: str) -> None:
    found = find(
        histories(),
        lambda h: sought in json.dumps(h, ensure_ascii=False),
        settings=FIRST,
    )
    assert found


def test_damaged_ones_break_rules() -> None:
    def is_broken(history: History) -> bool:
        return any("orphan" in finding for finding in violations({"messages": history}))

    assert find(histories(damaged=True), is_broken, settings=FIRST)
