"""What a test knows about a conversation from its own appends: never asks the code under test."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from refold.testing.history_layout import Message
from refold.testing.request_parts import blocks_of

Json = Mapping[str, Any]


class Spoken(NamedTuple):
    """One appended message with what decisions depend on."""

    position: int
    message: Message

    @property
    def role(self) -> str:
        return str(self.message["role"])

    @property
    def blocks(self) -> list[Json]:
        return blocks_of(self.message["content"])

    @property
    def calls(self) -> tuple[str, ...]:
        found = (b for b in self.blocks if b.get("type") == "tool_use")
        return tuple(str(b.get("id")) for b in found) if self.role == "assistant" else ()

    @property
    def results(self) -> tuple[str, ...]:
        found = (b for b in self.blocks if b.get("type") == "tool_result")
        return tuple(str(b.get("tool_use_id")) for b in found) if self.role == "user" else ()

    @property
    def words(self) -> list[str]:
        """The texts that the speaker said in words, blank ones left out."""
        texts = (str(b.get("text")) for b in self.blocks if b.get("type") == "text")
        return [text for text in texts if text.strip()]

    @property
    def asks(self) -> bool:
        """Whether a user says or shows something, beside tool results."""
        shows = any(b.get("type") in ("image", "document") for b in self.blocks)
        return self.role == "user" and bool(shows or self.words)


def last_assistant(spoken: Sequence[Spoken]) -> int | None:
    """The position of the assistant's newest message."""
    return next((s.position for s in reversed(spoken) if s.role == "assistant"), None)


def waiting_calls(spoken: Sequence[Spoken]) -> set[str]:
    """The calls of the assistant's newest message that have no result yet.

    Recordings hold calls that share an id: each takes a result of its own.
    """
    last = last_assistant(spoken)
    if last is None:
        return set()
    answered = Counter(call for s in spoken[last + 1 :] for call in s.results)
    return set(Counter(spoken[last].calls) - answered)


def unanswered(spoken: Sequence[Spoken]) -> list[Spoken]:
    """What was said since the assistant's newest message."""
    last = last_assistant(spoken)
    return list(spoken[0 if last is None else last + 1 :])


def running_requests(spoken: Sequence[Spoken]) -> list[Spoken]:
    """What the user asked or showed since the assistant last spoke without calling a tool."""
    requests: list[Spoken] = []
    for s in reversed(spoken):
        if s.role == "assistant" and s.words and not s.calls:
            break
        if s.asks:
            requests.append(s)
    return requests[::-1]


def is_the_models_turn(spoken: Sequence[Spoken]) -> bool:
    """Whether the request would be sent now: the user, or the last result, has just spoken."""
    if not spoken or waiting_calls(spoken):
        return False
    return spoken[-1].role == "user" and bool(spoken[-1].results or spoken[-1].asks)


def clearly_coverable(
    spoken: Sequence[Spoken], covered_to: int, keep_last: int, system: int
) -> range | None:
    """Whole answers that a compaction may cover, found in the simplest way; None if there are none.

    The end is where the user speaks after an answer in words without calls. ``system`` messages
    stand at the beginning and are never covered.
    """
    last = last_assistant(spoken)
    if last is None:
        return None
    for end in range(min(last, len(spoken) - keep_last), max(covered_to, system), -1):
        answer, after = spoken[end - 1], spoken[end]
        ends = answer.role == "assistant" and answer.words and not answer.calls
        if ends and after.role == "user" and not after.results:
            return range(max(covered_to, system), end)
    return None


def preamble(spoken: Sequence[Spoken]) -> int:
    """How many system messages stand before the first of anybody else."""
    return next((s.position for s in spoken if s.role != "system"), len(spoken))


def strings(value: object) -> Iterator[str]:
    """Every text in JSON data, keys left out."""
    match value:
        case str():
            yield value
        case Mapping():
            for inner in cast(Json, value).values():
                yield from strings(inner)
        case list() | tuple():
            for inner in cast("Sequence[object]", value):
                yield from strings(inner)
        case _:
            pass
