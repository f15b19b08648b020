"""Lines in plain words: none shows what the code of others raised, and each names a conversation as settings say."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import pytest

import refold
from refold.application.errors import BackendError, RaisedOutside, SummariserError
from refold.application.ports.search_backend import BackendHit
from refold.application.ports.summariser import SummaryDraft, SummaryRequest
from refold.application.runtime import plain_lines
from refold.application.runtime.plain_lines import (
    conversation,
    plain_logger,
    raised,
    strip_quotations,
)
from refold.domain.errors import RefoldError

SECRET = "xyzzy"
THREAD = "PATIENT-4711"
ONCE = refold.CompactionPolicy(summary_tries=1)


class Talkative:
    """A summariser and note taker that quotes messages in what it raises."""

    name = "talkative"

    def __init__(self, kind: type[Exception] = ValueError) -> None:
        self._kind = kind

    def _raise(self, request: Any) -> NoReturn:
        said = str(request.messages[0].message.content)
        if issubclass(self._kind, SummariserError):
            raise self._kind("refused", said)
        raise self._kind(said)

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        self._raise(request)

    async def take_notes(self, request: Any) -> Any:
        self._raise(request)


class Watcher:
    """An observer that raises what it was told, and so do its callbacks."""

    def compaction_ended(self, result: object) -> None:
        raise ValueError(SECRET, result)

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        raise OSError(f"{SECRET} {thread_id}")


class Searcher:
    """A search backend that quotes the question."""

    name = "searcher"

    def __init__(self, kind: type[Exception]) -> None:
        self._kind = kind

    def find(
        self, query: str, mode: str, thread_id: str | None, limit: int
    ) -> Sequence[BackendHit]:
        if issubclass(self._kind, BackendError):
            raise self._kind("failed", query)
        raise self._kind(query)

    def drop(self) -> bool:
        return True

    def close(self) -> None:
        pass


@pytest.fixture
def lines(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.LogCaptureFixture]:
    # A memory of an earlier test may be stricter.
    monkeypatch.setattr(plain_lines, "_settings", {})
    with caplog.at_level(logging.DEBUG, "refold"):
        yield caplog


def talk(memory: refold.Memory, turns: int = 30) -> refold.ConversationMemory:
    chat = memory.conversation(THREAD)
    for number in range(turns):
        chat.append({"role": "user", "content": f"{SECRET} {number} " * 40})
        chat.append({"role": "assistant", "content": f"{SECRET} fine " * 40})
        chat.context()
    return chat


def in_words(lines: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in lines.records if not hasattr(record, "event")]


@pytest.mark.slow(but=["omitted-SystemExit", "omitted-SummariserError"])
@pytest.mark.parametrize("kind", [ValueError, OSError, SystemExit, SummariserError])
@pytest.mark.parametrize("shown", ["plain", "hashed", "omitted"])
def test_what_a_summariser_raises_is_told_by_kind_and_place(
    kind: type[Exception], shown: Any, lines: pytest.LogCaptureFixture
) -> None:
    results: list[refold.CompactionResult] = []
    with refold.open(
        ":memory:",
        window=8_000,
        summariser=Talkative(kind),
        shown_thread_ids=shown,
        policy=ONCE,
        on_compaction=results.append,
    ) as memory:
        chat = talk(memory)
        chat.compact()
    assert any(SECRET in result.detail for result in results)  # Who asks for it is told.
    told = in_words(lines)
    assert any(
        "code takes notes: " in r.getMessage() and kind.__name__ in r.getMessage() for r in told
    )
    assert any(f"{__file__}:" in r.getMessage() for r in told)
    assert all(r.levelno <= logging.WARNING for r in told)
    assert SECRET not in lines.text
    assert not any(record.exc_info or record.exc_text for record in told)
    assert (THREAD in lines.text) == (shown == "plain")


@pytest.mark.slow(but="BackendError")
@pytest.mark.parametrize("kind", [ValueError, BackendError])
def test_what_observers_callbacks_and_searches_raise_is_told_by_kind_and_place(
    kind: type[Exception], lines: pytest.LogCaptureFixture
) -> None:
    def told(result: object) -> None:
        raise KeyError(SECRET, result)

    async def told_later(result: object) -> None:
        raise KeyError(SECRET, result)

    for callback in (told, told_later):
        with refold.open(
            ":memory:",
            window=8_000,
            observers=(Watcher(),),
            on_compaction=callback,
            search_backend=Searcher(kind),
            shown_thread_ids="omitted",
        ) as memory:
            chat = talk(memory)
            assert chat.compact().outcome == "performed"
            assert SECRET in (chat.recall(SECRET).notice or "")
    assert {"ValueError", "OSError", "KeyError"} <= set(lines.text.replace(":", " ").split())
    assert SECRET not in lines.text
    assert THREAD not in lines.text
    assert not any(record.exc_info for record in in_words(lines))


def test_ids_in_errors_are_not_shown_and_the_strictest_memory_counts(
    lines: pytest.LogCaptureFixture,
) -> None:
    logger = plain_logger("refold.infrastructure.somewhere")
    error = RefoldError(
        f"conversation {THREAD!r}, event 3: the digest is wrong, don't read \"it's\""
    )
    logger.warning("the log seems damaged (%s)", error)
    assert lines.records[-1].getMessage().endswith(
        "(conversation …, event 3: the digest is wrong, don't read …)"
    )  # fmt: skip
    assert conversation(THREAD) == f"conversation {THREAD!r}"
    with refold.open(":memory:"), refold.open(":memory:", shown_thread_ids="hashed") as hashed:
        digest = conversation(THREAD)
        assert digest == conversation(f"{THREAD}\x1f2")
        assert THREAD not in digest
        with refold.open(":memory:", shown_thread_ids="omitted") as omitted:
            assert conversation(THREAD) == "a conversation"
        del omitted
        assert conversation(THREAD) in (digest, "a conversation")
    del hashed


def test_a_traceback_that_somebody_logs_loses_its_words(lines: pytest.LogCaptureFixture) -> None:
    logger = plain_logger("refold.infrastructure.somewhere")
    try:
        raise ValueError(SECRET)
    except ValueError:
        logger.exception("100 %% of %s failed", "it")
    [record] = lines.records
    assert record.getMessage().startswith("100 % of it failed: ValueError (")
    assert SECRET not in lines.text


def test_an_error_of_the_system_keeps_its_path() -> None:
    assert strip_quotations(FileNotFoundError(2, "No such file", "a.db")).endswith("'a.db'")


def test_what_ends_a_program_is_told_by_its_own_kind() -> None:
    try:
        raise SystemExit(SECRET)
    except SystemExit as error:
        outside = RaisedOutside(error)
        outside.__cause__ = error
    assert raised(outside).startswith(f"SystemExit ({__file__}:")
