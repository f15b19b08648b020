"""The memory of one log: its conversations, notes, search, erasure and maintenance."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from refold.application.compaction.background import Background
from refold.application.compaction.unwritten import write_all_waiting
from refold.application.conversation.parsing import read_thread_id
from refold.application.frames.request_frames import record_waiting
from refold.application.runtime.core import Core
from refold.domain.errors import InvalidSetting
from refold.domain.value import replace

from .argument_checks import checked, read_owner, require_owner
from .blocking import Runner, WorkEnded
from .conversation_memory import ConversationMemory
from .memory_lists import MemoryLists

if TYPE_CHECKING:
    from refold.application.agent_tools.tool_scope import EditMode
    from refold.application.agent_tools.toolbox import Toolbox
    from refold.application.conversation.owner_scope import OwnerScope, Scope
    from refold.application.erasure.erasure_report import ErasureReport
    from refold.application.history.expand import ExpandedSummary
    from refold.application.maintenance.maintenance_results import (
        AnchorState,
        BackedUp,
        Compressed,
        ErasedPlace,
        Salvaged,
        Sizes,
    )
    from refold.application.maintenance.verifying import Replayed, Verification
    from refold.application.recall.embedding import EmbeddingProgress
    from refold.application.recall.hits import Recalled
    from refold.application.recall.recall_query import RecallOptions

    from .followed_events import Fold, ForeignProjection, Forget
    from .followers import Follower


@checked
class Memory(MemoryLists):
    """The conversations of one log. A context manager; ``close`` releases files and threads."""

    def __init__(
        self, core: Core, runner: Runner | None = None, background: Background | None = None
    ) -> None:
        super().__init__(core)
        self._runner = runner or Runner()
        self._background = background or Background(core)

    def __repr__(self) -> str:
        return f"<Memory {self._opened.process.what}>"

    def conversation(self, thread_id: str, *, owner: str | None = None) -> ConversationMemory:
        """Return the conversation with this id; it need not exist yet.

        ``owner``: owner of the conversation, such as the id of a user. The next message stores it in the
        log; it never changes. Content of the owner's other conversations can be used here (``memories``,
        ``recall(scope="owner")``). A conversation without an owner sees only itself. If the conversation
        has another owner, every operation raises ``OwnerConflict``.

        Raises:
            InvalidThreadId: the id is missing or blank.
            InvalidOwner: the owner is blank or invalid.
        """
        thread_id, owner = read_thread_id(thread_id), read_owner(owner)
        return ConversationMemory(self._core, thread_id, self._runner, self._background, owner)

    def search(
        self, query: str = "", *, owner: str | None = None, **how: Unpack[RecallOptions]
    ) -> Recalled:
        """Search all conversations and return the best passages first; each hit names its conversation.

        Works like ``ConversationMemory.recall``. ``in_context`` of a hit refers to its own conversation.
        ``owner``: search the content of this owner. By default only content without an owner is searched;
        ``scope="all"`` searches everything regardless of owner.

        Raises:
            InvalidSetting: an option is invalid; the message says what is allowed.
            InvalidOwner: the owner is blank or invalid.
        """
        from refold.application.recall.search import query_with_defaults, search

        parsed, owner = query_with_defaults(self._core, query, how), read_owner(owner)
        return search(self._core, parsed, self._scope(parsed.scope, owner).visible())

    def _scope(self, scope: Scope | None, owner: str | None) -> OwnerScope:
        """Return the scope of a caller that belongs to no conversation.

        Raises:
            InvalidSetting: the scope needs a conversation or an owner that was not given.
        """
        from refold.application.conversation.owner_scope import OwnerScope

        if scope == "conversation" or (scope == "owner" and owner is None):
            raise InvalidSetting(
                f"scope={scope!r} needs {'an owner' if scope == 'owner' else 'a conversation'}: pass "
                "owner=, or use a conversation",
                setting="scope",
                value=scope,
            )
        if scope is None and owner is not None:
            scope = "owner"
        return OwnerScope(self._core, scope, owner=owner)

    def expand(
        self, summary_id: str, start: int = 0, max_tokens: int | None = None, limit: int = 20
    ) -> ExpandedSummary:
        """Return a summary of any conversation with its leaf summaries and original messages.

        Works like ``ConversationMemory.expand``. If forks share the summary, the result is that of their
        source.

        Raises:
            UnknownSummary: there is no such summary; the error names the newest ones.
            InvalidSetting: ``limit`` or ``max_tokens`` is invalid.
        """
        from refold.application.history.expand import expand_anywhere

        return expand_anywhere(self._core, summary_id, start, max_tokens, limit)

    def tools(
        self,
        thread_id: str | None = None,
        *,
        owner: str | None = None,
        scope: Scope | None = None,
        edits: EditMode | None = None,
        author: str = "model",
    ) -> Toolbox:
        """Return tools for a model that is not the agent of a conversation, such as an MCP client.

        With ``thread_id`` the tools reach that conversation only, with ``owner`` the content of that owner,
        and with neither the content that has no owner. With both, calls are refused if the conversation has
        another owner. ``scope="all"`` reaches the whole log regardless of owner.

        The agent of a conversation should use ``ConversationMemory.tools``, which omits what its context
        already has. ``edits`` and ``author`` are explained there; edits need a ``thread_id``.

        Raises:
            InvalidThreadId, InvalidOwner: the id or owner is blank.
            InvalidSetting: there is no such scope, or it needs an owner; or edits lack a conversation.
        """
        from refold.application.agent_tools.tool_scope import edit_rights
        from refold.application.agent_tools.toolbox import Toolbox
        from refold.application.conversation.owner_scope import OwnerScope, read_scope

        rights = edit_rights(edits, author, self._runner.finish)
        scope, owner = None if scope is None else read_scope(scope), read_owner(owner)
        if thread_id is None:
            if rights is not None:
                raise InvalidSetting(
                    "edits need a conversation: give its id as thread_id",
                    setting="edits",
                    value=edits,
                )
            return Toolbox(self._core, None, self._scope(scope, owner), sees=False)
        home = read_thread_id(thread_id)
        reach = OwnerScope(self._core, scope or "conversation", home, owner)
        return Toolbox(self._core, home, reach, sees=False, edits=rights)

    def follow(
        self,
        name: str,
        fold: Fold | ForeignProjection,
        *,
        into: str | Path | None = None,
        version: int = 1,
        forget: Forget | None = None,
    ) -> Follower:
        """Return a follower: tables of your own that a function fills from the events of all conversations.

        Call this once and keep the follower. ``update()`` calls ``fold(tables, event)`` for each new event, in
        the order of the log. ``into``: path of an SQLite file, or address of a PostgreSQL database, where the
        tables get the schema ``name``. ``tables`` is a ``sqlite_utils.Database`` or a ``psycopg.Connection``. A
        projection of ``eventsourcing`` can be given instead of a function; it has a view of its own, so leave
        ``into`` out.

        ``version``: raise it when the function changes; the tables are then filled again. ``forget(tables, thread_id)``
        removes the rows of a conversation. After an erasure it is called, and what is left of that conversation is
        folded again; without it, all tables are filled again.

        Raises:
            InvalidSetting: an argument is invalid.
        """
        from .followers import follow

        return follow(self._core, name, fold, into, version, forget)

    def index(self) -> int:
        """Update the recall index and return the number of its passages.

        Calling this is optional: each search first indexes new messages.
        """
        return self._core.recall.index.find(()).total

    def embed(self, wait: float | None = None) -> EmbeddingProgress | None:
        """Compute all missing vectors and wait for them. Return None if no embedder is configured.

        Calling this is optional: it runs in the background after the first search. ``wait``: maximum number
        of seconds, or None to wait as long as necessary. A failure is reported in the result, not raised.
        """
        embedding = self._core.recall.embedding
        return None if embedding is None else embedding.finish(wait)

    def embedding(self) -> EmbeddingProgress | None:
        """Return the progress of the vectors, or None if no embedder is configured."""
        embedding = self._core.recall.embedding
        return None if embedding is None else embedding.progress()

    def erase_conversation(self, thread_id: str, reason: str = "") -> ErasureReport:
        """Erase a whole conversation for good; only the number and times of its events remain.

        The conversation can no longer be read. Its id is free: the next message appended to it begins a new
        conversation at position 0. Its messages are also erased in forks of it. Messages added later to
        those forks stay, and so does the conversation that it was forked from.

        Raises:
            InvalidThreadId: the id is missing or blank, or there is no such conversation.
        """
        from refold.application.erasure.erasing import erase_all

        thread_id = read_thread_id(thread_id)
        return self._runner.finish(erase_all, self._core, thread_id, reason)

    def erase_owner(self, owner: str, reason: str = "") -> ErasureReport:
        """Erase all content of an owner for good, in every conversation and fork.

        This includes everything copied or derived from their messages: summaries, ledgers, notes, quoted
        memories, read models and indexes, and the labels, pins and focuses of their conversations. Content
        of other owners stays, in the owner's conversations too. Ids of owners, threads and messages stay.

        All of it is erased, or nothing if the process dies first. Leftovers in files are removed by the
        next opening or by the same call again. Erasing twice is safe. ``known`` in the report is False if
        the log has nothing of that owner: check the spelling.

        Raises:
            InvalidOwner: the owner is missing, blank or invalid.
        """
        from refold.application.erasure.erasing import erase_owner

        whose = require_owner(owner)
        return self._runner.finish(erase_owner, self._core, whose, reason)

    def finish_erasures(self, *, wait: float = 0.0) -> tuple[ErasedPlace, ...]:
        """Remove what earlier erasures had to leave, and return where erased content may still be.

        For a log file, that is nothing or its files, while another process reads. On a PostgreSQL server, keys stay
        in the write-ahead log until its segments are recycled. ``wait``: seconds to switch and checkpoint it until they
        are, if the role may.
        """
        from refold.application.erasure.clean_up import finish_all

        return self._runner.finish(finish_all, self._core, wait=wait)

    def verify(self, *, repair: bool = False, anchor: str | Path | None = None) -> Verification:
        """Check the log and compare every read model with a new fold.

        ``repair``: rebuild damaged read models, snapshots and anchors. Events are never changed. By default
        nothing is changed. ``anchor``: exported anchor to compare with.
        """
        from refold.application.maintenance.verifying import verify

        return verify(self._core, repair=repair, anchor=None if anchor is None else Path(anchor))

    def anchor(self, out: str | Path | None = None, *, accept: bool = False) -> AnchorState:
        """Return the anchor: the newest event of each conversation, stored outside of the log.

        ``out``: path of a new file to write the anchor to, for safekeeping elsewhere. ``accept``: rebuild
        the anchor from the log as it is, even if the log lacks events.

        Raises:
            LogBehindAnchor: the log lacks stored events, and ``accept`` is False.
            TargetExists: there is a file at ``out``.
        """
        return self._core.keeper.anchor(out=None if out is None else Path(out), accept=accept)

    def salvage(self, to: str | Path) -> Salvaged:
        """Copy every intact event into a new log and report the losses. This log is only read.

        Raises:
            TargetExists: there is a file at ``to``.
        """
        return self._core.keeper.salvage(Path(to))

    def replay(self) -> Replayed:
        """Rebuild every read model from the log without calling a model."""
        from refold.application.maintenance.verifying import replay

        return replay(self._core)

    def backup(self, to: str | Path, *, replace: bool = False) -> BackedUp:
        """Copy the log into a file and check every event of the copy.

        Appends of this and other processes continue meanwhile. ``replace``: allow replacing an existing
        file; it is replaced only by a complete and checked copy.

        Raises:
            TargetExists: there is a file already.
            BackupDamaged: the log is damaged; no file was written.
            NewerLog: it has an event of a newer refold; no file was written.
            LogError: the copy cannot be written; no file was written.
        """
        return self._core.keeper.backup(Path(to), replace=replace)

    def compress(self, *, keep: int = 0) -> Compressed:
        """Compress the events before the live part of each conversation; every read returns the same as
        before.

        ``keep``: number of newest events of each conversation that are never compressed. Later events are
        stored uncompressed: compress again from time to time. Other processes continue meanwhile. An
        interrupted run continues where it stopped.

        Raises:
            InvalidSetting: zstandard is not installed.
            LogError: the log cannot be written; events that were compressed stay compressed.
        """
        return self._core.keeper.compress(keep=keep)

    def stats(self) -> Sizes:
        """Return the size of the log by conversation, by kind of event and by file."""
        from refold.application.conversation.addresses import thread_of

        sizes = self._core.keeper.sizes()
        named = (replace(one, thread_id=thread_of(one.thread_id)) for one in sizes.conversations)
        return replace(sizes, conversations=tuple(named))

    def drain(self, wait: float | None = None) -> bool:
        """Wait until no compaction runs in the background. Return False if one still runs.

        ``wait``: maximum number of seconds, or None to wait as long as necessary.
        """
        return not self._runner.started or self._runner.run(self._background.drain(wait))

    def close(self, wait: float | None = None) -> None:
        """Release files and threads; closing twice is safe.

        Running compactions are awaited, then cancelled; an attempt that did not end is recorded as
        abandoned. Calls of other threads end, or raise ``RefoldError``; an append that is being stored is
        awaited. ``wait``: maximum number of seconds, or None to use the setting. In a process forked from
        the one that opened the memory, nothing happens.
        """
        if not self._opened.process.is_this:
            return
        core = self._opened
        try:
            if self._runner.started:
                with suppress(WorkEnded):  # Another thread closes it too, and has done this.
                    self._runner.run(self._background.finish(wait))
            patience = core.settings.close_wait if wait is None else wait
            write_all_waiting(core.log, core.unwritten, at=core.clock(), wait=patience)
            record_waiting(core.log, core.asked, at=core.clock(), wait=patience)
        finally:
            self._runner.close()
            for follower in tuple(core.followers):
                follower.close()
            self._opened.close_derived()
            self._opened.log.close()

    def __enter__(self) -> Self:
        self._opened.process.check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(patience(kind))


def patience(kind: type[BaseException] | None) -> float | None:
    """Return the seconds that closing may wait: 0 after an interruption, or None to use the setting."""
    if kind is None:
        return None
    import asyncio

    return 0 if kind in (KeyboardInterrupt, asyncio.CancelledError) else None
