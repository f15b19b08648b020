"""Whatever a user says or shows, alone or together, a request comes out: by markers where nothing else helps."""

import base64
import re
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.testing.request_judge import violations

Block = dict[str, Any]
FILLER = "w " * 100 + "q"
SEE: Block = {"type": "text", "text": "see"}
DOCUMENT: Block = {"type": "document", "source": {"type": "url", "url": "https://x.org/a.pdf"}}
IMAGE: Block = {"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}}


def pdf(pages: int) -> Block:
    kids = " ".join(f"{3 + n} 0 R" for n in range(pages))
    page = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>"
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {pages}>>",
        *[page] * pages,
    ]
    body, places = "%PDF-1.4\n", list[int]()
    for number, one in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj{one}endobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    body += f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer<</Size {size}/Root 1 0 R>>\n"
    body += f"startxref\n{body.index('xref')}\n%%EOF"
    data = base64.b64encode(body.encode()).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    return {"type": "document", "source": source}


LARGE: list[tuple[int, list[Block]]] = [
    (8_000, [DOCUMENT]),
    (200_000, [pdf(60)]),
    (200_000, [DOCUMENT] * 15),
    (32_000, [pdf(10)]),
    (32_000, [DOCUMENT] * 3),
    (32_000, [IMAGE] * 10),
    (4_000, [IMAGE]),
    (4_000, [IMAGE] * 90),
    (8_000, [{"type": "text", "text": "word " * 20_000}, DOCUMENT]),
    (8_000, [DOCUMENT, {"type": "text", "text": "word " * 2_500}, IMAGE]),
]
SETTINGS: list[dict[str, Any]] = [{}, {"background": True}, {"summariser": "off"}]


def fits(conversation: refold.ConversationMemory, **extras: Any) -> refold.Context:
    context = conversation.context(**extras)
    assert context.tokens <= context.budget.limit
    assert violations(context.for_anthropic()) == []
    return context


@pytest.mark.slow(but=["200000-shown1-0", "200000-shown1-3", "200000-shown1-1"])
@pytest.mark.parametrize("turns", [0, 1, 3])
@pytest.mark.parametrize(("window", "shown"), LARGE)
def test_what_is_too_large_becomes_a_marker_whatever_stands_before_it(
    window: int, shown: list[Block], turns: int, tmp_path: Path
) -> None:
    with refold.open(tmp_path / "a.db", window=window) as memory:
        conversation = memory.conversation("t")
        for _ in range(turns):
            conversation.append({"role": "user", "content": FILLER})
            conversation.append({"role": "assistant", "content": "hello"})
        conversation.append({"role": "user", "content": [SEE, *shown]})
        context = fits(conversation)
        assert f"refold://t/{2 * turns}" in str(context.messages)
        assert conversation.context().messages == context.messages
        version = conversation.version
        conversation.append({"role": "user", "content": "never mind, go on"})
        after = fits(conversation)
        assert "never mind, go on" in str(after.messages[-1])
    with refold.open(tmp_path / "a.db", window=window) as memory:
        conversation = memory.conversation("t")
        assert conversation.context(at=version).messages == context.messages
        assert conversation.context().messages == after.messages
        assert memory.verify().ok


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_setting_of_the_summary_stands_in_the_way(settings: dict[str, Any]) -> None:
    with refold.open(":memory:", window=8_000, **settings) as memory:
        conversation = memory.conversation("t")
        conversation.append(
            [{"role": "user", "content": FILLER}, {"role": "assistant", "content": "hi"}]
        )
        conversation.append({"role": "user", "content": [SEE, DOCUMENT]})
        text = str(fits(conversation).messages)
        # Only the document had to go.
        assert "document not shown here; the message with it is kept at refold://t/2" in text
        assert FILLER in text
        assert "see" in text


@pytest.mark.parametrize("asked", [{}, {"all": True}, {"keep_last": 1}, {"target": 2_000}])
@pytest.mark.parametrize(("filler", "outcome"), [(FILLER, "shortened"), ("w " * 900, None)])
def test_compacting_on_demand_makes_it_fit_as_well(
    asked: dict[str, Any], filler: str, outcome: str | None, tmp_path: Path
) -> None:
    with refold.open(tmp_path / "a.db", window=8_000) as memory:
        conversation = memory.conversation("t")
        conversation.append(
            [{"role": "user", "content": filler}, {"role": "assistant", "content": "hi"}]
        )
        conversation.append({"role": "user", "content": [SEE, DOCUMENT]})
        result = conversation.compact(**asked)
        assert result.outcome == (outcome or result.outcome)
        assert result.outcome in ("performed", "shortened")
        assert (result.success, result.results_offloaded, result.reason) == (True, 1, "")
        assert result.freed > 10_000
        version = conversation.version
        context = fits(conversation)
        assert (conversation.version, context.tokens) == (version, result.tokens_after)
        assert conversation.compact(**asked).outcome == "nothing_to_do"
    with refold.open(tmp_path / "a.db", window=8_000) as memory:
        assert memory.conversation("t").context().messages == context.messages


def test_compacting_on_demand_shortens_nothing_that_fits_or_is_pinned() -> None:
    with refold.open(":memory:", window=32_000) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": [SEE, DOCUMENT]})
        assert conversation.compact().outcome == "nothing_to_do"
        conversation.append({"role": "user", "content": [DOCUMENT]})
        conversation.append({"role": "user", "content": [DOCUMENT]})
        for position in range(3):
            conversation.pin(position)
        assert conversation.compact().outcome == "nothing_to_do"


def test_only_as_many_documents_are_left_out_as_needed() -> None:
    with refold.open(":memory:", window=200_000) as memory:
        conversation = memory.conversation("t")
        for _ in range(10):
            conversation.append({"role": "user", "content": "some words " * 300})
            conversation.append({"role": "assistant", "content": "hello"})
        conversation.append({"role": "user", "content": [SEE, *[DOCUMENT] * 15]})
        context = fits(conversation)
    text = str(context.messages)
    assert text.count("document not shown here") == 5
    assert text.count("x.org/a.pdf") == 10
    assert "see" in text


@pytest.mark.slow(but="8000-90-30")
@pytest.mark.parametrize(
    ("window", "count", "words"), [(4_000, 300, 2), (8_000, 90, 30), (8_000, 400, 9)]
)
def test_many_small_messages_that_nobody_answered_are_left_out_oldest_first(
    window: int, count: int, words: int, tmp_path: Path
) -> None:
    with refold.open(tmp_path / "a.db", window=window) as memory:
        conversation = memory.conversation("t")
        conversation.append(
            [{"role": "user", "content": FILLER}, {"role": "assistant", "content": "hi"}]
        )
        for n in range(count):
            conversation.append({"role": "user", "content": f"no. {n} " + "so it is " * words})
        context = fits(conversation)
        text = str(context.messages)
        assert f"no. {count - 1} " in text
        assert context.tokens > context.budget.limit // 4
        version = conversation.version
        conversation.append({"role": "assistant", "content": "I see"})
        conversation.append({"role": "user", "content": "and now?"})
        later = fits(conversation)
    with refold.open(tmp_path / "a.db", window=window) as memory:
        assert memory.conversation("t").context(at=version).messages == context.messages
        assert memory.conversation("t").context().messages == later.messages
        assert memory.conversation("t").read("refold://t/2").text.startswith("no. 0 ")
        assert memory.verify().ok


def test_blank_texts_are_not_left_out_for_they_are_not_shown() -> None:
    with refold.open(":memory:", window=2_000) as memory:
        conversation = memory.conversation("blank")
        for number in range(60):
            blocks = [
                {"type": "text", "text": " \n"},
                {"type": "text", "text": f"{number} go on " * 12},
            ]
            conversation.append({"role": "user", "content": blocks})
        shown = str(fits(conversation).messages)
    assert "left out here" in shown
    counts = [int(count) for count in re.findall(r"\[(\d+) texts? left out", shown)]
    assert sum(counts) < 60


def test_a_blank_text_that_leaves_no_room_becomes_a_marker() -> None:
    with refold.open(":memory:", window=8_000) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "\n" * 60_000})
        conversation.append({"role": "user", "content": "Was that blank?"})
        shown = str(fits(conversation).messages)
        assert "characters of this text are left out here" in shown
        assert "Was that blank?" in shown
        assert conversation.read(0).text == "\n" * 60_000


def test_who_wants_nothing_shortened_is_told_of_the_setting_and_of_erasing() -> None:
    with refold.open(":memory:", window=8_000, shorten_texts=False) as memory:
        conversation = memory.conversation("t")
        conversation.append(
            [{"role": "user", "content": FILLER}, {"role": "assistant", "content": "hi"}]
        )
        conversation.append({"role": "user", "content": [SEE, DOCUMENT]})
        with pytest.raises(refold.ContextWindowExceeded) as caught:
            conversation.context()
        assert "`shorten_texts=True`" in str(caught.value)
        assert "`conversation.erase(2)`" in str(caught.value)
        conversation.erase(2)
        fits(conversation)


def test_a_pinned_document_stays_and_the_error_says_unpin() -> None:
    with refold.open(":memory:", window=8_000) as memory:
        conversation = memory.conversation("t")
        conversation.append(
            [{"role": "user", "content": FILLER}, {"role": "assistant", "content": "hi"}]
        )
        conversation.append({"role": "user", "content": [SEE, DOCUMENT]})
        pin_id = conversation.pin(2)
        with pytest.raises(refold.ContextWindowExceeded) as caught:
            conversation.context()
        assert f"`conversation.unpin({pin_id!r})`" in str(caught.value)
        assert "shorten_texts" not in str(caught.value)
        conversation.unpin(pin_id)
        fits(conversation)


def test_the_error_names_as_many_messages_as_must_go() -> None:
    with refold.open(":memory:", window=8_000, shorten_texts=False) as memory:
        conversation = memory.conversation("t")
        conversation.append([{"role": "user", "content": "word " * 2_500} for _ in range(4)])
        with pytest.raises(
            refold.ContextWindowExceeded, match=r"`conversation\.erase\(\[0, 1\]\)`"
        ):
            conversation.context()
        conversation.erase([0, 1])
        fits(conversation)
        conversation.append([{"role": "user", "content": "word " * 20} for _ in range(300)])
        with pytest.raises(refold.ContextWindowExceeded, match=r"remove \d+ messages for good"):
            conversation.context()
