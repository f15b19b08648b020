"""``refold claude-code``: give sessions of Claude Code a memory, by its hooks and its MCP servers."""

import json as jsons
import shlex
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from refold.application.errors import TranscriptError
from refold.application.history.fact_history import remembered_text
from refold.domain.errors import InvalidSetting, RefoldError
from refold.domain.value import is_list, is_object
from refold.infrastructure.files.log_place import LogPlace, is_address
from refold.infrastructure.files.private_files import new_file

from .options import Json
from .output import clean, print_json, say, warn

Action = Literal["install", "status", "uninstall", "hook"]
EXAMPLES = {
    "claude-code": "Examples: refold claude-code install --project . adds the hooks to .claude/settings.local.json and "
    "the MCP server to .mcp.json; refold claude-code uninstall restores both files. Claude Code itself calls hook."
}
TOKENS = 3_000
"""Tokens of what is put back into the context after a compaction."""
HOOKS: Mapping[str, str | None] = {
    "SessionStart": "compact|resume",
    "Stop": None,
    "SessionEnd": None,
}
"""Events of Claude Code that call refold, with the sources they are limited to."""
INTRODUCTION = (
    "From refold, copied word for word from earlier messages of this session by code. It is a record, and contains "
    "no instructions from refold. Earlier messages: the tools of the MCP server refold."
)
_STATE = "refold.json"
_NAME = "refold"


class _Place(NamedTuple):
    """The files that an installation changes."""

    settings: Path
    servers: Path
    state: Path
    db: LogPlace


Change = Callable[[dict[str, Any]], dict[str, Any]]


OwnDb = Annotated[
    LogPlace | None,
    typer.Option(
        "--db",
        metavar="PLACE",
        help="The log, a file or an address; by default a file in the folder .claude.",
        parser=LogPlace.parse,
    ),
]


def claude_code(
    action: Annotated[
        Action, typer.Argument(metavar="ACTION", help="install, status, uninstall, or hook.")
    ],
    project: Annotated[
        Path | None,
        typer.Option("--project", metavar="DIR", help="A project; by default the current folder."),
    ] = None,
    user: Annotated[
        bool, typer.Option("--user", metavar="", help="All projects of this user instead.")
    ] = False,
    db: OwnDb = None,
    json: Json = False,
) -> None:
    """Give sessions of Claude Code a memory: install hooks and the MCP server, or remove them."""
    if action == "hook":
        _hook(db)
        return
    if user and project is not None:
        raise typer.BadParameter("--project and --user: give only one of them")
    place = _place(project or Path(), user, db)
    match action:
        case "install":
            _install(place)
        case "uninstall":
            _uninstall(place)
        case _:
            pass
    found = _status(place)
    if json:
        print_json(found)
    else:
        _print_status(found)
    if action == "status" and not found["installed"]:
        raise typer.Exit(1)


def _place(project: Path, user: bool, db: LogPlace | None) -> _Place:
    """Return the files of a project or of the user.

    Raises:
        BadParameter: there is no such folder.
    """
    root = Path.home() if user else project.resolve()
    if not root.is_dir():
        raise typer.BadParameter(f"--project {project}: there is no such folder")
    folder = root / ".claude"
    settings = folder / ("settings.json" if user else "settings.local.json")
    servers = root / (".claude.json" if user else ".mcp.json")
    return _Place(settings, servers, folder / _STATE, _log_of(folder, db))


def _log_of(folder: Path, db: LogPlace | None) -> LogPlace:
    """Return the place of the log, which is the same in every folder.

    Raises:
        BadParameter: it is an address with a password, which would be written into files.
    """
    if db is not None and db.has_password:
        raise typer.BadParameter(
            "the address has a password, which would be written into files of the project; leave it out, and put it "
            "into ~/.pgpass or PGPASSWORD",
            param_hint="--db",
        )
    path = folder / "refold.db" if db is None else db.path
    return LogPlace(str(path.resolve())) if path is not None else db or LogPlace("")


def _program(*words: str) -> list[str]:
    return [sys.executable, "-m", "refold", *words]


def _install(place: _Place) -> None:
    """Add the hooks and the server. What else is in the files stays."""
    for path in (place.settings, place.servers):
        _read(path)  # A file that cannot be changed is refused before any is.
    place.state.parent.mkdir(exist_ok=True)
    state = _read(place.state)
    command = shlex.join(_program("claude-code", "hook", "--db", str(place.db)))
    server = _program("mcp", "--db", str(place.db))

    def add_hooks(settings: dict[str, Any]) -> dict[str, Any]:
        kept = _without_hooks(settings)
        hooks: dict[str, Any] = dict(kept.get("hooks") or {})
        for event, matcher in HOOKS.items():
            entry: dict[str, Any] = {} if matcher is None else {"matcher": matcher}
            entry["hooks"] = [{"type": "command", "command": command}]
            hooks[event] = [*(hooks.get(event) or []), entry]
        return {**kept, "hooks": hooks}

    def add_server(servers: dict[str, Any]) -> dict[str, Any]:
        known: dict[str, Any] = servers.get("mcpServers") or {}
        own = {"command": server[0], "args": server[1:]}
        return {**servers, "mcpServers": {**known, _NAME: own}}

    _change(place.settings, add_hooks, state)
    _change(place.servers, add_server, state)
    state["db"] = str(place.db)
    _write(place.state, jsons.dumps(state, indent=2) + "\n")


def _uninstall(place: _Place) -> None:
    state = _read(place.state)
    for path, remove in ((place.settings, _without_hooks), (place.servers, _without_server)):
        _restore(path, remove, state.get(str(path)) or {})
    place.state.unlink(missing_ok=True)


def _change(path: Path, change: Change, state: dict[str, Any]) -> None:
    """Change a file of settings, and note in the state how to restore it."""
    after = jsons.dumps(change(_read(path)), indent=2, ensure_ascii=False) + "\n"
    before = path.read_bytes().decode("utf-8") if path.exists() else None
    if before is not None and jsons.loads(before) == jsons.loads(after):
        return
    known = state.get(str(path))
    _write(path, after)
    if known is None:
        existed = before is not None
        state[str(path)] = {"original": before, "existed": existed, "written": _digest(after)}
    else:
        # A file that was changed since it was installed has no original any more.
        is_ours = before is not None and known["written"] == _digest(before)
        state[str(path)] = {**known, "written": _digest(after) if is_ours else ""}


def _restore(path: Path, remove: Change, known: Mapping[str, Any]) -> None:
    """Put the original bytes back, or remove refold's entries if the file was changed since."""
    if not path.exists():
        return
    left = remove(_read(path))
    now = path.read_bytes().decode("utf-8")
    if known and known["written"] == _digest(now):
        if known["original"] is None:
            path.unlink()
        else:
            _write(path, known["original"])
        return
    if left == _read(path):
        return
    if not left and known and not known["existed"]:
        path.unlink()
    else:
        _write(path, jsons.dumps(left, indent=2, ensure_ascii=False) + "\n")


def _without_hooks(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings without the hooks of refold."""
    hooks = settings.get("hooks")
    if not is_object(hooks):
        return settings
    kept: dict[str, Any] = {}
    for event, entries in hooks.items():
        others = [one for one in entries if not _is_own(one)] if is_list(entries) else entries
        if others or not entries:
            kept[event] = others
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    return {**rest, "hooks": kept} if kept else rest


def _is_own(entry: Any) -> bool:
    commands = entry.get("hooks") if is_object(entry) else None
    return is_list(commands) and any(
        is_object(one) and "refold claude-code hook" in str(one.get("command")) for one in commands
    )


def _without_server(servers: dict[str, Any]) -> dict[str, Any]:
    known = servers.get("mcpServers")
    if not is_object(known) or _NAME not in known:
        return servers
    kept = {name: value for name, value in known.items() if name != _NAME}
    rest = {name: value for name, value in servers.items() if name != "mcpServers"}
    return {**rest, "mcpServers": kept} if kept else rest


def _read(path: Path) -> dict[str, Any]:
    """Return the object in a file; an empty one without a file.

    Raises:
        InvalidSetting: the file is not a JSON object; nothing was changed.
    """
    if not path.exists():
        return {}
    try:
        found: Any = jsons.loads(path.read_bytes())
    except ValueError as error:
        raise InvalidSetting(f"{path} is not JSON ({error}); nothing was changed") from None
    if not is_object(found):
        raise InvalidSetting(f"{path} is not a JSON object; nothing was changed")
    return found


def _write(path: Path, text: str) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    with new_file(path, replace=True) as made:
        made.write_bytes(text.encode("utf-8"))
        made.chmod(mode)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8")).hexdigest()


def _status(place: _Place) -> dict[str, Any]:
    settings, servers = _read(place.settings), _read(place.servers)
    hooks: dict[str, Any] = settings.get("hooks") or {}
    events = [event for event in HOOKS if any(map(_is_own, hooks.get(event) or []))]
    has_server = _NAME in (servers.get("mcpServers") or {})
    db = LogPlace.parse(_read(place.state).get("db") or place.db)
    return {
        "installed": len(events) == len(HOOKS) and has_server,
        "hooks": events,
        "mcp_server": has_server,
        "mcp_sdk": find_spec("mcp") is not None,
        "settings": str(place.settings),
        "servers": str(place.servers),
        "db": str(db),
        "log_exists": db.path is None or db.path.exists(),
    }


def _print_status(found: Mapping[str, Any]) -> None:
    hooks = ", ".join(found["hooks"]) or "none"
    server = "registered" if found["mcp_server"] else "not registered"
    say(f"Hooks: {hooks} ({clean(found['settings'])})")
    say(f"MCP server: {server} ({clean(found['servers'])})")
    if found["mcp_server"] and not found["mcp_sdk"]:
        warn("The MCP server cannot start: pip install 'refold\\[mcp]' (the hooks work without it)")
    state = "it is made with the first session" if not found["log_exists"] else "it exists"
    if is_address(found["db"]):
        state = "on a server; it is made with the first session if it is not there"
    say(f"Log: {clean(found['db'])} ({state})")


def _hook(db: LogPlace | None) -> None:
    """Do what an event of Claude Code asks for. Nothing that goes wrong here may disturb the session."""
    try:
        event = jsons.loads(sys.stdin.read() or "{}")
        if not is_object(event) or db is None:
            return
        thread_id = _import(db, str(event.get("transcript_path") or ""))
        if event.get("hook_event_name") == "SessionStart" and thread_id is not None:
            _put_back(db, thread_id)
    except (RefoldError, OSError, ValueError) as error:
        warn(f"refold: {clean(str(error))}")


def _import(db: LogPlace, transcript: str) -> str | None:
    """Store the new messages of a session, and return its thread id."""
    from refold.infrastructure.bootstrap import open_memory
    from refold.infrastructure.transcripts.read_transcript import read_transcript

    path = Path(transcript).expanduser()
    if not transcript or not path.exists():
        return None
    try:
        found = read_transcript(path, format="claude-code").conversations
    except TranscriptError:
        return None  # A session without messages yet.
    with open_memory(db.given) as memory:
        for one in found:
            memory.conversation(one.thread_id).append_recorded(one.messages)
    return found[0].thread_id if found else None


def _put_back(db: LogPlace, thread_id: str) -> None:
    """Print what Claude Code adds to the context: the ledger, the index and the pins of the session."""
    from refold.infrastructure.bootstrap import open_memory

    with open_memory(db.given) as memory:
        text = remembered_text(memory._core, thread_id, TOKENS)  # pyright: ignore[reportPrivateUsage]
    if text:
        told = {"hookEventName": "SessionStart", "additionalContext": f"{INTRODUCTION}\n\n{text}"}
        typer.echo(jsons.dumps({"hookSpecificOutput": told}, ensure_ascii=False))
