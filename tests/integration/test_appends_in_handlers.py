"""A signal handler or a destructor that appends in the middle of an append of its own thread."""

from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import refold
from refold.infrastructure.event_store.recorder import LogRecorder
from refold.infrastructure.event_store.store import SharedCommits

IN_TIME = 4.0
"""Seconds after which a call counts as waiting for ever."""


@pytest.mark.parametrize(
    ("place", "step"), [(SharedCommits, "_discard"), (LogRecorder, "_insert_events")]
)
def test_it_is_refused_at_once_and_the_append_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: type, step: str
) -> None:
    with refold.open(tmp_path / "agent.db") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "first"})
        original, refused = getattr(place, step), list[refold.LogBusy]()

        def interrupted(*given: Any, **named: Any) -> Any:
            if not refused:
                with pytest.raises(refold.LogBusy, match="signal handler") as told:
                    conversation.append({"role": "user", "content": "of the handler"})
                refused.append(told.value)
            return original(*given, **named)

        monkeypatch.setattr(place, step, interrupted)
        told = {"role": "user", "content": "second"}
        appending = Thread(target=lambda: conversation.append(told), daemon=True)
        appending.start()
        appending.join(IN_TIME)
        assert not appending.is_alive()
        assert len(refused) == 1
        conversation.append({"role": "user", "content": "of the handler"})
        said = [message.message.content for message in conversation.messages()]
        assert said == ["first", "second", "of the handler"]
