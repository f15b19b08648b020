"""One tool as the ``anthropic`` SDK's tool runner calls it; imported with the SDK only."""

from typing import cast

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


class BlockingTool(BetaBuiltinFunctionTool):
    """For the runner of ``anthropic.Anthropic``."""

    def __init__(self, toolbox: RunnableTools, tool: RunnableTool) -> None:
        self._toolbox, self._tool = toolbox, tool

    def to_dict(self) -> BetaToolParam:
        """The definition that is sent with the request."""
        return _param(self._tool)

    def call(self, input: object) -> BetaFunctionToolResultType:
        """The answer to a call.

        Raises:
            ToolError: the runner makes a result of it that says so (``is_error``).
        """
        return _result(self._toolbox.call(self._tool.name, input))


class AwaitedTool(BetaAsyncBuiltinFunctionTool):
    """For the runner of ``anthropic.AsyncAnthropic``."""

    def __init__(self, toolbox: AwaitableTools, tool: RunnableTool) -> None:
        self._toolbox, self._tool = toolbox, tool

    def to_dict(self) -> BetaToolParam:
        """The definition that is sent with the request."""
        return _param(self._tool)

    async def call(self, input: object) -> BetaFunctionToolResultType:
        """See ``BlockingTool.call``."""
        return _result(await self._toolbox.call(self._tool.name, input))


def _param(tool: RunnableTool) -> BetaToolParam:
    return cast("BetaToolParam", tool.definition)


def _result(output: ToolOutput) -> str:
    if output.is_error:
        raise ToolError(output.text)
    return output.text
