"""Every command on a file and on a server: both print the same, and the page about servers has the exceptions."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

import refold as library
from refold.infrastructure.cli.commands import ENTRIES
from refold.infrastructure.files.log_place import ON_A_SERVER
from tests.faults.commands import MCP_TALK
from tests.support.command_line import PROGRAM, Ran, Refold, talk

PAGE = Path(__file__).parents[2] / "docs" / "postgres.md"
BEGIN, END = "<!-- commands: begin -->\n", "<!-- commands: end -->\n"
WITHOUT_A_LOG = ("scan", "simulate", "exam", "settings")
"""Commands that work on no log."""
FILES_ONLY = frozenset(ON_A_SERVER) - {"verify --anchor"}
ERASING = ("erase", "erase --all")
"""Commands that end with 1 on a server while its write-ahead log still has keys, and say where."""
NO_COMPARISON = (*ERASING, "claude-code", "copy", "db", "inspect")
"""Commands whose output is about the store itself."""
STORED = ("bytes", "snapshot_bytes", "files")
"""Figures of ``stats`` that a store has of its own."""

LINES: tuple[tuple[str, str], ...] = (
    ("import", "import talk.json --thread talk"),
    ("play", "play talk.json --thread played --window 8000"),
    ("list", "list"),
    ("show", "show talk"),
    ("compact", "compact talk --window 8000"),
    ("context", "context talk --window 8000"),
    ("explain", "explain talk"),
    ("why", "why talk Question"),
    ("facts", "facts talk"),
    ("summaries", "summaries talk"),
    ("expand", "expand talk"),
    ("diff", "diff talk 20 60"),
    ("recall", "recall talk Question"),
    ("search", "search Question"),
    ("query", "query talk --text Question"),
    ("read", "read talk/3"),
    ("topics", "topics talk"),
    ("notes", "notes"),
    ("search-notes", "search-notes Question --folder notes"),
    ("pin", "pin talk 4"),
    ("pins", "pins talk"),
    ("unpin", "unpin talk {pin}"),
    ("proposals", "proposals talk"),
    ("allow", "allow talk {allowed}"),
    ("refuse", "refuse talk {refused}"),
    ("label", "label talk Harbour"),
    ("fork", "fork talk copied --at 30"),
    ("revert", "revert talk"),
    ("erase", "erase talk 5 --yes"),
    ("erase --all", "erase copied --all --yes"),
    ("stats", "stats"),
    ("export", "export talk"),
    ("export --out", "export talk --out out.jsonl --force"),
    ("index", "index"),
    ("inspect", "inspect --bundle pages"),
    ("verify", "verify"),
    ("verify --repair", "verify --repair"),
    ("replay", "replay"),
    ("mcp", "mcp"),
    ("claude-code", "claude-code install --project ."),
    ("db", "db upgrade"),
    ("copy", "copy {db} copied.db"),
    ("backup", "backup backup.db"),
    ("restore", "restore backup.db --force"),
    ("salvage", "salvage salvaged.db"),
    ("anchor", "anchor"),
    ("compress", "compress"),
    ("demo", "demo"),
)


class Outcome(NamedTuple):
    """How a command ended on both stores."""

    file: Ran
    server: Ran


def words_of(line: str, place: str, ids: Mapping[str, str]) -> list[str]:
    words = [word.format(db=place, **ids) if "{" in word else word for word in line.split()]
    return words if words[0] == "copy" else [*words, "--db", place]


def serve(place: str) -> Ran:
    """A server of MCP in a process of its own, which answers one question."""
    said = "".join(json.dumps(line) + "\n" for line in MCP_TALK)
    words = [*PROGRAM, "mcp", "--db", place]
    done = subprocess.run(words, input=said.encode(), capture_output=True, check=False, timeout=60)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def propose(place: str) -> Mapping[str, str]:
    """Propose two edits as an agent does, and return their ids."""
    with library.open(place) as memory:
        conversation = memory.conversation("talk")
        for message in ("4", "6"):
            conversation.tools(edits="propose").call("pin", {"message": message})
        allowed, refused = conversation.proposals()
    return {"allowed": allowed.edit_id, "refused": refused.edit_id}


def run_all(
    refold: Refold, place: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Ran]:
    """Run all commands on one store, in a folder of its own."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("talk.json").write_text(json.dumps(talk(20, "Some words of the talk. " * 12)), "utf-8")
    Path("notes").mkdir()
    Path("notes", "MEMORY.md").write_text("- Question of notes\n", "utf-8")
    done, ids = dict[str, Ran](), dict[str, str]()
    for name, line in LINES:
        if name == "demo" and place == "agent.db":
            done[name] = Ran(0, "", "")  # It takes half a minute, and other tests play it.
            continue
        if name == "mcp":
            done[name] = serve(place)
            continue
        if name == "unpin":
            ids["pin"] = done["pin"].answer["pin_id"]
        if name == "proposals":
            ids |= propose(place)
        done[name] = refold(*words_of(line, place, ids), "--json")
        assert "Traceback" not in done[name].err, (name, done[name].err)
    return done


_ID = re.compile(r"\b[0-9a-f]{8,64}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+Z?")
_MEASURED = re.compile(r'"(\w+_ms|seconds|path)": [^,}]+')


def steady(text: str, place: str) -> str:
    """Return an output with numbers in place of ids and times, and without the place."""
    ids: dict[str, str] = {}
    text = _TIME.sub("TIME", text.replace(place, "PLACE"))
    text = _ID.sub(lambda found: ids.setdefault(found[0], f"id{len(ids)}"), text)
    return _MEASURED.sub(r'"\1": 0', text)


def figures(answer: Any) -> Any:
    """Return the figures of ``stats`` without the sizes that a store has of its own."""
    if isinstance(answer, dict):
        fields = cast("dict[str, Any]", answer)
        return {key: figures(value) for key, value in fields.items() if key not in STORED}
    if isinstance(answer, list):
        items: list[Any] = answer  # pyright: ignore[reportUnknownVariableType]
        return sorted(map(figures, items), key=str)
    return answer


def table(outcomes: dict[str, Outcome]) -> Iterator[str]:
    """Yield the lines of the table, from how each command ended."""
    rows: dict[str, list[str]] = {}
    for name, (file, server) in outcomes.items():
        row = "yes | yes"
        if name in ERASING:
            row = "yes | yes; reports what is pending in the write-ahead log"
        elif server.code != file.code:
            row = f"yes | no: {json.loads(server.out)['message'].partition('server: ')[2]}"
        rows.setdefault(row, []).append(f"`{name}`")
    rows["need no log | need no log"] = [f"`{name}`" for name in WITHOUT_A_LOG]
    yield "| command | file | server |\n|---|---|---|\n"
    yield from (f"| {', '.join(names)} | {row} |\n" for row, names in rows.items())


def test_every_command_is_run_here() -> None:
    names = {name.partition(" ")[0] for name, _ in LINES}
    assert names | {*WITHOUT_A_LOG} == set(ENTRIES), "add the new command to the list above"


@pytest.mark.slow
def test_every_command_does_the_same_on_both_stores(
    refold: Refold, tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_file = run_all(refold, "agent.db", tmp_path / "file", monkeypatch)
    on_server = run_all(refold, database, tmp_path / "server", monkeypatch)
    outcomes = {name: Outcome(in_file[name], on_server[name]) for name, _ in LINES}
    for name, (file, server) in outcomes.items():
        if name in FILES_ONLY:
            assert file.code == 0, (name, file)
            assert server.code == 2, (name, server)
            assert "log is on a PostgreSQL server" in server.answer["message"]
            continue
        assert file.code == 0, (name, file)
        assert server.code == 0 or (name in ERASING and server.answer["places"]), (name, server)
        if name == "stats":
            assert figures(file.answer) == figures(server.answer)
        elif name not in NO_COMPARISON:
            shown = [steady(file.out, "agent.db"), steady(server.out, database)]
            assert shown[0] == shown[1], name
    written = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    assert written == "".join(table(outcomes)), (
        f"write this into {PAGE.name}:\n{''.join(table(outcomes))}"
    )
