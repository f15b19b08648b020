"""Cut planning: one rule a file gives the set of legal cuts; the planner intersects them and chooses.

A cut at position p means: what lies before p may be covered, p and what follows stays. ``KEPT`` names
what is not covered even where the cut lies behind it.
"""

from . import (
    beyond_summary,
    model_response,
    newest_message,
    pending_calls,
    pinned_messages,
    running_requests,
    tool_pairs,
    unanswered_messages,
)
from .rule import CutRule, KeepRule

RULES: tuple[CutRule, ...] = (
    beyond_summary.RULE,
    newest_message.RULE,
    tool_pairs.RULE,
    pending_calls.RULE,
    unanswered_messages.RULE,
    model_response.RULE,
)
KEPT: tuple[KeepRule, ...] = (pinned_messages.RULE, running_requests.RULE)
