"""The figures of several policies side by side, as ``refold simulate`` shows them."""

from pathlib import Path

from refold.application.recordings.simulating import Simulated, Simulation
from refold.application.recordings.transcripts import Transcript

from .output import Cell, clean, console, say, show_table


def show_comparison(file: Path, transcript: Transcript, done: Simulation, *, full: bool) -> None:
    """Print the figures of each policy; briefly where they do not fit beside each other."""
    title = f"{clean(file.name)}: {clean(done.thread_id)}, {done.messages:,} messages"
    at_once = max(1, (console.width - _HEADINGS_WIDTH) // _COLUMN_WIDTH)
    if len(done.policies) > at_once and not full:
        _tell_briefly(title, done)
    else:
        _tell_all(title, done, at_once)
    _tell_beside(transcript, done)


def _tell_briefly(title: str, done: Simulation) -> None:
    """A line for each policy, with what decides between them: it fits where all figures do not."""
    columns = [
        "policy",
        f"{clean(done.currency)}#",
        "compacted#",
        "sent#",
        "cached#",
        "words kept#",
        "largest#",
    ]
    rows = [
        (
            clean(policy.name),
            f"{policy.cost:,.2f}",
            policy.compactions,
            _short(policy.tokens_sent),
            f"{policy.tokens_served / max(1, policy.tokens_sent):.0%}",
            f"{policy.kept.user_words:.0%}",
            _short(policy.figures.largest_request),
        )
        for policy in done.policies
    ]
    fitting = len(columns) if console.width >= _BRIEF_WIDTH else 5
    show_table(title, columns[:fitting], [row[:fitting] for row in rows])
    say(
        "Sent: tokens of all requests, of which a prompt cache serves a share. Words kept: of what the user "
        "said in covered messages, how much is there word for word."
    )
    say("Every figure: --full, or --json.")


def _short(tokens: int) -> str:
    """A number of tokens with three digits."""
    if tokens < 100_000:
        return f"{tokens:,}"
    return f"{tokens / 1_000:,.0f}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:,.1f}M"


def _tell_all(title: str, done: Simulation, at_once: int) -> None:
    for first in range(0, len(done.policies), at_once):
        some = done.policies[first : first + at_once]
        columns = ["figure", *(f"{clean(policy.name)}#" for policy in some)]
        figures = [_column(policy, done.currency) for policy in some]
        show_table(title if not first else "", columns, list(zip(_HEADINGS, *figures, strict=True)))


def _tell_beside(transcript: Transcript, done: Simulation) -> None:
    """What is to be known of the figures."""
    if len(transcript.conversations) > 1:
        say(
            f"The file has {len(transcript.conversations):,} conversations; --conversation ID "
            "chooses another."
        )
    for policy in done.policies:
        for reason, count in policy.failures.items():
            say(
                f"  [yellow]compaction failed[/yellow] under {clean(policy.name)}: {count:,} × "
                f"{clean(reason)}"
            )
    entries = ", ".join(dict.fromkeys(entry for p in done.policies for entry in p.priced_as))
    lives = (
        f"forgets what was not used for {done.cache_seconds:,} s"
        if done.cache_seconds
        else "never forgets"
    )
    say(
        f"Prices of {clean(entries)} as of {done.prices_as_of}; they change: pass yours with --prices "
        f"FILE. Tokens are estimates. It is assumed that the cache {lives}."
    )


_HEADINGS = (
    "trigger / limit, tokens",
    "requests",
    "requests not made: too much must be shown",
    "requests over budget",
    "compactions",
    "  of these: turns divided",
    "  of these: built anew",
    "compactions failed",
    "decisions to offload / to condense",
    "largest request, tokens",
    "tokens sent",
    "  served by a prompt cache",
    "  share of that",
    "  written to it",
    "tokens answered",
    "summariser: calls of a model / tokens",
    "cost",
    "cost without a prompt cache",
    "at the end: messages full / condensed / offloaded",
    "  summarised / too large for that",
    "  summary and ledger, tokens",
    "  ledger lines",
    "  user's words word for word",
)
_BRIEF_WIDTH = 76
_HEADINGS_WIDTH = max(map(len, _HEADINGS)) + 4
_COLUMN_WIDTH = 22


def _column(policy: Simulated, currency: str) -> tuple[Cell, ...]:
    fates = policy.kept.messages
    whole = sum(fates.get(fate, 0) for fate in ("full", "pinned", "protected", "preamble"))
    return (
        f"{policy.trigger:,} / {policy.limit:,}",
        policy.figures.requests,
        policy.figures.requests_refused,
        policy.figures.requests_over_budget,
        policy.compactions,
        policy.splits,
        policy.rebuilds,
        sum(policy.failures.values()),
        f"{policy.offloads:,} / {policy.condensings:,}",
        policy.figures.largest_request,
        policy.tokens_sent,
        policy.tokens_served,
        f"{policy.tokens_served / max(1, policy.tokens_sent):.1%}",
        policy.tokens_written,
        policy.tokens_answered,
        f"{policy.summariser_calls:,} / {policy.summariser_tokens:,}",
        f"{policy.cost:,.2f} {clean(currency)}",
        f"{policy.cost_without_cache:,.2f} {clean(currency)}",
        f"{whole:,} / {fates.get('condensed', 0):,} / {fates.get('offloaded', 0):,}",
        f"{fates.get('summarised', 0):,} / {fates.get('omitted', 0):,}",
        policy.kept.summary_tokens,
        policy.kept.ledger_lines,
        f"{policy.kept.user_words:.1%}",
    )
