"""The tool ``query_history``: original messages by position, id or exact text."""

from refold.application.conversation.addresses import SCHEME
from refold.application.history.query import HistoryPage, HistoryQuery
from refold.application.history.query import query_history as history_page

from .answers import (
    GUIDANCE,
    Answer,
    answer,
    first_with_items,
    named,
    one_line,
    plural,
    record_text,
    rooms,
    too_large,
)
from .arguments import QueryAnywhere, QueryArguments
from .names import READ_OFFLOADED, RECALL_MEMORY
from .tool_scope import Reach, ToolRefusal

DESCRIPTION = f"""\
Read original messages of the conversation in their order: those at positions start up to but not including \
stop, those with given ids or addresses, or those that contain an exact text; conditions hold together. Call \
it when you know where to look: around a passage that {RECALL_MEMORY} found, what came after some message, \
every place where a path or an error message occurs. Ask for a few messages at a time.
Comes back: each message word for word with position, role, time, address and id, and the start to ask for \
the next page. Long messages are cut: {READ_OFFLOADED} reads them whole. It compares letters, not meaning: to \
find what was said about something use {RECALL_MEMORY}."""
FRAME = 200
"""Tokens that stand around the texts."""


def query_history(reach: Reach, arguments: QueryArguments) -> str:
    """The answer to a call.

    Raises:
        ToolRefusal: the conversation is out of reach, or an address is none.
        LogError: the log cannot be read.
    """
    start, stop = arguments.start or 0, arguments.stop
    if stop is not None and stop <= start:
        raise ToolRefusal(
            f"stop must be greater than start: start {start} and stop {start + 10} give ten messages."
        )
    thread = _thread(reach, arguments)
    query = HistoryQuery(
        ids=tuple(arguments.ids),
        start=arguments.start,
        stop=arguments.stop,
        text=arguments.text or None,
        limit=arguments.limit,
        recall=RECALL_MEMORY,
        hidden=reach.hidden(thread),
    )
    return first_with_items(
        _told(reach, history_page(reach.core, thread, query._replace(max_tokens=room)))
        for room in rooms(reach.room, FRAME)
    )


def _thread(reach: Reach, arguments: QueryArguments) -> str:
    """The conversation to read: the one that is named, else the one that all addresses are of."""
    wanted = arguments.thread if isinstance(arguments, QueryAnywhere) else None
    addresses = [one.strip() for one in arguments.ids if one.strip().startswith(SCHEME)]
    threads = dict.fromkeys(reach.thread_of(address) for address in addresses)
    if wanted is not None or not threads:
        threads[reach.thread(wanted)] = None
    if len(threads) > 1:
        raise ToolRefusal("these are addresses of several conversations: ask for one at a time.")
    return next(iter(threads))


def _told(reach: Reach, page: HistoryPage) -> Answer:
    home = page.thread_id == reach.home
    whose = "" if home else f" of conversation {named(page.thread_id, 120)}"
    # That a message is cut stands with the message itself.
    told = page.notice if page.missing or not page.records else None
    notice = f" Note: {one_line(told)}." if told else ""
    seen = reach.sees_context_of(page.thread_id)
    items = [record_text(record, seen=seen) for record in page.records]

    def tail(shown: int) -> str:
        if items and not shown:
            return too_large(page.records[0])
        following = page.records[shown].position if shown < len(page.records) else page.next
        return "" if following is None else f"Next: start {following} for what follows."

    counted = plural(len(items), "message") if items else "No message"
    guidance = f" {GUIDANCE}" if items else ""
    head = f"{counted}{whose}, which has {page.length:,}.{notice}{guidance}"
    if home:
        head = f"{counted} of the {page.length:,} in this conversation.{notice}{guidance}"
    return answer(head, items, tail, reach.room, reach.count)
