"""The facts that the exam asks for, found by plain splitting and not by refold's own extraction."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import Message
from refold.domain.value import is_list, is_object

Kind = Literal["paths", "commands", "parts", "names", "said", "asked"]
"""Kind of a fact.

File paths, whole shell commands, the steps of compound commands, composed names (snake_case, camelCase),
sentences of the person, and those of them that ask for something.
"""

KINDS: tuple[Kind, ...] = ("paths", "commands", "parts", "names", "said", "asked")
_BREAKS = lazy_pattern(r"[\s\"'`()\[\]{}<>,;|=*]+")
_EDGES = ".:!?&$#\\"
_LINE = lazy_pattern(r":\d+(?:[:-]\d+)?$")
_PATH = lazy_pattern(r"(?=.*[A-Za-z])[\w.@~+-]*(?:/[\w.@+-]+)+/?|[\w-]+(?:\.[\w-]+)*\.[a-z]{1,5}")
_EXTENSION = lazy_pattern(
    r"\.(?:py|pyi|ts|tsx|js|jsx|mjs|go|rs|java|kt|rb|php|c|h|cpp|cs|swift|sh|sql|json|jsonl|yaml|yml|toml|"
    r"cfg|md|rst|txt|csv|xml|html|css|lock|log|proto|svg|png)$"
)
_NAME = lazy_pattern(
    r"(?<![\w./-])(?:_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+_{0,2}|[A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]+)+)"
    r"(?![\w/-]|\.\w)"
)
_STEPS = lazy_pattern(r"\s*(?:&&|\|\||;|\||\n)\s*")
_SENTENCE = lazy_pattern(r"(?<=[.!?。！？])\s+|\n+")
_ASKS = lazy_pattern(
    r"\?$|？$|\b(?:please|can you|could you|let'?s|i want|i need|we need|make sure|you should)\b|请|帮我|需要|"
    r"^(?:add|build|change|check|clean|commit|continue|create|debug|delete|do|document|ensure|explain|find|fix|"
    r"implement|improve|make|merge|move|push|read|refactor|remove|rename|replace|review|rewrite|run|see|set|"
    r"show|start|stop|test|try|update|use|verify|write)\b",
    re.IGNORECASE,
)
_PROGRAM = lazy_pattern(
    r"\s*(?:<[a-z-]+>|\[Request interrupted|Caveat: |This session is being continued)"
)
_CODE = lazy_pattern(r"[{}<>|=$\\]|^\s*[-+#>*]|://")
_FENCED = lazy_pattern(r"```.*?(?:```|\Z)", re.DOTALL)
_TYPED = 1_500
_SHORTEST, _LONGEST = 12, 300
_SHORTEST_NAME, _LONGEST_NAME = 5, 60
_SHORTEST_PATH, _LONGEST_PATH = 4, 200
_SHORTEST_STEP, _LONGEST_COMMAND = 6, 2_000


class Fact(NamedTuple):
    """An exact text in a message."""

    kind: Kind
    text: str


def facts_of(message: Message) -> set[Fact]:
    """Return the facts of a message."""
    found = set[Fact]()
    for text in texts_of(message):
        found |= {Fact("paths", path) for path in paths_of(text)}
        found |= {Fact("names", name) for name in names_of(text)}
    for command in commands_of(message):
        found.add(Fact("commands", command))
        found |= {Fact("parts", part) for part in parts_of(command)}
    for sentence in said_by_person(message):
        found.add(Fact("said", sentence))
        if asks(sentence):
            found.add(Fact("asked", sentence))
    return found


def texts_of(message: Message) -> Iterator[str]:
    """Yield the texts of a message: words, the strings of tool inputs, and results."""
    for block in message.blocks():
        match block.get("type"):
            case "text":
                yield from _strings(block.get("text"))
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                yield from _strings(block.get("input"))
            case str() as kind if kind.endswith("tool_result"):
                yield from _result_texts(block.get("content"))
            case _:
                pass


def inputs_of(message: Message) -> Iterator[str]:
    """Yield the strings of the inputs of a message's tool calls."""
    for block in message.blocks():
        if block.get("type") == "tool_use":
            yield from _strings(block.get("input"))


def _result_texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in content if is_list(content) else ():
        if is_object(part) and part.get("type") == "text":
            yield from _strings(part.get("text"))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_object(value):
        for inner in value.values():
            yield from _strings(inner)
    elif is_list(value):
        for inner in value:
            yield from _strings(inner)


def paths_of(text: str) -> Iterator[str]:
    """Yield the paths in a text: words with a slash, and file names with a usual extension."""
    for word in _BREAKS.split(text):
        path = _LINE.sub("", word.strip(_EDGES))
        if not _SHORTEST_PATH <= len(path) <= _LONGEST_PATH or "//" in path:
            continue
        if not _PATH.fullmatch(path):
            continue
        if _EXTENSION.search(path) or path.count("/") > 1:
            yield path.rstrip("/")


def names_of(text: str) -> Iterator[str]:
    """Yield the names in a text that are composed with underscores or capital letters."""
    for found in _NAME.finditer(text):
        if _SHORTEST_NAME <= len(found[0]) <= _LONGEST_NAME:
            yield found[0]


def commands_of(message: Message) -> Iterator[str]:
    """Yield the shell commands that the message's tool calls run, with single spaces."""
    for block in message.blocks():
        fields = block.get("input")
        if block.get("type") == "tool_use" and is_object(fields):
            command = command_text(fields)
            if 1 < len(command) <= _LONGEST_COMMAND:
                yield one_line(command)


def command_text(fields: Mapping[str, Any]) -> str:
    """Return the shell command in the input of a call, or an empty text. A list of words is joined."""
    command = fields.get("command", fields.get("cmd"))
    if is_list(command) and command and all(isinstance(word, str) for word in command):
        # As in ["bash", "-lc", "make check"].
        is_shell = len(command) == 3 and str(command[1]).startswith("-")
        return str(command[2]) if is_shell else " ".join(map(str, command))
    return command if isinstance(command, str) else ""


def parts_of(command: str) -> Iterator[str]:
    """Yield the steps of a compound command."""
    parts = [part.strip() for part in _STEPS.split(command)]
    if len(parts) > 1:
        yield from (part for part in parts if len(part) >= _SHORTEST_STEP)


def said_by_person(message: Message) -> Iterator[str]:
    """Yield the sentences that a person typed, without code. A long text is pasted and not typed."""
    if message.role != "user" or message.author in ("program", "tool"):
        return
    for block in message.blocks():
        text = block.get("text")
        if block.get("type") != "text" or not isinstance(text, str) or _PROGRAM.match(text):
            continue
        if len(text) > _TYPED:
            continue
        for sentence in _SENTENCE.split(_FENCED.sub("\n", text)):
            said = one_line(sentence)
            if _SHORTEST <= len(said) <= _LONGEST and not _CODE.search(sentence):
                yield said


def asks(sentence: str) -> bool:
    """Return whether a sentence of the person asks for something."""
    return _ASKS.search(sentence) is not None


def one_line(text: str) -> str:
    """Return a text with single spaces instead of all white space."""
    return " ".join(text.split())


class Reuse:
    """The texts that the rest of a session uses, to find out which facts it uses again."""

    def __init__(self, later: Iterable[Message]) -> None:
        messages = list(later)
        texts = [text for message in messages for text in inputs_of(message)]
        self._commands = {command for message in messages for command in commands_of(message)}
        self._parts = {part for command in self._commands for part in (command, *parts_of(command))}
        self._paths = {path for text in texts for path in paths_of(text)}
        self._names = {name for text in texts for name in names_of(text)}

    def uses(self, fact: Fact) -> bool:
        """Return whether inputs of tools use a fact again. What the person said always counts."""
        match fact.kind:
            case "paths":
                return fact.text in self._paths
            case "commands":
                return fact.text in self._commands
            case "parts":
                return fact.text in self._parts
            case "names":
                return fact.text in self._names
            case "said" | "asked":
                return True


class Shown:
    """The text of a request, to find out which facts stand in it."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._text = "\n".join(one_line(text) for text in texts)

    def has(self, text: str) -> bool:
        """Return whether the text stands in the request as whole words."""
        at = self._text.find(text)
        while at >= 0:
            before = self._text[at - 1 : at]
            behind = self._text[at + len(text) : at + len(text) + 2]
            if not _continues_before(before) and not _continues_behind(behind):
                return True
            at = self._text.find(text, at + 1)
        return False

    def names(self, file: str) -> bool:
        """Return whether the name of a file stands in the request, in some folder or without."""
        if file not in self._text:  # A pattern takes longer to compile than to search.
            return False
        return re.search(rf"(?<![\w.-]){re.escape(file)}(?![\w-]|\.\w)", self._text) is not None

    def has_all(self, message: Message) -> bool:
        """Return whether the request shows a message in full."""
        return all(one_line(text) in self._text for text in texts_of(message))


def _continues_before(before: str) -> bool:
    return bool(before) and ((before.isalnum() and before.isascii()) or before in "_-/")


def _continues_behind(behind: str) -> bool:
    first = behind[:1]
    if first.isascii() and (first.isalnum() or first in "_-/") and first:
        return True
    return first == "." and behind[1:].isalnum()


def request_texts(request: Mapping[str, Any]) -> list[str]:
    """Return all texts of a request: system text, words, inputs and results."""
    texts = list(_strings(request.get("system", "")))
    for message in request["messages"]:
        content = message["content"]
        if isinstance(content, str):
            texts.append(content)
        elif is_list(content):
            blocks = [block for block in content if is_object(block)]
            for block in blocks:
                texts += _block_texts(block)
    return texts


def _block_texts(block: Mapping[str, Any]) -> list[str]:
    kind = str(block.get("type", ""))
    if kind == "text":
        return list(_strings(block.get("text")))
    if kind.endswith("tool_result"):
        return list(_result_texts(block.get("content")))
    return list(_strings(block.get("input"))) if kind.endswith("tool_use") else []
