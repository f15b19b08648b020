"""The port of a vendor SDK that runs tools."""

from collections.abc import Coroutine, Iterator
from typing import Any, Protocol

from refold.domain.errors import RefoldError
from refold.domain.value import Value


class ToolOutput(Value, frozen=True):
    """The result of a tool call: text for a model."""

    text: str
    is_error: bool = False
    """True if the call failed; ``text`` then says what to do instead."""


class RunnableTool(Protocol):
    """A tool with its name and its definition for the Messages API."""

    @property
    def name(self) -> str:
        """Name by which models call it."""
        ...

    @property
    def definition(self) -> dict[str, Any]:
        """Definition as ``tools=`` of the Messages API takes it."""
        ...


class RunnableTools(Protocol):
    """Tools that are called in the current thread."""

    def __iter__(self) -> Iterator[RunnableTool]: ...

    def call(self, name: object, input: object) -> ToolOutput:
        """Call a tool; invalid input returns an output with ``is_error``."""
        ...


class AwaitableTools(Protocol):
    """Tools whose calls are awaited."""

    def __iter__(self) -> Iterator[RunnableTool]: ...

    def call(self, name: object, input: object) -> Coroutine[Any, Any, ToolOutput]:
        """Call a tool; invalid input returns an output with ``is_error``."""
        ...


class SDKTools(Protocol):
    """A factory of objects for the tool runner of an SDK."""

    def blocking(self, toolbox: RunnableTools) -> list[Any]:
        """Return one object for each tool, for a blocking client."""
        ...

    def awaited(self, toolbox: AwaitableTools) -> list[Any]:
        """Return one object for each tool, for an asyncio client."""
        ...


class _NoSDK:
    """A placeholder for a core without an SDK; every call is refused."""

    def blocking(self, toolbox: RunnableTools) -> list[Any]:
        """Raise because no SDK is available."""
        raise RefoldError(_ABSENT)

    def awaited(self, toolbox: AwaitableTools) -> list[Any]:
        """Raise because no SDK is available."""
        raise RefoldError(_ABSENT)


_ABSENT = (
    "no SDK is wired into this memory: use refold.open, or call the tools by toolbox.result_for"
)
NO_SDK: SDKTools = _NoSDK()
