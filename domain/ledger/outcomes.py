"""Says how a tool call ended, from its result block."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from refold.domain.json_data import is_list, is_object

from .wording import excerpt

_SAYS_ERROR = re.compile(
    r"\s*(?:<tool_use_error>|\W{0,3}(?:error|fatal|exception|traceback|failed|failure|permission denied|"
    r"exit code:? [1-9]|command not found|错误|失败|异常)\b)|\s*\{\s*\"(?:error|errors)\"\s*:\s*[^\sn\[{f]",
    re.IGNORECASE,
)
_EXITED = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: status| code)?:? |<returncode>|exit_code[\"']?[:=] ?)(-?[1-9]\d*)\b",
    re.IGNORECASE,
)
_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\)|command not found|No such file or directory"
)
_COMPLAINS = re.compile(
    r"\b(?:error|fatal|exception|failed|failure|denied|not found|no such|cannot|could not|panic|aborted)\b|"
    r"Error\b|错误|失败",
    re.IGNORECASE,
)
_BRIEF = 3
"""Lines: of so few, each says how the command ended; of more, the last ones do."""
_FINDS = re.compile(r"(?:git )?(?:grep|rg|diff|find|ls|test|which|pgrep)\b")
_REFUSED = re.compile(
    r"doesn't want to (?:proceed|take)|was rejected|user (?:denied|rejected|declined)|"
    r"permission to use .{1,80} (?:has been|was|is) denied|haven't granted",
    re.IGNORECASE,
)
_USER_SAID = re.compile(
    r"(?:the user said|user feedback|provided feedback):?\s*\n?(.+)", re.DOTALL | re.IGNORECASE
)
_TELLING = re.compile(
    r"^.*(?:\b\w*(?:Error|Exception)\b|^error|fatal:|FAIL|panic:|cannot |not found|undefined|denied|✗|错误|失败).*$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended."""

    failed: bool
    text: str
    """The whole result, as it came."""
    refused: bool = False
    """True when the user did not let the call happen."""
    reply: str = ""
    """What the user said when refusing, in their own words."""

    def gist(self) -> str:
        """The telling part: at most 300 characters, clean and redacted. Made only where needed."""
        if self.refused:
            return "refused by the user"
        return excerpt(self.telling(), 300) if self.failed else excerpt(self.text, 200)

    def telling(self) -> str:
        """Around the first line that names the error, as it came; a long log is mostly noise."""
        return _telling(self.text)


def outcome_of(block: Mapping[str, Any], command: str | None) -> Outcome:
    """Reads a ``tool_result`` block. Without ``is_error``, only clear signs count as failure.

    ``command`` is the shell command that was run, None for other tools.
    """
    text = result_text(block)
    error = block.get("is_error") is True
    if error and _REFUSED.search(text[:600]):
        said = _USER_SAID.search(text)
        reply = said[1].partition("\nNote:")[0].strip() if said else ""
        return Outcome(True, text, refused=True, reply=reply)
    # Where a tool says how it ended, words are none of its signs: a warning of what worked is no failure.
    says = block.get("is_error") is None and not _goes_on(text, command)
    failed = error or (says and _SAYS_ERROR.match(text) is not None)
    if command is not None:
        exited = _EXITED.search(text[-400:]) or _EXITED.match(text)
        failed = failed or bool(exited) or (says and bool(_TRACEBACK.search(text[:300])))
        if exited and exited[1] == "1" and _FINDS.match(command) and len(text) < 60:
            failed = False  # A search that found nothing.
    return Outcome(failed, text)


def _goes_on(text: str, command: str | None) -> bool:
    """Whether the output of a command goes on behind its first complaint as if nothing was wrong."""
    told = text.strip().splitlines()
    if command is None or len(told) <= _BRIEF or text.lstrip().startswith("Traceback"):
        return False
    return not any(_COMPLAINS.search(line) for line in told[-_BRIEF:])


def result_text(block: Mapping[str, Any], depth: int = 0) -> str:
    """The words of a result; content of other kinds is named in brackets."""
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
