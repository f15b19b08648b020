"""Runs the writing of a summary on messages and a plan made by hand."""

import asyncio
from collections.abc import Sequence
from typing import Any

from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.summariser import SourceMessage, Summariser
from refold.application.runtime.core import Core
from refold.application.summaries.summariser_calls import SummariserCalls
from refold.application.summaries.summary import Source, write_summary
from refold.domain.compaction.budget import budget_for
from refold.domain.compaction.summary_rules import Summary
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.events import CompactionPerformed, LeafSummary
from refold.domain.messages import Message

from .builders import coverage, performed
from .fake_ports import core_of
from .fake_summarisers import GoodSummariser


class Scene:
    """One summary of messages from ``start``, after the summary ``before``."""

    def __init__(
        self,
        *messages: Message,
        summariser: Summariser | None = None,
        start: int = 0,
        before: CompactionPerformed | None = None,
        leaves: Sequence[LeafSummary] = (),
        focus: str | None = None,
        core: Core | None = None,
        **plan: Any,
    ) -> None:
        self.summariser = summariser or GoodSummariser()
        self.core = core or core_of(summariser=self.summariser)
        self.source = Source(
            tuple(SourceMessage(position=start + i, message=m) for i, m in enumerate(messages)),
            before,
            tuple(leaves),
            focus,
        )
        fields: dict[str, Any] = {
            "coverage": coverage(start + max(1, len(messages))),
            "covered_tokens": 10_000,
            "kept_tokens": 1_000,
            "target_tokens": 1_000,
            "limit_tokens": 1_200,
        }
        self.plan = CompactionPlan(**{**fields, **plan})
        self.asking = SummariserCalls(self.summariser, self.core.settings.policy)

    def written(self) -> Summary:
        """The summary, accepted.

        Raises:
            SummaryRefused, SummariserError: there is none.
        """
        budget = budget_for(8_000, 0, self.core.settings.policy, summary_overhead=60)
        before = LoadedConversation("t")
        return asyncio.run(
            write_summary(
                self.core, before, self.source, self.plan, budget, self.summariser, self.asking
            )
        )


def recorded(summary: Summary, stop: int, **more: Any) -> CompactionPerformed:
    """The summary as an event that covers up to ``stop``."""
    fields: dict[str, Any] = {
        "text": summary.text,
        "is_split_turn": summary.is_split_turn,
        "split_turn_prefix": summary.split_turn_prefix,
        "split_at": summary.split_at,
        "omitted": summary.omitted,
        "leaf": summary.leaf,
        "block": summary.block,
    }
    return performed(stop, **{**fields, **more})
