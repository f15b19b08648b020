"""Cut planning: one rule a file gives the set of legal cuts; the planner intersects them and chooses.

A cut at position p means: what lies before p may be covered, p and what follows stays. ``KEPT`` names
what is not covered even where the cut lies behind it.
"""

from . import (
    beyond_summary,
    model_response,
    newest_message,
    open_requests,
    pending_calls,
    pinned_messages,
    tool_pairs,
    unanswered_messages,
)
from .rule import CutRule, StayRule

RULES: tuple[CutRule, ...] = (
    beyond_summary.RULE,
    newest_message.RULE,
    tool_pairs.RULE,
    pending_calls.RULE,
    unanswered_messages.RULE,
    model_response.RULE,
)
KEPT: tuple[StayRule, ...] = (pinned_messages.RULE, open_requests.RULE)
