"""An agent that goes on without its memory says so once: in the log, or by a warning if nothing shows the log."""

import logging
import warnings
from collections.abc import Iterator

import pytest

import refold
from refold.application.api.following import Failures
from refold.domain.errors import InvalidThreadId


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """A logger whose lines nothing shows, as in a program without logging."""
    made = logging.getLogger("refold.test_failures")
    made.propagate = False
    yield made
    made.handlers.clear()
    made.propagate = True


def show_nothing(logger: logging.Logger) -> None:
    """Remove what pytest adds when a test begins."""
    logger.handlers[:] = [logging.NullHandler()]


def test_the_first_failure_of_a_conversation_is_a_warning(logger: logging.Logger) -> None:
    show_nothing(logger)
    failures = Failures(logger, "the agent goes on without it")
    with pytest.warns(refold.MemoryUnusedWarning, match="goes on without it: ValueError") as seen:
        failures.report("t", ValueError("secret words"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        failures.report("t", ValueError("again"))
    assert len(seen) == 1
    assert "secret words" not in str(seen[0].message)
    with pytest.warns(refold.MemoryUnusedWarning, match="the thread id is blank"):
        failures.report("u", InvalidThreadId("the thread id is blank: pass the id"))


def test_a_failure_after_one_that_is_over_is_reported_again(logger: logging.Logger) -> None:
    show_nothing(logger)
    failures = Failures(logger, "the agent goes on without it")
    for _ in range(2):
        with pytest.warns(refold.MemoryUnusedWarning):
            failures.report("t", OSError("gone"))
        failures.is_over("t")


def test_a_program_that_shows_log_lines_gets_one_line(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    logger.handlers[:] = [caplog.handler]
    failures = Failures(logger, "the agent goes on without it")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        failures.report("t", ValueError("no"))
        failures.report("t", ValueError("no"))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
