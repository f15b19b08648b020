"""The last rung: a user's text, image or document that is too large to stay whole (requirement C8)."""

from functools import partial

from refold.application.core import Core
from refold.application.loaded import LoadedConversation
from refold.domain.budget import Budget
from refold.domain.events import UserContentShortened
from refold.domain.shortening import unanswered_from

from .exceeding import is_out_of_reach, least_size
from .last_steps import Need, Step, steps
from .measuring import measured_as
from .rungs import Decide, Decision, Shortened, recorded
from .tool_parts import decided, of_users


def shorten_texts(core: Core, thread_id: str, budget: Budget, *, to_target: bool) -> Shortened:
    """Show what a user said shorter: step by step, and no more than needed.

    What is larger than half the budget, where the request does not fit or, with ``to_target``, is above
    its target; anything, where it would not fit otherwise. Never what is pinned.
    """
    goal = budget.target if to_target else budget.limit

    def decide(loaded: LoadedConversation) -> Decision:
        size = measured_as(core, loaded, budget).size
        if size <= goal:
            return Decision()
        return _shortened(core, loaded, budget, Need(size - budget.limit))

    return _all_shortened(core, thread_id, decide)


def clear_texts(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """The same for what nobody has answered, as far as no other rung can help: nothing else would have
    any room."""

    def decide(loaded: LoadedConversation) -> Decision:
        excess = least_size(loaded.state, budget) - budget.limit
        if excess <= 0:
            return Decision()
        return _shortened(core, loaded, budget, Need(excess, unanswered_from(loaded.state)))

    return _all_shortened(core, thread_id, decide)


def _all_shortened(core: Core, thread_id: str, decide: Decide) -> Shortened:
    done = Shortened()
    while core.settings.shorten_texts:
        taken = recorded(core, thread_id, decide)
        if not taken.decisions:
            break
        done = done.plus(taken)
    return done


def _shortened(core: Core, loaded: LoadedConversation, budget: Budget, need: Need) -> Decision:
    """The first step that makes the request smaller. A step that cannot stands in the way of no other."""
    if is_out_of_reach(loaded.state, budget, texts_shortened=True):
        return Decision()  # It would not fit without any text.
    taken = map(partial(_taken, core, loaded, budget), steps(core, loaded, budget, need))
    return next((decision for decision in taken if decision.events), Decision())


def _taken(core: Core, loaded: LoadedConversation, budget: Budget, step: Step) -> Decision:
    parts = of_users(decided(core, loaded, step.parts, step.preview))
    if sum(part.tokens_freed for part in parts) <= 0:
        return Decision()
    head, tail, method = step.preview.head, step.preview.tail, step.preview.method
    left_out = method == "left-out"
    event = UserContentShortened(parts=parts, head=head, tail=tail, left_out=left_out)
    if left_out:  # What stands for a run may be larger than the run.
        now = measured_as(core, loaded, budget)
        if measured_as(core, loaded.after([event]), budget).size >= now.size:
            return Decision()
    return Decision((event,))
