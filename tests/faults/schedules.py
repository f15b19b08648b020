"""Schedules of two processes that open, append, fork, exec, close and end: drawn by a seed, and replayed exactly.

python -m tests.faults.schedules [--rounds N] [--seed N] [--schedule "A open; A append; A fork C; …"]
"""

import argparse
import json
import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from .children import import_everything
from .sample_store import LOG, mark_of
from .schedule_actor import Actor
from .schedule_drawing import Step, all_points, drawn, parsed
from .schedule_judge import Done, faults_of

PATIENCE = 45.0
"""Seconds that a step may take: longer than anybody waits for a lock."""
WAITS = 0.8
"""Seconds after which a step counts as waiting for another process, while one is stopped in its middle."""


class Peer:
    """A process of the schedule, as the director sees it."""

    def __init__(self, name: str, connection: socket.socket, pid: int) -> None:
        self.name, self.pid = name, pid
        self._socket = connection
        self._rest = b""
        self.waits_for: Done | None = None
        """The step that it has not answered yet."""

    def tell(self, **told: Any) -> None:
        with suppress(BrokenPipeError):
            self._socket.sendall(json.dumps(told).encode() + b"\n")

    def answer(self, patience: float) -> dict[str, Any] | None:
        """What it says; an empty answer where it ended, None where it says nothing in time."""
        self._socket.settimeout(patience)
        try:
            while b"\n" not in self._rest:
                part = self._socket.recv(65536)
                if not part:
                    return {"ended": True}
                self._rest += part
        except TimeoutError:
            return None
        except ConnectionError:
            return {"ended": True}
        line, _, self._rest = self._rest.partition(b"\n")
        return dict(json.loads(line))

    def end(self) -> None:
        """Kill the process; it may have ended already."""
        self._socket.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class Director:
    """Has the processes do one step after another."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "store" / LOG
        self._log.parent.mkdir()
        self._place = folder / "socket"
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self._place))
        self._server.listen()
        self._server.settimeout(PATIENCE)
        self._peers: dict[str, Peer] = {}
        self._marks = iter(range(100_000))
        self.done: list[Done] = []

    def play(self, steps: Sequence[Step]) -> list[Done]:
        try:
            for step in steps:
                self._do(step)
            for name in list(self._peers):
                self._do(Step(name, "resume"))
            for peer in list(self._peers.values()):
                self._awaited(peer, PATIENCE)
        finally:
            for peer in self._peers.values():
                peer.end()
            self._server.close()
        return self.done

    def _do(self, step: Step) -> None:
        peer = self._ready(step.actor)
        if peer is None:
            return
        done = Done(step, mark_of(next(self._marks)), self._files())
        self.done.append(done)
        told = {"step": step.what, "mark": done.mark, "thread": step.thread}
        peer.waits_for = done
        peer.tell(**told, point=step.point, child=step.child)
        # A fork waits for what is stopped in its middle, and goes on without it.
        is_short = self._is_anything_stopped() and step.what != "fork"
        self._awaited(peer, WAITS if is_short else PATIENCE)
        done.files_after = self._files()

    def _ready(self, name: str) -> Peer | None:
        """The process with this name; None where it ended, or waits for another one."""
        peer = self._peer(name)
        if peer is not None and peer.waits_for is not None:
            self._awaited(peer, 0.01)
            peer = self._peers.get(name)
        return None if peer is None or peer.waits_for is not None else peer

    def _peer(self, name: str) -> Peer | None:
        """The process with this name; the first two are begun when they are first asked for."""
        if name in self._peers or name not in "AB":
            return self._peers.get(name)
        pid = os.fork()
        if pid == 0:
            self._server.detach()
            with suppress(SystemExit):
                Actor(name, self._log, self._place).serve()
            os._exit(0)
        return self._accept(name, pid)

    def _accept(self, name: str, pid: int) -> Peer:
        connection, _ = self._server.accept()
        peer = self._peers[name] = Peer(name, connection, pid)
        peer.answer(PATIENCE)
        return peer

    def _awaited(self, peer: Peer, patience: float) -> None:
        done = peer.waits_for
        if done is None:
            return
        answer = peer.answer(patience)
        if answer is None:
            if patience >= PATIENCE:
                done.answer = {"hangs": True}
            return
        done.answer, peer.waits_for = answer, None
        if "child" in answer:
            self._accept(done.step.child, int(answer["child"]))
        elif "ended" in answer and done.step.what == "exec":
            self._accept(peer.name, peer.pid)
        elif "ended" in answer:
            self._peers.pop(peer.name).end()

    def _is_anything_stopped(self) -> bool:
        stopped = {d.step.actor for d in self.done if d.answer.get("paused")}
        resumed = {d.step.actor for d in self.done if d.step.what == "resume"}
        return bool(stopped - resumed)

    def _files(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for path in sorted(self._log.parent.iterdir()):
            if ".checked" in path.name:
                continue  # Written in the background by any process that has opened the log.
            with suppress(FileNotFoundError):
                stat = path.stat()
                found[path.name] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        return found


class Found(NamedTuple):
    """A schedule, and what was not as it must be."""

    text: str
    faults: list[str]
    answers: list[str]


def played(steps: Sequence[Step]) -> Found:
    """Play a schedule in a folder of its own and judge it."""
    with tempfile.TemporaryDirectory(prefix="schedule-") as place:
        done = Director(Path(place)).play(steps)
        faults = list(faults_of(Path(place, "store"), done))
    return Found("; ".join(map(str, steps)), faults, [str(d) for d in done])


def schedules(seed: int) -> Iterator[Sequence[Step]]:
    """Every special step at every point of a plain schedule, in an order drawn by the seed; then drawn ones."""
    draw = random.Random(seed)
    every = list(all_points())
    draw.shuffle(every)
    for number, steps in enumerate(every):
        yield steps
        if number % 3 == 2:
            yield drawn(draw)
    while True:
        yield drawn(draw)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="how many schedules")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin none after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--schedule", help="play this one alone, and show every answer")
    options = parser.parse_args()
    import_everything()
    until = time.monotonic() + options.seconds
    told, bad = Counter[str](), 0
    for steps in [parsed(options.schedule)] if options.schedule else schedules(options.seed):
        if told.total() >= options.rounds or time.monotonic() > until:
            break
        found = played(steps)
        told["schedules"] += 1
        bad += bool(found.faults)
        if found.faults or options.schedule:
            print(
                f"SCHEDULE {found.text}",
                *(f"  {what}" for what in found.faults),
                sep="\n",
                flush=True,
            )
        if options.schedule:
            print(*found.answers, sep="\n")
    print(f"schedules: {told.total()} played, {bad} of them bad")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
