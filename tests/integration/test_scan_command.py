"""``refold scan`` as a new user runs it: on a home folder, on given files, stopped, and on odd files."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from refold.infrastructure.cli import scan_workers
from tests.support.command_line import CONTROL, HOSTILE, Ran, Refold, process, ran
from tests.support.real_data import data_folder, needs_data
from tests.support.scanned_sessions import (
    MASKED,
    RULE,
    SECRET,
    compacted_session,
    home_with_sessions,
    quiet_session,
)

VARIABLES = (
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"),
    *("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"),
)
NO_PLACES = dict.fromkeys(VARIABLES, "")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of the person who runs the commands."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return folder


def compactions(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for session in answer["sessions"] for one in session["compactions"]]


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of the last change of everything below a folder."""
    found = [folder, *folder.rglob("*")]
    return {str(p): (p.lstat().st_size, p.lstat().st_mtime_ns) for p in found}


def test_the_sessions_of_the_home_folder_are_scanned(refold: Refold, home: Path) -> None:
    home_with_sessions(home)
    answer = refold("scan", "--json").answer
    assert answer["sessions_by_tool"] == {
        "claude-code": 2, "codex": 1, "gemini-cli": 1, "pi": 0,
    }  # fmt: skip
    assert (answer["compactions"], answer["compared_compactions"]) == (3, 3)
    claude, codex = sorted(answer["sessions"], key=lambda session: str(session["tool"]))
    assert (claude["file"], codex["tool"]) == ("~/.claude/projects/-w/one.jsonl", "codex")
    first, second = claude["compactions"]
    assert [fact["kind"] for fact in first["lost"]] == ["requests", "rules", "files"]
    assert (first["actions_before_edit"], second["actions_before_edit"]) == (1, None)
    assert (first["twice"]["files"], second["twice"]["files"]) == (1, 1)
    assert second["lost"] == []
    assert answer["kinds"]["rules"] == {
        "needed": 1,
        "lost": 1,
        "looked_at": 1,
        "kept": 1,
        "kept_short": 0,
    }
    assert len(answer["sessions_without_compactions"]) == 2
    assert not answer["stopped"]


def test_the_table_says_it_for_people(refold: Refold, home: Path) -> None:
    home_with_sessions(home)
    done = refold("scan")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "Looking for sessions of Claude Code, Codex, Gemini CLI and pi …"
    (row,) = [line for line in lines if line.startswith("Start with the parser")]
    assert re.search(r"Claude Code +2 × +3 of 4 +1, – ", row)
    assert (
        f"The rule “{RULE}”, said at message 0, is not in the summary of compaction 1" in done.out
    )
    assert "Gemini CLI does not record compactions: its 1 session" in done.out
    assert "4 sessions" in done.out
    assert "2 of them compacted: 3 compactions" in done.out
    lost = "1 of 1 requests, 1 of 1 rules, 1 of 2 files, 0 of 0 commands"
    assert f"Needed again and not in the summary: {lost}." in done.out
    assert "refold claude-code install" in lines[-1]
    assert "refold import" in lines[-1]


def test_without_sessions_the_answer_is_no(refold: Refold, home: Path) -> None:
    done = refold("scan")
    assert (done.code, list(home.iterdir())) == (1, [])
    assert "No sessions were found" in done.out
    assert "refold import" in done.out.splitlines()[-1]
    assert refold("scan", "--json").answer["sessions"] == []


def test_given_folders_and_files_are_scanned_instead(refold: Refold, home: Path) -> None:
    home_with_sessions(home)
    Path("some").mkdir()
    Path("some/a.jsonl").write_text(compacted_session("a"))
    Path("b.txt").write_text(compacted_session("b"))
    answer = refold("scan", "some", "b.txt", "--json").answer
    assert {session["file"] for session in answer["sessions"]} == {"some/a.jsonl", "b.txt"}
    missing = refold("scan", "none", "--json")
    assert missing.code == 2
    assert "none does not exist" in missing.answer["message"]


def test_the_same_compaction_in_two_files_counts_once(refold: Refold) -> None:
    Path("s").mkdir()
    whole = compacted_session("a")
    Path("s/a.jsonl").write_text(whole)
    Path("s/resumed.jsonl").write_text(whole + quiet_session("a2"))
    Path("s/begun.jsonl").write_text("".join(whole.splitlines(keepends=True)[:5]))
    answer = refold("scan", "s", "--json").answer
    assert answer["compactions"] == 2
    assert any(note.startswith("3 compactions in a second file") for note in answer["notes"])


def test_a_summary_as_a_beginning_gives_way_to_the_file_with_the_messages(refold: Refold) -> None:
    Path("s").mkdir()
    whole = compacted_session("a").splitlines(keepends=True)
    Path("s/late.jsonl").write_text("".join(whole[3:]))  # Newer: the first summary opens it.
    Path("s/whole.jsonl").write_text("".join(whole[:6]))
    os.utime("s/whole.jsonl", (1000, 1000))
    both = refold("scan", "s", "--json").answer
    assert both["compactions"] == 2
    assert both["kinds"]["rules"]["lost"] == 1
    alone = refold("scan", "s/late.jsonl", "--json").answer
    assert (alone["compactions"], alone["kinds"]["rules"]["lost"]) == (2, 0)
    assert [len(session["compactions"]) for session in alone["sessions"]] == [2]
    assert any("summary of an earlier session" in note for note in alone["notes"])
    begun = refold("scan", "s/late.jsonl").out
    assert begun.count("2 compactions") == 1


@pytest.mark.usefixtures("home")
def test_secrets_are_masked_in_every_output(refold: Refold) -> None:
    asked = f"Never print {SECRET} in the output of the server."
    folder = Path(f"with-{SECRET}")
    folder.mkdir()
    content = compacted_session("a", asked=asked, path=f"/w/{SECRET}.py")
    (folder / f"{SECRET}.jsonl").write_text(content.replace("Start with", f"{SECRET} starts"))
    (folder / f"broken-{SECRET}.jsonl").write_text('{"half')
    shown, answered = refold("scan", folder), refold("scan", folder, "--json")
    assert refold("scan", folder, "--html", "page.html").code == 0
    page = Path("page.html").read_text()
    for output in (shown.out + shown.err, answered.out, page):
        assert SECRET not in output
        assert f"Never print {MASKED} in the output" in output


def test_what_a_session_says_is_neither_markup_nor_a_command(refold: Refold) -> None:
    odd = f"Never [bold red]do[/] {HOSTILE}\u202e that here."
    written = compacted_session(f"a{HOSTILE}", asked=odd).replace(
        "Start with", f"{HOSTILE}[/red]<script>x</script>"
    )
    Path("a.jsonl").write_text(written)
    done = refold("scan", "a.jsonl", "--html", "page.html")
    assert done.code == 0
    assert not CONTROL.search(done.out + done.err)
    assert "\u202e" not in done.out
    assert "[/red]" in done.out
    page = Path("page.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not CONTROL.search(page)
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import""", page)


def test_a_page_replaces_a_file_only_if_it_may(refold: Refold) -> None:
    Path("a.jsonl").write_text(compacted_session("a"))
    assert refold("scan", "a.jsonl", "--html", "page.html").code == 0
    page = Path("page.html")
    assert "The rule" in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert refold("scan", "a.jsonl", "--html", "page.html").code == 2
    assert refold("scan", "a.jsonl", "--html", "page.html", "--force").code == 0
    assert refold("scan", "a.jsonl", "--html", "no/page.html").code == 2


def test_odd_files_are_named_and_end_nothing(refold: Refold) -> None:
    Path("s").mkdir()
    whole = compacted_session("a")
    Path("s/a.jsonl").write_text(whole[:-30])
    Path("s/b.jsonl").write_bytes(b"\x80\x81")
    Path("s/c.json").write_text('{"name": "no session"}')
    Path("s/d.jsonl").touch()
    done = refold("scan", "s")
    assert done.code == 0
    assert "Damaged lines were skipped in s/a.jsonl." in done.out
    assert "Not read: s/b.jsonl is not a transcript" in done.out
    assert "Not read: s/d.jsonl is empty" in done.out
    assert "1 file without messages of these tools." in done.out


def test_an_invalid_setting_leaves_out_the_comparison_only(
    refold: Refold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFOLD_WINDOW", "wide")
    Path("a.jsonl").write_text(compacted_session("a"))
    answer = refold("scan", "a.jsonl", "--json").answer
    assert (answer["compactions"], answer["compared_compactions"]) == (2, 0)
    assert any("Not compared: InvalidSetting" in note for note in answer["notes"])


@pytest.mark.parametrize("count", [3, 4])
def test_only_the_newest_compactions_are_compared_unless_all_are_wanted(
    refold: Refold, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr("refold.infrastructure.cli.scan_report.NEWEST", count)
    Path("s").mkdir()
    for hour in (2, 6, 10):
        Path(f"s/{hour}.jsonl").write_text(compacted_session(f"n{hour}", hour=hour))
    answer = refold("scan", "s", "--json").answer
    compared = [one["at"] for one in compactions(answer) if one["ledger_tokens"]]
    hours = [f"2026-02-01T{hour:02}:00:00Z" for hour in (11, 10, 7, 6)]
    assert sorted(compared, reverse=True) == hours[:count]
    assert answer["compared_compactions"] == count
    assert refold("scan", "s", "--all", "--json").answer["compared_compactions"] == 6


def test_two_processes_say_the_same_as_one(refold: Refold, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("s").mkdir()
    for n in range(6):
        Path(f"s/{n}.jsonl").write_text(compacted_session(f"n{n}", hour=n))
        os.utime(f"s/{n}.jsonl", (n, n))
    one = refold("scan", "s", "--json").out
    monkeypatch.setattr(scan_workers, "SMALL", 0)
    assert refold("scan", "s", "--json").out == one


def test_a_process_that_dies_leaves_its_work_to_this_one() -> None:
    with scan_workers.workers(10**9) as pool:
        assert list(pool.run(_die_elsewhere, [os.getpid()] * 5)) == ["here"] * 5


def _die_elsewhere(parent: int) -> str:
    if os.getpid() != parent:
        os._exit(1)
    return "here"


# --- in a process of its own


def many(folder: Path, count: int = 300) -> Path:
    """Sessions that take some seconds to scan."""
    folder.mkdir()
    long = "".join(quiet_session(f"q{n}") for n in range(300))
    for n in range(count):
        own = compacted_session(f"n{n}")
        (folder / f"{n}.jsonl").write_text(own + long.replace('"q', f'"n{n}q'))
    return folder


@pytest.mark.parametrize("form", ["table", "--json"])
def test_ctrl_c_prints_what_is_known_so_far(tmp_path: Path, form: str) -> None:
    many(tmp_path / "s")
    words = ["scan", "s", *([form] if form != "table" else [])]
    env = {"HOME": str(tmp_path)}
    with process(*words, folder=tmp_path, env=env) as started:
        assert started.stdout is not None
        seen = b""
        if form == "table":
            while b"Start with" not in seen:
                seen += started.stdout.readline()
        else:
            # Nothing is printed before the end; the processes that read the files are there when it has begun.
            while len(psutil.Process(started.pid).children(recursive=True)) < 2:
                time.sleep(0.02)
            time.sleep(0.5)
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=60)
    done = Ran(started.returncode, (seen + out).decode(), err.decode())
    assert done.code == 130
    assert "Traceback" not in done.err
    if form == "table":
        assert "Stopped by Ctrl-C. This is what is known so far." in done.out
        assert re.search(r"\d+ of them compacted", done.out)
        assert "refold claude-code install" in done.out.splitlines()[-1]
    else:
        assert done.answer["stopped"]
        assert 0 < done.answer["files"] < 300


def test_nothing_is_written_also_where_nothing_can_be(tmp_path: Path) -> None:
    home, work = home_with_sessions(tmp_path / "home"), tmp_path / "work"
    work.mkdir()
    before = listing(tmp_path)
    folders = [p for p in (home, *home.rglob("*"), work) if p.is_dir()]
    for folder in folders:
        folder.chmod(0o500)
    try:
        env = {**NO_PLACES, "HOME": str(home), "TMPDIR": str(work)}
        shown, answered = (ran("scan", *w, folder=work, env=env) for w in ([], ["--json"]))
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert (shown.code, answered.code) == (0, 0), shown.err
    assert answered.answer["compared_compactions"] == 3
    assert listing(tmp_path) == before


def test_the_first_line_is_there_within_a_second(tmp_path: Path) -> None:
    many(tmp_path / "s", 20)
    ran("--version", folder=tmp_path)  # The files of the package are in memory then.
    start = time.monotonic()
    with process("scan", "s", folder=tmp_path) as started:
        assert started.stdout is not None
        assert started.stdout.readline().startswith(b"Looking for sessions")
        took = time.monotonic() - start
        started.communicate(timeout=60)
    assert took < 1 or os.getloadavg()[0] > 2 * (os.cpu_count() or 1)


PROBE = """
import json, sys
sys.argv = ["refold", "scan", "none"]
from refold.infrastructure.cli import output
output.say = lambda text="": sys.exit(print(json.dumps(sorted(sys.modules))))
from refold.infrastructure.cli.program import main
main()
"""


def test_nothing_slow_is_imported_before_the_first_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE], cwd=tmp_path, capture_output=True, check=False
    )
    loaded = set(json.loads(done.stdout))
    assert "refold.infrastructure.cli.scan_command" in loaded
    slow = {"refold.application.lab.session_scan", "refold.infrastructure.bootstrap"}
    assert loaded & slow == set()


@pytest.mark.slow
@needs_data
def test_real_sessions_have_the_compactions_that_their_records_say(
    refold: Refold, tmp_path: Path
) -> None:
    data = data_folder()
    assert data is not None
    answer = refold("scan", data / "claude-code-entire", data / "pi", "--json").answer
    # Counted with grep: 16 records with isCompactSummary, and 2 of the type compaction.
    assert answer["compactions"] == 18
    assert answer["sessions_by_tool"] == {
        "claude-code": 13, "codex": 0, "gemini-cli": 0, "pi": 1,
    }  # fmt: skip
    by_file = {Path(s["file"]).name: s for s in answer["sessions"]}
    session = by_file["25730c662552_0.jsonl.gz"]
    assert [one["actions_before_edit"] for one in session["compactions"]] == [46, 22]
    assert shutil.which("refold") is None or not list(tmp_path.iterdir())
