"""What a memory lists of all conversations: which there are, what was noted of them, and files of notes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

from refold.application.agent_tools.toolbox import Toolbox
from refold.application.compaction.background import Background
from refold.application.compaction.unwritten import write_all_waiting
from refold.application.conversation.addresses import thread_of
from refold.application.conversation.owner_scope import OwnerScope, Scope, read_scope
from refold.application.conversation.owners import read_owner, require_owner
from refold.application.conversation.parsing import read_thread_id
from refold.application.erasure.erasing import erase_all, erase_owner
from refold.application.erasure.erasure_report import ErasureReport
from refold.application.frames.request_frames import record_waiting
from refold.application.history.expand import ExpandedSummary, expand_anywhere
from refold.application.maintenance.maintenance_results import (
    AnchorState,
    BackedUp,
    Compressed,
    Salvaged,
    Sizes,
)
from refold.application.maintenance.verifying import (
    Replayed,
    Verification,
    close_derived,
    replay,
    verify,
)
from refold.application.notes.markdown_search import (
    NotesFound,
    NotesStatus,
    notes_status,
    search_notes,
)
from refold.application.notes.note_files import without_others, write_notes
from refold.application.ports.read_models import ConversationRow, NoteRow
from refold.application.recall.embedding import EmbeddingProgress
from refold.application.recall.hits import Recalled, RecallMode
from refold.application.recall.recall_query import RecallOptions
from refold.application.recall.search import query_with_defaults, search
from refold.application.runtime.core import Core
from refold.domain.errors import InvalidSetting
from refold.domain.value import replace

from .argument_checks import checked
from .blocking import Runner
from .conversation_memory import ConversationMemory


@checked
class MemoryLists:
    """The lists of a memory, which need no conversation."""

    def __init__(self, core: Core) -> None:
        self._opened = core

    @property
    def _core(self) -> Core:
        return self._opened.here()

    def conversations(self, *, owner: str | None = None) -> Sequence[ConversationRow]:
        """All conversations, the latest activity first; with an owner only theirs.

        Raises:
            InvalidOwner: the owner is blank or unusable.
        """
        rows, owner = self._core.views.conversations(), read_owner(owner)
        return rows if owner is None else [row for row in rows if row.owner == owner]

    def notes(self, *, owner: str | None = None) -> Sequence[NoteRow]:
        """The durable notes of all conversations, in the order in which they were taken; with an owner
        those of their conversations alone, without what was noted of somebody else's messages there.

        Raises:
            InvalidOwner: the owner is blank or unusable.
        """
        views, owner = self._core.views, read_owner(owner)
        if owner is None:
            return views.all_notes()
        guests = views.guests_of(owner)
        return list(without_others(views.notes_of(owner), lambda thread: guests.get(thread, {})))

    def search_notes(
        self,
        query: str,
        *,
        owner: str | None = None,
        limit: int = 5,
        min_score: float = 0.0,
        mode: RecallMode | None = None,
    ) -> NotesFound:
        """Search the Markdown notes of the workspace, hand edits included: ``MEMORY.md`` and ``memory/*.md``
        in ``markdown_folder``, or else in ``notes_folder``. Nothing of them is stored.

        ``owner``: those of this owner alone, which lie in a folder of their own; without one those that
        are nobody's. ``min_score``: relative to the best hit. ``mode``: as for ``search``.

        Raises:
            InvalidSetting: an option cannot be; says what is allowed.
            InvalidOwner: the owner is blank or unusable.
        """
        whose = read_owner(owner)
        return search_notes(self._core, query, whose, limit=limit, min_score=min_score, mode=mode)

    def notes_status(self, *, owner: str | None = None) -> NotesStatus:
        """Say which files ``search_notes`` searches, and which it leaves out.

        Raises:
            InvalidOwner: the owner is blank or unusable.
        """
        return notes_status(self._core, read_owner(owner))

    def write_notes(self) -> bool:
        """Bring ``MEMORY.md`` and ``memory/YYYY-MM-DD.md`` in the folder of the settings up to date.

        That is done by itself after every change. Whether it worked; True where no folder is set.
        """
        return write_notes(self._core)


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
        """The conversation with this id, new or not.

        ``owner``: whose it is, such as the id of a user. The log keeps it with the next message; it never
        changes. What was said in other conversations of the same owner can be used here (``memories``,
        ``recall(scope="owner")``); without an owner a conversation sees itself alone. Where it is
        somebody else's, whatever is done with it is refused with ``OwnerConflict``.

        Raises:
            InvalidThreadId: the id is missing or blank.
            InvalidOwner: the owner is blank or unusable.
        """
        thread_id, owner = read_thread_id(thread_id), read_owner(owner)
        return ConversationMemory(self._core, thread_id, self._runner, self._background, owner)

    def search(
        self, query: str = "", *, owner: str | None = None, **how: Unpack[RecallOptions]
    ) -> Recalled:
        """What was said about something in any conversation, best first; each hit names its own.

        Like ``ConversationMemory.recall``; whether a hit is in context is told of its own conversation's. ``owner``:
        what is theirs is searched. Without one it is what is nobody's, unless ``scope="all"`` says that
        everything may be seen, whoever it is of.

        Raises:
            InvalidSetting: an option cannot be; says what is allowed.
            InvalidOwner: the owner is blank or unusable.
        """
        parsed, owner = query_with_defaults(self._core, query, how), read_owner(owner)
        return search(self._core, parsed, self._scope(parsed.scope, owner).visible())

    def _scope(self, scope: Scope | None, owner: str | None) -> OwnerScope:
        """How far somebody looks who belongs to no conversation.

        Raises:
            InvalidSetting: the scope needs a conversation or an owner, and there is none.
        """
        if scope == "conversation" or (scope == "owner" and owner is None):
            raise InvalidSetting(
                f"scope={scope!r} needs {'an owner' if scope == 'owner' else 'a conversation'}: give "
                "owner=, or ask a conversation",
                setting="scope",
                value=scope,
            )
        if scope is None and owner is not None:
            scope = "owner"
        return OwnerScope(self._core, scope, owner=owner)

    def expand(
        self, summary_id: str, start: int = 0, max_tokens: int | None = None, limit: int = 20
    ) -> ExpandedSummary:
        """What a summary of any conversation stands for; see ``ConversationMemory.expand``. A fork has the summaries of
        its source as well: then it is that of the source.

        Raises:
            UnknownSummary: names the newest ones that there are.
            InvalidSetting: ``limit`` or ``max_tokens`` cannot be.
        """
        return expand_anywhere(self._core, summary_id, start, max_tokens, limit)

    def tools(
        self,
        thread_id: str | None = None,
        *,
        owner: str | None = None,
        scope: Scope | None = None,
    ) -> Toolbox:
        """The tools for a model that is not the agent of any conversation here, such as one that asks
        over MCP: with an id they reach this conversation alone, with an owner what is theirs. With neither
        they reach what is nobody's; with both, calls are refused where the conversation is another's.
        ``scope="all"``: everything in the log, whoever it is of.

        For the agent of a conversation itself: ``ConversationMemory.tools``, which leave out what its context has.

        Raises:
            InvalidThreadId, InvalidOwner: the id is blank.
            InvalidSetting: there is no such scope, or it needs an owner.
        """
        scope, owner = None if scope is None else read_scope(scope), read_owner(owner)
        if thread_id is None:
            return Toolbox(self._core, None, self._scope(scope, owner), sees=False)
        home = read_thread_id(thread_id)
        reach = OwnerScope(self._core, scope or "conversation", home, owner)
        return Toolbox(self._core, home, reach, sees=False)

    def index(self) -> int:
        """Bring the index of recall up to date; how many passages it has.

        Nobody needs to: each question catches up with what was appended since the one before.
        """
        return self._core.recall.index.find(()).total

    def embed(self, wait: float | None = None) -> EmbeddingProgress | None:
        """Make every vector that is missing, and wait for it; None where no embedder is configured.

        Nobody needs to: it is done in the background since the first search. ``wait``: at most so many
        seconds; None: as long as it takes. What could not be made is told by the answer, not raised.
        """
        embedding = self._core.recall.embedding
        return None if embedding is None else embedding.finish(wait)

    def embedding(self) -> EmbeddingProgress | None:
        """How far the vectors are; None where no embedder is configured."""
        embedding = self._core.recall.embedding
        return None if embedding is None else embedding.progress()

    def erase_conversation(self, thread_id: str, reason: str = "") -> ErasureReport:
        """Erase all of a conversation for good: nothing is left of it but how many events there were,
        when. Nothing can be read from it any more. The id is free: the first message that is appended to
        it begins a new conversation, at position 0.

        Its messages are erased in the conversations that were forked from it as well; what was said
        there since stays, and so does what it was itself forked from.

        Raises:
            InvalidThreadId: the id is missing or blank, or there is no such conversation.
        """
        thread_id = read_thread_id(thread_id)
        return self._runner.finish(erase_all, self._core, thread_id, reason)

    def erase_owner(self, owner: str, reason: str = "") -> ErasureReport:
        """Erase everything that is an owner's for good: their messages in every conversation and fork, and
        all that was copied or made from them: summaries, ledgers, notes, quoted memories, read models and
        indexes. Labels, pins and focuses of their conversations go as well.

        What is somebody else's stays, in their conversations as well. All of it is erased or, where the
        process dies before, nothing; what is left in files then is removed by the next opening, or by the
        same call once more. Ids stay: of owners, threads and messages. Erasing twice is fine.
        Where nothing in the log is of that owner, the report says so (``known``): look for a typo.

        Raises:
            InvalidOwner: the owner is missing, blank or unusable.
        """
        whose = require_owner(owner)
        return self._runner.finish(erase_owner, self._core, whose, reason)

    def verify(self, *, repair: bool = False, anchor: str | Path | None = None) -> Verification:
        """Check the log, and compare every read model with a fresh fold.

        ``repair``: read models, snapshots and the anchor are made anew where they are damaged; else
        nothing is changed, and the events never are. ``anchor``: an exported one to compare with.
        """
        return verify(self._core, repair=repair, anchor=None if anchor is None else Path(anchor))

    def anchor(self, out: str | Path | None = None, *, accept: bool = False) -> AnchorState:
        """What the anchor knows: the newest event of each conversation, kept outside of the log.

        ``out``: a new file that it is written into, to be kept elsewhere. ``accept``: make it anew from
        the log as it is, which may lack what was stored.

        Raises:
            LogBehindAnchor: the log lacks what was stored, and that is not accepted.
            TargetExists: there is a file at ``out``.
        """
        return self._core.keeper.anchor(out=None if out is None else Path(out), accept=accept)

    def salvage(self, to: str | Path) -> Salvaged:
        """Copy every intact event into a new log, and say what was lost; this one is only read.

        Raises:
            TargetExists: there is something at ``to``.
        """
        return self._core.keeper.salvage(Path(to))

    def replay(self) -> Replayed:
        """Rebuild every read model from the log; calls no model."""
        return replay(self._core)

    def backup(self, to: str | Path, *, replace: bool = False) -> BackedUp:
        """Copy the log as it is now into a file, and check every event of the copy.

        Appends of this and other processes go on meanwhile. ``replace``: whether a file that is there
        may be replaced; it is so only by a whole and checked copy.

        Raises:
            TargetExists: there is a file already.
            BackupDamaged: the log is damaged; no file was made.
            LogError: the copy cannot be written; no file was made.
        """
        return self._core.keeper.backup(Path(to), replace=replace)

    def compress(self, *, keep: int = 0) -> Compressed:
        """Compress what lies before the live part of each conversation; nothing of it reads otherwise.

        ``keep``: how many of the newest events of each conversation stay as they are in any case.
        What is appended afterwards is stored as always: compress again some day. Other processes go
        on meanwhile; stopped at any point, it goes on where it was the next time.

        Raises:
            InvalidSetting: zstandard is not installed.
            LogError: the log cannot be written; what was compressed so far stays so.
        """
        return self._core.keeper.compress(keep=keep)

    def stats(self) -> Sizes:
        """How large the log is: by conversation, by kind of event, and by file."""
        sizes = self._core.keeper.sizes()
        named = (replace(one, thread_id=thread_of(one.thread_id)) for one in sizes.conversations)
        return replace(sizes, conversations=tuple(named))

    def drain(self, wait: float | None = None) -> bool:
        """Wait until no compaction runs in the background; whether none does.

        ``wait``: at most so many seconds; None: as long as it takes.
        """
        return not self._runner.started or self._runner.run(self._background.drained(wait))

    def close(self, wait: float | None = None) -> None:
        """Release files and threads; closing twice is fine.

        Compactions that run are waited for, then given up: an attempt that did not end is recorded
        as abandoned. ``wait``: at most so many seconds; None: as long as the settings say. In a process
        that is forked from the one that opened it, nothing happens.
        """
        if not self._opened.process.is_this:
            return
        core = self._opened
        try:
            if self._runner.started:
                self._runner.run(self._background.finish(wait))
            patience = core.settings.close_wait if wait is None else wait
            write_all_waiting(core.log, core.unwritten, at=core.clock(), wait=patience)
            record_waiting(core.log, core.asked, at=core.clock(), wait=patience)
        finally:
            self._runner.close()
            close_derived(self._opened)
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
    """How long closing waits: not at all for somebody who has just interrupted the work."""
    return 0 if kind in (KeyboardInterrupt, asyncio.CancelledError) else None
