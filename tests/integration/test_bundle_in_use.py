"""``refold inspect --bundle`` of a log that changes while its pages are written."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import refold as library
from refold.application.api.memory import Memory
from refold.application.ports.read_models import ConversationRow, ConversationsPage
from refold.infrastructure.inspector import bundle
from refold.infrastructure.inspector.file_pages import Source
from refold.infrastructure.inspector.masking import Masker
from refold.infrastructure.inspector.reader import Reader

SOURCE = Source(datetime(2026, 1, 2, tzinfo=UTC), "1", "agent.db")


@pytest.fixture
def memory() -> Iterator[Memory]:
    with library.open(":memory:") as opened:
        for n in range(5):
            opened.conversation(f"c{n}").append({"role": "user", "content": f"hello{n} there"})
        yield opened


def write(
    memory: Memory, to: Path, change: Callable[[], object] | None = None
) -> tuple[bundle.Bundled, set[str]]:
    """Write the pages; ``change`` happens before those of the first conversation. Return their words as well."""

    def watched(rows: Sequence[ConversationRow]) -> Iterable[ConversationRow]:
        if change is not None:
            change()
        return rows

    made = bundle.write_bundle(memory, to, Masker(), SOURCE, replace=False, watched=watched)
    text = "".join(page.read_text("utf-8") for page in to.rglob("*.html"))
    return made, {word for n in range(5) if (word := f"hello{n}") in text}


def everything(*without: int) -> set[str]:
    return {f"hello{n}" for n in range(5) if n not in without}


@pytest.mark.parametrize("moved", ["c0", "c1", "c4"])
def test_a_conversation_that_moves_in_the_list_is_written_once(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: str
) -> None:
    read, moves = Reader.conversations_page, iter([moved])

    def page(reader: Reader, *given: Any) -> ConversationsPage:
        found = read(reader, *given)
        for thread_id in moves:
            memory.conversation(thread_id).append({"role": "assistant", "content": "Yes."})
        return found

    monkeypatch.setattr(bundle, "LISTED", 2)
    monkeypatch.setattr(Reader, "conversations_page", page)
    made, words = write(memory, tmp_path / "pages")
    assert (made.conversations, made.messages, words) == (5, 6, everything())
    assert len([*(tmp_path / "pages" / bundle.FOLDER).iterdir()]) == 5


def test_words_erased_after_the_list_was_read_are_not_written(
    memory: Memory, tmp_path: Path
) -> None:
    made, words = write(memory, tmp_path / "pages", lambda: memory.conversation("c1").erase(0))
    assert (made.conversations, words) == (5, everything(1))


def test_a_conversation_erased_after_the_list_was_read_is_left_out(
    memory: Memory, tmp_path: Path
) -> None:
    made, words = write(memory, tmp_path / "pages", lambda: memory.erase_conversation("c1"))
    assert (made.conversations, made.messages, words) == (4, 4, everything(1))
    assert len([*(tmp_path / "pages" / bundle.FOLDER).iterdir()]) == 4


@pytest.mark.parametrize("source", ["c1", "erased"])
def test_a_fork_names_its_source_and_links_to_it_if_it_is_there(
    memory: Memory, tmp_path: Path, source: str
) -> None:
    memory.conversation("erased").append({"role": "user", "content": "hello again"})
    memory.conversation(source).fork(thread_id="copied")
    memory.erase_conversation("erased")
    made, _ = write(memory, tmp_path / "pages")
    assert made.conversations == 6
    (row,) = [
        line
        for line in (tmp_path / "pages" / "index.html").read_text("utf-8").splitlines()
        if "fork of" in line
    ]
    assert f"<bdi>{source}</bdi>" in row
    assert row.count('<a href="conversations/') == (source != "erased")
