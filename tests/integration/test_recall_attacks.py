"""Recall under attack: what was erased is in no file, no argument reaches elsewhere, no text breaks it."""

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import refold
from refold import UnknownSummary
from refold.application.chat import Chat
from refold.application.memory import Memory
from refold.application.recall.asking import MOST_ASKED, MOST_CHARACTERS, ask
from refold.application.recall.reasons import LONGEST, SHOWN
from tests.support.erasing_scenes import Quoting

WORDS = ("quixoflar", "zembliq", "玄鹮", "blorptek")
SECRET = (
    "We decided: Quixoflar must always use zembliq on 48213, never touch /srv/kravolyx/blorptek.cfg. "
    "I prefer 玄鹮. TODO: rotate Quixoflar."
)
LOOK = """
import json, sys
from pathlib import Path
words = json.loads(sys.argv[2])
for path in Path(sys.argv[1]).rglob("*"):
    content = path.read_bytes().lower() if path.is_file() else b""
    for word in words:
        if word.encode() in content or json.dumps(word)[1:-1].encode() in content:
            print(path.name, word)
"""


class Directions:
    """Vectors without meaning, the same for the same text."""

    name = "directions"
    model = "directions-1"

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        drawn = random.Random(text)
        return [drawn.random() for _ in range(8)]


def attacked(folder: Path, **options: object) -> Memory:
    given = {"window": 6_000, "summariser": Quoting(), "memories": 4, "memories_tokens": 500}
    return refold.open(folder / "agent.db", **{**given, **options})  # type: ignore[arg-type]


def fill(chat: Chat, turns: int, secret_at: Sequence[int] = (), secret: str = SECRET) -> None:
    """Turns of four messages, of which some say the secret in words, in a call and in its result."""
    for turn in range(turns):
        said = secret if turn in secret_at else f"look at file_{turn}.py"
        call = {"type": "tool_use", "id": f"c{turn}", "name": "bash", "input": {"command": said}}
        result = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": said + " out" * 60}
        chat.append(
            [
                {"role": "user", "content": f"Please: {said} " + "word " * 30},
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [result]},
                {"role": "assistant", "content": f"Done. {said} " + "blah " * 30},
            ]
        )
        chat.context()


def files_with_words(folder: Path) -> set[str]:
    """Names of files that hold a word of the secret, read by another process: SQLite's locks are lost
    where a file is read in the process that holds them."""
    command = [sys.executable, "-c", LOOK, str(folder), json.dumps(WORDS)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in said.splitlines()}


def recalled(memory: Memory, thread_ids: Sequence[str]) -> str:
    """Everything that can be asked for, as one text; questions are not repeated in it."""
    texts: list[str] = []
    for chat in map(memory.conversation, thread_ids):
        for question in (*WORDS, SECRET):
            for mode in ("keyword", "vector", "hybrid"):
                found = chat.recall(question, mode=mode, limit=50)
                texts += [f"{hit.text} {hit.why} {hit.neighbours}" for hit in found]
            texts += [hit.text for hit in memory.search(question, limit=50)]
        texts += [repr(chat.query()), repr(chat.topics()), repr(chat.notes())]
        texts += [repr(chat.expand(summary.summary_id)) for summary in chat.summaries()]
        texts += [tool_text(chat, "query_history", limit=50), tool_text(chat, "expand_summary")]
        texts.append(repr(chat.context().for_anthropic()))
    return "\n".join(texts).lower()


def tool_text(chat: Chat, name: str, **arguments: object) -> str:
    return chat.tools().call(name, arguments).text


@pytest.mark.parametrize("closed", [False, True])
def test_what_was_erased_is_in_no_file_and_nothing_recalls_it(tmp_path: Path, closed: bool) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    notes = folder / "notes"
    memory = attacked(folder, embedder=Directions(), notes_folder=notes)
    fill(memory.conversation("talk"), 10, {1, 5})
    memory.conversation("talk").fork(thread_id="copy")
    memory.conversation("copy").recall(SECRET)
    memory.embed(wait=30)
    assert {"agent.recall.db", "MEMORY.md"} <= files_with_words(folder)
    if closed:
        memory.close()
        memory = attacked(folder, notes_folder=notes, embedder="none")
    with memory:
        reports = [memory.conversation("talk").erase(4 * t + n) for t in (1, 5) for n in range(4)]
        assert all(report.complete for report in reports)
        assert files_with_words(folder) == set()
        everything = recalled(memory, ("talk", "copy"))
        assert not [word for word in WORDS if word in everything]
        assert memory.verify().ok
    assert files_with_words(folder) == set()


def test_no_argument_of_a_tool_reaches_another_conversation() -> None:
    with refold.open(":memory:", window=6_000, summariser=Quoting()) as memory:
        fill(memory.conversation("mine"), 12)
        theirs = memory.conversation("theirs")
        fill(theirs, 12, range(12))
        ids = [s.summary_id for s in theirs.summaries()] + [
            m.message_id for m in theirs.messages(0, 3)
        ]
        values: list[object] = [
            *ids,
            "theirs",
            "refold://theirs/3",
            "refold://mine%2F..%2Ftheirs/1",
            "*",
        ]
        values += ["refold-conversation://theirs", "", 3, True, None, ["theirs"], ids]
        tools = memory.conversation("mine").tools()
        names = ("query", "thread", "thread_id", "all_conversations", "ids", "text", "address")
        for tool in tools.names:
            for name in (*names, "summary_id", "start", "roles"):
                for value in values:
                    text = tools.call(tool, {"query": "zembliq", name: value}).text
                    text += tools.call(tool, {name: value}).text
                    assert "48213" not in text, (tool, name, value)


@pytest.mark.parametrize("name", ["recall_memory", "query_history", "read_offloaded"])
def test_half_a_character_in_a_record_stops_no_answer_on_its_way(name: str) -> None:
    arguments = {
        "recall_memory": {"query": "zebra"},
        "query_history": {"start": 0, "stop": 2},
        "read_offloaded": {"address": "0"},
    }
    with refold.open(":memory:", window=6_000, summariser=Quoting()) as memory:
        chat = memory.conversation("talk")
        chat.append({"role": "user", "content": "A zebra, cut off: \ud83d"})
        fill(chat, 12)
        text = tool_text(chat, name, **arguments[name])
        assert "A zebra, cut off: \ufffd" in text
        assert text.encode()


def test_of_a_question_as_long_as_a_book_beginning_and_end_count() -> None:
    book = " ".join(f"noise{n}" for n in range(100_000))
    question = ask(f"Which port? {book} It was postgres")
    assert len(question.text) <= MOST_CHARACTERS
    assert len(question.tokens) <= MOST_ASKED
    assert {"port", "postgr"} <= set(question.tokens)
    with refold.open(":memory:") as memory:
        chat = memory.conversation("talk")
        chat.append({"role": "user", "content": "Postgres listens on 5433."})
        best = chat.recall(f"{book} postgres")[0]
        assert best.position == 0
        assert all(len(reason) < (LONGEST + 2) * SHOWN + 20 for reason in best.why)


def test_an_id_that_nobody_has_is_not_repeated_at_length() -> None:
    with refold.open(":memory:") as memory:
        memory.conversation("talk").append({"role": "user", "content": "x"})
        with pytest.raises(UnknownSummary) as refused:
            memory.conversation("talk").expand("a" * 1_000_000)
        assert len(str(refused.value)) < 500
