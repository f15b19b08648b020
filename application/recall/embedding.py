"""Make vectors in the background, so that appending and searching never wait for them."""

import atexit
import threading
import time
from collections.abc import Callable

from refold.application.errors import EmbedderError
from refold.application.ports.embedder import Embedder
from refold.application.ports.recall_index import RecallIndex
from refold.application.ports.vectors import VectorStore
from refold.application.runtime.opening_process import OpeningProcess
from refold.domain.value import Value

from .missing_vectors import (
    Coverage,
    Figures,
    MissingVectors,
    Outdated,
    QuestionEmbedder,
    Report,
    Stopped,
    Words,
    to_embedder_error,
)

SETTLE = 0.2
"""Seconds to wait after an append before embedding, since more appends may follow."""
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 300.0
"""Limit of the pause after failures, in seconds; the pause doubles after each failure."""
COUNTING = 0.1
"""Seconds that a search waits to learn which vectors are missing."""
CLOSING = 1.0
"""Seconds that closing waits for the current batch."""


class EmbeddingProgress(Value, frozen=True):
    """Progress of making vectors."""

    model: str
    done: int
    """Number of passages that have a vector of this model."""
    total: int
    running: bool
    """True while this process is making vectors."""
    refused: int = 0
    """Number of passages that the embedder refused; only their words are searched."""
    error: str | None = None
    """Reason why the last attempt failed, or None. Failed attempts are repeated."""

    @property
    def complete(self) -> bool:
        """True if every passage that can have a vector has one."""
        return self.done + self.refused >= self.total


class Embedding(QuestionEmbedder):
    """Keeps the vectors of one log up to date in a thread that starts on first use.

    Failures of the embedder do not disturb callers: ``progress`` reports the error, and the
    embedder is tried again after a growing pause. Existing vectors are searched in the meantime.
    """

    def __init__(
        self,
        index: RecallIndex,
        vectors: VectorStore,
        embedder: Embedder,
        *,
        words: Words,
        newest: Callable[[], int],
        report: Report = lambda name, figures: None,
    ) -> None:
        """Prepare the worker; ``newest`` returns the log position of the newest event cheaply."""
        super().__init__(embedder, vectors, report)
        self._newest = newest
        self._missing = MissingVectors(
            index,
            vectors,
            embedder,
            words=words,
            stopped=lambda: self._closing,
            counted=self._finish_counting,
        )
        self._changed = threading.Condition()
        self._process = OpeningProcess()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._requests = 0
        """Number of the newest request."""
        self._current_request = 0
        """Number of the request in progress."""
        self._counted_request = 0
        """Number of the last request for which missing vectors were counted."""
        self._completed = 0
        """Number of the last completed request."""
        self._not_before = 0.0
        self._failures = 0
        self._error: str | None = None
        self._embedded_to = -1
        """Log position of the newest event when every passage had a vector."""

    def wake(self) -> None:
        """Start embedding if the log has grown; every search calls this."""
        if self._may_run() and self._newest() != self._embedded_to:
            self._request()

    def appended(self) -> None:
        """Schedule embedding after an append; do nothing before the first search."""
        if self._thread is not None and self._may_run():
            self._request(SETTLE)

    def lost(self) -> None:
        """Record that vectors were lost, so that the next search looks for all missing ones and says so."""
        self.losses += 1
        self._embedded_to, self._has_any = -1, False
        self._missing.coverage = Coverage()

    def finish(self, wait: float | None = None) -> EmbeddingProgress:
        """Make all missing vectors, retrying a failed embedder at once, and return the progress.

        ``wait`` is the longest time in seconds, or None for no limit. In the result, ``running`` is
        true if work continues, and ``error`` says why it could not be finished.
        """
        if self._may_run():
            with self._changed:
                failures, self._not_before, self._error = self._failures, 0.0, None
                ticket = self._request()
                self._changed.wait_for(
                    lambda: self._completed >= ticket or self._failures > failures or self._closing,
                    wait,
                )
        return self.progress()

    def progress(self) -> EmbeddingProgress:
        """Return the progress, counting missing vectors if that was not done yet."""
        now = self._missing.coverage
        if not now.counted:
            try:
                now = self._missing.counted()
            except Stopped:
                now = Coverage()
        return EmbeddingProgress(
            model=self._embedder.model,
            done=now.total - now.lacking - now.refused,
            total=now.total,
            running=self._is_running,
            refused=now.refused,
            error=self._error,
        )

    def describe_missing(self) -> str | None:
        """Describe missing vectors, or return None if there are none."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_counted or not self._is_running, COUNTING)
            now, knows = self._missing.coverage, self._is_counted
        if knows and not now.lacking:
            return None
        far = f" ({now.total - now.lacking} of {now.total})" if now.counted else ""
        why = f"; the embedder fails: {self._error}" if self._error else ""
        return f"vectors are still being made{far}{why}"

    def close(self, wait: float = CLOSING) -> None:
        """Stop after the current batch; closing twice is allowed.

        ``wait`` is the longest time to wait in seconds. Vectors made later are discarded.
        """
        if not self._process.is_this:
            return
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        atexit.unregister(self.close)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(wait)

    @property
    def _is_running(self) -> bool:
        return self._requests > self._completed and not self._closing and self._error is None

    @property
    def _is_counted(self) -> bool:
        """True if missing vectors were counted since the last request."""
        return self._missing.coverage.counted and self._counted_request >= self._requests

    def _finish_counting(self) -> None:
        with self._changed:
            if (
                threading.current_thread() is self._thread
            ):  # Other threads count only to report progress.
                self._counted_request = self._current_request
            self._changed.notify_all()

    def _may_run(self) -> bool:
        # A forked process does not have the thread of its parent.
        return not self._closing and self._process.is_this

    def _request(self, delay: float = 0.0) -> int:
        with self._changed:
            self._requests += 1
            if not self._failures:
                self._not_before = time.monotonic() + delay
            if self._thread is None:
                self._start()
            self._changed.notify_all()
            return self._requests

    def _start(self) -> None:
        """Start the thread. If the system refuses one, the next request tries again."""
        self._thread = threading.Thread(target=self._run, name="refold-embedding", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._thread = None
            self._failures += 1
            self._error = f"no thread could start ({error})"
        else:
            atexit.register(self.close)

    def _run(self) -> None:
        while (ticket := self._next_request()) is not None:
            begun, newest = time.monotonic(), -1
            try:
                newest = self._newest()
                self._current_request = ticket
                self._missing.make()
                self._retire_other_models()
            except Stopped:
                return
            except Outdated:
                continue
            except (
                Exception
            ) as raised:  # The thread survives any error, so that callers are not disturbed.
                self._record_failure(to_embedder_error(raised))
            else:
                self._record_success(ticket, newest, time.monotonic() - begun)

    def _next_request(self) -> int | None:
        """Wait for a request and return its number, or None when closing."""
        with self._changed:
            while not self._closing:
                if self._requests == self._completed:
                    self._changed.wait()
                elif (pause := self._not_before - time.monotonic()) > 0:
                    self._changed.wait(pause)
                else:
                    return self._requests
        return None

    def _record_success(self, ticket: int, newest: int, seconds: float) -> None:
        coverage = self._missing.coverage
        made, coverage.made = coverage.made, 0
        with self._changed:
            # Vectors that were lost in the meantime have not been searched for.
            self._completed, self._embedded_to = ticket, newest if coverage.counted else -1
            self._failures, self._error = 0, None
            self._changed.notify_all()
        if made:
            figures: Figures = {
                "model": self._embedder.model,
                "texts": made,
                "seconds": round(seconds, 3),
            }
            self._report("embedding.finished", figures)

    def _record_failure(self, error: EmbedderError) -> None:
        with self._changed:
            self._failures += 1
            self._error = str(error)
            pause = min(FIRST_PAUSE * 2 ** (self._failures - 1), LONGEST_PAUSE)
            self._not_before = time.monotonic() + pause
            self._changed.notify_all()
        if self._failures == 1:
            self._report("embedding.failed", self._reason(error))

    def _retire_other_models(self) -> None:
        if (removed := self._vectors.keep_only(self._embedder.model)) > 0:
            figures: Figures = {"model": self._embedder.model, "removed": removed}
            self._report("embedding.replaced", figures)
        self._vectors.settle(self._embedder.model)
