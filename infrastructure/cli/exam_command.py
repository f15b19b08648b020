"""``refold exam``: measure what a memory still shows of recorded sessions when they use it again."""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from refold.application.conversation.transcripts import RecordedConversation
from refold.application.errors import TranscriptError
from refold.application.lab.exam import Exam, ExamFigures, Share, budget_of
from refold.application.lab.exam_facts import KINDS
from refold.application.lab.exam_memories import (
    Factory,
    NewestMessages,
    RandomMessages,
    RefoldMemory,
)
from refold.application.lab.exam_questions import RESUME_KINDS
from refold.application.ports.token_counter import TokenCounter
from refold.domain.errors import InvalidSetting

from .options import Json, PolicyFile
from .output import Cell, clean, print_json, progress_bar, say, show_table
from .play_command import read_file

LEAST_TOKENS = 30_000
"""A session with fewer tokens is skipped, because a small share of it is no budget for a request."""
BUDGETS = (5.0, 10.0, 20.0)
EXAMPLE = (
    "Examples: refold exam session.jsonl examines refold. refold exam sessions/ --memory refold --memory newest "
    "--memory mine:open_memory compares it with the newest messages and with a memory of yours. Nothing is stored. "
    "--json prints a list: one object for each budget and memory."
)
EXAMPLES = {"exam": EXAMPLE}

Data = Annotated[
    list[Path],
    typer.Argument(metavar="DATA...", help="Transcripts, plain or .gz, or folders of them."),
]
Memories = Annotated[
    list[str] | None,
    typer.Option(
        "--memory",
        metavar="NAME",
        help="refold, newest, random, or MODULE:FACTORY, a function that takes the budget in tokens; may be "
        "given several times.",
    ),
]
Budgets = Annotated[
    list[float] | None,
    typer.Option(
        "--budget",
        metavar="PERCENT",
        min=0.1,
        max=100,
        help="Size of a request in percent of the session; may be given several times. By default 5, 10 and 20.",
    ),
]


def exam(
    data: Data,
    memory: Memories = None,
    budget: Budgets = None,
    policy: PolicyFile = None,
    json: Json = False,
) -> None:
    """Measure what a memory still shows of recorded sessions when they use it again."""
    logging.getLogger("refold.compaction").setLevel(logging.ERROR)
    counter = _counter()
    factories = {n: _factory(n, counter, policy) for n in dict.fromkeys(memory or ["refold"])}
    exams = {
        (percent, name): Exam(factory, counter, percent)
        for percent in dict.fromkeys(budget or BUDGETS)
        for name, factory in factories.items()
    }
    sessions = [s for s in _sessions(data) if budget_of(s, counter, 100) >= LEAST_TOKENS]
    if not sessions:
        raise TranscriptError(
            f"no session in {', '.join(map(str, data))} has {LEAST_TOKENS:,} tokens in its first part, which "
            "is played: give longer ones"
        )
    with progress_bar("examining", len(sessions) * len(exams), quiet=json) as bar:
        for session in sessions:
            for one in exams.values():
                one.examine(session)
                bar.step()
    figures = {place: one.figures() for place, one in exams.items()}
    if json:
        print_json([{"budget": p, "memory": n, **f.model_dump()} for (p, n), f in figures.items()])
        return
    for percent in dict.fromkeys(percent for percent, _ in figures):
        _show(percent, {name: f for (p, name), f in figures.items() if p == percent})
    say(
        "The share of exact strings that the session uses again and that still stand in the request. It does not "
        "show whether a model uses them."
    )


def _show(percent: float, figures: dict[str, ExamFigures]) -> None:
    title = f"budget {percent:g} % of a session, {next(iter(figures.values())).sessions:,} sessions"
    names = [f"{clean(name)}#" for name in figures]
    rows: list[list[Cell]] = [[kind, *_row(figures, kind)] for kind in KINDS]
    for kind in RESUME_KINDS:
        percents: list[Cell] = [_percent(f.resume[kind]) for f in figures.values()]
        rows.append([f"to go on: {kind}", *percents])
    rows.append(["needle questions", *(_percent(f.needles) for f in figures.values())])
    parts: list[tuple[str, Callable[[ExamFigures], Cell]]] = [
        ("budget used", lambda f: f"{f.use:.0%}"),
        ("  after a cut", lambda f: f"{f.after_cut:.0%}"),
        ("  by texts of its own", lambda f: f"{f.written:.0%}"),
        ("requests refused", lambda f: f.refused),
        ("requests over budget", lambda f: f.over_budget),
    ]
    rows += [[name, *(show(f) for f in figures.values())] for name, show in parts]
    show_table(title, ["reused and still shown", *names], rows)


def _row(figures: dict[str, ExamFigures], kind: str) -> list[Cell]:
    return [_percent(f.reuse[kind]) for f in figures.values()]


def _percent(share: Share) -> str:
    return "–" if share.percent is None else f"{share.percent:.0f} % of {share.of:,}"


def _sessions(data: Sequence[Path]) -> Iterator[RecordedConversation]:
    for place in data:
        if not place.is_dir():
            yield from read_file(place, "auto").conversations
            continue
        for file in sorted(p for p in place.rglob("*") if p.is_file()):
            try:
                yield from read_file(file, "auto").conversations
            except TranscriptError as error:
                say(f"{clean(file)} was skipped: {clean(error)}")


def _counter() -> TokenCounter:
    from refold.infrastructure.bootstrap import open_core

    core = open_core(":memory:", telemetry=False)
    try:
        return core.counter
    finally:
        core.log.close()


def _factory(name: str, counter: TokenCounter, policy: Path | None) -> Factory:
    match name:
        case "refold":
            return partial(_open_refold, policy)
        case "newest":
            return partial(NewestMessages, counter)
        case "random":
            return partial(RandomMessages, counter)
        case _:
            return _given(name)


def _open_refold(policy: Path | None, budget: int) -> RefoldMemory:
    """Open refold with a window whose requests have this budget."""
    import refold
    from refold.domain.compaction.policy import CompactionPolicy

    usual = CompactionPolicy()
    share = 1 - usual.margin_share - usual.reserve_share
    options: dict[str, Any] = {"policy_file": policy} if policy else {}
    return RefoldMemory(
        refold.open(
            ":memory:", window=max(1_000, round(budget / share)), telemetry=False, **options
        )
    )


def _given(name: str) -> Factory:
    """Return the factory that ``module:factory`` names."""
    module, _, attribute = name.partition(":")
    if sys.path[0] != (here := str(Path.cwd())):
        sys.path.insert(
            0, here
        )  # As ``python -m`` does, so that a file in this folder can be named.
    try:
        factory: Factory = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InvalidSetting(
            f"--memory {name}: {error}; give refold, newest, random, or MODULE:FACTORY",
            setting="memory",
            value=name,
        ) from None
    return factory
