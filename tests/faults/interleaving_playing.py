"""Plays one interleaving in a child process of its own: the choices of a case, or choices that are drawn."""

import hashlib
import random
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .children import Ended, run_apart
from .interleaving_judge import faults_of
from .interleaving_points import all_places, install
from .interleaving_scenes import SCENES, Hand, Scene, Stage, make_folder, opened
from .interleaving_scheduler import Choice, Scheduler, Stuck, name_of

PATIENCE = 90.0
"""Seconds that a schedule may take."""
AFTERWARDS = 30.0
"""Seconds on the counted clock for which what still runs is let run after the end."""
RATES = (0.005, 0.02, 0.1)
"""How often a drawn schedule takes the turn away; each schedule draws one of these."""
FINE = frozenset(
    f"/{name}.py"
    for name in (
        "compaction/background",
        "compaction/unwritten",
        "api/blocking",
        "conversation/turn_lock",
        "runtime/foreign_code",
        "runtime/core",
        "event_store/store",
        "event_store/stored_log",
        "event_store/conversation_loader",
        "event_store/anchor",
        "event_store/encodings",
        "sqlite/connection_pool",
        "projection_store/catch_up",
        "projection_store/database_file",
        "files/fork_gate",
        "files/lock",
        "faults/test_interleavings",
    )
)
"""The modules of which each line is a point where a case says so."""


class Case(NamedTuple):
    """A scene, whether lines are points too, and where another thread goes on than the usual one.

    The usual one is the thread itself. Where it has to wait, it is the one that such a choice named last, or else
    the first one that the program began by itself.
    """

    scene: str
    lines: bool = False
    choices: Mapping[int, str] = {}

    def __str__(self) -> str:
        chosen = ",".join(f"{number}:{name}" for number, name in sorted(self.choices.items()))
        return f"{self.scene}{'+lines' if self.lines else ''}/{chosen}"


def parsed(text: str) -> Case:
    """Return the case that this text shows."""
    place, _, chosen = text.partition("/")
    name, _, lines = place.partition("+")
    pairs = (pair.split(":") for pair in chosen.split(",") if pair)
    return Case(name, bool(lines), {int(number): thread for number, thread in pairs})


class Seen(NamedTuple):
    """A decision of a schedule that was played."""

    number: int
    on: str
    """What the thread was about to use."""
    others: list[str]
    usual: str
    can_stay: bool


class Played(NamedTuple):
    """A schedule, all its choices, and what was not as it must be."""

    case: Case
    faults: list[str]
    trace: list[str]
    decisions: list[Seen]
    answers: list[str]
    shared: frozenset[str]
    """The locks, files and modules that two threads used."""

    @property
    def digest(self) -> str:
        """The same for two schedules with the same points in the same order."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()[:16]


class Playing:
    """Plays cases on copies of the same files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        all_places()  # Looked for once: every child inherits them.
        for name, is_long in (("long", True), ("short", False)):
            place = folder / name
            place.mkdir()
            ended = run_apart(lambda: make_folder(place, is_long=is_long))  # noqa: B023 (called at once)
            if ended.status:
                raise RuntimeError(f"the store cannot be made: {ended.err[-2000:]}")

    def play(self, case: Case, draw: int | None = None) -> Played:
        """Play a case; with ``draw``, choices are drawn with this seed where the case has none."""
        kept = "long" if SCENES[case.scene].background else "short"
        with tempfile.TemporaryDirectory(prefix="interleaving-") as place:
            store = Path(shutil.copytree(self._folder / kept, Path(place, "store")))
            ended = run_apart(lambda: _Life(store, case, draw).lived(), patience=PATIENCE)
        return _played(case, ended)


def _played(case: Case, ended: Ended) -> Played:
    if ended.answer is None:
        what = "HANGS" if ended.hung else f"exit code {ended.status}"
        return Played(case, [f"{what}: {ended.err[-3000:]}"], [], [], [], frozenset())
    answer = ended.answer
    choices = {int(number): name for number, name in answer["choices"].items()}
    decisions = [Seen(*row) for row in answer["decisions"]]
    made = case._replace(choices=choices)
    told, shared = (answer[name] for name in ("answers", "shared"))
    return Played(made, answer["faults"], answer["trace"], decisions, told, frozenset(shared))


class _Life:
    """The life of the child process that plays a schedule."""

    def __init__(self, store: Path, case: Case, draw: int | None) -> None:
        self._store, self._case = store, case
        self._scene: Scene = SCENES[case.scene]
        self._draw = None if draw is None else random.Random(draw)
        self._rate = 0.0 if self._draw is None else self._draw.choice(RATES)
        self._made: dict[int, str] = {}
        self._usual: list[str] = []

    def lived(self) -> dict[str, Any]:
        choice: Choice = self._choose
        scheduler = Scheduler(choice)
        install(scheduler, FINE if self._case.lines else frozenset())
        size = max(self._scene.memories[: len(self._scene.threads)]) + 1
        background, scrub = self._scene.background, self._scene.scrub
        memories = [opened(self._store, background=background, scrub=scrub) for _ in range(size)]
        stage = Stage(self._store, scheduler, memories)
        faults: list[str] = []
        try:
            self._act(stage)
            faults += faults_of(stage, self._scene)
        except Stuck as stuck:
            faults.append(str(stuck))
        return self._told(stage, faults)

    def _act(self, stage: Stage) -> None:
        threads: list[threading.Thread] = []
        scheduler = stage.scheduler
        for number, (name, work) in enumerate(self._scene.threads.items()):
            hand = Hand(stage, name, self._scene.memories[number])
            thread: Any = threading.Thread(target=work, args=[hand], name=name, daemon=True)
            thread.scheduled_as = name
            threads.append(thread)
            thread.start()
        scheduler.armed = True
        for thread in threads:
            thread.join()
        scheduler.armed = False
        for memory in stage.memories:
            memory.close()
        scheduler.settle(AFTERWARDS)

    def _choose(self, number: int, stays: str | None, others: Sequence[str]) -> str:
        usual: str = others[0] if stays is None else stays
        chosen: str = self._case.choices.get(number, usual)
        if self._draw is not None and (stays is None or self._draw.random() < self._rate):
            chosen = self._draw.choice(others)
        if chosen not in (stays, *others):
            raise SystemExit(f"{self._case}: {chosen} cannot go on at {number}")
        self._usual.append(usual)
        if chosen != usual:
            self._made[number] = chosen
        return chosen

    def _told(self, stage: Stage, faults: list[str]) -> dict[str, Any]:
        scheduler = stage.scheduler
        rows = zip(scheduler.decisions, self._usual, strict=True)
        return {
            "faults": faults,
            "choices": self._made,
            "trace": scheduler.trace,
            "answers": [str(call) for call in stage.calls],
            "decisions": [
                [d.number, name_of(d.on), d.others, usual, d.can_stay] for d, usual in rows
            ],
            "shared": sorted(on for on, users in scheduler.users.items() if len(users) > 1),
        }
