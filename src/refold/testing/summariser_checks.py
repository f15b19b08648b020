"""``check_summariser``: call a summariser like compactions do, and find problems."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from typing import cast

from refold.application.api.argument_checks import invalid_argument
from refold.application.errors import SummariserError
from refold.application.ports.summariser import (
    BoundedSummariser,
    ModelSummariser,
    NotesDraft,
    NotesRequest,
    Summariser,
    SummaryDraft,
    SummaryRequest,
    is_by_code,
    note_taking,
)
from refold.application.ports.token_counter import TokenCounter
from refold.domain.value import replace
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.testing.findings import (
    Findings,
    NeverEnded,
    Report,
    describe_error,
    name_of,
    show_value,
)
from refold.testing.summary_probes import (
    ANOTHER,
    ORDINARY,
    REPEATED,
    AnswerJudge,
    Asked,
    another,
    asked_in_order,
    ordinary,
)
from refold.testing.watched_calls import Watched, WatchedLoop, cancel, watch

LONGEST_BLOCK = 0.15
"""Maximum seconds for which a summariser may block the event loop."""
REPEATED_CALLS = 6
"""Number of further calls after one that seemed to block: one of them that does not is enough."""
PATIENCE = 2.0
"""Seconds within which a cancelled call must end."""


text_counter: Callable[[str], int] = EstimatingTokenCounter().count_text
"""Built-in estimate of tokens, which measures the answers: ``text_counter("one two")``."""


def check_summariser(
    summariser: Summariser,
    *,
    timeout: float = 60.0,
    token_counter: TokenCounter | None = None,
) -> Report:
    """Check a summariser against everything that a compaction relies on.

    It is called about twenty times with sample conversations: plain ones, with an earlier summary, with
    a small limit, in several languages, with odd blocks, long, and in parallel. The check judges each
    answer, and the effects of the call on the event loop, its request and later calls.

    Args:
        summariser: your summariser, as for ``refold.open(summariser=…)``.
        timeout: seconds within which a call must return.
        token_counter: a counter that measures the answers. The default is the built-in estimator.

    Returns:
        The report with the names of the probes.

    Raises:
        CheckFailed: rules are broken; the message has the expected and the seen result of each, and
            advice.
        InvalidSetting: ``token_counter`` cannot count.

    >>> class Counting:
    ...     name = "counting"
    ...     async def summarise(self, request):
    ...         return f"{len(request.messages)} messages"
    >>> check_summariser(Counting())
    Traceback (most recent call last):
    refold.testing.CheckFailed: Counting breaks 1 rule: …
    """
    if token_counter is not None and not callable(getattr(token_counter, "count_text", None)):
        raise invalid_argument("token_counter", token_counter, "an object with count_text")
    findings = Findings(name_of(summariser))
    counter = token_counter or EstimatingTokenCounter()
    with WatchedLoop() as loop:
        check = _Check(summariser, findings, counter, loop, timeout)
        if check.shape():
            check.everything()
    return findings.settle()


class _Check:
    """The checks of one summariser."""

    def __init__(
        self,
        summariser: Summariser,
        findings: Findings,
        counter: TokenCounter,
        loop: WatchedLoop,
        timeout: float,
    ) -> None:
        self._summariser = summariser
        self._findings = findings
        self._loop = loop
        self._timeout = timeout
        self._judge = AnswerJudge(findings, counter, by_code=is_by_code(summariser))
        self._drafts: dict[str, tuple[Asked, SummaryDraft]] = {}

    def shape(self) -> bool:
        """Check its attributes, and return whether it can be called at all."""
        with self._findings.probe("name", advice="Make `name` a plain attribute."):
            name: object = getattr(self._summariser, "name", None)
            self._findings.require(
                isinstance(name, str) and bool(name.strip()),
                "name",
                expected="an attribute `name`: a text that names it in settings and results",
                seen=show_value(name),
                advice='Add name = "…" to the class.',
            )
        return self._findings.require(
            callable(getattr(self._summariser, "summarise", None)),
            "summarise",
            expected="a method `async def summarise(self, request)`",
            seen="none",
            advice="Add it, and return a refold.SummaryDraft.",
        )

    def everything(self) -> None:
        """Run all requests. Stop after a call that never returns."""
        try:
            for asked in asked_in_order():
                self._ask(asked)
                if self._findings.has("type", "async"):
                    return
            self._compare()
            self._run_in_parallel()
            self._cancelling()
            self._bounds()
            self._models()
            self._notes()
        except NeverEnded as error:
            self._never_ended(error)

    def _never_ended(self, error: NeverEnded) -> None:
        if error.blocks:
            self._findings.add(
                "blocks",
                expected="a call that lets others run in the loop while it waits",
                seen=f"the event loop was blocked: {error}",
                advice=_UNBLOCKING,
            )
        self._findings.add(
            "timeout",
            expected=f"an answer or a SummariserError within {self._timeout:g} s",
            seen=str(error),
            advice="Give the call of the model a time-out, and raise SummariserError('timeout', …).",
        )

    def _ask(self, asked: Asked) -> None:
        with self._findings.probe(asked.name, advice=_RAISING):
            done = self._call_and_check(asked)
            if done is None or done.error is not None:
                return
            draft = self._judge.draft(asked, done.value)
            if draft is not None:
                self._drafts[asked.name] = asked, draft
                self._judge.judge(asked, draft)

    def _call_and_check(self, asked: Asked) -> Watched | None:
        """Call the summariser once, watch the event loop, and check that the request is unchanged."""
        given = deepcopy(asked.request)
        done = self._loop.run(self._watch_call(given), self._timeout)
        if self._findings.has("async"):
            return None
        self._findings.require(
            given == asked.request,
            "mutates",
            expected="an unchanged request",
            seen=f"another one ({asked.name})",
            advice="Copy the blocks that you change: they are those of the conversation.",
        )
        if done.error is not None:
            self._report_error(asked, done.error)
        if done.longest_block > LONGEST_BLOCK and not self._findings.has("blocks"):
            self._blocks(asked, done.longest_block)
        return done

    async def _watch_call(self, request: SummaryRequest) -> Watched:
        return await watch(self._call(request))

    async def _call(self, request: SummaryRequest) -> object:
        answer: object = self._summariser.summarise(request)
        if not inspect.isawaitable(answer):
            self._findings.add(
                "async",
                expected="`async def summarise`, whose call is awaited",
                seen=f"a call that returns {type(answer).__name__} at once",
                advice="Write `async def`; put code that blocks into asyncio.to_thread.",
            )
            return answer
        return await cast("Awaitable[object]", answer)

    def _report_error(self, asked: Asked, error: Exception) -> None:
        if isinstance(error, SummariserError):
            self._findings.require(
                asked.is_odd,
                "refuses",
                expected="an answer to a valid request",
                seen=f"{describe_error(error)} ({asked.name})",
                advice="See that the model can be reached (key, address, limits) while it is checked.",
            )
            return
        self._findings.add(
            "raises",
            expected="an answer, or SummariserError(reason, message)",
            seen=f"{describe_error(error)} ({asked.name})",
            advice=_RAISING,
        )

    def _blocks(self, asked: Asked, seconds: float) -> None:
        """Call again before reporting, because a busy machine blocks the event loop as well."""
        for _ in range(REPEATED_CALLS):
            if seconds <= LONGEST_BLOCK:
                break
            again = self._loop.run(self._watch_call(deepcopy(asked.request)), self._timeout)
            seconds = min(seconds, again.longest_block)
        self._findings.require(
            seconds <= LONGEST_BLOCK,
            "blocks",
            expected="a call that lets others run in the loop while it works",
            seen=f"the event loop was blocked for {seconds:.2f} s ({asked.name})",
            advice=_UNBLOCKING,
        )

    def _compare(self) -> None:
        names = (ORDINARY, ANOTHER, REPEATED)
        self._judge.compare(list(self._drafts.values()))
        if all(name in self._drafts for name in names):
            one, _, again = (self._drafts[name][1] for name in names)
            self._judge.fingerprints(one, again)

    def _run_in_parallel(self) -> None:
        by_name = {asked.name: asked for asked in asked_in_order()}
        pair = [by_name[ANOTHER], by_name[REPEATED]]

        async def both() -> Sequence[Watched]:
            calls = (watch(self._call(deepcopy(asked.request))) for asked in pair)
            return await asyncio.gather(*calls)

        with self._findings.probe("two requests at once", advice=_RAISING):
            for asked, done in zip(pair, self._loop.run(both(), 2 * self._timeout), strict=True):
                named = asked._replace(name=f"{asked.name}, two requests at once")
                if done.error is not None:
                    self._report_error(named, done.error)
                elif (draft := self._judge.draft(named, done.value)) is not None:
                    self._judge.judge(named, draft)

    def _cancelling(self) -> None:
        for after in (0.0, 0.05):
            call = cancel(self._call(ordinary()), after, PATIENCE)
            with self._findings.probe("a call that is cancelled", advice=_CANCELLING):
                done = self._loop.run(call, self._timeout + PATIENCE)
                if not done.was_running:
                    continue
                self._findings.require(
                    done.has_ended,
                    "cancel",
                    expected="a call that ends when it is cancelled",
                    seen=f"it still ran {PATIENCE:g} s later",
                    advice=_CANCELLING,
                )
                self._findings.require(
                    not done.was_swallowed,
                    "cancel",
                    expected="CancelledError, which leaves the call",
                    seen="it went on to an answer or to another error",
                    advice=_CANCELLING,
                )

    def _bounds(self) -> None:
        """Check `window` and `measure`, if it has them."""
        has = [name for name in ("window", "measure") if hasattr(self._summariser, name)]
        if not has or not isinstance(self._summariser, BoundedSummariser):
            self._findings.require(
                not has,
                "window",
                expected="`window` and `measure(request)`, both or neither",
                seen=f"{has[0] if has else ''} alone",
                advice="Add the other one: requests are cut to fit only where both are there.",
            )
            return
        with self._findings.probe("window and measure", advice=_MEASURING):
            window: object = self._summariser.window
            self._findings.require(
                type(window) is int and window > 0,
                "window",
                expected="window: a whole number of tokens, over 0",
                seen=show_value(window),
                advice="Return the context window of the model that is asked.",
            )
            self._measures(self._summariser)

    def _measures(self, summariser: BoundedSummariser) -> None:
        plain, given = ordinary(), ordinary()
        size: object = summariser.measure(given)
        more = ordinary(limit_tokens=plain.limit_tokens + 500)
        fewer = replace(plain, messages=plain.messages[:6])
        sizes = [summariser.measure(request) for request in (fewer, plain, more, plain)]
        self._findings.require(
            all(type(one) is int and one > 0 for one in (size, *sizes)),
            "measure",
            expected="measure(request): a whole number of tokens, over 0",
            seen=show_value(size),
            advice=_MEASURING,
        )
        self._findings.require(
            sizes[0] < sizes[1] < sizes[2] and sizes[1] == sizes[3] and sizes[1] >= 1_200,
            "measure",
            expected="more for more messages and a higher limit, the same for the same request, and "
            "the room of the answer included",
            seen=f"{sizes[0]} for 6 messages, {sizes[1]} for 24, {sizes[2]} with a limit that is 500 "
            f"higher, {sizes[3]} for 24 again",
            advice=_MEASURING,
        )
        self._findings.require(
            given == plain,
            "mutates",
            expected="an unchanged request",
            seen="another one after measure(request)",
            advice="Copy the blocks that you change: they are those of the conversation.",
        )

    def _models(self) -> None:
        if not isinstance(self._summariser, ModelSummariser):
            return
        with self._findings.probe("for_models", advice="Return a summariser."):
            other: object = self._summariser.for_models(None, "claude-opus-5-5")
            self._findings.require(
                callable(getattr(other, "summarise", None)),
                "for_models",
                expected="for_models(asked, answering): a summariser",
                seen=show_value(other),
                advice="Return self where there is nothing to choose.",
            )

    def _notes(self) -> None:
        take = note_taking(self._summariser)
        if take is None:
            return
        request = NotesRequest(messages=another().messages, most=5)
        with self._findings.probe("notes", advice=_RAISING):
            done = self._loop.run(watch(_call_for_notes(take, request)), self._timeout)
            if done.error is not None:
                self._report_error(Asked("notes", another()), done.error)
                return
            self._findings.require(
                isinstance(done.value, NotesDraft),
                "notes",
                expected="take_notes(request): a refold.NotesDraft",
                seen=show_value(done.value),
                advice="Return NotesDraft(notes=(), …) where there is nothing to save.",
            )


async def _call_for_notes(
    take: Callable[[NotesRequest], Awaitable[object]], request: NotesRequest
) -> object:
    return await take(request)


_RAISING = "Catch what your code and its client raise, and raise refold.SummariserError from it."
_UNBLOCKING = "Await the call of an asynchronous client, or put what blocks into asyncio.to_thread."
_CANCELLING = "Let CancelledError pass: `except Exception` does, a bare `except` does not."
_MEASURING = "Count the whole prompt that would be sent, and add request.limit_tokens."
