"""Effects and outcomes of tool calls."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.value import is_list, is_object

from .cues import clean, excerpt, squeeze

_SAYS_ERROR = lazy_pattern(
    r"\s*(?:<tool_use_error>|\W{0,3}(?:error|fatal|exception|traceback|failed|failure|permission denied|"
    r"exit code:? [1-9]|command not found|错误|失败|异常)\b)|\s*\{\s*\"(?:error|errors)\"\s*:\s*[^\sn\[{f]",
    re.IGNORECASE,
)
_EXITED = lazy_pattern(
    r"(?:exit(?:ed)?(?: with)?(?: status| code)?:? |<returncode>|exit_code[\"']?[:=] ?)(-?[1-9]\d*)\b",
    re.IGNORECASE,
    signs="exit|<returncode>",
)
_TRACEBACK = lazy_pattern(
    r"Traceback \(most recent call last\)|command not found|No such file or directory",
    signs="traceback|command not found|no such file",
)
_COMPLAINS = lazy_pattern(
    r"\b(?:error|fatal|exception|failed|failure|denied|not found|no such|cannot|could not|panic|aborted)\b|"
    r"Error\b|错误|失败",
    re.IGNORECASE,
    signs="error|fatal|exception|fail|denied|not found|no such|cannot|could not|panic|aborted",
)
_BRIEF = 3
"""Number of lines at the end of an output that show how the command ended."""
_ENDING = 1_000
"""Characters at the end of an output that mostly have these lines and another one."""
_FINDS = lazy_pattern(r"(?:git )?(?:grep|rg|diff|find|ls|test|which|pgrep)\b")
_REFUSED = lazy_pattern(
    r"doesn't want to (?:proceed|take)|was rejected|user (?:denied|rejected|declined)|"
    r"permission to use .{1,80} (?:has been|was|is) denied|haven't granted",
    re.IGNORECASE,
)
_USER_SAID = lazy_pattern(
    r"(?:the user said|user feedback|provided feedback):?\s*\n?(.+)", re.DOTALL | re.IGNORECASE
)
_OF_ANOTHER = lazy_pattern(r"<tool_use_error>Sibling tool call errored")
_TELLING = lazy_pattern(
    r"^.*(?:\b\w*(?:Error|Exception)\b|^error|fatal:|FAIL|panic:|cannot |not found|undefined|denied|✗|错误|失败).*$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a tool call."""

    failed: bool
    text: str
    """The whole result as received."""
    refused: bool = False
    """Whether the user refused the call."""
    reply: str = ""
    """The user's own words when refusing."""

    @property
    def never_ran(self) -> bool:
        """Whether the call did not run: the user refused it, or it was cancelled with another call."""
        return self.refused or _OF_ANOTHER.match(self.text) is not None

    def gist(self) -> str:
        """Return the main part of the result: at most 300 characters, clean and redacted."""
        if self.refused:
            return "refused by the user"
        return excerpt(self.error_excerpt(), 300) if self.failed else excerpt(self.text, 200)

    def error_excerpt(self) -> str:
        """Return the text around the first line that names an error. Most of a long log is noise."""
        return _telling(self.text)


def outcome_of(block: Mapping[str, Any], command: str | None) -> Outcome:
    """Parse a ``tool_result`` block. Without ``is_error``, only clear signs count as failure.

    ``command`` is the shell command that was run, or None for other tools.
    """
    text = result_text(block)
    error = block.get("is_error") is True
    if error and _REFUSED.search(text[:600]):
        said = _USER_SAID.search(text)
        reply = said[1].partition("\nNote:")[0].strip() if said else ""
        return Outcome(True, text, refused=True, reply=reply)
    # If a tool states its outcome, words in the output do not count: successful commands print
    # warnings too.
    says = block.get("is_error") is None and not _continues_normally(text, command)
    failed = error or (says and _SAYS_ERROR.match(text) is not None)
    if command is not None:
        exited = _EXITED.search(text[-400:]) or _EXITED.match(text)
        failed = failed or bool(exited) or (says and bool(_TRACEBACK.search(text[:300])))
        if exited and exited[1] == "1" and _FINDS.match(command) and len(text) < 60:
            failed = False  # A search that found nothing.
    return Outcome(failed, text)


_BRIEF_RESULT = 600
"""Characters of a result whose main part is all of it."""
_PRINTED = 2_000
_WORD_CHARACTER = lazy_pattern(r"[^\W_]")


def last_line(text: str) -> str:
    """Return the last line of a result that has a word, at most the beginning of a long one."""
    backwards = text[-_PRINTED:][::-1]
    last_word = _WORD_CHARACTER.search(backwards)
    if last_word is None:
        return ""
    end = len(text) - last_word.start()
    start = text.rfind("\n", 0, end) + 1
    line, _, _ = text[start:].partition("\n")
    return line[:_PRINTED].strip()


def begin_of_point(text: str) -> int:
    """Return where the main part of a tool result begins: all of a brief one, or else its last lines."""
    if len(text) <= _BRIEF_RESULT:
        return 0
    end = len(text) - _BRIEF_RESULT // 2
    found = text.find("\n" if "\n" in text[end:] else " ", end)
    return found + 1 if found >= 0 else len(text)


def _continues_normally(text: str, command: str | None) -> bool:
    """Return whether a command's output continues normally after its first complaint."""
    if command is None or text.lstrip().startswith("Traceback"):
        return False
    text = text.strip()
    printed = text[-_ENDING:].splitlines()
    if len(printed) <= _BRIEF:
        printed = text.splitlines()
    if len(printed) <= _BRIEF:
        return False
    return not any(_COMPLAINS.search(line) for line in printed[-_BRIEF:])


def result_text(block: Mapping[str, Any], depth: int = 0) -> str:
    """Return the words of a result. Content of other kinds is named in brackets."""
    content = block.get("text", block.get("content"))
    if isinstance(content, str):
        return content
    if depth > 4:
        return ""
    parts: list[str] = []
    for part in content[:200] if is_list(content) else ():
        if isinstance(part, str):
            parts.append(part)
        elif is_object(part):
            parts.append(result_text(part, depth + 1) or f"[{part.get('type', 'block')}]")
    return "\n".join(parts)


def _telling(text: str) -> str:
    if len(text) <= 300:
        return text
    shown = text if len(text) < 20_000 else text[:8_000] + "\n" + text[-12_000:]
    found = _TELLING.findall(shown)
    return "\n".join(found[:3]) if found else text[-1_200:]


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
_SHELL = lazy_pattern(
    r"bash|shell|terminal|exec|run_?command|ipython|powershell|^run$|^cmd$", re.IGNORECASE
)
_WRITES = lazy_pattern(
    r"write|edit|create|replace|patch|insert|append|save|delete|remove|move|rename", re.IGNORECASE
)
_READS = lazy_pattern(r"^(?:read|view|open|cat|show|get_?file|load)|read|view", re.IGNORECASE)
_LOOKS = lazy_pattern(
    r"^(?:get|list|ls|search|find|grep|glob|calculate|fetch|lookup|query|check|describe|count|web_?search|"
    r"web_?fetch|ask|exit_?plan|enter_?plan|skill|tool_?search|present)|search|_get_|_list_",
    re.IGNORECASE,
)
_SILENT = lazy_pattern(
    r"^(?:think|thinking|finish|submit|todo_?read|task_?(?:list|get)|bash_?output|noop)$",
    re.IGNORECASE,
)
_TODOS = lazy_pattern(r"todo|^update_?plan$|task_?tracker", re.IGNORECASE)
_PATCHED = lazy_pattern(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)
_HEREDOC = lazy_pattern(
    r"\b(?:cat|tee)\s*(?:-a\s+)?>{0,2}\s*['\"]?([^\s'\"<>|;&]+)['\"]?\s*<<|"
    r"<<-?\s*['\"]?\w+['\"]?\s*>{1,2}\s*([^\s'\"|;&]+)"
)
_SED = lazy_pattern(r"\bsed\s+-i\S*\s(?:[^|;&\n]*\s)?([\w./~-]+\.\w+)\s*(?:$|[;&|\n])")
_CHDIR = lazy_pattern(r"^cd\s+\S+\s*(?:&&|;)\s*")


class Kind(Enum):
    """Purpose of a tool call."""

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
class Action:
    """A parsed tool call: its purpose and its targets."""

    kind: Kind
    tool: str
    subjects: tuple[str, ...]
    """Paths, one command, or a rendering of the input; clean and redacted."""
    verb: str = ""
    exact: tuple[str, ...] = ()
    """Paths or one command exactly as in the input."""

    @property
    def title(self) -> str:
        """One line that names the call."""
        match self.kind:
            case Kind.COMMAND:
                return f"`{self.subjects[0]}`"
            case Kind.MODIFY | Kind.READ:
                return f"{self.tool} {', '.join(self.subjects[:3])}"
            case _:
                return self.subjects[0] if self.subjects else self.tool


def parse_call(name: object, given: object) -> Action:
    """Parse the name and input of a ``tool_use`` block. Unknown tools count as an action or a lookup."""
    tool = squeeze(clean(name), 60) if isinstance(name, str) and name.strip() else "tool"
    fields = given if is_object(given) else {"input": given}
    return (
        _parse_bookkeeping(tool, fields)
        or _parse_file_action(tool, fields)
        or _parse_command(tool, fields)
        or Action(
            Kind.LOOK if _LOOKS.search(tool) else Kind.ACT, tool, (render_call(tool, fields),)
        )
    )


def without_folder(command: str) -> str:
    """Return a shell command without a change of folder at its beginning."""
    return _CHDIR.sub("", command.strip())


def find_written_files(command: str) -> tuple[str, ...]:
    """Return the files that a shell command clearly writes (here-documents, ``sed -i``)."""
    found = [m[1] or m[2] for m in _HEREDOC.finditer(command)]
    found += [m[1] for m in _SED.finditer(command)]
    return tuple(excerpt(path, 300) for path in found if not path.startswith(("/dev/", "$")))


def _parse_bookkeeping(tool: str, fields: Mapping[str, Any]) -> Action | None:
    folded = tool.casefold().replace("_", "")
    if _SILENT.match(tool):
        return Action(Kind.SILENT, tool, ())
    if folded == "taskcreate" and isinstance(fields.get("subject"), str):
        return Action(Kind.NEW_TASK, tool, (excerpt(fields["subject"], 200),))
    if folded == "taskupdate":
        return Action(Kind.TASK_CHANGE, tool, (), verb=str(fields.get("status", "")))
    if _TODOS.search(tool):
        return Action(Kind.TODOS, tool, ())
    if folded.startswith("ask") and _text(fields, ("question", "prompt", "message")):
        question = _text(fields, ("question", "prompt", "message"))
        return Action(Kind.ASK, tool, (excerpt(question, 300),))
    return None


def _parse_file_action(tool: str, fields: Mapping[str, Any]) -> Action | None:
    patch = _text(fields, ("patch", "input", "diff"))
    if patched := _PATCHED.findall(patch):
        return _file_action(Kind.MODIFY, tool, patched, "edited")
    path = _text(fields, _PATHS).strip()
    if not excerpt(path, 300):
        return None
    sub = fields.get("command")
    if isinstance(sub, str) and "editor" in tool.casefold():
        if sub == "view":
            return _file_action(Kind.READ, tool, [path])
        return _file_action(Kind.MODIFY, tool, [path], "created" if sub == "create" else "edited")
    if _WRITES.search(tool) or (_WRITTEN & fields.keys() and not _LOOKS.search(tool)):
        whole = (
            _text(fields, ("content", "file_text", "contents")) and "edit" not in tool.casefold()
        )
        return _file_action(Kind.MODIFY, tool, [path], "written" if whole else "edited")
    if _READS.search(tool):
        return _file_action(Kind.READ, tool, [path])
    return None


def _file_action(kind: Kind, tool: str, paths: Sequence[str], verb: str = "") -> Action:
    return Action(kind, tool, tuple(excerpt(p, 300) for p in paths), verb, tuple(paths))


def _parse_command(tool: str, fields: Mapping[str, Any]) -> Action | None:
    if not (_SHELL.search(tool) or "command" in fields or "cmd" in fields):
        return None
    words = fields.get("command", fields.get("cmd"))
    text = " ".join(map(str, words)) if is_list(words) else _text(fields, _COMMANDS)
    line = without_folder(text)
    shown = excerpt(line, 240)
    return Action(Kind.COMMAND, tool, (shown,), text[:20_000], (line,)) if shown else None


def render_call(tool: str, fields: Mapping[str, Any]) -> str:
    """Return ``tool(field=value, …)`` with short values, at most 240 characters."""
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


def is_lookup(title: str) -> bool:
    """Return whether an action line names a tool that only looks something up."""
    return _LOOKS.search(title.partition("(")[0]) is not None
