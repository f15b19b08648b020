"""Lives of processes that fork while a log is open: in which order they use, close and end, and who is killed.

python -m tests.faults.forked_lives [--rounds N] [--seconds N] [--seed N] [--scene NAME] [--life SCENE/NUMBER]
"""

import argparse
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import refold

from .children import import_everything, run_apart
from .forked_life import LOG, TOLD, Life, be_killed_if_it_hangs, guarded
from .forked_scenes import by_multiprocessing, long_commit, parent_and_child, past_python, server
from .reading_back import problems_of

PATIENCE = 40.0
"""Seconds that all processes of a life may take together."""
SLOW = 20
"""A slow scene is played once in so many rounds."""


class Scene(NamedTuple):
    """What is played, and whether it takes long."""

    play: Callable[[Life], None]
    slow: bool = False


SCENES: dict[str, Scene] = {
    "fork": Scene(parent_and_child),
    "multiprocessing-fork": Scene(partial(by_multiprocessing, method="fork")),
    "multiprocessing-forkserver": Scene(partial(by_multiprocessing, method="forkserver")),
    "multiprocessing-spawn": Scene(partial(by_multiprocessing, method="spawn")),
    "past-python": Scene(partial(past_python, way="past")),
    # Later versions end themselves there.
    **(
        {"half-past-python": Scene(partial(past_python, way="half"))}
        if sys.version_info < (3, 13)
        else {}
    ),
    "server": Scene(partial(server, preload=False)),
    "server-preloaded": Scene(partial(server, preload=True)),
    "long-commit": Scene(long_commit, slow=True),
}


def played(scene: str, number: int) -> tuple[list[str], list[str]]:
    """Play a life in a folder of its own: what was wrong, and which way its children went."""
    # Not a context: a forked process that ends as programs do would delete the folder.
    folder = Path(tempfile.mkdtemp(prefix="life-"))
    try:
        hangs = list(_run(folder, scene, number))
        told = [json.loads(line) for line in (folder / TOLD).read_bytes().splitlines()]
        faults = [*hangs, *faults_of(folder, told)]
        if faults and (said := (folder / "err").read_text(errors="replace")):
            faults.append(f"said: {said[-3000:]}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return faults, [one["expects"] for one in told if "child" in one]


def _run(folder: Path, scene: str, number: int) -> Iterator[str]:
    """Run the first process and wait until all of them have ended: the pipe that all have closes then."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            be_killed_if_it_hangs()
            os.close(reading)
            os.dup2(os.open(folder / "err", os.O_WRONLY | os.O_CREAT), 2)
            life = Life(folder, random.Random(f"{scene}/{number}"))
            os._exit(guarded(life, lambda: SCENES[scene].play(life), "the first process"))
        finally:
            os._exit(1)
    os.close(writing)
    if not select.select([reading], [], [], PATIENCE)[0]:
        yield "HANGS"
        os.killpg(pid, signal.SIGALRM)  # They say where they are.
        time.sleep(1)
    os.close(reading)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status not in (0, -signal.SIGKILL):
        yield f"the first process ended with {status}"


def faults_of(folder: Path, told: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Everything that is not as it must be."""
    yield from (one["wrong"] for one in told if "wrong" in one)
    yield from _children(told)
    ended = run_apart(partial(_read, folder, {one["thread"] for one in told if "thread" in one}))
    yield from (f"reading it afterwards: {problem}" for problem in problems_of(ended))
    if ended.answer is not None:
        yield from ended.answer["wrong"]
        yield from _stored(told, ended.answer["stored"])


def _children(told: Sequence[dict[str, Any]]) -> Iterator[str]:
    stored = {one["who"] for one in told if "stored" in one}
    refused = {one["refused"] for one in told if "refused" in one}
    ended = {one["ended"] for one in told if "ended" in one}
    for one in told:
        if not one.get("expects"):
            continue
        name, expects = one["child"], one["expects"]
        if name not in ended:
            yield f"{name} HANGS or died"
        elif expects == "stored" and name not in stored:
            yield f"{name} has stored nothing{', but was refused' * (name in refused)}"
        elif expects == "refused" and name not in refused:
            yield f"{name} is NOT REFUSED"


def _stored(told: Sequence[dict[str, Any]], stored: dict[str, list[str]]) -> Iterator[str]:
    tried = {(one["thread"], one["tries"]) for one in told if "tries" in one}
    for thread, texts in stored.items():
        counts = Counter(texts)
        acknowledged = [o["stored"] for o in told if o.get("stored") and o["thread"] == thread]
        yield from (f"LOST: {text} in {thread}" for text in acknowledged if text not in counts)
        yield from (f"DOUBLED: {text} in {thread}" for text, n in counts.items() if n > 1)
        yield from (f"FOREIGN: {text}" for text in counts if (thread, text) not in tried)
        for who in {text.split()[0] for text in texts}:
            mine = [text for text in texts if text.split()[0] == who]
            if sorted(mine, key=lambda text: int(text.split()[1])) != mine:
                yield f"{thread}: {who} is not in order"


def _read(folder: Path, threads: set[str]) -> dict[str, Any]:
    stored: dict[str, list[str]] = {thread: [] for thread in threads}
    wrong: list[str] = []
    try:
        with refold.open(folder / LOG, telemetry=False) as memory:
            wrong += [f"verify: {d.place} {d.kind} {d.detail}" for d in memory.verify().damage]
            for thread in threads:
                messages = memory.conversation(thread).messages()
                stored[thread] = [str(m.message.content) for m in messages]
    except refold.RefoldError as error:
        wrong.append(f"opening it afterwards: {type(error).__name__}: {str(error)[:300]}")
    return {"stored": stored, "wrong": wrong}


def lives(scenes: Sequence[str], rounds: int, seed: int) -> Iterator[tuple[str, int]]:
    """A life of every scene, in every round."""
    for number in range(rounds):
        for scene in scenes:
            if not SCENES[scene].slow or number % SLOW == 0:
                yield scene, seed * 100_000 + number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help="how often each scene is played")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin none after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scene", default="", help="only scenes with this in their name")
    parser.add_argument("--life", help="play this one alone: SCENE/NUMBER")
    options = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads.
    import_everything()
    until, bad = time.monotonic() + options.seconds, 0
    counts, ways, spent = Counter[str](), Counter[str](), defaultdict[str, float](float)
    scenes = [name for name in SCENES if options.scene in name]
    chosen = lives(scenes, options.rounds, options.seed)
    if options.life:
        name, _, number = options.life.partition("/")
        chosen = iter([(name, int(number))])
    for scene, number in chosen:
        if time.monotonic() > until:
            break
        began = time.monotonic()
        faults, children = played(scene, number)
        spent[scene] += time.monotonic() - began
        counts[scene] += 1
        ways.update(children)
        bad += bool(faults)
        if faults:
            print(f"LIFE {scene}/{number}", *(f"  {what}" for what in faults), sep="\n", flush=True)
    print(
        *(f"{name:28} {n:5} lives, {spent[name] / n:.2f} s each" for name, n in counts.items()),
        sep="\n",
    )
    told = ", ".join(f"{n} {way}" for way, n in sorted(ways.items()) if way)
    print(f"forked lives: {counts.total()} played, children: {told}; {bad} of them bad")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
