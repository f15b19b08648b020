"""``check_token_counter``: measure known texts, and find errors that would let a request not fit."""

import inspect

from refold.application.ports.summariser import TokenCounter
from refold.testing.counted_messages import MessageChecks
from refold.testing.counted_texts import TextChecks
from refold.testing.findings import Findings, Report, name_of, show_value


def check_token_counter(counter: TokenCounter) -> Report:
    """Check that a token counter returns integers that are repeatable and grow with the content.

    Counts may be estimates. They are compared with the built-in estimate in seven scripts and kinds
    of text, and must be between 0.4 and 3 times that estimate.

    Args:
        counter: your counter, as for ``refold.open(counter=…)``. The check does not call
            ``count_request`` and uses no network.

    Returns:
        The report with the names of the probes.

    Raises:
        CheckFailed: rules are broken; the message has the expected and the seen result of each, and
            advice.

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
                with findings.probe(name, advice="Count any content of a log; never raise."):
                    probe()
        _look_at_request(counter, findings)
    return findings.settle()


def _has_shape(counter: TokenCounter, findings: Findings) -> bool:
    """Check that the counter has its three methods."""
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
        seen=show_value(count),
        advice="Write `async def`: it is awaited, because it uses the network.",
    )
