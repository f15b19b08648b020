"""Settings: read from three places, the stronger first; a bad value names itself and its place."""

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.runtime.memory_settings import Settings
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.errors import InvalidSetting
from refold.domain.value import replace
from refold.infrastructure.bootstrap import configuration_of
from refold.infrastructure.cli.serve_commands import all_settings, as_markdown, with_values
from refold.infrastructure.event_store.plain_shapes import Unusual, read_plain
from refold.infrastructure.settings.configuration import Configuration, read_configuration, variable
from refold.infrastructure.settings.option_checks import Options
from refold.infrastructure.settings.settings_model import (
    CHECKED_BY_CODE,
    RefoldSettings,
    SummariserName,
)
from refold.infrastructure.summarisers.api_calls import TIMEOUT
from tests.architecture.rules import ROOT

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    path = tmp_path / "policy.toml"

    def written(text: str) -> Path:
        path.write_text(text, "utf-8")
        return path

    return written


def refused(**arguments: object) -> str:
    with pytest.raises(InvalidSetting) as caught:
        read_configuration(**arguments)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return str(caught.value)


def test_nothing_given_is_the_defaults_of_the_policy() -> None:
    read = read_configuration()
    assert read.for_core() == Settings()
    assert read.settings.policy == CompactionPolicy()
    assert all(row.source == "default" for row in with_values(read))


def test_a_time_out_is_the_one_that_three_tries_in_a_lease_allow() -> None:
    settings = RefoldSettings()
    assert settings.summariser_timeout == TIMEOUT
    assert settings.summariser_timeout * settings.summary_tries < settings.lease_seconds


GIVEN: tuple[object, ...] = (
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        3,
        400,
        5_000,
        10**30,
        0.0,
        0.1,
        0.3,
        1.0,
        2.5,
        float("nan"),
        float("inf"),
    ),
    *(
        "",
        "a",
        "auto",
        "off",
        "none",
        "builtin",
        "user",
        "system",
        "DEBUG",
        "hashed",
        "3",
        "a" * 100,
    ),
    *(Path("a"), ["a"], ("a",), {}, {"gpt": {"window": 2_000}}, b"a", object),
)


@pytest.mark.parametrize("name", sorted(RefoldSettings.model_fields.keys() - CHECKED_BY_CODE))
def test_a_value_is_read_without_the_validator_as_with_it_or_left_to_it(name: str) -> None:
    plain = 0
    for value in GIVEN:
        try:
            read = read_plain(RefoldSettings, {name: value})
        except Unusual:
            continue
        plain += 1
        assert read == RefoldSettings.model_validate({name: value}), value
        assert type(getattr(read, name)) is type(
            getattr(RefoldSettings.model_validate({name: value}), name)
        )
    assert plain or name in ("models", "embedder_key")


def test_settings_with_a_validator_of_their_own_are_known() -> None:
    validators = RefoldSettings.__pydantic_decorators__.field_validators.values()
    assert {name for one in validators for name in one.info.fields} == CHECKED_BY_CODE


# Where a wrong value stands.


def test_a_wrong_argument_is_named_with_its_range() -> None:
    assert refused(window=5) == "argument window = 5: must be an integer, at least 1000"


def test_a_wrong_variable_is_named_with_its_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFOLD_TRIGGER_SHARE", "high")
    assert refused() == (
        "environment variable REFOLD_TRIGGER_SHARE = 'high': must be a number, above 0.05 and "
        "at most 1"
    )


def test_a_wrong_key_of_a_file_is_named_with_its_range(write: Write) -> None:
    path = write("keep_last = 0")
    assert refused(policy_file=path) == (f"{path}: keep_last = 0: must be an integer, at least 1")


def test_a_wrong_key_of_a_models_table_is_named_with_its_path(write: Write) -> None:
    path = write('[models."gpt-4.1"]\nwindow = 3')
    assert refused(policy_file=path) == (
        f'{path}: models."gpt-4.1".window = 3: must be an integer, at least 1000'
    )


def test_a_wrong_value_in_the_variable_of_models_is_named_with_its_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REFOLD_MODELS", '{"claude-": {"keep_last": 0}}')
    assert refused() == (
        "environment variable REFOLD_MODELS['claude-']['keep_last'] = 0: must be an integer, "
        "at least 1"
    )


def test_a_choice_names_what_can_be_chosen() -> None:
    names = ", ".join(get_args(SummariserName))
    assert refused(summariser="gpt") == f"argument summariser = 'gpt': must be one of {names}"


def test_all_wrong_values_are_told_at_once(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFOLD_KEEP_LAST", "0")
    told = refused(policy_file=write("trigger_share = 2"), window=1)
    assert "argument window = 1" in told
    assert "REFOLD_KEEP_LAST = '0'" in told
    assert "trigger_share = 2" in told


def test_the_error_says_setting_and_value_to_programs() -> None:
    with pytest.raises(InvalidSetting) as caught:
        read_configuration(window=5)
    assert (caught.value.setting, caught.value.value) == ("window", 5)


def test_a_truth_value_is_no_number_where_the_number_was_just_given() -> None:
    assert read_configuration(keep_last=1).settings.keep_last == 1
    with pytest.raises(InvalidSetting):
        read_configuration(keep_last=True)


def test_a_truth_value_is_no_number(write: Write) -> None:
    path = write("keep_last = true")
    assert refused(policy_file=path) == (
        f"{path}: keep_last = True: must be an integer, at least 1"
    )


def test_a_lower_limit_above_what_it_limits_is_refused_with_both_places(write: Write) -> None:
    path = write("chunk_least = 0.5")
    assert refused(policy_file=path) == (
        f"chunk_least = 0.5 ({path}: chunk_least): must be at most chunk_share = 0.4 (default)"
    )


def test_a_long_value_is_not_shown_whole() -> None:
    assert len(refused(summariser="x" * 5_000)) < 200


# Names that are no settings.


def test_an_unknown_argument_is_refused_with_the_nearest_name() -> None:
    assert refused(windw=9_000) == ("argument windw: unknown setting (did you mean window?)")


def test_an_unknown_key_is_refused_with_the_nearest_name(write: Write) -> None:
    path = write("triger_share = 0.5")
    assert refused(policy_file=path) == (
        f"{path}: triger_share: unknown setting (did you mean trigger_share?)"
    )


def test_an_unknown_key_of_a_models_table_is_refused_with_the_nearest_name(write: Write) -> None:
    path = write("[models.claude]\nsummariser = 'anthropic'")
    assert refused(policy_file=path).startswith(
        f"{path}: models.claude.summariser: unknown setting of a model"
    )


def test_an_unknown_variable_is_refused_with_the_nearest_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REFOLD_TRIGER_SHARE", "0.5")
    assert refused() == (
        "environment variable REFOLD_TRIGER_SHARE: unknown setting (did you mean "
        "REFOLD_TRIGGER_SHARE?). Unset it, or rename it to REFOLD_X_… if another program uses it"
    )


def test_variables_of_other_programs_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFOLD_X_TRIGER_SHARE", "nonsense")
    monkeypatch.setenv("REFOLDER", "nonsense")
    assert read_configuration().for_core() == Settings()


# Files that cannot be read.


def test_a_missing_file_is_named_with_who_named_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "none.toml"
    assert refused(policy_file=path) == (
        f"policy file {path} (argument policy_file) cannot be read: No such file or directory"
    )
    monkeypatch.setenv("REFOLD_POLICY_FILE", str(path))
    assert refused() == (
        f"policy file {path} (environment variable REFOLD_POLICY_FILE) cannot be read: "
        "No such file or directory"
    )


def test_a_folder_is_no_policy_file(tmp_path: Path) -> None:
    assert refused(policy_file=tmp_path).endswith("cannot be read: Is a directory")


def test_an_error_of_syntax_is_told_with_its_line(write: Write) -> None:
    path = write("window = 9000\nkeep_last = = 3\n")
    told = refused(policy_file=path)
    assert told.startswith(f"policy file {path} is not valid TOML: ")
    assert "line 2" in told


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(b"window = 9000 # \xff")
    assert refused(policy_file=path).startswith(f"policy file {path} is not UTF-8 text (byte 16)")


def test_a_variable_of_models_that_is_no_json_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFOLD_MODELS", '{"claude"')
    assert refused().startswith("environment variable REFOLD_MODELS: must be a JSON object such as")


@pytest.mark.parametrize("text", ["models = 3", "models = ['claude']", "[models]\nclaude = 3"])
def test_models_that_are_no_tables_are_refused(write: Write, text: str) -> None:
    assert "must be" in refused(policy_file=write(text))


def test_a_policy_file_names_no_other(write: Write) -> None:
    assert refused(policy_file=write('policy_file = "x.toml"')).endswith(
        "a policy file cannot name another policy file"
    )


# Who is stronger.


def test_an_argument_beats_a_variable_beats_a_file_beats_a_default(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("keep_last = 1\nkeep_turns = 1\nkeep_tokens = 1\n")
    monkeypatch.setenv("REFOLD_KEEP_LAST", "2")
    monkeypatch.setenv("REFOLD_KEEP_TURNS", "2")
    read = read_configuration(policy=CompactionPolicy(keep_last=3), policy_file=path)
    policy = read.settings.policy
    assert (policy.keep_last, policy.keep_turns, policy.keep_tokens) == (3, 2, 1)
    rows = {row.name: row.source for row in with_values(read)}
    assert rows["keep_last"] == "argument policy.keep_last"
    assert rows["keep_turns"] == "environment variable REFOLD_KEEP_TURNS"
    assert rows["keep_tokens"] == f"{path}: keep_tokens"
    assert rows["trigger_share"] == "default"


def test_a_file_named_as_argument_stands_in_for_one_named_by_a_variable(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFOLD_POLICY_FILE", "/nowhere/at/all.toml")
    assert read_configuration(policy_file=write("window = 9000")).settings.window == 9_000


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFOLD_WINDOW", "")
    monkeypatch.setenv("REFOLD_POLICY_FILE", "")
    assert read_configuration().settings.window is None


def test_variables_are_found_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("refold_window", "9000")
    assert read_configuration().settings.window == 9_000


def test_of_a_policy_the_fields_count_that_it_was_made_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REFOLD_KEEP_LAST", "7")
    default = CompactionPolicy().keep_last
    given_so = read_configuration(policy=CompactionPolicy(keep_last=default))
    assert given_so.settings.keep_last == default
    changed = read_configuration(policy=replace(CompactionPolicy(), keep_turns=4))
    assert (changed.settings.keep_last, changed.settings.keep_turns) == (7, 4)


def test_every_setting_can_be_said_by_a_variable_and_by_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "policy.toml"
    for row in all_settings():
        if row.default and row.name != "models":
            text = (
                f'"{row.default}"' if row.type.startswith(("one of", "a string")) else row.default
            )
            path.write_text(f"{row.name} = {text}\n", "utf-8")
            assert read_configuration(policy_file=path).source_of(row.name) is not None
            with monkeypatch.context() as patch:
                patch.setenv(row.variable, row.default)
                assert read_configuration().source_of(row.name) is not None


@given(share=st.floats(0.06, 1), last=st.integers(1, 1_000))
def test_a_policy_comes_back_as_it_was_given(share: float, last: int) -> None:
    policy = CompactionPolicy(trigger_share=share, keep_last=last)
    assert read_configuration(policy=policy).settings.policy == policy


# Tables for models.


def for_model(read: Configuration, model: str) -> tuple[int | None, float]:
    settings = read.for_core().for_model(model)
    return settings.window, settings.policy.trigger_share


MODELS = """
window = 100_000
trigger_share = 0.6
[models.claude-]
trigger_share = 0.5
[models."claude-opus-5"]
window = 900_000
"""


def test_the_longest_beginning_of_a_models_name_counts_alone(write: Write) -> None:
    read = read_configuration(policy_file=write(MODELS))
    assert for_model(read, "gpt-5") == (100_000, 0.6)
    assert for_model(read, "claude-haiku-5-5") == (100_000, 0.5)
    assert for_model(read, "anthropic/Claude-Opus-5-5") == (900_000, 0.6)


def test_what_a_stronger_place_says_holds_for_every_model(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(MODELS)
    monkeypatch.setenv("REFOLD_TRIGGER_SHARE", "0.4")
    read = read_configuration(policy_file=path, window=20_000)
    assert for_model(read, "claude-haiku-5-5") == (20_000, 0.4)
    assert for_model(read, "claude-opus-5") == (20_000, 0.4)


def test_a_table_in_a_stronger_place_beats_the_general_setting_of_a_weaker_one(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("trigger_share = 0.6")
    monkeypatch.setenv("REFOLD_MODELS", '{"claude-": {"trigger_share": 0.3}}')
    assert for_model(read_configuration(policy_file=path), "claude-opus-5") == (None, 0.3)


# What is said about the settings.


def test_every_setting_says_what_it_means() -> None:
    assert [row.name for row in all_settings() if not row.meaning] == []


def test_every_setting_of_the_policy_is_a_setting_of_its_own_name() -> None:
    names = {row.name for row in all_settings()}
    assert set(CompactionPolicy.model_fields) <= names
    assert {variable(name) for name in names} == {row.variable for row in all_settings()}


def test_every_other_setting_is_an_argument_of_open() -> None:
    own = set(RefoldSettings.model_fields) - set(CompactionPolicy.model_fields) - {"models"}
    assert own <= set(Options.__annotations__)
    assert configuration_of({"window": 9_000, "create": False}).settings.window == 9_000


def test_the_page_of_settings_is_up_to_date() -> None:
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    assert page == as_markdown(), "run: refold settings --markdown > docs/settings.md"
