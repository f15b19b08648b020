"""The command line as people and programs use it: what it prints, and the code it ends with."""

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, get_args

import pytest

from refold.infrastructure.cli import output
from refold.infrastructure.cli.options import FormatName
from refold.infrastructure.transcripts.read_transcript import FORMATS
from refold.testing.request_judge import violations
from tests.support.command_line import (
    CONTROL,
    HOSTILE,
    PROGRAM,
    Refold,
    process,
    ran,
    talk,
    talk_file,
)
from tests.support.log_files import execute, flipped, rows, set_state
from tests.support.transcript_files import call, claude_answer, claude_user, jsonl, result, text

LOOKING = ("list", "show", "context", "summaries", "explain", "read")
DECIDING = ("compact", "revert", "pin", "unpin", "pins")
COMMANDS = ("demo", "scan", "import", "play", "simulate", *LOOKING, *DECIDING, "verify", "replay")


# --- help and wrong use


def test_without_a_command_it_shows_the_commands_and_ends_with_2(refold: Refold) -> None:
    done = refold()
    assert done.code == 2
    assert all(f" {name} " in done.out for name in COMMANDS)
    assert "refold demo" in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(refold: Refold, command: str) -> None:
    done = refold(command, "--help")
    assert done.code == 0
    assert "--json" in done.out
    assert ("agent.db" in done.out) == (command not in ("demo", "scan", "play", "simulate"))


def test_the_version_is_told(refold: Refold) -> None:
    assert re.fullmatch(r"refold \d+\.\d+\.\d+\n", refold("--version").out)


def test_the_formats_that_can_be_named_are_those_that_can_be_read() -> None:
    assert set(get_args(FormatName)) == {"auto", *FORMATS}


WRONG: dict[str, tuple[str, str]] = {
    "unknown command": ("dance", "No such command 'dance'"),
    "unknown option": ("list --dance", "No such option"),
    "missing argument": ("play", "Missing argument 'FILE'"),
    "no such transcript": ("play none.json", "none.json does not exist"),
    "a folder as transcript": ("play folder", "folder is a folder"),
    "an empty transcript": ("play empty.json", "empty.json is empty"),
    "a transcript of something else": ("play odd.json", "no known format"),
    "a transcript without messages": ("play title.jsonl", "nothing to play"),
    "unknown format": ("play talk.json --format yaml", "'yaml' is not one of"),
    "unknown format on import": ("import talk.json --format yaml", "'yaml' is not one of"),
    "another format": ("play talk.json --format pi", "cannot be read as pi"),
    "unknown summariser": ("play talk.json --summariser gpt", "'gpt' is not one of"),
    "window of 0": ("play talk.json --window 0", "at least 1000"),
    "window of 500": ("play talk.json --window 500", "at least 1000"),
    "negative window": ("play talk.json --window -5", "at least 1000"),
    "window in words": ("play talk.json --window many", "'--window'"),
    "negative restarts": ("play talk.json --restart-every -1", "'--restart-every'"),
    "requests into no folder": ("play talk.json --requests none/r.jsonl", "No such file"),
    "requests into a folder": ("play talk.json --requests folder", "Is a directory"),
    "requests over the transcript": ("play talk.json --requests talk.json", "give another file"),
    "requests over the log": ("play talk.json --db a.db --requests a.db", "give another file"),
    "blank thread": ("play talk.json --thread '  '", "thread id is required"),
    "one thread for several": ("play several.jsonl --thread x", "has 2 conversations"),
    "one thread for several on import": ("import several.jsonl --thread x", "2 conversations"),
    "no log": ("list --db none.db", "none.db; check the path"),
    "a log in no folder": ("play talk.json --db none/a.db", "none does not exist; create it first"),
    "a folder as log": ("list --db folder", "folder is a folder"),
    "another file as log": ("list --db odd.json", "odd.json is not a log of refold"),
    "import into another file": ("import talk.json --db odd.json", "is not a log of refold"),
    "another database as log": ("verify --db other.db", "SQLite file of another program"),
    "unknown thread": ("show nobody --db a.db", "no conversation 'nobody'"),
    "unknown thread for context": ("context nobody --db a.db", "there are: talk"),
    "unknown thread for compact": ("compact nobody --db a.db", "there are: talk"),
    "unknown thread for summaries": ("summaries nobody --db a.db", "there are: talk"),
    "a version to come": ("context talk --db a.db --at 99", "versions 0 to 12"),
    "unknown thread for explain": ("explain nobody --db a.db", "there are: talk"),
    "unknown thread for read": ("read refold://nobody/1 --db a.db", "there are: talk"),
    "no address": ("read talk --db a.db", "such as refold://THREAD/POSITION"),
    "a message to come": ("read refold://talk/99 --db a.db", "positions 0 to 11"),
    "no such policy": ("simulate talk.json --policy none.toml", "there is no such file"),
    "a policy with a wrong key": ("simulate talk.json --policy key.toml", "did you mean keep_last"),
    "a policy with a wrong value": ("simulate talk.json --policy value.toml", "trigger_share = 7"),
    "a policy twice": ("simulate talk.json --policy late --policy late", "given twice"),
    "too many policies": (f"simulate talk.json{' --policy late' * 7}", "the maximum is 6"),
    "unknown conversation": ("simulate talk.json --conversation x", "there are: talk"),
    "a chart of another kind": ("simulate talk.json --chart a.gif", "end in .png or .svg"),
    "a chart in no folder": ("simulate talk.json --chart none/a.png", "no folder none"),
    "no such prices": ("simulate talk.json --prices none.toml", "none.toml cannot be read"),
    "prices with a wrong key": ("simulate talk.json --prices key.toml", "as_of"),
    "nothing to simulate": ("simulate none.json", "none.json does not exist"),
    "a negative position": ("show talk --db a.db --start -1", "'--start'"),
}


@pytest.fixture
def mishaps(refold: Refold, tmp_path: Path) -> None:
    """A folder with what people name by mistake."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.json").touch()
    (tmp_path / "odd.json").write_text('{"a": 1}')
    (tmp_path / "title.jsonl").write_text('{"type":"summary","summary":"x","leafUuid":"y"}\n')
    (tmp_path / "several.jsonl").write_text(
        jsonl({"id": "p", "messages": talk(1)}, {"id": "q", "messages": talk(1)})
    )
    (tmp_path / "key.toml").write_text("keep_lst = 3\n")
    (tmp_path / "value.toml").write_text("trigger_share = 7\n")
    execute(tmp_path / "other.db", "CREATE TABLE somebody_elses (a)")
    talk_file(tmp_path / "talk.json")
    assert refold("import", "talk.json", "--db", "a.db").code == 0


@pytest.mark.slow(but=["unknown command", "one thread for several", "a folder as log"])
@pytest.mark.usefixtures("mishaps")
@pytest.mark.parametrize(("line", "told"), WRONG.values(), ids=WRONG)
def test_wrong_use_ends_with_2_and_says_what_is_wrong(refold: Refold, line: str, told: str) -> None:
    done = refold(*shlex.split(line))
    said = " ".join(re.sub("[│╭╮╰╯─]", " ", done.err).split())
    assert done.code == 2
    assert told in said
    assert "Traceback" not in said
    as_json = refold(*shlex.split(line), "--json")
    assert as_json.code == 2
    assert told in json.dumps(as_json.answer)


@pytest.mark.usefixtures("mishaps")
@pytest.mark.parametrize("line", ["requests over the transcript", "requests over the log"])
def test_a_file_in_use_is_not_overwritten_by_requests(
    refold: Refold, tmp_path: Path, line: str
) -> None:
    before = {name: (tmp_path / name).read_bytes() for name in ("talk.json", "a.db")}
    assert refold(*shlex.split(WRONG[line][0])).code == 2
    assert before == {name: (tmp_path / name).read_bytes() for name in before}


def test_a_wrong_path_leaves_no_log_behind(refold: Refold, tmp_path: Path) -> None:
    assert refold("import", "none.json", "--db", "new.db").code == 2
    assert refold("list", "--db", "new.db").code == 2
    assert list(tmp_path.iterdir()) == []


# --- standard output with --json


@pytest.mark.slow(
    but=["context talk --at 7 --window 8000", "explain talk", "explain talk --start 70 --stop 75"]
)
@pytest.mark.parametrize(
    "line",
    [
        "import talk.json",
        "play talk.json",
        "play talk.json --window 1200 --restart-every 3",
        "list",
        "show talk --start 2 --stop 4",
        "context talk",
        "context talk --at 7 --window 8000",
        "compact talk",
        "compact talk --focus tests",
        "summaries talk",
        "explain talk",
        "explain talk --start 70 --stop 75",
        "read refold://talk/3",
        "simulate talk.json",
        "simulate talk.json --policy late --window 2000",
        "verify",
        "replay",
    ],
)
@pytest.mark.usefixtures("stored")
def test_with_json_there_is_one_object_and_nothing_else(refold: Refold, line: str) -> None:
    done = refold(*line.split(), "--json")
    assert done.code == 0
    assert "error" not in done.answer
    assert done.err == ""


@pytest.mark.slow
def test_json_stays_json_where_the_terminal_knows_ascii_only(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "你好 🙂 \ud83d"}, {"role": "assistant", "content": "é"}]
    (tmp_path / "t.json").write_text(json.dumps(said))
    ascii_only = {"PYTHONIOENCODING": "ascii", "LANG": "C"}
    assert ran("import", "t.json", folder=tmp_path, env=ascii_only, encoding="ascii").code == 0
    shown = ran("show", "t", "--json", folder=tmp_path, env=ascii_only, encoding="ascii")
    assert shown.code == 0
    assert [m["content"] for m in shown.answer["messages"]][1] == "é"


# --- import


def test_several_files_of_which_one_is_broken_store_the_good_ones(
    refold: Refold, tmp_path: Path
) -> None:
    talk_file(tmp_path / "one.json")
    (tmp_path / "two.json").write_text("{not json")
    talk_file(tmp_path / "three.json", 1)
    done = refold("import", "one.json", "two.json", "three.json")
    assert done.code == 2
    assert "two.json is not a transcript" in done.err
    assert "Next: refold list" in done.out
    listed = refold("list", "--json").answer["conversations"]
    assert {(c["thread_id"], c["messages"]) for c in listed} == {("one", 12), ("three", 4)}


def test_importing_again_adds_nothing_and_what_was_added_to_the_file_is_added(
    refold: Refold, tmp_path: Path
) -> None:
    talk_file(tmp_path / "talk.json", 3)
    assert refold("import", "talk.json", "--json").answer["files"][0]["conversations"] == [
        {"thread_id": "talk", "messages": 12, "new": 12}
    ]
    again = refold("import", "talk.json", "talk.json", "--json").answer["files"]
    assert [f["conversations"][0]["new"] for f in again] == [0, 0]
    talk_file(tmp_path / "talk.json", 4)
    more = refold("import", "talk.json", "--json").answer["files"]
    assert more[0]["conversations"][0]["new"] == 4
    assert refold("verify").code == 0


def test_an_answer_that_was_half_written_at_the_last_import_is_no_other_conversation(
    refold: Refold, tmp_path: Path
) -> None:
    asked, half = claude_user("u1", "Hi"), claude_answer("a1", "m1", text("Hello"))
    rest = [claude_answer("a2", "m1", call("c1")), claude_user("u2", [result("c1")])]
    (tmp_path / "s.jsonl").write_text(jsonl(asked, half))
    assert refold("import", "s.jsonl").code == 0
    (tmp_path / "s.jsonl").write_text(jsonl(asked, half, *rest))
    assert refold("import", "s.jsonl").code == 0
    assert refold("list", "--json").answer["conversations"][0]["messages"] == 4
    assert refold("import", "s.jsonl").code == 0
    assert refold("list", "--json").answer["conversations"][0]["messages"] == 4


@pytest.mark.parametrize("command", ["import", "play"])
def test_another_conversation_of_the_same_name_is_not_mixed_in(
    refold: Refold, tmp_path: Path, command: str
) -> None:
    talk_file(tmp_path / "chat.json", 1)
    assert refold("import", "chat.json").code == 0
    other = [{"role": "user", "content": "Another"}, *talk(1)[1:], *talk(1)]
    (tmp_path / "chat.json").write_text(json.dumps(other))
    refused = refold(command, "chat.json", "--db", "agent.db")
    assert refused.code == 2
    assert "thread 'chat' already has another conversation" in refused.err
    assert refold("list", "--json").answer["conversations"][0]["messages"] == 4
    assert refold(command, "chat.json", "--db", "agent.db", "--thread", "chat-2").code == 0
    assert len(refold("show", "chat-2", "--json").answer["messages"]) == 8


def test_what_was_left_out_is_counted_and_damage_is_named_by_its_line(
    refold: Refold, tmp_path: Path
) -> None:
    lines = [claude_user("u1", "Hi"), "{broken", {"type": "progress"}, {"type": "progress"}]
    (tmp_path / "s.jsonl").write_text(jsonl(*lines))
    done = refold("import", "s.jsonl")
    assert done.code == 0
    assert "s.jsonl line 2: broken line" in done.out
    assert "left out 2 × progress record, 1 × broken line" in " ".join(done.out.split())


def test_a_file_without_messages_is_said_to_have_none(refold: Refold, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text('{"type":"summary","summary":"x","leafUuid":"y"}\n')
    done = refold("import", "s.jsonl")
    assert done.code == 0
    assert "nothing to import" in done.out
    assert "Next:" not in done.out


# --- play


def test_play_ends_with_its_figures_and_verify(refold: Refold, tmp_path: Path) -> None:
    talk_file(tmp_path / "talk.json", 60)
    done = refold("play", "talk.json", "--window", 4000, "--restart-every", 50)
    assert done.code == 0
    figures = dict(re.findall(r"^  (\S.*?\S)  +(\S.*?) *$", done.out, re.MULTILINE))
    assert figures["messages"] == "240"
    assert figures["requests"] == "120"
    assert figures["requests over budget"] == "0"
    assert figures["reopenings of the log"] == "4"
    assert int(figures["compactions"]) > 1
    numbers = {k: int(v.replace(",", "")) for k, v in figures.items() if re.fullmatch("[0-9,]+", v)}
    assert numbers["largest request, tokens"] <= numbers["budget of a request, tokens"]
    assert numbers["tokens sent"] < numbers["tokens without compaction"]
    assert "verify: all is well" in done.out
    assert "p50 / p99, ms" in done.out


def test_every_request_is_written_as_it_would_be_sent(refold: Refold, tmp_path: Path) -> None:
    talk_file(tmp_path / "talk.json", 60)
    line = "play talk.json --window 8000 --model claude-x --requests r.jsonl --db a.db --json"
    played = refold(*line.split()).answer
    written = (tmp_path / "r.jsonl").read_text("utf-8").splitlines()
    requests = [json.loads(request) for request in written]
    keys = ["index", "model", "system", "messages", "tokens", "summary_id", "thread"]
    assert len(requests) == played["requests"] == 120
    assert all(list(request) == keys for request in requests)
    assert [r["index"] for r in requests] == [n for n in range(240) if n % 2]
    assert {r["model"] for r in requests} == {"claude-x"}
    assert max(r["tokens"] for r in requests) == played["largest_request"]
    assert [v for r in requests for v in violations({"messages": r["messages"]})] == []
    summaries = refold("summaries", "talk", "--db", "a.db", "--json").answer["summaries"]
    shown = dict.fromkeys(r["summary_id"] for r in requests if r["summary_id"])
    assert list(shown) == [s["summary_id"] for s in summaries]


def test_playing_again_into_the_same_log_sends_nothing_and_stores_nothing(
    refold: Refold, tmp_path: Path
) -> None:
    talk_file(tmp_path / "talk.json", 20)
    first = refold("play", "talk.json", "--db", "a.db", "--window", 2000, "--json").answer
    again = refold("play", "talk.json", "--db", "a.db", "--window", 2000, "--json").answer
    assert (first["requests"], again["requests"]) == (40, 0)
    assert again["verify"] == first["verify"]


@pytest.mark.filterwarnings(
    "default::refold.infrastructure.settings.option_checks.MissingKeyWarning"
)
def test_why_a_compaction_failed_and_a_request_was_not_made_is_told_once(
    refold: Refold, tmp_path: Path
) -> None:
    huge = {"role": "user", "content": "word " * 20_000}
    said = [*talk(30), huge, {"role": "assistant", "content": "ok"}, *talk(1)]
    (tmp_path / "t.json").write_text(json.dumps(said))
    (tmp_path / "whole.toml").write_text("shorten_texts = false")
    given = ("--window", 8000, "--summariser", "anthropic", "--policy", "whole.toml")
    done = refold("play", "t.json", *given)
    assert done.code == 0
    (failure,) = re.findall("compaction failed: .*", done.out)
    assert "ANTHROPIC_API_KEY" in failure
    (refused,) = re.findall("request not made.*", done.out)
    assert "use a model with a larger window" in refused
    # That there is no key is said before anything is played, in one line.
    (warned,) = done.err.splitlines()
    assert warned.startswith("warning: summariser='anthropic' needs a key")


def test_a_file_of_requests_is_private_and_keeps_its_content_until_there_is_a_request(
    refold: Refold, tmp_path: Path
) -> None:
    talk_file(tmp_path / "talk.json", 10)
    file = tmp_path / "r.jsonl"
    line = "play talk.json --requests r.jsonl --db a.db"
    assert refold(*line.split()).code == 0
    written = file.read_bytes()
    assert written.count(b"\n") == 20
    assert os.name == "nt" or file.stat().st_mode & 0o777 == 0o600
    again = refold(*line.split())  # All messages are stored: there is no request.
    assert (again.code, file.read_bytes()) == (0, written)
    assert "Every request is in" not in again.out
    replaced = refold(*line.replace("a.db", "b.db").split())
    assert (replaced.code, file.read_bytes()) == (0, written)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_told_without_a_traceback(refold: Refold, tmp_path: Path) -> None:
    talk_file(tmp_path / "talk.json", 60)
    done = refold("play", "talk.json", "--requests", "/dev/full")
    assert done.code == 2
    assert "No space left on device" in done.err


@pytest.mark.slow
def test_play_stopped_by_ctrl_c_goes_on_where_it_was(tmp_path: Path, refold: Refold) -> None:
    turns = 300
    talk_file(tmp_path / "talk.json", turns)
    line = ("play", "talk.json", "--db", "a.db", "--window", "8000", "--json")
    with process(*line, folder=tmp_path) as started:
        wait_for_events(tmp_path / "a.db", 120)
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=60)
    assert started.returncode == 130
    assert b"Traceback" not in err
    assert b"continues from there" in err
    assert json.loads(out)["error"] == "Interrupted"
    assert refold("verify", "--db", "a.db").code == 0
    before = len(refold("show", "talk", "--db", "a.db", "--json").answer["messages"])
    assert 0 < before < 4 * turns
    again = refold(*line).answer
    assert again["verify"]["ok"]
    assert 0 < again["requests"] < 2 * turns
    assert again["requests_over_budget"] == 0
    messages = refold("show", "talk", "--db", "a.db", "--json").answer["messages"]
    assert [(m["role"], m["content"]) for m in messages] == [
        (m["role"], m["content"]) for m in talk(turns)
    ]


def wait_for_events(log: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if log.exists() and log.stat().st_size and len(written(log)) >= count:
            return
        time.sleep(0.02)
    pytest.fail("nothing was played in a minute")


def written(log: Path) -> list[Any]:
    try:
        return list(rows(log))
    except sqlite3.OperationalError:
        return []


# --- looking


@pytest.mark.usefixtures("stored")
def test_compact_show_context_and_summaries_agree(refold: Refold) -> None:
    summary = refold("summaries", "talk")
    assert "active" in summary.out
    assert "72 in 0–71" in summary.out
    assert "covers 72 messages up to position 71" in refold("summaries", "talk", "--full").out
    shown = refold("show", "talk", "--stop", 3)
    assert "Question 0" in shown.out
    assert 'look {"at": 0}' in shown.out
    made = refold("context", "talk")
    assert "[Conversation Summary]" in made.out
    assert "Answer 19" in made.out
    assert "Question 3:" not in refold("context", "talk", "--json").answer["messages"][-1]
    assert "0 tokens freed" in refold("compact", "talk").out


def test_show_names_an_author_that_is_no_person(refold: Refold, tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": f"by {author}"}
        for author in ("person", "program", "tool", None)
    ]
    authors: tuple[dict[str, str], ...] = (
        {"author": "person"},
        {"author": "program"},
        {"author": "tool"},
        {},
    )
    system = {"role": "system", "content": "s"}
    talk = [system, *({**words, **author} for words, author in zip(said, authors, strict=True))]
    (tmp_path / "t.json").write_text(json.dumps(talk))
    refold("import", str(tmp_path / "t.json"), "--db", "a.db")
    shown = refold("show", "t", "--db", "a.db").out
    roles = [
        line.partition("by ")[0].split(maxsplit=1)[-1]
        for line in shown.splitlines()
        if "by " in line and line[:6].strip().isdecimal()
    ]
    assert ["program" in role or "tool" in role for role in roles] == [False, True, True, False]
    shown_json = refold("show", "t", "--db", "a.db", "--json").answer["messages"]
    assert [m["author"] for m in shown_json][1:] == ["person", "program", "tool", None]


@pytest.mark.usefixtures("stored")
def test_a_context_of_an_earlier_version_is_shown_as_it_was(refold: Refold) -> None:
    early = refold("context", "talk", "--at", 3, "--json").answer
    assert early["version"] == 3
    assert early["summary_id"] is None
    assert len(early["messages"]) == 3


@pytest.mark.usefixtures("stored")
def test_a_context_over_the_budget_says_so(refold: Refold) -> None:
    assert "Larger than the budget" in refold("context", "talk", "--window", 1000).out
    assert "Larger than the budget" not in refold("context", "talk").out


@pytest.mark.usefixtures("stored")
def test_positions_that_do_not_exist_are_told(refold: Refold) -> None:
    assert "positions 0 to 79 exist" in refold("show", "talk", "--start", 200).out


# --- hostile texts and narrow terminals


def hostile_file(folder: Path) -> Path:
    path = folder / f"x{HOSTILE.replace('/', '')}.jsonl"
    used = {"type": "tool_use", "id": "c1", "name": f"look{HOSTILE}", "input": {HOSTILE: HOSTILE}}
    odd = {"type": f"odd{HOSTILE}", "text": HOSTILE}
    path.write_text(
        jsonl(
            {"type": "summary", "summary": f"title {HOSTILE}", "leafUuid": "u1"},
            claude_user("u1", f"[red]not markup[/red] [/] :smile: {HOSTILE}" * 30),
            claude_answer("a1", "m1", text(HOSTILE), used, odd, model=f"m{HOSTILE}"),
            claude_user("u2", [result("c1", HOSTILE * 50)]),
            claude_answer("a2", "m2", text("Done. " * 300)),
            claude_user("u3", "Thanks", sessionId=f"s{HOSTILE}"),
            *(claude_answer(f"b{n}", f"n{n}", text(f"More {n} " * 50)) for n in range(9)),
            {"type": f"news{HOSTILE}"},
            f'{{"broken{HOSTILE}',
        ),
        "utf-8",
    )
    return path


def test_texts_of_a_transcript_command_no_terminal(refold: Refold, tmp_path: Path) -> None:
    path = hostile_file(tmp_path)
    prints = [refold("import", path), refold("list"), refold("play", path, "--window", 1200)]
    threads = [c["thread_id"] for c in refold("list", "--json").answer["conversations"]]
    assert threads
    for thread in threads:
        for line in ("show", "context", "compact", "summaries", "context --window 1000"):
            command, *rest = line.split()
            prints += [refold(command, thread, *rest), refold(command, thread, *rest, "--json")]
    prints += [refold("show", HOSTILE), refold("play", HOSTILE), refold("import", HOSTILE)]
    prints += [refold("list", "--db", HOSTILE), refold("compact", HOSTILE, "--json")]
    for done in prints:
        assert CONTROL.search(done.out + done.err) is None
    for line in ("show", "context"):
        assert "[red]not markup[/red] [/] :smile:" in refold(line, threads[-1]).out


def test_what_verify_found_commands_no_terminal(refold: Refold, stored: Path) -> None:
    assert refold("list").code == 0
    execute(stored.with_name("agent.views.db"), "UPDATE messages SET text=?", (HOSTILE,))
    done = refold("verify")
    assert done.code == 1
    assert CONTROL.search(done.out + done.err) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONIOENCODING": "ascii", "LANG": "C"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["ascii", "posix"],
)
def test_a_terminal_without_unicode_gets_everything_it_can_show(
    tmp_path: Path, env: dict[str, str]
) -> None:
    said = [{"role": "user", "content": "你好 🙂 abc"}, {"role": "assistant", "content": "é xyz"}]
    (tmp_path / "t.json").write_text(json.dumps(said))
    for line in ("import t.json", "list", "show t", "context t", "verify", "play t.json"):
        done = ran(*line.split(), folder=tmp_path, env=env, encoding="ascii")
        assert done.code == 0, done.err
    assert "abc" in ran("show", "t", folder=tmp_path, env=env, encoding="ascii").out
    play = ran("play", "t.json", "--requests", "r.jsonl", folder=tmp_path, env=env)
    assert play.code == 0
    request = json.loads((tmp_path / "r.jsonl").read_text("utf-8"))
    assert "你好 🙂 abc" in json.dumps(request["messages"], ensure_ascii=False)


def test_a_narrow_terminal_still_shows_whole_names_and_numbers(
    refold: Refold, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = "9a9eadc8-c1f1-493e-a0f1-884aa996b05b"
    talk_file(tmp_path / f"{name}.json", 40)
    monkeypatch.setattr(output.console, "width", 40)
    for done in (refold("import", f"{name}.json"), refold("list")):
        assert done.code == 0
        assert name[:8] in done.out  # Enough to name it.
        assert "160" in done.out
    assert name in refold("list", "--json").out
    shown = refold("show", name[:8], "8..10").out
    assert max(map(len, shown.splitlines()[2:])) <= 60
    assert "Question 2:" in shown
    assert "24,800" in refold("play", f"{name}.json", "--window", "32000").out


# --- verify and replay


def test_a_changed_event_is_named_by_thread_and_version(refold: Refold, stored: Path) -> None:
    state = next(row for row in rows(stored) if row[1] == 7)[3]
    set_state(stored, 7, flipped(state, len(state) - 5))
    done = refold("verify")
    assert done.code == 1
    assert re.search(r"log +talk +7 ", done.out)
    assert "restore the log from a backup" in done.out
    damage = refold("verify", "--json")
    assert damage.code == 1
    assert not damage.answer["ok"]
    found = {(d["place"], d["thread_id"], d["version"]) for d in damage.answer["damage"]}
    assert ("log", "talk", 7) in found
    refused = refold("show", "talk")
    assert refused.code == 2
    assert "refold verify" in refused.err


def test_damaged_read_models_are_found_and_rebuilt_by_replay(refold: Refold, stored: Path) -> None:
    before = refold("show", "talk", "--json").answer
    views = stored.with_name("agent.views.db")
    execute(views, "UPDATE messages SET text='something else' WHERE position=1")
    execute(views, "DELETE FROM summaries")
    found = refold("verify")
    assert found.code == 1
    assert "refold replay" in found.out
    assert {d["place"] for d in refold("verify", "--json").answer["damage"]} == {
        "messages",
        "summaries",
    }
    replayed = refold("replay")
    assert replayed.code == 0
    assert "No model was called" in replayed.out
    assert refold("verify").code == 0
    assert refold("show", "talk", "--json").answer == before


def test_lost_read_models_are_made_again_when_asked(refold: Refold, stored: Path) -> None:
    before = refold("summaries", "talk", "--json").answer
    for path in stored.parent.glob("agent.views.db*"):
        path.unlink()
    assert refold("summaries", "talk", "--json").answer == before
    assert refold("verify").code == 0


# --- processes: exit codes, pipes, the installed program


def test_exit_codes_reach_the_shell(tmp_path: Path) -> None:
    talk_file(tmp_path / "talk.json", 20)
    assert ran("import", "talk.json", folder=tmp_path).code == 0
    assert ran("list", folder=tmp_path).code == 0
    execute(tmp_path / "agent.views.db", "DELETE FROM messages")
    assert ran("verify", folder=tmp_path).code == 1
    assert ran("show", "nobody", folder=tmp_path).code == 2


@pytest.mark.slow(but="show talk --json")
@pytest.mark.parametrize("line", ["show talk --json", "context talk", "context talk --json"])
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, line: str) -> None:
    (tmp_path / "talk.json").write_text(json.dumps(talk(100, "Many words here. " * 300)))
    assert ran("import", "talk.json", folder=tmp_path).code == 0
    # Unbuffered, Python takes the part of a write that a pipe took for the whole of it.
    with process(*line.split(), folder=tmp_path, env={"PYTHONUNBUFFERED": ""}) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        assert started.stdout.read(1)
        started.stdout.close()
        err = started.stderr.read()
        assert started.wait(60) == 0
    assert err == b""


@pytest.mark.parametrize("line", ["import talk.json --json", "--version"])
def test_a_program_without_standard_output_works_as_with_it(tmp_path: Path, line: str) -> None:
    talk_file(tmp_path / "talk.json")
    command = ["sh", "-c", 'exec "$@" >&-', "sh", *PROGRAM, *line.split()]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.slow
def test_the_demo_tells_its_story_and_ends_well(tmp_path: Path) -> None:
    told = ran("demo", folder=tmp_path)
    assert told.code == 0
    assert "all is well" in told.out
    assert "the same bytes as before" in told.out
    printed = told.out.splitlines()
    _, _, quoted = (
        (Path(__file__).parents[2] / "README.md").read_text().partition("$ refold demo\n")
    )
    for line in quoted.partition("```")[0].splitlines():
        assert line == "…" or any(one.startswith(line) for one in printed), (
            f"README.md says {line!r}"
        )
    assert "refold play FILE" in told.out
    assert told.err == ""
    story = ran("demo", "--window", "32000", "--json", folder=tmp_path).answer
    assert story["figures"]["requests_over_budget"] == 0
    assert story["after_repair"]["ok"]
    assert story["same_context"]
    assert not story["damage_found"]["ok"]
    assert (tmp_path / "demo.db").exists()  # Left to be looked at.


BEGIN = """
import signal, tomllib
from importlib import import_module
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
project = tomllib.loads(Path({project!r}).read_text())["project"]
module, name = project["scripts"]["refold"].split(":")
getattr(import_module(module), name)()
"""


@pytest.mark.parametrize("json_too", [False, True])
def test_ctrl_c_while_the_program_starts_is_one_sentence(tmp_path: Path, json_too: bool) -> None:
    # Imported early, in the place of the real one: somebody presses Ctrl-C just then.
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    project = Path(__file__).parents[2] / "pyproject.toml"
    words = ["list", *(["--json"] if json_too else [])]
    done = subprocess.run(
        [sys.executable, "-c", BEGIN.format(project=str(project)), *words],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr.startswith("Stopped.")
    assert len(done.stderr.splitlines()) == 1
    told = json.loads(done.stdout)["error"] if done.stdout else None
    assert told == ("Interrupted" if json_too else None)


def codex(*items: dict[str, Any]) -> str:
    """A rollout of Codex with these items."""
    begun = {"type": "session_meta", "timestamp": "2026-01-02T03:04:05Z", "payload": {"id": "s"}}
    records = [
        {"type": "response_item", "timestamp": "2026-01-02T03:04:05Z", "payload": item}
        for item in items
    ]
    return "".join(json.dumps(record) + "\n" for record in (begun, *records))


def test_results_that_were_half_written_at_the_last_import_are_no_other_conversation(
    refold: Refold, tmp_path: Path
) -> None:
    """Results of calls at the same time are one message there."""
    asked: dict[str, Any] = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "go"}],
    }
    calls: list[dict[str, Any]] = [
        {"type": "function_call", "call_id": f"c{n}", "name": "run", "arguments": "{}"}
        for n in range(2)
    ]
    results: list[dict[str, Any]] = [
        {"type": "function_call_output", "call_id": f"c{n}", "output": f"done {n}"}
        for n in range(2)
    ]
    seen: list[list[dict[str, Any]]] = [
        [asked, calls[0]],
        [asked, *calls, results[0]],
        [asked, *calls, *results],
    ]
    for items in seen:
        (tmp_path / "s.jsonl").write_text(codex(*items))
        done = refold("import", "s.jsonl")
        assert done.code == 0, done.err
    shown = json.dumps(refold("show", "s", "--json").answer)
    assert all(f"done {n}" in shown for n in range(2))
    (tmp_path / "s.jsonl").write_text(
        codex({**asked, "content": [{"type": "input_text", "text": "other"}]}, *calls)
    )
    refused = refold("import", "s.jsonl")
    assert refused.code == 2
    assert "already has another conversation" in refused.err
