"""Summarisers for stories that the answering fakes cannot tell: death, and many words for little."""

from refold.application.ports import SummaryDraft, SummaryRequest


class Death(BaseException):
    """Not an ``Exception``: nobody handles the end of a process."""


class CrashingSummariser:
    """The process dies while it works: nothing is recorded after the request."""

    name = "crashing"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        del request
        raise Death


class WordySummariser:
    """Always about a hundred tokens: good for much, no gain for a little."""

    name = "wordy"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        covered = f"Covers {len(request.messages)} more messages. "
        return SummaryDraft(
            text=covered + "The user asked for a fix, and the tests were run again. " * 6,
            complete=True,
            model=self.name,
            prompt_fingerprint="fake-wordy",
        )
