"""Which conversations are there, how large are they, and when was each last used?"""

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
from refold.domain.ledger.speech import user_words
from refold.domain.messages import Message, gist, said
from refold.domain.text_cuts import beginning

from .row_changes import Added, Cell, Change, Changed, written

VERSION = 6
"""Grows when the fold or the row changes: stored rows of another version are dropped and replayed."""


FIRST_WORDS = 80
"""Characters of the first words that are kept."""


def changes(logged: LoggedEvent) -> Sequence[Change]:
    """The first event of a conversation makes its row, every one counts into it."""
    return changes_of_run((logged,))


def changes_of_run(run: Sequence[LoggedEvent]) -> Sequence[Change]:
    """One change for the whole run, however long it is."""
    to: dict[str, Cell] = {"version": run[-1].version}
    more = Counter[str]()
    for logged in run:
        match event := logged.event:
            case MessageAppended():
                to |= _of_message(logged, event)
                more.update(messages=1, tokens=event.tokens)
            case CompactionPerformed():
                more["compactions"] += event.trigger != "erasure"  # That one is made anew.
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
    row = Changed({"thread_id": run[0].thread_id}, to, +more, *_said(run))
    return (row,) if run[0].version > 1 else (Added(_begun(run[0])), row)


def _of_message(logged: LoggedEvent, event: MessageAppended) -> dict[str, Cell]:
    to: dict[str, Cell] = {}
    if event.position == 0:
        to |= {"created_at": written(logged, event), "last_activity": ""}
    if event.conversation_owner is not None:
        to["owner"] = event.conversation_owner
    return to


def _said(run: Sequence[LoggedEvent]) -> tuple[dict[str, Cell], dict[str, str]]:
    """The first words of a user in a run, and the times between which its messages were written."""
    messages = [(one, one.event) for one in run if isinstance(one.event, MessageAppended)]
    if not messages:
        return {}, {}
    times = [written(logged, event) for logged, event in messages]
    first = next(((one, event) for one, event in messages if _is_own(event)), None)
    words: dict[str, Cell] = {}
    if first is not None:
        words = {"first_words": _first_words(*first), "first_words_at": first[1].position}
    return words, {"created_at": min(times), "last_activity": max(times)}


def _begun(logged: LoggedEvent) -> ConversationRow:
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
    """The first words of a conversation go with their message."""
    event = left.event
    if not isinstance(event, MessageAppended):
        return ()
    words: dict[str, Cell] = {"thread_id": left.thread_id, "first_words_at": event.position}
    return (Changed(words, {"first_words": None}),)


def _is_own(event: MessageAppended) -> bool:
    """Whether it says what a conversation can be named by: who lists those of an owner sees it."""
    return event.owner is None and is_of_user(event.message)


def is_of_user(message: Message) -> bool:
    """Whether a message is a user's own, as far as anybody said. Erasing its words changes nothing of that."""
    own = message.role == "user" and message.author in (None, "person")
    return own and not gist(message).results


def _first_words(logged: LoggedEvent, event: MessageAppended) -> str | None:
    if logged.erased:
        return None
    text = said(event.message)
    folded = " ".join((user_words(text) or text)[: 4 * FIRST_WORDS].split())
    return beginning(folded, FIRST_WORDS, trim=True)
