"""The list of conversations, with their sizes and times of last use."""

from collections import Counter
from collections.abc import Sequence

from refold.application.ports.conversation_log import LoggedEvent, MessageContent, MessageFields
from refold.application.ports.read_models import ConversationRow
from refold.domain.events import (
    CompactionPerformed,
    ConversationErased,
    ConversationForked,
    ConversationLabelled,
    EventLost,
    MessageErased,
)
from refold.domain.facts.speech import user_words
from refold.domain.messages import said_content
from refold.domain.text_cuts import beginning
from refold.domain.value import build_in_order

from .row_changes import Added, Cell, Change, Changed, listed_time

VERSION = 6
"""Version of the fold; increase it when the fold or the row changes, so that stored rows are rebuilt."""


FIRST_WORDS = 80
"""Number of characters of the first words to keep."""

_Said = tuple[LoggedEvent, MessageFields]
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
        if (message := logged.message) is not None:
            said.append((logged, message))
            continue
        match event := logged.event:
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
    more["tokens"] += sum([message["tokens"] for _, message in said])
    for logged, message in said:
        if message["position"] == 0:
            to |= {"created_at": listed_time(logged, message), "last_activity": ""}
        if (owner := message.get("conversation_owner")) is not None:
            to["owner"] = owner


def _first_words_in(said: Sequence[_Said]) -> dict[str, Cell]:
    for logged, message in said:
        if message["message"]["role"] == "user" and _is_own(message):
            words = _first_words(logged, message)
            return {"first_words": words, "first_words_at": message["position"]}
    return {}


def _times(said: Sequence[_Said]) -> dict[str, str]:
    """Return the earliest and latest times of messages."""
    times = [listed_time(logged, message) for logged, message in said]
    return {"created_at": min(times), "last_activity": max(times)} if times else {}


def _new_row(logged: LoggedEvent) -> ConversationRow:
    return build_in_order(
        ConversationRow,
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
    message = left.message
    if message is None:
        return ()
    words: dict[str, Cell] = {"thread_id": left.thread_id, "first_words_at": message["position"]}
    return (Changed(words, {"first_words": None}),)


def _is_own(message: MessageFields) -> bool:
    """Return whether the message may provide the first words of its conversation.

    A message that has its own owner may not, because the owner of the conversation would see it.
    """
    return message.get("owner") is None and _is_of_user(message["message"])


def _is_of_user(message: MessageContent) -> bool:
    """Return whether a message was written by the user, as far as its author is known.

    Erasing its words does not change the answer.
    """
    if message["role"] != "user" or message.get("author") not in (None, "person"):
        return False
    content = message["content"]
    return isinstance(content, str) or "tool_result" not in [b.get("type") for b in content]


def _first_words(logged: LoggedEvent, message: MessageFields) -> str | None:
    if logged.erased:
        return None
    text = said_content(message["message"]["content"])
    folded = " ".join((user_words(text) or text)[: 4 * FIRST_WORDS].split())
    return beginning(folded, FIRST_WORDS, trim=True)
