"""The service that agents embed: all conversations of one log."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

from .background import Background
from .blocking import Runner, to_the_end
from .chat import Chat
from .core import Core
from .derived import close_derived
from .erasure.erasing import erase_all
from .erasure.erasure_report import ErasureReport
from .intake import read_thread_id
from .notes.writing import write_notes
from .read_models import ConversationRow, NoteRow
from .recall.embedding import EmbeddingProgress
from .recall.expanding import ExpandedSummary, expand_anywhere
from .recall.inquiry import RecallOptions, inquire
from .recall.recalling import search
from .recall.results import Recalled
from .tools.toolbox import Toolbox
from .upkeep.housekeeping import BackedUp, Compressed, Sizes
from .upkeep.salvaging import Salvaged
from .upkeep.verifying import AnchorState, Replayed, Verification, replay, verify


class Memory:
    """The conversations of one log. A context manager; ``close`` releases files and threads."""

    def __init__(self, core: Core) -> None:
        self._opened = core
        self._runner = Runner()
        self._background = Background(core)

    @property
    def _core(self) -> Core:
        return self._opened.here()

    def conversation(self, thread_id: str) -> Chat:
        """The conversation with this id, new or not.

        Raises:
            InvalidThreadId: the id is missing or blank.
        """
        return Chat(self._core, read_thread_id(thread_id), self._runner, self._background)

    def conversations(self) -> Sequence[ConversationRow]:
        """All conversations, the latest activity first."""
        return self._core.views.conversations()

    def notes(self) -> Sequence[NoteRow]:
        """The durable notes of all conversations, in the order in which they were taken."""
        return self._core.views.all_notes()

    def write_notes(self) -> bool:
        """Bring ``MEMORY.md`` and ``memory/YYYY-MM-DD.md`` in the folder of the settings up to date.

        That is done by itself after every change. Whether it worked; True where no folder is set.
        """
        return write_notes(self._core)

    def search(self, query: str = "", **how: Unpack[RecallOptions]) -> Recalled:
        """What was said about something in any conversation, best first; each hit names its own.

        Like ``Chat.recall``; whether a hit is in context is told of its own conversation's.

        Raises:
            InvalidSetting: an option cannot be; says what is allowed.
        """
        return search(self._core, inquire(query, **how))

    def expand(
        self, summary_id: str, start: int = 0, max_tokens: int | None = None, limit: int = 20
    ) -> ExpandedSummary:
        """What a summary of any conversation stands for; see ``Chat.expand``. A fork has the summaries of
        its source as well: then it is that of the source.

        Raises:
            UnknownSummary: names the newest ones that there are.
            InvalidSetting: ``limit`` or ``max_tokens`` cannot be.
        """
        return expand_anywhere(self._core, summary_id, start, max_tokens, limit)

    def tools(self, thread_id: str | None = None) -> Toolbox:
        """The tools for a model that is not the agent of any conversation here, such as one that asks
        over MCP: with an id they reach this conversation alone, without one all of the log.

        For the agent of a conversation itself: ``Chat.tools``, which leave out what its context has.

        Raises:
            InvalidThreadId: the id is blank.
        """
        home = None if thread_id is None else read_thread_id(thread_id)
        return Toolbox(self._core, home, everywhere=home is None, sees=False)

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
        when. Nothing can be read from it or appended to it any more.

        Its messages are erased in the conversations that were forked from it as well; what was said
        there since stays, and so does what it was itself forked from.

        Raises:
            InvalidThreadId: the id is missing or blank, or there is no such conversation.
        """
        thread_id = read_thread_id(thread_id)
        return self._runner.run(to_the_end(erase_all, self._core, thread_id, reason))

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
        return self._core.keeper.sizes()

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
        try:
            if self._runner.started:
                self._runner.run(self._background.finish(wait))
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
