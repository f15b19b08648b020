"""Which files of the three layers are entered while something runs, in any thread."""

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import refold

_LAYERS = tuple(
    (Path(refold.__file__).parent / layer).resolve()
    for layer in ("domain", "application", "infrastructure")
)


@contextmanager
def entered_files() -> Generator[set[str]]:
    """Yield a set that fills with the files whose functions are entered, as ``layer/room/module.py``.

    Threads that run already are not followed.
    """
    codes = set[CodeType]()
    files = set[str]()

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            codes.add(frame.f_code)

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        files.update(filter(None, map(_named, {Path(code.co_filename) for code in codes.copy()})))


def _named(path: Path) -> str | None:
    found = path.resolve()
    layer = next((one for one in _LAYERS if found.is_relative_to(one)), None)
    return None if layer is None else str(found.relative_to(layer.parent))
