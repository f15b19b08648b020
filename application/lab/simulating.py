"""Simulate a recorded conversation under several compaction policies."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from typing import Literal, NamedTuple, get_args

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.compaction.next_request import context_at
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.stream_places import stored_messages
from refold.application.conversation.transcripts import RecordedConversation
from refold.application.history.explain import MessageFate, explain
from refold.application.ports.summariser import (
    NotesDraft,
    NotesRequest,
    Summariser,
    SummaryDraft,
    SummaryRequest,
    TakeNotes,
)
from refold.application.ports.token_counter import TokenCounter
from refold.application.projections.fates import Fate
from refold.application.runtime.core import Core, Extras
from refold.application.summaries.summariser_calls import relay
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    Event,
    MessageAppended,
    MessagesCondensed,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.messages import said, text_of
from refold.domain.value import Value, replace

from .playing import Played, Player, PlayFigures
from .pricing import CostMeter, Prices
from .recorded_summaries import SummaryCompared, compare_summaries

OnCall = Callable[[int, int, str | None], None]
"""Receives input tokens, output tokens and model of every call."""


def meter(summariser: Summariser, counter: TokenCounter, on_call: OnCall) -> Summariser:
    """Wrap a summariser so that ``on_call`` receives the tokens of every call.

    Failed answers are not counted, because providers do not charge for them.
    """

    async def ask(behind: Summariser, request: SummaryRequest) -> SummaryDraft:
        draft = await behind.summarise(request)
        given = sum(counter.count_message(s.message).total for s in request.messages)
        texts = (request.previous or "", request.focus or "", request.ledger, request.repair or "")
        given += sum(map(counter.count_text, texts))
        on_call(given, counter.count_text(draft.text), draft.model)
        return draft

    async def ask_notes(take: TakeNotes, request: NotesRequest) -> NotesDraft:
        draft = await take(request)
        given = sum(counter.count_message(s.message).total for s in request.messages)
        on_call(given, sum(counter.count_text(note.text) for note in draft.notes), draft.model)
        return draft

    return relay(summariser, ask, ask_notes)


COVERED: tuple[Fate, ...] = ("summarised", "omitted")


class Remains(Value, frozen=True):
    """Content of the conversation that the context still has."""

    messages: dict[Fate, int]
    """Number of messages by fate."""
    summary_tokens: int
    """Tokens of the active summary with its ledger, 0 without a summary."""
    ledger_lines: int
    """Number of shown ledger lines, including pinned texts."""
    user_words: float
    """Share of the users' characters that the context has word for word.

    Shown messages count completely; of covered ones, each line in the summary or the ledger counts.
    """


def measure_remains(core: Core, thread_id: str) -> Remains:
    """Return what the context of a conversation still has."""
    fates = explain(core, thread_id)
    loaded = core.log.load(thread_id)
    summary, pins = loaded.window.summary, loaded.window.pins
    counts = Counter(fate.fate for fate in fates)
    return Remains(
        messages={fate: counts[fate] for fate in get_args(Fate) if counts[fate]},
        summary_tokens=summary.tokens if summary else 0,
        ledger_lines=(summary.ledger_shown if summary else 0) + len(pins),
        user_words=_user_words(core, loaded, fates),
    )


def _user_words(core: Core, loaded: LoadedConversation, fates: tuple[MessageFate, ...]) -> float:
    covered = {fate.position for fate in fates if fate.fate in COVERED}
    standing = _opening(core, loaded) if covered else ""
    written = kept = 0
    for stored in stored_messages(core, loaded.thread_id):
        if stored.message.role != "user":
            continue
        for line in said(stored.message).splitlines():
            weight = len("".join(line.split()))
            written += weight
            if stored.position not in covered or line.strip() in standing:
                kept += weight
    return round(kept / written, 4) if written else 1.0


def _opening(core: Core, loaded: LoadedConversation) -> str:
    """Return the text of the first turn, which contains summary and ledger."""
    messages = context_at(core, loaded.thread_id, Extras(), loaded.state.version).messages
    return text_of(messages[0]) if messages else ""


PRESETS: dict[str, CompactionPolicy] = {
    "early": CompactionPolicy(trigger_share=0.4, target_share=0.4),
    "late": CompactionPolicy(trigger_share=1.0, target_share=0.7),
}
"""Policies for comparison: ``early`` keeps requests small, ``late`` keeps as much as fits."""


class Contestant(NamedTuple):
    """Settings to compare."""

    name: str
    open_core: Callable[[], Core]
    """Returns a core with these settings and a new log. The caller closes the core after use."""


Deed = Literal["compaction", "failure", "offload", "condense"]
"""Kind of decision about a conversation before a request."""


class Step(Value, frozen=True):
    """One request of a simulation."""

    index: int
    """Index of the answer in the recording."""
    tokens: int
    served: int
    """Tokens read from the prompt cache."""
    whole: int
    """Tokens of the same request with the whole history."""
    deeds: tuple[Deed, ...] = ()
    """Decisions since the request before."""


class Simulated(Value, frozen=True):
    """Results of one policy. Sizes are estimated tokens."""

    name: str
    policy: CompactionPolicy
    window: int
    trigger: int
    """Request size that starts a compaction."""
    limit: int
    """Largest allowed request size."""
    figures: PlayFigures
    compactions: int
    failures: dict[str, int]
    """Number of failed compactions by reason."""
    splits: int
    """Compactions that split a turn."""
    rebuilds: int
    """Compactions that rebuilt their summary from leaf summaries."""
    offloads: int
    """Decisions to show tool content as previews."""
    condensings: int
    """Decisions to cut older tool results."""
    tokens_sent: int
    tokens_served: int
    """Tokens read from the prompt cache."""
    tokens_written: int
    """Tokens written to the prompt cache."""
    tokens_answered: int
    summariser_calls: int
    """Number of model calls; the built-in summariser makes none."""
    summariser_tokens: int
    cost: float
    cost_without_cache: float
    priced_as: tuple[str, ...]
    """Entries of the price table that were used."""
    kept: Remains
    """Content of the context at the end."""
    steps: tuple[Step, ...]


class Simulation(Value, frozen=True):
    """One conversation under several policies."""

    thread_id: str
    messages: int
    model: str | None
    """The simulated model, or None for the models of the recording."""
    prices_as_of: date
    currency: str
    cache_seconds: int | None
    """Assumed lifetime of an unused cache entry in seconds, or None for unlimited."""
    policies: tuple[Simulated, ...]
    summaries: tuple[SummaryCompared, ...] = ()
    """The summaries of the recording, compared with ledger and index under the first policy."""


def simulate(
    recorded: RecordedConversation,
    contestants: Sequence[Contestant],
    prices: Prices,
    *,
    model: str | None = None,
    on_event: Callable[[str, Played], None] | None = None,
) -> Simulation:
    """Replay ``recorded`` for each contestant in turn."""
    done: list[Simulated] = []
    for contestant in contestants:
        run = _Run(contestant, recorded, prices)
        watch = None if on_event is None else _with_name(on_event, contestant.name)
        done.append(run.play(model, watch))
    core = contestants[0].open_core()
    try:
        compared = compare_summaries(core, recorded, model)
    finally:
        core.log.close()
    return Simulation(
        thread_id=recorded.thread_id,
        messages=len(recorded.messages),
        model=model,
        prices_as_of=prices.as_of,
        currency=prices.currency,
        cache_seconds=prices.cache_seconds,
        policies=tuple(done),
        summaries=compared,
    )


def _with_name(on_event: Callable[[str, Played], None], name: str) -> Callable[[Played], None]:
    return lambda event: on_event(name, event)


class _Run:
    """One replay under one policy."""

    def __init__(
        self, contestant: Contestant, recorded: RecordedConversation, prices: Prices
    ) -> None:
        core = contestant.open_core()
        self._name = contestant.name
        self._recorded = recorded
        self._meter = CostMeter(prices, core.counter)
        asked = core.summariser
        if asked.name != core.fallback.name:
            asked = meter(asked, core.counter, self._meter.summariser)
        # Results must not depend on the speed of the machine.
        settings = replace(core.settings, background=False)
        self._core = dataclasses.replace(core, summariser=asked, settings=settings)
        self._seen = self._history = 0
        self._events: list[Event] = []
        self._steps: list[Step] = []
        self._newest: Context | None = None
        self._kept: Remains | None = None

    def play(self, model: str | None, watch: Callable[[Played], None] | None) -> Simulated:
        """Replay to the end and return the results."""
        player = Player(
            lambda: Memory(self._core),
            self._recorded,
            model=model,
            on_request=self._request,
            on_event=watch,
            on_end=self._end,
        )
        return self._result(player.play(), model)

    def _request(self, index: int, context: Context) -> None:
        answer = self._recorded.messages[index]
        sent = self._meter.request(context, answer.at)
        answered = self._core.counter.count_message(answer.message).total
        self._meter.answer(answered, context.model)
        deeds = self._read_decisions(context.version)
        self._steps.append(
            Step(
                index=index,
                tokens=sent.tokens,
                served=sent.served,
                whole=self._history + context.budget.fixed,
                deeds=deeds,
            )
        )
        self._newest = context

    def _read_decisions(self, version: int) -> tuple[Deed, ...]:
        logged = self._core.log.read(self._recorded.thread_id, self._seen + 1, version)
        self._seen = version
        events = [item.event for item in logged]
        self._history += sum(e.tokens for e in events if isinstance(e, MessageAppended))
        self._events += [e for e in events if _deed(e) or isinstance(e, CompactionRequested)]
        return tuple(deed for event in events if (deed := _deed(event)))

    def _end(self, conversation: ConversationMemory) -> None:
        self._read_decisions(conversation.version)
        self._kept = measure_remains(self._core, conversation.thread_id)

    def _result(self, figures: PlayFigures, model: str | None) -> Simulated:
        assert self._kept is not None
        bill, kinds = self._meter.bill, Counter(_deed(event) for event in self._events)
        performed = [e for e in self._events if isinstance(e, CompactionPerformed)]
        requested = {e.attempt_id: e for e in self._events if isinstance(e, CompactionRequested)}
        failed = [e.reason for e in self._events if isinstance(e, CompactionFailed)]
        chosen = self._core.settings.for_model(model)
        budget = self._newest.budget if self._newest else None
        return Simulated(
            name=self._name,
            policy=chosen.policy,
            window=budget.window if budget else 0,
            trigger=budget.trigger if budget else 0,
            limit=budget.limit if budget else 0,
            figures=figures,
            compactions=len(performed),
            failures=dict(Counter(failed).most_common()),
            splits=sum(e.is_split_turn for e in performed),
            rebuilds=sum(requested[e.attempt_id].rebuilds for e in performed),
            offloads=kinds["offload"],
            condensings=kinds["condense"],
            tokens_sent=bill.sent,
            tokens_served=bill.served,
            tokens_written=bill.written,
            tokens_answered=bill.answered,
            summariser_calls=bill.summariser_calls,
            summariser_tokens=bill.summariser_tokens,
            cost=round(bill.cost, 9),
            cost_without_cache=round(bill.cost_without_cache, 9),
            priced_as=tuple(sorted(self._meter.entries)),
            kept=self._kept,
            steps=tuple(self._steps),
        )


def _deed(event: Event) -> Deed | None:
    match event:
        case CompactionPerformed():
            return "compaction"
        case CompactionFailed():
            return "failure"
        case ToolContentOffloaded() | UserContentShortened():
            return "offload"
        case MessagesCondensed():
            return "condense"
        case _:
            return None
