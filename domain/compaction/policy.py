"""The compaction policy: when a context is made smaller, and to what size."""

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field, ValidationError

from refold.domain.errors import InvalidSetting
from refold.domain.value import Value

TIERS = ("summary_tier", "condensed_tier", "whole_tier")
"""Shares of one budget: at most the whole of it together."""
ROUNDING = 1e-9


class CompactionPolicy(Value, frozen=True):
    """Settings of compaction. Shares are fractions of the context window unless they say otherwise."""

    if not TYPE_CHECKING:  # Type checkers know the fields; this would hide them.

        def __init__(self, **fields: Any) -> None:
            """Make a policy; a field that cannot be is an ``InvalidSetting`` that names it."""
            if type(self) is not CompactionPolicy:
                super().__init__(**fields)
                return
            for name, value in fields.items():
                if isinstance(value, bool):  # Python takes True for 1.
                    raise _refused(name, value, "a number")
            try:
                super().__init__(**fields)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                name = str(first["loc"][0])
                raise _refused(name, first["input"], first["msg"]) from None
            _refuse_tiers({name: getattr(self, name) for name in TIERS if name in fields})

        # What is stored is validated past it.
        __init__.__pydantic_base_init__ = True

    # The table of settings is made from the texts below the fields.
    model_config = ConfigDict(use_attribute_docstrings=True)

    trigger_share: float = Field(default=0.7, gt=0.05, le=1)
    """Compaction starts at this share of the window (requirement A4)."""
    target_share: float = Field(default=0.5, gt=0.05, lt=1)
    """A compaction aims at this share of the room between fixed parts and trigger (invariant 7)."""
    margin_share: float = Field(default=0.1, ge=0, lt=0.5)
    """Left free against errors of the estimate (requirement B2)."""
    reserve_tokens: int = Field(default=16_000, ge=0)
    """Left free for the answer (requirement B2)."""
    reserve_share: float = Field(default=0.125, ge=0, lt=0.9)
    """The reserve is never more than this share, so that small windows keep room for a conversation."""
    keep_last: int = Field(default=5, ge=1)
    """A compaction on demand keeps this many of the newest messages (requirement D3), any other one
    does where the target allows; a conversation with no more is left as it is (requirement D8)."""
    keep_tokens: int = Field(default=0, ge=0)
    """A compaction keeps at least so many tokens of the newest messages, where the target allows."""
    keep_turns: int = Field(default=0, ge=0)
    """A compaction keeps so many of the newest turns whole, where the target allows; the running turn
    is one of them."""
    whole_turn_share: float = Field(default=0.5, ge=0, le=1)
    """A compaction cuts between turns where that keeps at least this share of the newest tokens that
    a cut inside a turn would keep; else it cuts inside a turn."""

    summary_tier: float = Field(default=0.10, gt=0, lt=1)
    """Tier 1: a summary aims at no more than this share of the budget (requirement B3); the ledger
    beside it has a share of its own, ``ledger_share``."""
    condensed_tier: float = Field(default=0.35, ge=0, lt=1)
    """Tier 2: condensed messages take at most this share of the budget (requirement B4)."""
    whole_tier: float = Field(default=0.55, gt=0, lt=1)
    """Tier 3: the newest messages stay whole within this share of the budget (requirement B5). The three
    tiers are at most 1 together."""
    whole_last: int = Field(default=10, ge=1)
    """Tier 3: so many of the newest messages stay whole (requirement B5)."""

    offload_tokens: int = Field(default=1_000, ge=50)
    """A tool result or input over this size is large: it can be shown as a preview (requirement D1)."""
    giant_share: float = Field(default=0.25, gt=0, le=1)
    """A tool result over this share of the room below the trigger is shown as a preview at once."""
    enough_freed_tokens: int = Field(default=15_000, ge=0)
    """Where offloading frees so much and the rest is under the trigger, nothing is summarised
    (requirement D2); in a small window a share of it, ``enough_freed_share``, is enough."""
    enough_freed_share: float = Field(default=0.1, gt=0, le=1)
    """The same as a share of the window; the smaller of both counts."""
    preview_head: int = Field(default=1_200, ge=100)
    """Characters of a result that its preview shows from the beginning."""
    preview_tail: int = Field(default=400, ge=0)
    """Characters of a result that its preview shows from the end."""
    condensed_characters: int = Field(default=200, ge=0)
    """Characters that a condensed tool result shows (requirement B4)."""
    tiny_preview: int = Field(default=200, ge=50)
    """Characters from the beginning, where nothing else makes the context fit."""

    summary_tokens: int = Field(default=8_000, ge=100)
    """The length a summary aims at (requirement D5)."""
    summary_slack: float = Field(default=1.2, ge=1)
    """A summary is asked to be no longer than its aim times this. A complete one that is longer is
    accepted while the request stays under the trigger and it is smaller than what it stands for
    (requirement D5)."""
    summary_tries: int = Field(default=3, ge=1, le=10)
    """A summariser is asked so often in all while its trouble is one that passes (requirement D6)."""
    repairs: int = Field(default=1, ge=0, le=3)
    """How often a refused summary is asked for again with the reason."""
    most_calls: int = Field(default=24, ge=2, le=1_000)
    """A compaction asks a summariser at most so often, chunks and repairs together, the tries after a
    passing trouble (``summary_tries``) apart; one that would need more is left to code (invariant 7)."""
    request_share: float = Field(default=0.5, gt=0, le=1)
    """Open requests older than the newest are kept word for word up to this share of the target."""

    split_share: float = Field(default=0.5, gt=0, le=1)
    """Where a cut lies in a turn that has more than this share of the window, times ``split_slack``, the
    beginning of the turn is summarised in a text of its own behind that of the turns before it. Else
    all that is covered is summarised in one text, wherever the cut lies (requirement A5)."""
    split_slack: float = Field(default=1.2, ge=1)
    """See ``split_share``."""
    split_prefix_share: float = Field(default=0.4, gt=0, le=1)
    """The share of a turn that is at least summarised where a cut lies in it, if its messages are small
    (requirement A15)."""
    split_prefix_least: float = Field(default=0.15, gt=0, le=1)
    """The same, if its messages are large."""

    chunk_share: float = Field(default=0.4, gt=0, le=1)
    """A summariser gets this share of its window at once (requirement C6)."""
    chunk_least: float = Field(default=0.15, gt=0, le=1)
    """The same, if messages are large: over ``chunk_large`` of its window on average."""
    chunk_large: float = Field(default=0.1, gt=0, le=1)
    """See ``chunk_least``."""
    chunk_slack: float = Field(default=1.2, ge=1)
    """Sizes are multiplied by this before they are compared with the summariser's window."""
    oversized_share: float = Field(default=0.5, gt=0, le=1)
    """A message over this share of the summariser's window is left out of it (requirement C7)."""

    rebuild_after: int = Field(default=5, ge=1)
    """A summary is built anew after it was carried over so many times: from all texts that a model wrote
    before, and from extracts by code where code wrote them."""
    rebuild_over_share: float = Field(default=1.5, ge=1)
    """A summary longer than this share of the length that is asked for is built anew at the next
    compaction, from the texts that were written before (requirement B8)."""
    rebuild_over_tokens: int | None = Field(default=None, ge=0)
    """The same as a fixed length; where it is set, ``rebuild_over_share`` does not count."""
    leaf_tokens: int = Field(default=1_000, ge=50)
    """The length of a leaf summary: an extract by code of what a compaction covered first."""

    ledger_share: float = Field(default=0.10, ge=0, le=0.5)
    """The ledger takes at most this share of the budget."""
    ledger_tokens: int = Field(default=6_000, ge=0)
    """The ledger takes at most so many tokens."""
    failures_kept: int = Field(default=8, ge=0)
    """Tool failures in the ledger (requirement A13)."""
    failure_characters: int = Field(default=240, ge=40)
    """Characters of each (requirement A13)."""

    first_summary_after: int | None = Field(default=None, ge=1)
    """No summary is made while a conversation has no more messages than this (30 is a good number), but
    on demand, or where a request would not fit without one. None: however few there are (requirement
    B15)."""
    archive_over: int | None = Field(default=None, ge=10)
    """A compaction is due as well when a conversation has more live messages than this; it then keeps
    ``archive_buffer`` fewer (requirement B7 says 200). None: only when the context grows too large."""
    archive_buffer: int = Field(default=20, ge=0)
    """See ``archive_over`` (requirement B7)."""
    topics_kept: int = Field(default=40, ge=0)
    """Topics of a conversation that a summary keeps count of (requirement B9)."""
    topics_shown: int = Field(default=12, ge=0)
    """Topics that are named beside a summary (requirement B3)."""

    lease_seconds: int = Field(default=600, ge=1)
    """A compaction that was requested longer ago than this, without an end, counts as abandoned."""
    retry_growth: float = Field(default=0.02, gt=0, le=0.2)
    """After a failure the context must grow by this share of the window before a summariser is asked
    again; by five times as much while the breaker is open, and after a compaction (invariant 7)."""
    breaker_after: int = Field(default=3, ge=1)
    """After so many failures in a row the circuit breaker opens."""


def _refuse_tiers(given: Mapping[str, float]) -> None:
    """Refuse tiers that are more than the whole, whatever those are that were not given."""
    if sum(given.values()) > 1 + ROUNDING:
        said = " + ".join(f"{name} = {value}" for name, value in given.items())
        raise InvalidSetting(
            f"CompactionPolicy: {said}: must be at most 1 together",
            setting=next(iter(given)),
            value=sum(given.values()),
        )


def _refused(name: str, value: object, problem: str) -> InvalidSetting:
    known = CompactionPolicy.model_fields
    if name not in known:
        alike = difflib.get_close_matches(name, list(known), n=1)
        hint = f" (did you mean {alike[0]}?)" if alike else ""
        message = f"CompactionPolicy has no field {name!r}{hint}"
    else:
        said = problem.removeprefix("Input should be ")
        message = f"CompactionPolicy: {name} = {str(value)[:80]!r}: must be {said}"
    return InvalidSetting(message, setting=name, value=value)
