"""The rungs below a summary: previews of large tool content, then older results cut short."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from refold.application.core import Core
from refold.application.loaded import LoadedConversation
from refold.application.projections.window import Preview
from refold.domain.budget import Budget
from refold.domain.condensing import choose_condensed, condense_parts, worth_a_marker
from refold.domain.events import Event, MessagesCondensed, ToolContentOffloaded
from refold.domain.offloading import (
    as_few_as_needed,
    choose_offloads,
    much_smaller,
    offload_parts,
)
from refold.domain.policy import CompactionPolicy
from refold.domain.shortening import condensed_part_fits, is_enough, thinking_tokens

from .measuring import measured, measured_as
from .tool_parts import decided, tool_parts

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


def climb(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """Take one rung after the other until the request can go on without a summary, if it ever can."""
    before, done, policy = measured(core, thread_id, budget), Shortened(), core.settings.policy
    for rung in (_offload, _condense):
        taken = _recorded(core, thread_id, partial(rung, core, budget))
        if not taken.decisions:
            continue
        now = measured(core, thread_id, budget)
        enough = is_enough(before.size, now.size, budget, policy)
        if rung is _condense:
            # What does not fit the tier of condensed messages is summarised (requirement B4).
            enough = enough and condensed_part_fits(now.loaded.state, now.budget, policy)
        done = done.plus(taken)._replace(enough=enough)
        if enough:
            break
    return done


def make_fit(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """The last resort: where the request would not fit, show as much as needed as short as needed."""
    done, policy = Shortened(), core.settings.policy
    for preview in (_large(policy), Preview(policy.tiny_preview, 0, 0), CLEARED):
        if measured(core, thread_id, budget).size <= budget.limit:
            break
        done = done.plus(_recorded(core, thread_id, partial(_fit, core, budget, preview)))
    return done


def _recorded(
    core: Core, thread_id: str, decide: Callable[[LoadedConversation], Sequence[Event]]
) -> Shortened:
    """Record a decision. It is made before the log is locked, and again only if that was overtaken."""
    before = core.asked.framed(core.log.load(thread_id))
    planned = decide(before)
    if not planned:
        return Shortened()

    def confirmed(now: LoadedConversation) -> Sequence[Event]:
        return planned if now.state.version == before.state.version else decide(now)

    _, events = core.log.transact(thread_id, confirmed, at=core.clock())
    return Shortened(
        offloaded=sum(len(e.parts) for e in events if isinstance(e, ToolContentOffloaded)),
        condensed=sum(len(e.parts) for e in events if isinstance(e, MessagesCondensed)),
        decisions=len(events),
    )


def _offload(core: Core, budget: Budget, loaded: LoadedConversation) -> Sequence[Event]:
    policy, now = core.settings.policy, measured_as(core, loaded, budget)
    preview = _large(policy)
    least = min(policy.offload_tokens, int(now.budget.room * policy.giant_share))
    parts = tool_parts(core, loaded, preview, least=least)
    chosen = choose_offloads(parts, loaded.state, now.size, now.budget, policy)
    return offload_parts(
        decided(core, loaded, chosen, preview), head=preview.head, tail=preview.tail
    )


def _condense(core: Core, budget: Budget, loaded: LoadedConversation) -> Sequence[Event]:
    policy, now = core.settings.policy, measured_as(core, loaded, budget)
    characters = policy.condensed_characters
    preview = Preview(characters, 0, 0, "soft-trim") if characters else CLEARED
    parts = tool_parts(core, loaded, preview)
    chosen = choose_condensed(parts, loaded.state, now.budget, policy)
    if chosen is None:
        return ()
    return condense_parts(decided(core, loaded, chosen, preview), characters)


def _fit(
    core: Core, budget: Budget, preview: Preview, loaded: LoadedConversation
) -> Sequence[Event]:
    now = measured_as(core, loaded, budget)
    excess = now.size - thinking_tokens(loaded.state) - budget.trigger
    found = tool_parts(core, loaded, preview)
    parts = worth_a_marker(found) if preview is CLEARED else much_smaller(found)
    chosen = decided(core, loaded, as_few_as_needed(parts, excess), preview)
    if preview is CLEARED:
        return condense_parts(chosen, 0) if chosen else ()
    return offload_parts(chosen, head=preview.head, tail=preview.tail)


def _large(policy: CompactionPolicy) -> Preview:
    return Preview(policy.preview_head, policy.preview_tail, 0)
