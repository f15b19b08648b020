"""Tools that the Messages API would refuse are refused where they come in, with the field and the tool."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import refold
from refold.application.agent_tools.definitions import definitions_of, forget_reported
from refold.domain.errors import InvalidMessage

SCHEMA = {"type": "object"}
GOOD: dict[str, Any] = {"name": "look", "input_schema": SCHEMA}


@pytest.fixture(autouse=True)
def untold() -> Iterator[None]:
    forget_reported()
    yield
    forget_reported()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"input_schema": {}}, "input_schema.type"),
        ({"input_schema": {"type": "array"}}, "input_schema.type"),
        ({"input_schema": {"type": ["object", "null"]}}, "input_schema.type"),
        ({"input_schema": {**SCHEMA, "properties": []}}, "input_schema.properties"),
        ({"input_schema": {**SCHEMA, "properties": {"path": "text"}}}, "input_schema.properties.path"),
        ({"input_schema": {**SCHEMA, "required": "path"}}, "input_schema.required"),
        ({"input_schema": {**SCHEMA, "required": [5]}}, "input_schema.required"),
        ({"description": 5}, "description"),
        ({"cache_control": "yes"}, "cache_control"),
        ({"cache_control": {}}, "cache_control"),
        ({"strict": "yes"}, "strict"),
        ({"defer_loading": 1}, "defer_loading"),
        ({"eager_input_streaming": "on"}, "eager_input_streaming"),
        ({"allowed_callers": "direct"}, "allowed_callers"),
        ({"input_examples": {"path": "a"}}, "input_examples"),
        ({"input_examples": ["a"]}, "input_examples"),
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_kind_is_refused_with_its_tool(
    changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidMessage) as caught:
        definitions_of([{**GOOD, "name": "good"}, {**GOOD, **changes}])
    assert caught.value.field == f"tools[1].{field}"
    assert "'look'" in caught.value.problem


@pytest.mark.parametrize(
    ("tool", "field", "told"),
    [
        ({"type": "web_search_20250305"}, "name", "web_search_20250305"),
        ({"type": "web_search_20250305", "name": ""}, "name", "web_search_20250305"),
        ({"type": "frobnicate", "name": "x"}, "type", "'frobnicate'"),
        ({"type": "web_search_2025", "name": "x"}, "type", "'web_search_2025'"),
        ({"type": "mcp_toolset"}, "mcp_server_name", "mcp_toolset"),
        ({"type": "bash_20250124", "name": "bash", "cache_control": 1}, "cache_control", "'bash'"),
    ],
)
def test_a_server_tool_that_is_none_is_refused(tool: dict[str, Any], field: str, told: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        definitions_of([tool])
    assert caught.value.field == f"tools[0].{field}"
    assert told in caught.value.problem


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        {"type": "bash_20250124", "name": "bash", "cache_control": {"type": "ephemeral"}},
        {"type": "tool_search_tool_regex", "name": "tool_search_tool_regex"},
        {"type": "browser_toolset_20260801"},
        {"type": "mcp_toolset", "mcp_server_name": "files"},
        {
            **GOOD,
            "description": "Looks.",
            "input_schema": {**SCHEMA, "properties": {"path": True}, "required": ["path"]},
            "cache_control": {"type": "ephemeral", "ttl": "1h"},
            "strict": True,
            "type": "custom",
            "defer_loading": False,
            "allowed_callers": ["direct"],
            "input_examples": [{"path": "a"}],
            "eager_input_streaming": None,
        },
        {**GOOD, "cache_control": None},
    ],
)
def test_what_the_api_takes_is_taken_as_it_is_without_a_word(tool: dict[str, Any]) -> None:
    assert definitions_of([tool]) == (tool,)


def test_a_key_that_is_unknown_here_is_kept_and_warned_of_once() -> None:
    tool = {**GOOD, "foo": 1}
    with pytest.warns(refold.UnknownToolFieldWarning, match="'foo'.*'look'"):
        assert definitions_of([tool]) == (tool,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert definitions_of([tool]) == (tool,)
