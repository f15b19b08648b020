"""``refold recall``, ``search``, ``query``, ``expand`` and ``index``, as people and programs use them."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import refold as library
from tests.support.command_line import CONTROL, HOSTILE, Refold, ran, talk_file

pytestmark = pytest.mark.usefixtures("stored")


def next_command(out: str) -> list[str]:
    """What the last line says that comes next."""
    line = out.splitlines()[-1]
    assert line.startswith("Next: refold ")
    return shlex.split(line.removeprefix("Next: refold "))


def test_recall_shows_each_hit_with_where_it_stands_and_what_to_read_next(refold: Refold) -> None:
    done = refold("recall", "talk", "Answer 7", "--limit", 2)
    assert done.code == 0
    first = done.out.splitlines()[0]
    assert first.split()[:3] == ["1.", "message", "31"]
    assert "words: Answer, 7" in done.out
    assert "Answer 7: Some words of the talk." in done.out
    assert "(30 tool: 7: Some words" in done.out
    assert "Answer 7" in refold(*next_command(done.out)).out


def test_recall_in_json_has_everything(refold: Refold) -> None:
    answer = refold("recall", "talk", "Answer 7", "--limit", 2, "--json").answer
    assert (answer["query"], answer["mode"], answer["notice"]) == ("Answer 7", "keyword", None)
    assert len(answer["hits"]) == 2
    hit = answer["hits"][0]
    assert (hit["thread_id"], hit["position"], hit["score"]) == ("talk", 31, 1.0)
    whole = refold("read", hit["address"], "--json").answer
    assert whole["content"][hit["start"] : hit["stop"]] == hit["text"]
    assert [n["position"] for n in hit["neighbours"]] == [30, 32]


def test_what_is_summarised_is_told_from_what_the_context_shows(refold: Refold) -> None:
    answer = refold("recall", "talk", "Question 0 and Question 19", "--limit", 50, "--json").answer
    fates = {hit["position"]: (hit["fate"], hit["in_context"]) for hit in answer["hits"]}
    assert fates[0] == ("summarised", False)
    assert fates[76] == ("full", True)
    left = refold(
        "recall", "talk", "Question 19", "--leave-out-context", "--limit", 3, "--json"
    ).answer
    assert not any(hit["in_context"] for hit in left["hits"])
    assert left["left_out"] > 0


def test_filters_and_their_refusals(refold: Refold) -> None:
    def roles(*words: object) -> set[str]:
        done = refold("recall", "talk", "words of the talk 3", *words, "--limit", 50, "--json")
        return {hit["role"] for hit in done.answer["hits"]}

    assert roles("--role", "tool") == {"tool"}
    assert roles("--role", "tool", "--role", "user") == {"tool", "user"}
    assert roles("--kind", "call", "--tool", "look") == {"assistant"}
    assert roles("--until", "2001-01-01T00:00:00Z") == set()
    wrong = refold("recall", "talk", "words", "--role", "bob", "--json")
    assert wrong.code == 2
    assert "user, assistant, system, tool" in wrong.answer["message"]
    assert roles("--until", "2001-01-01") == set()
    assert refold("recall", "talk", "words", "--limit", 0).code == 2


def test_nothing_found_is_exit_code_1_with_what_to_try(refold: Refold) -> None:
    done = refold("recall", "talk", "zebra")
    assert done.code == 1
    assert "Nothing was found." in done.out
    assert "refold search" in done.out
    answer = refold("recall", "talk", "?!", "--json")
    assert (answer.code, answer.answer["hits"]) == (1, [])
    assert "no words" in answer.answer["notice"]
    assert refold("search", "zebra").code == 1
    assert refold("recall", "nobody", "words").code == 2


def test_a_mode_that_cannot_be_is_said_and_words_are_searched(refold: Refold) -> None:
    done = refold("recall", "talk", "Answer 7", "--mode", "vector")
    assert done.code == 0
    assert "no embedder is configured" in done.err


def test_search_names_the_conversation_of_each_hit(refold: Refold, tmp_path: Path) -> None:
    talk_file(tmp_path / "other.json", 12)
    assert refold("import", "other.json", "--thread", "other").code == 0
    done = refold("search", "Answer 7", "--limit", 4, "--json").answer
    assert {hit["thread_id"] for hit in done["hits"]} == {"talk", "other"}
    told = refold("search", "Answer 7", "--limit", 4).out
    assert "other  message 31" in told
    assert "talk  message 31" in told


def test_query_shows_records_page_by_page(refold: Refold) -> None:
    done = refold("query", "talk", "--range", "4..30", "--limit", 3)
    assert "Question 1:" in done.out
    assert next_command(done.out)[:4] == ["query", "talk", "--range", "7..30"]
    answer = refold("query", "talk", "--range", "-2..", "--json").answer
    assert [r["position"] for r in answer["records"]] == [78, 79]
    found = refold("query", "talk", "--text", "answer 7:", "--json").answer
    assert [r["position"] for r in found["records"]] == [31]
    by_id = refold("query", "talk", "--id", found["records"][0]["message_id"], "--json").answer
    assert by_id["records"] == found["records"]
    for wrong in ("x", "1-2", "..-", "1..2..3", "5..2", "5..5"):
        assert refold("query", "talk", "--range", wrong).code == 2


def test_a_text_that_occurs_nowhere_is_said_so(refold: Refold) -> None:
    done = refold("query", "talk", "--text", "zebra")
    assert done.code == 1
    assert "no message has exactly this text" in done.out
    assert "recall searches by words" in done.out


def test_the_next_command_has_every_option_that_was_given(refold: Refold) -> None:
    ids = [f"refold://talk/{position}" for position in range(3, 9)]
    named = [word for one in ids for word in ("--id", one)]
    given = ["query", "talk", *named, "--text", "words of", "--limit", 2]
    done = refold(*given, "--range", "3..20")
    seen, commands = list[str](), 0
    while done.out.splitlines()[-1].startswith("Next: "):
        seen += [line for line in done.out.splitlines() if line[:1].isdecimal()]
        following = next_command(done.out)
        place = following.index("--range") + 1
        assert following[place].endswith("..20")
        for option in (*named, "--text", "words of", "--limit", "2"):
            assert option in following
        done, commands = refold(*following), commands + 1
    assert (len(seen), commands) == (4, 2)
    summary = refold("summaries", "talk", "--json").answer["summaries"][0]["summary_id"]
    following = next_command(refold("expand", summary, "--limit", 3).out)
    assert following[following.index("--limit") + 1] == "3"


def test_an_address_of_another_conversation_is_answered_with_the_command_that_reads_it(
    refold: Refold, tmp_path: Path
) -> None:
    talk_file(tmp_path / "other.json", 2)
    assert refold("import", "other.json", "--thread", "it's [x]").code == 0
    address = "refold://it's%20%5Bx%5D/0"
    for command in (
        ("query", "talk", "--id", address),
        ("erase", "talk", address, "--yes"),
    ):
        done = refold(*command)
        assert done.code == 2
        assert "memory.conversation" not in done.err
        (named,) = re.findall(r"`refold (.*?)`", done.err)
        assert "Question 0" in refold(*shlex.split(named)).out
    told = refold("query", "talk", "--id", address, "--json").answer
    assert told["error"] == "ForeignAddress"
    assert "`refold read" in told["message"]


def test_expand_shows_what_a_summary_stands_for(refold: Refold) -> None:
    summary: dict[str, Any] = next(
        s for s in refold("summaries", "talk", "--json").answer["summaries"] if s["is_active"]
    )
    done = refold("expand", summary["summary_id"])
    assert "active" in done.out.splitlines()[0]
    assert "Question 0:" in done.out
    more = refold(*next_command(done.out), "--json").answer
    assert more["page"]["records"][0]["position"] == 20
    assert more["stop"] == summary["compact_up_to_index"] + 1
    unknown = refold("expand", "nothing", "--json")
    assert unknown.code == 2
    assert summary["summary_id"] in unknown.answer["message"]


def test_index_says_what_can_be_found(refold: Refold) -> None:
    answer = refold("index", "--json").answer
    assert answer == {"db": "agent.db", "passages": 80, "vectors": None, "kept": True}
    shown = refold("index").out
    assert "80 passages" in shown
    assert "encrypted" not in shown


def test_index_says_that_nothing_of_an_encrypted_log_is_kept(
    refold: Refold, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REFOLD_ENCRYPTION_KEY", "00" * 32)
    talk_file(tmp_path / "talk.json", 1)
    assert refold("import", "talk.json").code == 0
    assert "lost when this command ends" in refold("index").out
    assert refold("index", "--json").answer["kept"] is False
    assert not (tmp_path / "agent.recall.db").exists()


def test_what_is_shown_commands_no_terminal(refold: Refold, tmp_path: Path) -> None:
    said = [{"role": "user", "content": f"needle [red]{HOSTILE}[/red] \\[bold] tail"}]
    (tmp_path / "t.json").write_text(json.dumps(said))
    assert refold("import", "t.json", "--thread", "[x]").code == 0
    for words in (("recall", "[x]", "red needle"), ("search", "red needle"), ("query", "[x]")):
        done = refold(*words)
        assert "[/red] \\[bold] tail" in done.out
        assert CONTROL.search(done.out) is None


def test_the_suggested_command_reads_a_message_of_an_id_with_a_quotation_mark(
    tmp_path: Path,
) -> None:
    with library.open(tmp_path / "agent.db") as memory:
        memory.conversation("it's").append({"role": "user", "content": "The port is 6390."})
    found = ran("search", "port", folder=tmp_path).out
    assert "The port is 6390." in ran(*next_command(found), folder=tmp_path).out
