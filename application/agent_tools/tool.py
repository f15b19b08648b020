"""One tool as a model is told of it and as a program calls it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from refold.application.ports.sdk_tools import ToolOutput
from refold.domain.errors import RefoldError

from .answers import one_line
from .arguments import Arguments, read_arguments, refusal, schema_of
from .tool_scope import Reach, ToolRefusal


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. Calling it with keyword arguments gives the text, of an error as well."""

    name: str
    description: str
    """When to use it, what comes back, what it cannot do: for the model."""
    arguments: type[Arguments]
    answer: Callable[[Reach, Any], str]
    reach: Reach

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        return schema_of(self.arguments)

    @property
    def definition(self) -> dict[str, Any]:
        """As ``tools=`` of the Messages API takes it."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
        }

    def call(self, given: object) -> ToolOutput:
        """The answer to a call with any JSON value; what is wrong with it is an answer as well.

        Raises:
            OpenedBeforeFork: this process was forked from the one that opened the memory.
        """
        self.reach.core.process.check()
        try:
            arguments = read_arguments(self.arguments, given)
        except ValidationError as error:
            return ToolOutput(text=refusal(self.name, self.arguments, error), is_error=True)
        try:
            self.reach.scope.check_owner()
            return ToolOutput(text=self.answer(self.reach, arguments))
        except (ToolRefusal, RefoldError) as error:
            return ToolOutput(
                text=f"{self.name}: {one_line(self.reach.told(error), 1_000)}", is_error=True
            )
        except OSError as error:
            problem = one_line(error.strerror or str(error))
            text = f"{self.name}: the memory cannot be read now ({problem}); go on without it."
            return ToolOutput(text=text, is_error=True)

    def __call__(self, **arguments: Any) -> str:
        """The text of the answer."""
        return self.call(arguments).text
