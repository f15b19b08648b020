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

from .row_changes import Added, Cell, Change, Changed, in_utc, message_time, utc

VERSION = 6
"""Version of the fold; increase it when the fold or the row changes, so that stored rows are rebuilt."""


FIRST_WORDS = 80
"""Number of characters of the first words to keep."""

_Said = tuple[LoggedEvent, MessageAppended]
"""A message with its event as it was logged."""


def changes(logged: LoggedEvent) -> Sequence[Change]:
    """Add a row for the first event of a conversation, and update it for every event."""
    return changes_of_run((logged,))


def changes_of_run(run: Sequence[LoggedEvent]) -> Sequence[Change]:
    """Return one change for a whole run of events of one conversation."""
    to: dict[str, Cell] = {"version": run[-1].version}
    more = Counter[str]()
    said: list[_Said] = []
    for logged in run:
        match event := logged.event:
            case MessageAppended():
                said.append((logged, event))
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
    _add_messages(said, to, more)
    row = Changed({"thread_id": run[0].thread_id}, to, +more, _first_words_in(said), _times(said))
    return (row,) if run[0].version > 1 else (Added(_new_row(run[0])), row)


def _add_messages(said: Sequence[_Said], to: dict[str, Cell], more: Counter[str]) -> None:
    more["messages"] += len(said)
    more["tokens"] += sum(event.tokens for _, event in said)
    for logged, event in said:
        if event.position == 0:
            to |= {"created_at": message_time(logged, event), "last_activity": ""}
        if event.conversation_owner is not None:
            to["owner"] = event.conversation_owner


def _first_words_in(said: Sequence[_Said]) -> dict[str, Cell]:
    for logged, event in said:
        if _is_own(event):
            return {"first_words": _first_words(logged, event), "first_words_at": event.position}
    return {}


def _times(said: Sequence[_Said]) -> dict[str, str]:
    """Return the earliest and latest times of messages."""
    times = [logged.at for logged, event in said if not event.written_at]
    # Only two of these times are needed as text, which takes much longer than to compare them.
    if written := [in_utc(event.written_at) for _, event in said if event.written_at]:
        times += [utc(min(written)), utc(max(written))]
    return {"created_at": min(times), "last_activity": max(times)} if times else {}


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
