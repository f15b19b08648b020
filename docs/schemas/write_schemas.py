"""Write the JSON Schema of each stored event next to this file.

    python docs/schemas/write_schemas.py

A file is named ``NAME.SHAPE.json``, as in the log. It describes the fields of the newest shape. The
files of older shapes stay: they are never written again. Titles and descriptions are left out, so a
changed file is a changed storage format.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from refold.domain.value import is_list, is_object
from refold.infrastructure.event_store.codec import NAMES, SHAPES

FOLDER = Path(__file__).parent
DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAMED_BY_THE_FORMAT = ("properties", "$defs")
"""Keys whose values are objects with names of the format as their keys."""


def schemas() -> Iterator[tuple[str, str]]:
    """The name and the text of each file."""
    for name, event in NAMES.items():
        schema = _without_words(event.model_json_schema(mode="validation"))
        assert is_object(schema)
        whole = {"$schema": DIALECT, "title": name, "$comment": f"shape {SHAPES[name]}", **schema}
        yield f"{name}.{SHAPES[name]}.json", json.dumps(whole, indent=1, sort_keys=True) + "\n"


def _without_words(schema: object) -> object:
    """A schema without titles and descriptions, and without what holds by default."""
    if is_list(schema):
        return [_without_words(item) for item in schema]
    if not is_object(schema):
        return schema
    kept: dict[str, object] = {}
    for key, value in schema.items():
        if key in ("title", "description") or (key == "additionalProperties" and value is True):
            continue
        if key in NAMED_BY_THE_FORMAT and is_object(value):
            kept[key] = {name: _without_words(inner) for name, inner in value.items()}
        else:
            kept[key] = value if key == "default" else _without_words(value)
    return kept


def main() -> None:
    """Write all files."""
    for name, text in schemas():
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
