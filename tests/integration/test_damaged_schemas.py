"""A bit in the first page of a file that is made from the log: noticed, rebuilt, and erasing still removes its text."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import refold

SECRET = b"quokka4711"
NAMES = (b"messages", b"positions", b"summaries", b"passages", b"postings", b"CREATE TABLE")
"""Where one of these stands in the schema, its seventh bit makes a text that is no UTF-8."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    with refold.open(folder / "a.db", scrub_megabytes=0) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": f"the number is {SECRET.decode()}"})
        conversation.append({"role": "assistant", "content": "noted, port 5432"})
        assert memory.conversations()
        assert conversation.recall("port").hits
    return folder


def flips(content: bytes) -> Iterator[tuple[int, int]]:
    """Places of a name, of its seventh bits; and some bits of the header and of the tree."""
    for name in NAMES:
        at = content.find(name, 0, 8_192)
        if at >= 0:
            yield at, 7
            yield at + len(name) - 1, 7
    yield from ((0, 1), (18, 0), (28, 6), (44, 2), (56, 1), (100, 3), (103, 0), (108, 7))


@pytest.mark.slow(but="views")
@pytest.mark.parametrize("name", ["views", "recall"])
def test_a_bit_in_a_schema_is_noticed_and_an_erasure_takes_the_text(
    store: Path, tmp_path: Path, name: str
) -> None:
    places = list(flips((store / f"a.{name}.db").read_bytes()))
    assert len(places) > 10
    for at, bit in places:
        for what in ("ask", "erase"):
            folder = tmp_path / f"{at}-{bit}-{what}"
            shutil.copytree(store, folder)
            content = bytearray((folder / f"a.{name}.db").read_bytes())
            content[at] ^= 1 << bit
            (folder / f"a.{name}.db").write_bytes(content)
            with refold.open(folder / "a.db", scrub_megabytes=0) as memory:
                conversation = memory.conversation("t")
                if what == "ask":
                    assert [m.position for m in conversation.messages()] == [0, 1]
                    assert conversation.recall("port").hits[0].position == 1
                else:
                    assert conversation.erase(0).complete
            if what == "erase":
                left = [p.name for p in folder.iterdir() if SECRET in p.read_bytes()]
                assert left == [], (at, bit)
            with refold.open(folder / "a.db", scrub_megabytes=0) as memory:
                memory.verify(repair=True)
                assert memory.verify().ok
            shutil.rmtree(folder)
