"""What commands show of conversations: whole, in turns, with their own times, and what became of each message."""

import json
import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import refold as library
from refold.application.ports.read_models import ConversationRow
from refold.infrastructure.cli import output
from refold.infrastructure.cli.program import stopped
from refold.infrastructure.palette import DARK_GROUND, LIGHT_GROUND
from refold.infrastructure.projection_store import view_answers
from refold.infrastructure.projection_store.tables import Tables
from tests.support.command_line import Refold, process, talk, talk_file
from tests.support.transcript_files import call, claude_answer, claude_user, jsonl, result, text

OLD = "2025-09-03T10:00:00.000Z"


@pytest.fixture
def imported(refold: Refold, tmp_path: Path) -> str:
    """A session of long ago with thinking, a failed call and long output; its thread id."""
    answer = [
        {"type": "thinking", "thinking": "Hm, the build.", "signature": "s"},
        text("I look at it."),
        call("c1"),
    ]
    (tmp_path / "s.jsonl").write_text(
        jsonl(
            {"type": "ai-title", "aiTitle": "Red build", "sessionId": "s1"},
            claude_user("u1", "Why is the build red?", sessionId="s1", timestamp=OLD),
            *(claude_answer(f"a{n}", "m1", block, timestamp=OLD) for n, block in enumerate(answer)),
            claude_user("u2", [result("c1", "line\n" * 200)], timestamp="2025-09-03T10:05:00.000Z"),
            claude_answer("a9", "m2", text("Because."), timestamp="2025-09-03T10:06:00.000Z"),
        ),
        "utf-8",
    )
    assert refold("import", "s.jsonl").code == 0
    rows = refold("list", "--json").answer["conversations"]
    return next(str(row["thread_id"]) for row in rows if row["title"] == "Red build")


def test_the_list_has_the_times_and_the_titles_of_the_conversations(
    refold: Refold, tmp_path: Path, imported: str
) -> None:
    (tmp_path / "plain.json").write_text(
        json.dumps([{"role": "user", "content": "Please   translate\nthis."}])
    )
    assert refold("import", "plain.json").code == 0
    plain, old = refold("list", "--json").answer["conversations"]
    assert (old["thread_id"], old["title"]) == (imported, "Red build")
    assert old["created_at"].startswith("2025-09-03T10:00")
    assert old["last_activity"].startswith("2025-09-03T10:06")
    assert (plain["title"], plain["label"]) == ("Please translate this.", None)
    told = refold("list").out
    assert "Please translate this." in told
    assert "2025-09-03" in told
    recent = refold("list", "--since", "2026-01-01", "--json").answer["conversations"]
    assert [row["thread_id"] for row in recent] == ["plain"]
    assert refold("list", "--since", "yesterday").code == 2


def test_a_title_that_was_taken_is_not_said_to_be_left_out(
    refold: Refold, tmp_path: Path, imported: str
) -> None:
    assert imported
    assert "title" not in refold("import", "s.jsonl", "--thread", "again").out
    titles = [
        {"type": "custom-title", "customTitle": "By hand", "sessionId": "s2"},
        {"type": "ai-title", "aiTitle": "By a model", "sessionId": "s2"},
        {"type": "summary", "summary": "of another", "leafUuid": "elsewhere"},
    ]
    (tmp_path / "t.jsonl").write_text(
        jsonl(claude_user("u1", "Hi", sessionId="s2"), *titles), "utf-8"
    )
    done = refold("import", "t.jsonl")
    assert "left out 1 × title of another session" in done.out
    rows = refold("list", "--json").answer["conversations"]
    assert next(row["label"] for row in rows if row["thread_id"] == "s2") == "By hand"


def test_a_conversation_gets_a_name_by_a_command(refold: Refold, imported: str) -> None:
    assert refold("label", imported, "Builds").code == 0
    assert refold("list", "--json").answer["conversations"][0]["title"] == "Builds"
    assert refold("label", "nobody", "x").code == 2
    blank = refold("label", imported, " ", "--json")
    assert (blank.code, blank.answer["error"]) == (2, "InvalidSetting")
    assert refold("list", "--json").answer["conversations"][0]["title"] == "Builds"


def test_first_words_go_with_their_message(refold: Refold, tmp_path: Path) -> None:
    talk_file(tmp_path / "talk.json", 3)
    assert refold("import", "talk.json").code == 0
    assert refold("list", "--json").answer["conversations"][0]["title"].startswith("Question 0")
    assert refold("erase", "talk", "0", "--yes").code == 0
    assert refold("list", "--json").answer["conversations"][0]["first_words"] is None
    assert "Conversation 1" in refold("list").out
    assert refold("verify").code == 0
    assert not any(b"Question 0" in file.read_bytes() for file in tmp_path.glob("agent*"))


def test_show_tells_turns_apart_and_who_says_what(refold: Refold, imported: str) -> None:
    lines = refold("show", imported).out.splitlines()
    assert any("turn 1" in line and "2025-09-03 10:00" in line for line in lines)
    rows = [line.split(maxsplit=3) for line in lines if line[:6].strip().isdecimal()]
    assert [(row[0], row[1]) for row in rows] == [
        ("0", "user"),
        ("1", "assistant"),
        ("2", "result"),
        ("3", "assistant"),
    ]
    assert "I look at it." in rows[1][3]
    assert "Hm" not in rows[1][3]
    assert "(201 lines)" in rows[2][3]


def test_show_in_full_has_thinking_and_folds_long_output(refold: Refold, imported: str) -> None:
    told = refold("show", imported, "--full").out
    assert "(thinking) Hm, the build." in told
    assert "169 lines: refold read refold://" in told
    assert told.count("line\n") < 60


@pytest.mark.usefixtures("stored")
def test_show_has_badges_for_what_was_compacted(refold: Refold) -> None:
    told = refold("show", "talk").out
    assert "turn 1 · " in told
    assert told.count("· compacted") == 18
    assert "are in summary" in told
    messages = refold("show", "talk", "--json").answer["messages"]
    assert {m["fate"] for m in messages[:72]} == {"summarised"}
    summary = refold("summaries", "talk", "--json").answer["summaries"][0]["summary_id"]
    assert {m["summary_id"] for m in messages[:72]} == {summary}
    assert {m["summary_id"] for m in messages[72:]} == {None}
    assert messages[5]["version"] > messages[4]["version"]


@pytest.mark.parametrize(("window", "apart"), [(8_000, False), (1_500, True)])
def test_a_turn_of_which_a_part_was_compacted_is_told(
    refold: Refold, tmp_path: Path, window: int, apart: bool
) -> None:
    before: list[Any] = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hello, what shall I do?"},
    ]
    asked = {"role": "user", "content": "Do it all."}
    done = [m for m in talk(15) if not str(m["content"]).startswith(("Question", "Answer"))]
    (tmp_path / "t.json").write_text(json.dumps([*before, asked, *done]))
    assert refold("import", "t.json").code == 0
    assert refold("compact", "t", "--window", window).code == 0
    messages = refold("show", "t", "--json").answer["messages"][len(before) :]
    covered = sum(m["fate"] == "summarised" for m in messages)
    assert 0 < covered < len(messages)
    assert f"split: {covered} of {len(messages)} messages compacted" in refold("show", "t").out
    # A text of its own has only the beginning of a turn that is too large to stay whole.
    [summary] = refold("summaries", "t", "--json").answer["summaries"]
    assert summary["is_split_turn"] is apart
    assert (", split" in refold("summaries", "t").out) is apart


@pytest.mark.usefixtures("stored")
def test_show_at_a_version_or_a_time(refold: Refold, imported: str) -> None:
    before = refold("show", "talk", "--at", 40, "--json").answer["messages"]
    assert len(before) == 40
    assert {m["fate"] for m in before} == {"full"}
    when = refold("show", imported, "--json").answer["messages"][2]["at"]
    at_time = refold("show", imported, "--at", when, "--json").answer["messages"]
    assert [m["position"] for m in at_time] == [0, 1, 2]
    assert len(refold("context", imported, "--at", when, "--json").answer["messages"]) == 3
    told = refold("show", "talk", "--at", 40).out
    assert "as it was" in told
    assert f"40 messages, {sum(m['tokens'] for m in before):,} tokens" in told
    part = refold("show", "talk", "2..4", "--at", 40).out
    assert f"40 messages, {sum(m['tokens'] for m in before):,} tokens" in part


@pytest.mark.usefixtures("stored")
def test_a_fork_and_a_context_take_a_position_as_well(refold: Refold) -> None:
    assert refold("fork", "talk", "short", "--position", 3).code == 0
    assert len(refold("show", "short", "--json").answer["messages"]) == 4
    at = refold("show", "talk/3", "--json").answer["messages"][0]["version"]
    by_version = refold("context", "talk", "--at", at, "--json").answer
    assert refold("context", "talk", "--position", 3, "--json").answer == by_version
    assert refold("context", "talk", "--position", 3, "--at", 4).code == 2
    assert "positions 0 to 79" in refold("fork", "talk", "--position", 99).err


@pytest.mark.usefixtures("stored")
def test_the_context_as_one_text_is_one_object_with_json(refold: Refold) -> None:
    text = refold("context", "talk", "--text", "--limit", 2).out
    answer = refold("context", "talk", "--text", "--limit", 2, "--json").answer
    assert (answer["thread_id"], answer["text"]) == ("talk", text.rstrip("\n"))


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("context talk --text --sizes", "--text or --sizes"),
        ("settings --markdown --json", "--markdown"),
        ("settings window --markdown", "--markdown"),
        ("settings window --check nope.toml", "--check"),
        ("simulate nope.jsonl --chart-theme both", "--chart OUT"),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(
    refold: Refold, words: str, named: str
) -> None:
    done = refold(*words.split())
    assert done.code == 2
    assert named in done.err


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("show talk --at soon", "'--at'"),
        ("export talk --at soon", "'--at'"),
        ("diff talk 1 soon", "'V2'"),
        ("list --since soon", "'--since'"),
        ("recall talk port --since soon", "'--since'"),
        ("search port --until soon", "'--until'"),
    ],
)
def test_a_wrong_time_is_named_with_its_option(refold: Refold, words: str, named: str) -> None:
    done = refold(*words.split())
    assert done.code == 2
    assert f"Invalid value for {named}: 'soon'" in done.err


@pytest.mark.usefixtures("stored")
def test_the_context_says_where_its_tokens_go(refold: Refold) -> None:
    parts = refold("context", "talk", "--json").answer["parts"]
    kinds = {part["kind"] for part in parts}
    assert {"summary", "ledger", "user", "assistant", "tool calls", "tool results"} <= kinds
    told = refold("context", "talk", "--sizes").out
    assert "free; compacted from" in told
    assert "largest messages" in told
    assert "[Conversation Summary]" not in told


@pytest.mark.usefixtures("stored")
def test_explain_counts_what_stands_beside_the_messages(
    refold: Refold, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refold("pin", "talk", "3").code == 0
    told = refold("explain", "talk").out
    assert "ledger lines" in told
    assert "1 pins" in told
    monkeypatch.setattr(output.console, "width", 76)
    narrow = refold("explain", "talk").out.splitlines()
    assert "positions" in narrow[1]
    assert "why" in narrow[1]
    table = narrow[: narrow.index("", 2)]
    assert max(map(len, table)) <= 76


@pytest.mark.usefixtures("stored")
def test_diff_is_short_unless_all_is_asked_for(refold: Refold) -> None:
    newest = refold("context", "talk", "--json").answer["version"]
    short = refold("diff", "talk", 80, newest).out
    assert len(short.splitlines()) < 20
    assert "lines of the request were added" in short
    full = refold("diff", "talk", 80, newest, "--full").out
    assert any(line.startswith("+") for line in full.splitlines())
    assert len(full) > 2 * len(short)


@pytest.mark.usefixtures("stored")
def test_sizes_have_units_and_the_total_comes_first(refold: Refold) -> None:
    first = refold("stats").out.splitlines()[0]
    assert "1 conversations, 80 messages" in first
    assert "kB" in first


@pytest.mark.usefixtures("stored")
def test_an_export_can_be_one_object(refold: Refold) -> None:
    whole = refold("export", "talk", "--json").answer
    assert len(whole["lines"]) == 80
    told = refold("export", "talk", "--out", "x.jsonl", "--json").answer
    assert (told["path"], told["count"]) == ("x.jsonl", 80)


def test_tables_in_a_pipe_have_no_spaces_at_the_end(refold: Refold, imported: str) -> None:
    assert imported
    for words in (["list"], ["stats"], ["settings"], ["explain", imported]):
        assert not any(line.endswith(" ") for line in refold(*words).out.splitlines()), words


def test_a_role_that_nobody_knows_is_named_with_its_place(refold: Refold, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"role": "usr", "content": "x"}]')
    assert "at index 0, has 'usr'" in refold("import", "a.json").err
    lines = [{"role": "user", "content": "x"}, {"role": "usr", "content": "y"}]
    (tmp_path / "b.jsonl").write_text(jsonl(*lines))
    assert "line 2: message that cannot be read: role 'usr'" in refold("import", "b.jsonl").out
    mixed = [{"role": "system", "content": "x"}, *lines, lines[0]]
    (tmp_path / "c.json").write_text(json.dumps(mixed))
    assert "role 'usr'" in refold("import", "c.json", "--format", "openai").out


def test_what_was_left_out_of_several_files_is_summed_up(refold: Refold, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text(
            jsonl(claude_user("u1", "Hi", sessionId=name), {"type": "progress"})
        )
    told = refold("import", "one.jsonl", "two.jsonl").out
    assert "2 × " in told
    assert told.count("progress record") == 1
    assert refold("import", "-v", "one.jsonl", "two.jsonl").out.count("progress record") == 2


def test_a_play_that_keeps_nothing_says_what_to_try_next(refold: Refold, tmp_path: Path) -> None:
    talk_file(tmp_path / "talk.json", 3)
    told = refold("play", "talk.json").out
    assert "Nothing was stored. Next: refold play talk.json --db play.db" in told
    assert "Next: refold show talk --db a.db" in refold("play", "talk.json", "--db", "a.db").out


def test_policies_are_compared_in_one_table_on_a_narrow_terminal(
    refold: Refold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk_file(tmp_path / "talk.json", 10)
    monkeypatch.setattr(output.console, "width", 80)
    told = refold("simulate", "talk.json", "--window", 8000).out
    (head,) = (line for line in told.splitlines() if " compacted " in line)
    assert "words kept" in head
    rows = told.splitlines()
    table = rows[rows.index(head) : rows.index(head) + 5]
    assert [row.split()[0] for row in table[2:]] == ["default", "early", "late"]
    assert max(map(len, table)) <= 80


def test_two_charts_are_both_drawn(refold: Refold, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    talk_file(tmp_path / "talk.json", 3)
    charts = ["--chart", "a.png", "--chart", "b.svg"]
    assert refold("simulate", "talk.json", "--policy", "default", *charts).code == 0
    assert (tmp_path / "a.png").stat().st_size
    assert (tmp_path / "b.svg").stat().st_size


def test_a_chart_for_both_grounds_is_two_files(refold: Refold, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    talk_file(tmp_path / "talk.json", 3)
    line = ("simulate", "talk.json", "--policy", "default", "--chart", "a.svg")
    told = refold(*line, "--chart-theme", "both")
    assert told.code == 0
    assert "The chart is in a-dark.svg." in told.out
    assert LIGHT_GROUND in (tmp_path / "a.svg").read_text("utf-8")
    assert DARK_GROUND in (tmp_path / "a-dark.svg").read_text("utf-8")
    (tmp_path / "a.svg").unlink()
    refused = refold(*line, "--chart-theme", "both")
    assert refused.code == 2
    assert "a-dark.svg exists already" in refused.err
    assert not (tmp_path / "a.svg").exists()


def test_a_chart_takes_the_place_of_a_file_only_when_that_is_asked_for(
    refold: Refold, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    talk_file(tmp_path / "talk.json", 3)
    (tmp_path / "a.png").write_bytes(b"mine")
    line = ("simulate", "talk.json", "--policy", "default", "--chart", "a.png")
    refused = refold(*line)
    assert refused.code == 2
    assert "a.png exists already" in refused.err
    assert "--force" in refused.err
    assert (tmp_path / "a.png").read_bytes() == b"mine"
    assert refold(*line, "--force", "--chart", "a.png").code == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "talk.json"]


@pytest.mark.slow
def test_the_demo_takes_the_place_of_an_earlier_demo_and_of_nothing_else(
    refold: Refold, tmp_path: Path
) -> None:
    with library.open(tmp_path / "mine.db") as memory:
        memory.conversation("mine").append({"role": "user", "content": "keep me"})
    refused = refold("demo", "--db", "mine.db")
    assert refused.code == 2
    assert "is not the log of a demo" in refused.err
    (tmp_path / "text.db").write_text("a text of mine")
    assert refold("demo", "--db", "text.db").code == 2
    assert (tmp_path / "text.db").read_text() == "a text of mine"
    assert refold("demo", "--db", "none/demo.db").code == 2
    first = refold("demo").out
    assert "refold show demo-teahouse --db demo.db" in first
    assert 'recall "how many jobs ran twice?" finds message 25' in first
    assert refold("pin", "demo-teahouse", "0", "--db", "demo.db").code == 0
    assert refold("demo").code == 0  # Begins anew.
    assert refold("pins", "demo-teahouse", "--db", "demo.db", "--json").answer["pins"] == []
    found = refold("recall", "demo-teahouse", "how many jobs ran twice?", "--db", "demo.db")
    assert "17 jobs ran twice" in found.out or "message 25" in found.out


def worked(pid: int) -> float:
    """The seconds of CPU that a process has used, however busy the machine is."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow(but="words0-Nothing was stored")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["simulate", "talk.json"], "Nothing was stored"),
        (["play", "talk.json"], "Nothing was stored"),
        (["demo"], "start over"),
    ],
)
def test_ctrl_c_says_what_is_true_of_the_command(
    tmp_path: Path, words: list[str], told: str
) -> None:
    talk_file(tmp_path / "talk.json", 3_000)
    with process(*words, folder=tmp_path) as started:
        while started.poll() is None and worked(started.pid) < 2.0:  # It is in the middle then.
            time.sleep(0.02)
        started.send_signal(signal.SIGINT)
        _, err = started.communicate(timeout=60)
    assert started.returncode == 130
    assert told in err.decode()


@pytest.mark.usefixtures("stored")
def test_what_is_shown_of_an_erased_conversation_is_that_it_is_gone(refold: Refold) -> None:
    assert refold("erase", "talk", "--all", "--yes").code == 0
    for command in ("show", "explain", "context"):
        done = refold(command, "talk", "--json")
        assert (done.code, done.answer["error"]) == (2, "ConversationGone")


@pytest.mark.usefixtures("stored")
def test_a_context_that_would_be_compacted_first_says_so_in_one_line(refold: Refold) -> None:
    done = refold("context", "talk", "--window", 1000, "--sizes")
    assert done.code == 0
    [line] = [
        line for line in done.out.splitlines() if "would compact before its next request" in line
    ]
    assert "this command changes nothing" in line
    assert "refold compact talk --window 1000" in line
    assert refold("context", "talk", "--window", 1000, "--json").answer["compacted_first"] is True
    assert refold("context", "talk", "--json").answer["compacted_first"] is False
    assert "would compact" not in refold("context", "talk").out


@pytest.mark.usefixtures("stored")
def test_compact_and_revert_tell_the_sizes_that_context_tells(refold: Refold) -> None:
    before = refold("context", "talk", "--json").answer["tokens"]
    done = refold("compact", "talk", "--keep-last", 3, "--json").answer
    after = refold("context", "talk", "--json").answer["tokens"]
    assert (done["tokens_before"], done["tokens_after"]) == (before, after)
    undone = refold("revert", "talk", "--json").answer
    assert (undone["tokens_before"], undone["tokens_after"]) == (after, before)
    assert refold("context", "talk", "--json").answer["tokens"] == before


@pytest.mark.parametrize(("typed", "meant"), [("shwo", "show"), ("lst", "list"), ("xyzzy", None)])
def test_a_mistyped_command_is_told_with_the_one_like_it(
    refold: Refold, typed: str, meant: str | None
) -> None:
    done = refold(typed)
    assert done.code == 2
    assert f"No such command '{typed}'" in done.err
    assert ("Did you mean" in done.err) == bool(meant)
    assert meant is None or f"Did you mean '{meant}'?" in done.err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("verify", "Nothing was changed"),
        ("-v list --db a.db", "Nothing was changed"),
        ("recall t words", "Nothing was changed"),
        ("verify --repair", "remains"),
        ("export t --out=a.jsonl", "remains"),
        ("export t --html=a.html", "No page was written"),
        ("inspect --bundle pages", "No page was written"),
        ("inspect", "Nothing was changed"),
        ("import talk.json", "remains"),
        ("play talk.json --db a.db", "remains"),
        ("play talk.json", "Nothing was stored"),
        ("simulate talk.json", "Nothing was stored"),
        ("exam talk.json", "Nothing was stored"),
    ],
)
def test_what_ctrl_c_left_depends_on_the_command(line: str, told: str) -> None:
    assert told in stopped(line.split())


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York"])
def test_times_are_those_of_whoever_types_them(
    refold: Refold, imported: str, in_zone: Callable[[str], None], zone: str
) -> None:
    in_zone(zone)
    shown = refold("show", imported, "--full").out
    [minute] = set(re.findall(r"turn 1 · (\S+ \S+)", shown))
    first = datetime.fromisoformat(minute).astimezone(UTC)
    assert first == datetime(2025, 9, 3, 10, 0, tzinfo=UTC)
    by_then = refold("show", imported, "--at", minute, "--json").answer["messages"]
    last = first + timedelta(minutes=5)
    assert [m["at"] < "2025-09-03T10:01" for m in by_then] == [True] * len(by_then)
    assert by_then
    later = f"{last.astimezone():%Y-%m-%d %H:%M}"
    assert minute in shown
    assert later in shown
    assert later not in refold("show", imported, "--full", "--at", minute).out
    found = refold("recall", imported, "build red because", "--since", later, "--json").answer
    assert {hit["at"][:16] for hit in found["hits"]} <= {"2025-09-03T10:05", "2025-09-03T10:06"}
    assert len(refold("list", "--since", later, "--json").answer["conversations"]) == 1
    assert later[:10] in refold("list").out


def test_a_word_is_no_time_and_an_example_is_given(refold: Refold, imported: str) -> None:
    for words in (["recall", imported, "red", "--since"], ["list", "--since"]):
        done = refold(*words, "yesterday")
        assert done.code == 2
        assert "2026-01-02T03:04:05Z" in done.err


@pytest.mark.slow
def test_what_was_there_already_is_told_by_a_play(refold: Refold, tmp_path: Path) -> None:
    talk_file(tmp_path / "talk.json", 10)
    assert refold("import", "talk.json", "--db", "a.db").code == 0
    talk_file(tmp_path / "talk.json", 20)
    partly = refold("play", "talk.json", "--db", "a.db", "--window", 2000)
    assert re.search(r"of these: stored before, not played\D+40", partly.out)
    again = refold("play", "talk.json", "--db", "a.db")
    assert again.code == 0
    assert "all 80 messages were already stored" in again.out
    assert "budget of a request" not in again.out
    known = refold("play", "talk.json", "--db", "a.db", "--json").answer
    assert (known["messages"], known["messages_known"], known["requests"]) == (80, 80, 0)
    fresh = refold("play", "talk.json")
    assert "already" not in fresh.out


def test_the_list_is_read_in_pages_and_has_the_latest_activity_first(
    refold: Refold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.db"
    with library.open(path, background=False) as memory:
        for number in (3, 1, 4, 0, 2):
            memory.conversation(f"thread-{number}").append({"role": "user", "content": "Hello"})
        expected = [row.thread_id for row in memory.conversations()]
    pages, page_of = list[int](), view_answers.conversations_after

    def counted(db: Tables, prefix: str, after: str | None) -> Sequence[ConversationRow]:
        rows = page_of(db, prefix, after)
        pages.append(len(rows))
        return rows

    monkeypatch.setattr(view_answers, "PAGE", 2)
    monkeypatch.setattr(view_answers, "conversations_after", counted)
    listed = json.loads(refold("list", "--json", "--db", f"{path}").out)["conversations"]
    assert [row["thread_id"] for row in listed] == expected
    assert expected == ["thread-2", "thread-0", "thread-4", "thread-1", "thread-3"]
    assert pages == [2, 2, 1, 0]
