"""``refold simulate``: one recorded conversation under several policies, compared."""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from refold.application.core import Core
from refold.application.recordings import simulating
from refold.application.recordings.playing import Played
from refold.application.recordings.simulating import PRESETS, Contestant
from refold.application.recordings.transcripts import RecordedConversation, Transcript
from refold.domain.errors import InvalidSetting, InvalidThreadId

from .charting import MOST_POLICIES, check_chart, draw_chart
from .comparing import show_comparison
from .options import Force, Format, Full, Json, ModelName, SummariserName, Window
from .output import clean, print_json, say
from .playing import read_file
from .watching import Bar, progress_bar

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
    typer.Option("--prices", metavar="FILE", help="A TOML file with prices; else those that ship."),
]
Conversation = Annotated[
    str | None,
    typer.Option(
        "--conversation", metavar="ID", help="Which one, if the file has several; else the longest."
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


def simulate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A transcript, plain or .gz.")],
    policy: Policies = None,
    window: Window = None,
    model: ModelName = None,
    summariser: SummariserName = None,
    prices: PricesFile = None,
    conversation: Conversation = None,
    chart: Charts = None,
    full: Full = False,
    format: Format = "auto",
    force: Force = False,
    json: Json = False,
) -> None:
    """Play a recorded conversation under several policies and compare what it costs and keeps."""
    from refold.infrastructure.pricing import read_prices

    # Failed compactions are counted, and told at the end.
    logging.getLogger("refold.compaction").setLevel(logging.ERROR)
    charts = tuple(dict.fromkeys(chart or ()))
    for path in charts:
        check_chart(path, replace=force)
    table = read_prices(prices)
    open_core = partial(_open_core, window=window, model=model, summariser=summariser)
    contestants = _contestants(policy or [], open_core)
    transcript = read_file(file, format)
    recorded = _chosen(transcript, conversation)
    with _Bars(len(recorded.messages), quiet=json) as bars:
        done = simulating.simulate(recorded, contestants, table, model=model, on_event=bars.watch)
    for path in charts:
        draw_chart(done, path, replace=force)
    if json:
        print_json({"file": str(file), **done.model_dump(mode="json")})
        return
    show_comparison(file, transcript, done, full=full)
    for path in charts:
        say(f"The chart is in {clean(path)}.")


def _contestants(given: Sequence[str], open_core: Callable[[str], Core]) -> list[Contestant]:
    wanted = list(given) or [DEFAULT, *PRESETS]
    if len(wanted) == 1 and wanted != [DEFAULT]:
        wanted = [DEFAULT, *wanted]
    if len(wanted) > MOST_POLICIES:
        raise InvalidSetting(f"--policy: {len(wanted)} were given, at most {MOST_POLICIES} at once")
    names = [_name(place, wanted) for place in wanted]
    for place in wanted:
        open_core(place).log.close()  # A wrong setting is told before anything is played.
    return [
        Contestant(name, partial(open_core, place))
        for name, place in zip(names, wanted, strict=True)
    ]


def _name(place: str, wanted: Sequence[str]) -> str:
    """How the settings are called: by the file's name, where only one is called so."""
    if wanted.count(place) > 1:
        raise InvalidSetting(f"--policy {place} was given twice")
    name = Path(place).stem
    return name if [Path(other).stem for other in wanted].count(name) == 1 else place


def _open_core(
    place: str, *, window: int | None, model: str | None, summariser: str | None
) -> Core:
    """A core in memory with the settings of a policy file, or of a policy that ships with refold."""
    from refold.infrastructure.opening import open_core

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
        f"--policy {place}: there is no such file, and no policy of this name ships with refold; "
        f"these do: {', '.join([DEFAULT, *PRESETS])}"
    )


def _chosen(transcript: Transcript, wanted: str | None) -> RecordedConversation:
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
    """A progress bar for each policy in turn."""

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
