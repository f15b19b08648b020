"""What happens is told: in log lines, spans and metrics, each by the name that the documentation has."""

import asyncio
import logging
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import DataPointT, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import refold
from refold.application.errors import SummariserError
from refold.application.ports.conversation_log import Decision, Stored
from refold.application.ports.summariser import SummaryDraft, SummaryRequest
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.conversation import Conversation
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.observability.log_observer import LEVELS, describe_decisions
from refold.infrastructure.sqlite.read_only import Mount, NetworkWarnings
from tests.architecture.rules import ROOT
from tests.support.bounded_summarisers import Bounded
from tests.support.fake_embedders import DigestEmbedder, FailingEmbedder, unreachable
from tests.support.fake_summarisers import GoodSummariser, HeldSummariser
from tests.support.golden_events import EVENTS
from tests.support.log_files import execute

PAGE = (ROOT / "docs" / "observability.md").read_text("utf-8")
SECRET = "xyzzy"


Point = tuple[dict[str, object], float]
"""Attributes, and value; of a histogram, the sum."""


def point_of(point: DataPointT) -> Point:
    value = point.value if isinstance(point, NumberDataPoint) else point.sum
    return dict(point.attributes or {}), value or 0


class Seen(NamedTuple):
    """What the SDK was given."""

    spans: InMemorySpanExporter
    reader: InMemoryMetricReader

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans.get_finished_spans() if span.name == name]

    def metrics(self) -> dict[str, list[Point]]:
        """Of every metric its points."""
        data = self.reader.get_metrics_data()
        found: dict[str, list[Point]] = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found[metric.name] = [point_of(p) for p in metric.data.data_points]
        return found

    def total(self, name: str, **wanted: str) -> float:
        """The sum of a metric over the points that have these attributes, dots as underscores."""
        return sum(
            value
            for attributes, value in self.metrics().get(name, [])
            if wanted.items() <= {k.replace(".", "_"): v for k, v in attributes.items()}.items()
        )


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers, meters = TracerProvider(), MeterProvider(metric_readers=[reader])
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: tracers)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: meters)
    return Seen(exporter, reader)


class Moody(GoodSummariser):
    """Good or bad, as it is told; says which model it asks."""

    name = "moody"
    model = "claude-haiku-5-5"

    def __init__(self, troubles: int = 0, reason: str = "refused") -> None:
        self.troubles = troubles
        self.reason = reason

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        if self.troubles:
            self.troubles -= 1
            raise SummariserError(self.reason, f"they said {SECRET}")
        return await super().summarise(request)


def talk(conversation: refold.ConversationMemory, turns: int, words: int = 40) -> None:
    for n in range(turns):
        conversation.append(
            {"role": "user", "content": f"{SECRET} check file_{n}.py please. " * words}
        )
        conversation.append({"role": "assistant", "content": f"file_{n}.py is fine. " * words})


def run_tool(conversation: refold.ConversationMemory, call_id: str, characters: int) -> None:
    call = {"type": "tool_use", "id": call_id, "name": "bash", "input": {"command": "cat log"}}
    conversation.append({"role": "assistant", "content": [call]})
    output = f"{SECRET} line\n" * (characters // 11)
    result = {"type": "tool_result", "tool_use_id": call_id, "content": output}
    conversation.append({"role": "user", "content": [result]})


def everything() -> None:
    """Makes everything happen that there is a name for."""
    policy = CompactionPolicy(retry_growth=0.001)
    summariser = Moody()
    with refold.open(":memory:", window=8_000, summariser=summariser, policy=policy) as memory:
        conversation = memory.conversation("one")
        talk(conversation, 12)
        conversation.context()
        conversation.compact(force=True)
        conversation.compact(force=True)
        summariser.troubles = 4
        for _ in range(4):
            talk(conversation, 2)
            conversation.compact(force=True)
        talk(conversation, 2)
        conversation.compact(force=True)
        conversation.revert_compaction()
        conversation.unpin(conversation.pin("never push"))
        conversation.tools(edits="propose").call("pin", {"text": "never push"})
        conversation.refuse(conversation.proposals()[0].edit_id)
        summariser.troubles = 100
        talk(conversation, 14)
        conversation.context()  # It must fit: the embedded summariser steps in.
        conversation.fork()
        conversation.erase(0)
        memory.erase_conversation("one")
    tools()
    large()
    chunks()
    damages()
    network()
    unwritten()
    vectors()
    memories()
    asyncio.run(two_at_once())


def damages() -> None:
    """Read models and snapshots are repaired by themselves; a log that is behind is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        with refold.open(path, window=8_000) as memory:
            talk(memory.conversation("t"), 12)
            memory.conversation("t").compact()
            memory.conversations()
            memory.search("one")
        execute(path, "UPDATE stored_snapshots SET state=x'00'")
        execute(Path(folder) / "a.views.db", "UPDATE messages SET text='other'")
        execute(Path(folder) / "a.recall.db", "DELETE FROM passages")
        with refold.open(path, window=8_000) as memory:
            memory.conversation("t").messages()
            memory.search("one")
            memory.conversation("keys").append({"role": "user", "content": SECRET}, key="k")
            execute(path, "DELETE FROM message_keys")
            memory.conversation("keys").append({"role": "user", "content": SECRET}, key="k")
        execute(path, "DELETE FROM stored_events WHERE originator_version>20")
        with refold.open(path, window=8_000) as memory, suppress(refold.RefoldError):
            memory.conversation("t").context()


def unwritten() -> None:
    """A summary waits until the log can be written."""
    held = HeldSummariser()
    held.release()
    with (
        pytest.MonkeyPatch.context() as patch,
        refold.open(":memory:", window=8_000, summariser=held) as memory,
    ):
        conversation, write = memory.conversation("t"), SQLiteLog.transact
        talk(conversation, 12)

        def full(log: SQLiteLog, thread_id: str, decide: Decision, *, at: datetime) -> Stored:
            if held.calls:
                raise refold.LogFull("the disk is full")
            return Stored(*write(log, thread_id, decide, at=at))

        patch.setattr(SQLiteLog, "transact", full)
        assert conversation.compact().outcome == "waiting"
        patch.undo()


def network() -> None:
    """The log lies on a network file system, as the table of mounts has it."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        on_network = NetworkWarnings(lambda: [Mount("/", "nfs4")])
        patch.setattr("refold.infrastructure.sqlite.read_only.NETWORK", on_network)
        refold.open(Path(folder) / "a.db").close()


def vectors() -> None:
    """Vectors are made, made anew by another model and when they are damaged, and cannot be made."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        for model in ("digests-0", "digests-1"):
            with refold.open(path, embedder=DigestEmbedder(model)) as memory:
                talk(memory.conversation("t"), 1)
                memory.embed()
        execute(Path(folder) / "a.vectors.db", "UPDATE vectors SET vector=x'00'")
        with refold.open(path, embedder=DigestEmbedder("digests-1")) as memory:
            memory.search("one")
            memory.embed()
        failing = FailingEmbedder(*[unreachable() for _ in range(9)])
        with refold.open(path, embedder=failing) as memory:
            memory.conversation("t").append({"role": "user", "content": f"{SECRET} two"})
            memory.embed()
            memory.search("two")


def memories() -> None:
    """What was folded away is quoted where it matters."""
    with refold.open(":memory:", window=8_000, memories=2) as memory:
        conversation = memory.conversation("memories")
        talk(conversation, 12)
        conversation.append({"role": "user", "content": "Was file_1.py fine?"})
        conversation.context()


def tools() -> None:
    """Large and many tool results: they are offloaded and condensed."""
    with refold.open(":memory:", window=32_000) as memory:
        conversation = memory.conversation("tools")
        conversation.append({"role": "user", "content": "look at the logs"})
        run_tool(conversation, "giant", 60_000)
        for n in range(60):
            run_tool(conversation, f"c{n}", 2_000)
            conversation.context()


def large() -> None:
    """A user's text leaves no room for anything else."""
    with refold.open(":memory:", window=8_000) as memory:
        conversation = memory.conversation("large")
        conversation.append({"role": "user", "content": f"{SECRET} line of a log\n" * 4_000})
        conversation.context()


def chunks() -> None:
    """A conversation is too large for one call of its summariser."""
    with refold.open(":memory:", window=100_000, summariser=Bounded(12_000, Moody())) as memory:
        conversation = memory.conversation("chunks")
        talk(conversation, 60)
        assert conversation.compact(all=True).outcome == "performed"


async def two_at_once() -> None:
    """Two compactions of one conversation; the first is given up when the memory is closed."""
    held = HeldSummariser()
    memory = refold.aopen(":memory:", window=8_000, summariser=held, compaction_wait=0.1)
    conversation = memory.conversation("two")
    for n in range(12):
        await conversation.append({"role": "user", "content": f"check file_{n}.py please. " * 40})
        await conversation.append({"role": "assistant", "content": f"file_{n}.py is fine. " * 40})
    first = asyncio.create_task(conversation.compact())
    await asyncio.to_thread(held.started.wait, 10)
    assert (await conversation.compact()).outcome == "in_flight"
    # The next request cannot wait for it.
    for n in range(12):
        await conversation.append({"role": "user", "content": f"check test_{n}.py please. " * 60})
        await conversation.append({"role": "assistant", "content": f"test_{n}.py is fine. " * 60})
    context = asyncio.create_task(conversation.context())
    await asyncio.sleep(0)
    await asyncio.wait([context], timeout=10)
    held.release()
    await asyncio.gather(first, context)
    await memory.close()


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG, "refold"):
        yield caplog


ON_A_SERVER = {"vectors.compared_here"}
"""Events that only a log on a server reports: tests/integration/test_vectors_on_a_server.py."""


@pytest.mark.slow
def test_everything_that_has_a_name_in_the_documentation_is_told_and_nothing_else(
    seen: Seen, lines: pytest.LogCaptureFixture
) -> None:
    everything()
    told = {getattr(record, "event", None) for record in lines.records} - {None}
    rows = re.findall(r"^\| (`[a-z]+\.[a-z_]+`(?:, `[a-z]+\.[a-z_]+`)?) \| [A-Z]+ \|", PAGE, re.M)
    documented = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert documented == set(LEVELS)
    assert documented - told == ON_A_SERVER
    of_metrics = re.findall(r"^\| `([a-z_.]+)` \| (?:counter|histogram|up-down)", PAGE, re.M)
    assert set(of_metrics) == set(seen.metrics())
    spans = {span.name for span in seen.spans.get_finished_spans()}
    assert spans == {"refold.compaction", "chat claude-haiku-5-5", "summarise extractive",
                     "summarise held", "summarise moody"}  # fmt: skip


def test_the_levels_are_those_of_the_documentation() -> None:
    rows = re.findall(r"^\| (`[a-z]+\.[^|]+`) \| ([A-Z]+) \|", PAGE, re.M)
    levels = {
        name: logging.getLevelNamesMapping()[level]
        for names, level in rows
        for name in re.findall(r"`([^`]+)`", names)
    }
    assert levels == LEVELS


def test_the_loggers_are_those_of_the_documentation() -> None:
    listed = PAGE.partition("from the loggers ")[2].partition(":")[0]
    assert set(re.findall(r"`refold\.([a-z]+)`", listed)) == {n.partition(".")[0] for n in LEVELS}


def test_whatever_an_event_is_told_by_has_a_level() -> None:
    either = [event for pair in EVENTS.values() for event in pair]
    told = describe_decisions("t", Conversation(), Conversation(), either, breaker_after=3)
    assert {notice.name for notice in told} - set(LEVELS) == set()


@pytest.mark.slow
def test_no_text_of_a_conversation_and_no_words_of_a_summariser_are_told(
    seen: Seen, lines: pytest.LogCaptureFixture
) -> None:
    everything()
    for record in lines.records:
        if record.name.startswith("refold"):
            assert SECRET not in str(record.__dict__), record
    for span in seen.spans.get_finished_spans():
        assert SECRET not in span.to_json()
    assert SECRET not in str(seen.metrics())


def test_the_message_of_a_line_and_its_attributes_say_the_same(
    lines: pytest.LogCaptureFixture,
) -> None:
    with refold.open(":memory:", window=8_000) as memory:
        conversation = memory.conversation("thread 42")
        talk(conversation, 12)
        result = conversation.compact()
    [record] = [r for r in lines.records if getattr(r, "event", "") == "compaction.performed"]
    assert record.name == "refold.compaction"
    message = record.getMessage()
    assert message.startswith('compaction.performed thread_id="thread 42" trigger=manual ')
    assert f" tokens_before={result.tokens_before} tokens_after={result.tokens_after} " in message
    assert record.__dict__["tokens_after"] == result.tokens_after
    assert record.__dict__["thread_id"] == "thread 42"


def test_a_call_of_a_model_lies_within_the_span_of_its_compaction(seen: Seen) -> None:
    moody = Moody(troubles=1, reason="overloaded")
    policy = CompactionPolicy(summary_tries=2)
    with refold.open(":memory:", window=8_000, summariser=moody, policy=policy) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 12)
        result = conversation.compact()
    assert result.outcome == "performed"
    [compaction] = seen.named("refold.compaction")
    calls = seen.named("chat claude-haiku-5-5")
    assert len(calls) == result.model_calls
    assert result.retries == 1
    assert compaction.context is not None
    for call in calls:
        assert call.parent is not None
        assert call.parent.span_id == compaction.context.span_id
    first, second = calls[:2]
    assert first.attributes is not None
    assert second.attributes is not None
    assert compaction.attributes is not None
    assert first.attributes["error.type"] == "overloaded"
    assert not first.status.is_ok
    assert second.attributes["gen_ai.request.model"] == "claude-haiku-5-5"
    assert second.attributes["gen_ai.response.finish_reasons"] == ("end_turn",)
    assert compaction.attributes["refold.outcome"] == "performed"
    assert compaction.attributes["refold.tokens_after"] == result.tokens_after
    assert compaction.attributes["gen_ai.conversation.id"] == "t"


def test_the_metrics_are_those_of_the_results(seen: Seen) -> None:
    results: list[refold.CompactionResult] = []
    moody = Moody()
    with refold.open(
        ":memory:", window=8_000, summariser=moody, on_compaction=results.append
    ) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 12)
        conversation.compact()
        talk(conversation, 4)
        moody.troubles = 9
        conversation.compact()
        talk(conversation, 16)
        conversation.context()
    kinds = [(r.outcome, r.trigger) for r in results]
    assert ("failed", "manual") in kinds
    assert ("performed", "size") in kinds
    for outcome, trigger in kinds:
        assert seen.total(
            "refold.compactions", refold_outcome=outcome, refold_trigger=str(trigger)
        ) == kinds.count((outcome, trigger))
    done = [r for r in results if r.outcome == "performed"]
    assert seen.total("refold.compaction.tokens_before") == sum(r.tokens_before for r in done)
    assert seen.total("refold.compaction.tokens_after") == sum(r.tokens_after for r in done)
    assert seen.total("refold.model_calls") == sum(r.model_calls for r in results)
    for attributes, _ in (point for points in seen.metrics().values() for point in points):
        assert "t" not in attributes.values(), "a thread id in a metric"


def test_the_breaker_opens_and_closes(seen: Seen, lines: pytest.LogCaptureFixture) -> None:
    moody = Moody(troubles=3)
    policy = CompactionPolicy(breaker_after=3)
    with refold.open(":memory:", window=8_000, summariser=moody, policy=policy) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 8)
        for _ in range(3):
            conversation.compact(force=True)
        assert seen.total("refold.breakers_open") == 1
        conversation.compact(force=True)
    assert seen.total("refold.breakers_open") == 0
    told = [getattr(record, "event", "") for record in lines.records]
    assert [e for e in told if e.startswith("breaker")] == ["breaker.opened", "breaker.closed"]


@pytest.mark.parametrize(("shown", "named"), [("hashed", "e3b98a4da31a127d"), ("omitted", None)])
def test_a_thread_id_can_be_kept_out_of_sight(
    shown: str, named: str | None, seen: Seen, lines: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("REFOLD_SHOWN_THREAD_IDS", shown)
    with refold.open(":memory:", window=8_000) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 12)
        conversation.context()
    [compaction] = seen.named("refold.compaction")
    assert compaction.attributes is not None
    assert compaction.attributes.get("gen_ai.conversation.id") == named
    told = [r for r in lines.records if hasattr(r, "event")]
    assert told
    assert {r.__dict__.get("thread_id") for r in told} == {named}


def test_telemetry_can_be_turned_off(seen: Seen) -> None:
    with refold.open(":memory:", window=8_000, telemetry=False) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 12)
        conversation.compact()
    assert seen.spans.get_finished_spans() == ()
    assert seen.metrics() == {}


def test_a_level_is_set_only_where_a_setting_says_one(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("refold")
    monkeypatch.setattr(logger, "level", logging.NOTSET)
    refold.open(":memory:").close()
    assert logger.level == logging.NOTSET
    monkeypatch.setenv("REFOLD_LOG_LEVEL", "ERROR")
    refold.open(":memory:").close()
    assert logger.level == logging.ERROR
    logger.setLevel(logging.NOTSET)
