"""The set of tools for a reach, with their descriptions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast, overload

from refold.application.conversation.owner_scope import OwnerScope
from refold.application.ports.sdk_tools import ToolOutput
from refold.application.runtime.core import Core
from refold.application.runtime.opening_process import Uncopied
from refold.domain.errors import InvalidMessage
from refold.domain.value import is_object

from .answers import quote_name
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
from .query_history import DESCRIPTION as QUERY
from .query_history import LIST_DESCRIPTION as LIST
from .query_history import list_conversations, query_history
from .read_messages import EXPAND_DESCRIPTION as EXPAND
from .read_messages import READ_DESCRIPTION as READ
from .read_messages import expand_summary, read_offloaded
from .recall_memory import DESCRIPTION as RECALL
from .recall_memory import recall_memory
from .tool_names import (
    EXPAND_SUMMARY,
    LIST_CONVERSATIONS,
    QUERY_HISTORY,
    READ_OFFLOADED,
    RECALL_MEMORY,
)
from .tool_scope import EditRights, Reach, Tool

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
    """Return the tools of a reach: those that read, then those that edit."""
    reading = _reading_tools(reach)
    if reach.edits is None:
        return reading
    from .edit_tools import edit_tools

    return (*reading, *edit_tools(reach, reach.edits))


def _reading_tools(reach: Reach) -> tuple[Tool, ...]:
    """Return the tools that read; a reach beyond one conversation has an additional tool that lists them."""
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


class Toolbox(Uncopied):
    """Tools with which a model searches its memory, and edits it if that was asked for.

    Iterating yields every tool; ``toolbox["recall_memory"]`` returns one by name.
    """

    def __init__(
        self,
        core: Core,
        thread_id: str | None,
        scope: OwnerScope,
        *,
        sees: bool = True,
        edits: EditRights | None = None,
    ) -> None:
        self.sdk = core.sdk_tools
        self._core = core
        self.reach = Reach(core, thread_id, scope, sees, edits)
        self._made = tools_of(self.reach)
        self._named = {tool.name: tool for tool in self._made}

    @property
    def _tools(self) -> tuple[Tool, ...]:
        self._core.process.check()
        return self._made

    @property
    def _by_name(self) -> Mapping[str, Tool]:
        self._core.process.check()
        return self._named

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """Definitions for ``tools=`` of ``messages.create``; ``conversation.context`` also takes the
        toolbox.
        """
        return [tool.definition for tool in self._tools]

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which models call the tools."""
        return tuple(self._by_name)

    def call(self, name: object, input: object) -> ToolOutput:
        """Answer a call with any JSON input; errors are returned as answers too."""
        tool = self._by_name.get(name) if isinstance(name, str) else None
        if tool is None:
            tool_name = quote_name(name, 80) if isinstance(name, str) else "without a name"
            text = f"there is no tool {tool_name} here; there are: {', '.join(self._by_name)}."
            return ToolOutput(text=text, is_error=True)
        return tool.call(input)

    def result_for(self, call: object) -> dict[str, Any]:
        """Return the ``tool_result`` block for a ``tool_use`` block, given as a mapping or an SDK object.

        A call of an unknown tool gets an error result. If you have tools of your own, check ``block.name in
        tools`` first, or use ``results_for``.

        Raises:
            InvalidMessage: the block has no id.
        """
        return result_block(call, self.call(_field(call, "name"), _field(call, "input")))

    def results_for(self, reply: object) -> list[dict[str, Any]]:
        """Return the ``tool_result`` blocks for the calls of these tools in a reply.

        The reply is a message of the SDK, a mapping, or a list of blocks. Calls of other tools are skipped;
        for a call of an unknown tool, ``result_for`` returns an error result.

        Raises:
            InvalidMessage: a call has no id.
        """
        return [self.result_for(call) for call in calls_in(reply) if _field(call, "name") in self]

    def for_anthropic(self) -> list[Any]:
        """Return the tools as objects of the ``anthropic`` SDK, for ``client.beta.messages.tool_runner``."""
        self._core.process.check()
        return self.sdk.blocking(self)

    def __contains__(self, item: object) -> bool:
        """Return whether the toolbox has a tool, given as an object or by name."""
        return item in self._by_name if isinstance(item, str) else item in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    @overload
    def __getitem__(self, index: int | str) -> Tool: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Tool, ...]: ...
    def __getitem__(self, index: int | str | slice) -> Tool | tuple[Tool, ...]:
        return self._by_name[index] if isinstance(index, str) else self._tools[index]


def calls_in(reply: object) -> Iterator[object]:
    """Yield the ``tool_use`` blocks of a reply, a message or a list of blocks."""
    content: object = reply
    if not isinstance(reply, (list, tuple)):
        content = _field(reply, "content")
    blocks = cast("Sequence[object]", content) if isinstance(content, (list, tuple)) else ()
    return (block for block in blocks if _field(block, "type") == "tool_use")


def result_block(call: object, output: ToolOutput) -> dict[str, Any]:
    """Return the ``tool_result`` block with this output.

    Raises:
        InvalidMessage: the call has no id.
    """
    call_id = _field(call, "id")
    if not isinstance(call_id, str) or not call_id:
        raise InvalidMessage(
            "tool_use.id", "is missing: give a tool_use block as the model sent it"
        )
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": output.text}
    return {**block, "is_error": True} if output.is_error else block


def _field(block: object, name: str) -> object:
    if is_object(block):
        return block.get(name)
    return getattr(block, name, None)
