"""Lives of a log on a simulated disk: commands that a seed draws, what was acknowledged, and what must hold after."""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import refold
from refold.application.api.conversation_memory import ConversationMemory
from tests.faults.sample_store import ENCRYPTION_KEY, LOG

from .watched_folder import WatchedFolder

GONE = "[Content unavailable"
THREADS = ("one", "two", "three")
NEVER = 10**9


class Group(NamedTuple):
    """Messages that were stored together, or not at all."""

    texts: tuple[str, ...]
    begun: int
    """Number of deeds of the disk before it."""
    acknowledged: int
    """Number of deeds before its acknowledgement, or ``NEVER``."""


@dataclass
class Known:
    """All that is known of a log without asking it. Times are numbers of deeds of the disk in this life."""

    groups: dict[str, list[Group]] = field(default_factory=dict[str, list[Group]])
    """By conversation. A group of the past has a negative time."""
    erased: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """By text: when its erasure began, and when it was acknowledged."""
    kept: dict[str, tuple[str, int, int]] = field(default_factory=dict[str, tuple[str, int, int]])
    """Summaries and pins by id: the conversation, when it was stored, and ``NEVER`` or when it was taken away."""
    encrypted: bool = False

    def at(self, count: int, shown: dict[str, Sequence[str]]) -> "Known":
        """Return what is known in the next life, after a loss that left this many deeds and these texts."""
        groups = {thread: [Group(tuple(texts), -1, -1)] for thread, texts in shown.items() if texts}
        return Known(groups, self._erased_before(count), self._kept_before(count), self.encrypted)

    def before(self, count: int) -> "Known":
        """Return what is known after a loss that left this many deeds, with all that is not certain."""
        groups = {
            thread: [
                Group(one.texts, -1, -1 if one.acknowledged <= count else NEVER)
                for one in known
                if one.begun <= count
            ]
            for thread, known in self.groups.items()
        }
        return Known(groups, self._erased_before(count), self._kept_before(count), self.encrypted)

    def _kept_before(self, count: int) -> dict[str, tuple[str, int, int]]:
        return {
            one: (thread, -1, NEVER if ended > count else -1)
            for one, (thread, begun, ended) in self.kept.items()
            if begun <= count
        }

    def missing(self, count: int, shown: dict[str, Sequence[str]]) -> list[str]:
        """Return the summaries and pins that must be shown after a loss that left this many deeds, and are not."""
        return [
            one
            for one, (thread, stored, ended) in self.kept.items()
            if stored <= count and ended == NEVER and thread in shown and one not in shown[thread]
        ]

    def _erased_before(self, count: int) -> dict[str, tuple[int, int]]:
        return {
            text: (-1, -1 if acknowledged <= count else NEVER)
            for text, (begun, acknowledged) in self.erased.items()
            if begun <= count
        }


def text_of(number: int, size: int) -> str:
    """Return a text that no other message has."""
    return f"word{number}x is in file_{number}.py. " + "and so on " * (size // 10)


class Life:
    """A program at work on a log."""

    def __init__(
        self, folder: WatchedFolder, known: Known, chance: random.Random, first: int
    ) -> None:
        """Create the program.

        ``known`` is filled by it; ``first`` is the number of its first message.
        """
        self.folder, self.known, self.chance = folder, known, chance
        self.number = first
        self.refused: list[str] = []
        """Errors of refold that it was given."""
        self.wrong: list[str] = []
        """Errors of other types, which it must never be given."""
        self.done: Counter[str] = Counter()
        """Number of acknowledged changes by kind."""
        self._memories: list[refold.Memory] = []

    def live(self, commands: int) -> None:
        """Run so many commands, then close."""
        weights, acts = zip(*COMMANDS, strict=True)
        for act in self.chance.choices(acts, weights, k=commands):
            self._try(act)
        while self._memories:
            self._try(lambda life: life._memories.pop().close())

    def _try(self, command: Callable[["Life"], object]) -> None:
        try:
            command(self)
        except refold.LogGone:
            for memory in self._memories:
                memory.close()
            self._memories.clear()
        except refold.RefoldError as error:
            self.refused.append(f"{type(error).__name__}: {error}")
        except Exception as error:
            self.wrong.append(f"{type(error).__name__}: {error}")

    @property
    def now(self) -> int:
        """Number of deeds until now."""
        self.folder.look()
        return len(self.folder.deeds)

    def memory(self) -> refold.Memory:
        """Return one of at most two memories of the same log."""
        if len(self._memories) < 2 and self.chance.random() < (0.1 if self._memories else 1):
            self._memories.append(open_log(self.folder.path, encrypted=self.known.encrypted))
        return self.chance.choice(self._memories)

    def close_one(self) -> None:
        """Close a memory."""
        if self._memories:
            self._memories.pop(self.chance.randrange(len(self._memories))).close()

    def replace_log(self) -> None:
        """Put copies in the place of the files, as a program does that restores or synchronises a folder."""
        log = self.folder.path / LOG
        if not log.exists():
            return
        for name in (LOG, f"{LOG}-wal"):
            if (path := log.with_name(name)).exists():
                copy = path.with_name(f"{name}.copy")
                shutil.copyfile(path, copy)
                with copy.open("rb") as file:
                    os.fsync(file.fileno())
                copy.replace(path)
        log.with_name(f"{LOG}-shm").unlink(missing_ok=True)
        self.done["replaced log"] += 1

    def thread(self) -> str:
        """Return a name of a conversation. One of them becomes long."""
        if self.chance.random() < 0.5:
            return THREADS[0]
        return self.chance.choice(sorted({*self.known.groups, *THREADS}))

    def append(self, count: int, size: int = 30) -> None:
        """Append so many messages in one call."""
        memory, thread = self.memory(), self.thread()
        texts = [text_of(self.number + n, size) for n in range(count)]
        self.number += count
        messages = [
            {"role": "user" if n % 2 == 0 else "assistant", "content": text}
            for n, text in enumerate(texts)
        ]
        groups, begun = self.known.groups.setdefault(thread, []), self.now
        groups.append(Group(tuple(texts), begun, NEVER))
        memory.conversation(thread).append(messages)
        groups[-1] = Group(tuple(texts), begun, self.now)
        self.done["append"] += 1

    def erase(self) -> None:
        """Erase a message that is certain."""
        memory, thread = self.memory(), self.thread()
        shown = texts_of(memory, thread)
        if not (kept := [n for n, text in enumerate(shown) if not text.startswith(GONE)]):
            return
        position = self.chance.choice(kept)
        text, begun = shown[position], self.now
        self.known.erased[text] = begun, NEVER
        for one, (where, stored, _) in self.known.kept.items():
            # Pins of the message end with it, in forks as well.
            self.known.kept[one] = where, stored, begun
        memory.conversation(thread).erase(position)
        self.known.erased[text] = begun, self.now
        self.done["erase"] += 1

    def keep(self, act: Callable[[ConversationMemory], str | None]) -> None:
        """Store something in a conversation that has an id, or None."""
        thread = self.thread()
        if self.known.groups.get(thread):
            one = act(self.memory().conversation(thread))
            if one is not None:
                self.known.kept.setdefault(one, (thread, self.now, NEVER))
                self.done["summary or pin"] += 1

    def unpin(self) -> None:
        """Remove a pin."""
        memory, thread = self.memory(), self.thread()
        if pins := [pin.pin_id for pin in memory.conversation(thread).pins() if pin.pin_id]:
            one = self.chance.choice(pins)
            _, stored, _ = self.known.kept.get(one, (thread, -1, NEVER))
            self.known.kept[one] = thread, stored, self.now
            memory.conversation(thread).unpin(one)

    def fork(self) -> None:
        """Fork a conversation."""
        memory, thread = self.memory(), self.thread()
        shown, name, begun = texts_of(memory, thread), f"fork{self.number}", self.now
        self.number += 1
        if not shown or any(text.startswith(GONE) for text in shown):
            return
        self.known.groups[name] = [Group(tuple(shown), begun, NEVER)]
        memory.conversation(thread).fork(thread_id=name)
        self.known.groups[name] = [Group(tuple(shown), begun, self.now)]
        self.done["fork"] += 1

    def on_a_conversation(self, act: Callable[[ConversationMemory], object]) -> None:
        """Do something with a conversation that leaves its messages as they are."""
        thread = self.thread()
        if self.known.groups.get(thread):
            act(self.memory().conversation(thread))


COMMANDS: tuple[tuple[int, Callable[[Life], object]], ...] = (
    (30, lambda life: life.append(1, life.chance.choice((30, 300, 1_500)))),
    (20, lambda life: life.append(3, life.chance.choice((30, 300, 1_500)))),
    (10, lambda life: life.append(2, 9_000)),
    (2, lambda life: life.append(1, 300_000)),
    (8, lambda life: life.erase()),
    (4, lambda life: life.fork()),
    (12, lambda life: life.close_one()),
    (12, lambda life: life.on_a_conversation(lambda c: c.context())),
    (10, lambda life: life.keep(lambda c: c.compact().summary_id)),
    (3, lambda life: life.keep(lambda c: c.pin(0))),
    (1, lambda life: life.unpin()),
    (6, lambda life: life.on_a_conversation(lambda c: c.recall("file_3.py"))),
    (2, lambda life: life.replace_log()),
    (6, lambda life: life.memory().conversations()),
    (2, lambda life: life.memory().replay()),
    (2, lambda life: life.memory().verify()),
)
"""The commands of a program, each with its relative frequency."""


def open_log(folder: Path, *, encrypted: bool = False) -> refold.Memory:
    """Open the log of a folder without threads that check it."""
    key = ENCRYPTION_KEY if encrypted else None
    return refold.open(
        folder / LOG, window=20_000, scrub_megabytes=0, encryption_key=key, standing_recall=0
    )


def texts_of(memory: refold.Memory, thread: str) -> list[str]:
    """Return the texts of a conversation."""
    found: list[str] = []
    for stored in memory.conversation(thread).messages():
        content: Any = stored.message.content
        found.append(content if isinstance(content, str) else content[0]["text"])
    return found


def ids_of(memory: refold.Memory, thread: str) -> list[str]:
    """Return the ids of the summaries and pins of a conversation."""
    conversation = memory.conversation(thread)
    found = [row.summary_id for row in conversation.compactions()]
    found += [pin.pin_id for pin in conversation.pins()]
    return [one for one in found if one is not None]


def faults_of(known: Known, count: int, shown: dict[str, Sequence[str]]) -> list[str]:
    """Return all that is wrong with the texts that are shown after a loss that left this many deeds."""
    found: list[str] = []
    for thread in sorted({*known.groups, *shown}):
        groups, texts = known.groups.get(thread, []), list(shown.get(thread, ()))
        at = 0
        for group in (one for one in groups if one.begun <= count):
            part = texts[at : at + len(group.texts)]
            if len(part) == len(group.texts) and all(
                _fits(known, count, *pair) for pair in zip(group.texts, part, strict=True)
            ):
                at += len(part)
            elif group.acknowledged <= count:
                found.append(
                    f"LOST in {thread}, at {at}: {group.texts[0][:20]}; there is {part[:1]!r:.40}"
                )
        if at < len(texts):
            found.append(f"SHOWN but not said in {thread}, at {at}: {texts[at]!r:.60}")
    return found


def _fits(known: Known, count: int, said: str, shown: str) -> bool:
    begun, acknowledged = known.erased.get(said, (NEVER, NEVER))
    if said.startswith(GONE) or acknowledged <= count:
        return shown.startswith(GONE)
    return shown == said or (begun <= count and shown.startswith(GONE))
