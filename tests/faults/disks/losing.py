"""Losses of power on a simulated disk, one after another, and what is left of a log after each.

python -m tests.faults.storage [--seconds N] [--crashes N] [--seed N] [--case SEED]
"""

import random
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import refold

from .lives import THREADS, Group, Known, Life, faults_of, ids_of, open_log, text_of, texts_of
from .simulated_disk import Image, losses
from .watched_folder import (
    HONEST,
    LYING,
    Fault,
    Simulator,
    WatchedFolder,
    drawn,
    read_image,
    write_image,
)

COMMANDS = 14
LOSSES = 10
"""Losses of power in one life."""
AGAIN = 0.35
"""Share of the recoveries in which power is lost again."""
FAILING = 0.15
"""Share of the recoveries in which the disk fails."""
DEEPEST = 3


@dataclass
class Played:
    """All that came of some seeds."""

    seeds: int = 0
    crashes: int = 0
    again: int = 0
    """Losses of power during the recovery from one."""
    done: Counter[str] = field(default_factory=Counter[str])
    """Changes of the log that were acknowledged before."""
    struck: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    """How often a command ended with an error of refold, by its type."""
    finds: list[str] = field(default_factory=list[str])

    def add(self, other: "Played") -> None:
        """Add what came of other seeds."""
        self.seeds += other.seeds
        self.crashes += other.crashes
        self.again += other.again
        self.done += other.done
        self.struck += other.struck
        self.refused += other.refused
        self.finds += other.finds


class Case:
    """One seed: a log that lives, loses power and goes on."""

    def __init__(
        self,
        simulator: Simulator,
        root: Path,
        seed: int,
        *,
        clean: bool = False,
        lying: bool = False,
    ) -> None:
        """Prepare the case. ``clean``: the disk never fails while a program runs; ``lying``: it fails silently."""
        self._simulator, self._root, self._clean, self._always_lying = simulator, root, clean, lying
        self.chance = random.Random(seed)
        self.played = Played(seeds=1)
        self._folders = 0
        self._lying = False
        self._number = 0

    def play(self) -> Played:
        """Play it, and return what came of it."""
        image: Image = {}
        known = Known(encrypted=self.chance.random() < 0.3)
        for _ in range(self.chance.choice((1, 2, 3))):
            image, known = self._life(image, known)
            if self._lying:
                break
        return self.played

    def _life(self, image: Image, known: Known) -> tuple[Image, Known]:
        chance, folder = self.chance, self._folder(image)
        faults = self._faults()
        watched = WatchedFolder(folder, faults)
        life = Life(watched, known, chance, self._number)
        with self._simulator.watching(watched):
            life.live(chance.randrange(3, COMMANDS))
        self._number = life.number
        self.played.done += life.done
        self.played.struck += watched.struck
        self.played.refused.update(text.partition(":")[0] for text in life.refused)
        self.played.finds += life.wrong
        end = len(watched.deeds)
        ended = read_image(folder)
        shutil.rmtree(folder)
        self._judge(ended, known, end, "after its end")
        points = sorted(chance.randrange(end + 1) for _ in range(LOSSES))
        nothing_lost = known
        for count, lost in losses(image, watched.deeds, points, chance, plain=self._lying):
            shown = self._judge(lost, known, count, f"after deed {count} of {end}")
            if shown is not None and chance.random() < 1 / LOSSES:
                return lost, known.at(count, shown)
        return (ended, nothing_lost.before(end))

    def _faults(self) -> tuple[Fault, ...]:
        kind = self.chance.choices(("none", "honest", "lying"), (5, 3, 2))[0]
        kind = "lying" if self._always_lying else kind
        self._lying = kind == "lying" and not self._clean
        if kind == "none" or self._clean:
            return ()
        return drawn(self.chance, LYING if self._lying else HONEST, 250)

    def _judge(
        self, image: Image, known: Known, count: int, when: str, depth: int = 1
    ) -> dict[str, Sequence[str]] | None:
        """Open a log as a loss of power left it, and return what it shows, or None if it was refused."""
        self.played.crashes += 1
        self.played.again += depth > 1
        folder = self._folder(image)
        fails = not (self._lying or self._clean) and self.chance.random() < FAILING
        watched = WatchedFolder(folder, drawn(self.chance, HONEST, 60) if fails else ())
        recovery = Recovery(watched, known, count, self._number)
        with self._simulator.watching(watched):
            recovery.run()
        self._number += 1
        shutil.rmtree(folder)
        self.played.struck += watched.struck
        found = recovery.found
        if self._lying or watched.struck:
            found = recovery.of_a_failing_disk()
        self.played.finds += [f"{when}: {one}" for one in found]
        again = bool(watched.struck) or self.chance.random() < AGAIN
        if not found and not self._lying and depth < DEEPEST and again:
            end = len(watched.deeds)
            points = sorted(self.chance.randrange(end + 1) for _ in range(2))
            for left, lost in losses(image, watched.deeds, points, self.chance, plain=False):
                then = f"{when}, then deed {left} of {end} of its recovery"
                self._judge(lost, recovery.known, left, then, depth + 1)
        return None if found or recovery.reported else recovery.shown

    def _folder(self, image: Image) -> Path:
        self._folders += 1
        folder = self._root / f"{self._folders:06d}"
        write_image(image, folder)
        return folder


class Recovery:
    """The first program after a loss of power: it reads everything, and goes on."""

    def __init__(self, folder: WatchedFolder, known: Known, count: int, number: int) -> None:
        """Create it. ``count`` is the number of deeds of the life before that were left."""
        self.folder, self._known_before, self._count, self._number = folder, known, count, number
        self.known = known.before(count)
        """All that is known at the end."""
        self.shown: dict[str, Sequence[str]] = {}
        self.found: list[str] = []
        self._added: dict[str, int] = {}
        self.reported: list[str] = []
        """Errors of refold, and damage that it reported."""

    def run(self) -> None:
        """Open, read, append, ask, list and verify."""
        try:
            with open_log(self.folder.path, encrypted=self.known.encrypted) as memory:
                self._read(memory)
                self._go_on(memory)
                self._look_over(memory)
        except refold.RefoldError as error:
            self._report(f"{type(error).__name__}: {error}")
        except Exception as error:
            self.found.append(f"{type(error).__name__}: {error}")

    def of_a_failing_disk(self) -> list[str]:
        """Return what is wrong although the disk failed: what is not shown must be reported."""
        wrong = [one for one in self.found if not one.startswith(("LOST", "REPORTED"))]
        if self.reported:
            return [one for one in wrong if not one.startswith("LISTED")]
        return self.found

    def _report(self, text: str) -> None:
        self.reported.append(text)
        self.found.append(f"REPORTED {text}")

    def _read(self, memory: refold.Memory) -> None:
        ids: dict[str, Sequence[str]] = {}
        for thread in sorted({*self.known.groups, *THREADS}):
            try:
                self.shown[thread] = texts_of(memory, thread)
                ids[thread] = ids_of(memory, thread)
            except refold.RefoldError as error:
                self._report(f"{type(error).__name__}: {error}")
        read = {t: groups for t, groups in self.known.groups.items() if t in self.shown}
        self.found += faults_of(replace(self.known, groups=read), self._count, self.shown)
        missing = self._known_before.missing(self._count, ids)
        self.found += [f"LOST summary or pin {one}" for one in missing]

    def _go_on(self, memory: refold.Memory) -> None:
        thread = THREADS[self._number % len(THREADS)]
        text, conversation = text_of(self._number, 30), memory.conversation(thread)
        groups, begun = self.known.groups.setdefault(thread, []), len(self.folder.deeds)
        groups.append(Group((text,), begun, 10**9))
        stored = conversation.append({"role": "user", "content": text})
        self.folder.look()
        groups[-1] = Group((text,), begun, len(self.folder.deeds))
        before = len(self.shown.get(thread, ()))
        if thread in self.shown and stored.positions != (before,):
            self.found.append(f"PLACED at {stored.positions} after {before} messages")
        with suppress(refold.PinnedContentTooLarge):
            if text not in str(conversation.context().messages[-1]):
                self.found.append(f"LAST message of {thread} is not in its request")
        self._recall(memory)
        self._added = {thread: 1}

    def _recall(self, memory: refold.Memory) -> None:
        places = [
            (t, n)
            for t, texts in self.shown.items()
            for n, text in enumerate(texts)
            if "file_" in text
        ]
        if not places:
            return
        thread, position = places[self._number % len(places)]
        name = self.shown[thread][position].split()[3].rstrip(".")
        hits = memory.conversation(thread).recall(name).hits
        if position not in [hit.position for hit in hits]:
            self.found.append(f"RECALL of {name!r} in {thread} does not find message {position}")

    def _look_over(self, memory: refold.Memory) -> None:
        listed = {row.thread_id: row.messages for row in memory.conversations()}
        counted = {
            thread: length
            for thread, texts in self.shown.items()
            if (length := len(texts) + self._added.get(thread, 0))
        }
        if {thread: listed.get(thread) for thread in counted} != counted:
            self.found.append(f"LISTED {listed} instead of {counted}")
        if not (verified := memory.verify()).ok and all(map(_is_derived, verified.damage)):
            # Read models are not synced. Their answers are right all the same, and they can be rebuilt.
            memory.replay()
            verified = memory.verify()
        if not verified.ok:
            self._report(f"verify: {verified.damage[:2]}")


def _is_derived(damage: refold.DamageReport) -> bool:
    return damage.remedy.startswith("nothing is lost")
