"""Convert the moves of a conversation to messages with numbered markers and ids, and renumber messages."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, assert_never, cast

from refold.testing.history_moves import (
    Blank,
    Foreign,
    Interjection,
    Move,
    Part,
    Pictured,
    Result,
    Said,
    Searched,
    Speaks,
    StrayResult,
    Thought,
    ToolRound,
)

Block = dict[str, Any]
Message = dict[str, Any]
Step = list[Message]

_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_TOOLS = ("bash", "read_file", "搜索", "edit-file")
_MARKER = re.compile(r"⟦m(\d+)⟧")
_IDS = frozenset({"id", "tool_use_id"})
_SEALS = frozenset({"signature", "data"})


def marker(index: int) -> str:
    """Return the marker in every text of the message with this index in its history."""
    return f"⟦m{index}⟧"


def marked(text: str) -> set[int]:
    """Return the indexes of the messages whose markers occur in a text."""
    return {int(number) for number in _MARKER.findall(text)}


class Layout:
    """A converter of moves to messages.

    It adds a marker to each text, so that every text of a history is unique.
    """

    def __init__(self, *, huge: int) -> None:
        self._huge = huge
        self._calls = 0
        self._index = 0
        self._issued: list[str] = []
        self._answered: list[str] = []

    def steps(self, move: Move) -> list[Step]:
        """Return the messages of a move, grouped by what is appended together."""
        match move:
            case Speaks():
                return [[self._speaks(move)]]
            case ToolRound():
                messages = self._tool_round(move)
                return [messages] if move.together else [[message] for message in messages]
            case StrayResult():
                block = self._result(self._stray_id(move), move.result, "")
                return [[self._message("user", [block])]]
            case _:
                assert_never(move)

    def _message(self, role: str, content: list[Block] | str) -> Message:
        self._index += 1
        return {"role": role, "content": content}

    def _mark(self, place: str) -> str:
        # The second and later texts of a message include their place in it.
        return marker(self._index) + (f"⟦b{place}⟧" if place else "")

    def _speaks(self, move: Speaks) -> Message:
        blocks = self._blocks(move.parts)
        if move.as_text and len(blocks) == 1 and blocks[0]["type"] == "text":
            return self._message(move.role, str(blocks[0]["text"]))
        return self._message(move.role, blocks)

    def _blocks(self, parts: Iterable[Part], start: int = 0) -> list[Block]:
        blocks: list[Block] = []
        for part in parts:
            place = start + len(blocks)
            blocks += self._part(part, str(place) if place else "")
        return blocks

    def _part(self, part: Part, place: str) -> list[Block]:
        match part:
            case Said(words):
                return [{"type": "text", "text": f"{self._mark(place)} {words}"}]
            case Blank(space):
                return [{"type": "text", "text": space}]
            case Pictured(source):
                return [_image(source)]
            case Foreign(kind):
                return [{"type": kind, "payload": {"note": self._mark(place), "n": [1, 2.5, None]}}]
            case Thought():
                return [self._thought(part, place)]
            case Searched(answered):
                return self._search(self._mark(place), answered)
            case _:
                assert_never(part)

    def _thought(self, part: Thought, place: str) -> Block:
        seal = f"c2ln{self._index:04d}{place or 0}=="
        block: Block = {"type": "thinking", "thinking": f"{self._mark(place)} {part.words}"}
        match part.seal:
            case "signed":
                return {**block, "signature": seal}
            case "empty":
                return {**block, "signature": ""}
            case "missing":
                return block
            case "redacted":
                return {"type": "redacted_thinking", "data": seal}

    def _search(self, mark: str, answered: bool) -> list[Block]:
        self._calls += 1
        call = f"srvtoolu_{self._calls:04d}"
        found = {"type": "web_search_result", "url": "https://example.org/", "title": mark}
        blocks: list[Block] = [
            {"type": "server_tool_use", "id": call, "name": "web_search", "input": {"query": mark}}
        ]
        if answered:
            blocks.append(
                {"type": "web_search_tool_result", "tool_use_id": call, "content": [found]}
            )
        return blocks

    def _tool_round(self, move: ToolRound) -> list[Message]:
        ids = [self._new_id(move, n) for n in range(len(move.results))]
        messages = self._call_messages(move, ids)
        current: list[Block] = []
        arriving = [n for n in move.order if n < len(ids)]
        arriving = arriving[: max(len(ids) - move.withheld, 0)]
        said = move.interjection
        pause = min(said.after, len(arriving)) if said else None
        for slot in range(len(arriving) + 1):
            if said and slot == pause:
                current = self._interject(said, current, messages)
            if slot == len(arriving):
                break
            if slot in move.apart:
                current = self._flush(current, messages)
            call, place = arriving[slot], str(len(current)) if current else ""
            current.append(self._result(ids[call], move.results[call], place))
            self._answered.append(ids[call])
        self._flush(current, messages)
        return messages

    def _new_id(self, move: ToolRound, n: int) -> str:
        self._calls += 1
        call = move.id_style.format(n=self._calls)
        if move.reuse_id and n == 0 and self._issued:
            call = self._issued[-1]
        self._issued.append(call)
        return call

    def _call_messages(self, move: ToolRound, ids: list[str]) -> list[Message]:
        if move.streamed:
            messages = [self._message("assistant", self._blocks([part])) for part in move.thoughts]
            return messages + [self._message("assistant", [self._call(c, "")]) for c in ids]
        blocks = self._blocks(move.thoughts)
        for call in ids:
            blocks.append(self._call(call, str(len(blocks)) if blocks else ""))
        return [self._message("assistant", blocks)]

    def _call(self, call: str, place: str) -> Block:
        name = _TOOLS[self._calls % len(_TOOLS)]
        arguments = {"command": self._mark(place), "path": f"src/模块_{self._index}.py", "n": 1.5}
        return {"type": "tool_use", "id": call, "name": name, "input": arguments}

    def _interject(
        self, said: Interjection, current: list[Block], messages: list[Message]
    ) -> list[Block]:
        if said.inside:
            return current + self._blocks(said.parts, len(current))
        self._flush(current, messages)
        return self._flush(self._blocks(said.parts), messages)

    def _flush(self, current: list[Block], messages: list[Message]) -> list[Block]:
        if current:
            messages.append(self._message("user", current))
        return []

    def _stray_id(self, move: StrayResult) -> str:
        self._calls += 1
        unanswered = [call for call in self._issued if call not in self._answered]
        choices = {"unknown": [], "again": self._answered, "late": unanswered}[move.kind]
        return choices[-1] if choices else f"toolu_unknown_{self._calls}"

    def _result(self, call: str, result: Result, place: str) -> Block:
        block: Block = {"type": "tool_result", "tool_use_id": call}
        content = self._result_content(result, place)
        if content is not None:
            block["content"] = content
        if result.is_error:
            block["is_error"] = True
        return block

    def _result_content(self, result: Result, place: str) -> str | list[Block] | None:
        text = f"{self._mark(place)} {result.words}"
        block: Block = {"type": "text", "text": text}
        second: Block = {"type": "text", "text": f"{self._mark((place or '0') + '.1')} more"}
        match result.outcome:
            case "text":
                return text
            case "texts":
                return [block, second]
            case "picture":
                return [_image("base64")]
            case "mixed":
                return [block, _image("base64"), second]
            case "nothing":
                return ""
            case "no content":
                return None
            case "no blocks":
                return []
            case "blank":
                return [{"type": "text", "text": " \n"}]
            case "huge":
                return (text + "\n" + "x = 42  # 一行\n" * (self._huge // 12 + 1))[: self._huge]


def _image(source: str) -> Block:
    if source == "url":
        return {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    data = {"type": "base64", "media_type": "image/png", "data": _PIXEL}
    return {"type": "image", "source": data}


def number_through(steps: Sequence[Step], first: int, part: int) -> list[Step]:
    """Return the steps as part ``part`` of a conversation whose next message has index ``first``.

    Markers contain the index in the whole conversation. Call ids and signatures of different parts
    differ. Blank ids and signatures stay blank.
    """
    return [[_renumber(message, first, part) for message in step] for step in steps]


def _renumber(message: Message, first: int, part: int) -> Message:
    return cast(Message, _renumber_value(message, "", first, part))


def _renumber_value(value: Any, name: str, first: int, part: int) -> Any:
    match value:
        case str() if value and name in _IDS:
            return f"{value}_{part}"
        case str() if value and name in _SEALS and value.startswith("c2ln"):
            return f"{value}{part}"
        case str():
            return _MARKER.sub(lambda found: marker(int(found[1]) + first), value)
        case dict():
            items = cast(Message, value).items()
            return {k: _renumber_value(v, k, first, part) for k, v in items}
        case list() | tuple():
            return [_renumber_value(v, "", first, part) for v in cast("Sequence[Any]", value)]
        case _:
            return value
