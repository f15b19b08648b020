"""``refold erase``, as people and programs use it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import PROGRAM, Refold, talk_file


@pytest.mark.usefixtures("stored")
def test_messages_are_erased_and_the_report_says_from_where(refold: Refold) -> None:
    ran = refold("erase", "talk", "0", "refold://talk/2", "--yes", "--reason", "asked")
    assert ran.code == 0
    assert "ledger lines" in ran.out
    assert "was rebuilt" in ran.out
    assert "No file of the log contains it any more" in ran.out
    assert "Content unavailable" in refold("read", "refold://talk/0").out
    assert {
        m["fate"] for m in refold("explain", "talk", "--stop", 1, "--json").answer["messages"]
    } == {"erased"}
    assert refold("verify").code == 0
    again = refold("erase", "talk", "0", "--yes")
    assert (again.code, again.out) == (0, "Nothing was left to erase.\n")


@pytest.mark.usefixtures("stored")
def test_programs_get_the_report_as_json(refold: Refold) -> None:
    answer = refold("erase", "talk", "3", "--yes", "--json").answer
    assert answer["positions"] == [3]
    assert answer["complete"]
    assert answer["changed"]
    assert {"thread_id": "talk", "place": "message", "version": 4, "count": 1} in answer["removed"]


@pytest.mark.usefixtures("stored")
def test_a_whole_conversation_is_erased(refold: Refold, stored: Path) -> None:
    assert refold("erase", "talk", "--all", "--yes").code == 0
    assert b"Some words of the talk" not in stored.read_bytes()
    assert refold("list", "--json").answer["conversations"] == []
    assert refold("verify").code == 0
    gone = refold("read", "refold://talk/0")
    assert gone.code == 2
    assert "was erased" in gone.err


@pytest.mark.usefixtures("stored")
def test_nothing_is_erased_where_nobody_can_be_asked(refold: Refold) -> None:
    ran = refold("erase", "talk", "0")
    assert ran.code == 2
    assert "--yes" in ran.err
    assert "Question 0" in refold("read", "refold://talk/0").out


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("words", [["talk"], ["talk", "1", "--all"]])
def test_wrong_use_is_refused(refold: Refold, words: list[str]) -> None:
    assert refold("erase", *words, "--yes").code == 2


@pytest.mark.usefixtures("stored")
def test_what_is_not_there_is_told(refold: Refold) -> None:
    assert "no message at position 999" in refold("erase", "talk", "999", "--yes").err
    assert "no conversation 'nobody'" in refold("erase", "nobody", "1", "--yes").err


@pytest.mark.slow(but="True")
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("whole", [False, True])
def test_who_is_asked_is_told_which_copies_go_too(
    refold: Refold, stored: Path, whole: bool
) -> None:
    assert refold("fork", "talk", "another").code == 0
    assert refold("fork", "talk", "early", "--at", 3).code == 0
    asked, what = _asked("erase", "talk", "--all" if whole else "50", folder=stored.parent)
    assert what == 1
    assert "'another'" in asked
    assert "are erased there too" in asked
    assert ("early" in asked) == whole
    assert "Some words" in refold("read", "refold://talk/50").out


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_without_copies_none_are_spoken_of(refold: Refold, stored: Path) -> None:
    asked, _ = _asked("erase", "talk", "0", folder=stored.parent)
    assert "Erase 1 message of 'talk'? This cannot be undone" in asked
    assert "Question 0" in refold("read", "refold://talk/0").out


def _asked(*words: str, folder: Path) -> tuple[str, int]:
    """What a person at a terminal, who then says no, is asked; and how the command ends."""
    ours, theirs = os.openpty()
    os.write(ours, b"n\n")
    with subprocess.Popen(
        [*PROGRAM, *words], cwd=folder, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as command:
        _, told = command.communicate()
    os.close(ours)
    os.close(theirs)
    return told.decode(), command.returncode


@pytest.mark.slow
def test_a_list_counts_compactions_and_not_what_erasures_make_anew(
    refold: Refold, tmp_path: Path
) -> None:
    talk_file(tmp_path / "talk.json", 20)
    assert refold("import", "talk.json", "--owner", "user-7").code == 0
    assert refold("compact", "talk").code == 0
    assert refold("backup", "kept.db").code == 0
    assert refold("erase", "talk", "3", "5", "--yes").code == 0
    [row] = refold("list", "--json").answer["conversations"]
    assert (row["compactions"], row["erased_messages"]) == (1, 2)
    assert row["tokens"] > 0
    assert refold("erase", "--owner", "user-7", "--yes").code == 0
    for _ in ("erased", "restored, and erased again"):
        [row] = refold("list", "--json").answer["conversations"]
        assert row["compactions"] == 1
        assert (row["messages"], row["erased_messages"], row["tokens"]) == (80, 80, 0)
        assert "·1" in refold("list").out
        assert refold("verify").code == 0
        assert refold("restore", "kept.db", "--force").code == 0
