"""A summariser that tells what its model was given and what it wrote."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from typing import Literal, NamedTuple, get_args

from refold.application.api.context import Context
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.compaction.next_request import context_at
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.stream_places import stored_messages
from refold.application.conversation.transcripts import RecordedConversation
from refold.application.history.explain import MessageFate, explain
from refold.application.ports.note_taker import NotesDraft, NotesRequest, TakeNotes
from refold.application.ports.summariser import (
    Summariser,
    SummaryDraft,
    SummaryRequest,
    TokenCounter,
)
from refold.application.projections.fates import Fate
from refold.application.runtime.core import Core, Extras
from refold.application.summaries.summariser_calls import relayed
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    Event,
    MessagesCondensed,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.messages import said, text_of
from refold.domain.value import Value, replace

from .playing import Played, Player, PlayFigures
from .pricing import CostMeter, Prices

Heard = Callable[[int, int, str | None], None]
"""Is told of every call: tokens given, tokens written, and by which model."""


def metered(summariser: Summariser, counter: TokenCounter, heard: Heard) -> Summariser:
    """``summariser``, with ``heard`` told of every call.

    An answer that failed is not counted: providers do not charge for it.
    """

    async def ask(behind: Summariser, request: SummaryRequest) -> SummaryDraft:
        draft = await behind.summarise(request)
        given = sum(counter.count_message(s.message).total for s in request.messages)
        texts = (request.previous or "", request.focus or "", request.ledger, request.repair or "")
        given += sum(map(counter.count_text, texts))
        heard(given, counter.count_text(draft.text), draft.model)
        return draft

    async def ask_notes(take: TakeNotes, request: NotesRequest) -> NotesDraft:
        draft = await take(request)
        given = sum(counter.count_message(s.message).total for s in request.messages)
        heard(given, sum(counter.count_text(note.text) for note in draft.notes), draft.model)
        return draft

    return relayed(summariser, ask, ask_notes)


COVERED: tuple[Fate, ...] = ("summarised", "omitted")


class Remains(Value, frozen=True):
    """What the context still holds of all that was said."""

    messages: dict[Fate, int]
    """How many messages have which fate."""
    summary_tokens: int
    """The size of the active summary with the ledger beside it; 0 without one."""
    ledger_lines: int
    """Lines that the ledger shows, pinned texts included."""
    user_words: float
    """The share of what users wrote, by characters, that stands in the context word for word: all
    of a message that is shown, of a covered one each line that is in the summary or the ledger."""


def remains(core: Core, thread_id: str) -> Remains:
    """What is left now."""
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
    """The first turn of the context, where summary and ledger stand."""
    messages = context_at(core, loaded.thread_id, Extras(), loaded.state.version).messages
    return text_of(messages[0]) if messages else ""


PRESETS: dict[str, CompactionPolicy] = {
    "early": CompactionPolicy(trigger_share=0.4, target_share=0.4),
    "late": CompactionPolicy(trigger_share=1.0, target_share=0.7),
}
"""Policies to compare with: ``early`` keeps requests small, ``late`` keeps as much as fits."""


class Contestant(NamedTuple):
    """One of the settings that are compared."""

    name: str
    open_core: Callable[[], Core]
    """Gives a core with these settings, on a new log; it is closed after use."""


Deed = Literal["compaction", "failure", "offload", "condense"]
"""What was decided about a conversation before a request."""


class Step(Value, frozen=True):
    """One request of a simulation."""

    index: int
    """The message of the recording that it asked for, from 0."""
    tokens: int
    served: int
    """Of these, from the prompt cache."""
    deeds: tuple[Deed, ...] = ()
    """What was decided since the request before."""


class Simulated(Value, frozen=True):
    """What one policy made of the conversation. Sizes are tokens as estimated."""

    name: str
    policy: CompactionPolicy
    window: int
    trigger: int
    """The size of a request that begins a compaction."""
    limit: int
    """What no request may exceed."""
    figures: PlayFigures
    compactions: int
    failures: dict[str, int]
    """Compactions that failed, by reason."""
    splits: int
    """Compactions that divided a turn."""
    rebuilds: int
    """Compactions that built their summary anew from leaf summaries."""
    offloads: int
    """Decisions to show tool content by previews."""
    condensings: int
    """Decisions to cut older tool results short."""
    tokens_sent: int
    tokens_served: int
    """Of these, from the prompt cache."""
    tokens_written: int
    """Into the prompt cache."""
    tokens_answered: int
    summariser_calls: int
    """Of a model; the built-in summariser needs none."""
    summariser_tokens: int
    cost: float
    cost_without_cache: float
    priced_as: tuple[str, ...]
    """The entries of the price table that were used."""
    kept: Remains
    """What the context held at the end."""
    steps: tuple[Step, ...]


class Simulation(Value, frozen=True):
    """One conversation under several policies."""

    thread_id: str
    messages: int
    model: str | None
    """The model that was simulated; None: those of the recording."""
    prices_as_of: date
    currency: str
    cache_seconds: int | None
    """How long the cache was taken to keep what nobody uses; None: for ever."""
    policies: tuple[Simulated, ...]


def simulate(
    recorded: RecordedConversation,
    contestants: Sequence[Contestant],
    prices: Prices,
    *,
    model: str | None = None,
    on_event: Callable[[str, Played], None] | None = None,
) -> Simulation:
    """Play ``recorded`` once for each contestant, one after the other."""
    done: list[Simulated] = []
    for contestant in contestants:
        run = _Run(contestant, recorded, prices)
        watch = None if on_event is None else _named(on_event, contestant.name)
        done.append(run.play(model, watch))
    return Simulation(
        thread_id=recorded.thread_id,
        messages=len(recorded.messages),
        model=model,
        prices_as_of=prices.as_of,
        currency=prices.currency,
        cache_seconds=prices.cache_seconds,
        policies=tuple(done),
    )


def _named(on_event: Callable[[str, Played], None], name: str) -> Callable[[Played], None]:
    return lambda event: on_event(name, event)


class _Run:
    """One play under one policy."""

    def __init__(
        self, contestant: Contestant, recorded: RecordedConversation, prices: Prices
    ) -> None:
        core = contestant.open_core()
        self._name = contestant.name
        self._recorded = recorded
        self._meter = CostMeter(prices, core.counter)
        asked = core.summariser
        if asked.name != core.fallback.name:
            asked = metered(asked, core.counter, self._meter.summariser)
        # What is compared must not depend on how quick this machine is.
        settings = replace(core.settings, background=False)
        self._core = dataclasses.replace(core, summariser=asked, settings=settings)
        self._seen = 0
        self._events: list[Event] = []
        self._steps: list[Step] = []
        self._newest: Context | None = None
        self._kept: Remains | None = None

    def play(self, model: str | None, watch: Callable[[Played], None] | None) -> Simulated:
        """Play to the end and say what came of it."""
        player = Player(
            lambda: Memory(self._core),
            self._recorded,
            model=model,
            on_request=self._request,
            on_event=watch,
            on_end=self._end,
        )
        return self._simulated(player.play(), model)

    def _request(self, index: int, context: Context) -> None:
        answer = self._recorded.messages[index]
        sent = self._meter.request(context, answer.at)
        answered = self._core.counter.count_message(answer.message).total
        self._meter.answer(answered, context.model)
        deeds = self._decided(context.version)
        step = Step(index=index, tokens=sent.tokens, served=sent.served, deeds=deeds)
        self._steps.append(step)
        self._newest = context

    def _decided(self, version: int) -> tuple[Deed, ...]:
        logged = self._core.log.read(self._recorded.thread_id, self._seen + 1, version)
        self._seen = version
        events = [item.event for item in logged]
        self._events += [e for e in events if _deed(e) or isinstance(e, CompactionRequested)]
        return tuple(deed for event in events if (deed := _deed(event)))

    def _end(self, conversation: ConversationMemory) -> None:
        self._decided(conversation.version)
        self._kept = remains(self._core, conversation.thread_id)

    def _simulated(self, figures: PlayFigures, model: str | None) -> Simulated:
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
