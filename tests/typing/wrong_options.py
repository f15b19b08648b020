"""Options of ``refold.open`` and fields of a policy that a type checker must refuse."""

import refold


def typed(result: str) -> None:
    """A callback for something else."""


def options() -> None:
    """Names and types of options."""
    refold.open()  # error: mypy[call-arg] pyright[reportCallIssue]
    refold.open(7)  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.open("agent.db", windw=8_000)  # error: mypy[call-arg] pyright[reportCallIssue]
    refold.open("agent.db", window="8k")  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.open("agent.db", embedder="usem4")  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.open("agent.db", recall_mode="words")  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.open("agent.db", notes="always")  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.open("agent.db", summary_place="top")  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.open("agent.db", on_compaction=typed)  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.open("agent.db", policy={"keep_last": 4})  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.open("agent.db", create=None)  # error: mypy[arg-type] pyright[reportArgumentType]
    kept: refold.Options = {"windw": 8_000}  # error: mypy[typeddict-unknown-key] pyright[reportAssignmentType]
    refold.open("agent.db", **kept)


def policies() -> None:
    """Names and types of fields; a policy does not change."""
    policy = refold.CompactionPolicy(keep_lst=4)  # error: mypy[call-arg] pyright[reportCallIssue]
    refold.CompactionPolicy(keep_last="four")  # error: mypy[arg-type] pyright[reportArgumentType]
    refold.CompactionPolicy(0.7)  # error: mypy[call-arg] pyright[reportCallIssue]
    policy.keep_last = 5  # error: mypy[misc] pyright[reportAttributeAccessIssue]
