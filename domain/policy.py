"""The compaction policy: when a context is made smaller, and to what size."""

from pydantic import Field

from .value import Value


class CompactionPolicy(Value, frozen=True):
    """Settings of compaction. Shares are fractions of the context window unless they say otherwise."""

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
    """A compaction on demand keeps this many of the newest messages (requirement D3), and a
    conversation with no more than these is left as it is (requirement D8)."""
    summary_tokens: int = Field(default=8_000, ge=100)
    """The length a summary aims at (requirement D5)."""
    summary_share: float = Field(default=0.15, gt=0, le=0.5)
    """A summary aims at no more than this share of the room below the trigger."""
    summary_slack: float = Field(default=1.2, ge=1)
    """A summary longer than its aim times this is refused (requirement D5)."""
    giant_share: float = Field(default=0.25, gt=0, le=1)
    """A tool result over this share of the room below the trigger is shown as a preview."""
    preview_head: int = Field(default=1_200, ge=100)
    """Characters of a result that its preview shows from the beginning."""
    preview_tail: int = Field(default=400, ge=0)
    """Characters of a result that its preview shows from the end."""
    tiny_preview: int = Field(default=200, ge=50)
    """Characters from the beginning, where nothing else makes the context fit."""
    request_share: float = Field(default=0.5, gt=0, le=1)
    """Open requests older than the newest are kept word for word up to this share of the target."""
    lease_seconds: int = Field(default=600, ge=1)
    """A compaction that was requested longer ago than this, without an end, counts as abandoned."""
    retry_growth: float = Field(default=0.02, gt=0, le=0.2)
    """After a failure the context must grow by this share of the window before a summariser is asked
    again; by five times as much after three failures in a row, and after a compaction (invariant 7)."""
