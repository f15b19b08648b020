"""Reads a screenplay: scenes that begin with ``%%% user|agent|aside|interrupted|project``.

Inside a scene ``%% name arguments`` begins a block; text before the first block is spoken text.
A ``!`` after the name (``%% bash! …``) says that this call fails; a call that fails without it,
or does not fail with it, stops the generator.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Part:
    """One block of a scene: its name, the rest of its line, the lines below it."""

    name: str
    argument: str
    body: str
    fails: bool = False


@dataclass(frozen=True)
class Scene:
    """One message to be, with the words after its kind (a time, mostly)."""

    kind: str
    when: str
    parts: tuple[Part, ...]


def _sections(lines: list[str], mark: str) -> Iterator[tuple[str, list[str]]]:
    head, body = "", list[str]()
    for line in lines:
        if line.startswith(mark):
            yield head, body
            head, body = line.removeprefix(mark), []
        else:
            body.append(line)
    yield head, body


def _body(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n")


def _part(head: str, lines: list[str]) -> Part:
    if not head:
        return Part("text", "", _body(lines))
    name, _, argument = head.partition(" ")
    return Part(name.removesuffix("!"), argument.strip(), _body(lines), name.endswith("!"))


def read_screenplay(folder: Path) -> Iterator[Scene]:
    """All scenes of the ``*.txt`` files of a folder, in the order of the files' names."""
    for path in sorted(folder.glob("*.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for head, body in _sections(lines, "%%% "):
            if not head:
                continue
            kind, _, when = head.partition(" ")
            parts = [_part(h, b) for h, b in _sections(body, "%% ")]
            spoken = tuple(p for p in parts if p.name != "text" or p.body)
            yield Scene(kind, when.strip(), spoken)
