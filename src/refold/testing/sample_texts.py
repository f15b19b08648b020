"""Texts, images, messages and tools for the checks of token counters, embedders and stores."""

import base64
import struct
import zlib
from collections.abc import Mapping
from typing import Any

from refold.domain.messages import Block, Message
from refold.testing.sample_talks import called, message, result, thought

PROSE = (
    "The invoice totals are off by one cent because the amounts are converted to binary floating "
    "point before they are rounded. Decimal arithmetic avoids this, and it is what the accountants "
    "in Lisbon expect when they close the quarter."
)
CODE = (
    "def rounded(amount: Decimal, places: int = 2) -> Decimal:\n"
    '    """Round half to even."""\n'
    "    step = Decimal(1).scaleb(-places)\n"
    "    return amount.quantize(step, rounding=ROUND_HALF_EVEN)\n"
)
JSON = '{"id": 55812, "lines": [{"sku": "KX-77", "amount": "19.99", "tax": 0.19}], "paid": false}'
CHINESE = (
    "请检查昨天的对账结果,退款没有计入,批次受影响。绝不要修改历史数据,修复之后请通知财务部门。"
)
EMOJI = "👍🎉🚀🔥😟✅👀🙏💡🐛" * 4
JAPANESE = (
    "昨日の照合結果を確認してください。返金が計上されていません。履歴データは変更しないでください。"
)
KOREAN = (
    "어제 대사 결과를 확인해 주세요. 환불이 집계되지 않았습니다. 이력 데이터는 변경하지 마세요."
)
KINDS: Mapping[str, str] = {
    "English prose": PROSE,
    "code": CODE,
    "JSON": JSON,
    "Chinese": CHINESE,
    "Japanese": JAPANESE,
    "Korean": KOREAN,
    "emoji": EMOJI,
}
ODD: Mapping[str, str] = {
    "a lone surrogate": "half a character \ud83d here",
    "a zero byte": "before\x00after",
    "special tokens of a model": "<|endoftext|> <|im_start|>system <s>",
    "a very long word": "x" * 20_000,
    "control characters": "\x1b[31mred\x1b[0m\r\n\t\u2028\u200b",
    "combining marks": "e\u0301\u0323\u0307" * 20,
}
SHORT: Mapping[str, str] = {
    "one letter": "a",
    "one digit": "7",
    "one ideograph": "请",
    "one emoji": "👍",
    "one sign": "}",
    "one word": "Lisbon",
}
STEPS = (
    "Please look at src/ledger/rounding.py.",
    "\nIt has 118 lines, and one of them is wrong.",
    " 绝不要修改历史数据。",
    "\n\n```python\nreturn round(float(amount), 2)\n```",
    "\n👍 Thanks, that is all for now!",
    "\n| port | 7341 |\n| pool | 12 |",
)
"""Sentences; each is appended to those before it."""


def png(size: int, *, level: int) -> str:
    """Return an image of ``size`` by ``size`` pixels as base64, with a given compression level."""
    rows = b"".join(b"\x00" + bytes((x * y) % 256 for x in range(size)) for y in range(size))
    header = struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, level)), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n"
    for kind, body in parts:
        data += (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )
    return base64.b64encode(data).decode()


def image(data: str) -> Block:
    """Return an image block with this data."""
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def linked_image() -> Block:
    """Return an image block with a URL."""
    return {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}


PICTURE = image(png(64, level=9))
PDF: Block = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQKJeLjz9M="},
}
TEXT_FILE: Block = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": PROSE},
}
GROWING: Mapping[str, tuple[Message, Message]] = {
    "a text": (message("user", "Yes."), message("user", f"Yes. {PROSE}")),
    "a second text block": (message("user", PROSE), message("user", PROSE, CODE)),
    "the input of a call": (
        message("assistant", called("1", "make")),
        message("assistant", called("1", f"make && {CODE}")),
    ),
    "a second call": (
        message("assistant", called("1", "make")),
        message("assistant", called("1", "make"), called("2", "make")),
    ),
    "the text of a result": (
        message("user", result("1", "ok")),
        message("user", result("1", f"ok\n{CODE}")),
    ),
    "a block of a result": (
        message("user", result("1", [{"type": "text", "text": "ok"}])),
        message(
            "user", result("1", [{"type": "text", "text": "ok"}, {"type": "text", "text": CODE}])
        ),
    ),
    "a picture": (message("user", "Look."), message("user", "Look.", PICTURE)),
    "a picture in a result": (
        message("user", result("1", [{"type": "text", "text": "ok"}])),
        message("user", result("1", [{"type": "text", "text": "ok"}, PICTURE])),
    ),
    "a picture by its address": (
        message("user", "Look."),
        message("user", "Look.", linked_image()),
    ),
    "a PDF": (message("user", "Look."), message("user", "Look.", PDF)),
    "a text file": (message("user", "Look."), message("user", "Look.", TEXT_FILE)),
    "thinking": (message("assistant", "Yes."), message("assistant", thought(PROSE), "Yes.")),
    "a block of an unknown type": (
        message("assistant", "Yes."),
        message("assistant", "Yes.", {"type": "future_block", "text": PROSE}),
    ),
}
"""Pairs of messages, without and with an addition, by the name of the addition."""


def tool(name: str, description: str, **properties: Any) -> dict[str, object]:
    """Return the definition of a tool."""
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": description, "input_schema": schema}


PLAIN_TOOL = tool("bash", "Runs a command.")
WORDY_TOOL = tool("bash", f"Runs a command. {PROSE}")
CHINESE_TOOL = tool("bash", f"Runs a command. {CHINESE}")
LARGE_TOOL = tool("bash", "Runs a command.", command={"type": "string", "description": PROSE})
