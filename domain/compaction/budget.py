"""The token budget of requests, the room for summary and ledger, and the rules for archiving old messages."""

from typing import NamedTuple

from refold.domain.conversation import Conversation
from refold.domain.value import Value, build_unvalidated, replace

from .policy import CompactionPolicy
from .summary_rules import ExpectedLength


def live_messages(state: Conversation) -> int:
    """Return the number of live messages, including those that are only counted."""
    return len(state.live) + state.older_live


def archives_over(policy: CompactionPolicy) -> int | None:
    """Return the number of live messages above which the oldest are archived, or None for no limit."""
    return policy.archive_over


def archiving_leaves(policy: CompactionPolicy) -> int | None:
    """Return the number of live messages that archiving leaves at most, or None if there is no limit.

    It is below the limit by ``archive_buffer``, so that archiving is not due again at once.
    """
    if policy.archive_over is None:
        return None
    return max(1, policy.archive_over - policy.archive_buffer)


def may_archive(state: Conversation, policy: CompactionPolicy) -> bool:
    """Return whether archiving is due.

    This needs too many live messages, and enough new ones since the last compaction or failure. Otherwise
    compaction would run again and again without gain: the legal cuts may leave more messages than
    intended, or the summariser may fail. The next try waits for ``archive_buffer`` new messages, or for
    five times as many while the circuit breaker is open.
    """
    most = archives_over(policy)
    if most is None or live_messages(state) <= most:
        return False
    return state.length >= archives_again_at(state, policy)


def archives_again_at(state: Conversation, policy: CompactionPolicy) -> int:
    """Return the conversation length from which archiving may run again."""
    step = max(1, policy.archive_buffer)
    if state.setbacks.count:
        steps = 5 if state.setbacks.count >= policy.breaker_after else 1
        return state.setbacks.length + steps * step
    return state.summary.at_length + step if state.summary else 0


SHORTEST_SUMMARY = 150
"""Minimum length of a summary in tokens. A shorter text cannot cover both requests and results."""


class InstructionFileSize(Value, frozen=True):
    """The size of one instruction file in every request."""

    name: str
    """Path of the file, as given."""
    tokens: int
    """Tokens of the rendered text with its heading; 0 if the file is skipped."""
    cut: int = 0
    """Number of characters that are not shown."""
    skipped: str = ""
    """Reason for skipping the file, or an empty string."""


class Budget(Value, frozen=True):
    """Sizes that a request must respect. All are tokens except ``byte_limit``, ``fixed_bytes`` and ``image_limit``.

    ``fixed`` is the size of the parts in every request: system text with instruction files, and tools.
    """

    window: int
    margin: int
    reserve: int
    fixed: int
    limit: int
    """Largest request that may be sent: window - margin - reserve."""
    trigger: int
    """Size of a request that makes a compaction due."""
    target: int
    """Size that a compaction aims for."""
    summary_overhead: int = 0
    """Tokens of a summary in addition to its text."""
    instructions: int = 0
    """Part of ``fixed`` that instruction files use."""
    recalls: bool = False
    """Whether requests offer the recall tool."""
    byte_limit: int = 32_000_000
    """Maximum size of a request body in bytes."""
    fixed_bytes: int = 0
    """Bytes of system text and tools."""
    image_limit: int = 600
    """Maximum number of images and documents in a request."""
    instruction_files: tuple[InstructionFileSize, ...] = ()
    """All instruction files in the given order, including skipped ones."""

    def tightened(self, share: float) -> "Budget":
        """Return the budget with limit, trigger and target multiplied by ``share``."""
        return replace(
            self,
            limit=int(self.limit * share),
            trigger=int(self.trigger * share),
            target=int(self.target * share),
        )

    def carrying(self, extra: int) -> "Budget":
        """Return the budget for requests with ``extra`` more fixed tokens."""
        return replace(self, fixed=self.fixed + extra)

    @property
    def conversation(self) -> int:
        """Tokens below the limit for summary, ledger and messages. The tiers are shares of this number."""
        return max(0, self.limit - self.fixed)

    @property
    def room(self) -> int:
        """Tokens below the trigger for summary and messages."""
        return max(0, self.trigger - self.fixed)


def budget_for(
    window: int,
    fixed: int,
    policy: CompactionPolicy,
    *,
    summary_overhead: int = 0,
    instructions: int = 0,
    recalls: bool = False,
    instruction_files: tuple[InstructionFileSize, ...] = (),
) -> Budget:
    """Return the budget for requests to a model with a context window of ``window`` tokens.

    Each request has ``fixed`` tokens of system text and tools, of which ``instructions`` are from
    ``instruction_files``.
    """
    margin = int(window * policy.margin_share)
    reserve = min(policy.reserve_tokens, int(window * policy.reserve_share))
    limit = max(0, window - margin - reserve)
    trigger = min(int(window * policy.trigger_share), limit)
    target = fixed + int(max(0, trigger - fixed) * policy.target_share)
    return build_unvalidated(
        Budget,
        window=window,
        margin=margin,
        reserve=reserve,
        fixed=fixed,
        limit=limit,
        trigger=trigger,
        target=target,
        summary_overhead=summary_overhead,
        instructions=instructions,
        recalls=recalls,
        instruction_files=instruction_files,
    )


def summary_target(budget: Budget, policy: CompactionPolicy) -> int:
    """Return the length in tokens that a summary should aim for."""
    tier = int(budget.conversation * policy.summary_tier)
    return max(SHORTEST_SUMMARY, min(policy.summary_tokens, tier))


def ledger_target(budget: Budget, policy: CompactionPolicy) -> int:
    """Return the maximum size of the ledger in tokens."""
    return min(policy.ledger_tokens, int(budget.conversation * policy.ledger_share))


LARGEST_INDEX = 0.25
"""Largest share of the budget for the index, if the summary and the ledger leave room."""


def index_target(budget: Budget, policy: CompactionPolicy) -> int:
    """Return the maximum size of the index in tokens, where it does not use room that others left."""
    return min(policy.index_tokens, int(budget.conversation * policy.index_share))


def most_index(budget: Budget, policy: CompactionPolicy) -> int:
    """Return the maximum size of the index in tokens, where it also uses room that others left."""
    if not index_target(budget, policy):
        return 0
    share = max(policy.index_share, LARGEST_INDEX)
    return min(policy.index_tokens, int(budget.conversation * share))


NEWEST_SHARE = 0.07
"""Share of the budget that the index leaves to the newest messages.

On recorded sessions at a budget of 10 %, 0.12 cost 4 points of the paths that were used again, and 0.06 one point.
"""


class ReservedRoom(NamedTuple):
    """Tokens reserved for a summary and what is rendered with it."""

    text: int
    beside: int
    """Tokens of the ledger, the index and the rendered topics."""


def reserve_room(
    budget: Budget, policy: CompactionPolicy, expected: ExpectedLength | None = None
) -> ReservedRoom:
    """Return the room to reserve for the expected summary, or for the longest one if ``expected`` is None.

    The text may be longer than expected by ``summary_slack``, and the rest by half. A text always gets
    at least half of its target length; otherwise one short summary would make all later ones short.
    """
    aim = summary_target(budget, policy)
    longest = int(aim * policy.summary_slack)
    if expected is None:
        return ReservedRoom(longest, _room_of_ledger_and_index(budget, policy, longest))
    text = max(aim // 2, SHORTEST_SUMMARY, int(expected.text * policy.summary_slack))
    text = min(longest, text)
    beside = max(0, expected.beside - budget.summary_overhead) * 3 // 2
    return ReservedRoom(text, min(_room_of_ledger_and_index(budget, policy, text), beside))


def _room_of_ledger_and_index(budget: Budget, policy: CompactionPolicy, text: int) -> int:
    """Return the most tokens of ledger and index that leave room for the newest messages."""
    ledger, index = ledger_target(budget, policy), index_target(budget, policy)
    newest = int(budget.conversation * NEWEST_SHARE)
    left = budget.target - budget.fixed - budget.summary_overhead - text - newest
    return min(ledger + index, max(ledger, left))


def request_allowance(budget: Budget, policy: CompactionPolicy) -> int:
    """Return the tokens of open requests, besides the newest, that are kept word for word.

    They come before the index.
    """
    without_index = replace(policy, index_share=0.0)
    return int(kept_target(budget, without_index) * policy.request_share)


def kept_target(
    budget: Budget, policy: CompactionPolicy, expected: ExpectedLength | None = None
) -> int:
    """Return the maximum tokens of messages and pinned texts that may stay.

    This is the target minus the expected summary, its heading, ledger and index, and at most the sum of the
    tiers for condensed and whole messages.
    """
    aside = reserve_room(budget, policy, expected)
    left = budget.target - budget.fixed - budget.summary_overhead - aside.text - aside.beside
    tiers = budget.conversation * (policy.condensed_tier + policy.whole_tier)
    return max(0, min(left, int(tiers)))


def least_size(state: Conversation, budget: Budget, *, texts_shortened: bool = False) -> int:
    """Return the minimum size of the request without the last rung.

    It has fixed parts, pins and user content since the model's last answer. With ``texts_shortened`` that
    user content is not counted.
    """
    pinned, size = state.pinned_positions, budget.fixed + sum(pin.tokens for pin in state.pins)
    unanswered = not texts_shortened
    for message in reversed(state.live):
        unanswered = unanswered and message.role != "assistant"
        if message.position in pinned or (unanswered and not message.results):
            size += message.tokens - message.thinking
    return size


def is_out_of_reach(state: Conversation, budget: Budget, *, texts_shortened: bool = False) -> bool:
    """Return whether the minimum size does not fit; summaries would then be useless."""
    return least_size(state, budget, texts_shortened=texts_shortened) > budget.limit
