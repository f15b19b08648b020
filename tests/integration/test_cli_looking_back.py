"""``refold explain``, ``read`` and ``simulate``, as people and programs use them."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.support.command_line import CONTROL, HOSTILE, Refold, process, talk_file
from tests.support.transcript_files import jsonl


@pytest.mark.usefixtures("stored")
def test_explain_shows_runs_of_messages_and_json_shows_each(refold: Refold) -> None:
    summary = next(s for s in refold("summaries", "talk", "--json").answer["summaries"])
    told = refold("explain", "talk").out
    last = summary["compact_up_to_index"]
    assert f"0–{last}" in told
    assert f"summary {summary['summary_id'][:8]} covers it" in told
    assert f"{last + 1}–79" in told
    assert "newer than the active summary" in told
    every = refold("explain", "talk", "--json").answer["messages"]
    assert [m["position"] for m in every] == list(range(80))
    assert {m["summary_id"] for m in every if m["fate"] == "summarised"} == {summary["summary_id"]}
    part = refold("explain", "talk", "--start", 70, "--stop", 73, "--json").answer["messages"]
    assert part == every[70:73]


@pytest.mark.usefixtures("stored")
def test_what_explain_points_to_can_be_read(refold: Refold) -> None:
    every = refold("explain", "talk", "--json").answer["messages"]
    said = refold("show", "talk", "--json").answer["messages"]
    for place in (0, 1, 2, 79):
        found = refold("read", every[place]["address"], "--json").answer
        told = {name: value for name, value in said[place].items() if name != "fate"}
        assert found == {"thread_id": "talk", **told}
    assert refold("read", "refold://talk/2").out.startswith("0: Some words of the talk.")
    assert refold("read", "refold://talk/1").out == '→ look {"at": 0}\n'
    next_line = refold("explain", "talk").out.splitlines()[-1]
    assert "Question 0" in refold(*next_line.removeprefix("Next: refold ").split()).out


@pytest.mark.usefixtures("stored")
def test_explaining_positions_that_there_are_not_is_told(refold: Refold) -> None:
    for command in ("explain", "show"):
        assert "No message there" in refold(command, "talk", "--start", 99).out


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("command", ["show", "explain"])
@pytest.mark.parametrize(
    "place", [["talk/99"], ["talk", "99"], ["refold://talk/99"], ["talk/99", "--json"]]
)
def test_a_message_that_there_is_not_is_refused(
    refold: Refold, command: str, place: list[str]
) -> None:
    told = refold(command, *place)
    assert told.code == 2
    said = told.out if "--json" in place else told.err
    assert "there is no message at position 99: the conversation has positions 0 to " in said


def test_an_undone_compaction_is_explained(refold: Refold, stored: Path) -> None:
    assert refold("revert", "talk", "--db", stored).code == 0
    told = refold("explain", "talk").out
    assert "covered it and was reverted" in told
    assert "covers it" not in told


def test_what_is_read_back_commands_no_terminal(refold: Refold, tmp_path: Path) -> None:
    said = [{"role": "user", "content": f"[red]{HOSTILE}[/red] tail"}]
    (tmp_path / "t.json").write_text(json.dumps(said))
    assert refold("import", "t.json", "--thread", "a b/[x]").code == 0
    every = refold("explain", "a b/[x]", "--json").answer["messages"]
    assert every[0]["address"] == "refold://a%20b/%5Bx%5D/0"
    for address in (every[0]["address"], "refold://a b/[x]/0"):
        done = refold("read", address)
        assert "[/red] tail" in done.out
        assert CONTROL.search(done.out) is None
    assert refold("read", every[0]["address"], "--json").answer["content"] == said[0]["content"]
    assert CONTROL.search(refold("read", HOSTILE).err) is None


@pytest.mark.slow
def test_simulate_compares_what_ships_when_no_policy_is_named(
    refold: Refold, tmp_path: Path
) -> None:
    talk_file(tmp_path / "talk.json", 30)
    told = refold("simulate", "talk.json", "--window", 4000)
    assert told.code == 0
    for words in ("default", "early", "late", "served by a prompt cache", "cost", "prices"):
        assert words in told.out.lower()
    answer = refold("simulate", "talk.json", "--window", 4000, "--json").answer
    assert [p["name"] for p in answer["policies"]] == ["default", "early", "late"]
    assert all(p["figures"]["requests"] == 60 for p in answer["policies"])
    assert sorted(tmp_path.iterdir()) == [tmp_path / "talk.json"]


def test_one_policy_is_compared_with_the_default_and_several_with_each_other(
    refold: Refold, tmp_path: Path
) -> None:
    talk_file(tmp_path / "talk.json", 30)
    (tmp_path / "mine.toml").write_text("trigger_share = 0.4\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.toml").write_text("trigger_share = 0.3\n")
    simulate = ("simulate", "talk.json", "--window", 4000, "--json", "--policy", "mine.toml")
    answer = refold(*simulate).answer
    assert [p["name"] for p in answer["policies"]] == ["default", "mine"]
    assert [p["trigger"] for p in answer["policies"]] == [2_800, 1_600]
    assert answer["policies"][1]["compactions"] > answer["policies"][0]["compactions"] > 0
    both = refold(*simulate, "--policy", "folder/mine.toml").answer
    assert [p["name"] for p in both["policies"]] == ["mine.toml", "folder/mine.toml"]
    assert [p["trigger"] for p in both["policies"]] == [1_600, 1_200]


@pytest.mark.slow(but="svg")
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_chart_is_drawn_where_it_was_asked_for(
    ending: str, refold: Refold, tmp_path: Path
) -> None:
    talk_file(tmp_path / "talk.json", 30)
    chart = tmp_path / f"sizes.{ending}"
    done = refold("simulate", "talk.json", "--window", 4000, "--chart", chart)
    assert done.code == 0
    assert str(chart) in done.out
    assert chart.stat().st_size > 10_000


def test_the_longest_conversation_of_a_file_is_simulated_or_the_one_that_is_named(
    refold: Refold, tmp_path: Path
) -> None:
    short = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    path = tmp_path / "two.jsonl"
    path.write_text(jsonl({"id": "p", "messages": short}, {"id": "q", "messages": short * 3}))
    longest = refold("simulate", path, "--json").answer
    assert longest["messages"] == 6
    assert "has 2 conversations" in refold("simulate", path).out
    ids = refold("simulate", path, "--conversation", "x").err
    assert longest["thread_id"] in ids
    other = next(i for i in ids.replace(",", " ").split() if i.startswith("p") or i.endswith("p"))
    assert refold("simulate", path, "--conversation", other, "--json").answer["messages"] == 2


def test_prices_of_ones_own_are_used(refold: Refold, tmp_path: Path) -> None:
    talk_file(tmp_path / "talk.json")
    (tmp_path / "p.toml").write_text(
        'as_of = 2026-05-06\ncurrency = "EUR"\ndefault = "m"\n'
        "[models.m]\ninput = 0\ncached_read = 0\ncache_write = 0\noutput = 1000000\n"
    )
    answer = refold("simulate", "talk.json", "--prices", "p.toml", "--json").answer
    assert (answer["currency"], answer["prices_as_of"]) == ("EUR", "2026-05-06")
    assert {p["cost"] == p["tokens_answered"] for p in answer["policies"]} == {True}


@pytest.mark.slow
def test_simulate_stopped_by_ctrl_c_ends_with_130_and_leaves_nothing(tmp_path: Path) -> None:
    talk_file(tmp_path / "talk.json", 2_000)
    line = ("simulate", "talk.json", "--window", "8000", "--chart", "a.png", "--json")
    with process(*line, folder=tmp_path) as started:
        time.sleep(4)
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=60)
    assert started.returncode == 130
    assert b"Traceback" not in err
    assert json.loads(out)["error"] == "Interrupted"
    assert sorted(tmp_path.iterdir()) == [tmp_path / "talk.json"]
