"""Draws schedules: each special step at every point of a plain schedule, and any steps in any order."""

import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

POINTS = 14
"""An append has about so many calls of SQLite and the file system."""
PLAIN = (
    "A open; A append; B open; B append; A append common; A context; B append common; B list; "
    "A append; A close; B append; B close; A open; A append common; A close"
)
STOPPED_CHILD = (
    "A open; A append; A fork C; C open; C append; C begin; A close; C resume; C append; C append; "
    "A open; A append; C append; A close; C close"
)
"""A child that is in the middle of an append when the process that it came from closes its memory."""
OPENING_POINTS = 40
OPENING_CHILD = (
    "A open; A append; A fork C; C begin open; A close; C resume; C append; C append; A open; "
    "A append; C append; A close; C append; C close"
)
"""A child that is in the middle of opening the log then."""
SPECIAL = ("exec", "exit", "_exit", "kill", "collect", "close")
OF_A_CHILD = (
    ("open", "append", "append common", "append", "close"),
    ("open", "append", "append", "_exit"),
    ("open", "append common", "list", "exit"),
    ("open", "append", "kill"),
    ("use old", "open", "append", "close old", "append", "close"),
    ("close old", "open", "append", "append"),
    ("collect old", "open", "append", "append"),
    ("exit",),
    ("_exit",),
    ("exec", "open", "append", "close"),
    ("open", "append", "fork G", "append", "close"),
)
"""What a forked child does, one step after each step of the others."""


class Step(NamedTuple):
    """What one process does."""

    actor: str
    what: str
    thread: str = ""
    point: int = 0
    """Where an append is stopped that is only begun."""
    child: str = ""

    def __str__(self) -> str:
        rest = [self.child] if self.child else [str(self.point)] if self.point else []
        rest += ["common"] if self.thread == "common" else []
        return " ".join([self.actor, self.what, *rest])


FORM = re.compile(
    r"(\w) (use old|close old|collect old|begin open|\w+)(?: (\d+))?( common)?(?: ([A-Z]))?$"
)


def parsed(text: str) -> list[Step]:
    """The steps that a text names: ``A open; A append common; A fork C; A begin 5; A resume``."""
    return [_step(part.strip()) for part in text.split(";") if part.strip()]


def _step(text: str) -> Step:
    found = FORM.match(text)
    if found is None:
        raise ValueError(f"{text!r} is no step: A append, A append common, A begin 5, A fork C …")
    actor, what, point, common, child = found.groups()
    return Step(actor, what, "common" if common else actor, int(point or 0), child or "")


def all_points() -> Iterator[Sequence[Step]]:
    """Each special step, by each process, at each point of the plain schedule."""
    plain = parsed(PLAIN)
    for at in range(1, len(plain) + 1):
        for actor in "AB":
            for what in SPECIAL:
                yield [*plain[:at], _step(f"{actor} {what}"), _step(f"{actor} open"), *plain[at:]]
            for deeds in OF_A_CHILD:
                yield [*plain[:at], _step(f"{actor} fork C"), *_between(plain[at:], deeds)]
    for point in range(1, POINTS + 1):
        yield from _stopped(plain, point)
        yield parsed(STOPPED_CHILD.replace("begin", f"begin {point}"))
    for point in range(1, OPENING_POINTS + 1):
        yield parsed(OPENING_CHILD.replace("begin open", f"begin open {point}"))


def _between(rest: Sequence[Step], deeds: Sequence[str]) -> Iterator[Step]:
    """The rest, with a step of the child after each; what is left of the child's comes last."""
    left = [_step(f"C {deed}") for deed in deeds]
    for step in rest:
        yield step
        if left:
            yield left.pop(0)
    yield from left


def _stopped(plain: Sequence[Step], point: int) -> Iterator[Sequence[Step]]:
    """An append that is stopped in its middle while others go on, end, or fork."""
    head, rest = plain[:5], plain[5:]
    begin, resume = _step(f"A begin {point}"), _step("A resume")
    yield [*head, begin, *rest[1:3], resume, *rest]
    yield [*head, begin, *parsed("A kill; A open"), *rest]
    yield [*head, begin, _step("B close"), resume, _step("B open"), *rest]
    for deeds in (OF_A_CHILD[0], OF_A_CHILD[4], OF_A_CHILD[6], ("exit",)):
        yield [*head, begin, _step("A fork C"), *_between([resume, *rest], deeds)]


def drawn(draw: random.Random) -> list[Step]:
    """A schedule of any steps, up to four processes."""
    steps: list[Step] = []
    alive, opened, old, stopped = ["A", "B"], set[str](), set[str](), set[str]()
    for _ in range(draw.randrange(12, 40)):
        actor = draw.choice(alive)
        what = draw.choice(_possible(actor, opened, old, stopped, len(alive)))
        thread = draw.choice((actor, "common"))
        child = next((c for c in "CDGH" if all(s.child != c for s in steps)), "")
        if what == "fork" and not child:
            continue
        steps.append(
            Step(
                actor,
                what,
                thread if what in ("append", "begin", "use old") else actor,
                draw.randrange(1, POINTS + 1) if what == "begin" else 0,
                child if what == "fork" else "",
            )
        )
        _follow(steps[-1], alive, opened, old, stopped)
        if not alive:
            break
    return steps


def _possible(
    actor: str, opened: set[str], old: set[str], stopped: set[str], count: int
) -> list[str]:
    found = ["fork", "exec", "exit", "_exit", "kill"]
    if actor in stopped:
        return ["resume", "resume", "resume", "fork", "kill"]
    if actor in opened:
        found += [*["append"] * 6, "append", "context", "list", "list", "close", "collect", "begin"]
    else:
        found += ["open"] * 6
    if actor in old:
        found += ["use old", "close old", "collect old"]
    return found + (["fork"] * 2 if count < 4 else [])


def _follow(
    step: Step, alive: list[str], opened: set[str], old: set[str], stopped: set[str]
) -> None:
    """Keep the state of the processes in step with what they were told."""
    actor = step.actor
    match step.what:
        case "open":
            opened.add(actor)
        case "close" | "collect":
            opened.discard(actor)
        case "collect old":
            old.discard(actor)
        case "begin":
            stopped.add(actor)
        case "resume":
            stopped.discard(actor)
        case "fork":
            alive.append(step.child)
            if {actor} & (opened | old):
                old.add(step.child)
        case "exec":
            opened.discard(actor)
            old.discard(actor)
        case "exit" | "_exit" | "kill":
            for group in (opened, old, stopped):
                group.discard(actor)
            alive.remove(actor)
        case _:
            pass
