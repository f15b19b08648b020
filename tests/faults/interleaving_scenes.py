"""The scenes of which interleavings are explored: two to four threads, what each calls, and on which memories."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import refold

from .interleaving_scheduler import Scheduler
from .sample_store import LOG, mark_of

WINDOW = 4_000
SHORT = "the pier is sound."
LONG = "the harbour was looked at again and the pier was found to be sound. " * 12
"""With the messages that the log begins with, one of these makes a compaction due; two still fit."""
Json = dict[str, Any]


class FewWords:
    """A summariser without a model, which gives its turn away once."""

    name = "few-words"

    async def summarise(self, request: refold.SummaryRequest) -> refold.SummaryDraft:
        text = f"The harbour and the pier were looked at, {len(request.messages)} times."
        return refold.SummaryDraft(
            text=text, complete=True, model="few-1", prompt_fingerprint="few-1"
        )


@dataclass
class Call:
    """A call of a thread, when it was made, and how it ended."""

    thread: str
    what: str
    conversation: str
    memory: int
    marks: tuple[str, ...] = ()
    """The words of the messages that it appends, or of the message that it erases."""
    began: int = 0
    ended: int = 0
    """Zero where the call never ended."""
    answer: Any = None
    error: BaseException | None = None


@dataclass
class Stage:
    """The memories of a scene and the calls that were made, in the order of their ends."""

    folder: Path
    scheduler: Scheduler
    memories: list[refold.Memory]
    calls: list[Call] = field(default_factory=list[Call])
    files_at_close: dict[str, bytes] | None = None


class Hand:
    """What a thread of a scene calls; every call is written down."""

    def __init__(self, stage: Stage, thread: str, memory: int) -> None:
        self._stage, self._thread, self._number = stage, thread, memory
        self._marks = map(mark_of, count(1_000 * (ord(thread) - ord("a") + 1)))
        self.memory = stage.memories[memory]

    def append(self, name: str, *roles: str, words: str = SHORT, **options: Any) -> Call:
        """Append a message for each role; several of them as a list."""
        marks = tuple(next(self._marks) for _ in roles)
        said = [
            {"role": role, "content": f"{mark} {words}"}
            for role, mark in zip(roles, marks, strict=True)
        ]
        return self.append_these(name, marks, said, **options)

    def append_these(
        self, name: str, marks: tuple[str, ...], said: list[Json], **options: Any
    ) -> Call:
        message = said if len(said) > 1 else said[0]
        act = lambda: self.memory.conversation(name).append(message, **options)  # noqa: E731
        return self._do(Call(self._thread, "append", name, self._number, marks), act)

    def round_of_tools(self, name: str) -> Call:
        """Append a call of a tool, its result and an answer, as a list."""
        marks = tuple(next(self._marks) for _ in range(3))
        number = f"call{marks[0][2:7]}"
        call = {"type": "tool_use", "id": number, "name": "read", "input": {"path": marks[0]}}
        result = {
            "type": "tool_result",
            "tool_use_id": number,
            "content": f"{marks[1]} is its text",
        }
        said: list[Json] = [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": f"{marks[2]} was read"},
        ]
        return self.append_these(name, marks, said)

    def erase(self, name: str, position: int) -> Call:
        act = lambda: self.memory.conversation(name).erase(position)  # noqa: E731
        return self._do(Call(self._thread, "erase", name, self._number, (mark_of(position),)), act)

    def context(self, name: str) -> Call:
        act = lambda: self.memory.conversation(name).context()  # noqa: E731
        return self._do(Call(self._thread, "context", name, self._number), act)

    def lists(self, name: str) -> Call:
        """List the conversations and search one."""
        memory = self.memory

        def act() -> object:
            return len(memory.conversations()), len(memory.conversation(name).recall("pier").hits)

        return self._do(Call(self._thread, "lists", name, self._number), act)

    def turn(self, name: str, work: Callable[[], object]) -> Call:
        """Do something within a turn."""

        def act() -> None:
            with self.memory.conversation(name).turn():
                work()

        return self._do(Call(self._thread, "turn", name, self._number), act)

    def close(self) -> Call:
        def act() -> None:
            self.memory.close()
            if len(self._stage.memories) == 1:
                self._stage.files_at_close = contents(self._stage.folder)

        return self._do(Call(self._thread, "close", "", self._number), act)

    def open_another(self) -> Call:
        """Open a memory of the same file, and close it."""

        def act() -> object:
            with opened(self._stage.folder, background=False) as other:
                return other.conversation("x").version

        return self._do(Call(self._thread, "open", "x", self._number), act)

    def _do(self, call: Call, act: Callable[[], Any]) -> Call:
        self._stage.calls.append(call)
        call.began = self._stage.scheduler.points + 1
        try:
            call.answer = act()
        except Exception as error:
            call.error = error
        call.ended = self._stage.scheduler.points + 1
        return call


class Scene(NamedTuple):
    """Threads, by name, and the memory that each one uses."""

    about: str
    threads: Mapping[str, Callable[[Hand], object]]
    memories: tuple[int, ...] = (0, 0, 0, 0)
    """The memory of each thread, by number."""
    background: bool = False
    refused: tuple[type[refold.RefoldError], ...] = ()
    """Errors that a call may end with, in addition to those of a closed memory."""
    scrub: int = 0


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of each file of the store."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def opened(folder: Path, *, background: bool, scrub: int = 0) -> refold.Memory:
    numbers = count()
    return refold.open(
        folder / LOG,
        window=WINDOW,
        summariser=FewWords(),
        background=background,
        scrub_megabytes=scrub,
        telemetry=False,
        new_id=lambda: f"{next(numbers):032x}",
    )


def make_folder(folder: Path, *, is_long: bool) -> None:
    """A log with two conversations; a long one is compacted as soon as a few long messages follow."""
    words = LONG if is_long else SHORT
    with opened(folder, background=False) as memory:
        for name, size in (("x", 14), ("y", 2)):
            said = [
                {"role": ("user", "assistant")[n % 2], "content": f"{mark_of(n)} {words}"}
                for n in range(size)
            ]
            memory.conversation(name).append(said, recorded=True)
        memory.conversation("x").context()
        memory.conversations()
        memory.conversation("x").recall("pier")


def _talk(hand: Hand) -> None:
    hand.append("x", "user")
    hand.append("x", "assistant")


def _talk_long(hand: Hand) -> None:
    for role in ("user", "assistant", "user", "assistant"):
        hand.append("x", role, words=LONG)


def _talk_in_turns(hand: Hand) -> None:
    def work() -> None:
        hand.append("x", "user", words="is it sound?")
        hand.context("x")
        hand.append("x", "assistant", words="it is.")

    hand.turn("x", work)


def _look(hand: Hand) -> None:
    hand.context("x")
    hand.context("x")


def _look_around(hand: Hand) -> None:
    for name in ("x", "y", "x"):
        hand.context(name)


def _erase(hand: Hand) -> None:
    hand.erase("x", 2)
    hand.context("x")


def _same_key(hand: Hand) -> None:
    said = {"role": "user", "content": f"{mark_of(9_000)} came twice"}
    hand.append_these("x", (mark_of(9_000),), [said], key="same")
    hand.append("x", "assistant")


def _expected(hand: Hand) -> None:
    version = hand.memory.conversation("x").version
    hand.append("x", "user", expected_version=version)


def _use_tools(hand: Hand) -> None:
    hand.round_of_tools("x")


def _say_elsewhere(hand: Hand) -> None:
    hand.append("y", "user")


def _ask(hand: Hand) -> None:
    hand.context("x")


def _list(hand: Hand) -> None:
    hand.lists("x")


def _list_elsewhere(hand: Hand) -> None:
    hand.lists("y")


SCENES = {
    "append": Scene(
        "three threads append single messages and lists to two conversations",
        {
            "a": _talk,
            "b": _use_tools,
            "c": _say_elsewhere,
        },
    ),
    "requests": Scene(
        "requests and appends in two conversations",
        {"a": _look_around, "b": _talk, "c": _say_elsewhere},
    ),
    "keys": Scene("two threads append with the same key", {"a": _same_key, "b": _same_key}),
    "versions": Scene(
        "two threads append with an expected version",
        {"a": _expected, "b": _expected},
        refused=(refold.VersionConflict,),
    ),
    "compact": Scene(
        "appends that begin a compaction in the background, and requests",
        {"a": _talk_long, "b": _look},
        background=True,
    ),
    "erase": Scene("an erasure, appends and requests", {"a": _talk, "b": _erase, "c": _look}),
    "erase compact": Scene(
        "an erasure while a compaction runs in the background",
        {"a": _talk_long, "b": _erase},
        background=True,
    ),
    "close": Scene(
        "close, while others append and ask for a request",
        {"a": _talk, "b": _ask, "c": Hand.close},
    ),
    "close compact": Scene(
        "close while a compaction runs in the background",
        {"a": _talk_long, "b": Hand.close},
        background=True,
    ),
    "close erase": Scene(
        "close during an erasure", {"a": _erase, "b": Hand.close, "c": Hand.close}
    ),
    "close lists": Scene("close during lists and a search", {"a": _list, "b": Hand.close}),
    "turns": Scene(
        "three threads take turns", {"a": _talk_in_turns, "b": _talk_in_turns, "c": _talk}
    ),
    "lists": Scene(
        "lists and a search during appends",
        {"a": _talk, "b": _list, "c": _list_elsewhere},
    ),
    "two": Scene(
        "two memories of one file: appends, an erasure, requests",
        {"a": _talk, "b": _erase, "c": _look},
        memories=(0, 1, 1),
    ),
    "two compact": Scene(
        "two memories of one file, both with compactions in the background",
        {"a": _talk_long, "b": _talk_long},
        memories=(0, 1),
        background=True,
    ),
    "two close": Scene(
        "one of two memories of a file is closed, and a third one opened",
        {"a": _talk, "b": Hand.close, "c": Hand.open_another},
        memories=(0, 1, 0),
    ),
    "scrub": Scene(
        "close and appends while the log is checked in the background",
        {"a": _talk, "b": Hand.close},
        scrub=1,
    ),
}
