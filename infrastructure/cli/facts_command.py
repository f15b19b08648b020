"""``refold facts``: what code reads from messages, and what other rules would have given."""

import sys
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from refold.application.history.fact_history import RuleDifference, RulesCompared
from refold.domain.facts.fact import Fact, Kind
from refold.domain.facts.reading import RELEASED, Rules

from .arguments import find_place, naming_commands, open_existing, single_span, span_of_options
from .options import DEFAULT_DB, Db, Json, Place, Positions, Range
from .output import clean, one_line, print_json, say, show_table

MOST = 200
"""Default number of facts that are shown."""
_SHOWN = 20
"""Number of differences of a compaction that are shown. ``--json`` has all of them."""
EXAMPLES = {
    "facts": "Examples: refold facts thread-42 --kind path --kind command --db agent.db. With --compare --rules "
    "mine:read_facts, a function of messages, it shows what each compaction of the past would have recorded."
}

Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", metavar="KIND", help=f"Only facts of this kind ({', '.join(get_args(Kind))})."
    ),
]
RulesName = Annotated[
    str | None,
    typer.Option(
        "--rules",
        metavar="RULES",
        help=f"Version of the rules ({', '.join(RELEASED)}; the newest by default), or MODULE:FUNCTION.",
    ),
]
Compare = Annotated[
    bool,
    typer.Option(
        "--compare",
        metavar="",
        help="Show what the rules would have given at each compaction, compared with what was recorded.",
    ),
]
Most = Annotated[
    int, typer.Option("--limit", help="Maximum number of facts to show.", min=1, metavar="N")
]


def facts(
    thread: Place,
    positions: Positions = None,
    db: Db = DEFAULT_DB,
    range: Range = None,
    kind: Kinds = None,
    rules: RulesName = None,
    compare: Compare = False,
    limit: Most = MOST,
    json: Json = False,
) -> None:
    """Show the facts that code reads from messages: requests, rules, decisions, paths, commands, values."""
    wanted = _kinds(kind)
    chosen = _load_rules(rules)
    with open_existing(db) as memory, naming_commands(db):
        where = find_place(memory, thread, positions or ())
        conversation = memory.conversation(where.thread)
        if compare:
            _show_comparison(where.thread, conversation.compare_rules(chosen), json=json)
            return
        span = single_span(where, span_of_options(range, None, None))
        found = conversation.facts(span.start or 0, span.stop, rules=chosen)
    shown = [fact for fact in found if not wanted or fact.kind in wanted]
    if json:
        print_json({"thread_id": where.thread, "facts": [fact._asdict() for fact in shown]})
    else:
        _show(where.thread, shown, limit)
    if not shown:
        raise typer.Exit(1)


def _kinds(given: Sequence[str] | None) -> frozenset[str]:
    known = get_args(Kind)
    for kind in given or ():
        if kind not in known:
            raise typer.BadParameter(f"{kind!r} is not a kind of facts: {', '.join(known)}")
    return frozenset(given or ())


def _load_rules(name: str | None) -> str | Rules | None:
    """Return the rules of this name. Modules are also looked for in the current folder."""
    if name is None or ":" not in name:
        return name
    module, _, function = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise typer.BadParameter(f"--rules {name}: {error}") from error
    finally:
        sys.path.pop(0)
    if not callable(found):
        raise typer.BadParameter(f"--rules {name}: it is not a function")
    return cast("Rules", found)


def _show(thread: str, found: Sequence[Fact], limit: int) -> None:
    if not found:
        say(f"No such facts in {clean(thread)}.")
        return
    counts = Counter(fact.kind for fact in found)
    say(", ".join(f"{kind} {count:,}" for kind, count in counts.most_common()))
    rows = [
        (f.position, f.kind, _describe(f), one_line(" ".join((*f.under, f.text)), 400))
        for f in found[:limit]
    ]
    show_table("", ["position#", "kind", "by", "text…"], rows)
    if len(found) > limit:
        say(f"{len(found) - limit:,} more: see --limit, --kind and --range.")


def _describe(fact: Fact) -> str:
    return f"{fact.by}, {fact.state}" if fact.state else fact.by


def _show_comparison(thread: str, compared: Sequence[RulesCompared], *, json: bool) -> None:
    if json:
        found = [
            {
                **one._asdict(),
                "added": [d._asdict() for d in one.added],
                "missing": [d._asdict() for d in one.missing],
            }
            for one in compared
        ]
        print_json({"thread_id": thread, "compactions": found})
        return
    if not compared:
        say(f"{clean(thread)} has no compactions.")
        return
    for one in compared:
        say(
            f"Compaction at version {one.version:,} ({one.messages:,} messages): "
            f"{len(one.added):,} more, {len(one.missing):,} fewer than recorded"
        )
        rows = [("+", *_row(d)) for d in one.added[:_SHOWN]]
        rows += [("-", *_row(d)) for d in one.missing[:_SHOWN]]
        if rows:
            show_table("", ["", "position#", "kind", "text…"], rows)
    say("Recorded decisions stay as they are; rules apply from the next compaction on.")


def _row(one: RuleDifference) -> tuple[int, str, str]:
    return one.position, one.kind, one_line(one.text, 400)
