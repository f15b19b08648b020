"""Archiving: when a conversation has so many messages that the oldest are summarised, whatever their size."""

from typing import NamedTuple

from refold.domain.conversation import Conversation
from refold.domain.value import Value, replace

from .policy import CompactionPolicy
from .summary_rules import Expected


def live_messages(state: Conversation) -> int:
    """How many messages no summary covers, those that are only counted among them."""
    return len(state.live) + state.older_live


def archives_over(policy: CompactionPolicy) -> int | None:
    """With more live messages than so many the oldest are archived; None: however many there are."""
    return policy.archive_over


def archiving_leaves(policy: CompactionPolicy) -> int | None:
    """At most so many live messages are left then: the buffer below, so that it is not due again at once."""
    if policy.archive_over is None:
        return None
    return max(1, policy.archive_over - policy.archive_buffer)


def may_archive(state: Conversation, policy: CompactionPolicy) -> bool:
    """Whether there are so many live messages, and enough new ones since the last compaction, or the
    last failure (requirement B7).

    The guard of ``may_compact`` by number: where the cuts that are legal leave more than was asked for,
    or a summariser fails, nothing is tried again before the buffer has filled once more, or five times
    while the circuit breaker is open.
    """
    most = archives_over(policy)
    if most is None or live_messages(state) <= most:
        return False
    return state.length >= archives_again_at(state, policy)


def archives_again_at(state: Conversation, policy: CompactionPolicy) -> int:
    """The length of the conversation from which on it is archived again, if it has too many messages."""
    step = max(1, policy.archive_buffer)
    if state.setbacks.count:
        steps = 5 if state.setbacks.count >= policy.breaker_after else 1
        return state.setbacks.length + steps * step
    return state.summary.at_length + step if state.summary else 0


SHORTEST_SUMMARY = 150
"""Tokens below which no summary is asked for: less cannot say what was asked and what was done."""


class InstructionFileSize(Value, frozen=True):
    """What one instruction file takes of every request."""

    name: str
    """The path that was given."""
    tokens: int
    """Of its text as it is shown, with the heading above it; 0 where it is skipped."""
    cut: int = 0
    """How many of its characters are not shown."""
    skipped: str = ""
    """Why nothing of it is shown; empty where something is."""


class Budget(Value, frozen=True):
    """All figures but two are tokens. ``fixed`` is what every request carries: system text, with instruction
    files, and tools.
    """

    window: int
    margin: int
    reserve: int
    fixed: int
    limit: int
    """The largest request that may be sent: window - margin - reserve (requirement B2)."""
    trigger: int
    """A request of this size makes a compaction due (requirement A4)."""
    target: int
    """The size that a compaction aims at."""
    summary_overhead: int = 0
    """What a summary costs besides its text."""
    instructions: int = 0
    """Of ``fixed``, what instruction files take."""
    recalls: bool = False
    """Whether these requests carry the tool that recalls what is no longer shown."""
    byte_limit: int = 32_000_000
    """The most bytes that the body of a request may have."""
    fixed_bytes: int = 0
    """Of these, what system text and tools take."""
    instruction_files: tuple[InstructionFileSize, ...] = ()
    """Each of them, in the order in which they were given; those that are skipped as well."""

    def tightened(self, share: float) -> "Budget":
        """The same budget with every size that is aimed at reduced to ``share`` of itself."""
        return replace(
            self,
            limit=int(self.limit * share),
            trigger=int(self.trigger * share),
            target=int(self.target * share),
        )

    def carrying(self, extra: int) -> "Budget":
        """The same budget for requests that carry ``extra`` tokens more besides their messages."""
        return replace(self, fixed=self.fixed + extra)

    @property
    def conversation(self) -> int:
        """What the limit leaves for summary, ledger and messages: the tiers are shares of it."""
        return max(0, self.limit - self.fixed)

    @property
    def room(self) -> int:
        """What the trigger leaves for summary and messages."""
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
    """The budget of requests to a model with ``window`` tokens that all carry ``fixed`` tokens, of which
    ``instructions`` are of ``instruction_files``.
    """
    margin = int(window * policy.margin_share)
    reserve = min(policy.reserve_tokens, int(window * policy.reserve_share))
    limit = max(0, window - margin - reserve)
    trigger = min(int(window * policy.trigger_share), limit)
    target = fixed + int(max(0, trigger - fixed) * policy.target_share)
    return Budget(
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
    """The length, in tokens, that a summary should aim at within this budget (requirement B3)."""
    tier = int(budget.conversation * policy.summary_tier)
    return max(SHORTEST_SUMMARY, min(policy.summary_tokens, tier))


def ledger_target(budget: Budget, policy: CompactionPolicy) -> int:
    """The tokens that the ledger may take within this budget."""
    return min(policy.ledger_tokens, int(budget.conversation * policy.ledger_share))


class SetAside(NamedTuple):
    """The room that a summary needs beside the messages that stay, in tokens."""

    text: int
    ledger: int
    """With the topics that are named."""


def set_aside(
    budget: Budget, policy: CompactionPolicy, expected: Expected | None = None
) -> SetAside:
    """Return the room to set aside: for what is expected, or for the longest that is asked for.

    A text may be longer than expected by ``summary_slack``, a ledger by half. Whatever is expected, a
    text has room for half of the length that is aimed at: else one short summary would make all later
    ones short.
    """
    aim = summary_target(budget, policy)
    longest, most = int(aim * policy.summary_slack), ledger_target(budget, policy)
    if expected is None:
        return SetAside(longest, most)
    text = max(aim // 2, SHORTEST_SUMMARY, int(expected.text * policy.summary_slack))
    ledger = max(0, expected.beside - budget.summary_overhead) * 3 // 2
    return SetAside(min(longest, text), min(most, ledger))


def kept_target(budget: Budget, policy: CompactionPolicy, expected: Expected | None = None) -> int:
    """The tokens of messages and pinned texts that may stay, so that all together meet the target.

    What is left beside the summary that is expected, its heading and the ledger; and no more than the
    tiers of condensed and whole messages hold together (requirements B4, B5).
    """
    aside = set_aside(budget, policy, expected)
    left = budget.target - budget.fixed - budget.summary_overhead - aside.text - aside.ledger
    tiers = budget.conversation * (policy.condensed_tier + policy.whole_tier)
    return max(0, min(left, int(tiers)))
