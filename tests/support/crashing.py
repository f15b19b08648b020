"""A summariser in whose middle the process dies: nothing is recorded after the request."""

from refold.application.ports import SummaryDraft, SummaryRequest


class Death(BaseException):
    """Not an ``Exception``: nobody handles the end of a process."""


class CrashingSummariser:
    """Never answers."""

    name = "crashing"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        del request
        raise Death
