"""Open a memory with every kind of option."""

from datetime import UTC, datetime
from pathlib import Path

import refold


def told(result: refold.CompactionResult) -> None:
    """A callback for compactions."""
    print(result.outcome, result.tokens_after)


def with_settings() -> refold.Memory:
    """Options by name; None leaves the choice to the environment."""
    return refold.open(
        Path("agent.db"),
        window=32_000,
        model=None,
        summariser="extractive",
        embedder="none",
        recall_mode="hybrid",
        notes="ledger",
        instruction_files=["AGENTS.md", Path("more.md")],
        encryption_key=bytes(32),
        on_compaction=told,
        clock=lambda: datetime.now(UTC),
        create=True,
    )


def with_policy() -> refold.Memory:
    """A policy whose fields are checked."""
    policy = refold.CompactionPolicy(trigger_share=0.8, keep_last=10, rebuild_over_tokens=None)
    return refold.open("agent.db", policy=policy, policy_file="refold.toml")


def with_kept_options() -> refold.Memory:
    """Options that were put together before."""
    options: refold.Options = {"window": 8_000, "log_level": "WARNING"}
    options["background"] = False
    return refold.open("agent.db", **options)
