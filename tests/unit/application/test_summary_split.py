"""A divided turn: its beginning and the history before it are summarised apart, and joined."""

from refold.application.ports.summariser import SummaryRequest
from refold.domain.compaction.budget import SHORTEST_SUMMARY
from refold.domain.events import LeafSummary
from refold.domain.value import replace
from tests.support.bounded_summarisers import Scripted
from tests.support.builders import assistant, calls, performed, results, talk, user
from tests.support.fake_summarisers import GoodSummariser, RecordingSummariser
from tests.support.summary_scenes import Scene, recorded

JOINT = "\n\n---\n\n**Turn Context (split turn):**\n\n"


def positions(request: SummaryRequest) -> list[int]:
    return [m.position for m in request.messages]


def test_history_and_turn_are_summarised_apart_and_joined() -> None:
    recording = RecordingSummariser()
    before = performed(2, text="Covers messages 0-1.")
    scene = Scene(*talk(3), summariser=recording, start=2, before=before, split_at=4)
    summary = scene.written()
    assert summary.text == f"Covers messages 0-3.{JOINT}Covers messages 4-7."
    assert (summary.is_split_turn, summary.split_turn_prefix) == (True, "Covers messages 4-7.")
    assert summary.split_at == 4
    history, turn = recording.requests
    assert (history.part, positions(history), history.previous) == ("history", [2, 3], before.text)
    assert (turn.part, positions(turn), turn.previous) == ("turn_prefix", [4, 5, 6, 7], None)
    assert summary.model_calls == 2


def test_both_calls_get_the_focus() -> None:
    recording = RecordingSummariser()
    Scene(*talk(3), summariser=recording, focus="the parser", split_at=2).written()
    assert [r.focus for r in recording.requests] == ["the parser", "the parser"]


def test_an_undivided_summary_is_one_call_and_says_so() -> None:
    recording = RecordingSummariser()
    summary = Scene(*talk(3), summariser=recording).written()
    assert len(recording.requests) == 1
    assert (summary.is_split_turn, summary.split_turn_prefix, summary.split_at) == (
        False,
        None,
        None,
    )


def test_an_empty_history_keeps_the_text_before_word_for_word() -> None:
    recording = RecordingSummariser()
    before = performed(2, text="What was said,\n  exactly so.")
    summary = Scene(*talk(2), summariser=recording, start=2, before=before, split_at=2).written()
    assert summary.text == f"What was said,\n  exactly so.{JOINT}Covers messages 2-5."
    assert [r.part for r in recording.requests] == ["turn_prefix"]


def test_with_no_history_at_all_the_turn_stands_alone_under_its_heading() -> None:
    summary = Scene(*talk(2), split_at=0).written()
    assert summary.text == "**Turn Context (split turn):**\n\nCovers messages 0-3."
    assert summary.is_split_turn


def test_a_turn_that_goes_on_carries_its_own_text_on_and_history_stays() -> None:
    recording = RecordingSummariser()
    first = recorded(Scene(*talk(3), split_at=2).written(), 6)
    more = [calls("a"), results("a")]
    scene = Scene(*more, summariser=recording, start=6, before=first, split_at=6)
    summary = scene.written()
    [turn] = recording.requests
    assert (turn.part, turn.previous) == ("turn_prefix", "Covers messages 2-5.")
    assert summary.text == f"Covers messages 0-1.{JOINT}Covers messages 2-7."
    assert summary.split_at == 2, "the turn began where it began"


def test_a_turn_that_stands_alone_goes_on_without_a_history() -> None:
    first = recorded(Scene(*talk(2), split_at=0).written(), 4)
    summary = Scene(*talk(1), start=4, before=first, split_at=4).written()
    assert summary.text == "**Turn Context (split turn):**\n\nCovers messages 0-5."


def test_when_the_divided_turn_has_ended_history_carries_on_the_whole_text() -> None:
    first = recorded(Scene(*talk(3), split_at=2).written(), 6)
    for split_at in (None, 8):
        recording = RecordingSummariser()
        scene = Scene(*talk(2), summariser=recording, start=6, before=first, split_at=split_at)
        summary = scene.written()
        history = recording.requests[0]
        assert (history.part, history.previous) == ("history", first.text)
        assert summary.is_split_turn is (split_at is not None)


def test_a_request_of_the_turn_that_is_covered_late_belongs_to_the_turn() -> None:
    # Position 3 stayed while the turn, which began there, was divided at 6 for the first time.
    recording = RecordingSummariser()
    before = replace(
        performed(
            6,
            text="a\n\n---\n\n**Turn Context (split turn):**\n\nb",
            split_at=3,
            is_split_turn=True,
        ),
        split_turn_prefix="b",
    )
    Scene(*talk(3), summariser=recording, start=3, before=before, split_at=6).written()
    [turn] = recording.requests
    assert positions(turn) == [3, 4, 5, 6, 7, 8]


def test_the_length_is_divided_in_proportion_to_the_sources() -> None:
    recording = RecordingSummariser()
    messages = [user("w " * 600), assistant("ok"), user("w " * 1_800), assistant("ok")]
    Scene(*messages, summariser=recording, split_at=2).written()
    history, turn = recording.requests
    assert 2.2 < (1_200 - history.limit_tokens) / history.limit_tokens < 3.8
    # What the history does not need, the turn may have.
    assert history.limit_tokens < 400 < 1_100 < turn.limit_tokens < 1_200
    assert all(r.target_tokens * 1.2 <= r.limit_tokens + 1 for r in recording.requests)


def test_neither_part_gets_less_than_the_shortest_summary() -> None:
    recording = RecordingSummariser()
    messages = [user("hi"), assistant("ok"), user("w " * 3_000), assistant("ok")]
    Scene(*messages, summariser=recording, split_at=2).written()
    assert recording.requests[0].limit_tokens == SHORTEST_SUMMARY


def test_a_kept_history_that_leaves_the_turn_too_little_room_is_shortened() -> None:
    recording = RecordingSummariser(GoodSummariser())
    before = performed(2, text="Covers messages 0-1." + " and so on" * 400)
    messages = [user("w " * 6_000), assistant("ok"), *talk(1)]
    scene = Scene(*messages, summariser=recording, start=2, before=before, split_at=2)
    summary = scene.written()
    history, turn = recording.requests
    assert (history.part, history.messages, history.previous) == ("history", (), before.text)
    assert turn.limit_tokens >= 500
    assert summary.text == f"Covers messages 0-1.{JOINT}Covers messages 2-5."


def test_the_joined_text_is_within_the_limit() -> None:
    long = Scripted(*(" ".join(f"{c}{n}" for n in range(200)) for c in "hp"))
    messages = [user("w " * 600), assistant("ok"), user("w " * 600), assistant("ok")]
    summary = Scene(*messages, summariser=long, split_at=2).written()
    assert summary.text_tokens <= 1_200


def test_built_anew_each_part_is_made_from_the_leaves_of_its_own_messages() -> None:
    recording = RecordingSummariser()
    first = recorded(Scene(*talk(3), split_at=4).written(), 6)
    leaves = [
        LeafSummary(start=0, stop=4, text="old history", tokens=3),
        LeafSummary(start=4, stop=6, text="early turn", tokens=3),
    ]
    scene = Scene(*talk(1), summariser=recording, start=6, before=first, leaves=leaves, split_at=6)
    scene.written()
    turn = recording.requests[-1]
    assert turn.part == "turn_prefix"
    assert "early turn" in str(turn.previous)
    assert "old history" not in str(turn.previous)
    assert str(first.split_turn_prefix) not in str(turn.previous)


class SigningSummariser(GoodSummariser):
    """Its texts are signed, so that two of them cannot be joined."""

    signs = True


def test_a_signed_summary_is_one_text_also_where_a_turn_is_divided() -> None:
    before = performed(2, text="Covers messages 0-1.")
    recording = SigningSummariser()
    scene = Scene(*talk(3), summariser=recording, start=2, before=before, split_at=4)
    summary = scene.written()
    assert summary.text == "Covers messages 0-7."
    assert (summary.is_split_turn, summary.split_at) == (False, None)
