"""The handle of one conversation: append, context, compact, pin, fork and erase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from refold.application.compaction.background import Background
from refold.application.compaction.next_request import context_at
from refold.application.conversation import appending
from refold.application.conversation.turn_lock import USUAL_WAIT
from refold.application.rendering.render import System
from refold.application.runtime.core import Core, Extras
from refold.application.runtime.foreign_code import is_given_up
from refold.domain.messages import Author

from .argument_checks import checked, read_owner
from .blocking import Runner
from .conversation_history import ConversationHistory
from .results import Appended, CompactionResult, Context

if TYPE_CHECKING:
    from refold.application.agent_tools.definitions import Tools
    from refold.application.agent_tools.memory_edits import AllowedEdit
    from refold.application.agent_tools.tool_scope import EditMode
    from refold.application.agent_tools.toolbox import Toolbox
    from refold.application.compaction.pinning import PinnedItem
    from refold.application.conversation.owner_scope import Scope
    from refold.application.conversation.parsing import Keys
    from refold.application.conversation.transcripts import RecordedMessage
    from refold.application.conversation.turn_lock import ConversationTurn
    from refold.application.erasure.erasing import Where
    from refold.application.erasure.erasure_report import ErasureReport
    from refold.application.history.moments import At


@checked
class ConversationMemory(ConversationHistory):
    """A conversation, identified by its thread id. Cheap to create; has no state of its own."""

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
        """Append a message, a list of messages, or a message object of the SDK. It is durable on return.

        ``key``: idempotency key, one for each message of a list. A known key stores nothing if role,
        content, author and ``name`` are the same as before; an author or ``name`` that only one of the
        two messages has, and other fields, may differ.
        ``expected_version``: version of a context or an append; refused if messages were appended since.
        ``recorded``: accept history from elsewhere unchanged where a live message would be refused.
        ``author``: writer of user messages: "person", "program" (a loaded skill, a reminder) or "tool". It
        is refused if there is no user message. Requests and rules are extracted from a person's words only;
        those from messages without an author are marked.
        ``owner``: owner of the messages, for erasure, if it is not the owner of the conversation.

        Raises:
            InvalidMessage, UnknownToolCall: a message is invalid; names the field. Nothing is stored.
            KeyReused: the key belongs to a different message. Nothing is stored.
            VersionConflict: messages were appended since. Nothing is stored. A known key never conflicts.
            InvalidOwner, OwnerConflict: the owner is invalid or not that of the conversation.
            LogError: the log cannot be written. Nothing is stored.
        """
        self._opened.process.check()
        stored = appending.append(
            self._opened,
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

    def append_recorded(
        self, messages: Sequence[RecordedMessage], *, expected_version: int | None = None
    ) -> Appended:
        """Append messages of a transcript; messages that are stored already are skipped.

        ``expected_version``: as for ``append``.
        """
        self._opened.process.check()
        stored = appending.append_recorded(
            self._opened, self.thread_id, messages, self._owner, expected_version
        )
        self._begin_if_due(stored)
        return stored

    def knows(self, message: RecordedMessage) -> bool:
        """Return whether this message of a transcript is stored already."""
        return bool(self.select_known([message]))

    def select_known(self, messages: Sequence[RecordedMessage]) -> list[RecordedMessage]:
        """Return those of these messages of a transcript that are stored already, in one look-up."""
        keys = [appending.recorded_key(message) for message in messages]
        known = self._core.log.versions_of_keys(self.thread_id, keys)
        return [one for one, key in zip(messages, keys, strict=True) if key in known]

    def context(
        self,
        *,
        system: System = None,
        tools: Tools = (),
        model: str | None = None,
        at: At | None = None,
        position: int | None = None,
    ) -> Context:
        """Return the request to send next; compact first if a compaction is due.

        ``tools``: tool definitions, or the result of ``conversation.tools()``.
        ``at``: return the request as it was sent at this version of the conversation, or at this time (with
        a time zone), byte for byte. Nothing is compacted. System text, tools and model default to the
        recorded ones.
        ``position``: like ``at``, right after the message at this position was appended.

        Raises:
            ContextWindowExceeded: content that must be included word for word does not fit.
            InvalidMessage: a tool definition is invalid; names it.
            InvalidSetting: there is no such version, or the time has no time zone.
            UnknownMessage: there is no message at this position.
            LogError: the log cannot be read.
        """
        extras = _extras(system, tools, model)
        ready = self._context_without_model(extras, at, position)
        if ready is None:
            return self._runner.run(self._background.make_context(self.thread_id, extras))
        return ready

    def _context_without_model(
        self, extras: Extras, at: At | None = None, position: int | None = None
    ) -> Context | None:
        """Return the context, or None if a compaction must run first."""
        core = self._core
        if position is not None:
            from refold.application.history.moments import choose_moment

            at = choose_moment(core, self.thread_id, at, position)
        if at is not None:
            return context_at(core, self.thread_id, extras, at)
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
        """Compact now.

        If there is nothing to do, the call succeeds. A failure is reported in the result and changes
        nothing. Content that still does not fit is shortened, as in ``context``.

        ``focus``: subject that the summary should preserve above all. A new focus summarises the same
        messages again if there is nothing else to do.
        ``force``: try again although several attempts in a row have failed and the conversation has not
        grown since.
        ``target``: tokens of the whole request to aim at. The default is the target of automatic
        compactions.
        ``keep_last``: number of newest messages that are never covered.
        ``model``: model to use for this summary, if a model writes it.
        ``all``: cover all messages but the last ``keep_last``. This is the default if the request is
        already below the target.

        Raises:
            InvalidSetting: an option is invalid; names it.
            InvalidMessage: a tool definition is invalid; names it.
        """
        from refold.application.compaction.on_demand import Demand, compact_on_demand

        demand = Demand(focus, force, target, keep_last, model, all)
        extras = _extras(system, tools)
        work = compact_on_demand(self._core, self.thread_id, demand, extras)
        return self._runner.run(work)

    def revert_compaction(
        self, reason: str = "", *, system: System = None, tools: Tools = ()
    ) -> CompactionResult:
        """Revert the newest compaction.

        The covered messages return to the context, and the summary before it becomes active again. If there
        is nothing to revert, the call succeeds. If the request no longer fits, the next ``context``
        shortens it.
        """
        from refold.application.compaction.on_demand import revert

        return revert(self._core, self.thread_id, reason, _extras(system, tools))

    def turn(self, wait: float = USUAL_WAIT) -> ConversationTurn:
        """Return a lock that gives one caller at a time the turn in this conversation.

        Use ``with conversation.turn():`` around everything from ``append`` of the user's message to
        ``append`` of the answer. Other callers wait, also in other processes of this machine; processes get
        the turn in the order of their requests. A turn ends with its block, or with its process. It is
        advisory: an append outside of a turn is not refused, and readers never wait.

        ``wait``: seconds to wait for the turn.

        Raises:
            TurnTaken: other callers held the turn longer than ``wait``; raised on entering.
            InvalidSetting: ``wait`` is not a number of seconds.
        """
        from refold.application.conversation.turn_lock import ConversationTurn

        return ConversationTurn(self._core.turns, self.thread_id, wait)

    def pin(self, what: int | str) -> str:
        """Pin a text, or the message at a position or address, word for word. Return the id of the pin.

        A message in the context stays there. A covered message or a text is kept in the ledger. Pinning the
        same content twice changes nothing.

        Raises:
            UnknownMessage: there is no message at this position.
            ForeignAddress: the address is that of a message of another conversation.
            InvalidMessage: there is no text to keep, or there are too many pins.
        """
        from refold.application.compaction.pinning import add_pin

        return add_pin(self._core, self.thread_id, what)

    def unpin(self, pin_id: str) -> bool:
        """Remove a pin. Return False if there is no such pin."""
        from refold.application.compaction.pinning import remove_pin

        return remove_pin(self._core, self.thread_id, pin_id)

    def pins(self) -> tuple[PinnedItem, ...]:
        """Return all pins, oldest first."""
        from refold.application.compaction.pinning import list_pins

        return list_pins(self._core, self.thread_id)

    def tools(
        self,
        *,
        scope: Scope = "conversation",
        all_conversations: bool = False,
        edits: EditMode | None = None,
        author: str = "model",
    ) -> Toolbox:
        """Return the tools with which a model searches this conversation, and edits it if ``edits`` is given.

        The tools are ``recall_memory``, ``query_history``, ``expand_summary`` and ``read_offloaded``. Pass
        ``.definitions`` as ``tools=`` of a request, and answer each call with ``.result_for(block)``.

        ``scope``: ``conversation`` reaches this conversation only, ``owner`` the content of the same owner
        in all conversations, ``all`` the whole log regardless of owner. ``all_conversations=True`` is the
        same as ``scope="all"``.
        ``edits``: add ``remember``, ``pin`` and ``forget``, which edit this conversation only. With
        ``propose`` each call waits in ``conversation.proposals()``; with ``allow`` it is carried out at once.
        ``author``: name of the agent, recorded with each edit.

        Raises:
            InvalidSetting: there is no such scope or kind of edits, or the author is blank.
        """
        self.check_owner()
        return self.toolbox("all" if all_conversations else scope, edits, author)

    def toolbox(
        self, scope: Scope, edits: EditMode | None = None, author: str = "model"
    ) -> Toolbox:
        """Return the tools without reading the log; each call checks the owner itself.

        Raises:
            InvalidSetting: there is no such scope or kind of edits, or the author is blank.
        """
        from refold.application.agent_tools.tool_scope import edit_rights
        from refold.application.agent_tools.toolbox import Toolbox
        from refold.application.conversation.owner_scope import OwnerScope, read_scope

        self._opened.process.check()
        reach = OwnerScope(self._opened, read_scope(scope), self.thread_id, self._owner)
        rights = edit_rights(edits, author, self._runner.finish)
        return Toolbox(self._opened, self.thread_id, reach, edits=rights)

    def allow(self, edit_id: str, *, by: str = "program") -> AllowedEdit:
        """Carry out an edit that a model proposed. Allowing it again changes nothing.

        ``by``: who decided, recorded in the log.

        Raises:
            UnknownEdit: no edit of this id was proposed.
            EditClosed: it was refused, or a message that it was about was erased.
            InvalidMessage: there are too many pins; the proposal still waits.
            InvalidSetting: ``by`` is blank.
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.agent_tools.memory_edits import allow_edit
        from refold.domain.editing import read_name

        by = read_name(by, "by")
        return self._runner.finish(allow_edit, self._core, self.thread_id, edit_id, by)

    def refuse(self, edit_id: str, reason: str = "", *, by: str = "program") -> bool:
        """Refuse an edit that a model proposed. Return False if it was refused before.

        ``reason``: text to store in the log. ``by``: who decided, recorded in the log.

        Raises:
            UnknownEdit: no edit of this id was proposed.
            EditClosed: it was allowed.
            InvalidSetting: ``by`` is blank.
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.agent_tools.memory_edits import refuse_edit
        from refold.domain.editing import read_name

        return refuse_edit(self._core, self.thread_id, edit_id, read_name(by, "by"), reason)

    def withdraw_note(self, edit_id: str) -> bool:
        """Withdraw a note that a model asked for, by the id of its edit. Return False if no note has it.

        It is no longer listed or quoted. Its text stays in the log until a message that it quotes, or the
        conversation, is erased.

        Raises:
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.agent_tools.memory_edits import take_note_back

        return take_note_back(self._core, self.thread_id, edit_id)

    def fork(
        self, *, at: At | None = None, position: int | None = None, thread_id: str | None = None
    ) -> ConversationMemory:
        """Create a conversation as a copy of this one: now, at a version or time, or after a message.

        Later changes to one do not affect the other, except that erasing a copied message also erases its
        copies.

        ``at``: version or time to copy. ``position``: copy up to and including the message at this
        position. ``thread_id``: id of the new conversation; by default a generated one.

        Raises:
            ThreadExists, InvalidThreadId: a conversation with this id exists already, or it is no valid id.
            InvalidSetting: there is no such version, or the conversation had no messages at that time.
            UnknownMessage: there is no message at this position.
            ConversationGone: this conversation was erased.
        """
        from refold.application.history.fork import fork
        from refold.application.history.moments import choose_moment

        core = self._core
        moment = choose_moment(core, self.thread_id, at, position)
        forked = self._runner.finish(fork, core, self.thread_id, moment, thread_id)
        return ConversationMemory(core, forked, self._runner, self._background)

    def erase(self, where: Where, reason: str = "") -> ErasureReport:
        """Erase one or several messages for good, with everything that was copied or derived from them.

        This includes summaries, leaf summaries, the ledger, pins, read models and forks; all conversations
        that have the message are changed, or none. A marker replaces each message, so that tool rounds stay
        complete, and the active summary is rebuilt from the remaining messages. Erasing twice changes
        nothing. A label, a compaction's focus or a pinned text is erased as well if it quotes 12 characters
        or more of the message; keys and reasons stay.

        ``where``: position or address, or several of them. ``reason``: text to store in the log.

        Raises:
            UnknownMessage, InvalidAddress, ForeignAddress: there is no such message; nothing is erased.
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.erasure.erasing import erase

        return self._runner.finish(erase, self._core, self.thread_id, where, reason)

    def label(self, label: str, *, recorded: bool = False) -> None:
        """Give the conversation a label for people.

        ``recorded``: the label comes from a recording, which may be imported again. A blank label is then
        ignored, and a label that was erased because it quoted a message stays erased.

        Raises:
            InvalidSetting: the label is blank.
        """
        from refold.domain.pinning import label_conversation, label_from_recording

        decide = label_from_recording if recorded else label_conversation
        self._core.log.transact(
            self.thread_id,
            lambda loaded: decide(loaded.present().state, label),
            at=self._core.clock(),
        )

    def _begin_if_due(self, stored: Appended | None = None) -> None:
        if not self._opened.settings.background or is_given_up():
            return
        if self._background.falls_due(self.thread_id, stored):
            self._runner.begin(self._background.begin, self.thread_id)


def _extras(system: System, tools: Tools, model: str | None = None) -> Extras:
    if tools == ():
        return Extras(system, (), model)
    from refold.application.agent_tools.definitions import definitions_of

    return Extras(system, definitions_of(tools), model)
