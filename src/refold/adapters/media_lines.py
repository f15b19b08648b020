"""Parts of messages that the Messages API has no block for, such as audio: a line of text is kept in their place."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from refold.domain.value import is_object

MEDIA = frozenset(
    {"audio", "file", "image", "image_url", "media", "video"}
    | {"input_audio", "input_file", "input_image", "input_video"}
)
"""Types of parts that have a file, or name one."""
_LONGEST = 200
"""Characters of a value that is part of the line."""


def line_of(part: Mapping[str, Any]) -> str:
    """Return a line that names a part: what is known of it, the size of its data, and a digest."""
    # LangChain gives a part without an id another one each time.
    own = {name: value for name, value in part.items() if not str(value).startswith("lc_")}
    digest = sha256(json.dumps(own, sort_keys=True, default=str).encode()).hexdigest()[:12]
    return f"[{part.get('type')}] {', '.join([*_known(own), digest])}"


def _known(part: Mapping[str, Any]) -> Iterator[str]:
    for name, value in part.items():
        if is_object(value):
            yield from _known(value)
        elif isinstance(value, str) and name != "type":
            is_data = len(value) > _LONGEST or value.startswith("data:")
            yield f"{len(value):,} characters" if is_data else value
