"""Hypothesis strategies for states to plan on: talk of all kinds, compacted, pinned, going on."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from refold.domain.compaction.budget import Budget, budget_for
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.conversation import Conversation
from refold.domain.cuts.planner import CompactionPlan, plan_compaction
from refold.domain.events import Event, MessagePinned, MessageUnpinned, Trigger
from refold.domain.evolve import evolve
from refold.domain.messages import Block, Message

from .builders import appended, performed, text, thinking, tool_result, tool_use

SIZES = st.sampled_from((10, 40, 40, 100, 100, 300, 900))
POLICIES = st.builds(
    CompactionPolicy,
    keep_last=st.sampled_from((1, 2, 5)),
    keep_tokens=st.sampled_from((0, 0, 150, 600)),
    keep_turns=st.sampled_from((0, 0, 1, 2)),
    target_share=st.sampled_from((0.5, 0.8, 0.95)),
    whole_turn_share=st.sampled_from((0.0, 0.5, 1.0)),
    split_share=st.sampled_from((0.5, 0.1)),
    request_share=st.sampled_from((0.5, 0.1)),
)
TRIGGERS: st.SearchStrategy[Trigger] = st.sampled_from(("size", "manual", "background"))
WINDOWS = st.sampled_from((1_500, 3_000, 6_000))


@dataclass
class Story:
    """Events as they are made, and the state that they fold to."""

    events: list[Event] = field(default_factory=list[Event])
    state: Conversation = field(default_factory=Conversation)
    calls: int = 0

    def add(self, event: Event) -> None:
        self.events.append(event)
        self.state = evolve(self.state, event)

    def say(self, role: str, *blocks: Block, size: int, pause: bool = False) -> None:
        thought = size // 3 if any(b["type"] == "thinking" for b in blocks) else 0
        message = Message.model_validate({"role": role, "content": blocks})
        stop = "pause_turn" if pause else None
        position = self.state.length
        self.add(appended(position, message, size, thinking_tokens=thought, stop_reason=stop))


def _user(draw: st.DrawFn, story: Story) -> None:
    said = draw(st.sampled_from(("please", "please", "please", " ")))
    story.say("user", text(said), size=draw(SIZES))


def _system(draw: st.DrawFn, story: Story) -> None:
    story.say("system", text("note"), size=draw(SIZES))


def _answer(draw: st.DrawFn, story: Story) -> None:
    thoughts = (thinking(),) if draw(st.booleans()) else ()
    said = text(draw(st.sampled_from(("done", "done", " "))))
    story.say("assistant", *thoughts, said, size=draw(SIZES), pause=draw(st.integers(0, 4)) == 0)


def _late_result(draw: st.DrawFn, story: Story) -> None:
    late = f"c{draw(st.integers(0, max(0, story.calls - 1)))}"
    story.say("user", tool_result(late), size=draw(SIZES))


def _round(draw: st.DrawFn, story: Story) -> None:
    """Parallel calls; results in any order, in one message or more, some never, words among them."""
    count = draw(st.integers(1, 3))
    ids = [f"c{story.calls + n}" for n in range(count)]
    story.calls += count
    spoken = (text("on it"),) if draw(st.booleans()) else ()
    story.say("assistant", *spoken, *map(tool_use, ids), size=draw(SIZES))
    missing = draw(st.sampled_from((0, 0, 0, 0, 1, count)))
    for call_id in draw(st.permutations(ids))[missing:]:
        words = (text("mind the tests"),) if draw(st.integers(0, 9)) == 0 else ()
        story.say("user", tool_result(call_id), *words, size=draw(SIZES))
        if draw(st.integers(0, 9)) == 0:
            _user(draw, story)


def _pin(draw: st.DrawFn, story: Story) -> None:
    live = story.state.live
    if live:
        position = draw(st.sampled_from(live)).position
        story.add(
            MessagePinned(pin_id=f"p{len(story.events)}", position=position, text="", tokens=0)
        )


def _note(draw: st.DrawFn, story: Story) -> None:
    tokens = draw(st.sampled_from((5, 50)))
    story.add(
        MessagePinned(pin_id=f"p{len(story.events)}", position=None, text="rule", tokens=tokens)
    )


def _unpin(draw: st.DrawFn, story: Story) -> None:
    if pins := story.state.pins:
        story.add(MessageUnpinned(pin_id=draw(st.sampled_from(pins)).pin_id))


def _compact(draw: st.DrawFn, story: Story) -> None:
    policy, trigger = draw(POLICIES), draw(TRIGGERS)
    budget = budget_for(draw(WINDOWS), 0, policy)
    plan = plan_compaction(story.state, budget, policy, trigger)
    if isinstance(plan, CompactionPlan):
        name = f"s{len(story.events)}"
        story.add(performed(1, coverage=plan.coverage, summary_id=name, tokens=60))


_MOVES = (_user, _user, _user, _answer, _answer, _answer, _round, _round, _round, _round)
_SELDOM = (_system, _late_result, _pin, _note, _unpin, _compact, _compact)


@st.composite
def stories(draw: st.DrawFn, most: int = 30) -> Story:
    """A conversation of up to ``most`` moves, most of them tool rounds; calls often wait at its end."""
    story = Story()
    for _ in range(draw(st.integers(2, most))):
        moves = _SELDOM if draw(st.integers(0, 5)) == 0 else _MOVES
        draw(st.sampled_from(moves))(draw, story)
    if draw(st.integers(0, 3)) == 0:
        story.say("assistant", tool_use("last"), tool_use("least"), size=draw(SIZES))
    if draw(st.integers(0, 3)) == 0:
        _user(draw, story)
    return story


@st.composite
def budgets(draw: st.DrawFn, policy: CompactionPolicy) -> Budget:
    """A budget of a small window."""
    window, fixed = draw(WINDOWS), draw(st.sampled_from((0, 200)))
    return budget_for(window, fixed, policy, summary_overhead=draw(st.sampled_from((0, 60))))
