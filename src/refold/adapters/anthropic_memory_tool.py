"""The memory tool of the Messages API, whose files are kept in the log."""

from typing import Any

from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    ToolError,
)

from refold.application.api.async_memory import AsyncMemory
from refold.application.api.blocking import run_to_end
from refold.application.api.memory import Memory
from refold.application.api.memory_files import MemoryFiles
from refold.domain.memory_files import FileRefused


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool of the API. Its ``files`` are kept in the log, with their history."""

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        owner: str | None = None,
        thread: str | None = None,
        cache_control: Any = None,
    ) -> None:
        """Create the tool for a tool runner. ``owner`` and ``thread`` are those of ``MemoryFiles``."""
        super().__init__(cache_control=cache_control)
        self.files = MemoryFiles(memory, owner=owner, thread=thread)

    def execute(self, command: Any) -> str:
        """Carry out a command of the model.

        Raises:
            ToolError: the command cannot be carried out; its text is for the model.
        """
        return _carried_out(self.files, command)

    view = create = str_replace = insert = delete = rename = execute

    def clear_all_memory(self) -> str:
        """Delete all files."""
        return self.files.clear()


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """``MemoryTool`` for asyncio."""

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        owner: str | None = None,
        thread: str | None = None,
        cache_control: Any = None,
    ) -> None:
        """Create the tool for a tool runner. ``owner`` and ``thread`` are those of ``MemoryFiles``."""
        super().__init__(cache_control=cache_control)
        self.files = MemoryFiles(memory, owner=owner, thread=thread)

    async def execute(self, command: Any) -> str:
        """Carry out a command of the model, as ``MemoryTool.execute`` does."""
        return await run_to_end(_carried_out, self.files, command)

    view = create = str_replace = insert = delete = rename = execute

    async def clear_all_memory(self) -> str:
        """Delete all files."""
        return await run_to_end(self.files.clear)


def _carried_out(files: MemoryFiles, command: Any) -> str:
    given: dict[str, Any] = command.__dict__
    try:
        return files.execute(given)
    except FileRefused as error:
        raise ToolError(str(error)) from error
