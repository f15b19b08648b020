"""The search backend on QMD, and its query language, in which users' texts can only be words."""

import os
import re
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path

from refold.application.errors import BackendError, LogBusy
from refold.application.ports.conversation_log import ConversationLog
from refold.application.ports.search_backend import BackendHit
from refold.application.recall.recall_query import ask
from refold.application.recall.tokens import tokens_of
from refold.application.runtime.memory_settings import RecallMode
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.lazy_pattern import lazy_pattern
from refold.infrastructure.files.lock import WriteLock

from .programs import (
    MessageFiles,
    NotStarted,
    Outdated,
    Ran,
    TimedOut,
    delete,
    folder_of,
    left_of,
    run,
)
from .qmd_answers import (
    INSTALL,
    Rests,
    TookNothingIn,
    hits_in,
    not_started,
    sizes_in,
    why_failed,
    with_scores,
)

MOST_WORDS = 24
"""Maximum number of words. Each word is a separate search."""
MOST_PAIRED = 8
MOST_CHARACTERS = 2_000
"""Maximum number of characters of a text for a vector search."""

_WORD = lazy_pattern(r"[^\W_]+")
_IDEOGRAPHS = lazy_pattern(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_SPACE = lazy_pattern(r"[\s\x00-\x1f\x7f]+")
_MINUS = lazy_pattern(r"(?<!\S)-+")


def document(query: str, thread_id: str | None, *, meaning: bool) -> str:
    """Return a query document, or an empty text if there is nothing to search for.

    It has a ``lex:`` line with all words, one for each pair and one for each word, because QMD joins
    the words of a line by AND and adds up the ranks of lines. Every word is quoted, so that none is an
    operator or starts another query. The name of the conversation's folder is one of the words, because
    it is in the searched text.
    """
    words = words_of(query)
    if not words:
        return ""
    scope = "" if thread_id is None else f'"{folder_of(thread_id)}" '
    # The first line counts twice.
    together = [words, *_pairs(words), *([word] for word in words)] if len(words) > 1 else [words]
    lines = [f"lex: {scope}" + " ".join(f'"{word}"' for word in line) for line in together]
    if meaning and (text := plain(query)):
        lines.append(f"vec: {text}")
    return "\n".join(lines)


def _pairs(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield each pair of words that may occur in one message.

    Words with Chinese characters are left out: they are cut from one text and occur together anyway.
    """
    if len(words) > 2:
        yield from combinations([w for w in words if not _IDEOGRAPHS.search(w)][:MOST_PAIRED], 2)


def words_of(query: str) -> list[str]:
    """Return the distinct search words: content words, and each pair of Chinese characters."""
    wanted = set(ask(query).tokens)
    words = (piece for word in _WORD.findall(_clean(query)) for piece in _pieces(word))
    said = [word for word in words if wanted.intersection(tokens_of(word))]
    return list(dict.fromkeys(word.lower() for word in said))[:MOST_WORDS]


def plain(query: str) -> str:
    """Return the query as one line without special characters."""
    return (
        _MINUS.sub("", _SPACE.sub(" ", _clean(query)))[:MOST_CHARACTERS].replace('"', " ").strip()
    )


def _pieces(word: str) -> list[str]:
    """Split Chinese, which has no spaces, into pairs of adjacent characters, and keep Latin parts."""
    pieces: list[str] = []
    end = 0
    for found in _IDEOGRAPHS.finditer(word):
        pieces.append(word[end : found.start()])
        run = found.group()
        pieces += ["".join(two) for two in pairwise(run)] or [run]
        end = found.end()
    return [piece for piece in (*pieces, word[end:]) if piece]


def _clean(text: str) -> str:
    return text.encode(errors="replace").decode()


LEAST_VERSION = (2, 8)
"""Oldest version that was tested."""
COLLECTION = "refoldmessages"
WAIT = 30.0
"""Seconds that a deletion waits for a process that is indexing messages."""
MOST_UNFINISHED = 3
"""Number of timeouts while indexing after which QMD counts as hanging."""
OF_ALL = 500
"""Number of hits to request from all conversations if only those of one conversation are used."""

logger = plain_logger(__name__)


class Qmd:
    """A ``SearchBackend`` on the command line of QMD, with files and an index next to the log.

    The files are plain text, like the log itself. Only one process at a time updates them.
    """

    name = "qmd"

    def __init__(self, folder: Path, log: ConversationLog, *, like: Path, timeout: float) -> None:
        """Create the backend. ``like`` is the log file. ``timeout`` is the number of seconds for one
        query.
        """
        self._folder = folder
        self._files = MessageFiles(folder, log, like)
        self._like = like
        self._lock = _lock_of(folder, like, timeout + WAIT)
        self._timeout = timeout
        self._threads = threading.RLock()
        self._program = ""
        self._rests = Rests(timeout)
        self._unfinished = 0
        """Number of consecutive timeouts while indexing."""

    def find(
        self, query: str, mode: RecallMode, thread_id: str | None, limit: int
    ) -> Sequence[BackendHit]:
        """Search messages. The modes ``vector`` and ``hybrid`` need QMD's models: ``qmd pull``."""
        meaning = mode != "keyword"
        if limit < 1 or not (asked := self._command_for(query, mode, thread_id, limit)):
            return ()
        self._rests.refuse(meaning=meaning)
        deadline = time.monotonic() + self._timeout
        try:
            with self._threads:
                self._be_ready(deadline)
                threads = self._catch_up(deadline, meaning=meaning)
            answer = self._run(asked, deadline)
        except TimedOut as error:
            raise self._rests.begin(error, meaning=meaning) from error
        except NotStarted as error:
            self._program = ""
            raise BackendError("failed", not_started(str(error))) from error
        except LogBusy as error:
            raise BackendError(
                "timeout",
                f"another process is still indexing messages with qmd; try again. {error}",
            ) from error
        except OSError as error:
            raise BackendError(
                "failed",
                f"{self._folder} cannot be used ({error}): qmd needs to write there; check its "
                "permissions, or use search_backend='builtin'",
            ) from error
        hits = [h for h in hits_in(answer, threads) if thread_id in (None, h.thread_id)]
        return with_scores(hits)[:limit]

    def drop(self) -> bool:
        """Delete all files and the index, and return whether nothing is left."""
        with self._threads:
            return delete_all(self._folder, self._like)

    def close(self) -> None:
        """Release nothing, because no program keeps running."""
        with self._threads:
            self._lock.close()

    def _command_for(
        self, query: str, mode: RecallMode, thread_id: str | None, limit: int
    ) -> Sequence[str]:
        """Return the command with its arguments, or nothing if there is nothing to search for."""
        if mode == "vector":
            text = plain(query)
            number = limit if thread_id is None else OF_ALL
            options = (f"-n{number}", "--min-score=-1", "--json", "--", text)
            return ("vsearch", *options) if text else ()
        asked = document(query, thread_id, meaning=mode == "hybrid")
        number = limit if mode == "keyword" else OF_ALL
        return ("query", "--no-rerank", f"-n{number}", "--json", "--", asked) if asked else ()

    def _be_ready(self, deadline: float) -> None:
        """Find the program and check its version."""
        if self._program:
            return
        program = shutil.which("qmd")
        if program is None or os.name != "posix":
            raise BackendError(
                "absent",
                f"the program qmd is not installed, or not on PATH: {INSTALL}; or use "
                "search_backend='builtin'",
            )
        self._program = program
        try:
            said = self._run(("--version",), deadline, folder=self._folder.parent).out
            found = re.search(r"(\d+)\.(\d+)", said)
            if found is None:
                raise BackendError(
                    "bad_answer",
                    f"{program} --version says {said[:80]!r}: is that QMD? It is installed by {INSTALL}",
                )
            if (int(found[1]), int(found[2])) < LEAST_VERSION:
                raise BackendError(
                    "old",
                    f"{program} is qmd {found[0]}, and {LEAST_VERSION[0]}.{LEAST_VERSION[1]} or newer is "
                    f"needed: {INSTALL}",
                )
        except BaseException:
            self._program = ""
            raise

    def _catch_up(self, deadline: float, *, meaning: bool) -> Mapping[str, str]:
        """Update files and index, and return the conversations by the names of their folders."""
        with self._lock.held():
            self._files.make("config", "index")
            try:
                return self._take_in(deadline, meaning=meaning)
            except Outdated as error:
                logger.info("qmd gets all messages again: %s", error)
                delete(self._folder)
                self._files.make("config", "index")
                return self._take_in(deadline, meaning=meaning)

    def _take_in(self, deadline: float, *, meaning: bool) -> Mapping[str, str]:
        state = self._files.state()
        before = sizes_in(self._folder / "index")
        more = True
        while more:
            begun, (state, written) = state, self._files.write_more(state)
            more = bool(written)
            if not state.indexed:
                self._files.keep(state)
                self._index(deadline, len(state.threads), before)
                state = state._replace(indexed=True)
            if state != begun:
                self._files.keep(state)
        if meaning and not state.embedded:
            self._run(("embed",), deadline)
            self._files.keep(state._replace(embedded=True))
        return state.threads

    def _index(self, deadline: float, threads: int, before: Mapping[str, int]) -> None:
        """Let QMD index the written files. ``before`` has the index sizes at the start of the query."""
        known = any((self._folder / "config").iterdir())
        adding = ("collection", "add", str(self._files.place), "--name", COLLECTION)
        begun = time.monotonic()
        try:
            self._run(("update",) if known else (*adding, "--mask", "**/*.md"), deadline)
        except TimedOut as error:
            # Earlier steps may have left hardly any time.
            had_time = time.monotonic() - begun >= self._timeout / 2
            if had_time and sizes_in(self._folder / "index") == before:
                raise TookNothingIn(str(error)) from error
            self._unfinished += 1
            if self._unfinished > MOST_UNFINISHED:
                raise
            raise BackendError(
                "timeout",
                f"qmd is still indexing the messages of {threads} conversations after "
                f"{self._timeout:g} s; try again to continue, or raise backend_timeout",
            ) from error
        self._unfinished = 0

    def _run(self, arguments: Sequence[str], deadline: float, folder: Path | None = None) -> Ran:
        left = deadline - time.monotonic()
        command = (self._program, "--index", "refold", *arguments)
        folder = folder or self._folder
        try:
            ran = run(command, folder=folder, environment=self._environment(), timeout=max(left, 0))
        except TimedOut as error:
            raise TimedOut(arguments[0]) from error
        if ran.status:
            raise BackendError("failed", why_failed(arguments[0], ran))
        return ran

    def _environment(self) -> Mapping[str, str]:
        # Its models stay where the user has them; everything of refold is in the folder.
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("REFOLD_")},
            "INDEX_PATH": str(self._folder / "index" / "index.sqlite"),
            "QMD_CONFIG_DIR": str(self._folder / "config"),
            "PWD": str(self._folder),
            "NO_COLOR": "1",
        }


def delete_all(folder: Path, like: Path) -> bool:
    """Delete all files and the index, and return whether nothing is left."""
    if not folder.exists() and not any(left_of(folder)):
        return True
    lock = _lock_of(folder, like, WAIT)
    try:
        with lock.held():
            delete(folder)
    except (OSError, LogBusy) as error:
        logger.warning("the files for qmd in %s cannot be deleted: %s", folder, error)
        return False
    finally:
        lock.close()
    return True


def _lock_of(folder: Path, like: Path, timeout: float) -> WriteLock:
    return WriteLock(folder.with_name(f"{folder.name}.lock"), timeout, of=like)
