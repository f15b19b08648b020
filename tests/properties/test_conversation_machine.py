"""``ConversationMachine`` finds what is broken, and passes with what is built in."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    run_state_machine_as_test,  # pyright: ignore[reportUnknownVariableType]
)

import refold
from refold import SummaryDraft, SummaryRequest
from refold.domain.value import replace
from refold.testing.conversation_machine import ConversationMachine
from tests.support.broken_stores import (
    Ascii,
    NeverPinning,
    NoSummaries,
    PresentAlone,
    Reordering,
    Stale,
    Store,
    Talk,
)
from tests.support.fake_summarisers import GoodSummariser
from tests.support.witness import SHM

QUICK = settings(
    max_examples=5,
    stateful_step_count=12,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.generate],
)
FINDING = settings(QUICK, max_examples=40, stateful_step_count=14, derandomize=True)


def run(machine: type[ConversationMachine], how: settings) -> None:
    run_state_machine_as_test(machine, settings=how)


class Opened:
    """Opens one file of its own for each run, in another's place."""

    def __init__(self, talk: type[Talk], folder: Path) -> None:
        class Broken(Store):
            pass

        Broken.talk = talk
        self.store = Broken
        self.folder = folder
        self.paths: dict[int, Path] = {}

    def __call__(self, **options: Any) -> Any:
        # Every run has a summariser of its own, by which its place is known.
        path = self.folder / f"{len(self.paths)}.db"
        path = self.paths.setdefault(id(options["summariser"]), path)
        return self.store(refold.open(path, **options))


class Losing(Talk):
    def append(self, message: Any, **how: Any) -> Any:
        found = len(cast("list[Any]", self.inner.messages()))
        answer = super().append(message, **how)
        if found > 12:
            self.store.state["lost"] = True
        return answer

    def messages(self) -> Any:
        found = super().messages()
        return found[:-1] if self.store.state.get("lost") else found


class Quiet(Talk):
    """Leaves the last message out of contexts."""

    def context(self, **how: Any) -> Any:
        context = self.inner.context(**how)
        context.messages[:] = context.messages[1:]
        return context


class Raising(GoodSummariser):
    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        raise KeyError("choices")


class Mutating(GoodSummariser):
    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        for source in request.messages:
            for block in source.message.blocks():
                block["seen"] = True
        return await super().summarise(request)


class Text(GoodSummariser):
    async def summarise(self, request: SummaryRequest) -> Any:
        return (await super().summarise(request)).text


class Empty(GoodSummariser):
    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        return replace(await super().summarise(request), text=" ")


class Looping(GoodSummariser):
    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        return replace(await super().summarise(request), text="so on and " * 20)


STORES = (Losing, Quiet, Ascii, Stale, Reordering, PresentAlone)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("talk", [*STORES, NeverPinning, NoSummaries])
def test_a_broken_store_is_found(talk: type[Talk]) -> None:
    with tempfile.TemporaryDirectory(dir=SHM) as folder:

        class Broken(ConversationMachine):
            place = Opened(talk, Path(folder))

        with pytest.raises(AssertionError):
            run(Broken, FINDING)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("make", [Raising, Mutating, Text, Empty, Looping])
def test_a_broken_summariser_is_found(make: Callable[[], Any]) -> None:
    class Broken(ConversationMachine):
        summariser = make

    with pytest.raises(AssertionError, match="summariser: "):
        run(Broken, FINDING)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("made", [None, GoodSummariser])
def test_what_is_built_in_passes(made: Callable[[], Any] | None) -> None:
    class Fine(ConversationMachine):
        policy = refold.CompactionPolicy(keep_last=2)
        summariser = made

    run(Fine, QUICK)
