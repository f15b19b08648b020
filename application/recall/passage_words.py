"""The words of passages: read from the log, which alone has them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from refold.application.ports.conversation_log import ConversationLog, LoggedEvent
from refold.application.projections.message_list import readable
from refold.application.runtime.core import Core
from refold.domain.events import MessageAppended

from .passages import Passage, digest_of

Place = tuple[str, int]
"""A conversation, and the version of an event in it."""


def words_of(core: Core, passages: Sequence[Passage]) -> Mapping[int, str]:
    """See ``words_in``, of the log of this core."""
    return words_in(core.log, passages)


def words_in(log: ConversationLog, passages: Sequence[Passage]) -> Mapping[int, str]:
    """By ``Passage.number``: what it says, word for word.

    A passage whose message was erased since, or is not where the index says, is not among them.

    Raises:
        LogError: the log cannot be read.
    """
    events = events_in(log, ((p.thread_id, p.version) for p in passages))
    found: dict[int, str] = {}
    for passage in passages:
        logged = events.get((passage.thread_id, passage.version))
        if logged is not None and (text := text_in(passage, logged)):
            found[passage.number] = text
    return found


def text_in(passage: Passage, logged: LoggedEvent) -> str:
    """The words of a passage in the event that it is of; empty if they are not there."""
    event = logged.event
    if logged.erased or not isinstance(event, MessageAppended):
        return ""
    if event.position != passage.position:
        return ""
    text = readable(event.message)[passage.start : passage.stop]
    return text if digest_of(text) == passage.digest else ""


def events_at(core: Core, places: Iterable[Place]) -> Mapping[Place, LoggedEvent]:
    """See ``events_in``, of the log of this core."""
    return events_in(core.log, places)


def events_in(log: ConversationLog, places: Iterable[Place]) -> Mapping[Place, LoggedEvent]:
    """The events at these places, as the log has them now; those that are not there are left out."""
    wanted = sorted(set(places))
    found: dict[Place, LoggedEvent] = {}
    for thread_id, same in groupby(wanted, lambda place: place[0]):
        for logged in log.read_at(thread_id, {version for _, version in same}):
            found[thread_id, logged.version] = logged
    return found
