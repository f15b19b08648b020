"""Whatever stands in a transcript stays text: no terminal, file, query or request obeys it."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from itertools import chain
from pathlib import Path

import pytest

import refold as library
from refold.infrastructure.cli.commands import ENTRIES
from refold.infrastructure.cli.output import clean, print_json
from refold.testing.request_judge import violations
from tests.support.command_line import Ran, Refold
from tests.support.hostile_texts import (
    ALL,
    CONTROLS,
    LIVE,
    MISLEADING,
    PATHS,
    QUERIES,
    RECORDINGS,
    recording,
)
from tests.support.log_files import execute

Lines = dict[str, tuple[str, ...]]

THREAD = "T"  # in a command: the thread id
FILE = "F"  # in a command: the transcript
READING: Lines = {
    "list": ("list",),
    "show": ("show T", "show T --start 2 --stop 3"),
    "context": ("context T", "context T --text", "context T --window 2000", "context T --at 3"),
    "summaries": ("summaries T",),
    "explain": ("explain T",),
    "why": ("why T ignore", "why T '; --at 3", "why T ../../etc/passwd"),
    "facts": (
        "facts T",
        "facts T --kind said",
        "facts T --compare",
        "facts T --rules ../../etc:passwd",
    ),
    "read": ("read refold://T/0", "read refold://../../etc/passwd/1", "read file:///etc/passwd"),
    "pins": ("pins T",),
    "mcp": ("mcp", "mcp --thread T"),
    "verify": ("verify", "verify --repair"),
    "settings": ("settings",),
    "stats": ("stats",),
    "diff": ("diff T 1 3", "diff T 1 9 --full"),
    "export": ("export T", "export T --format events", "export T --html agent.html --force"),
    "inspect": ("inspect --bundle agent.pages --force",),
    "recall": (
        "recall T ignore",
        'recall T col:"x"AND*NEAR(',
        "recall T --limit=9 --mode=hybrid said",
    ),
    "search": ("search system", "search '; --leave-out-context"),
    "query": ("query T", "query T --range -3..", "query T --text ignore --id ../../etc/passwd"),
    "expand": ("expand ../../etc/passwd",),
    "index": ("index",),
    "topics": ("topics T",),
    "notes": ("notes", "notes T", "notes --write agent.notes"),
    "search-notes": (
        "search-notes ignore --folder agent.notes",
        "search-notes '; --folder agent.notes --mode=hybrid",
        "search-notes --folder agent.notes",
        "search-notes ignore --folder .. --owner ../..",
    ),
}
ACTING: Lines = {
    "compact": ("compact T --window 4000", "compact T"),
    "pin": ("pin T 0", "pin T 2"),
    "unpin": ("unpin T nothing",),
    "proposals": ("proposals T",),
    "allow": ("allow T nothing",),
    "refuse": ("refuse T nothing",),
    "revert": ("revert T",),
    "replay": ("replay",),
    "fork": ("fork T ../../fork --at 3", "fork T"),
    "erase": ("erase T 1 --yes --reason ../..", "erase ../../fork --all --yes"),
    "compress": ("compress",),
    "backup": ("backup copy.db",),
    "copy": ("copy agent.db agent.copied.db",),
    "db": ("db upgrade",),
    "restore": ("restore copy.db --force",),
    "anchor": ("anchor", "anchor --out agent.exported", "anchor --accept"),
    "salvage": ("salvage salvaged.db",),
}
PLAYING: Lines = {
    "play": ("play F --window 4000", "play F --window 4000 --requests out.jsonl"),
    "simulate": ("simulate F --window 4000 --policy default --policy early",),
    "scan": ("scan F --all --html agent.scan.html --force",),
    "import": ("import F",),
}
OURS = ("work/agent.", "work/copy.", "work/salvaged.")
"""How the files begin that the commands above are told to make."""
LEFT_OUT = {"claude-code", "demo", "exam", "label"}
"""Show a text of ours, or of who types it, only. ``claude-code hook`` writes JSON for a program."""


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with other people's files above it and beside it."""
    for name in ("etc/passwd", "beside/agent.db", "work/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("somebody else's")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def files_of(folder: Path) -> dict[str, str]:
    """All files but those of the store, by a digest of their content."""
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not str(path.relative_to(folder)).startswith(OURS)
    }


def schema_of(path: Path) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return set(connection.execute("SELECT type, name FROM sqlite_schema"))


def run_all(refold: Refold, lines: Lines, thread: str, file: Path) -> Iterator[Ran]:
    """Every command, for people and for programs."""
    for line in chain.from_iterable(lines.values()):
        words = [word.replace(THREAD, thread).replace(FILE, str(file)) for word in line.split(" ")]
        for done in (refold(*words), refold(*words, "--json")):
            assert "Traceback" not in done.err, (line, done.err)
            assert CONTROLS.search(done.out + done.err) is None, line
            assert MISLEADING.search(done.out + done.err) is None, line
            yield done


def test_every_command_that_shows_or_reads_texts_is_run_here() -> None:
    names = set(ENTRIES)
    assert {*READING, *ACTING, *PLAYING, *LEFT_OUT} >= names, "add the new command to a list above"


@pytest.mark.slow(but="anthropic")
@pytest.mark.parametrize("format", RECORDINGS)
def test_no_command_obeys_what_a_recording_says(
    refold: Refold, surroundings: Path, format: str
) -> None:
    work = surroundings / "work"
    file = recording(surroundings, format)
    before = files_of(surroundings)
    imported = refold("import", file, "--format", format)
    assert imported.code == 0, imported.err
    assert CONTROLS.search(imported.out + imported.err) is None
    tables = schema_of(work / "agent.db")
    threads = [c["thread_id"] for c in refold("list", "--json").answer["conversations"]]
    assert threads
    for thread in threads[:2]:
        for lines in (ACTING, READING):
            list(run_all(refold, lines, thread, file))
    list(run_all(refold, PLAYING, threads[0], file))
    (work / "out.jsonl").unlink()
    assert tables <= schema_of(work / "agent.db")
    assert refold("verify").code == 0
    assert files_of(surroundings) == before


LIVING = ("../../etc/passwd", "refold://other/1", "'; DROP TABLE stored_events; --", "[red]{0}%s")


@pytest.mark.slow
@pytest.mark.parametrize("thread", LIVING)
def test_what_an_agent_appends_comes_back_as_it_went_in_and_is_not_obeyed(
    refold: Refold, surroundings: Path, thread: str
) -> None:
    before = files_of(surroundings)
    with library.open("agent.db", window=20_000) as memory:
        other = memory.conversation("other")
        other.append({"role": "user", "content": "A secret."})
        conversation = memory.conversation(thread)
        conversation.append(LIVE, key=[f"{QUERIES}{n}" for n in range(len(LIVE))])
        conversation.label(ALL)
        conversation.pin(ALL)
        assert conversation.compact(focus=ALL).outcome == "performed"
        shown = conversation.context(system=ALL)
        assert violations(shown.for_anthropic()) == []
        assert "A secret." not in str(shown.messages)
        assert [m.message.content for m in conversation.messages()][:1] == [ALL]
        assert conversation.read(2).message.content == tuple(LIVE[2]["content"])
        for address in PATHS.split():
            with pytest.raises((library.InvalidAddress, library.ForeignAddress)):
                memory.conversation("third").read(address)
    for lines in (ACTING, READING):
        list(run_all(refold, lines, thread, surroundings / "etc/passwd"))
    assert files_of(surroundings) == before


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["\u202e", "\xa0", "\u3000", "\u200d", "\ufeff", "\ue000"])
def test_a_name_with_a_character_that_no_id_may_have_is_no_obstacle(
    refold: Refold, tmp_path: Path, odd: str
) -> None:
    (tmp_path / f"a{odd}b.json").write_text(json.dumps(LIVE), "utf-8")
    assert refold("import", f"a{odd}b.json").code == 0
    (found,) = refold("list", "--json").answer["conversations"]
    assert found["thread_id"].startswith("a_b-")


@pytest.mark.slow
def test_damage_that_says_something_is_not_obeyed_either(
    refold: Refold, surroundings: Path
) -> None:
    with library.open("agent.db") as memory:
        memory.conversation("t").append({"role": "user", "content": "words"})
    log = surroundings / "work" / "agent.db"
    execute(log, "UPDATE stored_events SET originator_id=?, topic=?, state=?", (ALL, ALL, ALL))
    for lines in (READING, ACTING):
        list(run_all(refold, lines, "t", surroundings / "etc/passwd"))


@pytest.mark.parametrize("lasting", ["\n", "\t", "é", "你", "🙂", "👩\u200d💻", "a\u200cb"])
def test_what_people_write_is_shown_as_it_is(lasting: str) -> None:
    assert clean(lasting) == lasting.replace("\t", "    ")


def test_json_says_the_same_without_a_character_that_a_terminal_obeys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_json({"text": ALL})
    printed = capsys.readouterr().out
    assert CONTROLS.search(printed) is None
    assert MISLEADING.search(printed) is None
    assert json.loads(printed) == {"text": ALL}


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-12:00"])
def test_a_time_at_an_end_of_the_calendar_breaks_no_list(tmp_path: Path, at: str) -> None:
    said = {"role": "user", "content": "Hello there."}
    record = {"type": "user", "uuid": "u1", "sessionId": "s1", "timestamp": at, "message": said}
    session = tmp_path / "session.jsonl"
    session.write_text(json.dumps(record), encoding="utf-8")
    (conversation,) = library.read_transcript(session).conversations
    with library.open(tmp_path / "agent.db") as memory:
        memory.conversation("other").append({"role": "user", "content": "Hello again."})
        memory.conversation("s1").append_recorded(conversation.messages)
        assert {row.thread_id for row in memory.conversations()} == {"other", "s1"}
        assert len(memory.search("hello").hits) == 2
        (message,) = memory.conversation("s1").messages()
        assert message.at[:13] == at[:13]
        assert memory.conversation("s1").context(at=at).version == 1
        assert memory.verify().ok
