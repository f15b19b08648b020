"""Findings of the checks: the rule that is broken, what was expected, what was seen, what to do."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from refold.application.runtime.foreign_code import Contained


class NeverEnded(Exception):
    """A call did not end in its time; ``blocks`` says whether the loop was held up meanwhile."""

    def __init__(self, seconds: float, *, blocks: bool) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.blocks = blocks


SHOWN = 200
"""Characters of a value that a finding shows."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule, as a message for the person who has to mend it.

    >>> print(Finding("limit", "at most 300 tokens", "912 tokens", "Cut by whole lines."))
    limit
      expected: at most 300 tokens
      seen:     912 tokens
      to do:    Cut by whole lines.
    """

    rule: str
    """A short constant, such as ``limit``."""
    expected: str
    seen: str
    advice: str

    def __str__(self) -> str:
        return (
            f"{self.rule}\n  expected: {self.expected}\n  seen:     {self.seen}\n"
            f"  to do:    {self.advice}"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a check that found nothing."""

    subject: str
    """What was checked."""
    probes: tuple[str, ...]
    """The names of what was tried, in order."""


class CheckFailed(AssertionError):
    """A check found broken rules; ``findings`` holds them, each rule once.

    >>> try:
    ...     check_summariser(EmptySummariser())
    ... except CheckFailed as failed:
    ...     print([finding.rule for finding in failed.findings])
    ['empty']
    """

    def __init__(self, subject: str, findings: tuple[Finding, ...]) -> None:
        rules = "1 rule" if len(findings) == 1 else f"{len(findings)} rules"
        listed = "\n\n".join(f"{n}. {finding}" for n, finding in enumerate(findings, 1))
        super().__init__(f"{subject} breaks {rules}:\n\n{listed}")
        self.subject = subject
        self.findings = findings

    @property
    def rules(self) -> frozenset[str]:
        """The names of the broken rules."""
        return frozenset(finding.rule for finding in self.findings)


class Findings:
    """The findings of a check while it runs: of each rule the first one is kept."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._found: dict[str, Finding] = {}
        self._probes: list[str] = []

    def add(self, rule: str, *, expected: str, seen: str, advice: str) -> None:
        """Record a finding, unless its rule has one."""
        self._found.setdefault(rule, Finding(rule, expected, seen, advice))

    def require(self, holds: bool, rule: str, *, expected: str, seen: str, advice: str) -> bool:
        """Record a finding where something does not hold; return whether it holds."""
        if not holds:
            self.add(rule, expected=expected, seen=seen, advice=advice)
        return holds

    def has(self, *rules: str) -> bool:
        """Return whether one of these rules has a finding."""
        return any(rule in self._found for rule in rules)

    @contextmanager
    def probe(self, name: str, *, expected: str = "no exception", advice: str) -> Generator[None]:
        """Note what is tried; an exception out of it is a finding of the rule ``raises``."""
        self._probes.append(name)
        try:
            with Contained():
                yield
        except NeverEnded:
            raise
        except Exception as error:
            seen = f"{described(error)} ({name})"
            self.add("raises", expected=expected, seen=seen, advice=advice)

    def settle(self) -> Report:
        """Return the report.

        Raises:
            CheckFailed: a rule is broken.
        """
        if self._found:
            raise CheckFailed(self._subject, tuple(self._found.values()))
        return Report(self._subject, tuple(self._probes))


def described(error: BaseException) -> str:
    """Return type and words of an exception, in one line."""
    said = " ".join(str(error).split())
    return shown(f"{type(error).__name__}: {said}" if said else type(error).__name__, quoted=False)


def shown(value: object, *, quoted: bool = True) -> str:
    """Return a value as a finding shows it: in one line, cut where it is long."""
    try:
        text = repr(value) if quoted or not isinstance(value, str) else value
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text):,} characters)"


def name_of(subject: object) -> str:
    """Return how findings call what is checked: the name of its class."""
    name: object = getattr(subject, "__qualname__", type(subject).__qualname__)
    return str(name).rpartition(".<locals>.")[2]
