"""Classes that pydantic reads when they are first needed, and not before."""

import subprocess
import sys
import threading
from contextlib import nullcontext
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from refold.domain import late_model
from refold.domain.late_model import LATE_ATTRIBUTES, guard_with
from refold.domain.late_model import Field as LateField
from refold.domain.value import Value, build_unvalidated, fields_of, replace


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

    late_model._running.add(Half)  # pyright: ignore[reportPrivateUsage]
    guard_with(nullcontext())
    assert Half(text="b").number == 1
    assert is_read(Half)
    guard_with(threading.RLock())


NEWER = """
import pydantic
pydantic.VERSION = "2.99.0b1"
import refold
from refold.domain.events import MessageAppended
assert "message_id" in vars(MessageAppended)["__pydantic_fields__"]
with refold.open(":memory:") as memory:
    conversation = memory.conversation("a")
    conversation.append({"role": "user", "content": "hello"})
    print(conversation.context().messages)
"""


def test_a_newer_pydantic_reads_each_class_where_it_is_defined() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", NEWER], capture_output=True, text=True, check=False
    )
    assert "hello" in ended.stdout, ended.stderr
