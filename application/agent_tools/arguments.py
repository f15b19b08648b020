"""Names and arguments of the tools, and the errors for invalid arguments."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from refold.domain.notes import NoteKind
from refold.domain.noting import LONGEST_NOTE
from refold.domain.value import is_list, is_object

MOST_HITS = 20
LAST_POSITION = 999_999_999


class Arguments(BaseModel, frozen=True):
    """Base of the arguments of a call. Values that the schema does not allow are refused, never guessed."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


Position = Annotated[int, Field(ge=0, le=LAST_POSITION)]
Name = Annotated[str, Field(min_length=1, max_length=500)]
Moment = Annotated[str, Field(max_length=40)]
Thread = Annotated[
    str,
    Field(
        min_length=1,
        max_length=500,
        description="The id of a conversation, exactly as another answer or list names it.",
    ),
]


class RecallArguments(Arguments, frozen=True):
    """Arguments of ``recall_memory``."""

    query: Annotated[
        str,
        Field(
            max_length=4_000,
            description="A short question, or words that the message would have, names included. For "
            "example: which port does postgres use; parse_config KeyError. Can be left out with topic.",
        ),
    ] = ""
    topic: Annotated[
        str,
        Field(
            max_length=200,
            description="Only messages of this topic, as a list of recallable topics names it: retry "
            "policy, say.",
        ),
    ] = ""
    limit: Annotated[
        int,
        Field(ge=1, le=MOST_HITS, description="How many passages at most; 5 where it is left out."),
    ] = 5
    roles: Annotated[
        list[Literal["user", "assistant", "system", "tool"]],
        Field(
            max_length=4,
            description='Only what these said, for example ["user"]; tool stands for results of tools.',
        ),
    ] = []
    tools: Annotated[
        list[Name],
        Field(
            max_length=20,
            description='Only calls and results of these tools, for example ["bash"].',
        ),
    ] = []
    since: Annotated[
        Moment,
        Field(description="Only from this time on, with a time zone: 2026-01-02T00:00:00Z, say."),
    ] = ""
    until: Annotated[Moment, Field(description="Only before this time, written alike.")] = ""

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if not self.query and not self.topic.strip():
            raise ValueError("query is missing; give one, or a topic, or both")
        return self


class QueryArguments(Arguments, frozen=True):
    """Arguments of ``query_history``."""

    start: Annotated[
        Position | None,
        Field(description="The first position; the first message has 0."),
    ] = None
    stop: Annotated[
        Position | None, Field(description="The position to stop before: 10 and 20 give ten.")
    ] = None
    ids: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=6_000)]],
        Field(
            max_length=50,
            description="Ids or addresses (refold://…) of messages, as answers show them.",
        ),
    ] = []
    text: Annotated[
        str,
        Field(
            max_length=1_000,
            description="Only messages with exactly this text in them, whatever its case: a path, a "
            "name, an error message.",
        ),
    ] = ""
    limit: Annotated[
        int,
        Field(ge=1, le=50, description="How many messages at most; 20 where it is left out."),
    ] = 20


class ExpandArguments(Arguments, frozen=True):
    """Arguments of ``expand_summary``."""

    summary_id: Annotated[
        Name | None,
        Field(
            description="The id of a summary, as answers show it. Left out: the one that stands for "
            "the earlier messages now."
        ),
    ] = None
    start: Annotated[
        Position,
        Field(description="The position to go on from, as the answer before says; 0 at first."),
    ] = 0


class ReadArguments(Arguments, frozen=True):
    """Arguments of ``read_offloaded``."""

    address: Annotated[
        str,
        Field(
            min_length=1,
            max_length=6_000,
            description="As a preview or an answer shows it, refold://thread-42/17 say; the position "
            "alone, 17, does as well.",
        ),
    ]
    start: Annotated[
        Position,
        Field(description="The character to go on from, as the answer before says; 0 at first."),
    ] = 0


class RecallOfAll(RecallArguments, frozen=True):
    """Arguments of ``recall_memory`` without a default conversation."""

    thread: Thread | None = None


class RecallAnywhere(RecallOfAll, frozen=True):
    """Arguments of ``recall_memory`` for a conversation whose tools reach all conversations."""

    all_conversations: Annotated[
        bool, Field(description="Whether to search all conversations; leave thread out then.")
    ] = False


class QueryAnywhere(QueryArguments, frozen=True):
    """Arguments of ``query_history`` that can name another conversation."""

    thread: Thread | None = None


class ExpandAnywhere(ExpandArguments, frozen=True):
    """Arguments of ``expand_summary`` that can name another conversation."""

    thread: Thread | None = None


class ListArguments(Arguments, frozen=True):
    """Arguments of ``list_conversations``."""

    limit: Annotated[
        int,
        Field(ge=1, le=100, description="How many conversations at most; 20 where it is left out."),
    ] = 20


class RememberArguments(Arguments, frozen=True):
    """Arguments of ``remember``."""

    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=LONGEST_NOTE,
            description="One sentence that makes sense alone, later and elsewhere, such as: The staging "
            "database listens on port 5433.",
        ),
    ]
    kind: Annotated[
        NoteKind,
        Field(
            description="What it is: a decision, a preference of the user, a constraint that must not be "
            "broken, an open task, or a fact."
        ),
    ]


class PinArguments(Arguments, frozen=True):
    """Arguments of ``pin``."""

    message: Annotated[
        str,
        Field(
            max_length=6_000,
            description="The message to pin: its address, refold://thread-42/17 say, or its position "
            "alone, 17. Leave text out then.",
        ),
    ] = ""
    text: Annotated[
        str,
        Field(
            max_length=2_000,
            description="A text to pin instead of a message, in your own words and as short as possible.",
        ),
    ] = ""

    @model_validator(mode="after")
    def _names_one_thing(self) -> Self:
        if bool(self.message.strip()) == bool(self.text.strip()):
            raise ValueError("give either message or text, and not both")
        return self


class ForgetArguments(Arguments, frozen=True):
    """Arguments of ``forget``."""

    target: Annotated[
        str,
        Field(
            min_length=1,
            max_length=6_000,
            description="The id of a pin or of a remembered note, as the answer to pin or remember gave "
            "it; or the address or the position of a message of this conversation.",
        ),
    ]


def schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of the arguments for the Messages API and MCP."""
    made = arguments.model_json_schema()
    properties = {name: _plain(field) for name, field in made.get("properties", {}).items()}
    return {
        "type": "object",
        "properties": properties,
        "required": made.get("required", []),
        "additionalProperties": False,
    }


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    """Return the field without entries useless to a model: titles, empty defaults, null as an extra type."""
    kept = {k: v for k, v in field.items() if k not in ("title", "default", "anyOf")}
    for option in field.get("anyOf", ()):
        if option.get("type") != "null":
            kept = {**option, **kept}
    if field.get("default") not in (None, "", [], 0, False):
        kept["default"] = field["default"]
    return kept


def read_arguments(arguments: type[Arguments], given: object) -> Arguments:
    """Parse the given arguments.

    Raises:
        ValidationError: they do not match the schema.
    """
    if is_object(given):
        # A model may send null for an argument that it omits.
        given = {name: _to_integer(value) for name, value in given.items() if value is not None}
    return arguments.model_validate(given)


def _to_integer(value: object) -> object:
    """Return a float without a fraction as an integer, since 5.0 is an integer in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def refusal(tool: str, arguments: type[Arguments], error: ValidationError) -> str:
    """Describe the errors of a call and the valid arguments."""
    lines = "\n".join(f"- {problem}" for problem in _problems(error))
    return f"{tool} was not called, its arguments are wrong:\n{lines}\n{_usage(tool, arguments)}"


def _problems(error: ValidationError) -> Iterator[str]:
    for found in error.errors(include_url=False, include_input=True)[:8]:
        place = ".".join(str(part)[:60] for part in found["loc"])
        match found["type"]:
            case "missing":
                yield f"{place} is missing"
            case "extra_forbidden":
                yield f"{_show(place)} is not an argument of this tool; leave it out"
            case "value_error":
                yield found["msg"].removeprefix("Value error, ")
            case "model_type" | "model_attributes_type":
                yield f"the arguments must be one JSON object, not {_kind(found['input'])}"
            case _:
                said = found["msg"].replace("Input should be", "it must be")
                absent = ": leave it out instead" if found["input"] is None else ""
                yield f"{place}: {said[:200]}; it was {_kind(found['input'])}{absent}"


def _usage(tool: str, arguments: type[Arguments]) -> str:
    schema = schema_of(arguments)
    parts = [
        f"{name} ({_type(field)}{', required' if name in schema['required'] else ''})"
        for name, field in schema["properties"].items()
    ]
    return f"{tool} takes: {', '.join(parts)}. Call it again with these alone."


def _type(field: dict[str, Any]) -> str:
    if field["type"] == "array":
        return "list of strings"
    if "maximum" in field and field["maximum"] != LAST_POSITION:
        return f"integer from {field['minimum']} to {field['maximum']}"
    return str(field["type"])


def _show(text: str) -> str:
    return ascii(text[:60])


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if is_object(value):
        return "an object"
    if is_list(value):
        return f"a list of {len(value)}"
    return f"{type(value).__name__} {ascii(value)[:60]}"
