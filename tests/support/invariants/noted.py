"""Invariants of notes and topics: once a cycle, in a row, sourced, one line each, counted over what is covered."""

from collections.abc import Iterator

from refold.application.api.results import Context
from refold.domain.events import CompactionPerformed
from refold.domain.notes import NotesFlushed
from refold.domain.noting import LONGEST_NOTE, MOST_NOTES
from tests.support.witness import THREAD, Witness


def notes_are_taken_once_a_cycle(witness: Witness) -> None:
    """Requirement C1: at most once between two compactions, each of the messages after the last."""
    stop, cycles = 0, set[int]()
    for version, flush in _flushes(witness):
        state = witness.story.states[version - 1]
        if flush.replaces is not None or flush.is_on_demand:
            assert flush.replaces is not None or len(flush.notes) <= 1
            continue
        assert flush.start == stop, f"notes of {flush.start}, and not from {stop} on"
        assert flush.start < flush.stop <= state.length
        assert state.compactions not in cycles, "twice in a cycle"
        stop = flush.stop
        cycles.add(state.compactions)


def notes_are_lines_with_their_sources(witness: Witness) -> None:
    """Requirement C2 and invariant 14: each of its messages, on one line, and none of it twice."""
    said: set[str] = set()
    for _, flush in _flushes(witness):
        assert len(flush.notes) <= MOST_NOTES
        for note in flush.notes:
            assert note.text.isprintable() or note.text.splitlines() == [note.text]
            assert 0 < len(note.text) <= LONGEST_NOTE
            assert all(flush.start <= p < flush.stop for p in note.positions), note
            assert note.text not in said, f"{note.text!r} is noted twice"
            said.add(note.text)


def topics_are_of_what_is_covered(witness: Witness, shown: Context) -> None:
    """Requirement B9: labels of covered messages; the read model has those of the active summary."""
    active = witness.story.active
    seen = witness.memory.conversation(THREAD).topics()
    topics = active.topics if active else ()
    assert [(t.topic, t.count, t.last_position) for t in seen] == [
        (t.name, t.count, t.last_position) for t in topics
    ]
    if active is None:
        return
    assert len({t.name.casefold() for t in topics}) == len(topics) <= witness.policy.topics_kept
    assert active.topics_shown <= min(len(topics), witness.policy.topics_shown)
    for topic in topics:
        assert active.coverage.covers(topic.last_position), topic
        assert 1 <= topic.count <= active.coverage.count, topic
        assert topic.name.isprintable(), topic
        assert not set(",[]()\n") & set(topic.name), topic
    assert shown.summary is None or shown.summary.topics == topics


def notes_are_listed_as_they_were_taken(witness: Witness) -> None:
    """Invariant 11: what the read model has is what the events say."""
    listed = witness.memory.conversation(THREAD).notes()
    told = [
        (f.flush_id, n.kind, n.text, n.positions) for _, f in _flushes(witness) for n in f.notes
    ]
    assert [(r.flush_id, r.kind, r.text, r.source_positions) for r in listed] == told


def compactions_left_nothing_unnoted(witness: Witness) -> None:
    """Requirement C1: on every path what leaves the context was noted before, where the log could be
    written to then.
    """
    noted = 0
    for logged in witness.events():
        event = logged.event
        if isinstance(event, NotesFlushed):
            noted = max(noted, event.stop)
        if isinstance(event, CompactionPerformed) and event.trigger != "erasure":
            assert noted > 0, "compacted, and nothing was looked at for notes"


def _flushes(witness: Witness) -> Iterator[tuple[int, NotesFlushed]]:
    for logged in witness.events():
        if isinstance(logged.event, NotesFlushed):
            yield logged.version, logged.event
