"""How much of a request repeats the one before: told from what is known, and true of the bytes."""

import pytest

from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.lab.playing import RepeatedPrefix, count_characters
from refold.application.rendering.render import System
from tests.support.fake_ports import core_of
from tests.support.fake_summarisers import GoodSummariser


class Told:
    """An observer that keeps what it was told of requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, int]] = []

    def compaction_ended(self, result: object) -> None:
        del result

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        del thread_id
        self.requests.append((tokens, tokens_repeated))


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def memory(told: Told) -> Memory:
    return Memory(core_of(summariser=GoodSummariser(), observers=(told,)))


def turn(memory: Memory, n: int, *, system: System = "be careful") -> Context:
    conversation = memory.conversation("t")
    conversation.append({"role": "user", "content": f"question {n} " * 60})
    made = conversation.context(system=system)
    conversation.append({"role": "assistant", "content": f"answer {n} " * 60})
    return made


def test_the_first_request_repeats_nothing(memory: Memory, told: Told) -> None:
    made = turn(memory, 0)
    assert told.requests == [(made.tokens, 0)]


def test_between_decisions_the_whole_request_before_is_repeated(memory: Memory, told: Told) -> None:
    first, second = turn(memory, 0), turn(memory, 1)
    assert told.requests[1] == (second.tokens, first.tokens)


def test_the_same_request_again_is_repeated_whole(memory: Memory, told: Told) -> None:
    turn(memory, 0)
    conversation = memory.conversation("t")
    again = [conversation.context(system="be careful").tokens for _ in range(2)]
    assert told.requests[-1] == (again[1], again[1])


def test_after_a_decision_only_system_text_and_tools_are_sure(memory: Memory, told: Told) -> None:
    for n in range(8):
        turn(memory, n)
    assert memory.conversation("t").compact().outcome == "performed"
    after = turn(memory, 9)
    assert told.requests[-1] == (after.tokens, after.budget.fixed)
    assert after.budget.fixed > 0


def test_a_label_is_no_decision_about_the_context(memory: Memory, told: Told) -> None:
    first = turn(memory, 0)
    memory.conversation("t").label("a name")
    turn(memory, 1)
    assert told.requests[-1][1] == first.tokens


def test_another_system_text_repeats_nothing_even_if_it_is_as_long(
    memory: Memory, told: Told
) -> None:
    turn(memory, 0, system="today is the 1st")
    turn(memory, 1, system="today is the 2nd")
    assert told.requests[-1][1] == 0


def test_another_model_repeats_nothing(memory: Memory, told: Told) -> None:
    conversation = memory.conversation("t")
    conversation.append({"role": "user", "content": "hello"})
    conversation.context(model="claude-opus-5")
    conversation.context(model="claude-haiku-5-5")
    assert told.requests[-1][1] == 0


def test_looking_back_is_no_request(memory: Memory, told: Told) -> None:
    turn(memory, 0)
    conversation = memory.conversation("t")
    conversation.context(at=conversation.version)
    assert len(told.requests) == 1


def test_what_is_told_is_true_of_the_bytes(memory: Memory, told: Told) -> None:
    prefix, partly = RepeatedPrefix(count_characters), 0
    sizes: list[int] = []
    for n in range(60):
        made = turn(memory, n)
        compared = prefix.compare(made)
        tokens, repeated = told.requests[-1]
        if n and repeated == told.requests[-2][0]:
            assert compared.repeated == sizes[-1], f"request {n} was said to repeat the one before"
        elif n:
            partly += 1
            assert compared.repeated < sizes[-1], f"request {n} was said to repeat less"
        sizes.append(compared.size)
        assert repeated <= tokens
    assert partly >= 2
