"""How values are made without validating their fields again."""

import copy
import sys
import threading
from contextlib import nullcontext
from typing import Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.value import (
    LATE_ATTRIBUTES,
    Value,
    build_unvalidated,
    fields_of,
    from_stored,
    guard_with,
    narrow,
    replace,
    replace_from,
)
from refold.domain.value import Field as LateField
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


class Plain(Value, frozen=True):
    number: int = LateField(ge=0)
    text: str = LateField(default="a", min_length=1)
    list: tuple[int, ...] = LateField(default_factory=tuple[int, ...])


class Outer(Plain, frozen=True):
    inner: Plain
    more: str | None = None

    def twice(self) -> int:
        return super().__hash__() and 2 * self.number


def is_read(cls: type[Value]) -> bool:
    """Whether pydantic has read the class."""
    return isinstance(vars(cls)["__pydantic_fields__"], dict)


def test_pydantic_sets_no_attribute_that_is_not_late() -> None:
    class Read(BaseModel, frozen=True, defer_build=True):
        number: int

    class Unread:
        number: int

    own = vars(Read).keys() - vars(Unread).keys() - {"__abstractmethods__", "_abc_impl", "__hash__"}
    assert own <= {*LATE_ATTRIBUTES}


def test_pydantic_reads_a_class_when_it_validates_and_not_before() -> None:
    class Late(Value, frozen=True):
        number: int

    class Around(Value, frozen=True):
        late: Late

    built = build_unvalidated(Around, late=build_unvalidated(Late, number=1))
    assert built == build_unvalidated(Around, late=build_unvalidated(Late, number=1))
    assert built != replace(built, late=build_unvalidated(Late, number=2))
    assert len({built, replace(built, late=built.late)}) == 1
    assert not is_read(Late)
    assert not is_read(Around)
    before = hash(built)
    with pytest.raises(ValidationError, match="valid integer"):
        Late.model_validate({"number": "a"})
    assert is_read(Late)
    assert not is_read(Around)
    assert Around.model_validate({"late": {"number": 1}}) == built
    assert hash(built) == before
    assert repr(built).endswith("Around(late=Late(number=1))".partition("(")[2])


def test_fields_are_the_same_before_and_after_pydantic_has_read_the_class() -> None:
    class Early(Outer, frozen=True):
        last: int = 3

    before, types = fields_of(Early), dict(fields_of(Early).types)
    read = {name: field.annotation for name, field in Early.model_fields.items()}
    assert types == read
    assert before.names == read.keys()
    assert {*before.defaults, *before.factories} == {
        name for name, field in Early.model_fields.items() if not field.is_required()
    }


def test_limits_defaults_and_methods_are_kept_for_pydantic() -> None:
    one = Outer(number=1, inner=Plain(number=2))
    assert (one.text, one.list, one.more, one.twice()) == ("a", (), None, 2)
    for wrong in ({"number": -1}, {"number": 1, "text": ""}, {"number": 1, "odd": 1}):
        with pytest.raises(ValidationError):
            Plain.model_validate(wrong)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(one, "number", 2)  # noqa: B010
    assert repr(Plain(number=1)) == "Plain(number=1, text='a', list=())"


def test_eight_threads_make_pydantic_read_the_same_classes_at_once() -> None:
    guard_with(threading.RLock())
    for _ in range(20):

        class Inner(Value, frozen=True):
            number: int = LateField(default=1, ge=0)

        class Middle(Inner, frozen=True):
            inner: Inner = build_unvalidated(Inner)

        together, found = threading.Barrier(8), list[object]()

        def use(number: int, cls: Any = Middle, at: Any = together, seen: Any = found) -> None:
            at.wait()
            try:
                if number % 2:
                    seen.append(cls.model_validate({"number": "7"}).inner.number)
                else:
                    seen.append(len(cls.model_fields) - 1)
            except BaseException as error:
                seen.append(error)

        threads = [threading.Thread(target=use, args=[number]) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [1] * 8


def test_a_class_that_another_thread_was_reading_is_read_again_in_a_forked_process() -> None:
    class Half(Value, frozen=True):
        number: int = LateField(default=1, ge=0)
        text: str = "a"

    from refold.domain import value

    value._running.add(Half)  # pyright: ignore[reportPrivateUsage]
    guard_with(nullcontext())
    assert Half(text="b").number == 1
    assert is_read(Half)
    guard_with(threading.RLock())


def test_a_narrowed_value_keeps_the_order_of_its_fields() -> None:
    settings = RefoldSettings(window=5_000)
    assert [*narrow(settings, CompactionPolicy).__dict__] == [*CompactionPolicy.model_fields]
    assert [*build_unvalidated(RefoldSettings).policy.__dict__] == [*CompactionPolicy.model_fields]
