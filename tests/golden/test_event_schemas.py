"""The published JSON Schemas describe the stored events: those of today, and the golden bytes."""

import json
from importlib import import_module
from typing import Any

import pytest

import refold
from docs.schemas.write_schemas import FOLDER, schemas
from refold.infrastructure.event_store.codec import NAMES, SHAPES, decode, encode, pack, unpack
from tests.support.golden_files import FOLDER as GOLDEN

# The package brings no types.
JSONSCHEMA: Any = import_module("jsonschema")
VALIDATOR: Any = JSONSCHEMA.Draft202012Validator
TODAY = dict(schemas())
NEWEST = [f"{name}.{SHAPES[name]}" for name in NAMES]
OLDER = [
    path.stem
    for path in sorted((GOLDEN / "events").glob("*.json"))
    if path.stem.partition(".")[0] in NAMES and path.stem not in NEWEST
]


def stored(stem: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / "events" / f"{stem}.json").read_text("utf-8"))
    return found


def validator(stem: str) -> Any:
    schema = json.loads((FOLDER / f"{stem}.json").read_text("utf-8"))
    VALIDATOR.check_schema(schema)
    return VALIDATOR(schema, format_checker=VALIDATOR.FORMAT_CHECKER)


@pytest.mark.parametrize("name", TODAY)
def test_the_published_schema_is_that_of_the_code(name: str) -> None:
    published = (FOLDER / name).read_text("utf-8") if (FOLDER / name).exists() else ""
    assert published == TODAY[name], (
        "run: python docs/schemas/write_schemas.py, and give the event a new shape if its format changed"
    )


def test_only_stored_events_have_a_schema() -> None:
    published = {path.name for path in FOLDER.glob("*.json")}
    assert published >= TODAY.keys()
    for name in published - TODAY.keys():
        event, shape, _ = name.split(".")
        assert int(shape) < SHAPES[event], f"{name} is no schema of an older shape"


@pytest.mark.parametrize("stem", NEWEST)
def test_the_golden_bytes_of_an_event_fit_its_schema(stem: str) -> None:
    check, found = validator(stem), stored(stem)
    assert found["examples"]
    for example in found["examples"]:
        check.validate(json.loads(example["payload"]))


@pytest.mark.parametrize("stem", OLDER)
def test_an_older_shape_fits_the_schema_once_it_is_read(stem: str) -> None:
    name, _, shape = stem.partition(".")
    check = validator(f"{name}.{SHAPES[name]}")
    for example in stored(stem)["examples"]:
        event = decode(name, int(shape), pack(name, int(shape), example["payload"].encode()))
        check.validate(json.loads(unpack(*encode(event))))


@pytest.mark.parametrize("stem", NEWEST)
def test_an_event_with_an_unknown_field_does_not_fit(stem: str) -> None:
    payload = json.loads(stored(stem)["examples"][0]["payload"])
    with pytest.raises(JSONSCHEMA.ValidationError, match="colour"):
        validator(stem).validate({**payload, "colour": "red"})


def test_what_is_exported_as_events_fits_the_schemas() -> None:
    with refold.open(":memory:", window=8_000) as memory:
        conversation = memory.conversation("t")
        for n in range(40):
            conversation.append({"role": "user", "content": f"{n} " + "words " * 200})
            conversation.context(system="Be brief.")
            conversation.append({"role": "assistant", "content": f"{n}, noted."})
        conversation.pin(0)
        conversation.label("words")
        exported = list(conversation.export("events"))
    assert {"compaction_performed", "message_pinned", "request_frame_changed"} <= {
        event["name"] for event in exported
    }
    for event in exported:
        validator(f"{event['name']}.{SHAPES[event['name']]}").validate(event["fields"])
