"""An image costs by its width and height, read from the header of each format."""

import base64
import struct
import zlib
from collections.abc import Callable

import pytest

from refold.domain.messages import Message
from refold.infrastructure.tokens.estimator import (
    HIGH_RESOLUTION_IMAGE,
    MESSAGE_FRAME,
    EstimatingTokenCounter,
)
from refold.infrastructure.tokens.media import Pixels, pixels_of


def png(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", len(header) - 4) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk + b"\x00" * 50


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00" * 50


def jpeg(width: int, height: int) -> bytes:
    exif = b"\xff\xe1" + struct.pack(">H", 60_002) + b"\xc0" * 60_000
    tables = b"\xff\xc4" + struct.pack(">H", 22) + b"\x00" * 20
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\x00" * 9
    return b"\xff\xd8" + exif + b"\xff" + tables + frame + b"\xff\xda" + b"\x00" * 50


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 100) + b"WEBP" + kind + struct.pack("<I", 60) + body


def lossy(width: int, height: int) -> bytes:
    frame = b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", width, height)
    return webp(b"VP8 ", frame + b"\x00" * 50)


def lossless(width: int, height: int) -> bytes:
    bits = (width - 1) | (height - 1) << 14
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", bits) + b"\x00" * 50)


def extended(width: int, height: int) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return webp(b"VP8X", b"\x10\x00\x00\x00" + size + b"\x00" * 50)


FORMATS = [png, gif, jpeg, lossy, lossless, extended]


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def cost(data: str, **settings: int) -> int:
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    message = Message(role="user", content=(block,))
    return EstimatingTokenCounter(**settings).count_message(message).total - MESSAGE_FRAME


@pytest.mark.parametrize("made", FORMATS)
@pytest.mark.parametrize("size", [(1, 1), (1092, 1092), (640, 480), (8000, 20)])
def test_the_size_is_read_from_every_format(
    made: Callable[[int, int], bytes], size: tuple[int, int]
) -> None:
    assert pixels_of(encoded(made(*size))) == Pixels(*size)


def test_an_image_costs_the_same_in_any_encoding() -> None:
    assert {cost(encoded(made(1000, 600))) for made in FORMATS} == {800}


def test_an_image_costs_by_its_pixels_up_to_what_the_model_scales_it_to() -> None:
    assert cost(encoded(png(750, 2))) == 2
    assert cost(encoded(png(10, 10))) == 1
    assert cost(encoded(png(8000, 8000))) == HIGH_RESOLUTION_IMAGE
    assert cost(encoded(png(8000, 8000)), image_tokens=1_600) == 1_600


@pytest.mark.parametrize(
    "data",
    [
        "",
        "A",
        "é" * 100,
        encoded(png(0, 10)),
        encoded(png(10, 10)[:18]),
        encoded(jpeg(10, 10)[:60_020]),
        encoded(b"\xff\xd8" + b"\xff" * 5_000),
        encoded(webp(b"VP8L", b"\x00" * 3)),
        encoded(b"%PDF-1.7 " * 10),
    ],
)
def test_an_image_that_says_no_size_costs_the_most(data: str) -> None:
    assert pixels_of(data) is None
    assert cost(data) == HIGH_RESOLUTION_IMAGE
