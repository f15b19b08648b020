"""Read-only methods of a conversation: history, recall, summaries and notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from refold.application.runtime.core import Core
from refold.domain.value import replace

from .argument_checks import checked
from .conversation_inspection import ConversationInspection
from .results import USUAL_CHARACTERS, Context, StoredMessage

if TYPE_CHECKING:
    from refold.application.agent_tools.memory_edits import EditProposal
    from refold.application.erasure.erasing import Where
    from refold.application.history.diff import ContextDiff
    from refold.application.history.expand import ExpandedSummary
    from refold.application.history.explain import MessageFate
    from refold.application.history.export import ExportFormat, TextPart
    from refold.application.history.fact_history import RulesCompared
    from refold.application.history.fate_history import FateChange
    from refold.application.history.moments import At
    from refold.application.history.query import HistoryPage
    from refold.application.history.value_history import ValueHistory
    from refold.application.ports.read_models import (
        CompactionRow,
        ConversationRow,
        NoteRow,
        SummaryRow,
        TopicSeen,
    )
    from refold.application.recall.hits import Recalled
    from refold.application.recall.recall_query import RecallOptions
    from refold.application.rendering.request_parts import RequestPart
    from refold.domain.facts.fact import Fact
    from refold.domain.facts.reading import Rules


def mark_waiting(core: Core, rows: Sequence[CompactionRow]) -> Sequence[CompactionRow]:
    """Mark the attempts whose summary could not be written yet as ``waiting``."""
    if not rows:
        return rows
    kept = core.unwritten.find(rows[-1].thread_id)
    waiting = {one.attempt_id: one.waiting for one in kept if one.waiting is not None}
    if not waiting:
        return rows
    return [
        replace(row, outcome="waiting", reason=result.reason, model_calls=result.model_calls)
        if row.outcome == "requested" and (result := waiting.get(row.attempt_id))
        else row
        for row in rows
    ]


@checked
class ConversationHistory(ConversationInspection):
    """Methods that read a conversation without changing it."""

    def __init__(self, core: Core, thread_id: str, owner: str | None = None) -> None:
        self._opened = core
        self.thread_id = thread_id
        self._owner = owner
        """Owner that the caller gave, or None."""

    @property
    def _core(self) -> Core:
        core = self._opened
        core.process.check()
        if self._owner is not None:
            core.log.load(self.thread_id).check_owner(self._owner)
        return core

    def check_owner(self) -> None:
        """Raise if the conversation belongs to another owner.

        Raises:
            OwnerConflict: the conversation has another owner than the given one.
        """
        self._core  # noqa: B018

    def diff(self, before: At, after: At, *, model: str | None = None) -> ContextDiff:
        """Compare the requests at two versions or times, in either order.

        Raises:
            InvalidSetting: there is no such version, or a time has no time zone.
        """
        from refold.application.history.diff import diff

        return diff(self._core, self.thread_id, before, after, model)

    def export(
        self, format: ExportFormat = "jsonl", *, at: At | None = None
    ) -> Iterator[dict[str, Any]]:
        """Return the original messages, or all events, as JSON objects.

        ``format``: ``jsonl`` gives one object for each message, with position, time and id. ``anthropic``
        gives a single object with ``messages`` and, if the conversation begins with one, ``system``.
        ``events`` gives one object for each event of the log. `refold import` reads the first two. ``at``:
        export the state at this version or time.

        Raises:
            ConversationGone: the conversation was erased; only its ``events`` can be exported.
            InvalidSetting: there is no such version, or the time has no time zone.
        """
        from refold.application.history.export import export

        return export(self._core, self.thread_id, format, at)

    def shared_with(self, where: Where | None = None) -> tuple[str, ...]:
        """Return the ids of forked conversations that erasing these messages would also change.

        ``where``: positions or addresses, or None for the whole conversation.

        Raises:
            UnknownMessage, InvalidAddress, ForeignAddress: there is no such message.
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.erasure.erasing import shared_with

        return shared_with(self._core, self.thread_id, where)

    def messages(self, start: int = 0, stop: int | None = None) -> list[StoredMessage]:
        """Return the original messages from position ``start`` up to, but not including, ``stop``.

        Messages that were lost in a damaged log are omitted; gaps in the positions show them.
        """
        from refold.application.conversation.stream_places import stored_messages

        return stored_messages(self._core, self.thread_id, start, stop)

    def iter_messages(self, start: int = 0, stop: int | None = None) -> Iterator[StoredMessage]:
        """Iterate over the same messages, with a few hundred of them in memory at a time.

        The range and the active summary are those at the call. A message that is erased in the meantime has
        its marker, and one of a conversation that is erased as a whole is omitted.
        """
        from refold.application.conversation.stream_places import iter_messages

        return iter_messages(self._core, self.thread_id, start, stop)

    def read(self, where: str | int) -> StoredMessage:
        """Return the message at a position, or at an address shown in a context, word for word.

        Raises:
            ForeignAddress: the address belongs to another conversation, which the error names.
            InvalidAddress: the text is not an address.
            UnknownMessage: there is no such message.
        """
        from refold.application.conversation.stream_places import read_back

        return read_back(self._core, self.thread_id, where)

    def recall(self, query: str = "", **how: Unpack[RecallOptions]) -> Recalled:
        """Search the conversation and return the best passages first.

        Each hit has its text from the log, its address, the state of its message, its neighbours and the
        reason for the match. ``RecallOptions`` describes every option. With ``topic=`` the query may be
        empty: the result is the messages of that topic. ``scope="owner"`` also searches the owner's other
        conversations.

        If the requested search is unavailable (no embedder, a search program that hangs), words are
        searched and ``notice`` says so. An unknown conversation or a query without matches returns a result
        without hits.

        Raises:
            InvalidSetting: an option is invalid; the message says what is allowed.
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.recall.search import query_with_defaults, recall

        parsed = query_with_defaults(self._core, query, how, self.thread_id)
        return recall(self._core, self.thread_id, parsed)

    def query(
        self,
        *,
        ids: Sequence[str | int] = (),
        start: int | None = None,
        stop: int | None = None,
        text: str | None = None,
        limit: int = 20,
        max_tokens: int | None = None,
    ) -> HistoryPage:
        """Return original records in order, page by page, each with the state of its message.

        A record must match all given filters: ``ids``, positions from ``start`` up to but not including
        ``stop``, and ``text`` contained in it. ``ids`` are message ids, addresses or positions. ``limit``:
        records of a page, 1 to 200. ``max_tokens``: tokens of all texts of a page, at least 50; the default
        is in the settings.

        Raises:
            InvalidSetting: an argument is invalid, such as a ``stop`` that is not after ``start``.
            ForeignAddress, InvalidAddress: an id is the address of another conversation, or not a valid
                address.
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.history.query import HistoryQuery, query_history

        wanted = HistoryQuery(ids, start, stop, text, limit, max_tokens)
        return query_history(self._core, self.thread_id, wanted)

    def expand(
        self, summary_id: str, start: int = 0, max_tokens: int | None = None, limit: int = 20
    ) -> ExpandedSummary:
        """Return a summary with its leaf summaries and the original messages that it covers.

        The messages begin at position ``start`` and are returned page by page.

        Raises:
            UnknownSummary: there is no such summary; the error names the newest ones.
            InvalidSetting: ``limit`` or ``max_tokens`` is invalid.
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.history.expand import expand

        return expand(self._core, self.thread_id, summary_id, start, max_tokens, limit)

    def read_part(
        self, where: str | int, start: int = 0, max_characters: int = USUAL_CHARACTERS
    ) -> TextPart:
        """Return part of the text of a message, for long ones such as an offloaded tool output.

        ``where``: address or position. ``start``: first character. ``max_characters``: maximum length of
        the part.

        Raises:
            ForeignAddress, InvalidAddress, UnknownMessage: there is no such message in this conversation.
            InvalidSetting: ``start`` or ``max_characters`` is invalid.
        """
        from refold.application.history.export import read_part

        return read_part(self._core, self.thread_id, where, start, max_characters)

    def explain(
        self, start: int = 0, stop: int | None = None, *, at: At | None = None
    ) -> tuple[MessageFate, ...]:
        """Explain how the model sees each message from position ``start`` up to, but not including,
        ``stop``.

        A message is full, condensed, offloaded, summarised, pinned and so on. ``at``: explain the state at
        this version, or at this time (with a time zone).

        Raises:
            InvalidSetting: there is no such version, or the time has no time zone.
        """
        from refold.application.history.explain import explain
        from refold.application.history.moments import version_at

        core = self._core
        version = None if at is None else version_at(core, self.thread_id, at)
        return explain(core, self.thread_id, start, stop, version=version)

    def why(self, value: str, at: At | None = None) -> ValueHistory:
        """Say why the next request has a value or not, such as a port, a path or a rule of the user.

        The answer has the messages with the value, its places in the request, the events after which it was no
        longer there, and what brings it back. Text is compared exactly; if no message has it so, case and spacing
        are ignored. Thinking is not searched.

        ``at``: take the request of this version, or of this time (with a time zone), instead of the next one.

        Raises:
            InvalidSetting: the value is blank or too long, there is no such version, or the time has no time
                zone.
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.history.value_history import why

        return why(self._core, self.thread_id, value, at)

    def fate_history(self, position: int) -> tuple[FateChange, ...]:
        """Return what happened to one message, oldest first: appended, offloaded, covered, reverted and so on.

        Raises:
            UnknownMessage: there is no message at this position.
            InvalidSetting: ``position`` is not an integer.
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.history.fate_history import fate_history

        return fate_history(self._core, self.thread_id, position)

    def facts(
        self, start: int = 0, stop: int | None = None, *, rules: str | Rules | None = None
    ) -> tuple[Fact, ...]:
        """Return the facts of the messages from position ``start`` up to, but not including, ``stop``.

        A fact is a text copied from a message: a request, rule, prohibition, preference or decision; a path,
        command, error, number, version, id, name or address; or how a tool call ended. They are read from the
        log by code, oldest first. ``rules``: version of the rules, by default the newest, or a function of
        messages with their positions. Negative numbers count from the end.

        Raises:
            InvalidSetting: there is no such version of the rules.
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.history.fact_history import facts_of

        return facts_of(self._core, self.thread_id, start, stop, rules)

    def compare_rules(self, rules: str | Rules | None = None) -> tuple[RulesCompared, ...]:
        """Compare what rules find with what each compaction recorded, oldest first.

        Recorded decisions never change: requests of the past keep their bytes, and better rules apply from the
        next compaction on. ``rules`` as in ``facts``.

        Raises:
            InvalidSetting: there is no such version of the rules.
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.history.fact_history import compare_rules

        return tuple(compare_rules(self._core, self.thread_id, rules))

    def request_parts(self, context: Context) -> tuple[RequestPart, ...]:
        """Return the tokens of a context by part, the largest first.

        The parts are system text, tools, summary, ledger, words, thinking, tool calls and tool results.
        """
        from refold.application.rendering.request_parts import request_parts

        return request_parts(self._core, context)

    def row(self) -> ConversationRow | None:
        """Return the row of this conversation in the list, or None if it has no events."""
        return self._core.views.conversation(self.thread_id)

    def summaries(self) -> Sequence[SummaryRow]:
        """Return all summaries ever made, oldest first; at most one is active."""
        return self._core.views.summaries(self.thread_id)

    def compactions(self) -> Sequence[CompactionRow]:
        """Return all compaction attempts with their outcomes, oldest first.

        Outcome ``waiting``: the summary is ready, but the log could not be written; ``reason`` says why.
        """
        return mark_waiting(self._core, self._core.views.compactions(self.thread_id))

    def topics(self) -> Sequence[TopicSeen]:
        """Return the topics of the messages that the active summary covers, the most important first.

        Each has its number of messages and the newest of them. Topics are labels: ``recall(topic=…)`` finds
        their messages.
        """
        return self._core.views.topics(self.thread_id)

    def notes(self) -> Sequence[NoteRow]:
        """Return the durable notes, oldest first.

        They were taken before messages left the context, or a model asked for them.
        """
        return self._core.views.notes(self.thread_id)

    def proposals(self) -> tuple[EditProposal, ...]:
        """Return the edits that a model asked for and that wait for a decision, oldest first.

        ``conversation.allow`` carries one out, ``conversation.refuse`` closes it. Their texts were written by
        a model, which may have been misled by what it read.
        """
        from refold.application.agent_tools.memory_edits import list_proposals

        return list_proposals(self._core, self.thread_id)

    @property
    def owner(self) -> str | None:
        """Owner from the log, else the given owner, or None if there is no owner."""
        return self._core.log.load(self.thread_id).state.owner or self._owner

    @property
    def version(self) -> int:
        """Number of events in the conversation; 0 before the first."""
        return self._core.log.load(self.thread_id).state.version
