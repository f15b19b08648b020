"""Tokens found by their neighbourhood equal those of a plain walk over the whole text."""

import re
from itertools import chain
from random import Random
from unicodedata import normalize

from hypothesis import example, given
from hypothesis import strategies as st

from refold.application.recall import tokens
from refold.application.recall.tokens import (
    CJK,
    LONGEST,
    pieces_with,
    tokens_of,
    wanted_in,
)

JOINER = r"(?:_*[-./\\'’]_*|_+|::|,(?=\d{3}(?!\d)))"
LETTERS = rf"[^\W_{CJK}]+"
CHUNK = re.compile(rf"[{CJK}]+|{LETTERS}(?:{JOINER}{LETTERS})*")
WORDS = ["Bc", "09", "123", ",4567", "__", "'s", "::", "Word", "camelCase", "2nd", "x" * LONGEST]
SIGNS = [*"a9,_-./\\’: \n\t\x1c\x85\u3000\u2028¨é²½ǅ中"]
PIECES = st.sampled_from([*WORDS, *SIGNS, "e\u0301", "文カ", "端口"])
TEXTS = st.lists(PIECES | st.text(max_size=5), max_size=40).map("".join)


def chunks_of(text: str) -> list[str]:
    if not text.isascii():
        text = normalize("NFC", re.sub("[\u0300-\u036f]+", "", normalize("NFKD", text)))
    return CHUNK.findall(text)


@given(TEXTS)
@example("1,234,567 and 1,2345 a,123")
@example("a__b-_c d..e f::g h:i _j_ k_")
@example("x" * 70 + "/y z" + "中" * 70)
@example("don't Anna’s 5's rock'n'roll'")
def test_tokens_are_those_of_each_chunk_in_order(text: str) -> None:
    of_chunk, of_long = tokens._tokens_of_chunk, tokens._tokens_of_long  # pyright: ignore[reportPrivateUsage]
    plain = [
        token
        for chunk in chunks_of(text)
        for token in (of_chunk(chunk) if len(chunk) <= LONGEST else of_long(chunk))
    ]
    assert tokens_of(text) == plain
    assert "" not in tokens_of(text)


@given(TEXTS)
def test_tokens_are_the_same_when_they_are_known(text: str) -> None:
    assert tokens_of(text) == tokens_of(text)


@given(TEXTS, st.randoms(use_true_random=False))
def test_wanted_tokens_are_found_in_the_pieces_that_have_them(text: str, random: Random) -> None:
    every = sorted({*tokens_of(text), "elsewhere"})
    wanted = frozenset(random.sample(every, len(every) // 2))
    assert wanted_in(wanted, text) == wanted.intersection(tokens_of(text))
    pieces = pieces_with(wanted, text)
    assert all(piece in text and wanted.intersection(tokens_of(piece)) for piece in pieces)
    assert len(pieces) == len(set(pieces))
    assert wanted.intersection(chain.from_iterable(map(tokens_of, pieces))) == wanted.intersection(
        tokens_of(text)
    )
