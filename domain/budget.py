"""The budget of a request: how many tokens a context window leaves for the conversation."""

from .policy import CompactionPolicy
from .value import Value

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
    """All figures are tokens. ``fixed`` is what every request carries: system text, with instruction
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
    instruction_files: tuple[InstructionFileSize, ...] = ()
    """Each of them, in the order in which they were given; those that are skipped as well."""

    def tightened(self, share: float) -> "Budget":
        """The same budget with every size that is aimed at reduced to ``share`` of itself."""
        return self.replaced(
            limit=int(self.limit * share),
            trigger=int(self.trigger * share),
            target=int(self.target * share),
        )

    def carrying(self, extra: int) -> "Budget":
        """The same budget for requests that carry ``extra`` tokens more besides their messages."""
        return self.replaced(fixed=self.fixed + extra)

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
        instruction_files=instruction_files,
    )


def summary_target(budget: Budget, policy: CompactionPolicy) -> int:
    """The length, in tokens, that a summary should aim at within this budget (requirement B3)."""
    tier = int(budget.conversation * policy.summary_tier)
    return max(SHORTEST_SUMMARY, min(policy.summary_tokens, tier))


def ledger_target(budget: Budget, policy: CompactionPolicy) -> int:
    """The tokens that the ledger may take within this budget."""
    return min(policy.ledger_tokens, int(budget.conversation * policy.ledger_share))


def kept_target(budget: Budget, policy: CompactionPolicy) -> int:
    """The tokens of messages and pinned texts that may stay, so that all together meet the target.

    What is left beside the longest summary that is accepted, its heading and the ledger; and no more
    than the tiers of condensed and whole messages hold together (requirements B4, B5).
    """
    beside = int(summary_target(budget, policy) * policy.summary_slack) + budget.summary_overhead
    left = budget.target - budget.fixed - beside - ledger_target(budget, policy)
    tiers = budget.conversation * (policy.condensed_tier + policy.whole_tier)
    return max(0, min(left, int(tiers)))
