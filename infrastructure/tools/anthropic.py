"""The tools as objects of the ``anthropic`` SDK, for its tool runner."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refold.application.agent_tools.toolbox import Toolbox
    from refold.application.api.async_memory import AsyncToolbox


class AnthropicTools:
    """Makes tools for ``client.beta.messages.tool_runner``; the SDK is imported when first asked."""

    def blocking(self, toolbox: "Toolbox") -> list[Any]:
        """For ``anthropic.Anthropic``."""
        from .anthropic_runnable import BlockingTool

        return [BlockingTool(toolbox, tool) for tool in toolbox]

    def awaited(self, toolbox: "AsyncToolbox") -> list[Any]:
        """For ``anthropic.AsyncAnthropic``."""
        from .anthropic_runnable import AwaitedTool

        return [AwaitedTool(toolbox, tool) for tool in toolbox]
