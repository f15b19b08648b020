"""One conversation, as agents use it: append, context, compact, and looking back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from refold.domain.labelling import label_as_recorded, label_conversation

from . import appending
from .appending import Keys
from .background import Background
from .blocking import Runner, to_the_end
from .compaction import CompactionAttempt
from .context import Context
from .contexts import context_at
from .core import Core, Extras
from .erasure.erasing import Where, erase, shared_with
from .erasure.erasure_report import ErasureReport
from .explaining import MessageFate, explain
from .exporting import ExportFormat, export
from .pinning import PinnedItem, pin_down, pinned_items, take_back
from .read_models import CompactionRow, SummaryRow
from .reading import read_back, stored_messages
from .recordings.transcripts import RecordedMessage
from .rendering.render import System
from .results import Appended, CompactionResult, StoredMessage
from .reverting import revert
from .time_travel.diffing import ContextDiff, diff
from .time_travel.forking import fork
from .time_travel.moments import At

Tools = Sequence[Mapping[str, Any]]


class Chat:
    """A conversation by its thread id. Cheap to make; holds no state of its own."""

    def __init__(
        self, core: Core, thread_id: str, runner: Runner, background: Background | None = None
    ) -> None:
        self._core = core
        self._runner = runner
        self._background = background or Background(core)
        self.thread_id = thread_id

    def append(self, message: object, *, key: Keys = None, recorded: bool = False) -> Appended:
        """Append a message, a list of them, or a message object of the SDK; durable on return.

        ``key``: an idempotency key (one for each message of a list): the same key is stored once.
        ``recorded``: history from elsewhere, kept as it came where a live message would be refused.

        Raises:
            InvalidMessage, UnknownToolCall: names the field; nothing is stored.
            LogError: nothing is stored.
        """
        stored = appending.append(self._core, self.thread_id, message, key=key, recorded=recorded)
        self._begin_if_due(stored)
        return stored

    def append_recorded(self, messages: Sequence[RecordedMessage]) -> Appended:
        """Append messages of a transcript; each is stored once, however often it is appended."""
        stored = appending.append_recorded(self._core, self.thread_id, messages)
        self._begin_if_due(stored)
        return stored

    def knows(self, message: RecordedMessage) -> bool:
        """Whether this message of a transcript is stored already."""
        key = appending.recorded_key(message)
        return key in self._core.log.versions_of_keys(self.thread_id, [key])

    def context(
        self,
        *,
        system: System = None,
        tools: Tools = (),
        model: str | None = None,
        at: At | None = None,
    ) -> Context:
        """The request to send next; compacts first when that is due.

        ``at``: as it was at this version of the conversation, or at this time (with a time zone),
        byte for byte; nothing is compacted.

        Raises:
            ContextWindowExceeded: what must be in it word for word does not fit.
            InvalidSetting: there is no such version, or the time has no time zone.
            LogError: the log cannot be read.
        """
        extras = Extras(system, tools, model)
        if at is not None:
            return context_at(self._core, self.thread_id, extras, at)
        ready = self._background.ready_context(self.thread_id, extras)
        if ready is None:
            return self._runner.run(self._background.settled_context(self.thread_id, extras))
        self._begin_if_due()
        return ready

    def compact(
        self,
        *,
        focus: str | None = None,
        force: bool = False,
        system: System = None,
        tools: Tools = (),
    ) -> CompactionResult:
        """Compact now. Nothing to do is success; a failure is in the result, and changes nothing.

        ``focus``: what the summary should keep above all. ``force``: try once more although several
        attempts in a row have failed, before the conversation has grown.
        """
        extras = Extras(system, tools)
        attempt = manual_attempt(self._core, self.thread_id, focus, extras, force=force)
        return self._runner.run(attempt.run())

    def revert_compaction(
        self, reason: str = "", *, system: System = None, tools: Tools = ()
    ) -> CompactionResult:
        """Undo the newest compaction: what it covered is in the context again, the summary before it
        is active again. Nothing to undo is success. A request that does not fit then is made smaller
        again by the next ``context``.
        """
        return revert(self._core, self.thread_id, reason, Extras(system, tools))

    def pin(self, what: int | str) -> str:
        """Keep the message at a position or address, or a text, word for word; returns the pin's id.

        A message in the context stays there; of a covered one, and of a text, the words stand in the
        ledger. Pinning the same twice changes nothing.

        Raises:
            UnknownMessage: there is no message at this position.
            InvalidMessage: there are no words to keep, or there are too many pins already.
        """
        return pin_down(self._core, self.thread_id, what)

    def unpin(self, pin_id: str) -> bool:
        """Take a pin back; False if there is no such pin."""
        return take_back(self._core, self.thread_id, pin_id)

    def pins(self) -> tuple[PinnedItem, ...]:
        """What is pinned, oldest first."""
        return pinned_items(self._core, self.thread_id)

    def fork(self, *, at: At | None = None, thread_id: str | None = None) -> "Chat":
        """Begin a new conversation as a copy of this one, as it is or as it was at ``at``.

        The two share nothing that changes: what is appended to, compacted in or erased from one does
        not touch the other; only erasing a copied message erases its copies as well. ``thread_id``:
        of the new conversation; a new one where none is given.

        Raises:
            ThreadExists: there is a conversation with this id already.
            InvalidSetting: there is no such version, or nothing had been said by then.
            ConversationGone: this conversation was erased.
        """
        work = to_the_end(fork, self._core, self.thread_id, at, thread_id)
        forked = self._runner.run(work)
        return Chat(self._core, forked, self._runner, self._background)

    def diff(self, before: At, after: At, *, model: str | None = None) -> ContextDiff:
        """What became of the request between two versions or times, in whichever order.

        Raises:
            InvalidSetting: there is no such version, or a time has no time zone.
        """
        return diff(self._core, self.thread_id, before, after, model)

    def export(
        self, format: ExportFormat = "jsonl", *, at: At | None = None
    ) -> Iterator[dict[str, Any]]:
        """The original messages, or everything that happened, as JSON objects.

        ``jsonl``: one for each message, with position, time and id. ``anthropic``: a single one with
        ``messages`` and, where one leads them, ``system``. ``events``: one for each event of the log.
        ``at``: as it was at this version or time. `refold import` reads the first two.

        Raises:
            ConversationGone: it was erased; only its ``events`` can be exported.
            InvalidSetting: there is no such version, or the time has no time zone.
        """
        return export(self._core, self.thread_id, format, at)

    def erase(self, where: Where, reason: str = "") -> ErasureReport:
        """Erase the message at a position or address, or several, for good, with everything that was
        copied or made from it: summaries, leaves, the ledger, pins, read models, forks.

        A marker stands in its place, so that tool rounds stay whole; the active summary is made anew
        from what remains. What is erased already stays so. ``reason`` is kept in the log. A label, a
        compaction's focus or a pinned text of your own goes with it if it quotes 12 characters or more
        of the message; keys and reasons stay. In all conversations that have it, or in none.

        Raises:
            UnknownMessage, InvalidAddress, ForeignAddress: there is no such message; nothing is erased.
            ConversationGone: the conversation was erased as a whole.
        """
        return self._runner.run(to_the_end(erase, self._core, self.thread_id, where, reason))

    def shared_with(self, where: Where | None = None) -> tuple[str, ...]:
        """The other conversations that erasing these messages reaches, by fork; None: all of this one.

        Raises:
            UnknownMessage, InvalidAddress, ForeignAddress: there is no such message.
            ConversationGone: the conversation was erased as a whole.
        """
        return shared_with(self._core, self.thread_id, where)

    def label(self, label: str, *, recorded: bool = False) -> None:
        """Give the conversation a name for people.

        ``recorded``: of a recording, which may be imported again: a label that an erasure withdrew, for
        it quoted a message, stays withdrawn.
        """
        decide = label_as_recorded if recorded else label_conversation
        self._core.log.transact(
            self.thread_id,
            lambda loaded: decide(loaded.present().state, label),
            at=self._core.clock(),
        )

    def messages(self, start: int = 0, stop: int | None = None) -> list[StoredMessage]:
        """The original messages at positions ``start`` up to but not including ``stop``.

        What was lost with a damaged log is left out: the positions tell.
        """
        return stored_messages(self._core, self.thread_id, start, stop)

    def read(self, where: str | int) -> StoredMessage:
        """The message at an address that a context shows, or at a position, word for word.

        Raises:
            ForeignAddress: the address is one of another conversation, which it names.
            InvalidAddress: it is no address at all.
            UnknownMessage: there is no such message.
        """
        return read_back(self._core, self.thread_id, where)

    def explain(self, start: int = 0, stop: int | None = None) -> tuple[MessageFate, ...]:
        """Why the model sees each message as it does, for positions ``start`` up to but not
        including ``stop``: full, condensed, offloaded, summarised, pinned …
        """
        return explain(self._core, self.thread_id, start, stop)

    def summaries(self) -> Sequence[SummaryRow]:
        """All summaries ever made, oldest first; at most one is active."""
        return self._core.views.summaries(self.thread_id)

    def compactions(self) -> Sequence[CompactionRow]:
        """All compaction attempts and how they ended, oldest first."""
        return self._core.views.compactions(self.thread_id)

    @property
    def version(self) -> int:
        """How many events the conversation has; 0 before the first."""
        return self._core.log.load(self.thread_id).state.version

    def _begin_if_due(self, stored: Appended | None = None) -> None:
        if self._background.falls_due(self.thread_id, stored):
            self._runner.loop.call_soon_threadsafe(self._background.begin, self.thread_id)


def manual_attempt(
    core: Core, thread_id: str, focus: str | None, extras: Extras, *, force: bool = False
) -> CompactionAttempt:
    """A compaction on demand."""
    core = core.for_model(extras.model)
    return CompactionAttempt(
        core,
        thread_id,
        core.budget(extras),
        trigger="manual",
        summariser=core.summariser,
        focus=focus.strip() or None if focus else None,
        force=force,
    )
