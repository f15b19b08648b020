"""A table of what playing recordings showed, by recording and by window.

``python -m tests.support.play_table [--windows 8000,32000] [--sample 2] [--processes 2]
[--markdown benchmarks/results/play.md] [NAME...]`` plays all recordings whose path has one of the
names in it, or all of them.
"""

import argparse
import logging
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import groupby
from pathlib import Path

from refold.infrastructure.transcripts.read_transcript import read_transcript
from tests.support.judged_play import Judged, judged, recordings
from tests.support.real_data import data_folder

WINDOWS = (8_000, 16_000, 32_000, 64_000, 200_000)
Case = tuple[Path, int]

HEADINGS = (
    f"{'file':<52} {'window':>7} {'msgs':>5} {'reqs':>5} {'refused':>7} {'over':>4} {'illegal':>7} "
    f"{'prefix':>6} {'think':>5} {'compact':>7} {'failed':>6} {'row':>3} {'offload':>7} "
    f"{'condense':>8} {'ok %':>6} {'largest':>15} {'stable':>6} {'append':>6} {'contxt':>6} "
    f"{'s':>6} verify"
)


def row(name: str, window: int, played: Judged) -> str:
    """One line of the table; append and context are the 99th percentiles in milliseconds."""
    f, kinds = played.figures, played.events
    largest = f"{f.largest_request:,}/{f.budget:,}"
    return (
        f"{name[:52]:<52} {window:>7} {f.messages:>5} {f.requests:>5} {f.requests_refused:>7} "
        f"{f.requests_over_budget:>4} {len(played.illegal):>7} {len(played.prefix):>6} "
        f"{len(played.thinking):>5} {kinds['CompactionPerformed']:>7} "
        f"{kinds['CompactionFailed']:>6} {played.in_a_row:>3} {kinds['ToolContentOffloaded']:>7} "
        f"{kinds['MessagesCondensed']:>8} {100 * played.success:>6.1f} {largest:>15} "
        f"{f.unchanged_prefix_share:>6.3f} {f.append_p99_ms:>6.1f} {f.context_p99_ms:>6.1f} "
        f"{played.seconds:>6.1f} {'ok' if played.verified.ok else 'DAMAGED'}"
    )


def totals(window: int, played: Sequence[Judged]) -> dict[str, object]:
    """What all recordings showed in one window."""
    figures = [p.figures for p in played]
    count = {
        kind: sum(p.events[kind] for p in played)
        for kind in ("CompactionPerformed", "CompactionFailed", "ToolContentOffloaded")
    }
    done, failed = count["CompactionPerformed"], count["CompactionFailed"]
    condensed = sum(p.events["MessagesCondensed"] for p in played)
    requests, sent = sum(f.requests for f in figures), sum(f.tokens_sent for f in figures)
    repeated = sum(f.unchanged_prefix_share * f.tokens_sent for f in figures)

    def per_hundred(decisions: int) -> str:
        return f"{100 * decisions / max(1, requests):.1f}"

    return {
        "window": f"{window:,}",
        "requests": requests,
        "refused": sum(f.requests_refused for f in figures),
        "illegal": sum(len(p.illegal) for p in played),
        "over budget": sum(f.requests_over_budget for f in figures),
        "thinking refused": sum(len(p.thinking) for p in played),
        "prefix changed between decisions": sum(len(p.prefix) for p in played),
        "compactions": done,
        "failed": failed,
        "success": f"{100 * done / max(1, done + failed):.1f} %" if done + failed else "–",
        "most without new content": max((p.in_a_row for p in played), default=0),
        "offloads per 100 requests": per_hundred(count["ToolContentOffloaded"]),
        "condensings per 100": per_hundred(condensed),
        "summaries per 100": per_hundred(done),
        "tokens repeated from the request before": f"{100 * repeated / max(1, sent):.1f} %",
    }


def markdown(played: Iterable[tuple[Case, Judged]]) -> str:
    """A page with one column for each window."""
    everything = sorted(played, key=lambda item: item[0][1])
    by_window = {w: list(group) for w, group in groupby(everything, lambda item: item[0][1])}
    columns = [totals(w, [found for _, found in group]) for w, group in by_window.items()]
    paths = {path for (path, _), _ in everything}
    lines = [[name, *(str(column[name]) for column in columns)] for name in columns[0]]
    lines.insert(1, ["---", *("---:" for _ in columns)])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return (
        "# Recorded conversations, played\n\n"
        f"{len(paths)} recordings of coding agents and chats, each played as a live agent would have "
        "had it,\nin windows of these sizes (tokens), with the built-in summariser and the default "
        "policy.\nEvery request was judged by the rules of the Messages API.\n\n"
        f"{table}\n\nMade by `python -m tests.support.play_table --markdown FILE`.\n"
    )


def play(case: Case) -> Judged:
    """Play a recording in a window, into a log that is thrown away."""
    logging.getLogger("refold").setLevel(logging.ERROR)  # Failures are counted in the table.
    path, window = case
    with tempfile.TemporaryDirectory() as folder:
        return judged(read_transcript(path).conversations, Path(folder), window)


def _all_played(cases: Sequence[Case], processes: int) -> Iterator[tuple[Case, Judged]]:
    if processes == 1:
        yield from ((case, play(case)) for case in cases)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from zip(cases, pool.map(play, cases), strict=True)


def _sample(paths: Sequence[Path], of_each: int) -> list[Path]:
    """So many recordings of each folder, or all for 0: spread from the smallest to the largest."""
    if not of_each:
        return list(paths)
    chosen: list[Path] = []
    for _, group in groupby(paths, lambda path: path.parent):
        files = sorted(group, key=lambda path: path.stat().st_size)
        chosen += files[-1 :: -max(1, len(files) // of_each)][:of_each]
    return chosen


def main() -> None:
    """Print the table as it comes, below each line its findings, and at the end the totals."""
    parser = argparse.ArgumentParser(description="Play all recordings and judge every request.")
    parser.add_argument("names", nargs="*", help="parts of paths; all recordings if left out")
    parser.add_argument("--windows", default=",".join(map(str, WINDOWS)), help="tokens, by commas")
    parser.add_argument("--sample", type=int, default=0, help="so many recordings of each folder")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--markdown", type=Path, help="write the totals to this file")
    chosen = parser.parse_args()
    data = data_folder()
    if data is None:
        parser.error("no real data: put it at ../shared/data or name its folder in REFOLD_X_DATA")
    paths = _sample(recordings(chosen.names), chosen.sample)
    cases = [(path, window) for path in paths for window in map(int, chosen.windows.split(","))]
    write = partial(print, flush=True)
    write(HEADINGS)
    done: list[tuple[Case, Judged]] = []
    for (path, window), played in _all_played(cases, chosen.processes):
        done.append(((path, window), played))
        write(row(str(path.relative_to(data)), window, played))
        for findings in (played.illegal, played.prefix, played.thinking):
            for finding in findings[:3]:
                write(f"    {finding}")
    page = markdown(done)
    write(page)
    if chosen.markdown:
        chosen.markdown.parent.mkdir(parents=True, exist_ok=True)
        chosen.markdown.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
