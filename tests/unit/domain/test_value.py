"""How values are made without validating their fields again."""

import copy
import sys
from typing import Any

import pytest
from pydantic import Field

from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.value import (
    Value,
    build_unvalidated,
    from_stored,
    narrow,
    replace,
    replace_from,
)
from refold.infrastructure.settings.settings_model import RefoldSettings


class Box(Value, frozen=True):
    width: int
    label: str = "none"
    tags: dict[str, str] = Field(default_factory=dict[str, str])


class Chest(Box, frozen=True):
    lock: str = "open"


BOX = Box(width=3, label="a")


def test_a_copy_has_the_fields_that_were_replaced_and_the_others() -> None:
    other = replace(BOX, label="b")
    assert (other, type(other)) == (Box(width=3, label="b"), Box)
    assert BOX.label == "a"


def test_a_copy_keeps_the_class_of_the_value() -> None:
    assert replace(Chest(width=1), lock="shut") == Chest(width=1, lock="shut")


def test_a_copy_is_as_frozen_as_the_value() -> None:
    with pytest.raises(ValueError, match="frozen"):
        setattr(replace(BOX, label="b"), "label", "c")  # noqa: B010


def test_a_field_that_there_is_not_is_refused_by_name() -> None:
    unknown: Any = BOX  # Type checkers refuse it as well.
    with pytest.raises(TypeError, match="not the fields of Box: lable"):
        replace(unknown, lable="b")
    with pytest.raises(TypeError, match="not the fields of Box: lable"):
        replace_from(BOX, BOX, {"lable"})


def test_python_copies_a_value_in_the_same_way() -> None:
    assert BOX.__replace__(label="b") == replace(BOX, label="b")
    if sys.version_info >= (3, 13):
        assert copy.replace(BOX, label="b") == replace(BOX, label="b")


def test_a_value_that_is_built_has_the_defaults_of_what_is_left_out() -> None:
    assert build_unvalidated(Box, width=3) == Box(width=3)
    assert build_unvalidated(Box, width=3, label="a", tags={"k": "v"}) == Box(
        width=3, label="a", tags={"k": "v"}
    )


def test_a_default_that_is_made_is_made_for_each_value() -> None:
    one, other = build_unvalidated(Box, width=1), build_unvalidated(Box, width=1)
    assert one.tags is not other.tags


def test_nothing_is_validated_again() -> None:
    wrong: Any = "three"
    assert build_unvalidated(Box, width=wrong).width == wrong


def test_fields_that_are_missing_or_not_there_are_refused_by_name() -> None:
    unknown: Any = Box  # Type checkers refuse it as well.
    with pytest.raises(TypeError, match="not the fields of Box: width"):
        build_unvalidated(unknown, label="a")
    with pytest.raises(TypeError, match="not the fields of Box: lable"):
        build_unvalidated(unknown, width=3, lable="a")


def test_what_was_stored_in_part_has_the_defaults_of_the_rest() -> None:
    assert from_stored(Box, {"width": 3}) == Box(width=3)
    assert from_stored(Box, {"width": 3, "label": "a", "tags": {}}) == BOX


def test_fields_are_taken_over_from_another_value_by_their_names() -> None:
    there = CompactionPolicy(keep_last=9, keep_turns=4)
    taken = replace_from(CompactionPolicy(), there, {"keep_last"})
    assert (taken.keep_last, taken.keep_turns) == (9, CompactionPolicy().keep_turns)


def test_a_value_is_narrowed_to_a_class_that_its_own_extends() -> None:
    narrowed = narrow(Chest(width=3, label="a", lock="shut"), Box)
    assert (type(narrowed), vars(narrowed)) == (Box, vars(BOX))


def test_a_narrowed_value_keeps_the_order_of_its_fields() -> None:
    settings = RefoldSettings(window=5_000)
    assert [*narrow(settings, CompactionPolicy).__dict__] == [*CompactionPolicy.model_fields]
    assert [*build_unvalidated(RefoldSettings).policy.__dict__] == [*CompactionPolicy.model_fields]
