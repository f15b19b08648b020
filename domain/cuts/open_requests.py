"""The requests of the running turn stay word for word, even before the cut."""

from refold.domain.turns import protected_requests

from .rule import StayRule

RULE = StayRule(
    "open_requests",
    "all messages that could be covered are requests still in progress",
    protected_requests,
)
