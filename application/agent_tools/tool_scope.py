"""A tool for agents, and the scope of conversations that it may read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, get_args

from pydantic import ValidationError

from refold.application.conversation.addresses import parse_address
from refold.application.conversation.owner_scope import OwnerScope
from refold.application.conversation.parsing import read_thread_id
from refold.application.errors import InvalidAddress, LogDamaged
from refold.application.ports.read_models import Beginning, ConversationRow
from refold.application.ports.recall_index import Visible
from refold.application.ports.sdk_tools import ToolOutput
from refold.application.runtime.core import Core
from refold.domain.editing import read_name
from refold.domain.errors import InvalidSetting, InvalidThreadId, RefoldError

from .answers import one_line, quote_name
from .arguments import Arguments, read_arguments, refusal, schema_of
from .tool_names import LIST_CONVERSATIONS


class ToolRefusal(Exception):
    """A call that cannot be answered; the message says what the model can do instead."""


T = TypeVar("T")

EditMode = Literal["propose", "allow"]
"""``propose``: a call is a proposal that the program decides. ``allow``: it is carried out at once."""


class Finish(Protocol):
    """A function that runs another one in a thread without an event loop, and returns its result."""

    def __call__(self, function: Callable[[], T], /) -> T:
        """Run a function that writes."""
        ...


class EditRights(NamedTuple):
    """The rights of a model to edit its own conversation."""

    mode: EditMode
    author: str
    """Name of the agent, recorded with each edit."""
    finish: Finish


def edit_rights(mode: EditMode | None, author: str, finish: Finish) -> EditRights | None:
    """Return the rights to edit in a mode, or None without one.

    Raises:
        InvalidSetting: there is no such mode, or the author is blank.
    """
    if mode is None:
        return None
    if mode not in get_args(EditMode):
        raise InvalidSetting(
            f"edits={str(mode)[:80]!r} is invalid: it must be one of {', '.join(get_args(EditMode))}, or left out",
            setting="edits",
            value=mode,
        )
    return EditRights(mode, read_name(author, "author"), finish)


@dataclass(frozen=True, slots=True)
class Reach:
    """The conversations that a tool may read, and the default one."""

    core: Core
    home: str | None
    """Conversation that the tools were made for, or None for all."""
    scope: OwnerScope
    """Scope of the tools."""
    sees: bool = True
    """True if the calling model sees the context of ``home``, as the agent of that conversation does."""
    edits: EditRights | None = None
    """Edits that the tools may make in ``home``, or None for tools that only read."""

    @property
    def everywhere(self) -> bool:
        """True if other conversations can be read as well."""
        return self.scope.is_wide

    @property
    def room(self) -> int:
        """Maximum tokens of an answer."""
        return self.core.settings.recall_tokens

    @property
    def count(self) -> Callable[[str], int]:
        """Function that counts the tokens of a text."""
        return self.core.counter.count_text

    def sees_context_of(self, thread: str) -> bool:
        """Return whether the calling model sees the context of this conversation."""
        return self.sees and thread == self.home

    def describe_error(self, error: Exception) -> str:
        """Return the text of an error for the model, without details of conversations out of reach."""
        damage = error.thread_id if isinstance(error, LogDamaged) else self.home
        if damage != self.home and not self.everywhere:
            return "another part of the log is damaged. Run `refold verify` to see what; go on without it."
        return str(error)

    def thread(self, thread: str | None = None) -> str:
        """Return the id of the conversation to read.

        Raises:
            ToolRefusal: no conversation is named, it does not exist, or it is out of reach.
        """
        wanted = self.home if thread is None else thread
        if wanted is None:
            raise ToolRefusal(
                "say which conversation: give its id as thread. "
                f"{LIST_CONVERSATIONS} shows those there are, and every answer names its own."
            )
        if wanted != self.home and not self.everywhere:
            raise ToolRefusal(
                f"conversation {quote_name(wanted, 80)} is another one: these tools reach this one alone."
            )
        return self._existing(wanted)

    def conversations(self, prefix: str = "") -> Sequence[ConversationRow]:
        """Return the conversations within reach whose ids begin with a text, latest activity first."""
        self.scope.check_owner()
        views, visible = self.core.views, self.scope.visible()
        if not prefix:
            rows = views.conversations()
        else:
            # Those with the same time stay in the order of their ids.
            found = views.iter_conversations(prefix)
            rows = sorted(found, key=lambda row: row.last_activity, reverse=True)
        if visible is None:
            return rows
        return [row for row in rows if visible.lets_conversation(row.thread_id)]

    def conversations_page(self, start: int, count: int) -> tuple[Sequence[ConversationRow], int]:
        """Return a part of the same list, and how long the list is."""
        self.scope.check_owner()
        is_whole, owner = self._whole_list()
        if not is_whole:
            rows = self.conversations()
            return rows[start : start + count], len(rows)
        page = self.core.views.conversations_page(start, count, owner, "activity")
        return page.rows, page.count

    def conversations_before(
        self, before: Beginning | None, count: int
    ) -> Sequence[ConversationRow]:
        """Return the next ``count`` conversations within reach, the latest beginning first.

        Unlike the list by activity, this one has no gaps and nothing twice while agents work.
        """
        self.scope.check_owner()
        is_whole, owner = self._whole_list()
        if is_whole:
            return self.core.views.conversations_before(before, count, owner)
        rows = sorted(self.conversations(), key=lambda row: row.thread_id)
        rows.sort(key=lambda row: row.created_at, reverse=True)
        if before is not None:
            rows = [row for row in rows if _begins_before(row, before)]
        return rows[:count]

    def _whole_list(self) -> tuple[bool, str | None]:
        """Return whether the conversations within reach are all, or all of one owner, and that owner."""
        visible = self.scope.visible()
        if visible is None or visible == Visible(None, frozenset()):
            return True, None  # All are within reach: none belongs to an owner.
        if visible.owner and visible.home is None:
            return True, visible.owner
        return False, None

    def conversation(self, thread_id: str) -> ConversationRow | None:
        """Return a conversation within reach, or None. The others are not listed."""
        self.scope.check_owner()
        row, visible = self.core.views.conversation(thread_id), self.scope.visible()
        if row is None or row.erased:
            return None
        return row if visible is None or visible.lets_conversation(thread_id) else None

    def hidden(self, thread: str) -> frozenset[int]:
        """Return the positions of a conversation's messages that are out of reach."""
        return self.scope.hidden(thread)

    def thread_of(self, address: str) -> str:
        """Return the conversation of an address; the default one for a bare position.

        Raises:
            ToolRefusal: the address is invalid, or its conversation is out of reach.
        """
        text = address.strip()
        if text.isdecimal() and text.isascii():
            return self.thread()
        try:
            parsed = parse_address(text)
        except InvalidAddress as error:
            raise ToolRefusal(
                f"{quote_name(text, 80)} is no address: copy one from a preview or an answer, "
                "refold://THREAD/POSITION, or give the position alone."
            ) from error
        if self.home is not None and parsed.names(self.home):
            return self.thread()
        if not self.everywhere:
            raise ToolRefusal(
                f"{quote_name(text, 120)} is a message of another conversation: these tools reach this one "
                "alone. Give an address of this conversation, or a position in it."
            )
        known = (parsed.thread_id, parsed.as_written)
        thread = next(filter(self._is_within, known), known[0])
        return self._existing(thread)

    def _existing(self, thread: str) -> str:
        try:
            usable = read_thread_id(thread)
        except InvalidThreadId as error:
            raise ToolRefusal(
                f"{quote_name(thread, 80)} cannot be the id of a conversation."
            ) from error
        if thread != self.home and not self._is_within(usable):
            raise ToolRefusal(
                f"there is no conversation {quote_name(thread, 80)}; {LIST_CONVERSATIONS} or an answer of "
                "recall names those there are."
            )
        return usable

    def _is_within(self, thread: str) -> bool:
        """Return whether a conversation exists and is within reach. A caller cannot distinguish the two
        failures.
        """
        state = self.core.log.load(thread).state
        # An erased conversation has no owner any more, so it would seem to belong to everybody.
        return bool(state.version) and not state.erased and self.scope.reaches(thread)


def _begins_before(row: ConversationRow, before: Beginning) -> bool:
    if row.created_at == before.at:
        return row.thread_id > before.thread_id
    return row.created_at < before.at


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. Calling it with keyword arguments returns text, also for errors."""

    name: str
    description: str
    """Description for the model: when to use it, its result, its limits."""
    arguments: type[Arguments]
    answer: Callable[[Reach, Any], str]
    reach: Reach

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON schema of the tool's arguments."""
        return schema_of(self.arguments)

    @property
    def definition(self) -> dict[str, Any]:
        """Definition for ``tools=`` of the Messages API."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
        }

    def call(self, given: object) -> ToolOutput:
        """Answer a call with any JSON value; errors are returned as answers too.

        Raises:
            OpenedBeforeFork: this process was forked from the one that opened the memory.
        """
        self.reach.core.process.check()
        try:
            arguments = read_arguments(self.arguments, given)
        except ValidationError as error:
            return ToolOutput(text=refusal(self.name, self.arguments, error), is_error=True)
        try:
            self.reach.scope.check_owner()
            return ToolOutput(text=self.answer(self.reach, arguments))
        except (ToolRefusal, RefoldError) as error:
            return ToolOutput(
                text=f"{self.name}: {one_line(self.reach.describe_error(error), 1_000)}",
                is_error=True,
            )
        except OSError as error:
            problem = one_line(error.strerror or str(error))
            text = f"{self.name}: the memory cannot be read now ({problem}); go on without it."
            return ToolOutput(text=text, is_error=True)

    def __call__(self, **arguments: Any) -> str:
        """Call the tool and return the text of the answer."""
        return self.call(arguments).text
