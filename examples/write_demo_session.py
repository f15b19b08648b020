"""Writes the conversation of `refold demo`: plays the screenplay in ``demo_session/story``.

Run it after changing the story: ``python examples/write_demo_session.py [FILE]``. The same story
always gives the same bytes. How a screenplay is written stands in ``demo_session/screenplay.py``.
"""

import json
import sys
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

from demo_session.recorder import Recorder
from demo_session.screenplay import read_screenplay

HERE = Path(__file__).resolve().parent
SHIPPED = HERE.parent / "infrastructure" / "cli" / "session.jsonl"
START = datetime.fromisoformat("2026-03-10T09:04:00+08:00")


def records() -> list[dict[str, Any]]:
    """The messages of the conversation, oldest first."""
    recorder = Recorder(Random(7), START)
    for scene in read_screenplay(HERE / "demo_session" / "story"):
        recorder.play(scene)
    return recorder.records


def main(target: Path = SHIPPED) -> None:
    """Write one JSON object a line."""
    lines = [json.dumps(record, ensure_ascii=False) for record in records()]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:2]))
