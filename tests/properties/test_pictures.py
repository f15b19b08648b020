"""The pictures of a conversation agree with its state and with ``explain``, after any events."""

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.application.inspection.shown_tokens import ShownTokens
from refold.domain.errors import RefoldError
from refold.testing import histories
from tests.support.effort import tenth_unless_all
from tests.support.fake_summarisers import GoodSummariser

MODELS = ("claude-sonnet-4-5", "claude-opus-4-5")
"""The newer one accepts thinking whose prefix has changed."""

talks = histories(damaged=True, max_messages=8, max_text=300, huge=4_000)
moves = st.one_of(
    st.tuples(st.just("talk"), talks, st.sampled_from(MODELS)),
    st.tuples(
        st.sampled_from(("compact", "revert", "pin", "pin text", "unpin", "erase", "label")),
        st.integers(0, 60),
        st.just(""),
    ),
)


def act(conversation: refold.ConversationMemory, kind: str, what: Any, model: str) -> None:
    match kind:
        case "talk":
            conversation.append(what, recorded=True)
            conversation.context(system="You help.", model=model)
        case "compact":
            conversation.compact(force=True, keep_last=1 + what % 3)
        case "revert":
            conversation.revert_compaction()
        case "pin":
            conversation.pin(what % conversation.size_history().points[-1].position)
        case "pin text":
            conversation.pin(f"never do number {what}")
        case "unpin":
            conversation.unpin(conversation.pins()[0].pin_id)
        case "erase":
            conversation.erase(what % conversation.size_history().points[-1].position)
        case _:
            conversation.label(str(what))


@tenth_unless_all(100)
@given(st.lists(moves, min_size=3, max_size=10))
def test_sizes_are_those_of_the_state_and_fates_those_of_explain(
    steps: list[tuple[str, Any, str]],
) -> None:
    summariser = GoodSummariser()
    with refold.open(":memory:", window=4_000, summariser=summariser, background=False) as memory:
        conversation = memory.conversation("t")
        for kind, what, model in steps:
            with suppress(RefoldError, IndexError, ZeroDivisionError):
                act(conversation, kind, what, model)
        for version in range(conversation.version + 1):
            agree(conversation, version)
        assert memory.verify().ok
        pictures = conversation.size_history(), conversation.message_strip()
        memory.replay()
        assert (conversation.size_history(), conversation.message_strip()) == pictures


def agree(conversation: refold.ConversationMemory, version: int) -> None:
    core = conversation._core  # pyright: ignore[reportPrivateUsage]
    loaded = core.log.load("t", at=version)
    shown = ShownTokens()
    for row in core.views.request_sizes("t") if version else ():
        shown.take(row, version)
    assert (shown.total - shown.fixed, shown.length) == (loaded.state.tokens, loaded.state.length)
    fates = [fate.fate for fate in conversation.explain(at=version)]
    strip = conversation.message_strip(at=version)
    assert [[one.fate for one in cell.fates] for cell in strip.cells] == [[fate] for fate in fates]
    assert strip.largest == tuple(sorted(strip.cells, key=lambda cell: -cell.tokens)[:10])
