"""Create tools as objects of the ``anthropic`` SDK, for its tool runner."""

from typing import Any

from refold.application.ports.sdk_tools import AwaitableTools, RunnableTools


class AnthropicTools:
    """A factory of tools for ``client.beta.messages.tool_runner``. It imports the SDK on first use."""

    def blocking(self, toolbox: RunnableTools) -> list[Any]:
        """Return tools for ``anthropic.Anthropic``."""
        from .anthropic import BlockingTool

        return [BlockingTool(toolbox, tool) for tool in toolbox]

    def awaited(self, toolbox: AwaitableTools) -> list[Any]:
        """Return tools for ``anthropic.AsyncAnthropic``."""
        from .anthropic import AwaitedTool

        return [AwaitedTool(toolbox, tool) for tool in toolbox]
