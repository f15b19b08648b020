"""What a play showed: the figures for people and for programs."""

from typing import Any

from refold.application.recordings.playing import PlayFigures, combined
from refold.application.recordings.transcripts import Transcript
from refold.application.upkeep.verifying import Verification

from .importing import skipped_counts
from .output import clean, say, show_table
from .watching import Troubles


def as_json(
    transcript: Transcript,
    figures: list[PlayFigures],
    troubles: Troubles,
    verified: Verification,
) -> dict[str, Any]:
    """The figures of all conversations together, of each, and the outcome of verify."""
    return {
        "file": transcript.source,
        "format": transcript.format,
        **combined(figures).model_dump(exclude={"thread_id"}),
        "refused": troubles.refused,
        "failed": troubles.failed,
        "conversations": [f.model_dump() for f in figures],
        "skipped": skipped_counts(transcript),
        "verify": verified.model_dump(),
    }


def show_figures(title: str, total: PlayFigures) -> None:
    """Print the figures of a play as a table; of what was there already there are none."""
    if total.messages and total.messages_known == total.messages:
        say(
            f"{title}: all {total.messages:,} messages were there already. Nothing was played, so there are "
            "no figures; without --db, or with another one, all of it is played."
        )
        return
    rows: list[tuple[str, int | str]] = [
        ("messages", total.messages),
        *_there_already(total),
        ("requests", total.requests),
        ("requests not made: too much must be shown", total.requests_refused),
        ("requests over budget", total.requests_over_budget),
        ("compactions", total.compactions),
        ("  of these: turns divided", total.splits),
        ("  of these: built anew", total.rebuilds),
        ("compactions failed", total.compactions_failed),
        ("tool results offloaded", total.results_offloaded),
        ("older tool results condensed", total.results_condensed),
        ("restarts of the store", total.restarts),
        ("largest request, tokens", total.largest_request),
        ("budget of a request, tokens", total.budget or "–"),
        ("tokens sent", total.tokens_sent),
        ("tokens without compaction", total.tokens_without_compaction),
        ("input in an unchanged prefix", f"{total.unchanged_prefix_share:.1%}"),
        ("append p50 / p99, ms", f"{total.append_p50_ms:.2f} / {total.append_p99_ms:.2f}"),
        ("context p50 / p99, ms", f"{total.context_p50_ms:.2f} / {total.context_p99_ms:.2f}"),
    ]
    show_table(title, ["", "#"], rows)


def _there_already(total: PlayFigures) -> list[tuple[str, int | str]]:
    if not total.messages_known:
        return []
    return [("  of these: there already, not played", total.messages_known)]


def tell_verified(verified: Verification) -> None:
    """Say in one line whether everything follows from the log."""
    if verified.ok:
        say(f"verify: [green]all is well[/green], {verified.events:,} events")
        return
    kinds = sorted({f"{d.place} {d.kind}" for d in verified.damage})
    say(f"verify: [red]damage found[/red]: {clean(', '.join(kinds))}")
