"""Settings on the command line: shown with their source, taken from a policy file, refused by name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import refold as library
from refold.infrastructure.cli.serve_commands import as_markdown
from tests.support.command_line import Refold, ran, talk_file


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.upper().startswith("REFOLD_") and not name.upper().startswith("REFOLD_X_"):
            monkeypatch.delenv(name)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text('window = 8_000\n[models."claude-opus-5"]\nwindow = 16_000\n', "utf-8")
    return path


def test_settings_shows_every_value_and_where_it_comes_from(
    refold: Refold, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFOLD_KEEP_LAST", "7")
    done = refold("settings", "--policy", policy, "--json")
    rows = {row["name"]: row for row in done.answer["settings"]}
    assert (rows["window"]["value"], rows["window"]["source"]) == (8000, f"{policy}: window")
    assert rows["keep_last"]["source"] == "environment variable REFOLD_KEEP_LAST"
    assert rows["trigger_share"]["source"] == "default"
    assert "claude-opus-5" in rows["models"]["value"]
    shown = refold("settings", "--policy", policy).out
    assert all(name in shown for name in rows)


def test_settings_prints_the_page_of_the_documentation(refold: Refold) -> None:
    assert refold("settings", "--markdown").out == as_markdown()


def test_settings_checks_a_policy_file(refold: Refold, policy: Path, tmp_path: Path) -> None:
    good = refold("settings", "--check", policy)
    assert (good.code, good.out) == (0, f"{policy}: all is well.\n")
    bad = tmp_path / "bad.toml"
    bad.write_text("keep_lst = 3", "utf-8")
    done = refold("settings", "--check", bad)
    assert done.code == 1
    assert "unknown setting (did you mean keep_last?)" in done.out
    assert refold("settings", "--check", bad, "--json").answer["ok"] is False


@pytest.mark.parametrize(
    ("words", "window"),
    [
        ((), 8_000),
        (("--model", "claude-opus-5-5"), 16_000),
        (("--window", 12_000), 12_000),
        (("--window", 12_000, "--model", "claude-opus-5-5"), 12_000),
    ],
)
def test_a_policy_file_says_the_window_unless_an_option_does(
    refold: Refold, policy: Path, tmp_path: Path, words: tuple[object, ...], window: int
) -> None:
    refold("import", talk_file(tmp_path / "talk.json"))
    done = refold("context", "talk", "--policy", policy, "--json", *words)
    # The budget is the window without margin and reserve.
    assert done.answer["budget"] == window - window // 10 - window // 8


@pytest.mark.slow
def test_play_compacts_as_the_policy_file_says(
    refold: Refold, policy: Path, tmp_path: Path
) -> None:
    talk_file(tmp_path / "talk.json", 80)
    calm = refold("play", "talk.json", "--json").answer
    tight = refold("play", "talk.json", "--policy", policy, "--json").answer
    assert calm["compactions"] == 0
    assert tight["compactions"] > 0


def test_compact_refuses_a_policy_file_by_the_name_of_what_is_wrong(
    refold: Refold, tmp_path: Path
) -> None:
    refold("import", talk_file(tmp_path / "talk.json"))
    bad = tmp_path / "bad.toml"
    bad.write_text("target_share = 3", "utf-8")
    done = refold("compact", "talk", "--policy", bad)
    assert done.code == 2
    assert f"{bad}: target_share = 3: must be a number" in done.err


@pytest.mark.slow
def test_a_bad_variable_is_refused_at_start_without_a_traceback(tmp_path: Path) -> None:
    done = ran("list", folder=tmp_path, env={"REFOLD_TRIGGER_SHARE": "7"})
    assert done.code == 2
    assert done.err == (
        "InvalidSetting: environment variable REFOLD_TRIGGER_SHARE = '7': must be a number, above "
        "0.05 and at most 1\n"
    )


@pytest.mark.slow
def test_verbose_shows_what_is_logged_on_standard_error(refold: Refold, tmp_path: Path) -> None:
    refold("import", talk_file(tmp_path / "talk.json", 20))
    done = refold("-v", "compact", "talk", "--json")
    assert "info: compaction.performed thread_id=talk trigger=manual" in done.err
    assert done.answer["outcome"] == "performed"
    talk_file(tmp_path / "long.json", 80)
    err = refold("-vv", "play", "long.json", "--window", 8_000, "--json").err
    assert "debug: request.made" in err
    assert "debug: compaction.requested" in err


def test_without_verbose_nothing_is_shown_of_a_compaction_that_works(
    refold: Refold, tmp_path: Path
) -> None:
    refold("import", talk_file(tmp_path / "talk.json", 20))
    assert refold("compact", "talk").err == ""


@pytest.mark.slow
def test_the_library_leaves_handlers_and_the_root_logger_alone(tmp_path: Path) -> None:
    program = (
        "import logging, refold\n"
        "refold.open(':memory:').close()\n"
        "assert logging.getLogger().handlers == []\n"
        "[handler] = logging.getLogger('refold').handlers\n"
        "assert isinstance(handler, logging.NullHandler)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)


@pytest.mark.slow
def test_without_opentelemetry_everything_works_but_that(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "import refold\n"
        "with refold.open(':memory:') as memory:\n"
        "    print(memory.conversation('t').compact().outcome)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=tmp_path)
    assert (run.stdout, run.returncode) == (b"nothing_to_do\n", 0), run.stderr


def test_an_argument_that_open_does_not_know_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"refold.open has no argument 'windw' \(did you mean window"
    ):
        library.open(":memory:", windw=8_000)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
