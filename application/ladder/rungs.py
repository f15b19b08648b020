"""The rungs below a summary: previews of large tool content, then older results cut short."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from refold.application.core import Core
from refold.application.loaded import LoadedConversation
from refold.application.projections.window import Preview
from refold.domain.budget import Budget
from refold.domain.condensing import choose_condensed, condense_parts, worth_a_marker
from refold.domain.coverage import Coverage
from refold.domain.cuts.planner import NothingToCompact, plan_compaction
from refold.domain.events import (
    Event,
    MessagesCondensed,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.expecting import expected
from refold.domain.offloading import (
    as_few_as_needed,
    choose_offloads,
    much_smaller,
    offload_parts,
)
from refold.domain.policy import CompactionPolicy
from refold.domain.shortening import (
    condensed_part_fits,
    is_enough,
    thinking_tokens,
    unanswered_from,
)

from .measuring import measured, measured_as
from .tool_parts import decided, of_tools, tool_parts

CLEARED = Preview(0, 0, 0, "hard-clear")


class Shortened(NamedTuple):
    """What was shown shorter, counted in tool results and inputs."""

    offloaded: int = 0
    condensed: int = 0
    decisions: int = 0
    enough: bool = False
    """Whether the request can go on without a summary."""

    def plus(self, later: "Shortened") -> "Shortened":
        """Both together."""
        return Shortened(
            self.offloaded + later.offloaded,
            self.condensed + later.condensed,
            self.decisions + later.decisions,
            self.enough or later.enough,
        )


def climb(core: Core, thread_id: str, budget: Budget, *, all_of_it: bool = False) -> Shortened:
    """Take one rung after the other until the request can go on without a summary, if it ever can.

    Where it cannot, only what a summary will leave is shown shorter: the rest would be released at once.
    ``all_of_it``: no summary will come.
    """
    return recorded(core, thread_id, partial(_climbed, core, budget, all_of_it=all_of_it))


def _climbed(
    core: Core, budget: Budget, loaded: LoadedConversation, *, all_of_it: bool
) -> "Decision":
    policy, size = core.settings.policy, measured_as(core, loaded, budget).size
    taken: list[Event] = []
    now = loaded
    for rung in (_offload, _condense):
        events = rung(core, budget, now)
        if not events:
            continue
        taken += events
        now = now.after(events)
        shown = measured_as(core, now, budget)
        enough = is_enough(size, shown.size, budget, policy)
        if rung is _condense:
            # What does not fit the tier of condensed messages is summarised (requirement B4).
            enough = enough and condensed_part_fits(now.state, shown.budget, policy)
        if enough:
            return Decision(tuple(taken), enough=True)
    if not taken or all_of_it:
        return Decision(tuple(taken))
    shown = measured_as(core, now, budget)
    known = expected(now.state, core.summariser.name)
    plan = plan_compaction(now.state, shown.budget, policy, "size", expected=known)
    if isinstance(plan, NothingToCompact):
        return Decision(tuple(taken))
    return Decision(tuple(_beside(taken, plan.coverage)))


def _beside(events: Sequence[Event], coverage: Coverage) -> Iterator[Event]:
    """The decisions, as far as they are about messages that a summary leaves."""
    for event in events:
        assert isinstance(event, ToolContentOffloaded | MessagesCondensed)
        left = tuple(part for part in event.parts if not coverage.covers(part.position))
        if left:
            yield event.replaced(parts=left)


def make_fit(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """The last resort: where the request would not fit, show as much as needed as short as needed."""
    done, policy = Shortened(), core.settings.policy
    for preview in (large_preview(policy), Preview(policy.tiny_preview, 0, 0), CLEARED):
        if measured(core, thread_id, budget).size <= budget.limit:
            break
        done = done.plus(recorded(core, thread_id, partial(_fit, core, budget, preview)))
    return done


class Decision(NamedTuple):
    """What is to be recorded, and whether the request can then go on without a summary."""

    events: tuple[Event, ...] = ()
    enough: bool = False


Decide = Callable[[LoadedConversation], Decision]


def recorded(core: Core, thread_id: str, decide: Decide) -> Shortened:
    """Record a decision. It is made before the log is locked, and again only if that was overtaken."""
    before = core.asked.framed(core.log.load(thread_id))
    planned = decide(before)
    if not planned.events:
        return Shortened()

    def confirmed(now: LoadedConversation) -> Sequence[Event]:
        nonlocal planned
        if now.state.version != before.state.version:
            planned = decide(now)
        return planned.events

    _, events = core.log.transact(thread_id, confirmed, at=core.clock())
    offloads = (e for e in events if isinstance(e, ToolContentOffloaded | UserContentShortened))
    return Shortened(
        offloaded=sum(len(e.parts) for e in offloads),
        condensed=sum(len(e.parts) for e in events if isinstance(e, MessagesCondensed)),
        decisions=len(events),
        enough=planned.enough,
    )


def _offload(core: Core, budget: Budget, loaded: LoadedConversation) -> Sequence[Event]:
    policy, now = core.settings.policy, measured_as(core, loaded, budget)
    preview = large_preview(policy)
    least = min(policy.offload_tokens, int(now.budget.room * policy.giant_share))
    parts = tool_parts(core, loaded, preview, least=least)
    chosen = choose_offloads(parts, loaded.state, now.size, now.budget, policy)
    return offload_parts(
        of_tools(decided(core, loaded, chosen, preview)), head=preview.head, tail=preview.tail
    )


def _condense(core: Core, budget: Budget, loaded: LoadedConversation) -> Sequence[Event]:
    policy, now = core.settings.policy, measured_as(core, loaded, budget)
    characters = policy.condensed_characters
    preview = Preview(characters, 0, 0, "soft-trim") if characters else CLEARED
    parts = tool_parts(core, loaded, preview)
    chosen = choose_condensed(parts, loaded.state, now.budget, policy)
    if chosen is None:
        return ()
    return condense_parts(of_tools(decided(core, loaded, chosen, preview)), characters)


def _fit(core: Core, budget: Budget, preview: Preview, loaded: LoadedConversation) -> Decision:
    now = measured_as(core, loaded, budget)
    excess = now.size - thinking_tokens(loaded.state) - budget.trigger
    found = tool_parts(core, loaded, preview)
    parts = worth_a_marker(found) if preview is CLEARED else much_smaller(found)
    # What the model has not answered yet goes last, whatever else there is.
    fresh = unanswered_from(loaded.state)
    older = as_few_as_needed([p for p in parts if p.position < fresh], excess)
    missing = now.size - thinking_tokens(loaded.state) - sum(p.freed for p in older) - budget.limit
    newer = as_few_as_needed([p for p in parts if p.position >= fresh], missing)
    chosen = of_tools(decided(core, loaded, (*older, *newer), preview))
    if preview is CLEARED:
        return Decision(condense_parts(chosen, 0) if chosen else ())
    return Decision(offload_parts(chosen, head=preview.head, tail=preview.tail))


def large_preview(policy: CompactionPolicy) -> Preview:
    """How a large result is shown."""
    return Preview(policy.preview_head, policy.preview_tail, 0)
