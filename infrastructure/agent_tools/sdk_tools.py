"""The tools as objects of the ``anthropic`` SDK, for its tool runner."""

from typing import Any

from refold.application.ports.sdk_tools import AwaitableTools, RunnableTools


class AnthropicTools:
    """Makes tools for ``client.beta.messages.tool_runner``; the SDK is imported when first asked."""

    def blocking(self, toolbox: RunnableTools) -> list[Any]:
        """For ``anthropic.Anthropic``."""
        from .anthropic import BlockingTool

        return [BlockingTool(toolbox, tool) for tool in toolbox]

    def awaited(self, toolbox: AwaitableTools) -> list[Any]:
        """For ``anthropic.AsyncAnthropic``."""
        from .anthropic import AwaitedTool

        return [AwaitedTool(toolbox, tool) for tool in toolbox]
