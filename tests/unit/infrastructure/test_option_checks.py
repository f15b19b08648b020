"""Counts, ids and summaries that objects of the application return are checked before they are stored."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.errors import SummariserError
from refold.application.ports.token_counter import RequestCounter, TokenCount
from refold.domain.errors import InvalidSetting
from refold.infrastructure.settings.option_checks import checked_counter
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter

SAID = {"role": "user", "content": "hello"}


class Counter(EstimatingTokenCounter):
    """A counter of an application, as wrong as a test wants it."""

    text: Any = 3
    message: Any = TokenCount(total=4)
    tools: Any = 5

    def count_text(self, text: str) -> int:
        counted: int = self.text
        return counted

    def count_message(self, message: object) -> TokenCount:
        counted: TokenCount = self.message
        return counted

    def count_tools(self, tools: object) -> int:
        counted: int = self.tools
        return counted


def pin(talk: refold.ConversationMemory) -> None:
    talk.pin("keep this")


def append(talk: refold.ConversationMemory) -> None:
    talk.append(SAID)


def ask(talk: refold.ConversationMemory) -> None:
    talk.context(tools=[{"name": "a", "input_schema": {"type": "object"}}])


@pytest.mark.parametrize("wrong", [2.5, -1, True, None, "3", float("nan")])
@pytest.mark.parametrize(("method", "use"), [("text", pin), ("message", append), ("tools", ask)])
def test_what_is_no_count_is_refused_and_the_log_stays_readable(
    tmp_path: Path, method: str, use: Callable[[refold.ConversationMemory], None], wrong: object
) -> None:
    counter = Counter()
    with refold.open(tmp_path / "agent.db", counter=counter) as memory:
        talk = memory.conversation("t")
        talk.append(SAID)
        setattr(counter, method, wrong)
        with pytest.raises(InvalidSetting, match=f"counter: count_{method} must return"):
            use(talk)
    with refold.open(tmp_path / "agent.db") as memory:
        assert memory.verify().ok
        assert len(memory.conversation("t").messages()) == 1


def test_a_counter_of_requests_stays_one() -> None:
    class Exact(Counter):
        async def count_request(self, **request: Any) -> int:
            return 7

    assert isinstance(checked_counter(Exact()), RequestCounter)
    assert not isinstance(checked_counter(Counter()), RequestCounter)
    assert checked_counter(None) is None


def test_an_id_that_is_no_text_is_refused(tmp_path: Path) -> None:
    made: Any = lambda: 5  # noqa: E731
    with refold.open(tmp_path / "agent.db", new_id=made) as memory:
        with pytest.raises(
            InvalidSetting, match="new_id: it must return a text, not 5 of type int"
        ):
            memory.conversation("t").append(SAID)
        assert memory.conversations() == []


def test_a_summary_of_another_type_is_a_failure() -> None:
    class Loose:
        name = "loose"

        async def summarise(self, request: refold.SummaryRequest) -> Any:
            return {"text": "all is said"}

    with refold.open(":memory:", window=8_000, summariser=Loose()) as memory:
        talk = memory.conversation("t")
        for number in range(20):
            role = "assistant" if number % 2 else "user"
            talk.append({"role": role, "content": f"message {number} " + "word " * 50})
        result = talk.compact(all=True)
    assert result.outcome == "failed"
    assert "must return a SummaryDraft, not a value of type dict" in result.detail


LATE_IN_THE_WEST = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))


@pytest.mark.parametrize("told", [None, 5.0, "2026-01-01T00:00:00Z", LATE_IN_THE_WEST])
def test_a_clock_that_gives_no_time_is_refused(tmp_path: Path, told: Any) -> None:
    times = iter([told])
    clock: Any = lambda: next(times, datetime.now(UTC))  # noqa: E731
    with refold.open(tmp_path / "agent.db", clock=clock) as memory:
        talk = memory.conversation("t")
        with pytest.raises(InvalidSetting, match="clock: it must return a datetime"):
            talk.append(SAID)
        assert talk.append(SAID).positions == (0,)


def test_a_clock_without_a_time_zone_hinders_no_other_memory(tmp_path: Path) -> None:
    outcomes: list[str] = []

    class Asking:
        name = "asking"

        async def summarise(self, request: refold.SummaryRequest) -> refold.SummaryDraft:
            result = await asyncio.to_thread(other.conversation("t").compact, force=True)
            outcomes.append(result.outcome)
            raise SummariserError("asking", "no model answers")

    path = tmp_path / "agent.db"
    with (
        refold.open(path, window=8_000, clock=datetime.now, summariser=Asking()) as memory,
        refold.open(path, window=8_000) as other,
    ):
        talk = memory.conversation("t")
        for number in range(20):
            role = "assistant" if number % 2 else "user"
            talk.append({"role": role, "content": f"message {number} " + "word " * 50})
        talk.compact(force=True)
    assert set(outcomes) == {"in_flight"}
