"""Use case: erase in a log that was restored what had been erased after its backup was made."""

from collections.abc import Iterable

from refold.application.core import Core
from refold.application.upkeep.housekeeping import ErasedAgain, RecordedErasure
from refold.domain.events import Event, MessageAppended, MessageErased

from .erasing import erase, erase_all


def erase_again(core: Core, known: Iterable[RecordedErasure]) -> tuple[ErasedAgain, ...]:
    """Apply erasures that another log of the same conversations records; what was erased now.

    Only where it is about the same message or conversation: a backup can be of another history.
    """
    threads: dict[str, list[RecordedErasure]] = {}
    for recorded in dict.fromkeys(known):
        threads.setdefault(recorded.thread_id, []).append(recorded)
    done: list[ErasedAgain] = []
    for thread_id, erasures in threads.items():
        done.extend(_in_conversation(core, thread_id, erasures))
    return tuple(done)


def _in_conversation(
    core: Core, thread_id: str, erasures: Iterable[RecordedErasure]
) -> Iterable[ErasedAgain]:
    state = core.log.load(thread_id).state
    if not state.version or state.erased:
        return
    logged = core.log.read(thread_id, 1, state.version)
    whole = next((e for e in erasures if e.position is None and e.identity == logged[0].at), None)
    if whole is not None:
        erase_all(core, thread_id, whole.reason)
        yield ErasedAgain(thread_id=thread_id, position=None)
        return
    there = _readable(item.event for item in logged)
    for recorded in erasures:
        position = recorded.position
        if position is not None and there.get(position) == recorded.identity:
            del there[position]
            erase(core, thread_id, position, recorded.reason)
            yield ErasedAgain(thread_id=thread_id, position=position)


def _readable(events: Iterable[Event]) -> dict[int, str]:
    """The ids of the messages that were not erased, by position."""
    found: dict[int, str] = {}
    for event in events:
        match event:
            case MessageAppended(position=position, message_id=message_id):
                found[position] = message_id
            case MessageErased(position=position):
                found.pop(position, None)
            case _:
                pass
    return found
