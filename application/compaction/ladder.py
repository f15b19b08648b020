"""The rungs below a summary: offload large content, then condense older results."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from refold.application.conversation.entries import Preview
from refold.application.conversation.loaded import LoadedConversation
from refold.application.rendering.render import render
from refold.application.rendering.request_blocks import count_images
from refold.application.runtime.core import Core
from refold.domain.compaction.budget import Budget
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.compaction.summary_rules import expect_length
from refold.domain.conversation import Coverage
from refold.domain.cuts.planner import NothingToCompact, plan_compaction
from refold.domain.events import (
    Event,
    MessagesCondensed,
    ShortenedPart,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.messages import Block
from refold.domain.shortening import (
    ToolPart,
    choose_condensed,
    choose_fewest,
    choose_offloads,
    condense_parts,
    condensed_part_fits,
    first_unread,
    is_enough,
    offload_parts,
    select_much_smaller,
    select_worth_marking,
    thinking_tokens,
    whole_start,
)
from refold.domain.value import build_in_order, byte_size, replace

from .tool_parts import (
    RESULTS,
    SAID,
    TOOLS,
    decide_parts,
    name_tool_parts,
    name_user_parts,
    tool_parts,
)


class Measured(NamedTuple):
    """A conversation with the size of its request."""

    loaded: LoadedConversation
    size: int
    """Tokens of the whole request, including system text and tools."""
    budget: Budget
    """Budget that decisions use. Its fixed part includes the tokens that rendering adds."""
    plain: Budget
    """Budget as given by the caller."""
    bytes: int = 0
    """Bytes of the whole request as JSON; 0 if it is not rendered because it does not fit."""
    images: int = 0
    """Number of images and documents; 0 if it is not rendered."""


def measure(core: Core, thread_id: str, budget: Budget) -> Measured:
    """Measure the newest version of a conversation, with the frame of its newest request."""
    return measure_as(core, core.asked.framed(core.log.load(thread_id)), budget)


def measure_as(core: Core, loaded: LoadedConversation, budget: Budget) -> Measured:
    """Measure the request for a loaded conversation."""
    if loaded.is_too_long_to_render(budget):
        return Measured(loaded, loaded.state.tokens + budget.fixed, budget, budget)
    # Rendering adds content that is in no message, such as a note for each call without a result.
    tokens, weight, images = core.kept_turns.size(
        loaded.thread_id, loaded.window, partial(_rendered_size, core, loaded)
    )
    extra = max(0, tokens - loaded.state.tokens)
    size, weight = tokens + budget.fixed, weight + budget.fixed_bytes
    return Measured(loaded, size, budget.carrying(extra), budget, weight, images)


def _rendered_size(core: Core, loaded: LoadedConversation) -> tuple[int, int, int]:
    rendered = render(
        loaded.thread_id,
        loaded.window,
        None,
        core.counter.count_text,
        place=core.settings.summary_place,
        recalled=core.recalled.find(core.log, loaded),
        kept=core.kept_turns.measuring(),
    )
    return rendered.tokens, rendered.bytes, rendered.images


CLEARED = Preview(0, 0, 0, "hard-clear")


class Shortened(NamedTuple):
    """The number of tool results and inputs that were shortened."""

    offloaded: int = 0
    condensed: int = 0
    decisions: int = 0
    enough: bool = False
    """True if the request is small enough without a summary."""

    def plus(self, later: "Shortened") -> "Shortened":
        """Return the sum of both."""
        return Shortened(
            self.offloaded + later.offloaded,
            self.condensed + later.condensed,
            self.decisions + later.decisions,
            self.enough or later.enough,
        )


def climb(core: Core, thread_id: str, budget: Budget, *, all_of_it: bool = False) -> Shortened:
    """Take one rung after the other until the request needs no summary, if that is possible.

    If it is not, only content that a summary would keep is shortened: the summary would replace the rest at
    once. ``all_of_it``: no summary will follow.
    """
    return record(core, thread_id, partial(_climb, core, budget, all_of_it=all_of_it))


def _climb(
    core: Core, budget: Budget, loaded: LoadedConversation, *, all_of_it: bool
) -> "Decision":
    policy, taken = core.settings.policy, list[Event]()
    before = now = measure_as(core, loaded, budget)
    for rung in (_offload, _condense):
        events = rung(core, now)
        if not events:
            continue
        taken += events
        now = measure_as(core, now.loaded.after(events), budget)
        enough = is_enough(before.size, now.size, budget, policy)
        if rung is _condense:
            # Messages beyond the tier of condensed messages are summarised.
            enough = enough and condensed_part_fits(now.loaded.state, now.budget, policy)
        if enough:
            return Decision(tuple(taken), enough=True)
    if not taken or all_of_it:
        return Decision(tuple(taken))
    state = now.loaded.state
    known = expect_length(state, core.summariser.name)
    plan = plan_compaction(state, now.budget, policy, "size", expected=known)
    if isinstance(plan, NothingToCompact):
        return Decision(tuple(taken))
    return Decision(tuple(_uncovered_decisions(taken, plan.coverage)))


def _uncovered_decisions(events: Sequence[Event], coverage: Coverage) -> Iterator[Event]:
    """Yield the decisions about messages that a summary does not cover."""
    for event in events:
        match event:
            case ToolContentOffloaded():
                if left := _exclude_covered(coverage, event.parts):
                    yield replace(event, parts=left)
            case MessagesCondensed():
                if left := _exclude_covered(coverage, event.parts):
                    yield replace(event, parts=left)
            case _:
                raise AssertionError(f"not of the rungs below a summary: {event!r}")


def _exclude_covered(
    coverage: Coverage, parts: Sequence[ShortenedPart]
) -> tuple[ShortenedPart, ...]:
    return tuple(part for part in parts if not coverage.covers(part.position))


def make_fit(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """Shorten tool content step by step until the request fits. Each step uses smaller previews."""
    done, policy = Shortened(), core.settings.policy
    for preview in (large_preview(policy), Preview(policy.tiny_preview, 0, 0), CLEARED):
        if measure(core, thread_id, budget).size <= budget.limit:
            break
        done = done.plus(record(core, thread_id, partial(_fit, core, budget, preview)))
    return done


class Decision(NamedTuple):
    """The events to record, and whether the request then needs no summary."""

    events: tuple[Event, ...] = ()
    enough: bool = False


Decide = Callable[[LoadedConversation], Decision]


def record(core: Core, thread_id: str, decide: Decide) -> Shortened:
    """Record a decision. It is made before the log is locked, and again only if the state has changed."""
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


def _offload(core: Core, now: Measured) -> Sequence[Event]:
    policy, loaded = core.settings.policy, now.loaded
    preview = large_preview(policy)
    least = min(policy.offload_tokens, int(now.budget.room * policy.giant_share))
    parts = tool_parts(core, loaded, preview, least=least)
    chosen = choose_offloads(parts, loaded.state, now.size, now.budget, policy)
    return offload_parts(
        name_tool_parts(decide_parts(core, loaded, chosen, preview)),
        head=preview.head,
        tail=preview.tail,
    )


def _condense(core: Core, now: Measured) -> Sequence[Event]:
    policy, loaded = core.settings.policy, now.loaded
    # The end of a result says how it ended, which the beginning seldom does.
    tail = policy.condensed_characters // 2
    head = policy.condensed_characters - tail
    preview = Preview(head, tail, 0, "soft-trim") if head else CLEARED
    # Only results before the messages that stay whole are condensed; measuring others takes a while.
    stop = whole_start(loaded.state, now.budget, policy)
    parts = tool_parts(core, loaded, preview, sides=RESULTS, stop=stop)
    chosen = choose_condensed(parts, loaded.state, now.budget, policy)
    if chosen is None:
        return ()
    return condense_parts(name_tool_parts(decide_parts(core, loaded, chosen, preview)), head, tail)


def _fit(core: Core, budget: Budget, preview: Preview, loaded: LoadedConversation) -> Decision:
    now = measure_as(core, loaded, budget)
    excess = now.size - thinking_tokens(loaded.state) - budget.trigger
    found = tool_parts(core, loaded, preview)
    parts = select_worth_marking(found) if preview is CLEARED else select_much_smaller(found)
    # Content that the model has not answered yet is shortened last.
    fresh = first_unread(loaded.state)
    older = choose_fewest([p for p in parts if p.position < fresh], excess)
    missing = now.size - thinking_tokens(loaded.state) - sum(p.freed for p in older) - budget.limit
    newer = choose_fewest([p for p in parts if p.position >= fresh], missing)
    chosen = name_tool_parts(decide_parts(core, loaded, (*older, *newer), preview))
    if preview is CLEARED:
        return Decision(condense_parts(chosen, 0) if chosen else ())
    return Decision(offload_parts(chosen, head=preview.head, tail=preview.tail))


def large_preview(policy: CompactionPolicy) -> Preview:
    """Return the size of the previews for large results."""
    return Preview(policy.preview_head, policy.preview_tail, 0)


WORTH_IT = 2_000
"""Minimum bytes of a part that is worth shortening."""


class _Weight(NamedTuple):
    """A size of a request in another unit than tokens, with its limit."""

    now: int
    limit: int
    worth: int
    """Minimum saving of a part that is worth shortening."""
    of_block: Callable[[Block], int]

    @property
    def is_heavy(self) -> bool:
        """True if the request has more than allowed."""
        return self.now > self.limit


def _weights(now: Measured) -> tuple[_Weight, _Weight]:
    limits = now.plain
    return (
        _Weight(now.bytes, limits.byte_limit, WORTH_IT, byte_size),
        _Weight(now.images, limits.image_limit, 1, count_images),
    )


def is_heavy(now: Measured) -> bool:
    """Return whether the request has more bytes, or more images and documents, than allowed."""
    return any(weight.is_heavy for weight in _weights(now))


def lighten(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """Reduce the bytes, or the images and documents, of a request that has too many, to half the limit.

    So the next messages do not exceed the limit again. Oldest content goes first. Content that the model
    has not answered yet stays, unless the request cannot be sent with it.
    """
    done = record(core, thread_id, partial(_lighten, core, budget))
    # With too many of both, the images are counted again without those that took the bytes.
    return done.plus(record(core, thread_id, partial(_lighten, core, budget)))


def _lighten(core: Core, budget: Budget, loaded: LoadedConversation) -> Decision:
    now = measure_as(core, loaded, budget)
    weight = next((one for one in _weights(now) if one.is_heavy), None)
    if weight is None:
        return Decision()
    preview = large_preview(core.settings.policy)
    found = tool_parts(core, loaded, preview, sides=TOOLS | SAID, size=weight.of_block)
    parts = [p for p in found if p.freed >= weight.worth and (p.side in TOOLS or p.blind)]
    fresh = first_unread(loaded.state)
    older = choose_fewest([p for p in parts if p.position < fresh], weight.now - weight.limit // 2)
    missing = weight.now - sum(p.freed for p in older) - weight.limit
    newer = choose_fewest([p for p in parts if p.position >= fresh], missing)
    return Decision(tuple(_shown_as(core, loaded, (*older, *newer), preview)))


def _shown_as(
    core: Core, loaded: LoadedConversation, chosen: Sequence[ToolPart], preview: Preview
) -> Iterator[Event]:
    """Yield the events that show tool content as previews, and what the user showed as markers."""
    tools = [p for p in chosen if p.side in TOOLS]
    if tools:
        shown = name_tool_parts(decide_parts(core, loaded, tools, preview))
        events = offload_parts(shown, head=preview.head, tail=preview.tail)
        loaded = loaded.after(events)
        yield from events
    said = [p for p in chosen if p.side not in TOOLS]
    if said:
        users = name_user_parts(decide_parts(core, loaded, said, preview))
        yield build_in_order(UserContentShortened, parts=users, head=0, tail=0)
