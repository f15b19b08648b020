"""Asking a summariser: every answer is judged, a refused one asked for again, every call counted."""

from collections.abc import Callable

from refold.application.containing import Contained
from refold.application.errors import SummariserError
from refold.application.ports import Summariser, SummaryDraft, SummaryRequest, is_by_code
from refold.domain.judging import SummaryRefused
from refold.domain.policy import CompactionPolicy

_ABOUT_THE_ANSWER = frozenset({"truncated", "empty", "bad_answer"})
"""Reasons of a summariser's own that another answer may mend."""


class Asking:
    """The calls of one compaction: at most ``most_calls``, ``repairs`` of them for refused answers."""

    def __init__(self, summariser: Summariser, policy: CompactionPolicy) -> None:
        self._summariser = summariser
        self._repairs = policy.repairs
        self._most = policy.most_calls
        self.calls = 0
        """How often the summariser was asked."""
        self.retries = 0
        """How often it tried again by itself."""

    @property
    def model_calls(self) -> int:
        """All calls of a model together; none where code alone is asked."""
        return 0 if self.is_by_code else self.calls + self.retries

    @property
    def is_by_code(self) -> bool:
        """Whether no model is asked."""
        return is_by_code(self._summariser)

    def needs(self, calls: int) -> None:
        """Refuse before the first of so many calls what cannot come to an end.

        Raises:
            SummariserError: ``too_many_calls``.
        """
        if self.calls + calls > self._most:
            raise SummariserError(
                "too_many_calls",
                f"{self.calls + calls} calls would be needed, {self._most} are allowed (most_calls): "
                "use a summariser with a larger window",
            )

    async def ask(
        self, request: SummaryRequest, judge: Callable[[SummaryDraft], None]
    ) -> SummaryDraft:
        """An answer that ``judge`` accepts.

        Raises:
            SummaryRefused: the last answer was not fit.
            SummariserError: there was none.
        """
        while True:
            try:
                draft = await self._once(request)
                judge(draft)
                return draft
            except (SummaryRefused, SummariserError) as refusal:
                if isinstance(refusal, SummariserError) and refusal.reason not in _ABOUT_THE_ANSWER:
                    raise
                if self._repairs == 0:
                    raise
                self._repairs -= 1
                request = request.replaced(repair=str(refusal))

    async def _once(self, request: SummaryRequest) -> SummaryDraft:
        self.needs(1)
        self.calls += 1
        try:
            with Contained():
                draft = await self._summariser.summarise(request)
        except SummariserError as error:
            self.retries += max(0, error.attempts - 1)
            raise
        self.retries += max(0, draft.attempts - 1)
        return draft
