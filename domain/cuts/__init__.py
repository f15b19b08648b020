"""Cut planning. Each rule is a module that gives the legal cuts; the planner intersects them and chooses.

A cut at position p means that messages before p may be covered, and that p and later messages stay.
``KEPT`` has the rules for messages that stay even if they are before the cut.
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
