"""Tells which lines stand in the ledger beside the summary already: room is better spent than on those."""

import re
from collections.abc import Iterable

from refold.domain.ledger.commands import is_trivial, steps_of, without_trimming
from refold.domain.ledger.wording import clean

from .lines import Line, Section, identity

_SOURCE = re.compile(r"^\[(?:\d+|pin)\] ", re.MULTILINE)
_SPEAKER = re.compile(r"^(?:user|assistant): ")
_REASON = re.compile(r"^.{0,200}?: ")


class Beside:
    """The ledger's text, as it is rendered beside the summary."""

    def __init__(self, ledger: str) -> None:
        self._text = clean(_SOURCE.sub("", ledger))

    def without(self, lines: Iterable[Line]) -> list[Line]:
        """The lines that say something else."""
        return [line for line in lines if not self._text or not self._says(line)]

    def _says(self, line: Line) -> bool:
        match line.section:
            case Section.DECISIONS | Section.REQUESTS:
                return _SPEAKER.sub("", line.text) in self._text
            case Section.MODIFIED | Section.READ | Section.VALUES:
                return identity(line) in self._text
            case Section.COMMANDS:
                steps = [s for s in steps_of(identity(line).strip("`")) if not is_trivial(s)]
                return all(without_trimming(step) in self._text for step in steps)
            case Section.FAILURES:
                return _REASON.sub("", identity(line)) in self._text
            case _:
                return False
