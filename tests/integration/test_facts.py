"""Facts of a conversation: read from the log once, the same in every face, gone with their message."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

import refold
from refold import open as open_memory
from refold.domain.facts.fact import Fact
from refold.domain.facts.message_reader import MessageRead, MessageReader
from refold.domain.facts.reading import Place, read_facts
from refold.domain.messages import Message
from tests.support.command_line import Refold
from tests.support.fact_summarisers import FactSummariser
from tests.support.fake_summarisers import RecordingSummariser

WINDOW = 4_000


def rounds(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Work in rounds of four messages; each round names a file, a number and a decision of its own."""
    made: list[dict[str, Any]] = []
    for n in range(start, start + count):
        path = f"src/part{n}/module_{n}.py"
        made += [
            {"role": "user", "content": f"Please change {path}, and never touch prod_{n}_db."},
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "text",
                        "text": f"I'll edit {path} because TICKET-{100 + n} asks for it.",
                    },
                    {
                        "type": "tool_use",
                        "id": f"c{n}",
                        "name": "Bash",
                        "input": {"command": f"make part{n} && make test_part_{n}"},
                    },
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": f"c{n}",
                        "content": f"built {n}\n" + "line " * 200,
                    }
                ],
            },
            {"role": "assistant", "content": f"Done with {path}."},
        ]
    return made


def test_facts_are_copied_from_their_messages(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", window=WINDOW) as memory:
        conversation = memory.conversation("t")
        conversation.append(rounds(3))
        texts = {
            m.position: json.dumps(m.message.content, ensure_ascii=False)
            for m in conversation.messages()
        }
        found = conversation.facts()
        assert {"rule", "path", "command", "id", "name", "decision", "outcome"} <= {
            fact.kind for fact in found
        }
        assert [f.position for f in found] == sorted(f.position for f in found)
        for fact in found:
            assert json.dumps(fact.text, ensure_ascii=False)[1:-1] in texts[fact.position]
        assert conversation.facts(4, 8) == tuple(f for f in found if 4 <= f.position < 8)
        assert conversation.facts(-4) == tuple(f for f in found if f.position >= 8)


def test_erasing_a_message_removes_its_facts(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", window=WINDOW) as memory:
        conversation = memory.conversation("t")
        conversation.append(rounds(3))
        assert "prod_1_db" in {fact.text for fact in conversation.facts()}
        conversation.erase(4)
        assert "prod_1_db" not in {fact.text for fact in conversation.facts()}
        assert "prod_0_db" in {fact.text for fact in conversation.facts()}


def test_the_value_before_is_erased_with_its_message(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with refold.open(path, window=20_000) as memory:
        conversation = memory.conversation("t")
        for number in (6379, 6390):
            conversation.append(
                [
                    {"role": "user", "content": f"The staging redis listens on port {number}."},
                    {"role": "assistant", "content": "ok"},
                ]
            )
        for n in range(120):
            conversation.append(
                [
                    {"role": "user", "content": f"question {n} " + "word " * 60},
                    {"role": "assistant", "content": "answer " * 60},
                ]
            )
        conversation.compact()
        assert "was port 6379" in str(conversation.context().messages)
        conversation.erase(0)
        assert "port 6390" in str(conversation.context().messages)
        assert "6379" not in str(conversation.context().messages)
    for file in tmp_path.iterdir():
        assert b"port 6379" not in file.read_bytes(), file.name


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Positions of the messages that were read."""
    positions = list[int]()
    original = MessageReader.read

    def count(self: MessageReader, position: int, message: Message) -> MessageRead:
        positions.append(position)
        return original(self, position, message)

    monkeypatch.setattr(MessageReader, "read", count)
    return positions


@pytest.mark.parametrize("by", ["code", "model"])
@pytest.mark.parametrize("notes", ["auto", "off"])
def test_a_compaction_reads_only_the_messages_since_the_last_one_and_each_once(
    tmp_path: Path, read: list[int], notes: Literal["auto", "off"], by: str
) -> None:
    """For the ledger, the index, the notes, the text of the summary and its leaf."""
    writer = FactSummariser(300) if by == "model" else "extractive"
    with refold.open(tmp_path / "a.db", window=WINDOW, notes=notes, summariser=writer) as memory:
        conversation = memory.conversation("t")
        made, covered_to = 0, 0
        for n in range(40):
            conversation.append(rounds(1, n))
            before = len(read)
            context = conversation.context()
            performed = [c for c in context.compactions if c.outcome == "performed"]
            if not performed:
                continue
            summary = context.summary
            assert summary is not None
            assert all(p >= covered_to for p in read[before:])
            covered = {p for p in range(summary.coverage.stop) if summary.coverage.covers(p)}
            assert covered <= set(read)
            made, covered_to = made + len(performed), summary.coverage.stop
        assert made >= 4
    assert len(read) == len(set(read)), "a message was read twice"


def test_the_same_rules_give_what_every_compaction_recorded(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", window=WINDOW) as memory:
        conversation = memory.conversation("t")
        for n in range(30):
            conversation.append(rounds(1, n))
            conversation.context()
        compared = conversation.compare_rules()
        assert len(compared) == len(conversation.summaries()) >= 4
        assert [(one.added, one.missing) for one in compared] == [((), ())] * len(compared)
        assert sum(one.messages for one in compared) == conversation.summaries()[-1].covered_count


def without_ids(messages: Iterable[Place]) -> Sequence[Fact]:
    """Rules that find no ids, and call every path a name."""
    return [
        fact._replace(kind="name") if fact.kind == "path" else fact
        for fact in read_facts(messages)
        if fact.kind != "id"
    ]


def test_other_rules_show_what_the_past_would_have_given_and_change_nothing(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", window=WINDOW) as memory:
        conversation = memory.conversation("t")
        for n in range(30):
            conversation.append(rounds(1, n))
            conversation.context()
        before, version = conversation.context().messages, conversation.version
        compared = conversation.compare_rules(without_ids)
        first = compared[0]
        assert ("value", "TICKET-100") in [(d.kind, d.text) for d in first.missing]
        assert ("name", "src/part0/module_0.py") in [(d.kind, d.text) for d in first.added]
        assert ("path", "src/part0/module_0.py") in [(d.kind, d.text) for d in first.missing]
        assert (conversation.context().messages, conversation.version) == (before, version)
        with pytest.raises(refold.InvalidSetting, match="not a version of the rules"):
            conversation.facts(rules="0")


def test_the_command_shows_facts_and_compares_rules(tmp_path: Path, refold: Refold) -> None:
    run, db = refold, tmp_path / "a.db"
    with open_memory(db, window=WINDOW) as memory:
        conversation = memory.conversation("t")
        for n in range(12):
            conversation.append(rounds(1, n))
            conversation.context()
    (tmp_path / "mine.py").write_text(
        "from refold.domain.facts.reading import read_facts as released\n"
        "def read_facts(messages):\n"
        "    return [fact for fact in released(messages) if fact.kind != 'id']\n"
    )
    shown = run("facts", "t", "--kind", "command", "--db", db)
    assert "make part3 && make test_part_3" in shown.out
    assert "prod_3_db" not in shown.out
    found = json.loads(
        run("facts", "t", "--kind", "id", "--range", "4..8", "--json", "--db", db).out
    )
    assert [(f["text"], f["position"]) for f in found["facts"]] == [("TICKET-101", 5)]
    same = run("facts", "t", "--compare", "--db", db)
    assert "0 more, 0 fewer than recorded" in same.out
    other = run("facts", "t", "--compare", "--rules", "mine:read_facts", "--db", db)
    assert "TICKET-100" in other.out
    assert run("facts", "t", "--kind", "preference", "--db", db).code == 1
    assert run("facts", "t", "--rules", "missing:f", "--db", db).code == 2


def test_a_summariser_gets_all_facts_of_its_messages(tmp_path: Path) -> None:
    summariser = RecordingSummariser()
    with refold.open(tmp_path / "agent.db", summariser=summariser, notes="off") as memory:
        conversation = memory.conversation("t")
        for number in range(20):
            call = {
                "type": "tool_use",
                "id": f"c{number}",
                "name": "read",
                "input": {"path": f"a{number}.py"},
            }
            printed = f"def load_config_{number}(): return retryPolicy"
            result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": printed}
            conversation.append(
                {"role": "user", "content": f"Never drop the cursor of part_{number}. " * 9}
            )
            conversation.append({"role": "assistant", "content": [call]})
            conversation.append({"role": "user", "content": [result]})
        conversation.compact(all=True, keep_last=2)
    [request] = summariser.requests
    assert request.read is not None
    facts = request.read.of({source.position for source in request.messages}).facts
    assert facts == read_facts((source.position, source.message) for source in request.messages)
    assert "load_config_3" in [fact.text for fact in facts if fact.kind == "name"]
    assert request.read.names == ()
