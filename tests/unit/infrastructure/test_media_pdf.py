"""The pages of a PDF are counted, also inside compressed object streams."""

import base64
import zlib

import pytest

from refold.domain.messages import Message
from refold.infrastructure.tokens.estimator import MESSAGE_FRAME, EstimatingTokenCounter
from refold.infrastructure.tokens.media import MOST_PAGES, PAGE, pages_of


def plain(pages: int) -> bytes:
    leaves = b"".join(
        b"%d 0 obj\n<< /Type /Page /Parent 2 0 R >>\nendobj\n" % n for n in range(pages)
    )
    root = b"2 0 obj\n<</Type/Pages/Kids[]/Count %d>>\nendobj\n" % pages
    return b"%PDF-1.4\n" + root + leaves + b"%%EOF"


def packed(pages: int) -> bytes:
    inside = zlib.compress(b"<</Type/Page/Parent 2 0 R>>" * pages + b"<</Type /Pages /Count 9>>")
    stream = b"<</Type/ObjStm/N %d/Filter/FlateDecode/Length %d>>\nstream\r\n" % (
        pages,
        len(inside),
    )
    return b"%PDF-1.5\n1 0 obj\n" + stream + inside + b"\nendstream\nendobj\n%%EOF"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def cost(data: str) -> int:
    block = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": data},
    }
    message = Message(role="user", content=(block,))
    return EstimatingTokenCounter().count_message(message).total - MESSAGE_FRAME


@pytest.mark.parametrize("pages", [1, 10, 600])
def test_pages_are_counted_plain_and_packed(pages: int) -> None:
    assert pages_of(encoded(plain(pages))) == pages
    assert pages_of(encoded(packed(pages))) == pages
    assert cost(encoded(packed(pages))) == pages * PAGE


def test_two_object_streams_count_together() -> None:
    assert pages_of(encoded(packed(3) + packed(4))) == 7


def test_where_no_page_can_be_read_the_tree_of_pages_says_how_many() -> None:
    hidden = b"%PDF-1.5\n<</Type/Pages/Count 12/Kids[1 0 R]>>\n%%EOF"
    assert pages_of(encoded(hidden)) == 12
    assert pages_of(encoded(hidden.replace(b"12", b"999999"))) == MOST_PAGES


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no document",
        b"%PDF-1.7 nothing in it",
        packed(3).replace(b"FlateDecode", b"LZWDecode")[:90] + b"\x00" * 40,
    ],
)
def test_a_file_that_says_nothing_costs_by_its_bytes(data: bytes) -> None:
    assert pages_of(encoded(data)) is None
    assert cost(encoded(data + b"\x00" * 300_000)) > 10_000


def test_what_is_no_base64_costs_by_its_length() -> None:
    assert pages_of("A" * 5 + "é") is None
    assert cost("A") == 1_500
