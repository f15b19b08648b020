"""What still works when a part does not: each step down is in the result or in a log line, and nothing is lost."""

import asyncio
import logging
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import refold
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.results import CompactionResult
from refold.application.errors import LogNotWritable
from refold.infrastructure.observability import log_observer, telemetry
from refold.infrastructure.tokens.anthropic import AnthropicTokenCounter
from tests.support.fake_summarisers import GoodSummariser, RaisingSummariser

NOBODY = 65534
"""A user who may do little: permissions do not hold root back."""


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG, "refold"):
        yield caplog


def talk_on(conversation: ConversationMemory, turns: int = 8) -> None:
    for turn in range(turns):
        for role in ("user", "assistant"):
            conversation.append(
                {"role": role, "content": f"{turn} " + "some words of a talk " * 40}
            )


def events(lines: pytest.LogCaptureFixture) -> list[str]:
    return [record.__dict__["event"] for record in lines.records if "event" in record.__dict__]


def test_read_models_that_are_damaged_while_they_are_open_are_rebuilt_and_that_is_told(
    tmp_path: Path, lines: pytest.LogCaptureFixture
) -> None:
    with refold.open(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 2)
        before = conversation.messages()
        with closing(sqlite3.connect(tmp_path / "a.views.db")) as other, other:
            other.execute("UPDATE messages SET text='other' WHERE position=0")
        assert conversation.messages() == before
        assert events(lines).count("views.rebuilt") == 1
        assert conversation.messages() == before
        assert events(lines).count("views.rebuilt") == 1


@pytest.fixture
def as_nobody(tmp_path: Path) -> Iterator[Path]:
    """A folder of a user who is not root, and this process is that user."""
    # What is imported late may lie where only root may look.
    with refold.open(tmp_path / "warm.db", window=8_000) as memory:
        talk_on(memory.conversation("t"))
        memory.conversation("t").compact()
        memory.verify()
    place = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield place
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
        place.chmod(0o700)
        shutil.rmtree(place)


def test_where_the_folder_may_not_be_written_any_more_the_read_models_live_in_memory(
    as_nobody: Path, lines: pytest.LogCaptureFixture
) -> None:
    path = as_nobody / "a.db"
    with refold.open(path, window=8_000) as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 4)
        as_nobody.chmod(0o500)
        talk_on(conversation, 4)
        assert len(conversation.messages()) == 16
        assert "in memory instead" in lines.text
        assert conversation.compact().outcome == "performed"
        as_nobody.chmod(0o700)
        conversation.append({"role": "user", "content": "more"})
    with refold.open(path) as memory:
        assert len(memory.conversation("t").messages()) == 17
        assert memory.verify().ok


def test_files_that_may_not_be_written_are_told_and_gone_on_with_when_they_may(
    as_nobody: Path,
) -> None:
    path = as_nobody / "a.db"
    with refold.open(path) as memory:
        talk_on(memory.conversation("t"), 1)
    path.chmod(0o400)
    with (
        refold.open(path) as memory,
        pytest.raises(LogNotWritable, match="check its permissions, and those of the -wal"),
    ):
        talk_on(memory.conversation("t"), 1)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").chmod(0o600)
    with refold.open(path) as memory:
        talk_on(memory.conversation("t"), 1)
        assert len(memory.conversation("t").messages()) == 4
        assert memory.verify().ok


class Changeable:
    """A summariser that works until it does not."""

    name = "changeable"

    def __init__(self) -> None:
        self.works = True

    async def summarise(self, request: refold.SummaryRequest) -> refold.SummaryDraft:
        inner = GoodSummariser() if self.works else RaisingSummariser("refused")
        return await inner.summarise(request)


def test_where_a_summariser_fails_the_summary_of_before_stays_and_the_result_says_why(
    lines: pytest.LogCaptureFixture,
) -> None:
    summariser = Changeable()
    with refold.open(":memory:", window=8_000, summariser=summariser) as memory:
        conversation = memory.conversation("t")
        talk_on(conversation)
        first = conversation.compact()
        talk_on(conversation)
        before = conversation.context(at=conversation.version).messages
        summariser.works = False
        failed = conversation.compact()
        assert (failed.outcome, failed.reason) == ("failed", "refused")
        assert failed.detail
        assert failed.summary_id == first.summary_id
        assert conversation.context(at=conversation.version).messages == before
        summariser.works = True
        assert conversation.compact().outcome == "performed"
    assert "compaction.failed" in events(lines)


def test_where_the_counting_endpoint_does_not_answer_the_estimate_stands_and_that_is_told(
    tmp_path: Path, lines: pytest.LogCaptureFixture
) -> None:
    import anthropic

    client = anthropic.AsyncAnthropic(api_key="none", base_url="http://127.0.0.1:9", max_retries=0)
    counter = AnthropicTokenCounter(client)
    with (
        refold.open(tmp_path / "a.db", window=8_000) as plain,
        refold.open(tmp_path / "a.db", window=8_000, counter=counter, model="claude-haiku-5-5")
        as counting,
    ):  # fmt: skip
        talk_on(plain.conversation("t"), 20)
        context = counting.conversation("t").context()
        assert [result.outcome for result in context.compactions] == ["performed"]
        assert context.tokens == plain.conversation("t").context().tokens
    assert "the estimate is used" in lines.text
    asyncio.run(client.close())


@pytest.mark.parametrize("part", [telemetry.Telemetry, log_observer.LogLines])
@pytest.mark.parametrize("method", ["notify", "compaction_ended", "request_made"])
def test_whatever_looks_on_and_raises_is_logged_and_stops_nothing(
    part: type, method: str, lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bad(*_: object) -> None:
        raise RuntimeError("no connection to the metrics")

    told: list[CompactionResult] = []
    monkeypatch.setattr(part, method, bad)
    with refold.open(":memory:", window=8_000, on_compaction=told.append) as memory:
        conversation = memory.conversation("t")
        talk_on(conversation)
        assert conversation.compact().outcome == "performed"
        assert conversation.context().tokens
        assert conversation.pin("never forget")
        assert memory.verify().ok
    assert len(told) == 1
    assert f"failed: RuntimeError ({__file__}:" in lines.text
    assert "no connection to the metrics" not in lines.text  # It could quote a message.
