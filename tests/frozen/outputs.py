"""The outputs: recordings are played, then every command is asked about the logs that this leaves."""

import hashlib
import json
import os
import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.frozen.steady import hold_steady, run
from tests.support.real_data import data_folder

PLAYED: tuple[tuple[str, int], ...] = (
    ("claude-code-episodic-memory/long-conversation.jsonl.gz", 8_000),
    ("claude-code-episodic-memory/long-conversation.jsonl.gz", 32_000),
    ("claude-code-viewer/fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl.gz", 16_000),
    ("claude-code-entire/cd95adddad32_0.jsonl.gz", 32_000),
    ("claude-code-entire/83a0bb2f3f73_0.jsonl.gz", 8_000),
    ("claude-code-entire/25730c662552_0.jsonl.gz", 200_000),
    ("pi/*.jsonl*", 32_000),
    ("swe-agent/i_got_id*", 8_000),
    ("openhands-llm-logs/*.json*", 32_000),
    ("mini-swe-agent/*.json*", 8_000),
    ("tau-bench/*.json*", 8_000),
)
"""Recordings below the data folder, the first file that fits each pattern, and the window each is played at."""
QUESTIONS = (
    "what did the user ask for first?",
    "which tests failed and why?",
    "error message",
    "where is the configuration file?",
    "which command was run to install it?",
    "什么时候",
    "port number",
    "why was it decided?",
)


def first_file(data: Path, pattern: str) -> Path | None:
    """Return the first file below the data folder that fits the pattern, or None."""
    return next((p for p in sorted(data.glob(pattern)) if not p.name.startswith("README")), None)


def stored_bytes(log: Path) -> str:
    """Return every row of the log's tables, as text."""
    with sqlite3.connect(f"file:{log}?mode=ro", uri=True) as rows:
        tables = [n for (n,) in rows.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        lines = [
            f"{table} {row}"
            for table in sorted(tables)
            for row in sorted(map(repr, rows.execute(f'SELECT * FROM "{table}"')))
        ]
    rows.close()
    return "\n".join(lines) + "\n"


_TIMES = re.compile(r'"(\w+_ms|seconds|cpu_seconds|duration|elapsed|pid|host)": [^,}\]]+')


def steady_text(text: str) -> str:
    """Return the text without figures and paths that depend on the machine."""
    text = text.replace(f"{Path.cwd()}/", "")
    return _TIMES.sub(r'"\1": 0', text)


class Writer:
    """Writes each output into a file of its own name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, name: str, text: str) -> None:
        """Write one output."""
        path = self.folder / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def write(data: Path, folder: Path, name: str) -> None:
    """Write the outputs of one part: ``surface``, ``imported`` or the number of a recording."""
    work = folder / "work" / name
    work.mkdir(parents=True)
    os.chdir(work)
    # The same short path everywhere: the ids follow from the words of a command.
    Path("data").symlink_to(data.resolve())
    data = Path("data")
    writer = Writer(folder / "out")
    if name == "surface":
        _surface(writer)
    elif name == "imported":
        _imported(writer, data)
    elif path := first_file(data, PLAYED[int(name)][0]):
        _played(writer, path, PLAYED[int(name)][1], name)


def _played(writer: Writer, path: Path, window: int, name: str) -> None:
    words = ["play", f"{path}", "--db", "a.db", "--window", f"{window}", "--requests", "r.jsonl"]
    code, out = run(*words, "--restart-every", "37", "--json")
    writer.keep(f"{name}/play", f"{code}\n{steady_text(out).replace(str(path), path.name)}")
    writer.keep(f"{name}/requests", Path("r.jsonl").read_text("utf-8"))
    writer.keep(f"{name}/stored", stored_bytes(Path("a.db")))
    _asked(writer, name, window)
    writer.keep(f"{name}/stored-at-the-end", stored_bytes(Path("a.db")))


def _asked(writer: Writer, name: str, window: int) -> None:
    """Ask every command about the log; those that change it come last."""
    _, listed = run("list", "--db", "a.db", "--json")
    found = _thread_ids(listed)
    writer.keep(f"{name}/list", listed)
    thread = found[0]
    for number, words in enumerate(commands(thread, window)):
        code, out = run(*words, "--db", "a.db", "--json")
        writer.keep(f"{name}/{number:02}-{words[0]}", f"{words}\n{code}\n{steady_text(out)}")
    code, out = run("settings", "--json")
    writer.keep(f"{name}/settings", f"{code}\n{out}")
    code, out = run("export", thread, "--db", "a.db")
    writer.keep(f"{name}/export", f"{code}\n{out}")


def _thread_ids(listed: str) -> list[str]:
    answer = json.loads(listed)
    rows: list[dict[str, Any]] = answer["conversations"]
    return sorted(
        (row["thread_id"] for row in rows), key=lambda i: hashlib.sha256(i.encode()).digest()
    )


def commands(thread: str, window: int) -> Iterator[Sequence[str]]:
    """The command lines, in an order in which each finds what it needs."""
    at = ("--window", f"{window}")
    yield from (("show", thread), ("show", thread, "--at", "20"), ("summaries", thread))
    yield from (("context", thread, *at), ("context", thread, *at, "--sizes"))
    yield from (("context", thread, "--at", "15"), ("context", thread, "--at", "40"))
    yield from (("explain", thread), ("explain", f"{thread}/3"), ("diff", thread, "5", "25"))
    yield from (("facts", thread), ("facts", thread, "--compare"))
    yield from (("stats",), ("topics", thread), ("notes",), ("notes", thread), ("pins", thread))
    yield from (("query", thread), ("query", thread, "2..6"), ("query", thread, "--text", "error"))
    yield from ((("read", f"{thread}/4")), ("read", f"{thread}/0"), ("read", f"{thread}/99999"))
    for question in QUESTIONS:
        yield ("recall", thread, question)
        yield ("search", question)
    yield from (("pin", f"{thread}/2"), ("pins", thread), ("label", thread, "A name"))
    yield from (("compact", thread, *at), ("summaries", thread), ("revert", thread))
    yield from (("fork", thread, "copy"), ("fork", thread, "older", "--at", "12"), ("list",))
    yield from (("erase", f"{thread}/1", "--yes"), ("context", thread, *at), ("explain", thread))
    yield from (("erase", "copy", "--all", "--yes"), ("verify",), ("replay",), ("anchor",))
    yield from (("recall", thread, QUESTIONS[0]), ("list",))
    yield from (("show", "nobody"), ("show",), ("recall", thread), ("context", thread, "--at", "x"))


def _imported(writer: Writer, data: Path) -> None:
    """Import many files into one log, and search all of them."""
    for path in sorted(data.glob("*/*.json*")):
        if path.stat().st_size > 100_000:
            continue
        code, out = run("import", f"{path}", "--db", "a.db", "--json")
        name = f"{path.parent.name}-{path.name}"
        writer.keep(f"imported/{name}", f"{code}\n{out.replace(str(path.parent), '')}")
    writer.keep("imported/stored", stored_bytes(Path("a.db")))
    for number, question in enumerate(QUESTIONS):
        code, out = run("search", question, "--db", "a.db", "--json")
        writer.keep(f"imported/search-{number}", f"{code}\n{out}")


def _surface(writer: Writer) -> None:
    """Keep what the package offers: its public names with their parameters."""
    import inspect

    import refold

    lines = list[str]()
    for name in sorted(set(dir(refold))):
        if name.startswith("_") or inspect.ismodule(value := getattr(refold, name)):
            continue
        lines.append(name)
        if inspect.isclass(value):
            lines += [f"  {name}.{member}" for member in sorted(dir(value)) if member[0] != "_"]
    writer.keep("surface", "\n".join(lines) + "\n")


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 digest of each output in the folder, by its name."""
    out = folder / "out"
    return {
        f"{path.relative_to(out).with_suffix('')}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.rglob("*.txt"))
    }


def parts(few: bool = False) -> list[str]:
    """Return the names of the parts; ``few``: three recordings."""
    recordings = [f"{n:02}" for n in range(3 if few else len(PLAYED))]
    return ["surface", *recordings, *([] if few else ["imported"])]


if __name__ == "__main__":
    data = data_folder()
    assert data is not None
    hold_steady()
    write(data, Path(sys.argv[1]).resolve(), sys.argv[2])
