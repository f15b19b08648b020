"""Whatever is said, the ladder's sizes are true, its decisions stand, and it decides once."""

import asyncio
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from refold.application.compaction.fit_to_budget import settle
from refold.application.compaction.ladder import measure
from refold.application.rendering.render import Rendered, render
from refold.application.runtime.core import Core, Extras
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import Event, MessagePinned
from refold.domain.messages import Message
from refold.domain.turns import open_calls
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.testing.history_layout import Step
from refold.testing.history_strategies import turns
from refold.testing.request_judge import prefix_violations, violations
from refold.testing.request_parts import blocks_of
from tests.support.builders import appended
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.judged_play import CHANGES_THE_PREFIX
from tests.support.talk import Spoken, is_the_models_turn, strings
from tests.support.witness import SMALL_IMAGE, as_message

COUNTER = EstimatingTokenCounter(image_tokens=SMALL_IMAGE)
POLICIES = st.builds(
    CompactionPolicy,
    whole_last=st.sampled_from((1, 3, 6)),
    offload_tokens=st.sampled_from((50, 200)),
    preview_head=st.just(150),
    preview_tail=st.sampled_from((0, 60)),
    tiny_preview=st.just(50),
    condensed_characters=st.sampled_from((0, 40, 200)),
    condensed_tier=st.sampled_from((0.1, 0.5)),
    enough_freed_share=st.sampled_from((0.02, 0.1)),
    trigger_share=st.sampled_from((0.4, 0.7)),
)
# Deferred: their descriptions are longer than Hypothesis likes to print.
STEPS = st.deferred(
    lambda: (
        turns(min_messages=10, max_messages=40, max_text=400, huge=3_000)
        | turns(recorded=True, min_messages=10, max_messages=40, max_text=400, huge=3_000)
    )
)


class Talk:
    """A conversation on fakes, with the counter that is used in earnest."""

    def __init__(self, window: int, policy: CompactionPolicy) -> None:
        self.log = MemoryLog()
        self.core: Core = replace(core_of(self.log, window=window, policy=policy), counter=COUNTER)
        self.budget = self.core.budget(Extras())
        self.spoken: list[Spoken] = []
        self.events: list[Event] = self.log.streams.setdefault("t", [])

    def say(self, step: Step) -> None:
        for said in step:
            message, position = as_message(said), len(self.spoken)
            size = COUNTER.count_message(message)
            self.events.append(
                appended(position, message, size.total, thinking_tokens=size.thinking)
            )
            self.spoken.append(Spoken(position, said))

    def settle(self) -> int:
        """Settle; how many decisions were made that change the prefix."""
        before = self.decisions()
        results = asyncio.run(settle(self.core, "t", self.budget))
        if self.decisions() > before:
            assert results, "something was decided and nobody is told"
            assert results[-1].tokens_after == measure(self.core, "t", self.budget).size
            assert results[0].tokens_before > results[-1].tokens_after
        return self.decisions() - before

    def decisions(self) -> int:
        return sum(isinstance(event, CHANGES_THE_PREFIX) for event in self.events)

    def rendered(self) -> Rendered:
        return render("t", self.log.load("t").window, None, COUNTER.count_text)

    def assert_sizes_are_true(self, shown: Rendered) -> None:
        """What decisions are made on is never too large, what is sent never larger than it says."""
        state = self.log.load("t").state
        assert all(message.tokens >= 0 for message in state.live)
        assert state.tokens <= shown.tokens
        sent = [Message(role=m["role"], content=_content(m)) for m in shown.messages]
        counted = sum(COUNTER.count_message(m).total for m in sent)
        counted += COUNTER.count_text(str(shown.system))
        # Each message is rounded up once, and a lone surrogate is replaced by a dearer character.
        slack = len(sent) + 2 * sum(text.count("\ufffd") for text in strings(shown.messages))
        assert counted - slack <= shown.tokens

    def assert_untouchables_are_whole(self, pinned: int | None) -> None:
        loaded = self.log.load("t")
        waiting = set(open_calls(loaded.state))
        for position, call_id, side in loaded.window.previews:
            assert position != pinned
            assert not (side == "call" and call_id in waiting)


def _content(message: dict[str, Any]) -> Any:
    content = message["content"]
    return content if isinstance(content, str) else tuple(content)


def _request(shown: Rendered, decisions: int) -> dict[str, Any]:
    # The API reads a string as one text block: both are the same prefix.
    messages = [{**m, "content": blocks_of(m["content"])} for m in shown.messages]
    return {"system": shown.system, "messages": messages, "decision": decisions}


@given(
    steps=STEPS,
    policy=POLICIES,
    window=st.sampled_from((1_500, 2_500, 4_000)),
    pin=st.none() | st.integers(0, 12),
)
def test_sizes_are_true_and_decisions_are_made_once(
    steps: list[Step], policy: CompactionPolicy, window: int, pin: int | None
) -> None:
    talk, pinned, asked = Talk(window, policy), None, list[dict[str, Any]]()
    for step in steps:
        talk.say(step)
        if not is_the_models_turn(talk.spoken):
            continue
        talk.settle()
        shown = talk.rendered()
        if shown.messages:
            assert violations({"messages": shown.messages}) == []
        talk.assert_sizes_are_true(shown)
        talk.assert_untouchables_are_whole(pinned)
        asked.append(_request(shown, talk.decisions()))
        assert talk.settle() == 0, "settled twice, and decided twice"
        assert talk.rendered() == shown
        if pinned is None and pin is not None and pin < len(talk.spoken):
            live = {m.position for m in talk.log.load("t").state.live if not m.offloads}
            if pin in live:
                pinned = pin
                talk.events.append(MessagePinned(pin_id="p", position=pin, text="", tokens=0))
    assert prefix_violations(asked) == []
