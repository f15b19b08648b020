"""Tools for the tool runner of the ``anthropic`` SDK; imported only if the SDK is used."""

from typing import Any, cast

from anthropic.lib.tools import (
    BetaAsyncBuiltinFunctionTool,
    BetaBuiltinFunctionTool,
    BetaFunctionToolResultType,
    ToolError,
)
from anthropic.types.beta import BetaToolParam

from refold.application.ports.sdk_tools import (
    AwaitableTools,
    RunnableTool,
    RunnableTools,
    ToolOutput,
)


class AnthropicTools:
    """A factory of tools for ``client.beta.messages.tool_runner``."""

    def blocking(self, toolbox: RunnableTools) -> list[Any]:
        """Return tools for ``anthropic.Anthropic``."""
        return [BlockingTool(toolbox, tool) for tool in toolbox]

    def awaited(self, toolbox: AwaitableTools) -> list[Any]:
        """Return tools for ``anthropic.AsyncAnthropic``."""
        return [AwaitedTool(toolbox, tool) for tool in toolbox]


class BlockingTool(BetaBuiltinFunctionTool):
    """A tool for the runner of ``anthropic.Anthropic``."""

    def __init__(self, toolbox: RunnableTools, tool: RunnableTool) -> None:
        self._toolbox, self._tool = toolbox, tool

    def to_dict(self) -> BetaToolParam:
        """Return the tool definition that is sent with the request."""
        return _param(self._tool)

    def call(self, input: object) -> BetaFunctionToolResultType:
        """Run the tool and return its answer.

        Raises:
            ToolError: the call failed; the runner returns it to the model as a result with
            ``is_error``.
        """
        return _result(self._toolbox.call(self._tool.name, input))


class AwaitedTool(BetaAsyncBuiltinFunctionTool):
    """A tool for the runner of ``anthropic.AsyncAnthropic``."""

    def __init__(self, toolbox: AwaitableTools, tool: RunnableTool) -> None:
        self._toolbox, self._tool = toolbox, tool

    def to_dict(self) -> BetaToolParam:
        """Return the tool definition that is sent with the request."""
        return _param(self._tool)

    async def call(self, input: object) -> BetaFunctionToolResultType:
        """Run the tool and return its answer; raises like ``BlockingTool.call``."""
        return _result(await self._toolbox.call(self._tool.name, input))


def _param(tool: RunnableTool) -> BetaToolParam:
    return cast("BetaToolParam", tool.definition)


def _result(output: ToolOutput) -> str:
    if output.is_error:
        raise ToolError(output.text)
    return output.text
