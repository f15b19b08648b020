"""Plants facts into a recorded history: in the words of user and model, in tool inputs and results."""

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from planted_facts import Fact, Statement

from refold.domain.messages import Message

EARLY = 0.6
"""Facts stand in the first so much of the history, so that every one of them is summarised."""

_NOISE = (
    "collected 31 items",
    "warning: unused variable `tmp`",
    "Done in a moment.",
    "cache hit for 14 of 15 targets",
    "no changes added",
    "2 workers started",
)


@dataclass(frozen=True)
class History:
    """A history with facts in it."""

    messages: tuple[Message, ...]
    pins: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    """Texts that are pinned after the message at a position."""
    pinned_messages: frozenset[int] = frozenset()


@dataclass
class _Draft:
    """A message of the history with what is inserted before it, or said in it."""

    message: Message
    before: list[Message] = field(default_factory=list[Message])
    pins: list[str] = field(default_factory=list[str])


def planted(
    messages: Sequence[Message],
    facts: Sequence[Fact],
    rng: random.Random,
    size: Callable[[Sequence[Message]], int],
) -> History:
    """The history with every statement of every fact at a place of its own, in their order."""
    drafts = [_Draft(m) for m in messages]
    sums: list[int] = []
    for message in messages:
        sums.append((sums[-1] if sums else 0) + size([message]))
    for fact in facts:
        draws = sorted(rng.random() for _ in fact.statements)
        for statement, drawn in zip(fact.statements, draws, strict=True):
            place = bisect_left(sums, drawn * EARLY * sums[-1])
            _plant(drafts, place, statement, rng)
    return _history(drafts)


def _plant(drafts: list[_Draft], place: int, statement: Statement, rng: random.Random) -> None:
    match statement.carrier:
        case "pin" if rng.random() < 0.5:
            drafts[place].pins.append(statement.text)
        case "pin":
            _turn(drafts, place).before.append(_Pinned(role="user", content=statement.text))
        case "user" if rng.random() < 0.5:
            _turn(drafts, place).before.append(Message(role="user", content=statement.text))
        case "user" | "assistant" as role:
            _say(drafts, place, role, statement.text, rng)
        case carrier:
            _turn(drafts, place).before.extend(_tool(carrier, statement.text, rng))


class _Pinned(Message, frozen=True):
    """A message that is pinned where it stands."""


def _turn(drafts: list[_Draft], place: int) -> _Draft:
    """The next message of the model behind one of the user: anything may be said before it."""
    for index in range(max(1, place), len(drafts)):
        if drafts[index].message.role == "assistant" and drafts[index - 1].message.role == "user":
            return drafts[index]
    raise ValueError("the history has no turn after this place")


def _say(drafts: list[_Draft], place: int, role: str, text: str, rng: random.Random) -> None:
    for draft in drafts[place:]:
        if draft.message.role == role and (said := _said(draft.message, text, rng)):
            draft.message = said
            return
    raise ValueError(f"the history has no words of the {role} after this place")


def _said(message: Message, text: str, rng: random.Random) -> Message | None:
    """The message with a sentence more, at the beginning or the end of somebody's words."""
    first = rng.random() < 0.5
    if isinstance(message.content, str):
        joined = f"{text}\n\n{message.content}" if first else f"{message.content}\n\n{text}"
        return Message(role=message.role, content=joined)
    blocks = list(message.content)
    for index, block in enumerate(blocks):
        if block.get("type") == "text" and str(block.get("text", "")).strip():
            joined = f"{text} {block['text']}" if first else f"{block['text']} {text}"
            blocks[index] = {**block, "text": joined}
            return Message(role=message.role, content=tuple(blocks))
    return None


def _tool(carrier: str, text: str, rng: random.Random) -> list[Message]:
    call_id = f"toolu_{rng.getrandbits(64):016x}"
    name, given, result = _call(carrier, text, rng)
    call = {"type": "tool_use", "id": call_id, "name": name, "input": given}
    answer = {"type": "tool_result", "tool_use_id": call_id, "content": result}
    return [Message(role="assistant", content=(call,)), Message(role="user", content=(answer,))]


def _call(carrier: str, text: str, rng: random.Random) -> tuple[str, dict[str, Any], str]:
    noise = rng.sample(_NOISE, 2)
    match carrier:
        case "read":
            return "Read", {"file_path": text}, "\n".join(noise)
        case "edit":
            change = {"file_path": text, "old_string": noise[0], "new_string": noise[1]}
            return "Edit", change, "The file has been updated."
        case "run":
            return "Bash", {"command": text, "description": "Run it"}, "\n".join(noise)
        case _:
            return "Bash", {"command": "./report"}, "\n".join((noise[0], text, noise[1]))


def _history(drafts: Sequence[_Draft]) -> History:
    messages: list[Message] = []
    pins: dict[int, list[str]] = {}
    pinned: set[int] = set()
    for draft in drafts:
        for message in (*draft.before, draft.message):
            if isinstance(message, _Pinned):
                pinned.add(len(messages))
            messages.append(Message(role=message.role, content=message.content))
        if draft.pins:
            pins[len(messages) - 1] = draft.pins
    return History(tuple(messages), pins, frozenset(pinned))
