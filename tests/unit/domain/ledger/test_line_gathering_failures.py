"""Which results are failures, by which line each is told, and how often the same one counts."""

import pytest

from refold.domain.facts.reading import read_facts
from refold.domain.ledger import LedgerLine
from refold.domain.ledger.line import gather
from refold.domain.ledger.line_choice import merge_ledger
from refold.domain.messages import Block, Message
from tests.support.builders import assistant, tool_use, user

WARNING = (
    "bash: warning: setlocale: LC_ALL: cannot change locale (C.UTF-8): No such file or directory"
)


def ran(
    n: int, output: str, *, failed: bool | None = None, command: str = "make all"
) -> list[Message]:
    result: Block = {"type": "tool_result", "tool_use_id": f"c{n}", "content": output}
    if failed is not None:
        result["is_error"] = failed
    return [assistant({**tool_use(f"c{n}", command=command), "name": "Bash"}), user(result)]


def failures(*parts: list[Message]) -> list[LedgerLine]:
    """The failures that a ledger holds after the parts were folded one by one."""
    kept: tuple[LedgerLine, ...] = ()
    start = 0
    for part in parts:
        kept = merge_ledger(kept, gather(read_facts(enumerate(part, start))))
        start += len(part)
    return [line for line in kept if line.kind == "failure"]


@pytest.mark.parametrize("failed", [None, False])
def test_a_warning_before_the_output_of_what_worked_is_no_failure(failed: bool | None) -> None:
    output = f"{WARNING}\ncompiled 12 files\nlinked app\ncopied 3 assets\nall done"
    assert failures(*(ran(n, output, failed=failed) for n in range(7))) == []


def test_where_the_tool_says_that_it_worked_words_are_no_failure() -> None:
    assert failures(ran(0, "fatal: no commits yet\nNo commits yet", failed=False)) == []
    assert len(failures(ran(0, "fatal: no commits yet\nNo commits yet"))) == 1


def test_a_failure_that_is_told_at_the_end_is_one() -> None:
    told = "compiling\n" * 5 + "linking\n" + "error: undefined symbol"
    assert len(failures(ran(0, f"Error: it went wrong\n{told}"))) == 1
    assert len(failures(ran(0, f"{told}\nexit code: 2"))) == 1


def test_the_same_failure_is_one_line_with_its_count_however_it_is_folded() -> None:
    told = [
        f"--- FAIL: TestParse (0.{n}s)\nparse_test.go:{31 + n}: 2026-01-0{n}T10:00:0{n} undefined: parse"
        for n in range(1, 8)
    ]
    runs = [ran(n, one, failed=True) for n, one in enumerate(told)]
    (at_once,) = failures([message for run in runs for message in run])
    (one_by_one,) = failures(*runs)
    (halves,) = failures([m for run in runs[:3] for m in run], [m for run in runs[3:] for m in run])
    assert at_once == one_by_one == halves
    assert at_once.count == 7
    assert at_once.position == 13


def test_different_failures_stay_apart() -> None:
    runs = [ran(n, f"Error: flight HAT{n}30 not available", failed=True) for n in range(3)]
    assert [line.count for line in failures(*runs)] == [1, 1, 1]


@pytest.mark.parametrize(
    "told",
    [
        "# example.org/cli/session\nsession.go:4:2: undefined: Save",
        "[lint] $ golangci-lint run ./...\nsession.go:4:2: undefined: Save",
        "=== RUN   TestSave\nsession.go:4:2: undefined: Save",
        "> app@0.1.0 build\nsession.go:4:2: undefined: Save",
    ],
)
def test_a_failure_is_told_by_a_line_that_says_something(told: str) -> None:
    (line,) = failures(ran(0, told, failed=True))
    assert line.text == "session.go:4:2: undefined: Save"


def test_a_call_that_was_given_up_for_another_is_no_failure() -> None:
    assert (
        failures(ran(0, "<tool_use_error>Sibling tool call errored</tool_use_error>", failed=True))
        == []
    )
