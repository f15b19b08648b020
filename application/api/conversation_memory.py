"""One conversation, as agents use it: append, context, compact, and looking back."""

from collections.abc import Sequence

from refold.application.agent_tools.definitions import Tools, definitions_of
from refold.application.compaction.background import Background
from refold.application.compaction.next_request import context_at
from refold.application.compaction.on_demand import Demand, compact_on_demand, revert
from refold.application.compaction.pinning import PinnedItem, pin_down, pinned_items, take_back
from refold.application.conversation import appending
from refold.application.conversation.appending import Keys
from refold.application.conversation.owners import read_owner
from refold.application.conversation.transcripts import RecordedMessage
from refold.application.conversation.turn_lock import USUAL_WAIT, ConversationTurn
from refold.application.erasure.erasing import Where, erase
from refold.application.erasure.erasure_report import ErasureReport
from refold.application.history.fork import fork
from refold.application.history.moments import At, choose_moment
from refold.application.rendering.render import System
from refold.application.runtime.core import Core, Extras
from refold.application.runtime.foreign_code import is_given_up
from refold.domain.labelling import label_as_recorded, label_conversation
from refold.domain.messages import Author

from .argument_checks import checked
from .blocking import Runner
from .context import Context
from .conversation_history import ConversationHistory
from .results import Appended, CompactionResult


@checked
class ConversationMemory(ConversationHistory):
    """A conversation by its thread id. Cheap to make; holds no state of its own."""

    def __init__(
        self,
        core: Core,
        thread_id: str,
        runner: Runner,
        background: Background | None = None,
        owner: str | None = None,
    ) -> None:
        super().__init__(core, thread_id, owner)
        self._runner = runner
        self._background = background or Background(core)

    def __repr__(self) -> str:
        return f"<ConversationMemory {self.thread_id!r}>"

    def append(
        self,
        message: object,
        *,
        key: Keys = None,
        recorded: bool = False,
        author: Author | None = None,
        expected_version: int | None = None,
        owner: str | None = None,
    ) -> Appended:
        """Append a message, a list of them, or a message object of the SDK; durable on return.

        ``key``: an idempotency key (one for each message of a list): the same key is stored once, if role,
        content, author and ``name`` are the same; other fields are not compared, the first ones stay.
        ``expected_version``: of a context or an append: refused if somebody else has appended since.
        ``recorded``: history from elsewhere, kept as it came where a live message would be refused.
        ``author``: who wrote the messages of the role user (without any, it is refused): "person", "program"
        (a loaded skill, a reminder) or "tool". Requests and rules are taken from a person's words only; of
        messages whose author is unknown they say so. ``owner``: whose the messages are, if not the
        conversation's owner's: they stay in this conversation, and are erased with the owner named here.

        Raises:
            InvalidMessage, UnknownToolCall: names the field; nothing is stored.
            KeyReused: the key stands for another message already; nothing is stored.
            VersionConflict: somebody else has appended; nothing is stored. A known key is no conflict.
            InvalidOwner, OwnerConflict: the owner cannot be, or is not that of the conversation.
            LogError: nothing is stored.
        """
        stored = appending.append(
            self._opened.here(),
            self.thread_id,
            message,
            key=key,
            recorded=recorded,
            author=author,
            expected_version=expected_version,
            owners=appending.Owners(self._owner, read_owner(owner)),
        )
        self._begin_if_due(stored)
        return stored

    def append_recorded(self, messages: Sequence[RecordedMessage]) -> Appended:
        """Append messages of a transcript; each is stored once, however often it is appended."""
        core = self._opened.here()
        stored = appending.append_recorded(core, self.thread_id, messages, self._owner)
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
        position: int | None = None,
    ) -> Context:
        """The request to send next; compacts first when that is due.

        ``tools``: their definitions, or ``conversation.tools()`` as it is. ``at``: as it was sent at this version of
        the conversation, or at this time (with a time zone), byte for byte; nothing is compacted. System
        text, tools and model are then the recorded ones, where they are not given. ``position``: the same,
        right after the message at this position was appended.

        Raises:
            ContextWindowExceeded: what must be in it word for word does not fit.
            InvalidMessage: one of the ``tools`` is none; names it.
            InvalidSetting: there is no such version, or the time has no time zone.
            UnknownMessage: there is no message at this position.
            LogError: the log cannot be read.
        """
        extras = Extras(system, definitions_of(tools), model)
        ready = self.context_without_model(extras, at, position)
        if ready is None:
            return self._runner.run(self._background.settled_context(self.thread_id, extras))
        return ready

    def context_without_model(
        self, extras: Extras, at: At | None = None, position: int | None = None
    ) -> Context | None:
        """Return the context for ``context``, or None if a compaction must come first."""
        core = self._core
        moment = choose_moment(core, self.thread_id, at, position)
        if moment is not None:
            return context_at(core, self.thread_id, extras, moment)
        ready = self._background.ready_context(self.thread_id, extras)
        if ready is not None:
            self._begin_if_due()
        return ready

    def compact(
        self,
        *,
        focus: str | None = None,
        force: bool = False,
        target: int | None = None,
        keep_last: int | None = None,
        model: str | None = None,
        all: bool = False,
        system: System = None,
        tools: Tools = (),
    ) -> CompactionResult:
        """Compact now. Nothing to do is success; a failure is in the result, and changes nothing. What does
        not fit all the same is shown shorter, as ``context`` would show it.

        ``focus``: what the summary should keep above all; a new one summarises the same part again where
        nothing else is to do. ``force``: try once more although several attempts in a row have failed,
        before the conversation has grown. ``target``: tokens of the whole request to aim at, without it
        the size that an automatic compaction aims at. ``keep_last``: messages that stay in any case.
        ``model``: the model to ask for this summary, where a model writes it. ``all``: cover all but the
        ``keep_last`` messages, as is done in any case where the request is below the target already.

        Raises:
            InvalidSetting: an option cannot be; names it.
        """
        demand = Demand(focus, force, target, keep_last, model, all)
        extras = Extras(system, definitions_of(tools))
        work = compact_on_demand(self._core, self.thread_id, demand, extras)
        return self._runner.run(work)

    def revert_compaction(
        self, reason: str = "", *, system: System = None, tools: Tools = ()
    ) -> CompactionResult:
        """Undo the newest compaction: what it covered is in the context again, the summary before it
        is active again. Nothing to undo is success. A request that does not fit then is made smaller
        again by the next ``context``.
        """
        return revert(self._core, self.thread_id, reason, Extras(system, definitions_of(tools)))

    def turn(self, wait: float = USUAL_WAIT) -> ConversationTurn:
        """Be the only one who works on this conversation: ``with conversation.turn():`` around everything from
        ``append`` of what the user said to ``append`` of the answer.

        Who comes later waits until it is their turn, in other processes of this machine as well; of those,
        whoever came first is next. A turn ends with its block, or with its process. It is a promise
        between those who take turns: an append outside of one is not refused, and nobody who reads waits.
        ``wait``: seconds.

        Raises:
            TurnTaken: on entering; others had it for longer than that.
            InvalidSetting: ``wait`` is no number of seconds.
        """
        return ConversationTurn(self._core.turns, self.thread_id, wait)

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

    def fork(
        self, *, at: At | None = None, position: int | None = None, thread_id: str | None = None
    ) -> "ConversationMemory":
        """Begin a new conversation as a copy of this one, as it is or as it was at ``at``, a version or a
        time, or right after the message at ``position``.

        The two share nothing that changes: what is appended to, compacted in or erased from one does
        not touch the other; only erasing a copied message erases its copies as well. ``thread_id``:
        of the new conversation; a new one where none is given.

        Raises:
            ThreadExists: there is a conversation with this id already.
            InvalidSetting: there is no such version, or nothing had been said by then.
            UnknownMessage: there is no message at this position.
            ConversationGone: this conversation was erased.
        """
        core = self._core
        moment = choose_moment(core, self.thread_id, at, position)
        forked = self._runner.finish(fork, core, self.thread_id, moment, thread_id)
        return ConversationMemory(core, forked, self._runner, self._background)

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
        return self._runner.finish(erase, self._core, self.thread_id, where, reason)

    def label(self, label: str, *, recorded: bool = False) -> None:
        """Give the conversation a name for people.

        ``recorded``: of a recording, which may be imported again: a label that an erasure withdrew, for
        it quoted a message, stays withdrawn, and a blank one is none.

        Raises:
            InvalidSetting: the label is blank.
        """
        decide = label_as_recorded if recorded else label_conversation
        self._core.log.transact(
            self.thread_id,
            lambda loaded: decide(loaded.present().state, label),
            at=self._core.clock(),
        )

    def _begin_if_due(self, stored: Appended | None = None) -> None:
        if not is_given_up() and self._background.falls_due(self.thread_id, stored):
            self._runner.begin(self._background.begin, self.thread_id)
