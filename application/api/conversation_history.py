"""What the read model of compactions cannot know: which of them wait to be written."""

from collections.abc import Iterator, Sequence
from typing import Any, Unpack

from refold.application.agent_tools.toolbox import Toolbox
from refold.application.conversation.owner_scope import OwnerScope, Scope, read_scope
from refold.application.conversation.owners import refuse_other_owner
from refold.application.conversation.stream_places import read_back, stored_messages
from refold.application.erasure.erasing import Where, shared_with
from refold.application.history.diff import ContextDiff, diff
from refold.application.history.expand import ExpandedSummary, expand
from refold.application.history.explain import MessageFate, explain
from refold.application.history.export import (
    USUAL_CHARACTERS,
    ExportFormat,
    TextPart,
    export,
    read_part,
)
from refold.application.history.moments import At, version_at
from refold.application.history.query import HistoryPage, HistoryQuery, query_history
from refold.application.ports.read_models import CompactionRow, NoteRow, SummaryRow, TopicSeen
from refold.application.recall.hits import Recalled
from refold.application.recall.recall_query import RecallOptions
from refold.application.recall.search import query_with_defaults, recall
from refold.application.rendering.request_parts import RequestPart, request_parts
from refold.application.runtime.core import Core
from refold.domain.value import replace

from .argument_checks import checked
from .context import Context
from .results import StoredMessage


def with_waiting(core: Core, rows: Sequence[CompactionRow]) -> Sequence[CompactionRow]:
    """Say of an attempt whose summary could not be written yet that it waits."""
    if not rows:
        return rows
    kept = core.unwritten.of(rows[-1].thread_id)
    waiting = {one.attempt_id: one.waiting for one in kept if one.waiting is not None}
    if not waiting:
        return rows
    return [
        replace(row, outcome="waiting", reason=told.reason, model_calls=told.model_calls)
        if row.outcome == "requested" and (told := waiting.get(row.attempt_id))
        else row
        for row in rows
    ]


@checked
class ConversationHistory:
    """Everything that can be asked of a conversation without changing it."""

    def __init__(self, core: Core, thread_id: str, owner: str | None = None) -> None:
        self._opened = core
        self.thread_id = thread_id
        self._owner = owner
        """Whose the conversation is said to be."""

    @property
    def _core(self) -> Core:
        core = self._opened.here()
        if self._owner is not None:
            refuse_other_owner(self.thread_id, core.log.load(self.thread_id).state, self._owner)
        return core

    def check_owner(self) -> None:
        """Check that the conversation is not somebody else's.

        Raises:
            OwnerConflict: it has another owner than the one that was given.
        """
        self._core  # noqa: B018

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

    def shared_with(self, where: Where | None = None) -> tuple[str, ...]:
        """The other conversations that erasing these messages reaches, by fork; None: all of this one.

        Raises:
            UnknownMessage, InvalidAddress, ForeignAddress: there is no such message.
            ConversationGone: the conversation was erased as a whole.
        """
        return shared_with(self._core, self.thread_id, where)

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

    def recall(self, query: str = "", **how: Unpack[RecallOptions]) -> Recalled:
        """What was said about something, best first: passages read from the log, each with where it stands,
        what became of its message, its neighbours, and why it was found. Every option is described in
        ``RecallOptions``. With ``topic=`` the question can be left out: the messages of that topic.
        ``scope="owner"`` looks into the owner's other conversations as well.

        What cannot be searched as asked (no embedder, a search program that hangs) is searched by
        words; ``notice`` says so. No conversation, or nothing found, is an answer without hits.

        Raises:
            InvalidSetting: an option cannot be; says what is allowed.
            ConversationGone: the conversation was erased as a whole.
        """
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
        """The original records with these ids, at positions ``start`` up to but not including ``stop``,
        that contain ``text``: in their order, page by page, each with what became of it.

        ``ids``: of messages; addresses and positions are understood too. ``limit``: 1 to 200.
        ``max_tokens``: of all texts, from 50; else as long as the settings say.

        Raises:
            InvalidSetting: names what cannot be, such as a ``stop`` that is not after ``start``.
            ForeignAddress, InvalidAddress: an id is an address of another conversation, or of none.
            ConversationGone: the conversation was erased as a whole.
        """
        wanted = HistoryQuery(ids, start, stop, text, limit, max_tokens)
        return query_history(self._core, self.thread_id, wanted)

    def expand(
        self, summary_id: str, start: int = 0, max_tokens: int | None = None, limit: int = 20
    ) -> ExpandedSummary:
        """What a summary stands for: its text, its leaf summaries, and the original messages from
        position ``start`` on, page by page.

        Raises:
            UnknownSummary: names the newest ones that there are.
            InvalidSetting: ``limit`` or ``max_tokens`` cannot be.
            ConversationGone: the conversation was erased as a whole.
        """
        return expand(self._core, self.thread_id, summary_id, start, max_tokens, limit)

    def read_part(
        self, where: str | int, start: int = 0, max_characters: int = USUAL_CHARACTERS
    ) -> TextPart:
        """What the message at an address or position says, from character ``start`` on, at most
        ``max_characters`` of it: for long ones, such as a tool's output that was offloaded.

        Raises:
            ForeignAddress, InvalidAddress, UnknownMessage: there is no such message here.
            InvalidSetting: ``start`` or ``max_characters`` cannot be.
        """
        return read_part(self._core, self.thread_id, where, start, max_characters)

    def tools(self, *, scope: Scope = "conversation", all_conversations: bool = False) -> Toolbox:
        """The tools with which a model asks this memory by itself: ``recall_memory``, ``query_history``,
        ``expand_summary``, ``read_offloaded``. ``.definitions`` for ``tools=`` of a request,
        ``.result_for(block)`` for each of its calls.

        ``scope``: how far they reach: this conversation alone; with ``owner``, what is of the same owner in
        all conversations; with ``all``, everything in the log, whoever it is of. ``all_conversations`` is
        another word for ``scope="all"``.

        Raises:
            InvalidSetting: there is no such scope.
        """
        self.check_owner()
        return self.toolbox("all" if all_conversations else scope)

    def toolbox(self, scope: Scope) -> Toolbox:
        """The tools; whose the conversation is, is checked with each call alone, for that reads the log.

        Raises:
            InvalidSetting: there is no such scope.
        """
        core = self._opened.here()
        reach = OwnerScope(core, read_scope(scope), self.thread_id, self._owner)
        return Toolbox(core, self.thread_id, reach)

    def explain(
        self, start: int = 0, stop: int | None = None, *, at: At | None = None
    ) -> tuple[MessageFate, ...]:
        """Why the model sees each message as it does, for positions ``start`` up to but not
        including ``stop``: full, condensed, offloaded, summarised, pinned … ``at``: as it was at this
        version, or at this time (with a time zone).

        Raises:
            InvalidSetting: there is no such version, or the time has no time zone.
        """
        core = self._core
        version = None if at is None else version_at(core, self.thread_id, at)
        return explain(core, self.thread_id, start, stop, version=version)

    def request_parts(self, context: Context) -> tuple[RequestPart, ...]:
        """Where the tokens of a context of this conversation go: system text, tools, summary, ledger, words,
        thinking, tool calls, tool results; the largest first.
        """
        return request_parts(self._core, context)

    def summaries(self) -> Sequence[SummaryRow]:
        """All summaries ever made, oldest first; at most one is active."""
        return self._core.views.summaries(self.thread_id)

    def compactions(self) -> Sequence[CompactionRow]:
        """All compaction attempts and how they ended, oldest first.

        ``waiting``: its summary is made, and the log could not be written; ``reason`` says why.
        """
        return with_waiting(self._core, self._core.views.compactions(self.thread_id))

    def topics(self) -> Sequence[TopicSeen]:
        """What the messages that the active summary stands for are about, the most important first, with
        how often and when each came up last. Labels: ``recall(topic=…)`` finds what was said.
        """
        return self._core.views.topics(self.thread_id)

    def notes(self) -> Sequence[NoteRow]:
        """The durable notes that were taken before messages left the context, oldest first."""
        return self._core.views.notes(self.thread_id)

    @property
    def owner(self) -> str | None:
        """Whose the conversation is, as the log says or as was given; None: nobody's."""
        return self._core.log.load(self.thread_id).state.owner or self._owner

    @property
    def version(self) -> int:
        """How many events the conversation has; 0 before the first."""
        return self._core.log.load(self.thread_id).state.version
