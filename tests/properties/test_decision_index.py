"""``explain`` says the same whether it reads all later decisions or those that the read models name."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.application.history import explain, fate_history
from refold.domain.errors import RefoldError, UnknownMessage
from tests.support.effort import tenth_unless_all
from tests.support.fake_summarisers import GoodSummariser

from .test_pictures import act, moves


@tenth_unless_all(100)
@given(st.lists(moves, min_size=4, max_size=12), st.integers(1, 6))
def test_the_fates_are_those_of_all_decisions(
    steps: list[tuple[str, Any, str]], count: int
) -> None:
    summariser = GoodSummariser()
    with refold.open(":memory:", window=4_000, summariser=summariser, background=False) as memory:
        conversation = memory.conversation("t")
        for kind, what, model in steps:
            with suppress(RefoldError, IndexError, ZeroDivisionError):
                act(conversation, kind, what, model)
        newest = conversation.version
        for version in {newest, newest * 2 // 3, newest // 3} - {0}:
            length = len(conversation.explain(at=version))
            for start in range(0, length, count):
                agree(conversation, start, start + count, version)
        for position in range(0, len(conversation.messages()), count):
            tell_the_same(conversation, position)


def agree(conversation: refold.ConversationMemory, start: int, stop: int, version: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explain, "DISTANT", 1 << 40)
        expected = conversation.explain(start, stop, at=version)
        patch.setattr(explain, "DISTANT", -1)
        assert conversation.explain(start, stop, at=version) == expected


def tell_the_same(conversation: refold.ConversationMemory, position: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fate_history, "DISTANT", 1 << 40)
        with suppress(UnknownMessage):
            expected = conversation.fate_history(position)
            patch.setattr(fate_history, "DISTANT", -1)
            assert conversation.fate_history(position) == expected
