"""A wrapper that watches the user's own summariser in a conversation under test."""

import asyncio
import inspect
from collections.abc import Awaitable
from copy import deepcopy
from typing import cast

from refold.application.errors import SummariserError
from refold.application.ports.summariser import Summariser, SummaryDraft, SummaryRequest, is_by_code
from refold.application.summaries.summariser_calls import relay
from refold.domain.compaction.summary_rules import SummaryRefused, judge_text
from refold.testing.findings import Finding, describe_error, show_value


class Watch:
    """A record of the errors of a summariser. ``summariser`` is the watched wrapper to use instead."""

    def __init__(self, behind: Summariser) -> None:
        self.found: list[Finding] = []
        self.summariser: Summariser = relay(behind, self._ask)

    async def _ask(self, behind: Summariser, request: SummaryRequest) -> SummaryDraft:
        given = deepcopy(request)
        try:
            answer: object = behind.summarise(given)
            if inspect.isawaitable(answer):
                answer = await cast("Awaitable[object]", answer)
            else:
                self._add("async", "`async def summarise`", type(answer).__name__)
        except (SummariserError, asyncio.CancelledError):
            raise
        except BaseException as error:
            self._add("raises", "an answer, or SummariserError", describe_error(error))
            raise
        if given != request:
            self._add("mutates", "an unchanged request", "another one")
        if isinstance(answer, SummaryDraft):
            self._judge(answer, by_code=is_by_code(behind))
        else:
            self._add("type", "a refold.SummaryDraft", show_value(answer))
        return cast("SummaryDraft", answer)

    def _judge(self, draft: SummaryDraft, *, by_code: bool) -> None:
        if not draft.complete:
            return  # Its own text says that this is not a summary.
        try:
            judge_text(draft.text, complete=True, required=draft.required, by_code=by_code)
        except SummaryRefused as refusal:
            self._add(
                refusal.reason, "a text that refold accepts", f"{refusal}: {show_value(draft.text)}"
            )

    def _add(self, rule: str, expected: str, seen: str) -> None:
        advice = "Run check_summariser on it: it reports more and is faster."
        self.found.append(Finding(f"summariser: {rule}", expected, seen, advice))
