"""The last rung: shorten texts, images and documents of the user that are too large."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import NamedTuple

from refold.application.conversation.entries import Entry, Preview, held_entries
from refold.application.conversation.loaded import LoadedConversation
from refold.application.runtime.core import Core
from refold.domain.compaction.budget import Budget, is_out_of_reach, least_size
from refold.domain.compaction.summary_rules import expect_length
from refold.domain.cuts.planner import NothingToCompact, plan_compaction
from refold.domain.events import UserContentShortened
from refold.domain.shortening import ToolPart, first_unread
from refold.domain.value import build_in_order

from .ladder import (
    Decide,
    Decision,
    Shortened,
    climb,
    lighten,
    make_fit,
    measure,
    measure_as,
    record,
)
from .tool_parts import SAID, decide_parts, name_user_parts, tool_parts

LARGE_SHARE = 2
"""Divisor of the budget: a text is too large if it has more tokens than the budget divided by this."""
SHOWN_SHARE = 8
"""Divisor of the budget: the shown part of a large text has at most the budget divided by this."""
LEAST_SHOWN = 400
"""Minimum number of characters shown from each end of a text, unless the text must be even shorter."""
MARKER = Preview(0, 0, 0)
SHORT = (Preview(LEAST_SHOWN, LEAST_SHOWN, 0), Preview(LEAST_SHOWN // 4, LEAST_SHOWN // 4, 0))
"""Previews for texts that must be shortened further."""
LEFT_OUT = Preview(0, 0, 0, "left-out")
LEFT_OUT_MARKER = 100
"""Tokens reserved for the marker that replaces a run of adjacent parts."""
WORTH_IT = 10
"""Minimum number of tokens that shortening a part must free. Smaller gains are within the rounding error."""


class Need(NamedTuple):
    """The reduction that a request needs."""

    excess: int
    """Tokens of the request above its limit; 0 or less if only its target is exceeded."""
    since: int = 0
    """First position that may be shortened."""


class Step(NamedTuple):
    """Parts to shorten with one preview."""

    parts: Sequence[ToolPart]
    preview: Preview


class _Candidates(NamedTuple):
    """The messages from which steps are chosen."""

    core: Core
    loaded: LoadedConversation
    budget: Budget
    positions: range
    """Positions of the messages to consider."""

    def parts(self, preview: Preview, *, least: int = 0, worth: int = WORTH_IT) -> list[ToolPart]:
        """Return the user's texts, images and documents for which this preview saves something."""
        found = tool_parts(self.core, self.loaded, preview, least=least, sides=SAID)
        return [p for p in found if p.position in self.positions and p.freed >= worth]


def steps(core: Core, loaded: LoadedConversation, budget: Budget, need: Need) -> Iterator[Step]:
    """Yield possible steps, the mildest first. The caller skips steps that free nothing.

    First, texts of more than half the budget are cut to both ends. If that is not enough, other content is
    shortened, the largest parts first: content that the model has answered, then content that it has not.
    An image or a document becomes a marker. The last steps replace a whole run of content by one marker.
    """
    half, end = budget.limit // LARGE_SHARE, loaded.state.length
    talk = _Candidates(core, loaded, budget, range(need.since, end))
    found = talk.parts(MARKER, least=0 if need.excess > 0 else half)
    for part in _largest_first(found):
        if part.tokens > half and not part.blind:
            yield from _end_steps(loaded, part, budget)
    if need.excess <= 0:
        return
    fresh = max(need.since, first_unread(loaded.state))
    for positions in (range(need.since, fresh), range(fresh, end)):
        yield from _steps_for(talk._replace(positions=positions), found, need.excess)
    yield from _marker_steps(talk, need.excess)


def _steps_for(talk: _Candidates, found: Sequence[ToolPart], excess: int) -> Iterator[Step]:
    parts = _largest_first([part for part in found if part.position in talk.positions])
    large = talk.budget.limit // SHOWN_SHARE
    for part in parts:
        if part.tokens > large and part.blind:
            yield Step((part,), MARKER)
        elif part.tokens > large:
            yield from _end_steps(talk.loaded, part, talk.budget)
    if blind := [part for part in parts if part.blind]:
        yield Step(_smallest_prefix(blind, excess), MARKER)
    for preview in SHORT if parts else ():
        if texts := [part for part in talk.parts(preview) if not part.blind]:
            yield Step(_smallest_prefix(_largest_first(texts), excess), preview)


def _marker_steps(talk: _Candidates, excess: int) -> Iterator[Step]:
    """Yield steps that replace content by markers, the oldest first.

    The first steps replace images and documents, later ones any content.
    """
    if parts := talk.parts(LEFT_OUT, worth=1):
        blind = [part for part in parts if part.blind]
        for some in (blind, parts):
            yield Step(_smallest_prefix(some, excess + LEFT_OUT_MARKER), LEFT_OUT)
        yield Step(parts, LEFT_OUT)


def _end_steps(loaded: LoadedConversation, part: ToolPart, budget: Budget) -> Iterator[Step]:
    """Yield steps that keep equal parts of head and tail of a complete text."""
    if (part.position, part.call_id, part.side) in loaded.window.previews:
        return
    entries = held_entries(loaded.window.entries)
    entry = next(entry for entry in entries if entry.position == part.position)
    share = budget.limit / SHOWN_SHARE / max(1, part.tokens)
    each = max(LEAST_SHOWN, int(len(_text(entry, int(part.call_id))) * share / 2))
    yield Step((part,), Preview(each, each, 0))


def _smallest_prefix(parts: Sequence[ToolPart], excess: int) -> Sequence[ToolPart]:
    """Return the shortest prefix of the parts that saves ``excess`` tokens."""
    chosen: list[ToolPart] = []
    for part in parts:
        if excess <= 0:
            break
        chosen.append(part)
        excess -= part.freed
    return chosen


def _largest_first(parts: Sequence[ToolPart]) -> list[ToolPart]:
    return sorted(parts, key=_tokens, reverse=True)


def _tokens(part: ToolPart) -> int:
    return part.tokens


def _text(entry: Entry, index: int) -> str:
    return str(entry.message.blocks()[index].get("text") or "")


def shorten_texts(core: Core, thread_id: str, budget: Budget, *, to_target: bool) -> Shortened:
    """Shorten user content step by step, no more than necessary.

    Content larger than half the budget is shortened if the request does not fit or, with ``to_target``,
    exceeds its target. Other content is shortened only if the request would not fit otherwise. Pinned
    content never is.
    """
    goal = budget.target if to_target else budget.limit

    def decide(loaded: LoadedConversation) -> Decision:
        size = measure_as(core, loaded, budget).size
        if size <= goal:
            return Decision()
        return _shorten(core, loaded, budget, Need(size - budget.limit))

    return _shorten_all(core, thread_id, decide)


def clear_texts(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """Shorten unanswered user content that leaves no room for anything else, as no other rung can."""

    def decide(loaded: LoadedConversation) -> Decision:
        excess = least_size(loaded.state, budget) - budget.limit
        if excess <= 0:
            return Decision()
        return _shorten(core, loaded, budget, Need(excess, first_unread(loaded.state)))

    return _shorten_all(core, thread_id, decide)


def reduce_uncoverable(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """Remove what no summary can reduce: too many bytes, and texts that leave no room for anything else."""
    return lighten(core, thread_id, budget).plus(clear_texts(core, thread_id, budget))


def shorten_before_summary(core: Core, thread_id: str, budget: Budget, *, most: int) -> Shortened:
    """Shorten unanswered texts of more than half the budget with which the request would exceed ``most`` tokens.

    No summary can make these texts smaller. They are shortened first, so that the summary is planned with the room that
    this frees. If no summary can be written, nothing is shortened.
    """

    def decide(loaded: LoadedConversation) -> Decision:
        since, half = first_unread(loaded.state), budget.limit // LARGE_SHARE
        unread = takewhile(lambda m: m.position >= since, reversed(loaded.state.live))
        if all(message.tokens <= half for message in unread):
            return Decision()
        now = measure_as(core, loaded, budget)
        known = expect_length(loaded.state, core.summariser.name)
        plan = plan_compaction(
            loaded.state, now.budget, core.settings.policy, "size", expected=known
        )
        if isinstance(plan, NothingToCompact) or plan.kept_tokens + now.budget.fixed <= most:
            return Decision()
        return _shorten(core, loaded, budget, Need(0, since))

    return _shorten_all(core, thread_id, decide)


def _shorten_all(core: Core, thread_id: str, decide: Decide) -> Shortened:
    done = Shortened()
    while core.settings.shorten_texts:
        taken = record(core, thread_id, decide)
        if not taken.decisions:
            break
        done = done.plus(taken)
    return done


def _shorten(core: Core, loaded: LoadedConversation, budget: Budget, need: Need) -> Decision:
    """Return the first step that makes the request smaller; steps that fail are skipped."""
    if is_out_of_reach(loaded.state, budget, texts_shortened=True):
        return Decision()  # It would not fit without any text.
    taken = map(partial(_take, core, loaded, budget), steps(core, loaded, budget, need))
    return next((decision for decision in taken if decision.events), Decision())


def _take(core: Core, loaded: LoadedConversation, budget: Budget, step: Step) -> Decision:
    parts = name_user_parts(decide_parts(core, loaded, step.parts, step.preview))
    if sum(part.tokens_freed for part in parts) <= 0:
        return Decision()
    head, tail, method = step.preview.head, step.preview.tail, step.preview.method
    left_out = method == "left-out"
    event = build_in_order(
        UserContentShortened, parts=parts, head=head, tail=tail, left_out=left_out
    )
    if left_out:  # The marker of a run may be larger than the run.
        now = measure_as(core, loaded, budget)
        if measure_as(core, loaded.after([event]), budget).size >= now.size:
            return Decision()
    return Decision((event,))


def take_all_rungs(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """Shorten what no summary covers, one rung after the other, until the request fits."""
    if measure(core, thread_id, budget).size <= budget.limit:
        return Shortened()
    done = clear_texts(core, thread_id, budget)
    if measure(core, thread_id, budget).size > budget.limit:
        done = done.plus(climb(core, thread_id, budget, all_of_it=True))
    done = done.plus(make_fit(core, thread_id, budget))
    return done.plus(shorten_texts(core, thread_id, budget, to_target=False))
