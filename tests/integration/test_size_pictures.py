"""The chart of sizes and the strip of messages on a real log: what they say, and what they cost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import refold
from refold.domain.errors import InvalidSetting
from refold.infrastructure.projection_store import view_answers
from refold.infrastructure.transcripts.read_transcript import read_transcript
from tests.support.counted_reads import counted_reads
from tests.support.fake_summarisers import GoodSummariser
from tests.support.judged_play import recordings
from tests.support.real_data import needs_data

SAID = "It looks at the next token and decides. " * 12
WINDOW = 8_000


def opened(path: Path, window: int = WINDOW) -> refold.Memory:
    return refold.open(
        path, window=window, summariser=GoodSummariser(), background=False, standing_recall=0
    )


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[refold.Memory]:
    with opened(tmp_path / "agent.db") as memory:
        yield memory


def talk(conversation: refold.ConversationMemory, turns: int) -> None:
    for number in range(turns):
        said = f"{number}: {SAID}"
        conversation.append({"role": "user", "content": said})
        conversation.context(system="You help.")
        conversation.append({"role": "assistant", "content": said})


def kinds(history: refold.SizeHistory) -> list[str]:
    return [mark.kind for mark in history.marks if mark.kind != "frame"]


def fates_in(strip: refold.MessageStrip) -> set[str]:
    return {one.fate for cell in strip.cells for one in cell.fates}


def test_a_compaction_is_a_mark_with_the_sizes_of_the_requests_around_it(
    memory: refold.Memory,
) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 40)
    history = conversation.size_history()
    compacted = [mark for mark in history.marks if mark.kind == "compacted"]
    assert len(compacted) == len(conversation.summaries()) > 0
    for mark, row in zip(compacted, conversation.summaries(), strict=True):
        assert (mark.summary_id, mark.version) == (row.summary_id, row.version)
        assert mark.tokens_after == conversation.context(at=mark.version).tokens
        assert mark.changed_from == 0
    assert (history.window, history.version) == (WINDOW, conversation.version)
    peak = max(point.tokens for point in history.points)
    assert history.trigger < peak < history.limit


def test_points_are_thinned_and_the_highest_peak_stays(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 40)
    every = conversation.size_history(most=10_000)
    few = conversation.size_history(most=10)
    assert len(every.points) == conversation.version
    assert len(few.points) <= 10
    assert max(p.tokens for p in few.points) == max(p.tokens for p in every.points)
    assert few.marks == every.marks
    assert [few.points[place].version for place in (0, -1)] == [1, conversation.version]


def test_points_have_the_times_of_their_messages(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 3)
    times = {message.position + 1: message.at for message in conversation.messages()}
    for point in conversation.size_history().points:
        assert point.at == times[point.position]


def test_an_earlier_version_shows_what_was_known_then(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 40)
    now, version = conversation.size_history(), conversation.version // 2
    then = conversation.size_history(at=version)
    assert then.points == now.points[:version]
    assert then.marks == tuple(mark for mark in now.marks if mark.version <= version)
    assert conversation.message_strip(at=version).length == then.points[-1].position


def test_cells_have_equal_lengths_and_all_tokens(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 40)
    strip = conversation.message_strip(most=30)
    assert [(cell.start, cell.stop) for cell in strip.cells] == [
        (start, min(start + 3, 80)) for start in range(0, 80, 3)
    ]
    tokens = sum(message.tokens for message in conversation.messages())
    assert sum(cell.tokens for cell in strip.cells) == tokens
    assert all(sum(one.tokens for one in cell.fates) == cell.tokens for cell in strip.cells)
    assert fates_in(strip) == {"summarised", "full"}


def test_an_erased_message_is_a_mark_and_a_fate_also_before_it_was_erased(
    memory: refold.Memory,
) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 4)
    before = conversation.version
    conversation.size_history()
    conversation.erase(2)
    assert kinds(conversation.size_history())[-1] == "erased"
    for at in (None, before):
        assert [one.fate for one in conversation.message_strip(at=at).cells[2].fates] == ["erased"]
    pictures = conversation.size_history(), conversation.message_strip()
    assert memory.verify().ok
    memory.replay()
    assert (conversation.size_history(), conversation.message_strip()) == pictures


def test_an_erased_conversation_has_no_pictures_and_its_id_begins_new_ones(
    memory: refold.Memory,
) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 4)
    conversation.size_history()
    memory.erase_conversation("t")
    assert (conversation.size_history().points, conversation.message_strip().cells) == ((), ())
    assert memory.verify().ok
    talk(conversation, 1)
    assert [cell.start for cell in conversation.message_strip().cells] == [0, 1]
    assert len(conversation.size_history().points) == conversation.version


def test_nothing_is_shown_of_the_messages_of_an_erased_owner(memory: refold.Memory) -> None:
    conversation = memory.conversation("t", owner="anna")
    talk(conversation, 4)
    conversation.size_history()
    memory.erase_owner("anna")
    assert fates_in(memory.conversation("t").message_strip()) <= {"erased"}
    assert memory.verify().ok


def test_a_fork_has_the_pictures_of_its_source(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 40)
    fork = conversation.fork(thread_id="u")
    known = conversation.version
    assert fork.size_history().points[:known] == conversation.size_history().points
    assert fork.message_strip().cells == conversation.message_strip().cells
    assert memory.verify().ok


def test_a_conversation_without_events_has_empty_pictures(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    assert conversation.size_history().points == ()
    assert conversation.message_strip().cells == ()


def test_too_few_points_or_cells_are_refused(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    with pytest.raises(InvalidSetting, match="from 4"):
        conversation.size_history(most=3)
    with pytest.raises(InvalidSetting, match="from 1"):
        conversation.message_strip(most=0)


def test_of_a_very_long_conversation_long_rows_are_read(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 40)
    conversation.erase(70)
    exact, strip = conversation.size_history(), conversation.message_strip()
    monkeypatch.setattr(view_answers, "MOST_SIZES", 0)
    about = conversation.size_history()
    assert about.is_estimate
    assert kinds(about) == kinds(exact)
    assert about.points[-1].version == exact.version
    assert abs(about.points[-1].tokens - exact.points[-1].tokens) < WINDOW // 20
    ends = [(m.version, m.tokens_after) for m in exact.marks if m.kind == "compacted"]
    rough = [(m.version, m.tokens_after) for m in about.marks if m.kind == "compacted"]
    for (version, tokens), (seen, near) in zip(ends, rough, strict=True):
        assert version == seen
        assert abs(tokens - near) < WINDOW // 20
    rough_cells = conversation.message_strip().cells
    assert [cell.fates[0].fate for cell in rough_cells] == [c.fates[0].fate for c in strip.cells]
    assert conversation.size_history(at=40).version == 40


SHORT, LONG = 2_000, 20_000
MOST_ROWS = 1_500


def test_pictures_read_few_rows_decode_no_event_and_render_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = counted_reads(monkeypatch)
    work: list[dict[str, int]] = []
    for size in (SHORT, LONG):
        with opened(tmp_path / f"{size}.db", 20_000) as memory:
            conversation = memory.conversation("t")
            conversation.append(
                [{"role": "user", "content": f"{n} {SAID}"} for n in range(size)], recorded=True
            )
            conversation.compact(force=True)
            conversation.size_history()
            counted.clear()
            assert len(conversation.size_history().points) <= 600
            assert len(conversation.message_strip().cells) <= 400
            work.append(dict(counted))
    short, long = work
    assert short | {"rows": 0} == long | {"rows": 0} == {"rows": 0}
    assert long["rows"] <= 2 * (LONG // 256 + 3) <= MOST_ROWS


@needs_data
def test_on_recorded_sessions_sizes_differ_by_less_than_a_twentieth_of_the_window() -> None:
    window, checked = 20_000, 0
    for path in recordings(["claude-code-entire/83a0bb2f3f73", "claude-code-episodic-memory/long"]):
        recorded = read_transcript(path).conversations[0].messages
        with opened(Path(":memory:"), window) as memory:
            conversation = memory.conversation("t")
            for one in recorded[:250]:
                conversation.append_recorded([one])
                if one.message.role == "user":
                    conversation.context(system="You are an agent. " * 150)
            for mark in conversation.size_history().marks:
                for version, tokens in (
                    (mark.version - 1, mark.tokens_before),
                    (mark.version, mark.tokens_after),
                ):
                    if mark.kind != "frame":
                        real = conversation.context(at=version).tokens
                        assert abs(tokens - real) < window / 20, mark
                        checked += 1
    assert checked
