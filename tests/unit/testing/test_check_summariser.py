"""``check_summariser`` finds each way in which a summariser can be broken, and passes good ones."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest

from refold import SummaryDraft as Draft
from refold import SummaryRequest as Request
from refold.application.ports.summariser import NotesDraft, NotesRequest
from refold.domain.messages import text_of
from refold.domain.value import replace
from refold.infrastructure.summarisers.extractive.summariser import ExtractiveSummariser
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.testing.findings import CheckFailed
from refold.testing.summariser_checks import check_summariser
from tests.support.fake_summarisers import (
    EchoingSummariser,
    EmptySummariser,
    HeldSummariser,
    LongerThanSourceSummariser,
    RaisingSummariser,
    StubbornSummariser,
    TruncatedSummariser,
)
from tests.support.odd_summarisers import (
    CrashingSummariser,
    ErrorTextSummariser,
    FaultySummariser,
    PartlessSummariser,
    WordySummariser,
)

COUNT = EstimatingTokenCounter().count_text


class Lines:
    """A summariser as a user would write it: the first words of each text, within the limit."""

    name = "lines"

    async def summarise(self, request: Request) -> Draft:
        await asyncio.sleep(0)
        return self.draft(self.lines(request), request)

    def lines(self, request: Request) -> list[str]:
        found = (request.previous or "").splitlines()[:8]
        for source in request.messages:
            blocks = (b for b in source.message.blocks() if b.get("type") == "text")
            if words := " ".join(" ".join(map(text_of, blocks)).split()[:16]).rstrip(":,"):
                found.append(f"[{source.position}] {words}")
        return found

    def draft(self, lines: list[str], request: Request) -> Draft:
        while len(lines) > 1 and COUNT("\n".join(lines)) > request.limit_tokens:
            lines = lines[:-1]
        text = "\n".join(lines) or "Nothing was said."
        return Draft(text=text, complete=True, model="lines-1", prompt_fingerprint="lines-1")


class Changed(Lines):
    """The same with a change to each draft."""

    def change(self, draft: Draft, request: Request) -> object:
        raise NotImplementedError

    async def summarise(self, request: Request) -> Draft:
        return cast("Draft", self.change(await super().summarise(request), request))


class TextAlone(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        return draft.text


class Nothing(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        return None


class Unchecked(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        return replace(draft, complete=cast("bool", "yes"))


class Unnamed(Lines):
    name = ""


class Anonymous(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        return replace(draft, prompt_fingerprint="")


class NeverAsked(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        return replace(draft, attempts=0)


class OtherPrompt(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        return replace(draft, prompt_fingerprint=f"{time.time_ns()}")


class NotAsync(Lines):
    def summarise(self, request: Request) -> Any:
        return self.draft(self.lines(request), request)


class OutOfTokens(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        return replace(draft, stop_reason="max_tokens")


class Dangling(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        return replace(draft, text=f"{draft.text}\nThe next step is to change the three places and")


class CutAnywhere(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        words = "\n".join(super().lines(request))
        return replace(draft, text=words[: 3 * request.limit_tokens])


class OverTheLimit(Lines):
    def draft(self, lines: list[str], request: Request) -> Draft:
        return super().draft(lines, replace(request, limit_tokens=1 << 20))


class OverASmallLimit(Lines):
    def draft(self, lines: list[str], request: Request) -> Draft:
        return super().draft(lines, replace(request, limit_tokens=max(800, request.limit_tokens)))


class Blocking(Lines):
    async def summarise(self, request: Request) -> Draft:
        time.sleep(0.2)
        return await super().summarise(request)


class BlockingForEver(Lines):
    def __init__(self) -> None:
        self.gate = threading.Event()

    async def summarise(self, request: Request) -> Draft:
        self.gate.wait(2.5)
        return await super().summarise(request)


class Mutating(Lines):
    async def summarise(self, request: Request) -> Draft:
        draft = await super().summarise(request)
        for source in request.messages:
            for block in source.message.blocks():
                block.pop("cache_control", None)
                block["text"] = text_of(block)[:100]
        return draft


class Swallowing(Lines):
    async def summarise(self, request: Request) -> Draft:
        with suppress(BaseException):
            await asyncio.sleep(0.01)
        return await super().summarise(request)


class GoingOn(Lines):
    async def summarise(self, request: Request) -> Draft:
        for _ in range(250):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
            if request.focus or request.part == "turn_prefix" or not self.is_cancelling():
                break
        return await super().summarise(request)

    def is_cancelling(self) -> bool:
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0


class Forgetful(Lines):
    def lines(self, request: Request) -> list[str]:
        return super().lines(replace(request, previous=None))


class Appending(Lines):
    def draft(self, lines: list[str], request: Request) -> Draft:
        draft = super().draft(lines, request)
        return replace(draft, text=f"{request.previous or ''}\n{draft.text}".strip())


class Doubling(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        return replace(draft, text=f"{draft.text}\n{draft.text}")


class Constant(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        return replace(draft, text="INV-55812 and the greenhouse in Marseille were spoken about.")


class Polite(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        return replace(
            draft, text=f"A helpful talk of {len(request.messages)} messages took place."
        )


class Thinking(Lines):
    def lines(self, request: Request) -> list[str]:
        thoughts = [
            str(block["thinking"])
            for source in request.messages
            for block in source.message.blocks()
            if "thinking" in block
        ]
        return [*dict.fromkeys(thoughts), *super().lines(request)]


class Dumping(Lines):
    """Takes the whole block for its text."""

    def lines(self, request: Request) -> list[str]:
        blocks = (block for s in request.messages for block in s.message.blocks())
        return [*super().lines(request)[:9], *(str(b) for b in blocks if b["type"] == "thinking")]


class Telling(Lines):
    """Keeps what tools printed, passwords included."""

    def lines(self, request: Request) -> list[str]:
        blocks = (block for s in request.messages for block in s.message.blocks())
        printed = [line for b in blocks for line in text_of(b).splitlines() if "password" in line]
        return [*printed, *super().lines(request)]


class Remembering(Lines):
    def __init__(self) -> None:
        self.before: list[str] = []

    def lines(self, request: Request) -> list[str]:
        new = super().lines(request)
        lines, self.before = self.before[:2] + new, new
        return lines


class Mixing(Lines):
    """Keeps the request of a call where a second call finds it."""

    async def summarise(self, request: Request) -> Draft:
        self.current = request
        await asyncio.sleep(0.01)
        return self.draft(self.lines(self.current), request)


class Ascii(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        return replace(draft, text=draft.text.encode("ascii", "replace").decode())


class Latin(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        return replace(draft, text=draft.text.encode().decode("latin-1"))


class FirstMessage(Lines):
    """Takes it for granted that there is a message."""

    def lines(self, request: Request) -> list[str]:
        return [f"From {request.messages[0].position} on:", *super().lines(request)]


class TextBlocks(Lines):
    """Takes it for granted that every text block has a text."""

    def lines(self, request: Request) -> list[str]:
        for source in request.messages:
            for block in source.message.blocks():
                block["text"] if block["type"] == "text" else None
        return super().lines(request)


class Exiting(Lines):
    async def summarise(self, request: Request) -> Draft:
        raise SystemExit(3)


class CancellingItself(Lines):
    async def summarise(self, request: Request) -> Draft:
        raise asyncio.CancelledError


class HalfBounded(Lines):
    window = 8_000


class Bounded(Lines):
    window = 8_000

    def measure(self, request: Request) -> int:
        texts = (text_of(b) for s in request.messages for b in s.message.blocks())
        return sum(map(COUNT, texts)) + request.limit_tokens


class WithoutRoom(Bounded):
    def measure(self, request: Request) -> int:
        return super().measure(request) - request.limit_tokens


class ConstantMeasure(Bounded):
    def measure(self, request: Request) -> int:
        return 4_000


class Boundless(Bounded):
    window = 0


class LosingPositions(Changed):
    def change(self, draft: Draft, request: Request) -> object:
        part = {"position": 0, "given": 10, "characters": 900}
        return Draft.model_validate({**dict(draft), "given_in_part": [part]})


class NotingNothing(Lines):
    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        return cast("NotesDraft", None)


BROKEN: list[tuple[Callable[[], Any], str]] = [
    (TextAlone, "type"),
    (Nothing, "type"),
    (Unchecked, "type"),
    (Unnamed, "name"),
    (Anonymous, "names"),
    (NeverAsked, "attempts"),
    (OtherPrompt, "fingerprint"),
    (NotAsync, "async"),
    (object, "summarise"),
    (EmptySummariser, "empty"),
    (TruncatedSummariser, "incomplete"),
    (OutOfTokens, "complete"),
    (Dangling, "cut_off"),
    (CutAnywhere, "cut_off"),
    (OverTheLimit, "limit"),
    (OverASmallLimit, "limit"),
    (EchoingSummariser, "limit"),
    (LongerThanSourceSummariser, "not_smaller"),
    (Blocking, "blocks"),
    (BlockingForEver, "blocks"),
    (HeldSummariser, "timeout"),
    (Mutating, "mutates"),
    (Swallowing, "cancel"),
    (GoingOn, "cancel"),
    (Forgetful, "previous"),
    (Appending, "limit"),
    (Doubling, "repetitive"),
    (WordySummariser, "repetitive"),
    (Constant, "constant"),
    (Polite, "substance"),
    (Thinking, "unreadable"),
    (Dumping, "unreadable"),
    (Telling, "secret"),
    (Remembering, "leak"),
    (Mixing, "leak"),
    (Ascii, "encoding"),
    (Latin, "encoding"),
    (FirstMessage, "raises"),
    (TextBlocks, "raises"),
    (FaultySummariser, "raises"),
    (CrashingSummariser, "raises"),
    (Exiting, "raises"),
    (CancellingItself, "raises"),
    (RaisingSummariser, "refuses"),
    (ErrorTextSummariser, "error_text"),
    (PartlessSummariser, "missing_parts"),
    (HalfBounded, "window"),
    (Boundless, "window"),
    (WithoutRoom, "measure"),
    (ConstantMeasure, "measure"),
    (LosingPositions, "given_in_part"),
    (NotingNothing, "notes"),
]


@pytest.mark.parametrize(("make", "rule"), BROKEN, ids=lambda case: getattr(case, "__name__", case))
def test_what_is_broken_is_found(make: Callable[[], Any], rule: str) -> None:
    with pytest.raises(CheckFailed) as failed:
        check_summariser(make(), timeout=1.0)
    assert rule in failed.value.rules, str(failed.value)


def good() -> list[Any]:
    return [ExtractiveSummariser(EstimatingTokenCounter()), Lines(), Bounded()]


@pytest.mark.parametrize("summariser", good(), ids=lambda s: type(s).__name__)
def test_a_good_one_passes(summariser: Any) -> None:
    report = check_summariser(summariser)
    assert "an ordinary history" in report.probes


def test_what_cannot_be_cancelled_and_never_ends_holds_nothing_up() -> None:
    with pytest.raises(CheckFailed, match="timeout"):
        check_summariser(StubbornSummariser(), timeout=0.5)


def test_a_finding_says_what_was_expected_what_was_seen_and_what_to_do() -> None:
    with pytest.raises(CheckFailed) as failed:
        check_summariser(EmptySummariser())
    said = str(failed.value)
    assert said.startswith("EmptySummariser breaks")
    assert all(word in said for word in ("expected:", "seen:", "to do:"))
