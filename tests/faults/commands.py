"""Every command that works on a log, with arguments that fit the sample stores; and appends by the interface.

The list is held against the program itself: a command without a row here fails a test.
"""

import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import refold

from .children import Ended, run_apart
from .looking_raw import rows_of
from .sample_store import ENCRYPTION_KEY, LOG, WINDOW, Store, key_of, mark_of, open_store

NEW, PLAYED, IMPORTED, KEYED = 7_000, 7_100, 7_200, 7_300
"""Numbers of messages that commands bring along."""
WITHOUT_A_LOG = frozenset({"claude-code", "demo", "exam", "scan", "settings", "simulate"})
"""Commands that work on no log of their own choosing."""
MCP_TALK = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "faults", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "recall_memory", "arguments": {"query": "faults of file_20.py"}},
    },
)


class Scene(NamedTuple):
    """Where a command runs: a folder with a store, and one for what it makes."""

    store: Store
    folder: Path
    out: Path


class Acknowledged(NamedTuple):
    """A message that a command said it had stored."""

    mark: str
    thread_id: str


class Run(NamedTuple):
    """A command that ran."""

    name: str
    ended: Ended
    acknowledged: tuple[Acknowledged, ...] = ()
    asked_to_erase: frozenset[str] = frozenset()
    """Words that were to be erased, whether that worked or not."""
    erased: frozenset[str] = frozenset()
    """Words whose erasure was said to be complete."""
    wrong: tuple[str, ...] = ()
    """What the command itself shows to be wrong."""


Command = Callable[[Scene], Run]


def commands() -> Mapping[str, Command]:
    """All commands by name; those of the command line by their name there."""
    return {**{name: _from_line(name, row) for name, row in LINES.items()}, **CALLS}


def program_commands() -> Iterator[tuple[str, frozenset[str]]]:
    """The commands that the program has, each with its options."""
    typer = import_module("typer")
    group = typer.main.get_command(import_module("refold.infrastructure.cli.app").app)
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield name, frozenset(option for p in command.params for option in p.opts)


Line = Callable[[Scene], list[object]]
LINES: Mapping[str, Line] = {
    "anchor": lambda s: ["anchor", "--out", s.out / "exported.anchor"],
    "anchor --accept": lambda s: ["anchor", "--accept"],
    "backup": lambda s: ["backup", s.out / "backup.db", "--force"],
    "compact": lambda s: ["compact", "three", "--window", WINDOW],
    "compress": lambda s: ["compress"],
    "context": lambda s: ["context", "one", "--window", WINDOW],
    "context --at": lambda s: ["context", "one", "--window", WINDOW, "--at", 40],
    "copy": lambda s: ["copy", s.folder / LOG, new_place(s.out, "copied")],
    "db": lambda s: ["db", "upgrade"],
    "diff": lambda s: ["diff", "one", 20, 60],
    "erase": lambda s: ["erase", "three", 0, "--yes"],
    "erase --all": lambda s: ["erase", "four", "--all", "--yes"],
    "expand": lambda s: ["expand", s.store.facts["summary"]],
    "explain": lambda s: ["explain", "one"],
    "export": lambda s: ["export", "one", "--out", s.out / "export.jsonl", "--force"],
    "why": lambda s: ["why", "one", "faults"],
    "facts": lambda s: ["facts", "one"],
    "facts --compare": lambda s: ["facts", "one", "--compare"],
    "fork": lambda s: ["fork", "three"],
    "import": lambda s: ["import", transcript(s.out, IMPORTED)],
    "index": lambda s: ["index"],
    "inspect": lambda s: ["inspect", "--bundle", new_place(s.out, "pages")],
    "list": lambda s: ["list"],
    "mcp": lambda s: ["mcp"],
    "label": lambda s: ["label", "three", "the harbour"],
    "notes": lambda s: ["notes"],
    "pin": lambda s: ["pin", "three", 3],
    "pins": lambda s: ["pins", "one"],
    "play": lambda s: ["play", transcript(s.out, PLAYED), "--thread", "played"],
    "query": lambda s: ["query", "one", "--text", "faults"],
    "read": lambda s: ["read", "refold://two/1"],
    "recall": lambda s: ["recall", "one", "faults of file_20.py"],
    "replay": lambda s: ["replay"],
    "restore": lambda s: ["restore", backup_of(s), "--force"],
    "revert": lambda s: ["revert", "one"],
    "salvage": lambda s: ["salvage", new_place(s.out, "salvaged")],
    "search": lambda s: ["search", "build of the harbour"],
    "search-notes": lambda s: ["search-notes", "harbour"],
    "show": lambda s: ["show", "three"],
    "stats": lambda s: ["stats"],
    "summaries": lambda s: ["summaries", "one"],
    "topics": lambda s: ["topics", "one"],
    "proposals": lambda s: ["proposals", "one"],
    "allow": lambda s: ["allow", "one", s.store.facts["allowed"]],
    "refuse": lambda s: ["refuse", "one", s.store.facts["refused"]],
    "unpin": lambda s: ["unpin", "one", s.store.facts["pin"]],
    "verify": lambda s: ["verify"],
    "verify --repair": lambda s: ["verify", "--repair"],
}
BRINGS = {"import": IMPORTED, "play": PLAYED}
NAMES_ITS_LOGS = frozenset({"copy"})
"""Commands that take logs as arguments."""
WITHOUT_JSON = frozenset({"export", "mcp"})


def _from_line(name: str, row: Line) -> Command:
    def run(scene: Scene) -> Run:
        words = [*map(str, row(scene))]
        words += [] if name in NAMES_ITS_LOGS else ["--db", str(scene.folder / LOG)]
        words += [] if name in WITHOUT_JSON else ["--json"]
        talk = "".join(json.dumps(line) + "\n" for line in MCP_TALK) if name == "mcp" else "n\n"
        ended = run_apart(lambda: run_program(scene, words), stdin=talk.encode())
        return _understood(name, scene, ended)

    return run


def run_program(scene: Scene, words: list[str]) -> None:
    """Run the program in this process as it runs by itself."""
    os.chdir(scene.out)
    for name in [n for n in os.environ if n.startswith("REFOLD_")]:
        del os.environ[name]
    os.environ.update(NO_COLOR="1", COLUMNS="200", HOME=str(scene.out))
    if (scene.folder / "encrypted").exists():
        os.environ["REFOLD_ENCRYPTION_KEY"] = ENCRYPTION_KEY
    sys.argv = ["refold", *words]
    import_module("refold.infrastructure.cli.program").main()


def _understood(name: str, scene: Scene, ended: Ended) -> Run:
    """What a command of the command line said it had done."""
    done = ended.status == 0
    asked: set[str] = set()
    if name in ("erase", "erase --all"):
        thread_id = "four" if name.endswith("--all") else "three"
        asked = {
            s.mark
            for s in scene.store.said
            if s.thread_id == thread_id and (thread_id == "four" or s.position == 0)
        }
    complete = done and '"complete": true' in ended.out
    brought = BRINGS.get(name)
    said = () if brought is None or not done else (mark_of(brought), mark_of(brought + 1))
    thread = "imported" if name == "import" else "played"
    return Run(
        name,
        ended,
        tuple(Acknowledged(mark, thread) for mark in said),
        frozenset(asked),
        frozenset(asked if complete else ()),
    )


def transcript(out: Path, number: int) -> Path:
    """A recorded conversation of two messages."""
    path = out / ("imported.jsonl" if number == IMPORTED else "played.jsonl")
    lines = [
        {"role": "user", "content": f"{mark_of(number)} what is the state of the harbour?"},
        {"role": "assistant", "content": f"{mark_of(number + 1)} it is sound."},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def new_place(out: Path, name: str) -> Path:
    """A path that nothing lies at yet."""
    taken = len(list(out.glob(f"{name}*.db")))
    return out / f"{name}-{taken}.db"


def backup_of(scene: Scene) -> Path:
    """A whole backup of the store, which was made before any fault."""
    return scene.store.folder.with_name(f"{scene.store.name}-backup.db")


def run_call(call: Callable[[], Any]) -> Ended:
    """Run a call of the interface apart; an error of refold is told as the program tells it."""

    def typed() -> Any:
        try:
            return call()
        except refold.RefoldError as error:
            sys.stdout.write(json.dumps({"error": type(error).__name__, "message": str(error)}))
            sys.exit(2)

    return run_apart(typed)


def _append(scene: Scene) -> Run:
    again = scene.out / "appended"
    number = NEW + (int(again.read_text()) if again.exists() else 0)
    again.write_text(str(number - NEW + 1))
    ended = run_call(lambda: _appended(scene, number, None))
    return _acknowledged("append", ended)


def _append_keyed(scene: Scene) -> Run:
    """A delivery under each key that the index knows and nobody has ever sent, or under a new one."""
    delivered = scene.out / "delivered.json"
    before: list[str] = json.loads(delivered.read_text()) if delivered.exists() else []
    sent = {*(s.key for s in scene.store.said), *before}
    strange = [key for key in _keys_of(scene) if key not in sent][:5]
    keys = strange or [key_of(KEYED + len(before))]
    delivered.write_text(json.dumps([*before, *keys]))
    ended = run_call(lambda: _appended(scene, KEYED + len(before), keys))
    run = _acknowledged("append keyed", ended)
    new: list[bool] = [] if ended.answer is None else ended.answer["new"]
    told = zip(keys, new, strict=False)
    false = tuple(f"{key}: a new delivery was called old" for key, is_new in told if not is_new)
    return run._replace(wrong=false)


def _append_again(scene: Scene) -> Run:
    """A delivery that comes a second time."""
    said = [s for s in scene.store.said if s.key and s.thread_id == "three"]

    def again() -> dict[str, Any]:
        found: list[bool] = []
        with open_store(scene.folder) as memory:
            for s in said:
                stored = memory.conversation("three").append(
                    {"role": "user", "content": s.text}, key=s.key
                )
                found.append(stored.messages[0].new or stored.positions != (s.position,))
        return {"doubled": [s.key for s, new in zip(said, found, strict=True) if new]}

    ended = run_call(again)
    doubled: list[str] = [] if ended.answer is None else ended.answer["doubled"]
    return Run("append again", ended, wrong=tuple(f"{key} was stored again" for key in doubled))


def _appended(scene: Scene, number: int, keys: list[str] | None) -> dict[str, Any]:
    with open_store(scene.folder) as memory:
        conversation = memory.conversation("three")
        marks = [mark_of(number + i) for i in range(len(keys or [""]))]
        messages = [{"role": "user", "content": f"{mark} was said after it"} for mark in marks]
        stored = conversation.append(messages, key=keys)
        return {"marks": marks, "new": [m.new for m in stored.messages]}


def _acknowledged(name: str, ended: Ended) -> Run:
    answer: dict[str, list[str]] = ended.answer or {"marks": []}
    return Run(name, ended, tuple(Acknowledged(mark, "three") for mark in answer["marks"]))


def _keys_of(scene: Scene) -> list[str]:
    try:
        return [str(row["key"]) for row in rows_of(scene.folder, "message_keys")]
    except sqlite3.DatabaseError:
        return []


def _read_vectors(scene: Scene) -> Run:
    """A search by meaning, which no command does without a model on the machine."""

    def search() -> int:
        with open_store(scene.folder) as memory:
            memory.embed()
            return len(
                memory.conversation("one").recall("faults of file_20.py", mode="vector").hits
            )

    return Run("recall by meaning", run_call(search))


def _long_life(scene: Scene) -> Run:
    """What a program does that lives long: it asks, then checks, then rebuilds, with one open memory."""

    def live() -> bool:
        with open_store(scene.folder) as memory:
            memory.conversations()
            memory.conversation("one").recall("faults of file_20.py")
            memory.search("build of the harbour")
            memory.verify()
            memory.replay()
            return memory.verify(repair=True).ok

    return Run("long life", run_call(live))


CALLS: Mapping[str, Command] = {
    "append": _append,
    "append keyed": _append_keyed,
    "append again": _append_again,
    "recall by meaning": _read_vectors,
    "long life": _long_life,
}
