"""One tool as the ``anthropic`` SDK's tool runner calls it; imported with the SDK only."""

from typing import cast

from anthropic.lib.tools import (
    BetaAsyncBuiltinFunctionTool,
    BetaBuiltinFunctionTool,
    BetaFunctionToolResultType,
    ToolError,
)
from anthropic.types.beta import BetaToolParam

from refold.application.agent_tools.tool import Tool, ToolOutput
from refold.application.agent_tools.toolbox import Toolbox
from refold.application.api.async_memory import AsyncToolbox


class BlockingTool(BetaBuiltinFunctionTool):
    """For the runner of ``anthropic.Anthropic``."""

    def __init__(self, toolbox: Toolbox, tool: Tool) -> None:
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

    def __init__(self, toolbox: AsyncToolbox, tool: Tool) -> None:
        self._toolbox, self._tool = toolbox, tool

    def to_dict(self) -> BetaToolParam:
        """The definition that is sent with the request."""
        return _param(self._tool)

    async def call(self, input: object) -> BetaFunctionToolResultType:
        """See ``BlockingTool.call``."""
        return _result(await self._toolbox.call(self._tool.name, input))


def _param(tool: Tool) -> BetaToolParam:
    return cast("BetaToolParam", tool.definition)


def _result(output: ToolOutput) -> str:
    if output.is_error:
        raise ToolError(output.text)
    return output.text
