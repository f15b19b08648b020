"""``refold simulate``: replay a conversation under several policies and compare their costs."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from refold.application.conversation.transcripts import RecordedConversation, Transcript
from refold.application.lab import simulating
from refold.application.lab.playing import Played
from refold.application.lab.recorded_summaries import SummaryCompared
from refold.application.lab.simulating import PRESETS, Contestant, Simulated, Simulation
from refold.application.runtime.core import Core
from refold.domain.errors import InvalidSetting, InvalidThreadId
from refold.infrastructure.palette import Theme
from refold.infrastructure.settings.price_table import read_prices

from .chart import MOST_POLICIES, check_chart, draw_chart
from .options import Force, Format, Full, Json, ModelName, SummariserName, Window
from .output import Bar, Cell, clean, console, print_json, progress_bar, say, show_table
from .play_command import read_file


def show_comparison(file: Path, transcript: Transcript, done: Simulation, *, full: bool) -> None:
    """Print the figures of each policy, or a short table if they do not fit side by side."""
    title = f"{clean(file.name)}: {clean(done.thread_id)}, {done.messages:,} messages"
    at_once = max(1, (console.width - _HEADINGS_WIDTH) // _COLUMN_WIDTH)
    if len(done.policies) > at_once and not full:
        _print_short_table(title, done)
    else:
        _print_full_tables(title, done, at_once)
    _print_summaries(done.summaries)
    _print_notes(transcript, done)


def _print_short_table(title: str, done: Simulation) -> None:
    """Print one line per policy with the deciding figures."""
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
        "Sent: tokens of all requests. Cached: the share from a prompt cache. Words kept: the share of the user's "
        "words in covered messages that is kept verbatim."
    )
    say("For all figures use --full or --json.")


def _short(tokens: int) -> str:
    """Format a token count with three digits."""
    if tokens < 100_000:
        return f"{tokens:,}"
    return f"{tokens / 1_000:,.0f}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:,.1f}M"


def _print_full_tables(title: str, done: Simulation, at_once: int) -> None:
    for first in range(0, len(done.policies), at_once):
        some = done.policies[first : first + at_once]
        columns = ["figure", *(f"{clean(policy.name)}#" for policy in some)]
        figures = [_column(policy, done.currency) for policy in some]
        show_table(title if not first else "", columns, list(zip(_HEADINGS, *figures, strict=True)))


def _print_summaries(compared: Sequence[SummaryCompared]) -> None:
    """Print what recorded summaries have of what the session uses again, and what ledger and index add."""
    if not compared:
        return
    rows: list[tuple[Cell, ...]] = []
    for kind in compared[0].reuse:
        own = [one.reuse[kind] for one in compared]
        of = sum(share.of for share in own)
        shares = [
            sum(counts)
            for counts in zip(*((s.summary, s.ledger, s.together) for s in own), strict=True)
        ]
        rows.append((kind, of, *(f"{share / of:.0%}" if of else "–" for share in shares)))
    sizes = [
        sum(one.summary_tokens for one in compared),
        sum(one.ledger_tokens for one in compared),
    ]
    rows.append(("tokens", "", *(f"{size:,}" for size in (*sizes, sum(sizes)))))
    title = f"Recorded summaries: {len(compared)}. Of what the session uses again after them:"
    show_table(title, ["", "used again#", "summary#", "ledger and index#", "together#"], rows)


def _print_notes(transcript: Transcript, done: Simulation) -> None:
    """Print notes on the figures."""
    if len(transcript.conversations) > 1:
        say(
            f"The file has {len(transcript.conversations):,} conversations; --conversation ID "
            "chooses another."
        )
    for policy in done.policies:
        for reason, count in policy.failures.items():
            say(
                f"  [warning]compaction failed[/warning] under {clean(policy.name)}: {count:,} × "
                f"{clean(reason)}"
            )
    entries = ", ".join(dict.fromkeys(entry for p in done.policies for entry in p.priced_as))
    lives = (
        f"forgets entries that were not used for {done.cache_seconds:,} s"
        if done.cache_seconds
        else "never forgets"
    )
    say(
        f"Prices of {clean(entries)} as of {done.prices_as_of}; they may change: pass your own with --prices "
        f"FILE. Token counts are estimates. The cache is assumed to be one that {lives}."
    )


_HEADINGS = (
    "trigger / limit, tokens",
    "requests",
    "requests that could not fit",
    "requests over budget",
    "compactions",
    "  of these: split turns",
    "  of these: rebuilt from originals",
    "compactions failed",
    "decisions to offload / to condense",
    "largest request, tokens",
    "tokens sent",
    "  served by a prompt cache",
    "  cache hit rate",
    "  cache writes",
    "tokens answered",
    "summariser: calls of a model / tokens",
    "cost",
    "cost without a prompt cache",
    "at the end: messages full / condensed / offloaded",
    "  summarised / too large to summarise",
    "  summary and ledger, tokens",
    "  ledger lines",
    "  user text kept verbatim",
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


DEFAULT = "default"
EXAMPLE = (
    "Examples: refold simulate session.jsonl --window 200000 compares the policies that ship with "
    "refold. refold simulate session.jsonl --policy mine.toml --chart sizes.png compares yours with "
    "the default. Nothing is stored."
)
EXAMPLES = {"simulate": EXAMPLE}

Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="FILE|NAME",
        help=f"A TOML file with settings, or {', '.join([DEFAULT, *PRESETS])}; may be given several "
        "times. With one, the default is compared with it; without any, all that ship are.",
    ),
]
PricesFile = Annotated[
    Path | None,
    typer.Option(
        "--prices", metavar="FILE", help="A TOML file with prices; by default the shipped ones."
    ),
]
Conversation = Annotated[
    str | None,
    typer.Option(
        "--conversation",
        metavar="ID",
        help="The conversation, if the file has several; by default the longest.",
    ),
]
Charts = Annotated[
    list[Path] | None,
    typer.Option(
        "--chart",
        metavar="OUT",
        help="Draw request sizes here, as .png or .svg; may be given several times.",
    ),
]
ChartTheme = Annotated[
    Literal["light", "dark", "both"],
    typer.Option(
        "--chart-theme",
        help="Ground of the charts; both also draws OUT-dark.png or OUT-dark.svg.",
    ),
]


def simulate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A transcript, plain or .gz.")],
    policy: Policies = None,
    window: Window = None,
    model: ModelName = None,
    summariser: SummariserName = None,
    prices: PricesFile = None,
    conversation: Conversation = None,
    chart: Charts = None,
    chart_theme: ChartTheme = "light",
    full: Full = False,
    format: Format = "auto",
    force: Force = False,
    json: Json = False,
) -> None:
    """Replay a recorded conversation under several policies and compare what it costs and keeps."""

    # Failed compactions are counted and reported at the end.
    logging.getLogger("refold.compaction").setLevel(logging.ERROR)
    if chart_theme != "light" and not chart:
        raise typer.BadParameter("--chart-theme is for a chart: add --chart OUT")
    charts = dict(_charts(chart or (), chart_theme))
    for path in charts:
        check_chart(path, replace=force)
    table = read_prices(prices)
    open_core = partial(_open_core, window=window, model=model, summariser=summariser)
    contestants = _contestants(policy or [], open_core)
    transcript = read_file(file, format)
    recorded = _choose_conversation(transcript, conversation)
    with _Bars(len(recorded.messages), quiet=json) as bars:
        done = simulating.simulate(recorded, contestants, table, model=model, on_event=bars.watch)
    for path, theme in charts.items():
        draw_chart(done, path, theme=theme, replace=force)
    if json:
        print_json({"file": str(file), **done.model_dump(mode="json")})
        return
    show_comparison(file, transcript, done, full=full)
    for path in charts:
        say(f"The chart is in {clean(path)}.")


def _charts(
    given: Sequence[Path], theme: Literal["light", "dark", "both"]
) -> Iterator[tuple[Path, Theme]]:
    """Yield each file with its ground."""
    for path in given:
        if theme == "both":
            yield path, "light"
            yield path.with_stem(f"{path.stem}-dark"), "dark"
        else:
            yield path, theme


def _contestants(given: Sequence[str], open_core: Callable[[str], Core]) -> list[Contestant]:
    wanted = list(given) or [DEFAULT, *PRESETS]
    if len(wanted) == 1 and wanted != [DEFAULT]:
        wanted = [DEFAULT, *wanted]
    if len(wanted) > MOST_POLICIES:
        raise InvalidSetting(
            f"--policy: {len(wanted)} were given, but the maximum is {MOST_POLICIES}"
        )
    names = [_name(place, wanted) for place in wanted]
    for place in wanted:
        open_core(place).log.close()  # Report an invalid setting before anything is played.
    return [
        Contestant(name, partial(open_core, place))
        for name, place in zip(names, wanted, strict=True)
    ]


def _name(place: str, wanted: Sequence[str]) -> str:
    """Return the name of a policy: the file name, or the path if several have it."""
    if wanted.count(place) > 1:
        raise InvalidSetting(f"--policy {place} was given twice")
    name = Path(place).stem
    return name if [Path(other).stem for other in wanted].count(name) == 1 else place


def _open_core(
    place: str, *, window: int | None, model: str | None, summariser: str | None
) -> Core:
    """Open a core in memory with the settings of a policy file or of a shipped policy."""
    from refold.infrastructure.bootstrap import open_core

    in_memory = partial(
        open_core, ":memory:", window=window, model=model, summariser=summariser, telemetry=False
    )
    if Path(place).exists():
        return in_memory(policy_file=place)
    if place == DEFAULT:
        return in_memory()
    if place in PRESETS:
        return in_memory(policy=PRESETS[place])
    raise InvalidSetting(
        f"--policy {place}: there is no such file, and refold has no policy of this name; "
        f"the built-in ones are {', '.join([DEFAULT, *PRESETS])}"
    )


def _choose_conversation(transcript: Transcript, wanted: str | None) -> RecordedConversation:
    if wanted is None:
        return max(transcript.conversations, key=lambda c: len(c.messages))
    for recorded in transcript.conversations:
        if recorded.thread_id == wanted:
            return recorded
    there = [c.thread_id for c in transcript.conversations]
    more = f" and {len(there) - 8:,} more" if there[8:] else ""
    raise InvalidThreadId(
        f"there is no conversation {wanted!r} in {transcript.source}; there are: "
        f"{', '.join(there[:8])}{more}"
    )


class _Bars:
    """Progress bars, one per policy in turn."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total = total
        self._quiet = quiet
        self._name: str | None = None
        self._bar: Bar | None = None
        self._stack = ExitStack()

    def watch(self, name: str, event: Played) -> None:
        """Show that this message was played under this policy."""
        if name != self._name or self._bar is None:
            self._stack.close()
            made = progress_bar(f"playing: {name}", self._total, quiet=self._quiet)
            self._bar, self._name = self._stack.enter_context(made), name
        self._bar.advance(event)

    def __enter__(self) -> "_Bars":
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
