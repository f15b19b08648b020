"""The stores that faults are put into: each message has a word of its own, so that it is known wherever it lies.

Made through the public interface alone, so that any installed version of refold makes them.
"""

import hashlib
import json
import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import refold

from .children import run_apart

LOG = "agent.db"
WINDOW = 20_000
ENCRYPTION_KEY = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
OLD = "old"
"""The folder with the same files as they were some appends before."""
DERIVED = ("agent.views.db", "agent.recall.db", "agent.vectors.db")


class Said(NamedTuple):
    """A message that was acknowledged."""

    mark: str
    """A word that no other message has."""
    thread_id: str
    position: int
    key: str | None
    text: str


class Store(NamedTuple):
    """A store on disk, and all that is known of it without asking it."""

    name: str
    folder: Path
    said: tuple[Said, ...]
    facts: dict[str, Any]
    """Ids that commands need: a pin, a summary."""

    @property
    def marks(self) -> frozenset[str]:
        return frozenset(s.mark for s in self.said)


class DigestEmbedder:
    """A vector for each text, without a model."""

    name = "digests"
    model = "digests-1"
    dimension = 8

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Sequence[float]:
        digest = hashlib.shake_128(text.encode("utf-8", "surrogatepass")).digest(self.dimension)
        return [byte / 128 - 1 for byte in digest]


def mark_of(number: int) -> str:
    """A word for the message with this number."""
    return f"mk{number:05d}{hashlib.sha256(str(number).encode()).hexdigest()[:4]}z"


def key_of(number: int) -> str:
    """The delivery key of the message with this number, as queues number them."""
    return f"delivery-{number:05d}"


def open_store(
    folder: Path, *, log: str = LOG, encrypted: bool | None = None, **options: Any
) -> refold.Memory:
    """The memory of a store, as all programs here open it."""
    if (folder / "encrypted").exists() if encrypted is None else encrypted:
        options["encryption_key"] = ENCRYPTION_KEY
    return refold.open(
        folder / log, window=WINDOW, telemetry=False, embedder=DigestEmbedder(), **options
    )


def make_store(folder: Path, name: str) -> Store:
    """Make the store with this name: ``killed``, ``closed``, ``encrypted`` or ``killed-encrypted``."""
    place = folder / name
    place.mkdir(parents=True)
    if "encrypted" in name:
        (place / "encrypted").touch()
    first = run_apart(lambda: _first_life(place))
    if first.status:
        raise RuntimeError(f"the store {name} could not be made: {first.err[-2000:]}")
    shutil.copytree(place, folder / f"{name}-{OLD}")
    run_apart(lambda: _second_life(place, end="killed" in name))
    told = json.loads((place / "told.json").read_text())
    (place / "told.json").unlink()
    said = tuple(Said(*row) for row in [*first.answer["said"], *told])
    return Store(name, place, said, first.answer["facts"])


def make_large_store(folder: Path, name: str, size: int) -> Store:
    """A store whose folds outgrow the cache of SQLite; its name says whether it is encrypted."""
    place = folder / name
    place.mkdir(parents=True)
    if "encrypted" in name:
        (place / "encrypted").touch()
    ended = run_apart(lambda: _large_life(place, size))
    if ended.status:
        raise RuntimeError(f"the store {name} could not be made: {ended.err[-2000:]}")
    said = tuple(Said(*row) for row in ended.answer["said"])
    return Store(name, place, said, ended.answer["facts"])


def _large_life(folder: Path, size: int) -> dict[str, Any]:
    answer = _first_life(folder)
    with open_store(folder) as memory:
        conversation = memory.conversation("large")
        numbers = range(1_000, 1_000 + size // 15_000)
        texts = [f"{mark_of(n)} " + f"{mark_of(n)} stone {n} of the pier. " * 500 for n in numbers]
        messages = [{"role": "user", "content": text} for text in texts]
        positions = conversation.append(messages, recorded=True).positions
        _look(memory)
    answer["said"] += [
        Said(mark_of(n), "large", position, None, text)
        for n, position, text in zip(numbers, positions, texts, strict=True)
    ]
    return answer


def _first_life(folder: Path) -> dict[str, Any]:
    said: list[Said] = []
    with open_store(folder) as memory:
        one = memory.conversation("one")
        for number in range(22):
            said += _turn(one, number * 4)
        pin_id = one.pin("never push to main on a Friday")
        assert one.compact().outcome == "performed"
        one.label("the first one")
        two, three = memory.conversation("two"), memory.conversation("three")
        said += [_say(two, number, size=9_000) for number in range(100, 106)]
        said += _copied(said, two.fork(thread_id="copy").thread_id)
        said += [_say(three, number, key=key_of(number)) for number in range(200, 230)]
        _look(memory)
        summaries = one.summaries()
        for text in ("Nobody pushes on a Friday.", "The harbour is closed."):
            one.tools(edits="propose").call("remember", {"text": text, "kind": "fact"})
        allowed, refused = (proposal.edit_id for proposal in one.proposals())
        facts = {
            "pin": pin_id,
            "summary": summaries[0].summary_id,
            "version": one.version,
            "allowed": allowed,
            "refused": refused,
        }
    return {"said": said, "facts": facts}


def _second_life(folder: Path, *, end: bool) -> None:
    memory = open_store(folder)
    one, two, three, four = map(memory.conversation, ("one", "two", "three", "four"))
    said = [_say(three, number, key=key_of(number)) for number in range(300, 306)]
    said += [_say(two, number, size=900) for number in range(400, 404)]
    _look(memory)
    said += [_say(four, number, key=key_of(number)) for number in range(500, 512)]
    said.append(_say(one, 600))
    (folder / "told.json").write_text(json.dumps(said))
    if end:
        os.kill(os.getpid(), signal.SIGKILL)
    memory.close()


def _say(
    conversation: refold.ConversationMemory, number: int, *, key: str | None = None, size: int = 150
) -> Said:
    text = (
        f"{mark_of(number)} " + "we looked at the build of the harbour and found it sound. " * 900
    )
    message = {"role": "user", "content": text[:size].strip()}
    (position,) = conversation.append(message, key=key).positions
    return Said(mark_of(number), conversation.thread_id, position, key, text[:size].strip())


def _turn(conversation: refold.ConversationMemory, number: int) -> Iterator[Said]:
    marks = [mark_of(number + part) for part in range(4)]
    keys = [key_of(number + part) for part in range(4)]
    call_id = f"c{number}"
    call = {"type": "tool_use", "id": call_id, "name": "read", "input": {"path": marks[1]}}
    lines = f"{marks[2]}\n" + f"line {number} of the file\n" * 9
    result = {"type": "tool_result", "tool_use_id": call_id, "content": lines}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"{marks[0]} look at file_{number}.py " * 3},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": f"{marks[3]} file_{number}.py has {number} faults. " * 3},
    ]
    positions = conversation.append(messages, key=keys).positions
    for mark, key, position, message in zip(marks, keys, positions, messages, strict=True):
        yield Said(mark, conversation.thread_id, position, key, json.dumps(message["content"]))


def _copied(said: Sequence[Said], thread_id: str) -> list[Said]:
    return [s._replace(thread_id=thread_id) for s in said if s.thread_id == "two"]


def _look(memory: refold.Memory) -> None:
    memory.conversations()
    memory.conversation("one").recall("faults of file_20.py")
    memory.embed()
