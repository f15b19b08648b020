"""The port of a vendor's SDK that runs tools by itself."""

from typing import TYPE_CHECKING, Any, Protocol

from refold.domain.errors import RefoldError

if TYPE_CHECKING:
    from refold.application.agent_tools.toolbox import Toolbox
    from refold.application.api.async_memory import AsyncToolbox


class SDKTools(Protocol):
    """Makes of each tool an object that the SDK's tool runner takes."""

    def blocking(self, toolbox: "Toolbox") -> list[Any]:
        """One for each tool, for a client that blocks."""
        ...

    def awaited(self, toolbox: "AsyncToolbox") -> list[Any]:
        """One for each tool, for a client of asyncio."""
        ...


class _NoSDK:
    """Where no SDK is wired in: a core that was put together by hand."""

    def blocking(self, toolbox: "Toolbox") -> list[Any]:
        """Nobody would run them."""
        raise RefoldError(_ABSENT)

    def awaited(self, toolbox: "AsyncToolbox") -> list[Any]:
        """Nobody would run them."""
        raise RefoldError(_ABSENT)


_ABSENT = (
    "no SDK is wired into this memory: use refold.open, or call the tools by toolbox.result_for"
)
NO_SDK: SDKTools = _NoSDK()
