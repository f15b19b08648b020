"""``check_token_counter``: measures what is known, and finds what would let a request not fit."""

import inspect

from refold.application.ports.summariser import TokenCounter
from refold.testing.counted_messages import MessageChecks
from refold.testing.counted_texts import TextChecks
from refold.testing.findings import Findings, Report, name_of, shown


def check_token_counter(counter: TokenCounter) -> Report:
    """Check a token counter: whole numbers, the same ones every time, never lower for more content.

    Counts may be estimates. They are compared with the built-in estimate in seven scripts and kinds
    of text, and have to lie between 0.4 and 3 times of it.

    Args:
        counter: yours, as ``refold.open(counter=…)`` takes it. Nothing is asked over the network:
            ``count_request`` is only looked at.

    Returns:
        What was tried.

    Raises:
        CheckFailed: rules are broken; the message says of each what was expected, what was seen and
            what to do.

    >>> class Quarters:
    ...     def count_text(self, text): return len(text) / 4
    >>> check_token_counter(Quarters())
    Traceback (most recent call last):
    refold.testing.CheckFailed: Quarters breaks 2 rules: …
    """
    findings = Findings(name_of(counter))
    if _has_shape(counter, findings):
        for checks in (TextChecks(counter, findings), MessageChecks(counter, findings)):
            for name, probe in checks.probes():
                with findings.probe(name, advice="Count what any log may hold; raise nothing."):
                    probe()
        _look_at_request(counter, findings)
    return findings.settle()


def _has_shape(counter: TokenCounter, findings: Findings) -> bool:
    """Check that it has its three methods."""
    methods = ("count_text", "count_message", "count_tools")
    missing = [m for m in methods if not callable(getattr(counter, m, None))]
    findings.require(
        not missing,
        "methods",
        expected="count_text(text), count_message(message) and count_tools(tools)",
        seen=f"no {', '.join(missing)}",
        advice="Add what is missing; refold.TokenCounter is the protocol.",
    )
    awaited = [m for m in methods if inspect.iscoroutinefunction(getattr(counter, m, None))]
    findings.require(
        not awaited,
        "type",
        expected="plain methods, which return a count at once",
        seen=f"async def {', '.join(awaited)}",
        advice="Estimate locally; an exact count over the network belongs in count_request.",
    )
    return not awaited and "count_text" not in missing


def _look_at_request(counter: TokenCounter, findings: Findings) -> None:
    count: object = getattr(counter, "count_request", None)
    findings.require(
        count is None or inspect.iscoroutinefunction(count),
        "count_request",
        expected="`async def count_request(self, *, model, system, messages, tools)`, or none",
        seen=shown(count),
        advice="Write `async def`: it is awaited, for it asks over the network.",
    )
