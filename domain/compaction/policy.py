"""The compaction policy: when a context is made smaller, and to what size."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from refold.domain.errors import InvalidSetting
from refold.domain.late_model import Field
from refold.domain.value import Value

TIERS = ("summary_tier", "condensed_tier", "whole_tier")
"""Shares of one budget; their sum is at most 1."""
ROUNDING = 1e-9


class CompactionPolicy(Value, frozen=True):
    """Settings of compaction. Shares are fractions of the context window unless they say otherwise."""

    if not TYPE_CHECKING:  # Hidden from type checkers, which would otherwise not see the fields.

        def __init__(self, **fields: Any) -> None:
            """Create a policy, or raise ``InvalidSetting`` with the name of an invalid field."""
            if type(self) is not CompactionPolicy:
                super().__init__(**fields)
                return
            for name, value in fields.items():
                if isinstance(value, bool):  # Python accepts True as 1.
                    raise _invalid_setting(name, value, "a number")
            try:
                super().__init__(**fields)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                name = str(first["loc"][0])
                raise _invalid_setting(name, first["input"], first["msg"]) from None
            _refuse_tiers({name: getattr(self, name) for name in TIERS if name in fields})

        # Tells pydantic to validate stored policies without calling this method.
        __init__.__pydantic_base_init__ = True

    # The table of settings is generated from the texts below the fields.
    trigger_share: float = Field(default=0.7, gt=0.05, le=1)
    """Compaction starts at this share of the window."""
    target_share: float = Field(default=0.5, gt=0.05, lt=1)
    """A compaction aims for this share of the room between fixed parts and trigger: at most 0.9."""
    margin_share: float = Field(default=0.1, ge=0, lt=0.5)
    """Share of the window that is left free, because sizes are estimates."""
    reserve_tokens: int = Field(default=16_000, ge=0)
    """Tokens that are left free for the answer."""
    reserve_share: float = Field(default=0.125, ge=0, lt=0.9)
    """The reserve is at most this share, so that small windows keep room for a conversation."""
    keep_last: int = Field(default=5, ge=1)
    """A compaction on demand keeps this many of the newest messages, and does nothing if there are no
    more. Other compactions keep them if the target allows it."""
    keep_tokens: int = Field(default=0, ge=0)
    """A compaction keeps at least this many tokens of the newest messages, if the target allows it."""
    keep_turns: int = Field(default=0, ge=0)
    """A compaction keeps this many of the newest turns whole, if the target allows it. The running turn
    counts."""
    whole_turn_share: float = Field(default=0.5, ge=0, le=1)
    """A compaction cuts between turns if that keeps at least this share of the newest tokens that a cut
    inside a turn would keep. Otherwise it cuts inside a turn."""

    summary_tier: float = Field(default=0.10, gt=0, lt=1)
    """Tier 1: the target length of a summary is at most this share of the budget. The ledger has its own
    share, ``ledger_share``."""
    condensed_tier: float = Field(default=0.35, ge=0, lt=1)
    """Tier 2: condensed messages take at most this share of the budget."""
    whole_tier: float = Field(default=0.55, gt=0, lt=1)
    """Tier 3: the newest messages stay whole within this share of the budget. The sum of the three tiers is
    at most 1."""
    whole_last: int = Field(default=10, ge=1)
    """Tier 3: this many of the newest messages stay whole."""

    offload_tokens: int = Field(default=1_000, ge=50)
    """A tool result or input over this size is large: it can be shown as a preview."""
    giant_share: float = Field(default=0.25, gt=0, le=1)
    """A tool result over this share of the room below the trigger is shown as a preview at once."""
    enough_freed_tokens: int = Field(default=15_000, ge=0)
    """No summary is made if offloading frees this many tokens and the request is then under the trigger. In a
    small window ``enough_freed_share`` is enough."""
    enough_freed_share: float = Field(default=0.1, gt=0, le=1)
    """``enough_freed_tokens`` as a share of the window. The smaller of the two applies."""
    preview_head: int = Field(default=1_200, ge=100)
    """Characters of a result that its preview shows from the beginning."""
    preview_tail: int = Field(default=400, ge=0)
    """Characters of a result that its preview shows from the end."""
    condensed_characters: int = Field(default=200, ge=0)
    """Characters that a condensed tool result shows."""
    tiny_preview: int = Field(default=200, ge=50)
    """Characters shown from the beginning if nothing else makes the context fit."""

    summary_tokens: int = Field(default=8_000, ge=100)
    """The target length of a summary."""
    summary_slack: float = Field(default=1.2, ge=1)
    """A summariser is asked for at most the target length times this. A longer complete summary is accepted
    if the request stays under the trigger and the summary is smaller than the messages it replaces."""
    summary_tries: int = Field(default=3, ge=1, le=10)
    """A summariser is called at most this often in total while its failures are temporary."""
    repairs: int = Field(default=1, ge=0, le=3)
    """A refused summary is requested again this often, with the reason."""
    most_calls: int = Field(default=24, ge=2, le=1_000)
    """A compaction calls a summariser at most this often, including chunks and repairs but not retries after
    temporary failures (``summary_tries``). If it would need more calls, code writes the summary."""
    request_share: float = Field(default=0.5, gt=0, le=1)
    """Open requests older than the newest are kept word for word up to this share of the target."""

    split_share: float = Field(default=0.5, gt=0, le=1)
    """If a cut is inside a turn that is larger than this share of the window, the beginning of the turn
    gets a summary of its own. Otherwise there is one summary.
    """
    split_slack: float = Field(default=1.2, ge=1)
    """Tolerance for ``split_share``, which is multiplied by this."""
    split_prefix_share: float = Field(default=0.4, gt=0, le=1)
    """Minimum share of a split turn that is summarised, if its messages are small."""
    split_prefix_least: float = Field(default=0.15, gt=0, le=1)
    """Minimum share of a split turn that is summarised, if its messages are large: at most
    ``split_prefix_share``."""

    chunk_share: float = Field(default=0.4, gt=0, le=1)
    """Share of its window that a summariser gets per call if messages are small."""
    chunk_least: float = Field(default=0.15, gt=0, le=1)
    """Share of its window that a summariser gets per call if messages are large: over ``chunk_large`` of
    its window on average. At most ``chunk_share``.
    """
    chunk_large: float = Field(default=0.1, gt=0, le=1)
    """Messages over this share of the summariser's window, on average, count as large."""
    chunk_slack: float = Field(default=1.2, ge=1)
    """Sizes are multiplied by this before they are compared with the summariser's window."""
    oversized_share: float = Field(default=0.5, gt=0, le=1)
    """A message over this share of the summariser's window is omitted from the summary."""

    rebuild_after: int = Field(default=5, ge=1)
    """A summary is carried over fewer times than this. The next one is rebuilt from the stored texts of all
    earlier compactions: with 5, every fifth summary.
    """
    rebuild_over_share: float = Field(default=1.5, ge=1)
    """A summary is also rebuilt if it is longer than its target length times this."""
    rebuild_over_tokens: int | None = Field(default=None, ge=0)
    """Length in tokens over which a summary is rebuilt. If set, ``rebuild_over_share`` is ignored."""
    leaf_tokens: int = Field(default=1_000, ge=50)
    """The length of a leaf summary: an extract by code of the messages that a compaction newly covered."""

    ledger_share: float = Field(default=0.13, ge=0, le=0.5)
    """The ledger takes at most this share of the budget."""
    ledger_tokens: int = Field(default=6_000, ge=0)
    """The ledger takes at most this many tokens."""
    index_share: float = Field(default=0.20, ge=0, le=0.5)
    """The index of exact values takes at most this share of the budget, and more where the summary and the ledger
    leave room below the target. 0: no index."""
    index_tokens: int = Field(default=12_000, ge=0)
    """The index takes at most this many tokens."""
    failures_kept: int = Field(default=8, ge=0)
    """Number of tool failures in the ledger."""
    failure_characters: int = Field(default=240, ge=40)
    """Number of characters of each tool failure in the ledger."""

    first_summary_after: int | None = Field(default=None, ge=1)
    """No summary is made until a conversation has more messages than this (30 is a good number), except on
    demand or if a request would not fit without one. None: no minimum."""
    archive_over: int | None = Field(default=None, ge=10)
    """A compaction is also due when a conversation has more live messages than this. It then keeps
    ``archive_buffer`` fewer. None: only when the context grows too large."""
    archive_buffer: int = Field(default=20, ge=0)
    """Number of messages that archiving goes below ``archive_over``."""
    topics_kept: int = Field(default=40, ge=0)
    """Number of topics of a conversation that a summary counts."""
    topics_shown: int = Field(default=12, ge=0)
    """Number of topics that are shown with a summary."""

    lease_seconds: int = Field(default=600, ge=1)
    """A compaction that was requested longer ago than this, without an end, counts as abandoned."""
    retry_growth: float = Field(default=0.02, gt=0, le=0.2)
    """After a failure the context must grow by this share of the window before a summariser is called again.
    While the breaker is open, and after a compaction, it must grow by five times as much."""
    breaker_after: int = Field(default=3, ge=1)
    """The circuit breaker opens after this many failures in a row."""


def _refuse_tiers(given: Mapping[str, float]) -> None:
    """Refuse tiers whose sum is over 1. Tiers that were not given are ignored."""
    if sum(given.values()) > 1 + ROUNDING:
        said = " + ".join(f"{name} = {value}" for name, value in given.items())
        raise InvalidSetting(
            f"CompactionPolicy: {said}: must be at most 1 together",
            setting=next(iter(given)),
            value=sum(given.values()),
        )


def _invalid_setting(name: str, value: object, problem: str) -> InvalidSetting:
    import difflib

    known = CompactionPolicy.model_fields
    if name not in known:
        alike = difflib.get_close_matches(name, list(known), n=1)
        hint = f" (did you mean {alike[0]}?)" if alike else ""
        message = f"CompactionPolicy has no field {name!r}{hint}"
    else:
        said = problem.removeprefix("Input should be ")
        message = f"CompactionPolicy: {name} = {str(value)[:80]!r}: must be {said}"
    return InvalidSetting(message, setting=name, value=value)
