"""Arguments of tools are read as their schema says, and refused in words that help."""

from typing import Any

import pytest
from pydantic import ValidationError

from refold.application.agent_tools.arguments import (
    ExpandArguments,
    QueryAnywhere,
    QueryArguments,
    ReadArguments,
    RecallAnywhere,
    RecallArguments,
    read_arguments,
    refusal,
    schema_of,
)
from tests.support.tool_talks import allowed_by

ALL = (
    RecallArguments,
    RecallAnywhere,
    QueryArguments,
    QueryAnywhere,
    ExpandArguments,
    ReadArguments,
)


def refused(given: object) -> str:
    with pytest.raises(ValidationError) as error:
        read_arguments(RecallArguments, given)
    return refusal("recall_memory", RecallArguments, error.value)


@pytest.mark.parametrize("arguments", ALL)
def test_a_schema_is_closed_and_describes_every_argument(arguments: Any) -> None:
    schema = schema_of(arguments)
    assert schema["additionalProperties"] is False
    for name, field in schema["properties"].items():
        assert field["description"], name
        assert field["type"] in ("string", "integer", "array", "boolean"), name
        assert "title" not in field
        assert "anyOf" not in field
        if field["type"] == "integer":
            assert field["minimum"] >= 0
            assert field["maximum"] > field["minimum"]


def test_what_need_not_be_given_has_its_usual_value() -> None:
    read = read_arguments(RecallArguments, {"query": "ports"})
    assert read == RecallArguments(query="ports", limit=5)
    assert schema_of(RecallArguments)["required"] == []


def test_a_whole_number_is_one_however_json_writes_it() -> None:
    read = read_arguments(RecallArguments, {"query": "ports", "limit": 3.0})
    assert read.model_dump()["limit"] == 3
    assert allowed_by(schema_of(RecallArguments), {"query": "ports", "limit": 3.0})


def test_null_stands_for_what_is_left_out() -> None:
    assert read_arguments(RecallArguments, {"query": "ports", "limit": None}) == read_arguments(
        RecallArguments, {"query": "ports"}
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "query is missing"),
        ({"query": 5}, "query: it must be a valid string; it was int 5"),
        ({"query": ""}, "query is missing; give one, or a topic, or both"),
        ({"query": "a", "limit": 0}, "limit: it must be greater than or equal to 1"),
        ({"query": "a", "limit": 21}, "limit: it must be less than or equal to 20"),
        ({"query": "a", "limit": True}, "limit: it must be a valid integer"),
        ({"query": "a", "limit": "5"}, "limit: it must be a valid integer"),
        ({"query": "a", "roles": [None]}, "it was null: leave it out instead"),
        ({"query": "a", "roles": ["bob"]}, "'user', 'assistant', 'system' or 'tool'"),
        ({"query": "a", "tools": "bash"}, "tools: it must be a valid list"),
        ({"query": "a", "thread": "t"}, "'thread' is not an argument of this tool; leave it out"),
        ({"query": "\ud800"}, "query"),
        (["query"], "the arguments must be one JSON object, not a list of 1"),
        (None, "the arguments must be one JSON object, not null"),
        ("query", "the arguments must be one JSON object, not str 'query'"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_what_the_tool_takes(given: object, said: str) -> None:
    told = refused(given)
    assert said in told
    assert (
        "recall_memory takes: query (string), topic (string), limit (integer from 1 to 20)" in told
    )


def test_a_refusal_stays_short_and_on_its_lines_whatever_was_given() -> None:
    told = refused({f"x\n## {n}": "y" * 9_000 for n in range(500)})
    assert len(told) < 2_500
    assert "\n## " not in told
