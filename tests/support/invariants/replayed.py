"""Invariants of replay: what is rebuilt from the log is what was there, byte for byte."""

from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.models import takes_signed_summaries
from refold.application.conversation.recalled_texts import RecalledTexts
from refold.application.rendering.render import render
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.witness import THREAD, Witness, as_bytes


def every_version_is_rendered_as_it_was(witness: Witness, newest: int | None = None) -> None:
    """Invariant 11: ``context(at=...)`` gives the bytes of then, for the newest or all versions; from
    before an erasure only what was erased is shown otherwise.
    """
    since = max(witness.story.erased.values(), default=0)
    looks = [(v, sent) for v, sent in witness.seen.items() if not witness.is_reframed(v)]
    then = [*looks, *((asked.version, asked.sent) for asked in witness.asked)]
    then = [(v, sent) for v, sent in then if v >= since and witness.is_clear(v)]
    for version, sent in sorted(then)[-newest if newest else 0 :]:
        again = as_bytes(witness.shown(version))
        assert again == sent, f"version {version} is rendered otherwise now"


def a_fresh_load_is_the_live_state(witness: Witness) -> None:
    """Invariant 11: snapshot and tail, the cached state, and a fold of all events are one."""
    full = LoadedConversation(THREAD).after([e.event for e in witness.events()])
    log = SQLiteLog(witness.path)
    try:
        fresh = log.load(THREAD)
    finally:
        log.close()
    assert fresh.state == full.state
    assert fresh.window == full.window
    sizes = sum(message.tokens for message in full.state.live)
    assert full.state.live_tokens == full.state.older_tokens + sizes
    if not witness.is_recorded:
        return  # What this memory waits for is recorded with its next append.
    shown, setting = witness.shown(), witness.setting
    signed = takes_signed_summaries(setting.model)
    count, place = witness.counter.count_text, setting.place
    lines = RecalledTexts().find(witness.reader, full)
    rendered = render(
        THREAD, full.window, setting.system, count, signed=signed, place=place, recalled=lines
    )
    assert (shown.system, shown.messages) == (rendered.system, rendered.messages)
    assert shown.tokens == rendered.tokens + shown.budget.fixed
    assert full.state.tokens <= rendered.tokens, "decisions are made on a size that is too large"


def read_models_are_a_fold_of_the_log(witness: Witness) -> None:
    """Invariant 11: ``verify`` finds nothing."""
    found = witness.memory.verify()
    assert found.ok, found.damage
    versions = (witness.memory.conversation(fork).version for fork in witness.forks)
    assert found.events == len(witness.events()) + sum(versions)
