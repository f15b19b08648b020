"""Which tools there are for a reach, with their words for it."""

from .arguments import (
    ExpandAnywhere,
    ExpandArguments,
    ListArguments,
    QueryAnywhere,
    QueryArguments,
    ReadArguments,
    RecallAnywhere,
    RecallArguments,
    RecallOfAll,
)
from .expand_summary import DESCRIPTION as EXPAND
from .expand_summary import expand_summary
from .list_conversations import DESCRIPTION as LIST
from .list_conversations import list_conversations
from .names import EXPAND_SUMMARY, LIST_CONVERSATIONS, QUERY_HISTORY, READ_OFFLOADED, RECALL_MEMORY
from .query_history import DESCRIPTION as QUERY
from .query_history import query_history
from .reach import Reach
from .read_offloaded import DESCRIPTION as READ
from .read_offloaded import read_offloaded
from .recall_memory import DESCRIPTION as RECALL
from .recall_memory import recall_memory
from .tool import Tool

_ANYWHERE = (
    "\nIt asks this conversation, or the one whose id is given as thread. Answers name the conversation "
    "that each message is of."
)
_NOWHERE = (
    f"\nGive the id of the conversation as thread; {LIST_CONVERSATIONS} shows which there are."
)
_SEARCH_ALL = "\nWithout thread it searches all conversations; with the id of one, that one alone."
_SEEN = "\nPassages that your context has in full already are left out and counted."
_ANY_ADDRESS = "\nAn address names its conversation, so none has to be given beside it."


def tools_of(reach: Reach) -> tuple[Tool, ...]:
    """The tools of one conversation; of all of them, with one more that lists them."""
    recall_text = RECALL + _SEEN if reach.sees and reach.home is not None else RECALL
    if not reach.everywhere:
        return (
            Tool(RECALL_MEMORY, recall_text, RecallArguments, recall_memory, reach),
            Tool(QUERY_HISTORY, QUERY, QueryArguments, query_history, reach),
            Tool(EXPAND_SUMMARY, EXPAND, ExpandArguments, expand_summary, reach),
            Tool(READ_OFFLOADED, READ, ReadArguments, read_offloaded, reach),
        )
    nowhere = reach.home is None
    asks = _NOWHERE if nowhere else _ANYWHERE
    searches = _SEARCH_ALL if nowhere else _ANYWHERE
    recalled = RecallOfAll if nowhere else RecallAnywhere
    return (
        Tool(RECALL_MEMORY, recall_text + searches, recalled, recall_memory, reach),
        Tool(QUERY_HISTORY, QUERY + asks, QueryAnywhere, query_history, reach),
        Tool(EXPAND_SUMMARY, EXPAND + asks, ExpandAnywhere, expand_summary, reach),
        Tool(READ_OFFLOADED, READ + _ANY_ADDRESS, ReadArguments, read_offloaded, reach),
        Tool(LIST_CONVERSATIONS, LIST, ListArguments, list_conversations, reach),
    )
