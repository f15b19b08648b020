"""The port of a vendor's SDK that runs tools by itself."""

from collections.abc import Coroutine, Iterator
from typing import Any, Protocol

from refold.domain.errors import RefoldError
from refold.domain.value import Value


class ToolOutput(Value, frozen=True):
    """The result of a call: text for a model."""

    text: str
    is_error: bool = False
    """Whether the call could not be answered; ``text`` says what to do instead."""


class RunnableTool(Protocol):
    """A tool by its name and its definition for the Messages API."""

    @property
    def name(self) -> str:
        """Name by which models call it."""
        ...

    @property
    def definition(self) -> dict[str, Any]:
        """Definition as ``tools=`` of the Messages API takes it."""
        ...


class RunnableTools(Protocol):
    """Tools that are called in this thread."""

    def __iter__(self) -> Iterator[RunnableTool]: ...

    def call(self, name: object, input: object) -> ToolOutput:
        """Call a tool; wrong input gives an output with ``is_error``."""
        ...


class AwaitableTools(Protocol):
    """Tools whose calls are awaited."""

    def __iter__(self) -> Iterator[RunnableTool]: ...

    def call(self, name: object, input: object) -> Coroutine[Any, Any, ToolOutput]:
        """Call a tool; wrong input gives an output with ``is_error``."""
        ...


class SDKTools(Protocol):
    """Makes objects that the tool runner of an SDK takes."""

    def blocking(self, toolbox: RunnableTools) -> list[Any]:
        """Return one object for each tool, for a client that blocks."""
        ...

    def awaited(self, toolbox: AwaitableTools) -> list[Any]:
        """Return one object for each tool, for a client of asyncio."""
        ...


class _NoSDK:
    """Refuses: the core was put together without an SDK."""

    def blocking(self, toolbox: RunnableTools) -> list[Any]:
        """Refuse."""
        raise RefoldError(_ABSENT)

    def awaited(self, toolbox: AwaitableTools) -> list[Any]:
        """Refuse."""
        raise RefoldError(_ABSENT)


_ABSENT = (
    "no SDK is wired into this memory: use refold.open, or call the tools by toolbox.result_for"
)
NO_SDK: SDKTools = _NoSDK()
