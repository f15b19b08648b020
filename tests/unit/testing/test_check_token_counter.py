"""``check_token_counter`` finds each way in which a counter can be broken, and passes good ones."""

import json
import math
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from refold import Message, TokenCount
from refold.domain.value import replace
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.testing.findings import CheckFailed
from refold.testing.token_counter_checks import check_token_counter

Tools = tuple[dict[str, object], ...]


class Good(EstimatingTokenCounter):
    """The built-in one, to be broken."""


class Quarters(Good):
    def count_text(self, text: str) -> Any:
        return len(text) / 4


class Latin(Good):
    def count_text(self, text: str) -> int:
        return math.ceil(len(text) / 4)


class Words(Good):
    def count_text(self, text: str) -> int:
        return len(text.split())


class AsciiAlone(Good):
    def count_text(self, text: str) -> int:
        return super().count_text(text.encode("ascii", "ignore").decode())


class Negative(Good):
    def count_text(self, text: str) -> int:
        return super().count_text(text) - 3


class Nothing(Good):
    def count_text(self, text: str) -> int:
        return 0


class Floored(Good):
    def count_text(self, text: str) -> int:
        return super().count_text(text) * 9 // 10 if len(text) > 3 else 0


class WithFrame(Good):
    def count_text(self, text: str) -> int:
        return super().count_text(text) + 4


class Bytes(Good):
    def count_text(self, text: str) -> int:
        return len(text.encode("utf-8", "surrogatepass"))


class Capped(Good):
    def count_text(self, text: str) -> int:
        return min(super().count_text(text), 500)


class Squared(Good):
    def count_text(self, text: str) -> int:
        return super().count_text(text) * (1 + len(text) // 1_000)


class Random(Good):
    def count_text(self, text: str) -> int:
        return super().count_text(text) + random.randrange(2)


class Learning(Good):
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def count_text(self, text: str) -> int:
        self.seen += 1
        return super().count_text(text) + (self.seen // 500 if text else 0)


class Shared(Good):
    """Keeps the text where another thread finds it."""

    text = ""

    def count_text(self, text: str) -> int:
        self.text = text
        time.sleep(0.00001) if threading.active_count() > 1 else None
        return super().count_text(self.text)


class Lowering(Good):
    """Takes code for free."""

    def count_text(self, text: str) -> int:
        return max(0, super().count_text(text) - 12 * text.count("```"))


class ByLastScript(Good):
    def count_text(self, text: str) -> int:
        weight = 2 if text and ord(text[-1]) > 0x2000 else 1
        return super().count_text(text) * weight


class Slow(Good):
    def count_text(self, text: str) -> int:
        time.sleep(0.005 if len(text) > 1_000 else 0)
        return super().count_text(text)


class Strict(Good):
    def count_text(self, text: str) -> int:
        text.encode()
        return super().count_text(text)


class Special(Good):
    def count_text(self, text: str) -> int:
        if "<|endoftext|>" in text:
            raise ValueError("disallowed special token")
        return super().count_text(text)


class Asynchronous(Good):
    async def count_text(self, text: str) -> int:  # type: ignore[override]
        return super().count_text(text)


class Number(Good):
    def count_message(self, message: Message) -> Any:
        return super().count_message(message).total


class Counted(Good):
    """Counts the parts of a message that ``parts`` gives as texts."""

    def count_message(self, message: Message) -> TokenCount:
        total = 5 + sum(map(self.count_text, self.parts(message)))
        return TokenCount(total=total, thinking=super().count_message(message).thinking)

    def parts(self, message: Message) -> list[str]:
        raise NotImplementedError


class TextsAlone(Counted):
    def parts(self, message: Message) -> list[str]:
        return [str(block.get("text", "")) for block in message.blocks()]


class Dumped(Counted):
    """Counts the base64 of pictures."""

    def parts(self, message: Message) -> list[str]:
        return [json.dumps(block) for block in message.blocks()]


class Frameless(Good):
    def count_message(self, message: Message) -> TokenCount:
        if isinstance(message.content, str):
            return TokenCount(total=self.count_text(message.content))
        return super().count_message(message)


class Stringless(Good):
    def count_message(self, message: Message) -> TokenCount:
        extra = 60 if isinstance(message.content, str) else 0
        counted = super().count_message(message)
        return replace(counted, total=counted.total + extra)


class FreePictures(Good):
    def count_message(self, message: Message) -> TokenCount:
        blocks = tuple(b for b in message.blocks() if b.get("type") != "image")
        return super().count_message(replace(message, content=blocks))


class FreeResults(Good):
    def count_message(self, message: Message) -> TokenCount:
        results = [b for b in message.blocks() if b.get("type") == "tool_result"]
        return TokenCount(total=9) if results else super().count_message(message)


class NoThinking(Good):
    def count_message(self, message: Message) -> TokenCount:
        return TokenCount(total=super().count_message(message).total)


class Metadata(Good):
    def count_message(self, message: Message) -> TokenCount:
        counted = super().count_message(message)
        return replace(counted, total=counted.total + len(str(message.extra or "")))


class Mutating(Good):
    def count_message(self, message: Message) -> TokenCount:
        for block in message.blocks():
            block.pop("signature", None)
            block.setdefault("counted", True)
        return super().count_message(message)


class FreeTools(Good):
    def count_tools(self, tools: Tools) -> int:
        return 0


class OneTool(Good):
    def count_tools(self, tools: Tools) -> int:
        return super().count_tools(tools[:1])


class ByName(Good):
    def count_tools(self, tools: Tools) -> int:
        return sum(self.count_text(str(tool["name"])) for tool in tools)


class ToolsWithoutTools(Good):
    def count_tools(self, tools: Tools) -> int:
        return super().count_tools(tools) or 300


class BlockingRequest(Good):
    def count_request(self, **request: object) -> int:
        return 5


BROKEN: list[tuple[Callable[[], Any], str]] = [
    (object, "methods"),
    (Quarters, "type"),
    (Asynchronous, "type"),
    (Number, "type"),
    (Negative, "negative"),
    (Nothing, "zero"),
    (Floored, "zero"),
    (WithFrame, "empty"),
    (Latin, "too_low"),
    (Words, "too_low"),
    (AsciiAlone, "zero"),
    (Bytes, "too_high"),
    (Capped, "growth"),
    (Squared, "growth"),
    (Random, "deterministic"),
    (Learning, "deterministic"),
    (Shared, "deterministic"),
    (Lowering, "monotone"),
    (ByLastScript, "additive"),
    (Slow, "slow"),
    (Strict, "raises"),
    (Special, "raises"),
    (TextsAlone, "ignores"),
    (FreePictures, "ignores"),
    (FreeResults, "ignores"),
    (Dumped, "pictures"),
    (Frameless, "frame"),
    (Stringless, "forms"),
    (NoThinking, "thinking"),
    (Metadata, "unsent"),
    (Mutating, "mutates"),
    (FreeTools, "tools"),
    (OneTool, "tools"),
    (ByName, "tools"),
    (ToolsWithoutTools, "tools"),
    (BlockingRequest, "count_request"),
]


@pytest.mark.parametrize(("make", "rule"), BROKEN, ids=lambda case: getattr(case, "__name__", case))
def test_what_is_broken_is_found(make: Callable[[], Any], rule: str) -> None:
    with pytest.raises(CheckFailed) as failed:
        check_token_counter(make())
    assert rule in failed.value.rules, str(failed.value)


def test_the_built_in_one_passes() -> None:
    assert "pictures" in check_token_counter(EstimatingTokenCounter()).probes
