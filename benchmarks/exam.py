"""What several memories still show of recorded sessions when the sessions use it again.

    python benchmarks/exam.py [--write]

Plays ``refold exam`` on the recorded Claude Code sessions that have at least 30,000 tokens, with requests of 5,
10 and 20 % of a session. Besides refold: refold without recalled lines, without its index and without the text of a
summary, the newest messages, and messages chosen by chance. If LangChain is installed, its summarising and its
clearing of tool results as well (``exam_langchain.py``). No model is called.
"""

import argparse
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import exam_langchain

import refold
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
from refold.application.lab.recorded_summaries import SummaryCompared, compare_summaries
from refold.infrastructure.bootstrap import open_core
from refold.infrastructure.transcripts.read_transcript import read_transcript

DATA = Path(os.environ.get("REFOLD_X_DATA") or Path(__file__).parents[2] / "shared" / "data")
RESULTS = Path(__file__).with_name("results") / "exam.md"
LEAST_TOKENS = 30_000
BUDGETS = (5, 10, 20)
SHARE = 0.775
"""Share of a window that is the budget of a request, with the usual margin and reserve."""


def sessions() -> Iterator[RecordedConversation]:
    """The recorded sessions that are long enough."""
    counter = open_core(":memory:", telemetry=False).counter
    return (one for one in _recordings() if budget_of(one, counter, 100) >= LEAST_TOKENS)


def _recordings() -> Iterator[RecordedConversation]:
    for path in sorted(DATA.glob("claude-code-*/**/*.jsonl*")):
        try:
            yield from read_transcript(path).conversations
        except TranscriptError:
            continue


def opened(budget: int, **settings: Any) -> RefoldMemory:
    """Open refold with a window whose requests have this budget."""
    window = max(1_000, round(budget / SHARE))
    return RefoldMemory(refold.open(":memory:", window=window, telemetry=False, **settings))


def factories() -> dict[str, Factory]:
    """The memories, by the name in the table."""
    counter = open_core(":memory:", telemetry=False).counter
    without_index = refold.CompactionPolicy(index_share=0, ledger_share=0.1)
    return {
        "refold": opened,
        "without recalled lines": partial(opened, standing_recall=0),
        "without its index": partial(opened, policy=without_index),
        "without a summary text": partial(opened, summariser="off"),
        "newest messages": partial(NewestMessages, counter),
        "by chance": partial(RandomMessages, counter),
        **peers(),
    }


def peers() -> dict[str, Factory]:
    """Memories of other packages, if they are installed."""
    if find_spec("langchain") is None:
        return {}
    return {
        "LangChain: summarization": exam_langchain.summarization,
        "LangChain: clearing tool results": exam_langchain.tool_clearing,
    }


def percent(share: Share) -> str:
    """A share in percent."""
    return "–" if share.percent is None else f"{share.percent:.0f}"


ROWS: Sequence[tuple[str, Callable[[ExamFigures], str]]] = (
    *((kind, lambda f, k=kind: percent(f.reuse[k])) for kind in KINDS),  # type: ignore[misc]
    *((f"to go on: {kind}", lambda f, k=kind: percent(f.resume[k])) for kind in RESUME_KINDS),  # type: ignore[misc]
    ("needle questions", lambda f: percent(f.needles)),
    ("budget used", lambda f: f"{100 * f.use:.0f}"),
    ("budget used after a cut", lambda f: f"{100 * f.after_cut:.0f}" if f.after_cut else "–"),
    ("budget used by texts of its own", lambda f: f"{100 * f.written:.0f}"),
    ("requests over budget", lambda f: f"{f.over_budget:,}"),
    ("requests refused", lambda f: f"{f.refused:,}"),
)


def table(budget: int, recorded: Sequence[RecordedConversation]) -> str:
    """The table of one budget."""
    counter = open_core(":memory:", telemetry=False).counter
    figures = dict[str, ExamFigures]()
    for name, factory in factories().items():
        exam = Exam(factory, counter, budget)
        for one in recorded:
            exam.examine(one)
        figures[name] = exam.figures()
    asked = figures["refold"].reuse
    lines = [
        f"## A budget of {budget} % of a session",
        "",
        f"| | {' | '.join(figures)} |",
        f"|---|{'---|' * len(figures)}",
    ]
    for name, show in ROWS:
        of = f" (of {asked[name].of:,} for refold)" if name in asked else ""
        lines.append(f"| {name}{of} | {' | '.join(map(show, figures.values()))} |")
    return "\n".join(lines)


WINDOWS = (200_000, 16_000)
"""Windows whose ledger and index are compared with recorded summaries; those of the second have about their size."""


def recorded_summaries() -> str:
    """The table of the summaries that the recording tool's model wrote, with ledger and index beside them."""
    recorded = [one for one in _recordings() if one.summaries]
    compared = [_compare(recorded, window) for window in WINDOWS]
    summaries = compared[0]
    columns = ["their text", *(f"ledger and index at {window:,}" for window in WINDOWS)]
    columns += [f"both at {window:,}" for window in WINDOWS]
    lines = [
        f"{len(summaries)} summaries in {len(recorded)} sessions.",
        "",
        f"| | {' | '.join(columns)} |",
        f"|---|{'---|' * len(columns)}",
    ]
    for kind in KINDS:
        of = sum(one.reuse[kind].of for one in summaries)
        kept = [sum(one.reuse[kind].summary for one in summaries)]
        kept += [sum(one.reuse[kind].ledger for one in found) for found in compared]
        kept += [sum(one.reuse[kind].together for one in found) for found in compared]
        shares = " | ".join(percent(Share(kept=number, of=of)) for number in kept)
        lines.append(f"| {kind} ({of:,}) | {shares} |")
    written = sum(one.summary_tokens for one in summaries) / len(summaries)
    beside = [sum(one.ledger_tokens for one in found) / len(found) for found in compared]
    sizes = [written, *beside, *(written + size for size in beside)]
    lines.append(f"| tokens, in the mean | {' | '.join(f'{size:,.0f}' for size in sizes)} |")
    return "\n".join(lines)


def _compare(recorded: Sequence[RecordedConversation], window: int) -> list[SummaryCompared]:
    core = open_core(":memory:", window=window, telemetry=False)
    try:
        return [found for one in recorded for found in compare_summaries(core, one)]
    finally:
        core.log.close()


def main() -> None:
    """Examine all memories, and write the page if that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    given = parser.parse_args()
    logging.getLogger("refold").setLevel(logging.ERROR)
    recorded = list(sessions())
    tables = "\n\n".join(table(budget, recorded) for budget in BUDGETS)
    page = f"""# Exam: what is still shown when it is used again

Made by `python benchmarks/exam.py --write` ({len(recorded)} recorded sessions, no model). Each session is played to
70 % of its messages. Of the exact strings in messages that are no longer shown in full, those count that inputs of
tools in the rest of the session use again (of what a person said, all), in per cent that stand in the request. The
facts are found by plain splitting, not by refold's own rules. "To go on": what was asked last, the last command, the
end of its result, the last decision with its reason and the file in work, in the request after each cut.

LangChain's summarising middleware is measured with refold's summariser of code as its writer, due at 90 % of the
budget. It may exceed the budget between two summaries, and so may the clearing of tool results, which has no other
means.

Read the rows together: a memory that shows more messages in full has fewer strings to lose, and one that uses more of
its budget shows more. A string in the request does not show that a model uses it.

{tables}

## Summaries that a model wrote

The recording tool had a model write summaries when its context was full. Of the strings of the messages before such a
summary that the rest of the session uses again, in per cent: how many stand in its text, how many in the ledger and the
index that refold would show beside it for a window of that size, and how many in one of the two. The text of a summary
also says what no string shows: reasons, state and plans.

{recorded_summaries()}
"""
    print(page)
    if given.write:
        RESULTS.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
