"""The tools ``expand_summary`` and ``read_offloaded``, which read the originals of shortened content."""

from contextlib import suppress

from refold.application.api.results import StoredMessage
from refold.application.conversation.addresses import address_of
from refold.application.conversation.stream_places import read_back
from refold.application.history.expand import (
    ExpandedSummary,
    active_summary,
    expand,
    expand_anywhere,
)
from refold.application.recall.recall_query import LEAST_TOKENS
from refold.domain.errors import UnknownSummary
from refold.domain.text_cuts import longest_beginning

from .answers import (
    EMPTY,
    ERASED,
    GUIDANCE,
    Answer,
    advise_paging,
    answer,
    first_with_items,
    format_time,
    plural,
    quote,
    quote_name,
    record_text,
    rooms,
)
from .arguments import ExpandAnywhere, ExpandArguments, ReadArguments
from .tool_names import EXPAND_SUMMARY, QUERY_HISTORY, RECALL_MEMORY
from .tool_scope import Reach, ToolRefusal

EXPAND_DESCRIPTION = f"""\
Open a summary: read the original messages that it stands for, oldest first, page by page. Call it when a \
[Conversation Summary] is too short or unclear on something that you must get exactly right, and you want to \
follow how it came about. Without summary_id it opens the one that stands for the earlier messages now.
Comes back: which positions it covers, the original messages word for word, and the start to ask for the \
next page. To look for one thing {RECALL_MEMORY} is quicker."""
EXPANDED_FRAME = 250
"""Tokens reserved for text around the records."""
MOST_PARTS = 12


def expand_summary(reach: Reach, arguments: ExpandArguments) -> str:
    """Return the messages that a summary covers, as text for the model.

    Raises:
        ToolRefusal: the conversation is out of reach, or has no summary.
        UnknownSummary: no summary has this id.
        LogError: the log cannot be read.
    """
    return first_with_items(
        _answer(reach, arguments, _expand(reach, arguments, room))
        for room in rooms(reach.room, EXPANDED_FRAME)
    )


def _expand(reach: Reach, arguments: ExpandArguments, room: int) -> ExpandedSummary:
    wanted = arguments.thread if isinstance(arguments, ExpandAnywhere) else None
    summary_id, start = arguments.summary_id, arguments.start
    if summary_id is not None and wanted is None and (reach.home is None or reach.everywhere):
        # The home conversation first: a fork has summaries with the ids of its source.
        if reach.home is not None:
            with suppress(UnknownSummary):
                return expand(reach.core, reach.home, summary_id, start, room)
        within = {row.thread_id for row in reach.conversations()}
        found = expand_anywhere(reach.core, summary_id, start, room, within=within)
    else:
        thread = reach.thread(wanted)
        found = expand(reach.core, thread, summary_id or _active(reach, thread), start, room)
    if reach.scope.hides(found.thread_id, found.start, found.stop):
        raise ToolRefusal(
            f"summary {quote_name(found.summary_id, 80)} was made of messages that are out of reach as well."
        )
    return found


def _active(reach: Reach, thread: str) -> str:
    active = active_summary(reach.core, thread)
    if active is None:
        raise ToolRefusal(
            "no summary is active in this conversation: every message is in the context, or can be read "
            f"with {QUERY_HISTORY}."
        )
    return active.summary_id


def _answer(reach: Reach, arguments: ExpandArguments, found: ExpandedSummary) -> Answer:
    home = found.thread_id == reach.home
    seen = reach.sees_context_of(found.thread_id)
    items = [record_text(record, seen=seen) for record in found.page.records]

    def tail(shown: int) -> str:
        records = found.page.records
        if records and not shown:
            return advise_paging(records[0])
        following = records[shown].position if shown < len(records) else found.page.next
        if following is None:
            return "These are all of them." if items else "It covers no message from there on."
        thread = "" if home else f", thread {quote_name(found.thread_id, 500)}"
        summary = f"summary_id {quote_name(found.summary_id, 80)}{thread}"
        return f"Next: {EXPAND_SUMMARY} with start {following}, {summary} for what follows."

    in_sight = seen and found.state == "active"
    head = _head(found, home=home, in_sight=in_sight)
    if not arguments.start and not in_sight:
        head += f"\nIts text:\n{_text(reach, found)}"
    return answer(head, items, tail, reach.room, reach.count)


def _head(found: ExpandedSummary, *, home: bool, in_sight: bool) -> str:
    whose = "" if home else f" of conversation {quote_name(found.thread_id, 120)}"
    shown = " and in your context" if in_sight else ""
    but = f", without {plural(len(found.exclusions), 'message')}" if found.exclusions else ""
    return (
        f"Summary {quote_name(found.summary_id, 80)}{whose}, {found.state}{shown}, made "
        f"{format_time(found.made_at)}. It stands for {plural(found.count, 'message')}, positions {found.start} "
        f"to {found.stop - 1}{but}.{_parts(found)} {GUIDANCE}"
    )


def _parts(found: ExpandedSummary) -> str:
    """Describe where the parts of the summary begin, as starts for reading."""
    if len(found.leaves) < 2:
        return ""
    starts = [str(leaf.start) for leaf in found.leaves[:MOST_PARTS]]
    more = " …" if len(found.leaves) > MOST_PARTS else ""
    return f" It was made in parts that begin at {', '.join(starts)}{more}."


def _text(reach: Reach, found: ExpandedSummary) -> str:
    if found.withdrawn:
        return ERASED
    shown = longest_beginning(found.text, max(LEAST_TOKENS, reach.room // 3), reach.count)
    cut = "" if len(shown) == len(found.text) else "\n(the beginning of it)"
    return f"{quote(shown)}{cut}" if shown else EMPTY


READ_DESCRIPTION = f"""\
Read one earlier message whole, word for word: the tool result behind a preview, a text that was cut short, a \
message that an answer names. Call it when you see an address, refold://THREAD/POSITION, and need what is not \
shown: the exact lines of a file that was read, all of a command's output.
Comes back: its position, role, time and text; of a long one a piece, and the start to ask for the next. No \
images, no thinking. It shows what was recorded then: a file may have changed since. It cannot search: \
{RECALL_MEMORY} does, and {QUERY_HISTORY} for an exact text."""

FRAME = 80
"""Maximum tokens reserved around the text, without its address line."""


def read_offloaded(reach: Reach, arguments: ReadArguments) -> str:
    """Return a message, or a part of it, as text for the model.

    Raises:
        ToolRefusal: the address is invalid or out of reach, or the message has no such character.
        UnknownMessage: there is no message at this position.
        LogError: the log cannot be read.
    """
    thread = reach.thread_of(arguments.address)
    message = read_back(reach.core, thread, arguments.address.strip())
    if message.position in reach.hidden(thread):
        raise ToolRefusal(f"message {message.position} of that conversation is out of reach.")
    address = address_of(thread, message.position)
    whose = "" if thread == reach.home else f" of conversation {quote_name(thread, 120)}"
    head = f"Message {message.position}{whose}, {message.message.role}, {format_time(message.at)}, {address}"
    if message.erased:
        return f"{head}\n{ERASED}"
    return _piece(reach, head, message, arguments.start)


def _piece(reach: Reach, head: str, message: StoredMessage, start: int) -> str:
    text = message.text
    if start and start >= len(text):
        raise ToolRefusal(
            f"the message has {len(text):,} characters: start must be less than that, 0 for its beginning."
        )
    if not text:
        return f"{head}\n{EMPTY}"
    room = max(20, reach.room - reach.count(head) - FRAME)
    piece = longest_beginning(text[start:], room, reach.count) or text[start : start + 1]
    stop = start + len(piece)
    which = f"characters {start:,} to {stop:,} of {len(text):,}"
    more = f"\n\nNext: start {stop} for what follows." if stop < len(text) else ""
    return f"{head}, {which}. {GUIDANCE}\n{quote(piece)}{more}"
