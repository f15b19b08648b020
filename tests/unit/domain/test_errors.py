"""Errors can be copied and sent to another process, as pools of processes do."""

import copy
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import refold
from refold.domain.errors import (
    ConversationGone,
    KeyReused,
    RefoldError,
    UnknownToolCall,
    VersionConflict,
)
from refold.testing import CheckFailed
from refold.testing.findings import Finding

ERRORS = [
    VersionConflict("t", 3, 5),
    KeyReused("k", None),
    UnknownToolCall("content[0]", "c1", "no such call"),
    ConversationGone("t"),
    refold.InvalidSetting("window=0: must be more", setting="window", value=0),
    refold.LogDamaged("t", 7, "the digest is wrong"),
    CheckFailed("a store", (Finding("lost", "1", "0", "Keep it."),)),
]
SENT: list[Callable[[BaseException], BaseException]] = [
    copy.copy,
    copy.deepcopy,
    lambda error: pickle.loads(pickle.dumps(error)),
    lambda error: pickle.loads(pickle.dumps(error, protocol=2)),
]


def _kinds(kind: type[RefoldError]) -> Iterator[type[RefoldError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _kinds(one)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("sent", SENT)
def test_an_error_that_is_sent_says_the_same(
    error: BaseException, sent: Callable[[BaseException], BaseException]
) -> None:
    error.add_note("in the third task")
    got = sent(error)
    assert type(got) is type(error)
    assert (str(got), got.args, vars(got)) == (str(error), error.args, vars(error))


def test_no_kind_of_error_needs_more_than_its_parts() -> None:
    for found in pkgutil.walk_packages(refold.__path__, "refold."):
        if found.name.startswith(("refold.domain", "refold.application")):
            importlib.import_module(found.name)
    kinds = [*_kinds(RefoldError)]
    assert len(kinds) > 40
    for kind in kinds:
        error = kind.__new__(kind, "it failed")
        vars(error)["thread_id"] = "t"
        got = pickle.loads(pickle.dumps(error))
        assert (type(got), str(got), vars(got)) == (kind, "it failed", {"thread_id": "t"})


def test_every_public_exception_derives_from_one_class() -> None:
    public = [getattr(refold, name) for name in refold.__all__]
    raised = [one for one in public if inspect.isclass(one) and issubclass(one, Exception)]
    others = [one for one in raised if not issubclass(one, (refold.RefoldError, Warning))]
    assert others == []


def _fail(number: int) -> int:
    if number == 1:
        raise VersionConflict("t", 3, 5)
    return number


def test_an_error_in_a_process_of_a_pool_reaches_its_caller_and_no_other() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        tasks = [pool.submit(_fail, number) for number in range(4)]
        with pytest.raises(VersionConflict, match="at version 5, but version 3"):
            tasks[1].result()
        assert [tasks[number].result() for number in (0, 2, 3)] == [0, 2, 3]
