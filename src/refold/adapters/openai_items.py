"""Items of OpenAI's Responses API in the form of the Messages API."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import groupby
from typing import Any

from refold.domain.errors import InvalidMessage
from refold.domain.messages import Block
from refold.domain.originals import RESPONSES
from refold.domain.value import is_list, is_object
from refold.infrastructure.transcripts.openai import convert_content
from refold.infrastructure.transcripts.transcript_source import arguments_of, as_blocks

from .media_lines import MEDIA, line_of

Item = dict[str, Any]
_OWN_CALLS = {
    "custom_tool_call": "input",
    "computer_call": "action",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "tool_search_call": "arguments",
}
"""Calls besides functions that the application answers, with the field of their arguments."""
_DATA = re.compile(r"(data:[^,]{0,100},)?[A-Za-z0-9+/_=-]{1000,}")
"""Bytes of a file in a result of the API, such as a picture, as base64."""


def messages_of(items: Sequence[Item]) -> list[Item]:
    """Return items as messages that have them as their original form.

    The items of an answer become one message, and so do results that follow each other.

    Raises:
        InvalidMessage: an item is no object.
    """
    for number, item in enumerate(items):
        if not is_object(item):
            raise InvalidMessage(f"items[{number}]", f"must be an object, not {item!r:.40}")
    sides = [(_side(item, number), item) for number, item in enumerate(items)]
    return [
        _message(side, [item for _, item in some])
        for side, some in groupby(sides, lambda one: one[0])
    ]


def _runs_on_server(item: Item) -> bool:
    """Return whether the API itself searched for tools, so that the result is a part of its answer."""
    kind = item.get("type")
    return kind in ("tool_search_call", "tool_search_output") and item.get("execution") != "client"


def _side(item: Item, number: int) -> str:
    role, kind = item.get("role"), str(item.get("type") or "")
    if role in ("system", "developer"):
        return f"system {number}"
    if role is not None and role != "assistant":
        return f"user {number}"
    if kind == "mcp_approval_response" or (kind.endswith("_output") and not _runs_on_server(item)):
        return "results"
    return "assistant"


def _message(side: str, items: Sequence[Item]) -> Item:
    role = side.split()[0].replace("results", "user")
    content: Any
    if role == "system" or side.startswith("user"):
        content = _said(items[0])
    else:
        content = [block for item in items for block in _blocks(item)]
    return {
        "role": role,
        "content": content,
        "original": {"format": RESPONSES, "data": list(items)},
    }


def _said(item: Item) -> Any:
    content = item.get("content")
    made = _content(content)
    if made is None:
        return "" if content is None else _json(content)
    return made


def _content(value: Any) -> str | list[Block] | None:
    """Return content as blocks of the Messages API. A file that it has no block for becomes a line of text."""
    made = convert_content(value)
    return made if made is None or isinstance(made, str) else [*map(_line_or_block, value, made)]


def _line_or_block(part: Any, block: Block) -> Block:
    source = block.get("source")
    is_known = is_object(source) and (
        block["type"] == "image" or source.get("media_type") == "application/pdf"
    )
    if is_known or not is_object(part) or part.get("type") not in MEDIA:
        return block
    return {"type": "text", "text": line_of(part)}


def files_of(items: Iterable[Any]) -> dict[str, Item]:
    """Return the parts that a request has as they were given, by the line that is stored in their place."""
    return {
        line_of(part): part
        for item in items
        for parts in (item.get("content"), item.get("output"))
        for part in (parts if is_list(parts) else ())
        if is_object(part) and part.get("type") in MEDIA
    }


def with_files(item: Item, files: Mapping[str, Item]) -> Item:
    """Return an item with files in place of their lines."""
    made = dict(item)
    for name in ("content", "output"):
        given = item.get(name)
        if isinstance(given, str):
            runs = groupby(given.split("\n"), lambda line: line if line in files else None)
            given = [{"type": "input_text", "text": "\n".join(lines)} for _, lines in runs]
        if is_list(given) and any(is_object(one) and one.get("text") in files for one in given):
            made[name] = [files.get(str(one.get("text")), one) for one in given]
    return made


def _blocks(item: Item) -> Iterator[Block]:
    kind, call_id = item.get("type"), str(item.get("call_id") or item.get("id") or "unknown")
    if item.get("role") == "assistant":
        said = _said(item)
        yield from as_blocks(said if isinstance(said, str) else tuple(said))
    elif kind == "function_call":
        name = str(item.get("name") or "unknown")
        yield {
            "type": "tool_use",
            "id": call_id,
            "name": name,
            "input": arguments_of(item.get("arguments")),
        }
    elif _runs_on_server(item):
        yield {"type": "text", "text": f"[{kind}] {_json(_without_data(item))}"}
    elif isinstance(kind, str) and kind in _OWN_CALLS:
        given = item.get(_OWN_CALLS[kind])
        arguments = given if is_object(given) else {"input": given}
        yield {
            "type": "tool_use",
            "id": call_id,
            "name": str(item.get("name") or kind),
            "input": arguments,
        }
    elif str(kind).endswith("_output"):
        yield {
            "type": "tool_result",
            "tool_use_id": call_id,
            "content": _output(item.get("output")),
        }
    elif kind != "reasoning":
        # A call that ran on a server, with its result.
        yield {"type": "text", "text": f"[{kind}] {_json(_without_data(item))}"}


def _without_data(value: Any) -> Any:
    """Return a result of the API without the bytes of files. Its original form has them."""
    if is_object(value):
        return {name: _without_data(inner) for name, inner in value.items()}
    if is_list(value):
        return [*map(_without_data, value)]
    is_data = isinstance(value, str) and _DATA.fullmatch(value)
    return f"{len(value):,} characters" if is_data else value


def _output(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if is_object(value) and value.get("type") == "computer_screenshot":
        value = {**value, "type": "input_image"}
    parts = [value] if is_object(value) and "type" in value else value
    are_parts = is_list(parts) and all(is_object(one) and "type" in one for one in parts)
    made = _content(parts) if are_parts else None
    return _json(value) if made is None or isinstance(made, str) else made


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def fingerprint(item: Mapping[str, Any]) -> str:
    """Return what forms of the same item have in common: those that were sent have no ids, for instance."""
    kept = {
        name: value for name, value in item.items() if name not in ("id", "status", "provider_data")
    }
    if kept.get("type") == "message":
        del kept["type"]
    content = convert_content(kept.get("content"))
    if content is not None:
        texts = [
            {"text": block.get("text")} if block.get("type") == "text" else block
            for block in as_blocks(content)
        ]
        kept["content"] = texts
    return json.dumps(kept, sort_keys=True, ensure_ascii=False, default=str)


class NotContinued(Exception):
    """The input of a model lacks items of its session."""


def end_of_known(known: Sequence[str], asked: Sequence[str]) -> int:
    """Return where the part of the input begins that is new. ``known`` has the newest items of the session.

    Raises:
        NotContinued: items of the session are not in the input.
    """
    if not known:
        return 0
    for end in range(len(asked), 0, -1):
        size = min(end, len(known))
        if asked[end - 1] == known[-1] and asked[end - size : end] == known[-size:]:
            return end
    raise NotContinued


def without_halves(known: Sequence[Item], got: Sequence[Item], given: Sequence[Item]) -> list[Item]:
    """Return items without those that the SDK has left out of what a run got.

    These are calls without a result, results without a call, and reasoning before such calls.
    """
    calls = {one.get("call_id") for one in got if _is_a(one, "_call")}
    results = {one.get("call_id") for one in got if _is_a(one, "_output")}
    halves = (calls ^ results) - {one.get("call_id") for one in given} - {None}
    kept: list[Item] = []
    before_a_half = False
    for item in reversed(known):
        if item.get("call_id") in halves:
            before_a_half = _is_a(item, "_call")
        elif not (before_a_half and item.get("type") == "reasoning"):
            before_a_half = False
            kept.append(item)
    return kept[::-1]


def _is_a(item: Item, kind: str) -> bool:
    return str(item.get("type")).endswith(kind)


class Run:
    """A run with a session. Agents that are its tools inherit its filter, but their input is another conversation."""

    def __init__(self, session: object, *, is_new: bool) -> None:
        self.session = session
        self.ahead = Counter[str]()
        """Items that the filter has stored, and that the run will give as well."""
        self.is_new = is_new
        """Whether the run has got its items and given none, so that its first input may have more than the session."""
        self.is_turn = True
        """Whether the next input is that of the run itself: it gives items to the session before each."""

    def begin(self) -> None:
        """Begin again: what an earlier run has not given any more, it will not give."""
        self.ahead.clear()
        self.is_new = self.is_turn = True

    def take_turn(self) -> bool:
        """Return whether this input is that of the run itself. Until the run gives items, later ones are not."""
        is_turn, self.is_turn = self.is_turn, False
        return is_turn

    def fresh(self, items: Sequence[Item]) -> tuple[list[Item], Counter[str]]:
        """Return those items that the filter has not stored, and what it has stored besides."""
        rest = self.ahead.copy()
        found: list[Item] = []
        for item in items:
            known = fingerprint(item) if rest else ""
            if rest[known] > 0:
                rest[known] -= 1
            else:
                found.append(item)
        return found, rest

    def was_given(self, fresh: Sequence[Item], rest: Counter[str]) -> None:
        """Note that the session has these items."""
        self.ahead, self.is_new = rest, False
        self.is_turn = self.is_turn or bool(fresh)


RUN = ContextVar[Run | None]("refold_openai_agents_run", default=None)
"""Run whose session was asked for its items last, in the task of that run and in those that it starts."""
