"""Says what a tool call does to the world, from its name and the names of its input fields."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from refold.domain.json_data import is_list, is_object

from .wording import clean, excerpt, squeeze

_PATHS = (
    "file_path",
    "path",
    "filename",
    "notebook_path",
    "filepath",
    "target_file",
    "file_name",
    "file",
)
_COMMANDS = ("command", "cmd", "script", "commands", "code")
_WRITTEN = {
    "content", "contents", "new_string", "new_str", "old_string", "old_str", "file_text", "edits",
    "patch", "diff", "new_source", "insert_line", "text", "new_content", "replacement", "to_replace",
}  # fmt: skip
_MANNER = {
    "output_mode",
    "head_limit",
    "limit",
    "offset",
    "description",
    "timeout",
    "clarification_type",
}
_SHELL = re.compile(
    r"bash|shell|terminal|exec|run_?command|ipython|powershell|^run$|^cmd$", re.IGNORECASE
)
_WRITES = re.compile(
    r"write|edit|create|replace|patch|insert|append|save|delete|remove|move|rename", re.IGNORECASE
)
_READS = re.compile(r"^(?:read|view|open|cat|show|get_?file|load)|read|view", re.IGNORECASE)
_LOOKS = re.compile(
    r"^(?:get|list|ls|search|find|grep|glob|calculate|fetch|lookup|query|check|describe|count|web_?search|"
    r"web_?fetch|ask|exit_?plan|enter_?plan|skill|tool_?search|present)|search|_get_|_list_",
    re.IGNORECASE,
)
_SILENT = re.compile(
    r"^(?:think|thinking|finish|submit|todo_?read|task_?(?:list|get)|bash_?output|noop)$",
    re.IGNORECASE,
)
_TODOS = re.compile(r"todo|^update_?plan$|task_?tracker", re.IGNORECASE)
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)
_HEREDOC = re.compile(
    r"\b(?:cat|tee)\s*(?:-a\s+)?>{0,2}\s*['\"]?([^\s'\"<>|;&]+)['\"]?\s*<<|"
    r"<<-?\s*['\"]?\w+['\"]?\s*>{1,2}\s*([^\s'\"|;&]+)"
)
_SED = re.compile(r"\bsed\s+-i\S*\s(?:[^|;&\n]*\s)?([\w./~-]+\.\w+)\s*(?:$|[;&|\n])")
_CHDIR = re.compile(r"^cd\s+\S+\s*(?:&&|;)\s*")


class Kind(Enum):
    """What a call is for."""

    MODIFY = auto()
    READ = auto()
    COMMAND = auto()
    TODOS = auto()
    NEW_TASK = auto()
    TASK_CHANGE = auto()
    ASK = auto()
    ACT = auto()
    LOOK = auto()
    SILENT = auto()


@dataclass(frozen=True, slots=True)
class Deed:
    """A tool call understood: what it does, and to what."""

    kind: Kind
    tool: str
    subjects: tuple[str, ...]
    """Paths, one command, or one rendering of the input: clean and redacted."""
    verb: str = ""
    exact: tuple[str, ...] = ()
    """Paths or one command as they stand in the input, character for character."""

    @property
    def title(self) -> str:
        """Names the call in a line."""
        match self.kind:
            case Kind.COMMAND:
                return f"`{self.subjects[0]}`"
            case Kind.MODIFY | Kind.READ:
                return f"{self.tool} {', '.join(self.subjects[:3])}"
            case _:
                return self.subjects[0] if self.subjects else self.tool


def deed_of(name: object, given: object) -> Deed:
    """Reads a ``tool_use`` block's name and input; anything unknown is an action or a look."""
    tool = squeeze(clean(name), 60) if isinstance(name, str) and name.strip() else "tool"
    fields = given if is_object(given) else {"input": given}
    return (
        _bookkeeping(tool, fields)
        or _file_deed(tool, fields)
        or _command(tool, fields)
        or Deed(Kind.LOOK if _LOOKS.search(tool) else Kind.ACT, tool, (rendered(tool, fields),))
    )


def written_by(command: str) -> tuple[str, ...]:
    """The files that a shell command plainly writes (here-documents, sed -i)."""
    found = [m[1] or m[2] for m in _HEREDOC.finditer(command)]
    found += [m[1] for m in _SED.finditer(command)]
    return tuple(excerpt(path, 300) for path in found if not path.startswith(("/dev/", "$")))


def _bookkeeping(tool: str, fields: Mapping[str, Any]) -> Deed | None:
    folded = tool.casefold().replace("_", "")
    if _SILENT.match(tool):
        return Deed(Kind.SILENT, tool, ())
    if folded == "taskcreate" and isinstance(fields.get("subject"), str):
        return Deed(Kind.NEW_TASK, tool, (excerpt(fields["subject"], 200),))
    if folded == "taskupdate":
        return Deed(Kind.TASK_CHANGE, tool, (), verb=str(fields.get("status", "")))
    if _TODOS.search(tool):
        return Deed(Kind.TODOS, tool, ())
    if folded.startswith("ask") and _text(fields, ("question", "prompt", "message")):
        question = _text(fields, ("question", "prompt", "message"))
        return Deed(Kind.ASK, tool, (excerpt(question, 300),))
    return None


def _file_deed(tool: str, fields: Mapping[str, Any]) -> Deed | None:
    patch = _text(fields, ("patch", "input", "diff"))
    if patched := _PATCHED.findall(patch):
        return _of_files(Kind.MODIFY, tool, patched, "edited")
    path = _text(fields, _PATHS).strip()
    if not excerpt(path, 300):
        return None
    sub = fields.get("command")
    if isinstance(sub, str) and "editor" in tool.casefold():
        if sub == "view":
            return _of_files(Kind.READ, tool, [path])
        return _of_files(Kind.MODIFY, tool, [path], "created" if sub == "create" else "edited")
    if _WRITES.search(tool) or (_WRITTEN & fields.keys() and not _LOOKS.search(tool)):
        whole = (
            _text(fields, ("content", "file_text", "contents")) and "edit" not in tool.casefold()
        )
        return _of_files(Kind.MODIFY, tool, [path], "written" if whole else "edited")
    if _READS.search(tool):
        return _of_files(Kind.READ, tool, [path])
    return None


def _of_files(kind: Kind, tool: str, paths: Sequence[str], verb: str = "") -> Deed:
    return Deed(kind, tool, tuple(excerpt(p, 300) for p in paths), verb, tuple(paths))


def _command(tool: str, fields: Mapping[str, Any]) -> Deed | None:
    if not (_SHELL.search(tool) or "command" in fields or "cmd" in fields):
        return None
    words = fields.get("command", fields.get("cmd"))
    text = " ".join(map(str, words)) if is_list(words) else _text(fields, _COMMANDS)
    line = _CHDIR.sub("", text.strip())
    shown = excerpt(line, 240)
    return Deed(Kind.COMMAND, tool, (shown,), text[:20_000], (line,)) if shown else None


def rendered(tool: str, fields: Mapping[str, Any]) -> str:
    """``tool(field=value, …)`` with short values, at most 240 characters."""
    parts: list[str] = []
    for key, value in list(fields.items())[:16]:
        if key in _MANNER or key.startswith("-"):
            continue
        match value:
            case str():
                shown = squeeze(value, 90)
            case bool() | int() | float() | None:
                shown = str(value)
            case _:
                shown = squeeze(_json(value), 110)
        parts.append(f"{key}={shown}")
    return excerpt(f"{tool}({', '.join(parts)})", 240)


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (ValueError, TypeError, RecursionError):
        return "…"


def _text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def looks_only(title: str) -> bool:
    """Whether an action line is of a call that only looks something up, by its tool's name."""
    return _LOOKS.search(title.partition("(")[0]) is not None
