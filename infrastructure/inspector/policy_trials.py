"""Trials of a conversation under other compaction policies: one at a time, in the background, in memory."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.conversation.transcripts import RecordedConversation, RecordedMessage
from refold.application.lab.playing import Played
from refold.application.lab.simulating import Contestant, Simulation, simulate
from refold.application.runtime.core import Core
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.value import replace
from refold.infrastructure.settings.price_table import read_prices

MOST_MESSAGES = 10_000
"""Messages of a conversation that can be tried."""
KEPT = 16
"""Finished trials that are remembered."""
CLOSING = 5
"""Seconds that a running trial has to end when the server stops."""
NOW, EARLIER, NEVER = "as now", "compact earlier", "never compact"
LEAST_TRIGGER = 0.06
ROOM = 2
"""The window in which nothing is compacted has room for the conversation so many times."""


OpenTrial = Callable[[Core, CompactionPolicy, int], Core]
"""Returns a core like the given one, with another policy and window, and with an empty log in memory."""


class TrialKey(NamedTuple):
    """A conversation at one version."""

    thread_id: str
    version: int


class Stopped(Exception):
    """The server stops before the trial has ended."""


@dataclass
class Trial:
    """One trial, running or finished."""

    done: int = 0
    """Messages that were played, over all policies."""
    total: int = 1
    policy: str = NOW
    """Policy that is being tried."""
    result: Simulation | None = None
    failure: str = ""
    is_over: bool = False
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def share(self) -> float:
        """Share of the work that is done, from 0 to 1."""
        return min(1.0, self.done / max(1, self.total))


class PolicyTrials:
    """The trials of one server. At most one runs; those that ended are kept by conversation and version."""

    def __init__(self, open_trial: OpenTrial) -> None:
        self.open_trial = open_trial
        self._lock = threading.Lock()
        self._trials: OrderedDict[TrialKey, Trial] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def find(self, key: TrialKey) -> Trial | None:
        """Return the trial of a conversation at a version, or None if none was started."""
        with self._lock:
            return self._trials.get(key)

    @property
    def is_busy(self) -> bool:
        """True if a trial runs."""
        with self._lock:
            return self._is_running()

    def start(self, key: TrialKey, prepare: Callable[[], Callable[[Trial], Simulation]]) -> None:
        """Start a trial, unless it was started before or another one runs.

        ``prepare`` is called once and returns the work, which gets a place for its progress.
        """
        with self._lock:
            if self._is_closed or key in self._trials or self._is_running():
                return
            trial = self._trials[key] = Trial()
            while len(self._trials) > KEPT:
                self._trials.popitem(last=False)
            thread = threading.Thread(
                target=_run, args=(trial, prepare), name="refold-trial", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:
                trial.failure, trial.is_over = f"No thread could start: {error}", True
            else:
                self._thread = thread

    def close(self) -> None:
        """Stop the running trial, and start no other."""
        with self._lock:
            self._is_closed = True
            for trial in self._trials.values():
                trial.stop.set()
            thread = self._thread
        if thread is not None:
            thread.join(CLOSING)

    def _is_running(self) -> bool:
        return any(not trial.is_over for trial in self._trials.values())


def _run(trial: Trial, prepare: Callable[[], Callable[[Trial], Simulation]]) -> None:
    try:
        trial.result = prepare()(trial)
    except Stopped:
        trial.failure = "It was stopped."
    except Exception as error:
        trial.failure = f"{type(error).__name__}: {error}"
    finally:
        trial.is_over = True


def trial_of(
    memory: Memory,
    conversation: ConversationMemory,
    request: Context,
    version: int,
    open_trial: OpenTrial,
) -> Callable[[Trial], Simulation]:
    """Return the work of a trial: the messages of a conversation up to a version, under three policies.

    The messages are read before this returns. The work itself uses the logs that ``open_trial`` makes.
    """
    core = memory._core.for_model(request.model)  # pyright: ignore[reportPrivateUsage]
    messages = tuple(_recorded(conversation, version))
    recorded = RecordedConversation(
        thread_id="trial", messages=messages, tools=tuple(map(dict, request.tools))
    )
    tokens = sum(core.counter.count_message(one.message).total for one in messages)
    policies = _policies(core.settings.policy, request.budget.window, tokens)
    contestants = [
        Contestant(name, partial(open_trial, core, policy, window))
        for name, (policy, window) in policies.items()
    ]

    def work(trial: Trial) -> Simulation:
        trial.total = len(messages) * len(contestants)
        names = list(policies)

        def watch(name: str, event: Played) -> None:
            if trial.stop.is_set():
                raise Stopped
            trial.policy = name
            trial.done = names.index(name) * len(messages) + event.index + 1

        return simulate(recorded, contestants, read_prices(), model=request.model, on_event=watch)

    return work


def _recorded(conversation: ConversationMemory, version: int) -> Iterator[RecordedMessage]:
    for one in conversation.iter_messages():
        if one.version > version:
            return
        yield RecordedMessage(message=one.message, key=str(one.position), original=one.original)


def _policies(
    now: CompactionPolicy, window: int, tokens: int
) -> dict[str, tuple[CompactionPolicy, int]]:
    """Return each policy to try with its window."""
    earlier = replace(now, trigger_share=max(LEAST_TRIGGER, now.trigger_share / 2))
    large = ROOM * (tokens + window)
    return {
        NOW: (now, window),
        EARLIER: (earlier, window),
        NEVER: (replace(now, trigger_share=1.0), large),
    }
