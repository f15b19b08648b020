"""Spans and metrics by OpenTelemetry."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.metadata import version

from opentelemetry import metrics, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from refold.application.api.results import CompactionResult
from refold.application.errors import SummariserError
from refold.application.ports.summariser import Summariser
from refold.domain.events import Trigger

from .log_observer import Naming, Notice, describe_result
from .observed_calls import ObservedDraft

_span: ContextVar[Span | None] = ContextVar("refold.compaction", default=None)
PROVIDERS = {"anthropic": "anthropic", "anthropic-server": "anthropic"}
"""Providers by summariser, as ``gen_ai.provider.name`` spells them."""


@cache
def _version() -> str:
    return version("refold")


REPAIRS = (
    "views.rebuilt",
    "recall.rebuilt",
    "vectors.damaged",
    "snapshot.replaced",
    "keys.rebuilt",
)


class Telemetry:
    """An observer that records spans and metrics.

    Thread ids appear in spans only, never in metrics.
    """

    def __init__(self, naming: Naming) -> None:
        self._naming = naming
        own = _version()
        self._tracer = trace.get_tracer_provider().get_tracer("refold", own)
        self._metrics = _Instruments(metrics.get_meter_provider().get_meter("refold", own))

    @contextmanager
    def compacting(self, thread_id: str, trigger: Trigger) -> Generator[None]:
        """Open a span around a compaction. Model calls become its children."""
        attributes: dict[str, str] = {"refold.trigger": trigger}
        if shown := self._naming(thread_id):
            attributes["gen_ai.conversation.id"] = shown
        with self._tracer.start_as_current_span("refold.compaction", attributes=attributes) as span:
            token = _span.set(span)
            try:
                yield
            finally:
                _span.reset(token)

    def compaction_ended(self, result: CompactionResult) -> None:
        """Count a compaction, and record its outcome in the span."""
        self._metrics.compaction(result)
        span = _span.get()
        if span is not None:
            span.set_attribute("refold.outcome", result.outcome)
            for name, figure in describe_result(result).figures.items():
                span.set_attribute(f"refold.{name}", figure)
            if result.outcome == "failed":
                span.set_attribute("error.type", result.reason)
                span.set_status(Status(StatusCode.ERROR, result.reason))

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        """Count the tokens of a request, and those that a prompt cache can serve."""
        del thread_id
        self._metrics.request_tokens.add(tokens)
        self._metrics.request_repeated.add(tokens_repeated)

    def notify(self, notice: Notice) -> None:
        """Count a decision, a repair or damage."""
        if notice.name in REPAIRS:
            self._metrics.repairs.add(1, {"refold.repair": notice.name})
            return
        if notice.name.partition(".")[0] in ("embedding", "embedder"):
            return  # Nothing was decided.
        if notice.name == "log.damaged":
            self._metrics.damage.add(1, {"error.type": str(notice.figures["error"])})
            return
        if notice.name.startswith("breaker."):
            opened = notice.name == "breaker.opened"
            self._metrics.open_breakers.add(1 if opened else -1)
        self._metrics.decisions.add(1, {"refold.decision": notice.name})
        calls = notice.figures.get("model_calls")
        if (
            isinstance(calls, int) and calls
        ):  # Only durable notes: those of a compaction are in its result.
            by = {"refold.summariser": str(notice.figures.get("taken_by"))}
            self._metrics.model_calls.add(calls, by)
        freed = notice.figures.get("tokens_freed")
        if isinstance(freed, int):
            self._metrics.shortened.add(freed, {"refold.decision": notice.name})

    @contextmanager
    def calling(self, summariser: Summariser) -> Generator["_Call"]:
        """Open a span around a call of a summariser, named by the OpenTelemetry conventions for model calls."""
        attributes = {"refold.summariser": summariser.name}
        model = getattr(summariser, "model", None)
        name, kind = f"summarise {summariser.name}", SpanKind.INTERNAL
        if isinstance(model, str):
            name, kind = f"chat {model}", SpanKind.CLIENT
            attributes |= {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
        if summariser.name in PROVIDERS:
            attributes["gen_ai.provider.name"] = PROVIDERS[summariser.name]
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, record_exception=False,
            set_status_on_exception=False,
        ) as span:  # fmt: skip
            yield _Call(span, attributes, self._metrics)


class _Call:
    """A running call of a summariser.

    Error texts are not recorded, because they may quote a message.
    """

    def __init__(self, span: Span, attributes: dict[str, str], instruments: "_Instruments") -> None:
        self._span = span
        self._attributes = attributes
        self._instruments = instruments

    def answered(self, draft: ObservedDraft, seconds: float) -> None:
        """Record the model that answered and its stop reason."""
        self._span.set_attribute("gen_ai.response.model", draft.model)
        if draft.stop_reason is not None:
            self._span.set_attribute("gen_ai.response.finish_reasons", (draft.stop_reason,))
        self._instruments.call_duration.record(seconds, self._attributes)

    def failed(self, error: BaseException, seconds: float) -> None:
        """Record the type of the error."""
        kind = error.reason if isinstance(error, SummariserError) else type(error).__qualname__
        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR, kind))
        self._instruments.call_duration.record(seconds, {**self._attributes, "error.type": kind})


def _damage_counters(meter: metrics.Meter) -> tuple[metrics.Counter, metrics.Counter]:
    said = "Reads and writes refused because of log damage."
    return (
        meter.create_counter("refold.repairs", "{repair}", "Automatic repairs, by name."),
        meter.create_counter("refold.log.damage", "{error}", said),
    )


class _Instruments:
    """All metrics. ``docs/observability.md`` describes each."""

    def __init__(self, meter: metrics.Meter) -> None:
        counter, histogram = meter.create_counter, meter.create_histogram
        self.compactions = counter(
            "refold.compactions", "{compaction}", "Compactions, by outcome and trigger."
        )
        self.duration = histogram(
            "refold.compaction.duration", "s", "How long a compaction took, summariser included."
        )
        self.before = histogram(
            "refold.compaction.tokens_before", "{token}", "The request before a compaction."
        )
        self.after = histogram(
            "refold.compaction.tokens_after", "{token}", "The request after a compaction."
        )
        self.freed = counter(
            "refold.compaction.tokens_freed", "{token}", "Tokens freed by compactions."
        )
        self.model_calls = counter(
            "refold.model_calls", "{call}", "Calls of a summariser, retries included."
        )
        self.retries = counter("refold.retries", "{call}", "Retried calls.")
        self.call_duration = histogram(
            "gen_ai.client.operation.duration", "s", "How long one call of a summariser took."
        )
        self.decisions = counter(
            "refold.decisions", "{decision}", "Recorded decisions about contexts, by name."
        )
        self.shortened = counter(
            "refold.shortened.tokens_freed", "{token}", "Tokens freed by offloading and condensing."
        )
        self.open_breakers = meter.create_up_down_counter(
            "refold.breakers_open", "{conversation}", "Open circuit breakers in this process."
        )
        self.repairs, self.damage = _damage_counters(meter)
        self.request_tokens = counter("refold.request.tokens", "{token}", "Tokens of requests.")
        self.request_repeated = counter(
            "refold.request.tokens_repeated",
            "{token}",
            "Tokens of the prefix that a prompt cache can serve.",
        )

    def compaction(self, result: CompactionResult) -> None:
        """Count a compaction."""
        kind = {"refold.outcome": result.outcome, "refold.trigger": result.trigger or "none"}
        failure = {"error.type": result.reason} if result.outcome == "failed" else {}
        self.compactions.add(1, {**kind, **failure})
        if result.model_calls:
            by = {"refold.summariser": result.summariser or "none"}
            self.model_calls.add(result.model_calls, by)
            self.retries.add(result.retries, by)
        if result.outcome in ("performed", "failed"):
            self.duration.record(result.seconds, kind)
        if result.outcome == "performed":
            self.before.record(result.tokens_before, kind)
            self.after.record(result.tokens_after, kind)
            self.freed.add(max(0, result.freed), kind)
