"""A summariser as a model would be: long texts of its own, each with a fact that nothing else says."""

import re

from refold.application.ports.summariser import SummaryDraft, SummaryRequest

FACT = re.compile(r"UNIQUE-FACT-(\d+)")


class FactSummariser:
    """Writes texts of about ``words`` words with ``UNIQUE-FACT-n``, and carries on the facts before.

    ``forgets``: it carries nothing on by itself; what comes back comes from what it is given.
    """

    name = "facts"

    def __init__(self, words: int = 1_500, *, forgets: bool = False) -> None:
        self.words = words
        self.forgets = forgets
        self.requests: list[SummaryRequest] = []

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        self.requests.append(request)
        known = [] if self.forgets else facts_in(request.previous)
        number = len(self.requests)
        facts = " ".join(f"UNIQUE-FACT-{n}" for n in [*known, number])
        detail = " ".join(f"reason{number}x{n} stands" for n in range(self.words // 2))
        return SummaryDraft(
            text=f"## Key Decisions\n{facts}\n\n## Current Status\n{detail}",
            complete=True,
            model="fake-model-1",
            prompt_fingerprint="facts-1",
            stop_reason="end_turn",
        )


def facts_in(text: str | None) -> list[int]:
    """The numbers of the facts that a text holds, in order."""
    return [int(number) for number in FACT.findall(text or "")]
