"""The work of a compaction and the bytes that it stores do not grow with the conversation: counted, not timed."""

import sqlite3
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import refold
from refold.application.rendering.turn_builder import TurnBuilder
from refold.domain.facts.message_reader import MessageReader
from refold.domain.ledger.line_choice import Ranking
from refold.infrastructure.event_store import codec
from refold.infrastructure.sqlite.sqlite_connection import ProcessCursor
from refold.infrastructure.summarisers.extractive.line_choice import Ranking as TextRanking
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter

WINDOW = 6_000
COMPACTIONS = 200
TURNS = 8
"""Turns of each compaction."""


class Work(NamedTuple):
    """The counts of one compaction."""

    counts: Counter[str]
    shown: int
    """Bytes of what stands in the request for the older messages."""


def turn(number: int) -> list[dict[str, Any]]:
    """A turn whose words have the same length for every number of four digits."""
    path, call = f"src/part_{number}/module_{number}.py", f"call_{number}"
    asked = f"Never drop the cursor of {path}. Use port {number} and keep version 1.2.{number}."
    command = {"command": f"pytest tests/test_{number}.py -k case_{number}"}
    used = {"type": "tool_use", "id": call, "name": "bash", "input": command}
    printed = "\n".join(f"{n}: value_{number} = {n * 7} ms" for n in range(10, 30))
    result = {"type": "tool_result", "tool_use_id": call, "content": printed}
    return [
        {"role": "user", "content": asked},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": f"I decided to keep {path}, because {number} fits."},
    ]


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the calls from now on."""
    counts = Counter[str]()

    def count(owner: Any, name: str, what: str) -> None:
        original: Callable[..., Any] = getattr(owner, name)

        def call(*args: Any, **named: Any) -> Any:
            counts[what] += 1
            return original(*args, **named)

        monkeypatch.setattr(owner, name, call)

    count(codec, "decode", "events decoded")
    count(codec, "encode", "events encoded")
    count(TurnBuilder, "finish", "renders")
    count(MessageReader, "read", "messages read for facts")
    count(Ranking, "score", "ledger lines scored")
    count(TextRanking, "score", "lines of the text scored")
    count(EstimatingTokenCounter, "count_text", "texts counted")
    count(ProcessCursor, "execute", "SQL statements")
    return counts


def stored_sizes(path: Path) -> list[int]:
    """The bytes of each stored compaction, the oldest first."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT length(state) FROM stored_events WHERE topic='compaction_performed' "
            "ORDER BY originator_version"
        )
        return [row[0] for row in rows]


def snapshot_sizes(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT length(state) FROM stored_snapshots ORDER BY originator_version"
        )
        return [row[0] for row in rows]


def compacted(
    conversation: refold.ConversationMemory, first: int, turns: int, counts: Counter[str]
) -> Work:
    """Append so many turns, compact, and return what the compaction alone took."""
    said = [message for number in range(first, first + turns) for message in turn(number)]
    conversation.append(said, recorded=True)
    counts.clear()
    assert conversation.compact().outcome == "performed"
    work = Counter(counts)
    return Work(work, sum(len(text.encode()) for text in conversation.context().memory))


class Grown(NamedTuple):
    works: list[Work]
    events: list[int]
    """Bytes of each event that recorded a summary."""
    snapshots: list[int]
    opening: Counter[str]
    """What opening the conversation took after all compactions."""


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Grown:
    """A conversation that was compacted so many times, and the work of each of them."""
    path = tmp_path_factory.mktemp("growth") / "agent.db"
    with pytest.MonkeyPatch.context() as monkeypatch:
        counts = counted(monkeypatch)
        with opened(path, WINDOW) as memory:
            conversation = memory.conversation("chat")
            early = [message for number in range(1_000, 1_250) for message in turn(number)]
            conversation.append(early, recorded=True)  # From here, positions have four digits.
            conversation.compact()
            firsts = range(2_000, 2_000 + COMPACTIONS * TURNS, TURNS)
            works = [compacted(conversation, first, TURNS, counts) for first in firsts]
        with opened(path, WINDOW) as memory:
            counts.clear()
            memory.conversation("chat").context()
            opening = Counter(counts)
    return Grown(works, stored_sizes(path)[1:], snapshot_sizes(path), opening)


def opened(path: Path, window: int) -> refold.Memory:
    return refold.open(path, window=window, summariser="extractive", scrub_megabytes=0)


READS = ("events decoded", "SQL statements")


@pytest.mark.slow
@pytest.mark.parametrize("early", [11, 12, 13])
def test_the_work_of_a_compaction_is_the_same_at_the_twelfth_and_the_200th(
    grown: Grown, early: int
) -> None:
    """They are no rebuilds, and neither are those so many times five later."""
    late = early + 185
    was, now = grown.works[early - 1], grown.works[late - 1]
    assert now.counts.keys() == was.counts.keys()
    for what, count in was.counts.items():
        assert now.counts[what] == pytest.approx(count, rel=0.02), what
    for what in (*READS, "renders", "messages read for facts", "events encoded"):
        assert now.counts[what] == was.counts[what], what


@pytest.mark.slow
@pytest.mark.parametrize("late", [100, 150, 200])
def test_the_work_of_a_rebuild_is_the_same_at_the_20th_and_the_200th(
    grown: Grown, late: int
) -> None:
    was, now = grown.works[19], grown.works[late - 1]
    for what, count in was.counts.items():
        assert now.counts[what] == pytest.approx(count, rel=0.02), what
    for what in READS:
        assert now.counts[what] == was.counts[what], what


@pytest.mark.slow
def test_from_the_10th_on_no_compaction_reads_more_events(grown: Grown) -> None:
    decoded = [work.counts["events decoded"] for work in grown.works]
    for kind in range(5):  # The fifth of five is a rebuild.
        assert len(set(decoded[10 + kind :: 5])) == 1


@pytest.mark.slow
def test_the_bytes_of_a_compaction_are_the_same_at_the_10th_and_the_200th(grown: Grown) -> None:
    for early in (11, 19):  # One of each kind.
        assert grown.events[early + 180] == pytest.approx(grown.events[early], rel=0.05)
    assert grown.snapshots[-1] == pytest.approx(grown.snapshots[15], rel=0.2)


@pytest.mark.slow
def test_a_conversation_is_opened_from_its_newest_compaction_alone(grown: Grown) -> None:
    assert grown.opening["events decoded"] < 40


def test_a_compaction_is_handed_to_one_thread_and_renders_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step in a thread wakes two others, and each rendering of all messages takes as long as many steps."""
    steps, added = list[object](), list[int]()
    submit, add = ThreadPoolExecutor.submit, TurnBuilder.add

    def counted_submit(pool: ThreadPoolExecutor, *args: Any, **named: Any) -> Any:
        steps.append(args)
        return submit(pool, *args, **named)

    def counted_add(builder: TurnBuilder, entries: Any) -> None:
        added.append(len(entries))
        add(builder, entries)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", counted_submit)
    monkeypatch.setattr(TurnBuilder, "add", counted_add)
    found: list[tuple[int, bool]] = []
    with opened(tmp_path / "agent.db", WINDOW) as memory:
        conversation = memory.conversation("chat")
        for number in range(1_000, 1_100):
            conversation.append(turn(number), recorded=True)
            steps.clear()
            added.clear()
            context = conversation.context()
            if any(one.outcome == "performed" and not one.rebuilt for one in context.compactions):
                found.append((len(steps), sum(added) <= 3 * len(context.messages)))
    assert len(found) > 3
    assert {count for count, _ in found} == {1}, found
    # The first summary is rehearsed.
    assert all(is_little for _, is_little in found[1:]), found


def test_a_stored_compaction_has_at_most_the_bytes_of_what_it_shows_twice(tmp_path: Path) -> None:
    path, window, turns = tmp_path / "agent.db", 32_000, 80
    with opened(path, window) as memory:
        conversation = memory.conversation("chat")
        firsts = range(1_000, 1_000 + 7 * turns, turns)
        works = [compacted(conversation, first, turns, Counter()) for first in firsts]
    pairs = list(zip(stored_sizes(path), (work.shown for work in works), strict=True))
    assert len(pairs) == 7
    assert [pair for pair in pairs if pair[0] > 2 * pair[1]] == []


class Request(NamedTuple):
    """What one request took."""

    read: int
    """Messages that were read for facts."""
    share: float
    """Size of the request, as a share of the trigger, before anything was made smaller."""
    compacted: bool


def played(
    conversation: refold.ConversationMemory, numbers: range, counts: Counter[str]
) -> list[Request]:
    """Append one turn after the other, and make a request after each."""
    made: list[Request] = []
    for number in numbers:
        conversation.append(turn(number), recorded=True)
        counts.clear()
        context = conversation.context()
        before = context.compactions[0].tokens_before if context.compactions else context.tokens
        made.append(
            Request(
                counts["messages read for facts"],
                before / context.budget.trigger,
                any(one.outcome == "performed" for one in context.compactions),
            )
        )
    return made


def test_requests_before_a_compaction_read_most_of_its_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a compaction, which the agent waits for, has less to do. None of them is read twice."""
    counts = counted(monkeypatch)
    with opened(tmp_path / "agent.db", WINDOW) as memory:
        made = played(memory.conversation("chat"), range(1_000, 1_200), counts)
    compactions = [one.read for one in made if one.compacted]
    others = [one for one in made if not one.compacted]
    assert len(compactions) > 5
    assert sum(compactions) <= sum(one.read for one in made) / 4
    assert sum(one.read for one in made) <= 200 * 4
    assert not any(one.read for one in others if one.share < 0.5)
    assert max(one.read for one in others) <= 40


def test_a_new_process_reads_nothing_ahead_for_its_first_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = counted(monkeypatch)
    for number in range(1_000, 1_020):
        with opened(tmp_path / "agent.db", WINDOW) as memory:
            [made] = played(memory.conversation("chat"), range(number, number + 1), counts)
            assert made.compacted or not made.read
            assert not memory.conversation("chat").context().compactions
            assert made.compacted or not counts["messages read for facts"]


def test_nothing_is_read_ahead_while_compactions_run_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = counted(monkeypatch)
    path, made = tmp_path / "agent.db", list[Request]()
    with refold.open(path, window=60_000, summariser="extractive", background=True) as memory:
        while not made or made[-1].share < 0.8:  # Notes are taken from 0.86 on.
            first = 1_000 + len(made)
            made += played(memory.conversation("chat"), range(first, first + 1), counts)
    assert made[-1].share < 0.85
    assert not any(one.read for one in made)


def test_rules_that_fail_ahead_of_a_compaction_do_not_stop_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def fail(self: MessageReader, position: int, message: object) -> None:
        read.append(position)
        raise ValueError("a rule failed")

    monkeypatch.setattr(MessageReader, "read", fail)
    with opened(tmp_path / "agent.db", WINDOW) as memory:
        made = played(memory.conversation("chat"), range(1_000, 1_040), Counter())
    assert read
    assert any(one.compacted for one in made)
