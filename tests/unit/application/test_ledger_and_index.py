"""The ledger as a part of compaction: carried over, within its room, measured as it is rendered."""

import dataclasses
from typing import cast

import pytest

from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.token_counter import TokenCounter
from refold.application.rendering.render import render
from refold.application.summaries import ledger_and_index as keeping
from refold.application.summaries.ledger_and_index import KeptLedger, gather_ledger
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.facts.reading import MessagesRead, read_messages
from refold.domain.ledger import LedgerLine
from refold.domain.messages import Message
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from tests.support.builders import calls, history, performed, results, user
from tests.support.fake_ports import core_of


def source(*messages: Message, start: int = 0) -> MessagesRead:
    """What is read from these messages."""
    return read_messages(enumerate(messages, start))


WORK = [calls("a"), results("a")]
RULES = [user(f"Never touch module_{n}.py, please.") for n in range(40)]
EMPTY = LoadedConversation("t")


def carrying(kept: KeptLedger, *messages: Message) -> LoadedConversation:
    """A conversation whose first two messages a summary with this ledger covers."""
    summary = performed(2, ledger=kept.lines, ledger_shown=kept.shown, tokens=50 + kept.tokens)
    return EMPTY.after([*history(*WORK, *messages), summary])


@pytest.mark.parametrize("room", [0, 60, 150, 400, 3_000])
def test_what_is_shown_takes_no_more_than_its_room(room: int) -> None:
    kept = gather_ledger(core_of(), EMPTY, source(*RULES, *WORK)).select(room)
    assert kept.tokens <= room
    assert bool(kept.text) == (kept.shown > 0)
    assert all(line.text in kept.text for line in kept.lines[: kept.shown])


def test_a_moment_without_room_forgets_nothing() -> None:
    core = core_of()
    known = gather_ledger(core, EMPTY, source(*RULES, *WORK)).select(3_000)
    squeezed = gather_ledger(core, carrying(known), MessagesRead()).select(0)
    again = gather_ledger(core, carrying(squeezed), MessagesRead()).select(3_000)
    assert again.text == known.text


def test_it_is_carried_over_with_growing_counts() -> None:
    core = core_of()
    kept = gather_ledger(core, EMPTY, source(user("Never push to main."), *WORK)).select(1_000)
    for generation in range(10):
        more = source(user("Never push to main."), *WORK, start=10 * (generation + 1))
        kept = gather_ledger(core, carrying(kept), more).select(1_000)
    [line] = [line for line in kept.lines if line.kind == "rule"]
    assert (line.count, line.position) == (11, 100)
    assert "[100] Never push to main. ×11" in kept.text


def test_without_a_budget_there_is_no_ledger() -> None:
    core = core_of(policy=CompactionPolicy(ledger_tokens=0))
    assert gather_ledger(core, EMPTY, source(*RULES)).select(1_000) == KeptLedger()


def test_its_size_is_what_rendering_adds() -> None:
    core = core_of()
    count = core.counter.count_text
    kept = gather_ledger(core, EMPTY, source(*RULES, *WORK)).select(800)
    loaded = carrying(kept, user("go on"))
    rendered = render("t", loaded.window, None, count)
    assert rendered.tokens == loaded.state.tokens
    bare = render("t", carrying(KeptLedger(), user("go on")).window, None, count)
    added = count(str(rendered.system)) + count(str(rendered.messages))
    added -= count(str(bare.system)) + count(str(bare.messages))
    assert kept.tokens >= added


def test_a_ledger_that_is_turned_off_for_a_while_is_kept_unseen() -> None:
    core = core_of(policy=CompactionPolicy(ledger_share=0))
    known = gather_ledger(core_of(), EMPTY, source(*RULES, *WORK)).select(3_000)
    off = gather_ledger(core, carrying(known), source(*RULES)).select(1_000)
    assert off == KeptLedger(known.lines)
    again = gather_ledger(core_of(), carrying(off), source(user("go on"))).select(3_000)
    assert {line.text for line in known.lines[: known.shown]} <= {line.text for line in again.lines}


def test_a_fault_in_recognising_costs_nothing_that_is_kept_already(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> tuple[LedgerLine, ...]:
        raise RuntimeError("a recogniser failed")

    known = gather_ledger(core_of(), EMPTY, source(*RULES, *WORK)).select(3_000)
    monkeypatch.setattr(keeping, "gather", broken)
    kept = gather_ledger(core_of(), carrying(known), source(user("Never rebase."))).select(3_000)
    assert kept == known
    assert known.shown


class _Counting:
    """A counter that notes each text that it counts."""

    def __init__(self) -> None:
        self.counted: list[str] = []

    def count_text(self, text: str) -> int:
        self.counted.append(text)
        return len(text)


def test_a_line_is_measured_once_until_something_is_erased() -> None:
    counter = _Counting()
    core = dataclasses.replace(core_of(), counter=cast("TokenCounter", counter))
    assert core.line_sizes["- a line"] == core.line_sizes["- a line"] == 8
    assert counter.counted == ["- a line"]
    core.forget_read()
    assert core.line_sizes["- a line"] == 8
    assert counter.counted == ["- a line", "- a line"]


def test_a_second_compaction_measures_only_new_lines() -> None:
    counter = EstimatingTokenCounter()
    core = dataclasses.replace(core_of(), counter=counter)
    known = gather_ledger(core, EMPTY, source(*RULES, *WORK)).select(3_000)
    counted: list[str] = []

    class Noting(EstimatingTokenCounter):
        def count_text(self, text: str) -> int:
            counted.append(text)
            return super().count_text(text)

    again = dataclasses.replace(core, counter=Noting())
    gather_ledger(again, carrying(known), source(user("Never push."), start=90)).select(3_000)
    lines = [text for text in counted if text[:1] == "[" and text[1:2].isdigit()]
    assert lines == ["[90] Never push.\n"]
