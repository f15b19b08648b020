"""Findings of the checks: broken rule, expected and seen result, and advice."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from refold.application.runtime.foreign_code import Contained


class NeverEnded(Exception):
    """A call did not return in time. ``blocks`` says whether it blocked the event loop."""

    def __init__(self, seconds: float, *, blocks: bool) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.blocks = blocks


SHOWN = 200
"""Maximum number of characters of a value in a finding."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule, as a message for the person who has to fix it.

    >>> print(Finding("limit", "at most 300 tokens", "912 tokens", "Cut by whole lines."))
    limit
      expected: at most 300 tokens
      seen:     912 tokens
      to do:    Cut by whole lines.
    """

    rule: str
    """Short constant such as ``limit``."""
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
    """The result of a check without findings."""

    subject: str
    """Name of the checked object."""
    probes: tuple[str, ...]
    """Names of the probes, in order."""


class CheckFailed(AssertionError):
    """A check found broken rules. ``findings`` has one finding for each rule.

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

    def __reduce__(self) -> tuple[object, ...]:
        """Return the parts to copy."""
        return type(self), (self.subject, self.findings), self.__dict__

    @property
    def rules(self) -> frozenset[str]:
        """Names of the broken rules."""
        return frozenset(finding.rule for finding in self.findings)


class Findings:
    """The findings of a running check. Only the first finding of each rule is kept."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._found: dict[str, Finding] = {}
        self._probes: list[str] = []

    def add(self, rule: str, *, expected: str, seen: str, advice: str) -> None:
        """Record a finding, unless the rule already has one."""
        self._found.setdefault(rule, Finding(rule, expected, seen, advice))

    def require(self, holds: bool, rule: str, *, expected: str, seen: str, advice: str) -> bool:
        """Record a finding if a condition does not hold, and return the condition."""
        if not holds:
            self.add(rule, expected=expected, seen=seen, advice=advice)
        return holds

    def has(self, *rules: str) -> bool:
        """Return whether one of these rules has a finding."""
        return any(rule in self._found for rule in rules)

    @contextmanager
    def probe(self, name: str, *, expected: str = "no exception", advice: str) -> Generator[None]:
        """Record a probe. An exception in the block becomes a finding of the rule ``raises``."""
        self._probes.append(name)
        try:
            with Contained():
                yield
        except NeverEnded:
            raise
        except Exception as error:
            seen = f"{describe_error(error)} ({name})"
            self.add("raises", expected=expected, seen=seen, advice=advice)

    def settle(self) -> Report:
        """Return the report.

        Raises:
            CheckFailed: a rule is broken.
        """
        if self._found:
            raise CheckFailed(self._subject, tuple(self._found.values()))
        return Report(self._subject, tuple(self._probes))


def describe_error(error: BaseException) -> str:
    """Return type and message of an exception in one line."""
    said = " ".join(str(error).split())
    return show_value(
        f"{type(error).__name__}: {said}" if said else type(error).__name__, quoted=False
    )


def show_value(value: object, *, quoted: bool = True) -> str:
    """Format a value for a finding: in one line, shortened if it is long."""
    try:
        text = repr(value) if quoted or not isinstance(value, str) else value
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text):,} characters)"


def name_of(subject: object) -> str:
    """Return the name of a checked object in findings: its class name."""
    name: object = getattr(subject, "__qualname__", type(subject).__qualname__)
    return str(name).rpartition(".<locals>.")[2]
