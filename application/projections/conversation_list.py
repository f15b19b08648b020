"""The list of conversations, with their sizes and times of last use."""

from collections import Counter
from collections.abc import Sequence

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.read_models import ConversationRow
from refold.domain.events import (
    CompactionPerformed,
    ConversationErased,
    ConversationForked,
    ConversationLabelled,
    EventLost,
    MessageAppended,
    MessageErased,
)
from refold.domain.facts.speech import user_words
from refold.domain.messages import Message, gist, said
from refold.domain.text_cuts import beginning

from .row_changes import Added, Cell, Change, Changed, message_time

VERSION = 6
"""Version of the fold; increase it when the fold or the row changes, so that stored rows are rebuilt."""


FIRST_WORDS = 80
"""Number of characters of the first words to keep."""


def changes(logged: LoggedEvent) -> Sequence[Change]:
    """Add a row for the first event of a conversation, and update it for every event."""
    return changes_of_run((logged,))


def changes_of_run(run: Sequence[LoggedEvent]) -> Sequence[Change]:
    """Return one change for a whole run of events of one conversation."""
    to: dict[str, Cell] = {"version": run[-1].version}
    more = Counter[str]()
    for logged in run:
        match event := logged.event:
            case MessageAppended():
                to |= _message_fields(logged, event)
                more.update(messages=1, tokens=event.tokens)
            case CompactionPerformed():
                more["compactions"] += (
                    event.trigger != "erasure"
                )  # A summary rebuilt by an erasure is not a new compaction.
            case MessageErased():
                more["erased_messages"] += 1
            case EventLost():
                more["messages"] += event.position is not None
            case ConversationErased():
                to |= {"erased": 1, "first_words": None}
            case ConversationLabelled():
                to["label"] = event.label
            case ConversationForked():
                to |= {"forked_from": event.source, "forked_at": event.version}
            case _:
                pass
    row = Changed({"thread_id": run[0].thread_id}, to, +more, *_first_words_and_times(run))
    return (row,) if run[0].version > 1 else (Added(_new_row(run[0])), row)


def _message_fields(logged: LoggedEvent, event: MessageAppended) -> dict[str, Cell]:
    to: dict[str, Cell] = {}
    if event.position == 0:
        to |= {"created_at": message_time(logged, event), "last_activity": ""}
    if event.conversation_owner is not None:
        to["owner"] = event.conversation_owner
    return to


def _first_words_and_times(run: Sequence[LoggedEvent]) -> tuple[dict[str, Cell], dict[str, str]]:
    """Return the first words of a user in a run, and the earliest and latest times of its messages."""
    messages = [(one, one.event) for one in run if isinstance(one.event, MessageAppended)]
    if not messages:
        return {}, {}
    times = [message_time(logged, event) for logged, event in messages]
    first = next(((one, event) for one, event in messages if _is_own(event)), None)
    words: dict[str, Cell] = {}
    if first is not None:
        words = {"first_words": _first_words(*first), "first_words_at": first[1].position}
    return words, {"created_at": min(times), "last_activity": max(times)}


def _new_row(logged: LoggedEvent) -> ConversationRow:
    return ConversationRow(
        thread_id=logged.thread_id,
        label=None,
        messages=0,
        tokens=0,
        compactions=0,
        created_at=logged.at,
        last_activity=logged.at,
        version=logged.version,
        erased=False,
        forked_from=None,
        forked_at=None,
        first_words=None,
        first_words_at=None,
        owner=None,
    )


def erased_changes(left: LoggedEvent) -> Sequence[Change]:
    """Remove the first words of a conversation if their message was erased."""
    event = left.event
    if not isinstance(event, MessageAppended):
        return ()
    words: dict[str, Cell] = {"thread_id": left.thread_id, "first_words_at": event.position}
    return (Changed(words, {"first_words": None}),)


def _is_own(event: MessageAppended) -> bool:
    """Return whether the message may provide the first words of its conversation.

    A message that has its own owner may not, because the owner of the conversation would see it.
    """
    return event.owner is None and is_of_user(event.message)


def is_of_user(message: Message) -> bool:
    """Return whether a message was written by the user, as far as its author is known.

    Erasing its words does not change the answer.
    """
    own = message.role == "user" and message.author in (None, "person")
    return own and not gist(message).results


def _first_words(logged: LoggedEvent, event: MessageAppended) -> str | None:
    if logged.erased:
        return None
    text = said(event.message)
    folded = " ".join((user_words(text) or text)[: 4 * FIRST_WORDS].split())
    return beginning(folded, FIRST_WORDS, trim=True)
