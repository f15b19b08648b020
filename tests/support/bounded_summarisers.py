"""Summarisers for tests with a window of their own, that drop what they were told, or that learn."""

import math
import re

from refold.application.errors import SummariserError
from refold.application.ports.summariser import Summariser, SummaryDraft, SummaryRequest

from .fake_summarisers import GoodSummariser, RecordingSummariser, source_text


def draft_of(text: str, **more: object) -> SummaryDraft:
    return SummaryDraft.model_validate(
        {"text": text, "complete": True, "model": "fake", "prompt_fingerprint": "fake", **more}
    )


class Bounded(RecordingSummariser):
    """Measures a quarter of a token for each character, 20 more for the instructions, and the answer;
    refuses a request over its window as a provider does.
    """

    def __init__(self, window: int, inner: Summariser | None = None) -> None:
        super().__init__(inner or GoodSummariser())
        self.window = window

    def measure(self, request: SummaryRequest) -> int:
        given = (request.previous, request.focus, request.ledger, request.repair)
        words = source_text(request) + "".join(text or "" for text in given)
        inputs = sum(
            len(str(block.get("input", "")))
            for source in request.messages
            for block in source.message.blocks()
        )
        frames = 5 * len(request.messages)
        return math.ceil((len(words) + inputs) / 4) + frames + 20 + request.limit_tokens

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        draft = await super().summarise(request)
        if self.measure(request) > self.window:
            raise SummariserError("too_large", "the prompt is too long")
        return draft


class Stubborn:
    """Says that the prompt is too long while it has more than so many messages; has no window."""

    name = "stubborn"

    def __init__(self, most: int) -> None:
        self.most = most
        self.requests: list[SummaryRequest] = []

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        self.requests.append(request)
        if len(request.messages) > self.most:
            raise SummariserError("too_large", "the prompt is too long")
        return await GoodSummariser().summarise(request)


class Scripted:
    """Gives these answers in a row, then the last one for ever; an error is raised."""

    name = "scripted"

    def __init__(self, *answers: SummaryDraft | Exception | str) -> None:
        self.answers = list(answers)
        self.requests: list[SummaryRequest] = []

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        at = min(len(self.requests), len(self.answers) - 1)
        self.requests.append(request)
        answer = self.answers[at]
        if isinstance(answer, Exception):
            raise answer
        return draft_of(answer) if isinstance(answer, str) else answer


class Forgetful:
    """As models do: keeps the last words of what it carries on, and drops the rest; prose only."""

    name = "forgetful"

    def __init__(self) -> None:
        self.requests: list[SummaryRequest] = []

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        self.requests.append(request)
        carried = re.findall(r"\w+", request.previous or "")[-5:]
        return draft_of(f"They went on with it. {len(request.messages)} more. " + " ".join(carried))


class Attentive:
    """Repeats every fact, written ``fact-17``, that stands in what it is given; says nothing else."""

    name = "attentive"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        given = f"{request.previous or ''}\n{source_text(request)}"
        facts = dict.fromkeys(re.findall(r"fact-\d+", given))
        return draft_of("Known: " + (" ".join(facts) or "nothing"))
